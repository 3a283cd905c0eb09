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
    """Sums elements.

    As `sum` of the Python array API standard.

    Args:
        x (Tensor): The array, of any shape.
        axis (int or tuple of int, optional): Axes to reduce. Default: None, all.
        dtype (dtype, optional): Of the result. Default: that of `x`, int64 of smaller integers and bool,
            uint64 of unsigned ones.
        keepdims (bool): Keeps reduced axes, of size 1. Default: False.

    Returns:
        Tensor: The sums.

    Example:
        >>> xp = mica.array_api
        >>> xp.sum(mica.tensor([[1, 2], [3, 4]]), axis=0)
        tensor([4, 6])
    """
    wanted = dtype or sum_dtype(x.dtype)
    return _reduced(x, axis, keepdims, lambda t, a, k: mica.sum(t, a, k, dtype=wanted))


def prod(x: Tensor, /, *, axis: Axis = None, dtype: dtype | None = None, keepdims: bool = False) -> Tensor:
    """Multiplies elements.

    As `prod` of the Python array API standard.

    Args:
        x (Tensor): The array, of any shape.
        axis (int or tuple of int, optional): Axes to reduce. Default: None, all.
        dtype (dtype, optional): Of the result. Default: that of `x`, int64 of smaller integers and bool,
            uint64 of unsigned ones.
        keepdims (bool): Keeps reduced axes, of size 1. Default: False.

    Returns:
        Tensor: The products.

    Example:
        >>> xp = mica.array_api
        >>> xp.prod(mica.tensor([2, 3, 4]))
        tensor(24)
    """
    wanted = dtype or sum_dtype(x.dtype)

    def operator(t: Tensor, axes: tuple[int, ...], keep: bool) -> Tensor:
        for a in sorted((a % t.ndim for a in axes), reverse=True):
            t = mica.prod(t, a, keep, dtype=wanted)
        return t

    return _reduced(x, axis, keepdims, operator)


def max(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Finds the greatest elements; NaN if there is one.

    As `max` of the Python array API standard.

    Args:
        x (Tensor): The array, of any shape.
        axis (int or tuple of int, optional): Axes to reduce. Default: None, all.
        keepdims (bool): Keeps reduced axes, of size 1. Default: False.

    Returns:
        Tensor: The elements.

    Example:
        >>> xp = mica.array_api
        >>> xp.max(mica.tensor([[1, 5], [3, 4]]), axis=1)
        tensor([5, 4])
    """
    return _reduced(x, axis, keepdims, mica.amax)


def min(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Finds the least elements; NaN if there is one.

    As `min` of the Python array API standard.

    Args:
        x (Tensor): The array, of any shape.
        axis (int or tuple of int, optional): Axes to reduce. Default: None, all.
        keepdims (bool): Keeps reduced axes, of size 1. Default: False.

    Returns:
        Tensor: The elements.

    Example:
        >>> xp = mica.array_api
        >>> xp.min(mica.tensor([[1, 5], [3, 4]]), axis=1)
        tensor([1, 3])
    """
    return _reduced(x, axis, keepdims, mica.amin)


def mean(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Computes arithmetic means.

    As `mean` of the Python array API standard.

    Args:
        x (Tensor): The array, floating-point.
        axis (int or tuple of int, optional): Axes to reduce. Default: None, all.
        keepdims (bool): Keeps reduced axes, of size 1. Default: False.

    Returns:
        Tensor: The means.

    Example:
        >>> xp = mica.array_api
        >>> xp.mean(mica.tensor([1.0, 2.0, 6.0]))
        tensor(3.)
    """
    return _reduced(x, axis, keepdims, mica.mean)


def var(x: Tensor, /, *, axis: Axis = None, correction: int | float = 0.0, keepdims: bool = False) -> Tensor:
    """Computes variances: `sum((x - mean)^2) / (n - correction)`.

    As `var` of the Python array API standard.

    Args:
        x (Tensor): The array, floating-point.
        axis (int or tuple of int, optional): Axes to reduce. Default: None, all.
        correction (float): What the number of elements is lowered by. Default: 0.0.
        keepdims (bool): Keeps reduced axes, of size 1. Default: False.

    Returns:
        Tensor: The variances.

    Example:
        >>> xp = mica.array_api
        >>> xp.var(mica.tensor([1.0, 2.0, 6.0]))
        tensor(4.6667)
    """
    return _reduced(x, axis, keepdims, lambda t, a, k: mica.var(t, a, correction=correction, keepdim=k))


def std(x: Tensor, /, *, axis: Axis = None, correction: int | float = 0.0, keepdims: bool = False) -> Tensor:
    """Computes standard deviations: `sqrt(sum((x - mean)^2) / (n - correction))`.

    As `std` of the Python array API standard.

    Args:
        x (Tensor): The array, floating-point.
        axis (int or tuple of int, optional): Axes to reduce. Default: None, all.
        correction (float): What the number of elements is lowered by. Default: 0.0.
        keepdims (bool): Keeps reduced axes, of size 1. Default: False.

    Returns:
        Tensor: The deviations.

    Example:
        >>> xp = mica.array_api
        >>> xp.std(mica.tensor([1.0, 3.0]))
        tensor(1.)
    """
    return _reduced(x, axis, keepdims, lambda t, a, k: mica.std(t, a, correction=correction, keepdim=k))


def all(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Returns whether all elements are other than 0.

    As `all` of the Python array API standard.

    Args:
        x (Tensor): The array, of any shape.
        axis (int or tuple of int, optional): Axes to reduce. Default: None, all.
        keepdims (bool): Keeps reduced axes, of size 1. Default: False.

    Returns:
        Tensor: bool.

    Example:
        >>> xp = mica.array_api
        >>> xp.all(mica.tensor([[True, True], [True, False]]), axis=1)
        tensor([ True, False])
    """
    return _reduced(x != mica.zeros_like(x), axis, keepdims, mica.all)


def any(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Returns whether any element is other than 0.

    As `any` of the Python array API standard.

    Args:
        x (Tensor): The array, of any shape.
        axis (int or tuple of int, optional): Axes to reduce. Default: None, all.
        keepdims (bool): Keeps reduced axes, of size 1. Default: False.

    Returns:
        Tensor: bool.

    Example:
        >>> xp = mica.array_api
        >>> xp.any(mica.tensor([[False, True], [False, False]]), axis=1)
        tensor([ True, False])
    """
    return _reduced(x != mica.zeros_like(x), axis, keepdims, mica.any)


def cumulative_sum(
    x: Tensor, /, *, axis: int | None = None, dtype: dtype | None = None, include_initial: bool = False
) -> Tensor:
    """Sums up to each element.

    As `cumulative_sum` of the Python array API standard.

    Args:
        x (Tensor): The array, of any shape.
        axis (int, optional): The axis along which it works; only a vector may do without. Default: None.
        dtype (dtype, optional): Of the result. Default: as of `sum`.
        include_initial (bool): Puts a 0 in front. Default: False.

    Returns:
        Tensor: The sums, in the shape of `x`, one longer with `include_initial`.

    Raises:
        ValueError: There is no `axis` and more than one dimension.

    Example:
        >>> xp = mica.array_api
        >>> xp.cumulative_sum(mica.tensor([1, 2, 3]), include_initial=True)
        tensor([0, 1, 3, 6])
    """
    return _cumulative(x, axis, dtype, include_initial, mica.cumsum, 0)


def cumulative_prod(
    x: Tensor, /, *, axis: int | None = None, dtype: dtype | None = None, include_initial: bool = False
) -> Tensor:
    """Multiplies up to each element.

    As `cumulative_prod` of the Python array API standard.

    Args:
        x (Tensor): The array, of any shape.
        axis (int, optional): The axis along which it works; only a vector may do without. Default: None.
        dtype (dtype, optional): Of the result. Default: as of `prod`.
        include_initial (bool): Puts a 1 in front. Default: False.

    Returns:
        Tensor: The products, in the shape of `x`, one longer with `include_initial`.

    Raises:
        ValueError: There is no `axis` and more than one dimension.

    Example:
        >>> xp = mica.array_api
        >>> xp.cumulative_prod(mica.tensor([1, 2, 3]))
        tensor([1, 2, 6])
    """
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
    """Counts the elements other than 0.

    As `count_nonzero` of the Python array API standard.

    Args:
        x (Tensor): The array, of any shape.
        axis (int or tuple of int, optional): Axes to reduce. Default: None, all.
        keepdims (bool): Keeps reduced axes, of size 1. Default: False.

    Returns:
        Tensor: int64.

    Example:
        >>> xp = mica.array_api
        >>> xp.count_nonzero(mica.tensor([0, 5, 7]))
        tensor(2)
    """
    return sum(x != mica.zeros_like(x), axis=axis, keepdims=keepdims)


def diff(
    x: Tensor, /, *, axis: int = -1, n: int = 1, prepend: Tensor | None = None, append: Tensor | None = None
) -> Tensor:
    """Subtracts from each element the one before it.

    As `diff` of the Python array API standard.

    Args:
        x (Tensor): The array, of any shape.
        axis (int): The axis along which it works; negative ones count from the last. Default: -1.
        n (int): How often differences are taken. Default: 1.
        prepend (Tensor, optional): Is put in front first. Default: None.
        append (Tensor, optional): Is put behind first. Default: None.

    Returns:
        Tensor: `n` shorter along the axis.

    Example:
        >>> xp = mica.array_api
        >>> xp.diff(mica.tensor([1, 4, 9]))
        tensor([3, 5])
    """
    for more, before in ((prepend, True), (append, False)):
        if more is not None:
            a, b = promoted(x, more)
            x = mica.cat([b, a] if before else [a, b], axis)
    return mica.diff(x, n, axis)
