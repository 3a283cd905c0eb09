"""Reductions of the standard, cumulative functions, and differences.

An `axis` of () reduces nothing, and sums of small integers have the default integer of
their kind: an unsigned one stays unsigned.
"""

from __future__ import annotations

import mica
from mica import Tensor, dtype
from mica.array_api._dtypes import isdtype, promoted

TYPE_CHECKING = False  # importing typing takes as long as all of mica
if TYPE_CHECKING:
    from collections.abc import Callable

    Axis = int | tuple[int, ...] | None


def _reduced(x: Tensor, axis: Axis, keepdims: bool, operator: Callable[..., Tensor]) -> Tensor:
    """operator(x, axes, keepdims) for axes of which there is at least one."""
    if axis is None:
        axis = tuple(range(x.ndim))
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    return operator(x, axes, keepdims) if axes else operator(x.unsqueeze(-1), (-1,), False)


def sum_dtype(x: dtype) -> dtype:
    """The dtype of a sum or product without one asked for."""
    if isdtype(x, "unsigned integer"):
        return mica.uint64
    return mica.int64 if isdtype(x, ("bool", "integral")) else x


def sum(x: Tensor, /, *, axis: Axis = None, dtype: dtype | None = None, keepdims: bool = False) -> Tensor:
    """The sum of the elements."""
    wanted = dtype or sum_dtype(x.dtype)
    return _reduced(x, axis, keepdims, lambda t, a, k: mica.sum(t, a, k, dtype=wanted))


def prod(x: Tensor, /, *, axis: Axis = None, dtype: dtype | None = None, keepdims: bool = False) -> Tensor:
    """The product of the elements."""
    wanted = dtype or sum_dtype(x.dtype)

    def operator(t: Tensor, axes: tuple[int, ...], keep: bool) -> Tensor:
        for a in sorted((a % t.ndim for a in axes), reverse=True):
            t = mica.prod(t, a, keep, dtype=wanted)
        return t

    return _reduced(x, axis, keepdims, operator)


def max(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The largest element; NaN if there is one."""
    return _reduced(x, axis, keepdims, mica.amax)


def min(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The smallest element; NaN if there is one."""
    return _reduced(x, axis, keepdims, mica.amin)


def mean(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The arithmetic mean."""
    return _reduced(x, axis, keepdims, mica.mean)


def var(x: Tensor, /, *, axis: Axis = None, correction: int | float = 0.0, keepdims: bool = False) -> Tensor:
    """The variance: squares of differences from the mean, over their number less `correction`."""
    return _reduced(x, axis, keepdims, lambda t, a, k: mica.var(t, a, correction=correction, keepdim=k))


def std(x: Tensor, /, *, axis: Axis = None, correction: int | float = 0.0, keepdims: bool = False) -> Tensor:
    """The square root of the variance."""
    return _reduced(x, axis, keepdims, lambda t, a, k: mica.std(t, a, correction=correction, keepdim=k))


def all(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Whether no element is zero."""
    return _reduced(x != mica.zeros_like(x), axis, keepdims, mica.all)


def any(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Whether an element is not zero."""
    return _reduced(x != mica.zeros_like(x), axis, keepdims, mica.any)


def cumulative_sum(
    x: Tensor, /, *, axis: int | None = None, dtype: dtype | None = None, include_initial: bool = False
) -> Tensor:
    """The sum up to each element; `include_initial` puts a 0 in front."""
    return _cumulative(x, axis, dtype, include_initial, mica.cumsum, 0)


def cumulative_prod(
    x: Tensor, /, *, axis: int | None = None, dtype: dtype | None = None, include_initial: bool = False
) -> Tensor:
    """The product up to each element; `include_initial` puts a 1 in front."""
    return _cumulative(x, axis, dtype, include_initial, mica.cumprod, 1)


def _cumulative(
    x: Tensor,
    axis: int | None,
    dtype: dtype | None,
    include_initial: bool,
    operator: Callable[..., Tensor],
    initial: int,
) -> Tensor:
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"An `axis` is needed for an array with {x.ndim} dimensions.")
        axis = 0
    result = operator(x, axis, dtype=dtype or sum_dtype(x.dtype))
    if not include_initial:
        return result
    shape = list(x.shape)
    shape[axis] = 1
    return mica.cat([mica.full(shape, initial, dtype=result.dtype, device=x.device), result], axis)


def count_nonzero(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """How many elements are not zero."""
    return sum(x != mica.zeros_like(x), axis=axis, keepdims=keepdims)


def diff(
    x: Tensor, /, *, axis: int = -1, n: int = 1, prepend: Tensor | None = None, append: Tensor | None = None
) -> Tensor:
    """Differences of neighbours along `axis`, taken `n` times."""
    for more, before in ((prepend, True), (append, False)):
        if more is not None:
            a, b = promoted(x, more)
            x = mica.cat([b, a] if before else [a, b], axis)
    return mica.diff(x, n, axis)
