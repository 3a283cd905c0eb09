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
    """Numbers from `start` up to `stop`, which is left out, by `step`."""
    if stop is None:
        start, stop = 0, start
    if (stop - start) * step <= 0:  # torch refuses a step that leads away
        return mica.empty((0,), dtype=dtype or common(start, stop, step), device=device)
    return mica.arange(start, stop, step, dtype=dtype, device=device)


def asarray(
    obj: Any, /, *, dtype: dtype | None = None, device: Any = None, copy: bool | None = None
) -> Tensor:
    """An array of an array, a number, nested sequences of them, or a buffer."""
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
    """An array with undefined values."""
    return mica.empty(_sizes(shape), dtype=dtype, device=device)


def empty_like(x: Tensor, /, *, dtype: dtype | None = None, device: Any = None) -> Tensor:
    """An array of the shape of `x` with undefined values."""
    return mica.empty_like(x, dtype=dtype, device=device)


def eye(
    n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: dtype | None = None, device: Any = None
) -> Tensor:
    """Ones on diagonal `k`, zeros elsewhere."""
    result = mica.zeros((n_rows, n_rows if n_cols is None else n_cols), dtype=dtype, device=device)
    if -result.shape[0] < k < result.shape[1]:
        result.diagonal(k).fill_(1)
    return result


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """An array over the memory of an object that speaks DLPack."""
    return mica.from_dlpack(x, device=device, copy=copy)


def full(shape: Shape, fill_value: Number, *, dtype: dtype | None = None, device: Any = None) -> Tensor:
    """An array of one value."""
    return mica.full(_sizes(shape), fill_value, dtype=dtype, device=device)


def full_like(x: Tensor, /, fill_value: Number, *, dtype: dtype | None = None, device: Any = None) -> Tensor:
    """An array of the shape of `x` of one value."""
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
    """`num` numbers at equal distances from `start` to `stop`, which is the last if `endpoint`."""
    if dtype is None:
        dtype = common(start, stop, 0.0)
    if endpoint:
        return mica.linspace(start, stop, num, dtype=dtype, device=device)
    return mica.linspace(start, stop, num + 1, dtype=dtype, device=device)[:num]


def meshgrid(*arrays: Tensor, indexing: str = "xy") -> list[Tensor]:
    """Coordinates of a grid, of arrays with one dimension each."""
    return list(mica.meshgrid(arrays, indexing=indexing))


def ones(shape: Shape, *, dtype: dtype | None = None, device: Any = None) -> Tensor:
    """An array of ones."""
    return mica.ones(_sizes(shape), dtype=dtype, device=device)


def ones_like(x: Tensor, /, *, dtype: dtype | None = None, device: Any = None) -> Tensor:
    """An array of the shape of `x` of ones."""
    return mica.ones_like(x, dtype=dtype, device=device)


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The lower triangle, up to diagonal `k`, of a matrix or a stack of them."""
    return mica.tril(x, k)


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The upper triangle, from diagonal `k` on, of a matrix or a stack of them."""
    return mica.triu(x, k)


def zeros(shape: Shape, *, dtype: dtype | None = None, device: Any = None) -> Tensor:
    """An array of zeros."""
    return mica.zeros(_sizes(shape), dtype=dtype, device=device)


def zeros_like(x: Tensor, /, *, dtype: dtype | None = None, device: Any = None) -> Tensor:
    """An array of the shape of `x` of zeros."""
    return mica.zeros_like(x, dtype=dtype, device=device)
