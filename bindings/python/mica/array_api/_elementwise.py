"""Elementwise functions of the standard, each a call of Mica's operator of that meaning.

What the standard adds is done here: 0-d arrays count in type promotion as all others do,
and where a function takes two arrays, either may be a Python number of the other's kind.
"""

from __future__ import annotations

import math
import re

import mica
from mica import Tensor
from mica.array_api._dtypes import common, promoted

TYPE_CHECKING = False  # importing typing takes as long as all of mica
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Number = bool | int | float | complex
    Operand = Tensor | Number


def _documented(function: Any, name: str, said: str, arguments: str, example: str, shown: str) -> Any:
    """The function under its name and with its docstring; `example` are lists of numbers, `shown` what they give."""
    tensors = ", ".join(f"mica.tensor({numbers})" for numbers in _LISTS.findall(example))
    shape = _SHAPES[function.__code__.co_argcount]
    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"{said}\n\nAs `{name}` of the Python array API standard, element by element.\n\nArgs:\n{arguments}\n\n"
        f"Returns:\n    Tensor: {'Bool, in' if name in _BOOL else 'In'} {shape}\n\n"
        f"Example:\n    >>> mica.array_api.{name}({tensors})\n    {shown}\n"
    )
    return function


_LISTS = re.compile(r"\[[^]]*\]")
_SHAPES = {1: "the shape of `x`.", 2: "the common shape."}
_BOOL = {
    *("equal", "greater", "greater_equal", "isfinite", "isinf", "isnan", "less", "less_equal", "not_equal"),
    *("logical_and", "logical_not", "logical_or", "logical_xor", "signbit"),
}
_TWO = """\
    x1 (Tensor or number): The first operand.
    x2 (Tensor or number): The second operand; they broadcast, and one of them is a Tensor."""


def _unary(name: str, operator: Callable[[Tensor], Tensor], *said: str) -> Callable[[Tensor], Tensor]:
    def function(x: Tensor, /) -> Tensor:
        return operator(x)

    doc, example, shown = said
    return _documented(function, name, doc, "    x (Tensor): The array, of any shape.", example, shown)


def _binary(
    name: str, operator: Callable[[Tensor, Tensor], Tensor], *said: str
) -> Callable[[Operand, Operand], Tensor]:
    def function(x1: Operand, x2: Operand, /) -> Tensor:
        return operator(*promoted(x1, x2))

    doc, example, shown = said
    return _documented(function, name, doc, _TWO, example, shown)


def _imag(x: Tensor) -> Tensor:
    """The imaginary part; zeros for a real array."""
    return mica.imag(x) if x.dtype.is_complex else mica.zeros_like(x)


def _sign(x: Tensor) -> Tensor:
    """The sign, NaN of NaN; of complex numbers, the number divided by its magnitude."""
    if x.dtype.is_complex:
        return mica.where(x == 0, mica.zeros_like(x), mica.sgn(x))
    return mica.where(x != x, x, mica.sign(x)) if x.dtype.is_floating_point else mica.sign(x)


def _floor_divide(x1: Tensor, x2: Tensor) -> Tensor:
    """The quotient rounded down; with an infinity on a side, what true division gives."""
    result = mica.floor_divide(x1, x2)
    if not result.dtype.is_floating_point:
        return result
    return mica.where(mica.isinf(x1) | mica.isinf(x2), mica.floor(mica.div(x1, x2)), result)


def _expm1(x: Tensor) -> Tensor:
    """exp(x) - 1, exact near 0."""
    if not x.dtype.is_complex:
        return mica.expm1(x)
    a, b = mica.real(x), mica.imag(x)
    half = mica.sin(b / 2)
    real = mica.where(b == 0, mica.expm1(a) + 0.0, mica.expm1(a) * mica.cos(b) - 2 * half * half)
    imag = mica.where(b == 0, b, mica.exp(a) * mica.sin(b))
    turns = mica.isinf(a) & ~mica.isfinite(b)  # the angle is lost, the length is not
    real = mica.where(turns, mica.where(a > 0, a, mica.full_like(a, -1)), real)
    imag = mica.where(turns, mica.where(a > 0, mica.full_like(a, math.nan), mica.zeros_like(a)), imag)
    return mica.complex(real, imag)


def _tanh(x: Tensor) -> Tensor:
    """The hyperbolic tangent; at infinity a zero imaginary part has the argument's sign."""
    result = mica.tanh(x)
    if not x.dtype.is_complex:
        return result
    a, b = mica.real(x), mica.imag(x)
    limit = mica.complex(mica.copysign(mica.ones_like(a), a), mica.copysign(mica.zeros_like(b), b))
    return mica.where(mica.isinf(a) & mica.isfinite(b), limit, result)


abs = _unary(
    "abs", mica.abs, "Absolute value; of complex numbers the modulus.", "[-2.0, 3.0]", "tensor([2., 3.])"
)
acos = _unary("acos", mica.acos, "Inverse cosine, in [0, pi].", "[1.0, 0.0]", "tensor([0.0000, 1.5708])")
acosh = _unary("acosh", mica.acosh, "Inverse hyperbolic cosine.", "[1.0, 2.0]", "tensor([0.0000, 1.3170])")
add = _binary("add", mica.add, "Sums.", "[1, 2], [10, 20]", "tensor([11, 22])")
asin = _unary(
    "asin", mica.asin, "Inverse sine, in [-pi / 2, pi / 2].", "[0.0, 1.0]", "tensor([0.0000, 1.5708])"
)
asinh = _unary("asinh", mica.asinh, "Inverse hyperbolic sine.", "[0.0, 1.0]", "tensor([0.0000, 0.8814])")
atan = _unary(
    "atan", mica.atan, "Inverse tangent, in [-pi / 2, pi / 2].", "[0.0, 1.0]", "tensor([0.0000, 0.7854])"
)
atan2 = _binary(
    "atan2",
    mica.atan2,
    "Angle of the point with the height `x1` and the abscissa `x2`, in [-pi, pi].",
    "[1.0, 0.0], [0.0, -1.0]",
    "tensor([1.5708, 3.1416])",
)
atanh = _unary("atanh", mica.atanh, "Inverse hyperbolic tangent.", "[0.0, 0.5]", "tensor([0.0000, 0.5493])")
bitwise_and = _binary(
    "bitwise_and",
    mica.bitwise_and,
    "Bits that are set in both; of bool the logical and.",
    "[6, 5], [3, 3]",
    "tensor([2, 1])",
)
bitwise_invert = _unary(
    "bitwise_invert",
    mica.bitwise_not,
    "Complement of the bits; of bool the logical one.",
    "[0, 5]",
    "tensor([-1, -6])",
)
bitwise_left_shift = _binary(
    "bitwise_left_shift",
    mica.bitwise_left_shift,
    "Bits of `x1` moved to the left by `x2`.",
    "[1, 3], [4, 1]",
    "tensor([16,  6])",
)
bitwise_or = _binary(
    "bitwise_or",
    mica.bitwise_or,
    "Bits that are set in either; of bool the logical or.",
    "[6, 5], [3, 3]",
    "tensor([7, 7])",
)
bitwise_right_shift = _binary(
    "bitwise_right_shift",
    mica.bitwise_right_shift,
    "Bits of `x1` moved to the right by `x2`, keeping the sign.",
    "[16, -8], [2, 1]",
    "tensor([ 4, -4])",
)
bitwise_xor = _binary(
    "bitwise_xor",
    mica.bitwise_xor,
    "Bits that are set in exactly one; of bool the logical one.",
    "[6, 5], [3, 3]",
    "tensor([5, 6])",
)
ceil = _unary(
    "ceil",
    mica.ceil,
    "The least integer that is not below each element.",
    "[1.2, -1.2]",
    "tensor([ 2., -1.])",
)
conj = _unary("conj", mica.conj_physical, "Complex conjugate.", "[1 + 2j]", "tensor([1.-2.j])")
copysign = _binary(
    "copysign",
    mica.copysign,
    "The magnitude of `x1` with the sign of `x2`.",
    "[1.0, 2.0], [-1.0, 1.0]",
    "tensor([-1.,  2.])",
)
cos = _unary("cos", mica.cos, "Cosine, of radians.", "[0.0, 1.0]", "tensor([1.0000, 0.5403])")
cosh = _unary("cosh", mica.cosh, "Hyperbolic cosine.", "[0.0, 1.0]", "tensor([1.0000, 1.5431])")
divide = _binary(
    "divide",
    mica.div,
    "Quotients, floating-point also of integers.",
    "[1, 6], [2, 3]",
    "tensor([0.5000, 2.0000])",
)
equal = _binary("equal", mica.eq, "Whether elements are equal.", "[1, 2], [1, 3]", "tensor([ True, False])")
exp = _unary("exp", mica.exp, "The power of e.", "[0.0, 1.0]", "tensor([1.0000, 2.7183])")
expm1 = _unary(
    "expm1", _expm1, "The power of e, less 1; exact near 0.", "[0.0, 1.0]", "tensor([0.0000, 1.7183])"
)
floor = _unary(
    "floor",
    mica.floor,
    "The greatest integer that is not above each element.",
    "[1.2, -1.2]",
    "tensor([ 1., -2.])",
)
floor_divide = _binary(
    "floor_divide",
    _floor_divide,
    "Quotients rounded down; with an infinity on a side, what `divide` gives.",
    "[7, -7], [2, 2]",
    "tensor([ 3, -4])",
)
greater = _binary(
    "greater",
    mica.gt,
    "Whether elements of `x1` are greater than those of `x2`.",
    "[1, 3], [2, 2]",
    "tensor([False,  True])",
)
greater_equal = _binary(
    "greater_equal",
    mica.ge,
    "Whether elements of `x1` are not less than those of `x2`.",
    "[1, 2], [2, 2]",
    "tensor([False,  True])",
)
hypot = _binary(
    "hypot",
    mica.hypot,
    "The hypotenuse `sqrt(x1^2 + x2^2)`, without overflow on the way.",
    "[3.0], [4.0]",
    "tensor([5.])",
)
imag = _unary(
    "imag",
    _imag,
    "The imaginary part, as a view: writing to it writes `x`; new zeros of a real `x`.",
    "[1 + 2j]",
    "tensor([2.])",
)
isfinite = _unary(
    "isfinite",
    mica.isfinite,
    "Whether elements are neither infinite nor NaN.",
    '[1.0, float("inf")]',
    "tensor([ True, False])",
)
isinf = _unary(
    "isinf", mica.isinf, "Whether elements are infinite.", '[1.0, float("inf")]', "tensor([False,  True])"
)
isnan = _unary(
    "isnan", mica.isnan, "Whether elements are NaN.", '[1.0, float("nan")]', "tensor([False,  True])"
)
less = _binary(
    "less",
    mica.lt,
    "Whether elements of `x1` are less than those of `x2`.",
    "[1, 3], [2, 2]",
    "tensor([ True, False])",
)
less_equal = _binary(
    "less_equal",
    mica.le,
    "Whether elements of `x1` are not greater than those of `x2`.",
    "[2, 3], [2, 2]",
    "tensor([ True, False])",
)
log = _unary("log", mica.log, "Natural logarithm.", "[1.0, 2.0]", "tensor([0.0000, 0.6931])")
log10 = _unary("log10", mica.log10, "Logarithm to base 10.", "[1.0, 100.0]", "tensor([0., 2.])")
log1p = _unary(
    "log1p",
    mica.log1p,
    "Natural logarithm of `1 + x`, exact near 0.",
    "[0.0, 1.0]",
    "tensor([0.0000, 0.6931])",
)
log2 = _unary("log2", mica.log2, "Logarithm to base 2.", "[1.0, 8.0]", "tensor([0., 3.])")
logaddexp = _binary(
    "logaddexp",
    mica.logaddexp,
    "The logarithm of `exp(x1) + exp(x2)`, without overflow.",
    "[0.0], [0.0]",
    "tensor([0.6931])",
)
logical_and = _binary(
    "logical_and",
    mica.logical_and,
    "Whether both elements are other than 0.",
    "[True, True], [True, False]",
    "tensor([ True, False])",
)
logical_not = _unary(
    "logical_not", mica.logical_not, "Whether elements are 0.", "[True, False]", "tensor([False,  True])"
)
logical_or = _binary(
    "logical_or",
    mica.logical_or,
    "Whether either element is other than 0.",
    "[True, False], [False, False]",
    "tensor([ True, False])",
)
logical_xor = _binary(
    "logical_xor",
    mica.logical_xor,
    "Whether exactly one element is other than 0.",
    "[True, True], [True, False]",
    "tensor([False,  True])",
)
maximum = _binary(
    "maximum",
    mica.maximum,
    "The greater of two elements; NaN if there is one.",
    "[1, 5], [3, 2]",
    "tensor([3, 5])",
)
minimum = _binary(
    "minimum",
    mica.minimum,
    "The less of two elements; NaN if there is one.",
    "[1, 5], [3, 2]",
    "tensor([1, 2])",
)
multiply = _binary("multiply", mica.mul, "Products.", "[1, 2], [10, 20]", "tensor([10, 40])")
negative = _unary("negative", mica.neg, "Elements with the other sign.", "[1.0, -2.0]", "tensor([-1.,  2.])")
nextafter = _binary(
    "nextafter",
    mica.nextafter,
    "The next number after `x1` on the way to `x2`.",
    "[0.0], [1.0]",
    "tensor([1.4013e-45])",
)
not_equal = _binary(
    "not_equal", mica.ne, "Whether elements differ.", "[1, 2], [1, 3]", "tensor([False,  True])"
)
positive = _unary("positive", mica.positive, "The elements.", "[1.0, -2.0]", "tensor([ 1., -2.])")
pow = _binary(
    "pow",
    mica.pow,
    "Elements of `x1` to the power of those of `x2`.",
    "[2.0, 3.0], [3.0, 2.0]",
    "tensor([8., 9.])",
)
real = _unary(
    "real",
    lambda x: mica.real(x) if x.dtype.is_complex else x,
    "The real part, as a view: writing to it writes `x`; a real `x` is returned itself.",
    "[1 + 2j]",
    "tensor([1.])",
)
reciprocal = _unary(
    "reciprocal", mica.reciprocal, "One divided by each element.", "[2.0, 4.0]", "tensor([0.5000, 0.2500])"
)
remainder = _binary(
    "remainder",
    mica.remainder,
    "What a division leaves, with the sign of `x2`.",
    "[7, -7], [3, 3]",
    "tensor([1, 2])",
)
round = _unary(
    "round",
    mica.round,
    "The nearest integer in the dtype of `x`; a half goes to the even one. Complex raises NotImplementedError.",
    "[1.4, 2.5]",
    "tensor([1., 2.])",
)
sign = _unary(
    "sign",
    _sign,
    "The sign: -1, 0 or 1, NaN of NaN; of complex numbers the number divided by its modulus.",
    "[-2.0, 0.0]",
    "tensor([-1.,  0.])",
)
signbit = _unary(
    "signbit",
    mica.signbit,
    "Whether the sign bit is set, of -0 and NaN too.",
    "[-1.0, 0.0]",
    "tensor([ True, False])",
)
sin = _unary("sin", mica.sin, "Sine, of radians.", "[0.0, 1.0]", "tensor([0.0000, 0.8415])")
sinh = _unary("sinh", mica.sinh, "Hyperbolic sine.", "[0.0, 1.0]", "tensor([0.0000, 1.1752])")
sqrt = _unary("sqrt", mica.sqrt, "Square root.", "[4.0, 9.0]", "tensor([2., 3.])")
square = _unary(
    "square", mica.square, "Products of elements with themselves.", "[2.0, 3.0]", "tensor([4., 9.])"
)
subtract = _binary("subtract", mica.sub, "Differences.", "[10, 20], [1, 2]", "tensor([ 9, 18])")
tan = _unary("tan", mica.tan, "Tangent, of radians.", "[0.0, 1.0]", "tensor([0.0000, 1.5574])")
tanh = _unary("tanh", _tanh, "Hyperbolic tangent.", "[0.0, 1.0]", "tensor([0.0000, 0.7616])")
trunc = _unary("trunc", mica.trunc, "The integer part.", "[1.7, -1.7]", "tensor([ 1., -1.])")


def clip(x: Tensor, /, min: Operand | None = None, max: Operand | None = None) -> Tensor:
    """Raises each element to `min` and lowers it to `max`; the dtype stays that of `x`.

    As `clip` of the Python array API standard.

    Args:
        x (Tensor): The array, of any shape.
        min (Tensor or number, optional): The least; broadcasts to `x`. Default: None, no bound.
        max (Tensor or number, optional): The greatest; broadcasts to `x`. Default: None, no bound.

    Returns:
        Tensor: New memory, in the common shape.

    Example:
        >>> xp = mica.array_api
        >>> xp.clip(mica.tensor([1, 5, 9]), 2, 6)
        tensor([2, 5, 6])
    """
    result = x
    if min is not None:
        result = mica.maximum(*promoted(result, min))
    if max is not None:
        result = mica.minimum(*promoted(result, max))
    return mica.clone(x) if result is x else result.to(x.dtype)


def where(condition: Tensor, x1: Operand, x2: Operand, /) -> Tensor:
    """Takes elements of `x1` where a condition holds, and of `x2` elsewhere.

    As `where` of the Python array API standard.

    Args:
        condition (Tensor): bool; the three broadcast.
        x1 (Tensor or number): What is taken where it holds.
        x2 (Tensor or number): What is taken elsewhere.

    Returns:
        Tensor: In the common shape.

    Example:
        >>> xp = mica.array_api
        >>> xp.where(mica.tensor([True, False]), mica.tensor([1, 2]), 0)
        tensor([1, 0])
    """
    if not isinstance(x1, Tensor) and not isinstance(x2, Tensor):
        dtype = common(x1, x2)
        x1 = mica.tensor(x1, dtype=dtype, device=condition.device)
        return mica.where(condition, x1, mica.tensor(x2, dtype=dtype, device=condition.device))
    return mica.where(condition, *promoted(x1, x2))
