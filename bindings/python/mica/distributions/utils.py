"""Helpers of the distributions: broadcast parameters, probabilities and logits, lazy properties."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any

import mica
from mica._C import Tensor

euler_constant = 0.57721566490153286060


def broadcast_all(*values: Any) -> tuple[Tensor, ...]:
    """Tensors of one shape: numbers become tensors of the dtype and device of the tensors given."""
    for v in values:
        if not isinstance(v, (Tensor, int, float, complex)):
            raise ValueError(
                f"A parameter is a Tensor or a number; this one is of type ({type(v).__name__})."
            )
    tensors = [v for v in values if isinstance(v, Tensor)]
    options: dict[str, Any] = {"dtype": mica.get_default_dtype()}
    if tensors:
        options = {"dtype": tensors[0].dtype, "device": tensors[0].device}
    made = [v if isinstance(v, Tensor) else mica.tensor(v, **options) for v in values]
    return tuple(mica.broadcast_tensors(*made))


def _standard_normal(shape: Any, dtype: Any, device: Any) -> Tensor:
    return mica.normal(
        mica.zeros(shape, dtype=dtype, device=device), mica.ones(shape, dtype=dtype, device=device)
    )


def _sum_rightmost(value: Tensor, dim: int) -> Tensor:
    """The sum over the last `dim` dimensions."""
    return value if dim == 0 else value.reshape(*value.shape[: value.dim() - dim], -1).sum(-1)


def clamp_probs(probs: Tensor) -> Tensor:
    """Probabilities kept off 0 and 1 by the dtype's epsilon."""
    eps = mica.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Sigmoid of log odds, or softmax of log probabilities."""
    return mica.sigmoid(logits) if is_binary else logits.softmax(-1)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Log odds, or log probabilities."""
    ps = clamp_probs(probs)
    return mica.log(ps) - mica.log1p(-ps) if is_binary else mica.log(ps)


class lazy_property:
    """A property computed on first use and kept in the instance, with gradients on."""

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        self.wrapped = wrapped
        update_wrapper(self, wrapped)  # type: ignore[arg-type]

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return property(self.wrapped)
        with mica.enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """The lower triangle's elements, row by row."""
    rows, columns = mica.tril_indices(mat.shape[-2], mat.shape[-1], diag)
    return mat[..., rows, columns]


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """The lower triangular matrix of these elements."""
    n = (-(1 + 2 * diag) + ((1 + 2 * diag) ** 2 + 8 * vec.shape[-1] + 4 * abs(diag) * (diag + 1)) ** 0.5) / 2
    if abs(n - round(n)) > 1e-8:
        raise ValueError(f"{vec.shape[-1]} elements make no lower triangle with the diagonal ({diag}).")
    size = round(n)
    rows, columns = mica.tril_indices(size, size, diag)
    places = (rows * size + columns).expand(vec.shape)
    flat = vec.new_zeros((*vec.shape[:-1], size * size))
    return flat.scatter(-1, places, vec).reshape(*vec.shape[:-1], size, size)
