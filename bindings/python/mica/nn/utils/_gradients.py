"""Helpers for training loops: gradient clipping, flat parameter vectors."""

from __future__ import annotations

from collections.abc import Iterable

import mica
from mica._C import Tensor


def _listed(tensors: Tensor | Iterable[Tensor]) -> list[Tensor]:
    return [tensors] if isinstance(tensors, Tensor) else list(tensors)


def get_total_norm(
    tensors: Tensor | Iterable[Tensor],
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The norm of all tensors as one vector."""
    items = _listed(tensors)
    if not items:
        return mica.tensor(0.0)
    with mica.no_grad():
        norms = mica.stack([mica.linalg_vector_norm(t, norm_type) for t in items])
        total = mica.linalg_vector_norm(norms, norm_type)
    if error_if_nonfinite and not mica.isfinite(total):
        raise RuntimeError(
            f"The norm of the gradients is not finite ({total.item()}), so they cannot be clipped."
        )
    return total


def clip_grads_with_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    total_norm: Tensor,
    foreach: bool | None = None,
) -> None:
    """Scales the gradients by max_norm / total_norm where that is below 1."""
    factor = (max_norm / (total_norm + 1e-6)).clamp(max=1.0)
    with mica.no_grad():
        for p in _listed(parameters):
            if p.grad is not None:
                p.grad.mul_(factor)


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scales the gradients so that their joint norm is at most max_norm; returns the norm."""
    items = _listed(parameters)
    grads = [p.grad for p in items if p.grad is not None]
    total = get_total_norm(grads, norm_type, error_if_nonfinite)
    clip_grads_with_norm_(items, max_norm, total)
    return total


def clip_grad_value_(
    parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None
) -> None:
    """Clamps the gradients to [-clip_value, clip_value]."""
    with mica.no_grad():
        for p in _listed(parameters):
            if p.grad is not None:
                p.grad.clamp_(-clip_value, clip_value)


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All parameters in one vector."""
    return mica.cat([p.reshape(-1) for p in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Writes a vector back into the parameters."""
    start = 0
    for p in parameters:
        p.data = vec[start : start + p.numel()].view_as(p)
        start += p.numel()
