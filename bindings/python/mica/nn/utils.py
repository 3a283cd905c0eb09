"""Helpers for training loops: gradient clipping, flat parameter vectors."""

from __future__ import annotations

from collections.abc import Iterable

import mica
from mica._C import Tensor


def _gradients(parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    items = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    return [p.grad for p in items if p.grad is not None]


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
) -> Tensor:
    """Scales the gradients so that their joint norm is at most max_norm; returns the norm."""
    grads = _gradients(parameters)
    if not grads:
        return mica.tensor(0.0)
    with mica.no_grad():
        norms = mica.stack([mica.linalg_vector_norm(g, norm_type) for g in grads])
        total = mica.linalg_vector_norm(norms, norm_type)
        if error_if_nonfinite and not mica.isfinite(total):
            raise RuntimeError(
                f"The norm of the gradients is not finite ({total.item()}), so they cannot be clipped."
            )
        factor = (max_norm / (total + 1e-6)).clamp(max=1.0)
        for g in grads:
            g.mul_(factor)
    return total


def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float) -> None:
    """Clamps the gradients to [-clip_value, clip_value]."""
    with mica.no_grad():
        for g in _gradients(parameters):
            g.clamp_(-clip_value, clip_value)


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All parameters in one vector."""
    return mica.cat([p.reshape(-1) for p in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Writes a vector back into the parameters."""
    start = 0
    for p in parameters:
        p.data = vec[start : start + p.numel()].view_as(p)
        start += p.numel()
