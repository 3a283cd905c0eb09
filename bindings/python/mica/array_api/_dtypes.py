"""Dtypes of the standard: promotion, casts, limits, and functions over them.

Promotion differs from the main namespace's in one thing: there a 0-d array counts less
than one with dimensions, as in torch; here all arrays count alike.
"""

from __future__ import annotations

import mica
from mica import Tensor, dtype
from mica._tensor import dtype_limits as _type_info

TYPE_CHECKING = False  # importing typing takes as long as all of mica
if TYPE_CHECKING:
    from typing import Any

    Number = bool | int | float | complex
    Operand = Tensor | Number

_KINDS: dict[str, tuple[dtype, ...]] = {
    "bool": (mica.bool,),
    "signed integer": (mica.int8, mica.int16, mica.int32, mica.int64),
    "unsigned integer": (mica.uint8, mica.uint16, mica.uint32, mica.uint64),
    "real floating": (mica.float16, mica.bfloat16, mica.float32, mica.float64),
    "complex floating": (mica.complex64, mica.complex128),
}
_KINDS["integral"] = _KINDS["signed integer"] + _KINDS["unsigned integer"]
_KINDS["numeric"] = _KINDS["integral"] + _KINDS["real floating"] + _KINDS["complex floating"]


def common(*operands: Any) -> dtype:
    """The dtype of an operation over arrays, dtypes and Python numbers."""
    dtypes = [x.dtype if isinstance(x, Tensor) else x for x in operands if isinstance(x, (Tensor, dtype))]
    numbers = [x for x in operands if not isinstance(x, (Tensor, dtype))]
    if not dtypes:
        return (
            mica.result_type(*map(mica.tensor, numbers)) if len(numbers) > 1 else mica.tensor(*numbers).dtype
        )
    result = dtypes[0]
    for other in dtypes[1:]:
        result = mica.promote_types(result, other)
    for number in numbers:
        result = mica.result_type(mica.empty((1,), dtype=result), number)
    return result


def promoted(x1: Operand, x2: Operand) -> tuple[Tensor, Tensor]:
    """Both as arrays of which an operator makes the dtype that the standard says."""
    if isinstance(x1, Tensor) and isinstance(x2, Tensor):
        if x1.dtype == x2.dtype or (x1.ndim > 0) == (x2.ndim > 0):
            return x1, x2
        wanted = mica.promote_types(x1.dtype, x2.dtype)
        return x1.to(wanted), x2.to(wanted)
    if isinstance(x1, Tensor):
        return x1, _number(x2, x1)
    if isinstance(x2, Tensor):
        return _number(x1, x2), x2
    raise TypeError(f"At least one operand must be an array; both are numbers ({x1!r}, {x2!r}).")


def _number(number: Any, array: Tensor) -> Tensor:
    """A Python number beside an array: a 0-d array of the array's dtype if that holds its kind."""
    if not isinstance(number, (bool, int, float, complex)):
        raise TypeError(f"An operand must be an array or a Python number; it is a {type(number).__name__}.")
    return mica.tensor(number, dtype=common(array, number), device=array.device)


def astype(x: Tensor, dtype: dtype, /, *, copy: bool = True, device: Any = None) -> Tensor:
    """Converts an array to a dtype.

    As `astype` of the Python array API standard.

    Args:
        x (Tensor): The array, of any shape.
        dtype (dtype): The dtype of the result.
        copy (bool): False returns `x` itself if it has the dtype. Default: True.
        device (str or device, optional): Where the result lies. Default: that of `x`.

    Returns:
        Tensor: The array in the dtype.

    Raises:
        TypeError: From complex numbers to real ones.

    Example:
        >>> xp = mica.array_api
        >>> xp.astype(mica.tensor([1.7, -1.7]), xp.int32)
        tensor([ 1, -1], dtype=mica.int32)
    """
    if x.dtype.is_complex and not dtype.is_complex:
        raise TypeError(f"A complex array ({x.dtype}) has no value in {dtype}; use real(x) or imag(x) first.")
    return x.to(device=x.device if device is None else device, dtype=dtype, copy=copy)


def can_cast(from_: dtype | Tensor, to: dtype, /) -> bool:
    """Returns whether values of one dtype keep their meaning in another, by the promotion rules.

    As `can_cast` of the Python array API standard.

    Args:
        from_ (dtype or Tensor): The dtype that values have.
        to (dtype): The dtype that they would get.

    Returns:
        bool: Whether both promote to `to`.

    Example:
        >>> xp = mica.array_api
        >>> xp.can_cast(xp.int32, xp.int64), xp.can_cast(xp.int64, xp.int32)
        (True, False)
    """
    source = from_.dtype if isinstance(from_, Tensor) else from_
    try:
        return bool(mica.promote_types(source, to) == to)
    except TypeError:
        return False


def finfo(type: dtype | Tensor, /) -> Any:
    """The limits of a floating-point dtype.

    As `finfo` of the Python array API standard.

    Args:
        type (dtype or Tensor): The dtype; of a complex one, its parts'.

    Returns:
        finfo: `bits`, `eps`, `max`, `min`, `smallest_normal`, and `dtype` as a dtype.

    Raises:
        TypeError: It is no floating-point or complex dtype.

    Example:
        >>> xp = mica.array_api
        >>> xp.finfo(xp.float32).eps
        1.1920928955078125e-07
    """
    return _Limits(_type_info.finfo(type.dtype if isinstance(type, Tensor) else type))


def iinfo(type: dtype | Tensor, /) -> Any:
    """The limits of an integer dtype.

    As `iinfo` of the Python array API standard.

    Args:
        type (dtype or Tensor): An integer dtype, or an array of one.

    Returns:
        iinfo: `bits`, `max`, `min`, and `dtype` as a dtype.

    Raises:
        TypeError: It is no integer dtype.

    Example:
        >>> xp = mica.array_api
        >>> xp.iinfo(xp.int8).max
        127
    """
    return _Limits(_type_info.iinfo(type.dtype if isinstance(type, Tensor) else type))


class _Limits:
    """What mica.finfo and mica.iinfo hold, with `dtype` as a dtype where torch has its name."""

    def __init__(self, limits: Any) -> None:
        self.__dict__.update(vars(limits))
        self.dtype: dtype = getattr(mica, limits.dtype)
        self._text = repr(limits)

    def __repr__(self) -> str:
        return self._text


def isdtype(dtype: dtype, kind: dtype | str | tuple[dtype | str, ...]) -> bool:
    """Returns whether a dtype is of a kind.

    As `isdtype` of the Python array API standard.

    Args:
        dtype (dtype): The dtype that is asked about.
        kind (dtype, str or tuple): A dtype; "bool", "signed integer", "unsigned integer", "integral",
            "real floating", "complex floating" or "numeric"; or several of them.

    Returns:
        bool: Whether it is of the kind, or of one of them.

    Raises:
        ValueError: A kind's name is unknown.

    Example:
        >>> xp = mica.array_api
        >>> xp.isdtype(xp.int8, "integral")
        True
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, each) for each in kind)
    if isinstance(kind, str):
        if kind not in _KINDS:
            raise ValueError(f"The kind ({kind}) is unknown; there are: {', '.join(_KINDS)}.")
        return dtype in _KINDS[kind]
    return dtype == kind


def result_type(*arrays_and_dtypes: Operand | dtype) -> dtype:
    """Finds the dtype of an operation over several operands.

    As `result_type` of the Python array API standard.

    Args:
        *arrays_and_dtypes (Tensor, dtype or number): The operands, at least one of them no number.

    Returns:
        dtype: The dtype that they promote to.

    Raises:
        ValueError: All are numbers.

    Example:
        >>> xp = mica.array_api
        >>> xp.result_type(xp.int8, xp.float32)
        mica.float32
    """
    if not any(isinstance(x, (Tensor, dtype)) for x in arrays_and_dtypes):
        raise ValueError("result_type needs at least one array or dtype.")
    return common(*arrays_and_dtypes)
