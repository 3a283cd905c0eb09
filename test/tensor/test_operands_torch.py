"""Python's operators between a tensor and anything else, on either side, give what torch gives:
the value, its type and dtype, or the kind of the exception.

The table is operators x dtypes of the tensor x operands. Each cell runs in both libraries; what
differs must have its reason in DIFFERENT.
"""

from __future__ import annotations

import array
import datetime
import decimal
import enum
import fractions
import operator
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from both import difference, kind

import mica

OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
    "@": operator.matmul,
    "divmod": divmod,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "<<": operator.lshift,
    ">>": operator.rshift,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
IN_PLACE: dict[str, Callable[[Any, Any], Any]] = {
    "+=": operator.iadd,
    "-=": operator.isub,
    "*=": operator.imul,
    "/=": operator.itruediv,
    "//=": operator.ifloordiv,
    "%=": operator.imod,
    "**=": operator.ipow,
    "@=": operator.imatmul,
    "&=": operator.iand,
    "|=": operator.ior,
    "^=": operator.ixor,
    "<<=": operator.ilshift,
    ">>=": operator.irshift,
}
DTYPES = [
    "bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64",
    "float16", "bfloat16", "float32", "float64", "complex64", "complex128",
]  # fmt: skip
NUMPY_DTYPES = [
    "bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64",
    "float16", "float32", "float64", "complex64", "complex128",
]  # fmt: skip


class Both:
    """A foreign class with every operator, which says which one ran."""


def _named(name: str) -> Callable[[Any, Any], str]:
    return lambda self, other: f"{name} of {type(other).__name__}"


for _name in [
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "matmul",
    "and",
    "or",
    "xor",
    "lshift",
    "rshift",
    "divmod",
]:
    for _form in ("__%s__", "__r%s__"):
        setattr(Both, _form % _name, _named(_form % _name))
for _name in ["eq", "ne", "lt", "le", "gt", "ge"]:
    setattr(Both, f"__{_name}__", _named(f"__{_name}__"))


class Reluctant:
    """A foreign class whose operators all decline."""


for _name in [
    n
    for n in vars(Both)
    if n.startswith("__") and n[2:-2] in ["add", "radd", "mul", "rmul", "truediv", "rtruediv", "eq", "lt"]
]:
    setattr(Reluctant, _name, lambda self, other: NotImplemented)


class Product:
    """Knows products alone, as a unit of measure does; a quotient is asked of it as a product."""

    def __mul__(self, other: Any) -> str:
        return "product"

    __rmul__ = __mul__


class ArrayLike:
    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array([1.0, 2.0, 4.0], dtype)


class ArrayLikePrior(ArrayLike):
    __array_priority__ = 10000

    def __radd__(self, other: Any) -> str:
        return "radd"


class NoUfunc(ArrayLike):
    __array_ufunc__ = None


class Capsule:
    def __dlpack__(self, **options: Any) -> Any:
        return np.arange(3.0).__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


class Index:
    def __index__(self) -> int:
        return 2


class Floaty:
    def __float__(self) -> float:
        return 2.0


class Function:
    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> str:
        return f"asked for {len(args)}"


class Refusing:
    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return NotImplemented


class Int(int):
    pass


class Float(float):
    pass


class Colour(enum.IntEnum):
    RED = 2


class Array(np.ndarray):
    pass


def _number(name: str) -> Any:
    return np.dtype(name).type(1 if name == "bool" else 2)


# What stands beside the tensor; {name: value or, where it names the library, function of it}.
NUMPY: dict[str, Any] = {
    **{f"array {d}": np.array([1, 2, 4]).astype(d) for d in NUMPY_DTYPES},
    **{f"array 0-d {d}": np.array(_number(d)) for d in NUMPY_DTYPES},
    **{f"number {d}": _number(d) for d in NUMPY_DTYPES},
    "number longdouble": np.longdouble(2),
    "array longdouble": np.ones(3, np.longdouble),
    "array 2-d": np.arange(9.0).reshape(3, 3),
    "array empty": np.zeros(0),
    "array of other size": np.ones(2),
    "array of strings": np.array(["a", "b", "c"]),
    "array of objects": np.array([1, None, 2], object),
    "array of dates": np.ones(3, "M8[s]"),
    "array big-endian": np.ones(3, ">f4"),
    "array reversed": np.arange(3)[::-1],
    "array strided": np.arange(6)[::2],
    "array read-only": np.broadcast_to(np.ones(1), 3),
    "array subclass": np.ones(3).view(Array),
    "matrix": np.matrix([1.0, 2.0, 4.0]),
    "masked array": np.ma.masked_array([1.0, 2.0, 4.0], [0, 1, 0]),
    "string of numpy": np.str_("a"),
    "date of numpy": np.datetime64(1, "s"),
    "duration of numpy": np.timedelta64(1, "s"),
    "record array": np.zeros(3, [("a", "f4")]),
}
NUMBERS: dict[str, Any] = {
    repr(v): v
    for v in (
        True, False, 0, 1, 2, 3, -1, -2, 7, 8, 100, 127, 128, 200, 255, 256, 300, -128, -129, -300, 65535, 65536,
        2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**32, 2**40, 2**53 + 1, 2**63 - 1, -(2**63), 2**63, 2**64 - 1, 2**64,
        -(2**63) - 1, 2**1024, 0.0, -0.0, 0.5, 1.0, 1.5, 2.0, -1.5, 300.7, 1e6, 1e10, 1e39, 1e300, float("nan"),
        float("inf"), -float("inf"), 0j, 1j, 2 + 0j, 1.5 - 2j, complex("nan"), 1e300 + 0j,
    )
}  # fmt: skip
OTHERS: dict[str, Any] = {
    "None": None,
    "str": "a",
    "empty str": "",
    "bytes": b"abc",
    "bytearray": bytearray(b"abc"),
    "list": [1, 2, 4],
    "list of floats": [1.0, 2.0, 4.0],
    "empty list": [],
    "tuple": (1, 2, 4),
    "nested list": [[1, 2, 4]],
    "range": range(3),
    "memoryview": memoryview(b"abc"),
    "array.array": array.array("d", [1, 2, 4]),
    "dict": {},
    "set": {1},
    "slice": slice(1),
    "Ellipsis": ...,
    "NotImplemented": NotImplemented,
    "Fraction": fractions.Fraction(1, 2),
    "Decimal": decimal.Decimal("1.5"),
    "date": datetime.date(2020, 1, 1),
    "duration": datetime.timedelta(1),
    "object": object(),
    "type": int,
    "function": len,
    "int subclass": Int(2),
    "float subclass": Float(2),
    "IntEnum": Colour.RED,
    "operators": Both(),
    "declining operators": Reluctant(),
    "products": Product(),
    "__array__": ArrayLike(),
    "__array__ of priority": ArrayLikePrior(),
    "__array_ufunc__ None": NoUfunc(),
    "__dlpack__": Capsule(),
    "__index__": Index(),
    "__float__": Floaty(),
    "__torch_function__": Function(),
    "refusing __torch_function__": Refusing(),
    "dtype": lambda M: M.float32,
    "device": lambda M: M.device("cpu"),
    "Size": lambda M: M.Size([1, 2]),
    "storage": lambda M: M.ones(3).untyped_storage(),
    "Parameter": lambda M: M.nn.Parameter(M.ones(3)),
    "module": lambda M: M.nn.ReLU(),
}
TENSORS: dict[str, Any] = {
    **{f"tensor {d}": (lambda M, d=d: M.tensor([1, 2, 4]).to(getattr(M, d))) for d in DTYPES},
    **{f"0-d {d}": (lambda M, d=d: M.tensor(2).to(getattr(M, d))) for d in DTYPES},
}
OPERANDS = {"numpy": NUMPY, "numbers": NUMBERS, "others": OTHERS, "tensors": TENSORS}

HALVES = ("float16", "bfloat16")
Outcome = tuple[str, Any]


class Cell(NamedTuple):
    operator: str
    operand: str
    dtype: str
    side: str
    ours: Outcome
    theirs: Outcome


def _says(result: Outcome, *texts: str) -> bool:
    return result[0] == "error" and any(text in str(result[1]) for text in texts)


def _is_large(operand: str) -> bool:
    """A number that float16 or bfloat16 cannot hold or float32 has as infinity, or one that is no number."""
    return not abs(NUMBERS.get(operand, 0)) < 60000


# Why a cell may differ, and which do.
DIFFERENT: dict[str, Callable[[Cell], bool]] = {
    "torch has no kernel of the dtypes": lambda c: (
        c.theirs[0] == "error"
        and isinstance(c.theirs[1], NotImplementedError)
        or _says(c.theirs, "not implemented for", "Promotion for uint16", "ComplexHalf")
    ),
    "torch refuses to subtract from bools": lambda c: _says(c.theirs, "Subtraction, the"),
    "Mica refuses a number that the integers cannot hold, which torch wraps": lambda c: _says(
        c.ours, "without overflow", "does not fit"
    ),
    "torch takes np.bool_ for a float": lambda c: c.operand == "number bool",
    "torch drops the imaginary part of np.complex64": lambda c: c.operand == "number complex64",
    "!= of an array compares elements, as == does; in torch it is True": lambda c: (
        c.operator == "!="
        and c.theirs[0] == "value"
        and c.theirs[1] is True
        or c.operator == "!="
        and c.operand
        in ("masked array", "array empty", "array of other size", "array big-endian", "array reversed")
    ),
    "half types compute with the number in float32, torch with it in the dtype": lambda c: (
        c.dtype in HALVES
        and c.operator.rstrip("=") in ("//", "%", "**")
        and (_is_large(c.operand) or c.operand == "300.7")
    ),
    "sums and quotients of complex numbers and infinities": lambda c: (
        _is_large(c.operand)
        and (c.dtype.startswith("complex") or isinstance(NUMBERS[c.operand], complex))
        and c.operator.rstrip("=") in ("+", "-", "/", "**")
        and c.ours[0] == c.theirs[0] == "value"
    ),
    "Mica has no power of bools": lambda c: c.dtype == "bool" and c.operator in ("**", "**="),
}


def value_of(library: Any, operand: Any) -> Any:
    return operand(library) if type(operand) is type(lambda: 0) else operand


def fresh(value: Any) -> Any:
    """A copy, where an in-place operator could write the value."""
    return value.copy() if isinstance(value, (np.ndarray, list, bytearray)) else value


def outcome(run: Callable[[], Any]) -> tuple[str, Any]:
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return "value", run()
    except Exception as error:
        return "error", error


def compare(ours: tuple[str, Any], theirs: tuple[str, Any]) -> str:
    """What differs between two outcomes, or ""."""
    if ours[0] != theirs[0]:
        return f"{shown(ours)}, torch {shown(theirs)}"
    got, expected = ours[1], theirs[1]
    if ours[0] == "error":
        return "" if kind(got) == kind(expected) else f"{shown(ours)}, torch {shown(theirs)}"
    if isinstance(expected, tuple) and isinstance(got, tuple) and len(got) == len(expected):
        return "; ".join(filter(None, (compare(("value", g), ("value", e)) for g, e in zip(got, expected))))
    if type(got).__name__ != type(expected).__name__:
        return f"{shown(ours)}, torch {shown(theirs)}"
    if isinstance(expected, torch.Tensor):
        with np.errstate(all="ignore"):
            return difference(got, expected)
    if isinstance(expected, np.ndarray):
        same = got.dtype == expected.dtype and got.shape == expected.shape and repr(got) == repr(expected)
        return "" if same else f"{got!r}, torch {expected!r}"
    return "" if repr(got).replace("mica", "torch") == repr(expected) else f"{got!r}, torch {expected!r}"


def shown(result: tuple[str, Any]) -> str:
    return f"{type(result[1]).__name__} {str(result[1])[:60]!r}"


def cell(name: str, function: Any, dtype: str, operand: Any, side: str) -> tuple[Outcome, Outcome]:
    def run(library: Any) -> Any:
        tensor = library.tensor([1, 2, 3]).to(getattr(library, dtype))
        if side == "0-d left":
            tensor = tensor[2].clone()
        other = fresh(value_of(library, operand))
        return function(other, tensor) if side == "right" else function(tensor, other)

    return outcome(lambda: run(mica)), outcome(lambda: run(torch))


def unexplained(functions: Any, family: str, dtype: str, sides: tuple[str, ...]) -> list[str]:
    """Cells that differ for no reason."""
    found = []
    for name, function in functions.items():
        for operand_name, operand in OPERANDS[family].items():
            for side in sides:
                ours, theirs = cell(name, function, dtype, operand, side)
                why = compare(ours, theirs)
                if not why:
                    continue
                known = Cell(name, operand_name, dtype, side, ours, theirs)
                if not any(matches(known) for matches in DIFFERENT.values()):
                    found.append(f"{side} {name} {operand_name}: {why}")
    return found


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("family", OPERANDS)
def test_operators(family: str, dtype: str) -> None:
    found = unexplained(OPERATORS, family, dtype, ("left", "right", "0-d left"))
    assert not found, f"{len(found)} cells differ from torch:\n" + "\n".join(found[:60])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("family", OPERANDS)
def test_in_place_operators(family: str, dtype: str) -> None:
    found = unexplained(IN_PLACE, family, dtype, ("left", "right", "0-d left"))
    assert not found, f"{len(found)} cells differ from torch:\n" + "\n".join(found[:60])
