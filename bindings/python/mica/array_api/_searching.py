"""Searching, sorting, set and indexing functions of the standard."""

from __future__ import annotations

from typing import NamedTuple

import mica
from mica import Tensor

TYPE_CHECKING = False  # importing typing takes as long as all of mica
if TYPE_CHECKING:
    from collections.abc import Callable


class UniqueAll(NamedTuple):
    """What unique_all gives."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """What unique_counts gives."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """What unique_inverse gives."""

    values: Tensor
    inverse_indices: Tensor


def _extreme(x: Tensor, axis: int | None, keepdims: bool, operator: Callable[..., Tensor]) -> Tensor:
    if axis is None:
        flat = operator(x.reshape(-1), 0)
        return flat.reshape((1,) * x.ndim) if keepdims else flat
    return operator(x, axis, keepdims)


def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Finds the index of the first greatest element.

    As `argmax` of the Python array API standard.

    Args:
        x (Tensor): The array, of any shape.
        axis (int, optional): The axis along which it works. Default: None, the flattened array.
        keepdims (bool): Keeps reduced axes, of size 1. Default: False.

    Returns:
        Tensor: int64.

    Example:
        >>> xp = mica.array_api
        >>> xp.argmax(mica.tensor([3, 9, 9]))
        tensor(1)
    """
    return _extreme(x, axis, keepdims, mica.argmax)


def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Finds the index of the first least element.

    As `argmin` of the Python array API standard.

    Args:
        x (Tensor): The array, of any shape.
        axis (int, optional): The axis along which it works. Default: None, the flattened array.
        keepdims (bool): Keeps reduced axes, of size 1. Default: False.

    Returns:
        Tensor: int64.

    Example:
        >>> xp = mica.array_api
        >>> xp.argmin(mica.tensor([3, 1, 1]))
        tensor(1)
    """
    return _extreme(x, axis, keepdims, mica.argmin)


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """Finds the indices of elements other than 0.

    As `nonzero` of the Python array API standard.

    Args:
        x (Tensor): The array, of at least one dimension.

    Returns:
        tuple of Tensor: int64, for each dimension the indices `(count,)`.

    Raises:
        ValueError: The array has no dimension.

    Example:
        >>> xp = mica.array_api
        >>> xp.nonzero(mica.tensor([0, 5, 7]))
        (tensor([1, 2]),)
    """
    if x.ndim == 0:
        raise ValueError("nonzero needs an array with dimensions; this one has none.")
    return tuple(mica.nonzero(x).unbind(1))


def searchsorted(x1: Tensor, x2: Tensor, /, *, side: str = "left", sorter: Tensor | None = None) -> Tensor:
    """Finds where elements belong in a sorted vector.

    As `searchsorted` of the Python array API standard.

    Args:
        x1 (Tensor): `(n,)`, in rising order.
        x2 (Tensor): The elements, of any shape.
        side (str): "left" is before equal elements, "right" behind them. Default: "left".
        sorter (Tensor, optional): Indices that sort `x1`, where it is not. Default: None.

    Returns:
        Tensor: int64, in the shape of `x2`.

    Example:
        >>> xp = mica.array_api
        >>> xp.searchsorted(mica.tensor([1, 3, 5]), mica.tensor([3, 4]))
        tensor([1, 2])
    """
    if sorter is not None:
        x1 = mica.index_select(x1, 0, sorter.reshape(-1))
    dtype = mica.promote_types(x1.dtype, x2.dtype)
    return mica.searchsorted(x1.to(dtype), x2.to(dtype).contiguous(), right=side == "right")


def argsort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """Finds the indices that sort an array.

    As `argsort` of the Python array API standard.

    Args:
        x (Tensor): The array, of any shape.
        axis (int): The axis along which it works; negative ones count from the last. Default: -1.
        descending (bool): The greatest first. Default: False.
        stable (bool): Equal elements keep their order. Default: True.

    Returns:
        Tensor: int64, in the shape of `x`.

    Example:
        >>> xp = mica.array_api
        >>> xp.argsort(mica.tensor([3, 1, 2]))
        tensor([1, 2, 0])
    """
    return mica.sort(x, stable=stable, dim=axis, descending=descending)[1]


def sort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """Sorts an array.

    As `sort` of the Python array API standard.

    Args:
        x (Tensor): The array, of any shape.
        axis (int): The axis along which it works; negative ones count from the last. Default: -1.
        descending (bool): The greatest first. Default: False.
        stable (bool): Equal elements keep their order. Default: True.

    Returns:
        Tensor: In the shape of `x`.

    Example:
        >>> xp = mica.array_api
        >>> xp.sort(mica.tensor([3, 1, 2]))
        tensor([1, 2, 3])
    """
    return mica.sort(x, stable=stable, dim=axis, descending=descending)[0]


def unique_all(x: Tensor, /) -> UniqueAll:
    """Finds the distinct elements, where each is first, the place of each element among them, and how often.

    As `unique_all` of the Python array API standard.

    Args:
        x (Tensor): The array, of any shape. NaN differs from itself.

    Returns:
        UniqueAll: `values`, `indices` and `counts`, `(n,)`, and `inverse_indices`, in the shape of `x`.

    Example:
        >>> xp = mica.array_api
        >>> xp.unique_all(mica.tensor([3, 1, 3])).indices
        tensor([1, 0])
    """
    flat = x.reshape(-1)
    n = flat.shape[0]
    order = mica.sort(mica.imag(flat) if flat.dtype.is_complex else flat, stable=True)[1]
    if flat.dtype.is_complex:
        order = order[mica.sort(mica.real(flat)[order], stable=True)[1]]
    ordered = flat[order]
    is_first = mica.ones((n,), dtype=mica.bool, device=x.device)
    is_first[1:] = ordered[1:] != ordered[:-1]
    starts = mica.nonzero(is_first).reshape(-1)
    inverse = mica.empty((n,), dtype=mica.int64, device=x.device)
    inverse[order] = mica.cumsum(is_first.to(mica.int64), 0) - 1
    ends = mica.cat([starts[1:], mica.full((min(n, 1),), n, device=x.device)])
    return UniqueAll(ordered[starts], order[starts], inverse.reshape(x.shape), ends - starts)


def unique_counts(x: Tensor, /) -> UniqueCounts:
    """Finds the distinct elements, and how often each occurs.

    As `unique_counts` of the Python array API standard.

    Args:
        x (Tensor): The array, of any shape.

    Returns:
        UniqueCounts: `values` and `counts`, `(n,)`.

    Example:
        >>> xp = mica.array_api
        >>> xp.unique_counts(mica.tensor([3, 1, 3]))
        UniqueCounts(values=tensor([1, 3]), counts=tensor([1, 2]))
    """
    found = unique_all(x)
    return UniqueCounts(found.values, found.counts)


def unique_inverse(x: Tensor, /) -> UniqueInverse:
    """Finds the distinct elements, and the place of each element among them.

    As `unique_inverse` of the Python array API standard.

    Args:
        x (Tensor): The array, of any shape.

    Returns:
        UniqueInverse: `values`, `(n,)`, and `inverse_indices`, in the shape of `x`.

    Example:
        >>> xp = mica.array_api
        >>> xp.unique_inverse(mica.tensor([3, 1, 3]))
        UniqueInverse(values=tensor([1, 3]), inverse_indices=tensor([1, 0, 1]))
    """
    found = unique_all(x)
    return UniqueInverse(found.values, found.inverse_indices)


def unique_values(x: Tensor, /) -> Tensor:
    """Finds the distinct elements.

    As `unique_values` of the Python array API standard.

    Args:
        x (Tensor): The array, of any shape.

    Returns:
        Tensor: `(n,)`, in rising order.

    Example:
        >>> xp = mica.array_api
        >>> xp.unique_values(mica.tensor([3, 1, 3]))
        tensor([1, 3])
    """
    return unique_all(x).values


def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    """Takes slices at given indices.

    As `take` of the Python array API standard.

    Args:
        x (Tensor): The array, of any shape.
        indices (Tensor): Positions along `axis`, `(n,)`, integers.
        axis (int, optional): The axis along which it works; only a vector may do without. Default: None.

    Returns:
        Tensor: The slices, `n` along the axis.

    Raises:
        ValueError: There is no `axis` and more than one dimension.

    Example:
        >>> xp = mica.array_api
        >>> xp.take(mica.tensor([10, 20, 30]), mica.tensor([2, 0]))
        tensor([30, 10])
    """
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"take needs an `axis` for an array with {x.ndim} dimensions.")
        axis = 0
    return x[(slice(None),) * (axis % x.ndim) + (indices.to(mica.int64),)]


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """Takes elements at given indices, one index for each.

    As `take_along_axis` of the Python array API standard.

    Args:
        x (Tensor): The array, of any shape.
        indices (Tensor): Integers, with as many dimensions as `x`.
        axis (int): The axis along which it works; negative ones count from the last. Default: -1.

    Returns:
        Tensor: In the shape that `indices` and `x` have along the other axes.

    Example:
        >>> xp = mica.array_api
        >>> xp.take_along_axis(mica.tensor([[10, 20], [30, 40]]), mica.tensor([[1], [0]]))
        tensor([[20],
                [30]])
    """
    places, size = indices.to(mica.int64), x.shape[axis]
    return mica.take_along_dim(x, mica.where(places < 0, places + size, places), axis)
