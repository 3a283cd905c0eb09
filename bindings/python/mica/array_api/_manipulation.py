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
    """Expands arrays to their common shape, as views.

    As `broadcast_arrays` of the Python array API standard.

    Args:
        *arrays (Tensor): The arrays; their shapes broadcast.

    Returns:
        list of Tensor: The views.

    Example:
        >>> xp = mica.array_api
        >>> [x.shape for x in xp.broadcast_arrays(mica.ones(3, 1), mica.ones(4))]
        [mica.Size([3, 4]), mica.Size([3, 4])]
    """
    return list(mica.broadcast_tensors(arrays))


def broadcast_to(x: Tensor, /, shape: tuple[int, ...]) -> Tensor:
    """Expands an array to a shape, as a view.

    As `broadcast_to` of the Python array API standard.

    Args:
        x (Tensor): The array, of any shape.
        shape (tuple of int): Sizes of the result.

    Returns:
        Tensor: The view.

    Raises:
        RuntimeError: The shape does not fit.

    Example:
        >>> xp = mica.array_api
        >>> xp.broadcast_to(mica.tensor([1, 2]), (2, 2))
        tensor([[1, 2],
                [1, 2]])
    """
    return mica.broadcast_to(x, shape)


def concat(arrays: Sequence[Tensor], /, *, axis: int | None = 0) -> Tensor:
    """Joins arrays along an axis.

    As `concat` of the Python array API standard.

    Args:
        arrays (sequence of Tensor): They have equal sizes along all other axes; dtypes promote.
        axis (int or None): The axis; None flattens them first. Default: 0.

    Returns:
        Tensor: The joined array.

    Example:
        >>> xp = mica.array_api
        >>> xp.concat([mica.tensor([1, 2]), mica.tensor([3])])
        tensor([1, 2, 3])
    """
    dtype = common(*arrays)
    parts = [x.to(dtype) for x in arrays]
    return mica.cat([x.reshape(-1) for x in parts]) if axis is None else mica.cat(parts, axis)


def expand_dims(x: Tensor, /, axis: int) -> Tensor:
    """Puts in an axis of size 1, as a view.

    As `expand_dims` of the Python array API standard.

    Args:
        x (Tensor): The array, of any shape.
        axis (int): Where it will be.

    Returns:
        Tensor: The view.

    Example:
        >>> xp = mica.array_api
        >>> xp.expand_dims(mica.ones(3), 0).shape
        mica.Size([1, 3])
    """
    return mica.unsqueeze(x, axis)


def flip(x: Tensor, /, *, axis: Axes | None = None) -> Tensor:
    """Reverses the order of elements.

    As `flip` of the Python array API standard.

    Args:
        x (Tensor): The array, of any shape.
        axis (int or tuple of int, optional): The axes along which it works. Default: None, all.

    Returns:
        Tensor: The array.

    Example:
        >>> xp = mica.array_api
        >>> xp.flip(mica.tensor([1, 2, 3]))
        tensor([3, 2, 1])
    """
    return mica.flip(x, tuple(range(x.ndim)) if axis is None else _tuple(axis))


def moveaxis(x: Tensor, source: Axes, destination: Axes, /) -> Tensor:
    """Moves axes to other places, as a view.

    As `moveaxis` of the Python array API standard.

    Args:
        x (Tensor): The array, of any shape.
        source (int or tuple of int): The axes that move, by their present places.
        destination (int or tuple of int): Their new places.

    Returns:
        Tensor: The view.

    Example:
        >>> xp = mica.array_api
        >>> xp.moveaxis(mica.ones(2, 3, 4), 0, -1).shape
        mica.Size([3, 4, 2])
    """
    return mica.movedim(x, _tuple(source), _tuple(destination))


def permute_dims(x: Tensor, /, axes: tuple[int, ...]) -> Tensor:
    """Brings axes into another order, as a view.

    As `permute_dims` of the Python array API standard.

    Args:
        x (Tensor): The array, of any shape.
        axes (tuple of int): The axes in their new order.

    Returns:
        Tensor: The view.

    Example:
        >>> xp = mica.array_api
        >>> xp.permute_dims(mica.ones(2, 3, 4), (2, 0, 1)).shape
        mica.Size([4, 2, 3])
    """
    return mica.permute(x, axes)


def repeat(x: Tensor, repeats: int | Tensor, /, *, axis: int | None = None) -> Tensor:
    """Repeats each element.

    As `repeat` of the Python array API standard.

    Args:
        x (Tensor): The array, of any shape.
        repeats (int or Tensor): How often, all or each.
        axis (int, optional): The axis along which it works. Default: None, the flattened array.

    Returns:
        Tensor: The array.

    Example:
        >>> xp = mica.array_api
        >>> xp.repeat(mica.tensor([1, 2]), mica.tensor([1, 3]))
        tensor([1, 2, 2, 2])
    """
    if axis is None:
        x, axis = x.reshape(-1), 0
    counts = mica.asarray(repeats, device=x.device).to(mica.int64).reshape(-1).expand(x.shape[axis])
    ends = mica.cumsum(counts, 0)
    total = int(ends[-1]) if counts.numel() else 0
    places = mica.searchsorted(ends, mica.arange(total, device=x.device), right=True)
    return mica.index_select(x, axis, places)


def reshape(x: Tensor, /, shape: tuple[int, ...], *, copy: bool | None = None) -> Tensor:
    """Returns the elements in another shape.

    As `reshape` of the Python array API standard.

    Args:
        x (Tensor): The array, of any shape.
        shape (tuple of int): The shape; one size may be -1, for what fits.
        copy (bool, optional): True copies; False raises where no view is possible. Default: None, a view
            where that is possible.

    Returns:
        Tensor: The array.

    Raises:
        ValueError: `copy` is False and a copy is needed.
        RuntimeError: The shape has another number of elements.

    Example:
        >>> xp = mica.array_api
        >>> xp.reshape(mica.arange(4), (2, 2))
        tensor([[0, 1],
                [2, 3]])
    """
    if copy:
        return x.clone().reshape(shape)
    if copy is None:
        return mica.reshape(x, shape)
    try:
        return x.view(shape)
    except RuntimeError as error:
        raise ValueError(f"A copy is needed for the shape {tuple(shape)}: {error}") from None


def roll(x: Tensor, /, shift: Axes, *, axis: Axes | None = None) -> Tensor:
    """Moves elements along axes; what leaves at one end comes in at the other.

    As `roll` of the Python array API standard.

    Args:
        x (Tensor): The array, of any shape.
        shift (int or tuple of int): How many places towards higher indices, negative towards lower; one number
            for each axis, or one for all.
        axis (int or tuple of int, optional): The axes along which it works. Default: None, the elements as one flat row, put back
            into the shape.

    Returns:
        Tensor: A new one, of the shape and dtype of `x`.

    Raises:
        RuntimeError: A tuple of shifts and the axes differ in number.
        IndexError: An axis is out of range.

    Example:
        >>> xp = mica.array_api
        >>> xp.roll(mica.tensor([1, 2, 3]), 1)
        tensor([3, 1, 2])
    """
    if axis is None:
        return mica.roll(x.reshape(-1), _tuple(shift)[0], 0).reshape(x.shape)
    axes = _tuple(axis)
    shifts = (shift,) * len(axes) if isinstance(shift, int) else tuple(shift)
    return mica.roll(x, shifts, axes)


def squeeze(x: Tensor, /, axis: Axes) -> Tensor:
    """Takes out axes of size 1, as a view.

    As `squeeze` of the Python array API standard.

    Args:
        x (Tensor): The array, of any shape.
        axis (int or tuple of int): Axes of size 1; negative ones count from the last.

    Returns:
        Tensor: The view.

    Raises:
        ValueError: An axis has another size.
        IndexError: There is no such axis.

    Example:
        >>> xp = mica.array_api
        >>> xp.squeeze(mica.ones(1, 3), 0).shape
        mica.Size([3])
    """
    for a in _tuple(axis):
        if not -x.ndim <= a < x.ndim:
            raise IndexError(f"Axis ({a}) is outside of an array with {x.ndim} dimensions.")
        if x.shape[a] != 1:
            raise ValueError(f"Size ({x.shape[a]}) of axis ({a}) is not 1; squeeze takes out sizes of 1.")
    return mica.squeeze(x, _tuple(axis))


def stack(arrays: Sequence[Tensor], /, *, axis: int = 0) -> Tensor:
    """Joins arrays of one shape along a new axis.

    As `stack` of the Python array API standard.

    Args:
        arrays (sequence of Tensor): The arrays; dtypes promote.
        axis (int): Where the new axis will be. Default: 0.

    Returns:
        Tensor: The joined array.

    Example:
        >>> xp = mica.array_api
        >>> xp.stack([mica.tensor([1, 2]), mica.tensor([3, 4])])
        tensor([[1, 2],
                [3, 4]])
    """
    dtype = common(*arrays)
    return mica.stack([x.to(dtype) for x in arrays], axis)


def tile(x: Tensor, repetitions: tuple[int, ...], /) -> Tensor:
    """Repeats an array along its axes.

    As `tile` of the Python array API standard.

    Args:
        x (Tensor): The array, of any shape.
        repetitions (tuple of int): How often along each axis.

    Returns:
        Tensor: The array.

    Example:
        >>> xp = mica.array_api
        >>> xp.tile(mica.tensor([1, 2]), (2,))
        tensor([1, 2, 1, 2])
    """
    return mica.tile(x, repetitions)


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """Splits an array into its slices along an axis, as views.

    As `unstack` of the Python array API standard.

    Args:
        x (Tensor): The array, of any shape.
        axis (int): The axis along which it works; negative ones count from the last. Default: 0.

    Returns:
        tuple of Tensor: The slices.

    Example:
        >>> xp = mica.array_api
        >>> xp.unstack(mica.tensor([[1, 2], [3, 4]]))
        (tensor([1, 2]), tensor([3, 4]))
    """
    return tuple(mica.unbind(x, axis))
