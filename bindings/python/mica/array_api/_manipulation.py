"""Manipulation functions of the standard: shapes, joins, repeats."""

from __future__ import annotations

import mica
from mica import Tensor
from mica.array_api._dtypes import common

TYPE_CHECKING = False  # importing typing takes as long as all of mica
if TYPE_CHECKING:
    from collections.abc import Sequence

    Axes = int | tuple[int, ...]


def _tuple(axes: Axes) -> tuple[int, ...]:
    return (axes,) if isinstance(axes, int) else tuple(axes)


def broadcast_arrays(*arrays: Tensor) -> list[Tensor]:
    """Views of the arrays with one shape."""
    return list(mica.broadcast_tensors(arrays))


def broadcast_to(x: Tensor, /, shape: tuple[int, ...]) -> Tensor:
    """A view of `x` with that shape."""
    return mica.broadcast_to(x, shape)


def concat(arrays: Sequence[Tensor], /, *, axis: int | None = 0) -> Tensor:
    """The arrays joined along `axis`; flattened first when it is None."""
    dtype = common(*arrays)
    parts = [x.to(dtype) for x in arrays]
    return mica.cat([x.reshape(-1) for x in parts]) if axis is None else mica.cat(parts, axis)


def expand_dims(x: Tensor, /, axis: int) -> Tensor:
    """`x` with a dimension of size 1 at `axis`."""
    return mica.unsqueeze(x, axis)


def flip(x: Tensor, /, *, axis: Axes | None = None) -> Tensor:
    """The elements in reverse order along the axes, or along all."""
    return mica.flip(x, tuple(range(x.ndim)) if axis is None else _tuple(axis))


def moveaxis(x: Tensor, source: Axes, destination: Axes, /) -> Tensor:
    """`x` with dimensions moved to other places."""
    return mica.movedim(x, _tuple(source), _tuple(destination))


def permute_dims(x: Tensor, /, axes: tuple[int, ...]) -> Tensor:
    """`x` with its dimensions in another order."""
    return mica.permute(x, axes)


def repeat(x: Tensor, repeats: int | Tensor, /, *, axis: int | None = None) -> Tensor:
    """Each element as often as `repeats` says, along `axis` or of the flattened array."""
    if axis is None:
        x, axis = x.reshape(-1), 0
    counts = mica.asarray(repeats, device=x.device).to(mica.int64).reshape(-1).expand(x.shape[axis])
    ends = mica.cumsum(counts, 0)
    total = int(ends[-1]) if counts.numel() else 0
    places = mica.searchsorted(ends, mica.arange(total, device=x.device), right=True)
    return mica.index_select(x, axis, places)


def reshape(x: Tensor, /, shape: tuple[int, ...], *, copy: bool | None = None) -> Tensor:
    """`x` in another shape: a view where that can be, or if `copy` is False; a copy if True."""
    if copy:
        return x.clone().reshape(shape)
    if copy is None:
        return mica.reshape(x, shape)
    try:
        return x.view(shape)
    except RuntimeError as error:
        raise ValueError(f"A copy is needed for the shape {tuple(shape)}: {error}") from None


def roll(x: Tensor, /, shift: Axes, *, axis: Axes | None = None) -> Tensor:
    """The elements moved along the axes, or in the flattened array; what leaves comes in at the other end."""
    if axis is None:
        return mica.roll(x.reshape(-1), _tuple(shift)[0], 0).reshape(x.shape)
    axes = _tuple(axis)
    shifts = (shift,) * len(axes) if isinstance(shift, int) else tuple(shift)
    return mica.roll(x, shifts, axes)


def squeeze(x: Tensor, /, axis: Axes) -> Tensor:
    """`x` without the named dimensions, which have size 1."""
    for a in _tuple(axis):
        if not -x.ndim <= a < x.ndim:
            raise IndexError(f"Axis ({a}) is outside of an array with {x.ndim} dimensions.")
        if x.shape[a] != 1:
            raise ValueError(f"Size ({x.shape[a]}) of axis ({a}) is not 1; squeeze takes out sizes of 1.")
    return mica.squeeze(x, _tuple(axis))


def stack(arrays: Sequence[Tensor], /, *, axis: int = 0) -> Tensor:
    """The arrays, which have one shape, along a new axis."""
    dtype = common(*arrays)
    return mica.stack([x.to(dtype) for x in arrays], axis)


def tile(x: Tensor, repetitions: tuple[int, ...], /) -> Tensor:
    """`x` as often along each dimension as `repetitions` says."""
    return mica.tile(x, repetitions)


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """The arrays that `x` holds along `axis`."""
    return tuple(mica.unbind(x, axis))
