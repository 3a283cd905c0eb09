"""Elementwise functions of the standard, each a call of Mica's operator of that meaning.

What the standard adds is done here: 0-d arrays count in type promotion as all others do,
and where a function takes two arrays, either may be a Python number of the other's kind.
"""

from __future__ import annotations

import math

import mica
from mica import Tensor
from mica.array_api._dtypes import common, promoted

TYPE_CHECKING = False  # importing typing takes as long as all of mica
if TYPE_CHECKING:
    from collections.abc import Callable

    Number = bool | int | float | complex
    Operand = Tensor | Number


def _unary(name: str, operator: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    def function(x: Tensor, /) -> Tensor:
        return operator(x)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = operator.__doc__
    return function


def _binary(name: str, operator: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Operand, Operand], Tensor]:
    def function(x1: Operand, x2: Operand, /) -> Tensor:
        return operator(*promoted(x1, x2))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = operator.__doc__
    return function


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


abs = _unary("abs", mica.abs)
acos = _unary("acos", mica.acos)
acosh = _unary("acosh", mica.acosh)
add = _binary("add", mica.add)
asin = _unary("asin", mica.asin)
asinh = _unary("asinh", mica.asinh)
atan = _unary("atan", mica.atan)
atan2 = _binary("atan2", mica.atan2)
atanh = _unary("atanh", mica.atanh)
bitwise_and = _binary("bitwise_and", mica.bitwise_and)
bitwise_invert = _unary("bitwise_invert", mica.bitwise_not)
bitwise_left_shift = _binary("bitwise_left_shift", mica.bitwise_left_shift)
bitwise_or = _binary("bitwise_or", mica.bitwise_or)
bitwise_right_shift = _binary("bitwise_right_shift", mica.bitwise_right_shift)
bitwise_xor = _binary("bitwise_xor", mica.bitwise_xor)
ceil = _unary("ceil", mica.ceil)
conj = _unary("conj", mica.conj)
copysign = _binary("copysign", mica.copysign)
cos = _unary("cos", mica.cos)
cosh = _unary("cosh", mica.cosh)
divide = _binary("divide", mica.div)
equal = _binary("equal", mica.eq)
exp = _unary("exp", mica.exp)
expm1 = _unary("expm1", _expm1)
floor = _unary("floor", mica.floor)
floor_divide = _binary("floor_divide", _floor_divide)
greater = _binary("greater", mica.gt)
greater_equal = _binary("greater_equal", mica.ge)
hypot = _binary("hypot", mica.hypot)
imag = _unary("imag", _imag)
isfinite = _unary("isfinite", mica.isfinite)
isinf = _unary("isinf", mica.isinf)
isnan = _unary("isnan", mica.isnan)
less = _binary("less", mica.lt)
less_equal = _binary("less_equal", mica.le)
log = _unary("log", mica.log)
log10 = _unary("log10", mica.log10)
log1p = _unary("log1p", mica.log1p)
log2 = _unary("log2", mica.log2)
logaddexp = _binary("logaddexp", mica.logaddexp)
logical_and = _binary("logical_and", mica.logical_and)
logical_not = _unary("logical_not", mica.logical_not)
logical_or = _binary("logical_or", mica.logical_or)
logical_xor = _binary("logical_xor", mica.logical_xor)
maximum = _binary("maximum", mica.maximum)
minimum = _binary("minimum", mica.minimum)
multiply = _binary("multiply", mica.mul)
negative = _unary("negative", mica.neg)
nextafter = _binary("nextafter", mica.nextafter)
not_equal = _binary("not_equal", mica.ne)
positive = _unary("positive", mica.positive)
pow = _binary("pow", mica.pow)
real = _unary("real", lambda x: mica.real(x) if x.dtype.is_complex else x)
reciprocal = _unary("reciprocal", mica.reciprocal)
remainder = _binary("remainder", mica.remainder)
round = _unary("round", mica.round)
sign = _unary("sign", _sign)
signbit = _unary("signbit", mica.signbit)
sin = _unary("sin", mica.sin)
sinh = _unary("sinh", mica.sinh)
sqrt = _unary("sqrt", mica.sqrt)
square = _unary("square", mica.square)
subtract = _binary("subtract", mica.sub)
tan = _unary("tan", mica.tan)
tanh = _unary("tanh", _tanh)
trunc = _unary("trunc", mica.trunc)


def clip(x: Tensor, /, min: Operand | None = None, max: Operand | None = None) -> Tensor:
    """Each element, raised to `min` and lowered to `max`; the dtype stays that of `x`."""
    result = x
    if min is not None:
        result = mica.maximum(*promoted(result, min))
    if max is not None:
        result = mica.minimum(*promoted(result, max))
    return mica.clone(x) if result is x else result.to(x.dtype)


def where(condition: Tensor, x1: Operand, x2: Operand, /) -> Tensor:
    """Elements of `x1` where `condition` holds, of `x2` elsewhere."""
    if not isinstance(x1, Tensor) and not isinstance(x2, Tensor):
        dtype = common(x1, x2)
        x1 = mica.tensor(x1, dtype=dtype, device=condition.device)
        return mica.where(condition, x1, mica.tensor(x2, dtype=dtype, device=condition.device))
    return mica.where(condition, *promoted(x1, x2))
