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
    """The place of the first largest element, along `axis` or in the flattened array."""
    return _extreme(x, axis, keepdims, mica.argmax)


def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The place of the first smallest element, along `axis` or in the flattened array."""
    return _extreme(x, axis, keepdims, mica.argmin)


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """The places of elements that are not zero, one array for each dimension."""
    if x.ndim == 0:
        raise ValueError("nonzero needs an array with dimensions; this one has none.")
    return tuple(mica.nonzero(x).unbind(1))


def searchsorted(x1: Tensor, x2: Tensor, /, *, side: str = "left", sorter: Tensor | None = None) -> Tensor:
    """Where the elements of `x2` belong in `x1`, which is sorted, or is by `sorter`."""
    if sorter is not None:
        x1 = mica.index_select(x1, 0, sorter.reshape(-1))
    dtype = mica.promote_types(x1.dtype, x2.dtype)
    return mica.searchsorted(x1.to(dtype), x2.to(dtype).contiguous(), right=side == "right")


def argsort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The places in which the elements stand when sorted."""
    return mica.sort(x, stable=stable, dim=axis, descending=descending)[1]


def sort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The elements in order."""
    return mica.sort(x, stable=stable, dim=axis, descending=descending)[0]


def unique_all(x: Tensor, /) -> UniqueAll:
    """The distinct elements, the places of their first, the place of each element among them, and how often.

    A stable sort brings equal elements together with the first in front; NaN differs from itself.
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
    """The distinct elements, and how often each is there."""
    found = unique_all(x)
    return UniqueCounts(found.values, found.counts)


def unique_inverse(x: Tensor, /) -> UniqueInverse:
    """The distinct elements, and the place of each element of `x` among them."""
    found = unique_all(x)
    return UniqueInverse(found.values, found.inverse_indices)


def unique_values(x: Tensor, /) -> Tensor:
    """The distinct elements."""
    return unique_all(x).values


def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    """The slices of `x` at `indices` along `axis`."""
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"take needs an `axis` for an array with {x.ndim} dimensions.")
        axis = 0
    return x[(slice(None),) * (axis % x.ndim) + (indices.to(mica.int64),)]


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """The elements of `x` at `indices`, one index an element, along `axis`."""
    places, size = indices.to(mica.int64), x.shape[axis]
    return mica.take_along_dim(x, mica.where(places < 0, places + size, places), axis)
