"""Creation functions of the standard, and tril and triu, which stand among them there."""

from __future__ import annotations

import mica
from mica import Tensor, dtype
from mica.array_api._dtypes import common

TYPE_CHECKING = False  # importing typing takes as long as all of mica
if TYPE_CHECKING:
    from typing import Any

    Number = bool | int | float | complex
    Shape = int | tuple[int, ...]


def _sizes(shape: Shape) -> tuple[int, ...]:
    return tuple(shape) if isinstance(shape, (tuple, list)) else (int(shape),)


def arange(
    start: int | float,
    /,
    stop: int | float | None = None,
    step: int | float = 1,
    *,
    dtype: dtype | None = None,
    device: Any = None,
) -> Tensor:
    """Makes numbers from `start` up to `stop`, which is left out, in equal steps.

    As `arange` of the Python array API standard.

    Args:
        start (number): The first number; alone it is `stop`, and 0 the first.
        stop (number, optional): The end, not included. Default: None, see `start`.
        step (number): The distance; not 0. Default: 1.
        dtype (dtype, optional): Of the result. Default: that of the numbers.
        device (str or device, optional): Where the result lies. Default: the default device.

    Returns:
        Tensor: `(ceil((stop - start) / step),)`; empty if the step leads away.

    Example:
        >>> xp = mica.array_api
        >>> xp.arange(1, 7, 2)
        tensor([1, 3, 5])
    """
    if stop is None:
        start, stop = 0, start
    if (stop - start) * step <= 0:  # torch refuses a step that leads away
        return mica.empty((0,), dtype=dtype or common(start, stop, step), device=device)
    return mica.arange(start, stop, step, dtype=dtype, device=device)


def asarray(
    obj: Any, /, *, dtype: dtype | None = None, device: Any = None, copy: bool | None = None
) -> Tensor:
    """Makes an array of an array, a number, nested sequences of them, or a buffer.

    As `asarray` of the Python array API standard.

    Args:
        obj (Any): What it is made of.
        dtype (dtype, optional): Of the result. Default: the object's.
        device (str or device, optional): Where the result lies. Default: the object's.
        copy (bool, optional): True copies; False raises where the memory cannot be shared. Default: None,
            shared if it can be.

    Returns:
        Tensor: The array.

    Raises:
        ValueError: `copy` is False and the memory cannot be shared.

    Example:
        >>> xp = mica.array_api
        >>> xp.asarray([[1, 2], [3, 4]])
        tensor([[1, 2],
                [3, 4]])
    """
    if isinstance(obj, (list, tuple)) and copy is False:
        raise ValueError("A sequence becomes an array by copying; copy=False forbids it.")
    if isinstance(obj, (bool, int, float, complex)) and copy is False:
        raise ValueError("A number becomes an array by copying; copy=False forbids it.")
    return mica.asarray(_elements(obj), dtype=dtype, device=device, copy=copy)


def _elements(obj: Any) -> Any:
    """A buffer as an array of its elements, which mica.asarray would read as bytes; anything else itself."""
    if isinstance(obj, Tensor) or hasattr(obj, "__dlpack__") or hasattr(obj, "__array__"):
        return obj
    try:
        return mica._C._from_buffer(memoryview(obj))
    except TypeError:
        return obj


def empty(shape: Shape, *, dtype: dtype | None = None, device: Any = None) -> Tensor:
    """Makes an array with undefined values.

    As `empty` of the Python array API standard.

    Args:
        shape (int or tuple of int): Sizes of the result.
        dtype (dtype, optional): Of the result. Default: the default dtype.
        device (str or device, optional): Where the result lies. Default: the default device.

    Returns:
        Tensor: The array.

    Raises:
        RuntimeError: A size is negative.

    Example:
        >>> xp = mica.array_api
        >>> xp.empty((2, 3)).shape
        mica.Size([2, 3])
    """
    return mica.empty(_sizes(shape), dtype=dtype, device=device)


def empty_like(x: Tensor, /, *, dtype: dtype | None = None, device: Any = None) -> Tensor:
    """Makes an array of the shape of another with undefined values.

    As `empty_like` of the Python array API standard.

    Args:
        x (Tensor): The array, of any shape.
        dtype (dtype, optional): Of the result. Default: that of `x`.
        device (str or device, optional): Where the result lies. Default: that of `x`.

    Returns:
        Tensor: The array.

    Example:
        >>> xp = mica.array_api
        >>> xp.empty_like(mica.ones(2)).shape
        mica.Size([2])
    """
    return mica.empty_like(x, dtype=dtype, device=device)


def eye(
    n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: dtype | None = None, device: Any = None
) -> Tensor:
    """Makes a matrix with ones on a diagonal and zeros elsewhere.

    As `eye` of the Python array API standard.

    Args:
        n_rows (int): Number of rows.
        n_cols (int, optional): Number of columns. Default: None, `n_rows`.
        k (int): The diagonal; positive ones are above the main one. Default: 0.
        dtype (dtype, optional): Of the result. Default: the default dtype.
        device (str or device, optional): Where the result lies. Default: the default device.

    Returns:
        Tensor: `(n_rows, n_cols)`.

    Raises:
        RuntimeError: A size is negative.

    Example:
        >>> xp = mica.array_api
        >>> xp.eye(2, 3, k=1)
        tensor([[0., 1., 0.],
                [0., 0., 1.]])
    """
    result = mica.zeros((n_rows, n_rows if n_cols is None else n_cols), dtype=dtype, device=device)
    if -result.shape[0] < k < result.shape[1]:
        result.diagonal(k).fill_(1)
    return result


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """Makes an array over the memory of another library's array, by DLPack.

    As `from_dlpack` of the Python array API standard.

    Args:
        x (Any): An object with `__dlpack__`.
        device (str or device, optional): Copies to it. Default: None, that of `x`.
        copy (bool, optional): Asks for a copy (True), or for none (False). Default: None.

    Returns:
        Tensor: The array.

    Example:
        >>> xp = mica.array_api
        >>> xp.from_dlpack(mica.ones(2))
        tensor([1., 1.])
    """
    return mica.from_dlpack(x, device=device, copy=copy)


def full(shape: Shape, fill_value: Number, *, dtype: dtype | None = None, device: Any = None) -> Tensor:
    """Makes an array of one value.

    As `full` of the Python array API standard.

    Args:
        shape (int or tuple of int): Sizes of the result.
        fill_value (number): The value of every element.
        dtype (dtype, optional): Of the result. Default: the value's.
        device (str or device, optional): Where the result lies. Default: the default device.

    Returns:
        Tensor: The array.

    Raises:
        RuntimeError: A size is negative.

    Example:
        >>> xp = mica.array_api
        >>> xp.full(3, 7)
        tensor([7, 7, 7])
    """
    return mica.full(_sizes(shape), fill_value, dtype=dtype, device=device)


def full_like(x: Tensor, /, fill_value: Number, *, dtype: dtype | None = None, device: Any = None) -> Tensor:
    """Makes an array of one value in the shape of another.

    As `full_like` of the Python array API standard.

    Args:
        x (Tensor): The array, of any shape.
        fill_value (number): The value of every element.
        dtype (dtype, optional): Of the result. Default: that of `x`.
        device (str or device, optional): Where the result lies. Default: that of `x`.

    Returns:
        Tensor: The array.

    Example:
        >>> xp = mica.array_api
        >>> xp.full_like(mica.ones(2), 7)
        tensor([7., 7.])
    """
    return mica.full_like(x, fill_value, dtype=dtype, device=device)


def linspace(
    start: Number,
    stop: Number,
    /,
    num: int,
    *,
    dtype: dtype | None = None,
    device: Any = None,
    endpoint: bool = True,
) -> Tensor:
    """Makes numbers at equal distances from `start` to `stop`.

    As `linspace` of the Python array API standard.

    Args:
        start (number): The first number.
        stop (number): The last, or the end that is left out.
        num (int): How many numbers.
        dtype (dtype, optional): Of the result; integers are truncated (0, 5, 3 gives 0, 2, 5). Default: the
            default floating-point dtype, complex for complex ends.
        device (str or device, optional): Where the result lies. Default: the default device.
        endpoint (bool): Whether `stop` is the last number. Default: True.

    Returns:
        Tensor: `(num,)`.

    Raises:
        RuntimeError: `num` is negative.

    Example:
        >>> xp = mica.array_api
        >>> xp.linspace(0.0, 1.0, 5)
        tensor([0.0000, 0.2500, 0.5000, 0.7500, 1.0000])
    """
    if dtype is None:
        dtype = common(start, stop, 0.0)
    if endpoint:
        return mica.linspace(start, stop, num, dtype=dtype, device=device)
    return mica.linspace(start, stop, num + 1, dtype=dtype, device=device)[:num]


def meshgrid(*arrays: Tensor, indexing: str = "xy") -> list[Tensor]:
    """Makes coordinates of all points of a grid from coordinates along its axes.

    As `meshgrid` of the Python array API standard.

    Args:
        *arrays (Tensor): The coordinates along each axis, `(n,)`.
        indexing (str): "xy" exchanges the first two dimensions of the results; "ij" does not. Default:
            "xy".

    Returns:
        list of Tensor: For each input its coordinate at every point.

    Example:
        >>> xp = mica.array_api
        >>> xp.meshgrid(mica.arange(2), mica.arange(3))[0]
        tensor([[0, 1],
                [0, 1],
                [0, 1]])
    """
    return list(mica.meshgrid(arrays, indexing=indexing))


def ones(shape: Shape, *, dtype: dtype | None = None, device: Any = None) -> Tensor:
    """Makes an array of ones.

    As `ones` of the Python array API standard.

    Args:
        shape (int or tuple of int): Sizes of the result.
        dtype (dtype, optional): Of the result. Default: the default dtype.
        device (str or device, optional): Where the result lies. Default: the default device.

    Returns:
        Tensor: The array.

    Raises:
        RuntimeError: A size is negative.

    Example:
        >>> xp = mica.array_api
        >>> xp.ones(3)
        tensor([1., 1., 1.])
    """
    return mica.ones(_sizes(shape), dtype=dtype, device=device)


def ones_like(x: Tensor, /, *, dtype: dtype | None = None, device: Any = None) -> Tensor:
    """Makes an array of ones in the shape of another.

    As `ones_like` of the Python array API standard.

    Args:
        x (Tensor): The array, of any shape.
        dtype (dtype, optional): Of the result. Default: that of `x`.
        device (str or device, optional): Where the result lies. Default: that of `x`.

    Returns:
        Tensor: The array.

    Example:
        >>> xp = mica.array_api
        >>> xp.ones_like(mica.zeros(3))
        tensor([1., 1., 1.])
    """
    return mica.ones_like(x, dtype=dtype, device=device)


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """Keeps the lower triangle of each matrix, and sets the rest to 0.

    As `tril` of the Python array API standard.

    Args:
        x (Tensor): `(..., m, n)`.
        k (int): The last diagonal that is kept; positive ones are above the main one. Default: 0.

    Returns:
        Tensor: In the shape of `x`.

    Example:
        >>> xp = mica.array_api
        >>> xp.tril(mica.ones(2, 2))
        tensor([[1., 0.],
                [1., 1.]])
    """
    return mica.tril(x, k)


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """Keeps the upper triangle of each matrix, and sets the rest to 0.

    As `triu` of the Python array API standard.

    Args:
        x (Tensor): `(..., m, n)`.
        k (int): The first diagonal that is kept; positive ones are above the main one. Default: 0.

    Returns:
        Tensor: In the shape of `x`.

    Example:
        >>> xp = mica.array_api
        >>> xp.triu(mica.ones(2, 2))
        tensor([[1., 1.],
                [0., 1.]])
    """
    return mica.triu(x, k)


def zeros(shape: Shape, *, dtype: dtype | None = None, device: Any = None) -> Tensor:
    """Makes an array of zeros.

    As `zeros` of the Python array API standard.

    Args:
        shape (int or tuple of int): Sizes of the result.
        dtype (dtype, optional): Of the result. Default: the default dtype.
        device (str or device, optional): Where the result lies. Default: the default device.

    Returns:
        Tensor: The array.

    Raises:
        RuntimeError: A size is negative.

    Example:
        >>> xp = mica.array_api
        >>> xp.zeros(3)
        tensor([0., 0., 0.])
    """
    return mica.zeros(_sizes(shape), dtype=dtype, device=device)


def zeros_like(x: Tensor, /, *, dtype: dtype | None = None, device: Any = None) -> Tensor:
    """Makes an array of zeros in the shape of another.

    As `zeros_like` of the Python array API standard.

    Args:
        x (Tensor): The array, of any shape.
        dtype (dtype, optional): Of the result. Default: that of `x`.
        device (str or device, optional): Where the result lies. Default: that of `x`.

    Returns:
        Tensor: The array.

    Example:
        >>> xp = mica.array_api
        >>> xp.zeros_like(mica.ones(3))
        tensor([0., 0., 0.])
    """
    return mica.zeros_like(x, dtype=dtype, device=device)
