"""Helpers for training loops: gradient clipping, flat parameter vectors."""

from __future__ import annotations

import warnings
from collections.abc import Generator, Iterable

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
    norm_type = float(norm_type)
    norms = mica._foreach_norm(items, norm_type)
    first = norms[0].device
    total = mica.linalg_vector_norm(mica.stack([n.to(first) for n in norms]), norm_type)
    if error_if_nonfinite and not mica.isfinite(total):
        raise RuntimeError(
            f"The norm of the gradients is not finite ({total.item()}), so they cannot be clipped; "
            "error_if_nonfinite=False scales them all the same."
        )
    return total


def clip_grads_with_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    total_norm: Tensor,
    foreach: bool | None = None,
) -> None:
    """Scales the gradients by max_norm / total_norm where that is below 1."""
    grads = _gradients(_listed(parameters))
    if not grads:
        return
    with mica.no_grad():
        factor = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
        for on_device in _by_device(grads):
            mica._foreach_mul_(on_device, factor.to(on_device[0].device))


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scales the gradients so that their joint norm is at most max_norm; returns the norm."""
    items = _listed(parameters)
    if isinstance(parameters, Generator) and not items:
        warnings.warn("`parameters` is an empty generator: no gradient is clipped.", stacklevel=2)
    with mica.no_grad():
        total = get_total_norm(_gradients(items), norm_type, error_if_nonfinite)
    clip_grads_with_norm_(items, max_norm, total)
    return total


def clip_grad_value_(
    parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None
) -> None:
    """Clamps the gradients to [-clip_value, clip_value]."""
    grads = _gradients(_listed(parameters))
    if grads:
        with mica.no_grad():
            mica._foreach_clamp_min_(grads, -float(clip_value))
            mica._foreach_clamp_max_(grads, float(clip_value))


_get_total_norm, _clip_grads_with_norm_ = get_total_norm, clip_grads_with_norm_  # their older names


def _gradients(parameters: list[Tensor]) -> list[Tensor]:
    return [p.grad for p in parameters if p.grad is not None]


def _by_device(tensors: list[Tensor]) -> list[list[Tensor]]:
    found: dict[object, list[Tensor]] = {}
    for tensor in tensors:
        found.setdefault(tensor.device, []).append(tensor)
    return list(found.values())


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All parameters in one vector."""
    return mica.cat([p.reshape(-1) for p in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Writes a vector back into the parameters."""
    if not isinstance(vec, Tensor):
        raise TypeError(
            f"The vector of parameters must be a Tensor; this value is of type ({type(vec).__name__})."
        )
    start = 0
    for p in parameters:
        p.data = vec[start : start + p.numel()].view_as(p)
        start += p.numel()
