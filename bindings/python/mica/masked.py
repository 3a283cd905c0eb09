"""mica.masked: reductions and normalisations of the elements that a mask keeps.

Under torch.masked's names. `mask` broadcasts against the input; where it is False an
element counts as the operation's identity (0 of sum, -inf of amax). A result of no
elements at all is that identity, NaN where there is none (mean, median, var, std).
"""

from __future__ import annotations

import math

import mica
from mica import Tensor

TYPE_CHECKING = False  # importing typing takes as long as all of mica
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "amax",
    "amin",
    "argmax",
    "argmin",
    "cumprod",
    "cumsum",
    "log_softmax",
    "logaddexp",
    "logsumexp",
    "mean",
    "median",
    "norm",
    "normalize",
    "prod",
    "softmax",
    "softmin",
    "std",
    "sum",
    "var",
]

_SMALL = (mica.uint8, mica.bool, mica.int8, mica.int16, mica.int32)


def _accumulated(input: Tensor, dtype: Any) -> Any:
    """The dtype of sums: small integers add up in int64."""
    return dtype or (mica.int64 if input.dtype in _SMALL else input.dtype)


def _dims(dim: Any, ndim: int) -> tuple[int, ...]:
    """Sorted dimensions; None and () are all of them."""
    if dim is None or dim == ():
        return tuple(range(ndim))
    count = max(ndim, 1)
    dims: list[int] = []
    for d in (dim,) if isinstance(dim, int) else dim:
        if not -count <= d < count:
            raise IndexError(f"Dimension ({d}) is out of range [{-count}, {count - 1}].")
        if d % count in dims:
            raise RuntimeError(f"Dimension ({d}) stands twice in `dim`.")
        dims.append(d % count)
    return tuple(sorted(dims))


def _mask(input: Tensor, mask: Tensor) -> Tensor:
    """The mask as bool, in the input's shape."""
    if mask.ndim > input.ndim:
        raise IndexError(
            f"Number of dimensions ({mask.ndim}) of `mask` exceeds that ({input.ndim}) of the input."
        )
    return mica.broadcast_to(mask, input.shape).to(mica.bool)


def _input_mask(input: Tensor, *args: Any, mask: Tensor, **kwargs: Any) -> Tensor:
    """Which elements an operation called with these arguments takes."""
    return _mask(input, mask)


def _output_mask(op: Any, input: Tensor, *args: Any, mask: Tensor, **kwargs: Any) -> Tensor:
    """Which elements of the result of `op`, one of this module, come from any of the input."""
    kept = _mask(input, mask)
    if op.__name__ in ("softmax", "log_softmax", "softmin", "normalize", "cumsum", "cumprod"):
        return kept
    rest = args[1:] if op.__name__ == "norm" else args
    dims = _dims(rest[0] if rest else kwargs.get("dim"), input.ndim)
    for d in reversed(dims if input.ndim else ()):
        kept = kept.any(d, bool(kwargs.get("keepdim", False)))
    return kept


def _kept(input: Tensor, mask: Tensor | None, identity: Any) -> Tensor:
    return input if mask is None else mica.where(_mask(input, mask), input, identity)


def _least(input: Tensor) -> Any:
    if input.dtype.is_floating_point:
        return -math.inf
    if input.dtype is mica.bool or input.dtype.is_complex:
        raise NotImplementedError(f"Dtype ({input.dtype}) has no least element to stand for masked ones.")
    return mica.iinfo(input.dtype).min


def _most(input: Tensor) -> Any:
    if input.dtype.is_floating_point:
        return math.inf
    if input.dtype is mica.bool or input.dtype.is_complex:
        raise NotImplementedError(f"Dtype ({input.dtype}) has no largest element to stand for masked ones.")
    return mica.iinfo(input.dtype).max


def sum(
    input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """The sum over `dim`."""
    dims = _dims(dim, input.ndim)
    return mica.sum(_kept(input, mask, 0), dims, bool(keepdim), dtype=_accumulated(input, dtype))


def prod(
    input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """The product over `dim`."""
    result = _kept(input, mask, 1).to(_accumulated(input, dtype))
    for d in reversed(_dims(dim, input.ndim)):
        result = result.prod(d, bool(keepdim))
    return result


def cumsum(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """The running sum along `dim`."""
    return mica.cumsum(_kept(input, mask, 0), _dims(dim, input.ndim)[0], dtype=dtype or input.dtype)


def cumprod(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """The running product along `dim`."""
    return mica.cumprod(_kept(input, mask, 1), _dims(dim, input.ndim)[0], dtype=dtype or input.dtype)


def amax(
    input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """The maximum over `dim`."""
    kept = _kept(input, mask, None if mask is None else _least(input))
    return mica.amax(kept, _dims(dim, input.ndim), bool(keepdim)).to(dtype or input.dtype)


def amin(
    input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """The minimum over `dim`."""
    kept = _kept(input, mask, None if mask is None else _most(input))
    return mica.amin(kept, _dims(dim, input.ndim), bool(keepdim)).to(dtype or input.dtype)


def argmax(
    input: Tensor,
    dim: int | None = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The index of the maximum, in the input's dtype unless `dtype` is given."""
    kept = _kept(input, mask, None if mask is None else _least(input))
    return mica.argmax(kept, dim, bool(keepdim)).to(dtype or input.dtype)


def argmin(
    input: Tensor,
    dim: int | None = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The index of the minimum, in the input's dtype unless `dtype` is given."""
    kept = _kept(input, mask, None if mask is None else _most(input))
    return mica.argmin(kept, dim, bool(keepdim)).to(dtype or input.dtype)


def _count(input: Tensor, dims: tuple[int, ...], keepdim: bool, mask: Tensor | None) -> Tensor:
    kept = (
        mica.ones(input.shape, dtype=mica.bool, device=input.device) if mask is None else _mask(input, mask)
    )
    return kept.sum(dims, keepdim)


def mean(
    input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """The mean over `dim`."""
    result = dtype or input.dtype
    if not (result.is_floating_point or result.is_complex):
        raise ValueError(f"Dtype ({result}) has no mean; expected a floating or complex dtype.")
    count = _count(input, _dims(dim, input.ndim), bool(keepdim), mask)
    return sum(input, dim, keepdim=keepdim, dtype=result, mask=mask) / count


def median(
    input: Tensor, dim: int = -1, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """The lower median along `dim`."""
    is_floating = input.dtype.is_floating_point
    x = input if is_floating else input.to(mica.float32)
    result = mica.nanmedian(_kept(x, mask, math.nan), _dims(dim, input.ndim)[0], bool(keepdim))[0]
    if is_floating:
        return result
    if bool(result.isnan().any()):
        raise ValueError(
            f"A row is masked out as a whole, and dtype ({input.dtype}) has no NaN for its median."
        )
    return result.to(dtype or input.dtype)


def logsumexp(
    input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """log(sum(exp(input))) over `dim`."""
    identity = -math.inf if input.dtype.is_complex or mask is None else _least(input)
    kept = _kept(input, mask, identity)
    return mica.logsumexp(kept, _dims(dim, input.ndim) or (0,), bool(keepdim)).to(dtype or input.dtype)


def logaddexp(
    input: Tensor,
    other: Tensor,
    *,
    dtype: Any = None,
    input_mask: Tensor | None = None,
    other_mask: Tensor | None = None,
) -> Tensor:
    """log(exp(input) + exp(other)) of the elements that the masks keep."""
    left = _kept(input, input_mask, None if input_mask is None else _least(input))
    right = _kept(other, other_mask, None if other_mask is None else _least(other))
    return mica.logaddexp(left, right).to(dtype or input.dtype)


def norm(
    input: Tensor,
    ord: float | None = 2.0,
    dim: Any = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The vector norm of order `ord` over `dim`."""
    order = 2.0 if ord is None else ord
    kept = _kept(input, mask, math.inf if order == -math.inf else 0)
    return mica.linalg.vector_norm(
        kept, order, _dims(dim, input.ndim), bool(keepdim), dtype=dtype or input.dtype
    )


def var(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The variance over `dim` with divisor max(0, n - correction)."""
    if unbiased is not None and correction is not None:
        raise AssertionError("Arguments `unbiased` and `correction` are both given; expected one of them.")
    less = float(correction) if correction is not None else 0.0 if unbiased is False else 1.0
    result = dtype or input.dtype
    if not (result.is_floating_point or result.is_complex):
        result = mica.float32
    dims = _dims(dim, input.ndim)
    count = _count(input, dims, True, mask)
    x = input - sum(input, dim, keepdim=True, dtype=result, mask=mask) / count
    total = sum(x * x.conj(), dim, keepdim=keepdim, dtype=result, mask=mask)
    divisor = count if keepdim else count.reshape(total.shape)
    if less != 0:
        real = mica.abs(total).dtype
        divisor = mica.maximum(divisor.to(real) - less, divisor.new_zeros([], dtype=real))
    return (total / divisor).to(result)


def std(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The square root of var()."""
    return mica.sqrt(
        var(input, dim, unbiased, correction=correction, keepdim=keepdim, dtype=dtype, mask=mask)
    )


def softmax(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """exp(input) / sum(exp(input)) along `dim`."""
    kept = _kept(input, mask, None if mask is None else _least(input))
    return mica.softmax(kept, _dims(dim, input.ndim)[0], dtype=dtype or input.dtype)


def log_softmax(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """The logarithm of softmax()."""
    kept = _kept(input, mask, None if mask is None else _least(input))
    return mica.log_softmax(kept, _dims(dim, input.ndim)[0], dtype=dtype or input.dtype)


def softmin(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """softmax() of -input."""
    kept = _kept(input, mask, None if mask is None else _most(input))
    return mica.nn.functional.softmin(kept, _dims(dim, input.ndim)[0], dtype=dtype or input.dtype)


def normalize(
    input: Tensor, ord: float, dim: int, *, eps: float = 1e-12, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """Vectors along `dim` divided by their norm of order `ord`, at least `eps`."""
    size = norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    return _kept(input, mask, 0) / mica.maximum(size, size.new_full([], eps))
