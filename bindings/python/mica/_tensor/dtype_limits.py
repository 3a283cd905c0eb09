"""finfo and iinfo: the limits of dtypes."""

from __future__ import annotations

import math

from mica import _C
from mica._C import dtype

# name: (eps, max, tiny)
_FLOATS = {
    "float16": (2.0**-10, 65504.0, 2.0**-14),
    "bfloat16": (2.0**-7, 3.3895313892515355e38, 2.0**-126),
    "float32": (2.0**-23, 3.4028234663852886e38, 2.0**-126),
    "float64": (2.0**-52, 1.7976931348623157e308, 2.0**-1022),
    "float8_e4m3fn": (0.125, 448.0, 2.0**-6),
    "float8_e5m2": (0.25, 57344.0, 2.0**-14),
}


def _name(value: dtype) -> str:
    return repr(value).rpartition(".")[2]


def _checked(value: object, name: str) -> dtype:
    if not isinstance(value, dtype):
        raise TypeError(f"{name}() takes a dtype; it was given ({value!r}).")
    return value


class _Limits:
    """Two are equal that are of one class and dtype."""

    dtype: str

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.dtype == self.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)


class finfo(_Limits):
    """The limits of a floating-point dtype.

    As `torch.finfo`.

    Args:
        type (dtype, optional): The dtype; of a complex one, its parts'. Default: the default dtype.

    Attributes:
        bits (int): Bits of a number.
        eps (float): The distance from 1 to the next greater number.
        max (float): The greatest number.
        min (float): The least number, `-max`.
        tiny (float): The least positive number of full precision; also `smallest_normal`.
        smallest_subnormal (float): The least positive number.
        resolution (float): A power of ten near `eps`: the decimals that can be told apart.
        dtype (str): The dtype's name.

    Raises:
        TypeError: It is no floating-point or complex dtype.

    Example:
        >>> mica.finfo(mica.float32).eps
        1.1920928955078125e-07
        >>> mica.finfo(mica.float16).max
        65504.0
    """

    def __init__(self, type: dtype | None = None) -> None:
        type = _checked(_C.get_default_dtype() if type is None else type, "finfo")
        if not (type.is_floating_point or type.is_complex):
            raise TypeError(
                f"finfo() takes a floating-point or complex dtype; it was given ({type}). Use iinfo()."
            )
        kind = type.to_real()
        self.dtype = _name(kind)
        self.bits = 8 * kind.itemsize
        self.eps, self.max, self.tiny = _FLOATS[self.dtype]
        self.resolution = float(f"1e{math.ceil(math.log10(self.eps))}")
        self.min = -self.max
        self.smallest_normal = self.tiny
        self.smallest_subnormal = self.tiny * self.eps

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
            f"smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, dtype={self.dtype})"
        )


class iinfo(_Limits):
    """The limits of an integer dtype.

    As `torch.iinfo`.

    Args:
        type (dtype): An integer dtype.

    Attributes:
        bits (int): Bits of a number.
        max (int): The greatest number.
        min (int): The least number.
        dtype (str): The dtype's name.

    Raises:
        TypeError: It is no integer dtype.

    Example:
        >>> mica.iinfo(mica.int8).min, mica.iinfo(mica.uint8).max
        (-128, 255)
    """

    def __init__(self, type: dtype) -> None:
        name = _name(_checked(type, "iinfo"))
        if type.is_floating_point or type.is_complex or name == "bool":
            raise TypeError(f"iinfo() takes an integer dtype; it was given ({type}). Use finfo().")
        self.dtype = name
        self.bits = type.itemsize * 8
        self.max = 2 ** (self.bits - 1) - 1 if type.is_signed else 2**self.bits - 1
        self.min = -(2 ** (self.bits - 1)) if type.is_signed else 0

    def __repr__(self) -> str:
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"
