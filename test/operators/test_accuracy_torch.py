"""Transcendental functions against mpmath: at most 2 ULP over all exponents.

Points have exponents drawn uniformly over the function's range, both signs where it has
them, and lie densely where a result passes through zero. A ULP is that of the exact
result in the dtype; denormal results count in the least one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest

import mica

LIMIT = 2.0
POINTS = 60
RNG = np.random.default_rng(0)


def _spread(low: float, high: float, signed: bool = True) -> np.ndarray:
    """Values with exponents from `low` to `high`."""
    v = 2.0 ** RNG.uniform(low, high, POINTS) * RNG.uniform(1, 2, POINTS)
    return np.concatenate([v, -v]) if signed else v


def _positive(low: float, high: float) -> np.ndarray:
    return _spread(low, high, signed=False)


# name: what mpmath calls it, and where it is asked.
FUNCTIONS: dict[str, tuple[Callable[[Any], Any], np.ndarray]] = {
    "exp": (mpmath.exp, _spread(-60, 9.4)),
    "exp2": (lambda x: mpmath.mpf(2) ** x, _spread(-60, 9.9)),
    "expm1": (mpmath.expm1, _spread(-60, 9)),
    "log": (mpmath.log, np.concatenate([_positive(-1020, 1020), 1 + _spread(-50, -3)])),
    "log1p": (mpmath.log1p, np.concatenate([_positive(-60, 1000), -_positive(-60, -1)])),
    "log2": (lambda x: mpmath.log(x, 2), np.concatenate([_positive(-1000, 1000), 1 + _spread(-50, -3)])),
    "log10": (mpmath.log10, np.concatenate([_positive(-1000, 1000), 1 + _spread(-50, -3)])),
    "sin": (mpmath.sin, _spread(-60, 1000)),
    "cos": (mpmath.cos, _spread(-60, 1000)),
    "tan": (mpmath.tan, _spread(-60, 1000)),
    "asin": (mpmath.asin, _spread(-60, -1)),
    "acos": (mpmath.acos, _spread(-60, -1)),
    "atan": (mpmath.atan, _spread(-60, 60)),
    "sinh": (mpmath.sinh, _spread(-60, 9)),
    "cosh": (mpmath.cosh, _spread(-60, 9)),
    "tanh": (mpmath.tanh, _spread(-60, 6)),
    "asinh": (mpmath.asinh, np.concatenate([_spread(-60, 900), _spread(-60, 100)])),
    "acosh": (mpmath.acosh, 1 + _positive(-50, 900)),
    "atanh": (mpmath.atanh, _spread(-60, -1)),
    "erf": (mpmath.erf, _spread(-60, 3)),
    "erfc": (mpmath.erfc, _spread(-60, 4.5)),
    "erfinv": (mpmath.erfinv, np.concatenate([_spread(-60, -1), 1 - _positive(-50, -2)])),
    "lgamma": (
        lambda x: mpmath.log(abs(mpmath.gamma(x))),
        np.concatenate([_positive(-60, 9), 1 + _spread(-40, -3), 2 + _spread(-40, -3), -_positive(-3, 4)]),
    ),
    "sigmoid": (lambda x: 1 / (1 + mpmath.exp(-x)), _spread(-60, 9)),
    "rsqrt": (lambda x: 1 / mpmath.sqrt(x), _positive(-1000, 1000)),
    "logit": (
        lambda x: mpmath.log(x / (1 - x)),
        np.concatenate([_positive(-900, -1), 1 - _positive(-50, -1), 0.5 + _spread(-40, -3)]),
    ),
}


def _ulps(got: float, exact: Any, dtype: type) -> float:
    info = np.finfo(dtype)
    exponent = max(int(mpmath.floor(mpmath.log(abs(exact), 2))), int(info.minexp))
    return float(abs(mpmath.mpf(float(got)) - exact) / mpmath.mpf(2) ** (exponent - info.nmant))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_within_two_ulp(name: str, dtype: type) -> None:
    reference, points = FUNCTIONS[name]
    with np.errstate(over="ignore"):
        xs = points.astype(dtype)
    xs = xs[np.isfinite(xs) & (xs != 0)]
    got = getattr(mica, name)(mica.from_numpy(xs)).numpy()
    largest = mpmath.mpf(float(np.finfo(dtype).max))
    worst, asked = (0.0, ""), 0
    with mpmath.workprec(200):
        for x, y in zip(xs, got, strict=True):
            try:
                exact = reference(mpmath.mpf(float(x)))
            except ZeroDivisionError:  # a pole, which rounding to float32 has met
                continue
            if (
                not mpmath.isfinite(exact)
                or isinstance(exact, mpmath.mpc)
                or abs(exact) > largest
                or exact == 0
            ):
                continue
            asked += 1
            error = _ulps(y, exact, dtype) if np.isfinite(y) else float("inf")
            worst = max(worst, (error, f"{name}({x!r}) = {y!r}, exactly {mpmath.nstr(exact, 20)}"))
    assert asked >= POINTS // 8  # float32 holds an eighth of the widest ranges
    assert worst[0] <= LIMIT, f"{worst[0]:.2f} ULP: {worst[1]}"
