"""Special functions against mpmath: errors in units of the last place, over the whole domain.

float64 is bounded by ULPS a function; float32 results, computed in double, by 1 ULP.
Functions that oscillate are measured against their amplitude near their zeros: `scale`.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any, NamedTuple

import mpmath
import pytest

import mica

mpmath.mp.dps = 40


class Function(NamedTuple):
    exact: Callable[..., Any]
    domains: list[tuple[float, float]]
    ulps: float
    scale: Callable[[float], float] = lambda x: 0.0


def _amplitude(x: float) -> float:
    return min(1.0, abs(2 / (math.pi * x)) ** 0.5) if x else 1.0


def _airy_amplitude(x: float) -> float:
    return math.pi**-0.5 * abs(x) ** -0.25 if x < -3.3 else 0.0


def _far_amplitude(x: float) -> float:
    return _amplitude(x) if abs(x) >= 5 else 0.0


FUNCTIONS = {
    # Relative near every zero up to 5 and -3.3. Beyond, the error is one of the amplitude, as
    # Cephes, Boost and the GNU library state theirs: zeros there are known to 53 bits only.
    "airy_ai": Function(mpmath.airyai, [(-3, 3), (-30, 30), (30, 100)], 4, _airy_amplitude),
    "bessel_j0": Function(lambda x: mpmath.besselj(0, x), [(-3, 3), (3, 5), (-30, 30)], 3, _far_amplitude),
    "bessel_j1": Function(lambda x: mpmath.besselj(1, x), [(-3, 3), (3, 5), (-30, 30)], 3, _far_amplitude),
    "bessel_y0": Function(lambda x: mpmath.bessely(0, x), [(0.01, 3), (3, 5), (5, 30)], 3, _far_amplitude),
    "bessel_y1": Function(lambda x: mpmath.bessely(1, x), [(0.01, 3), (3, 5), (5, 30)], 3, _far_amplitude),
    "spherical_bessel_j0": Function(lambda x: mpmath.sin(x) / x, [(-3, 3), (-30, 30)], 2),
    "i0": Function(lambda x: mpmath.besseli(0, x), [(-3, 3), (-30, 30), (30, 700)], 4),
    "i0e": Function(lambda x: mpmath.besseli(0, x) * mpmath.exp(-abs(x)), [(-3, 3), (-30, 30)], 4),
    "i1": Function(lambda x: mpmath.besseli(1, x), [(-3, 3), (-30, 30), (30, 700)], 3),
    "i1e": Function(lambda x: mpmath.besseli(1, x) * mpmath.exp(-abs(x)), [(-3, 3), (-30, 30)], 3),
    "modified_bessel_k0": Function(lambda x: mpmath.besselk(0, x), [(0.001, 3), (3, 300)], 4),
    "modified_bessel_k1": Function(lambda x: mpmath.besselk(1, x), [(0.001, 3), (3, 300)], 4),
    "scaled_modified_bessel_k0": Function(
        lambda x: mpmath.besselk(0, x) * mpmath.exp(x), [(0.001, 3), (3, 300)], 4
    ),
    "scaled_modified_bessel_k1": Function(
        lambda x: mpmath.besselk(1, x) * mpmath.exp(x), [(0.001, 3), (3, 300)], 4
    ),
    "erfcx": Function(lambda x: mpmath.erfc(x) * mpmath.exp(x * x), [(-3, 3), (-20, 30), (30, 1e4)], 3),
    "ndtr": Function(lambda x: mpmath.erfc(-x / mpmath.sqrt(2)) / 2, [(-3, 3), (-37, 8)], 3),
    "log_ndtr": Function(
        lambda x: mpmath.log(mpmath.erfc(-x / mpmath.sqrt(2)) / 2), [(-3, 3), (-37, 8), (-1e3, -37)], 3
    ),
    "ndtri": Function(
        lambda y: mpmath.sqrt(2) * mpmath.erfinv(2 * y - 1), [(0.001, 0.999)], 4, lambda y: 0.05
    ),
    "digamma": Function(mpmath.digamma, [(0.001, 1), (1, 2), (2, 10), (10, 1e4)], 3),
    "sinc": Function(mpmath.sincpi, [(-1, 1), (-30, 30), (1e6, 1e7)], 3),
    "entr": Function(lambda x: -x * mpmath.log(x), [(0.001, 3)], 2, lambda x: abs(x - 1)),
}


def _ulps(got: float, exact: Any, scale: float, digits: int) -> float:
    """The distance in units of the last of `digits` binary digits of the value, or of the scale."""
    size = max(abs(float(exact)), scale)
    unit = math.ldexp(1.0, math.frexp(size)[1] - digits)
    return float(abs(mpmath.mpf(got) - exact)) / unit


def _worst(function: Any, spec: Function, dtype: Any, digits: int) -> tuple[float, float]:
    worst = (0.0, 0.0)
    draw = random.Random(5)
    for low, high in spec.domains:
        x = mica.tensor([draw.uniform(low, high) for _ in range(200)], dtype=dtype)
        for at, got in zip(x.tolist(), function(x).tolist()):
            exact = spec.exact(mpmath.mpf(at))
            if digits == 24 and not 1e-30 < abs(exact) < 1e30:
                continue  # out of float32's range, or denormal there
            worst = max(worst, (_ulps(got, exact, spec.scale(at), digits), at))
    return worst


@pytest.mark.parametrize("name", FUNCTIONS)
def test_float64(name: str) -> None:
    spec = FUNCTIONS[name]
    ulps, at = _worst(getattr(mica.special, name), spec, mica.float64, 53)
    assert ulps <= spec.ulps, f"{name}({at}) is off by {ulps:.1f} ULP"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_float32(name: str) -> None:
    ulps, at = _worst(getattr(mica.special, name), FUNCTIONS[name], mica.float32, 24)
    limit = {"entr": 4, "sinc": 3}.get(name, 1)  # these two are composed in float32
    assert ulps <= limit, f"{name}({at}) is off by {ulps:.1f} ULP of float32"


ZEROS = [
    ("bessel_j0", [2.404825557695773]),
    ("bessel_j1", [3.8317059702075125]),
    ("bessel_y0", [0.8935769662791675, 3.957678419314858]),
    ("bessel_y1", [2.197141326031017]),
    ("airy_ai", [-2.338107410459767]),
    ("digamma", [1.4616321449683622]),
]


@pytest.mark.parametrize(("name", "zeros"), ZEROS, ids=[name for name, _ in ZEROS])
def test_zeros_keep_their_digits(name: str, zeros: list[float]) -> None:
    xs = [z * (1 + k * 2.0**-e) for z in zeros for e in (52, 45, 30, 15) for k in (-3, -1, 0, 1, 3)]
    got = getattr(mica.special, name)(mica.tensor(xs, dtype=mica.float64)).tolist()
    for at, value in zip(xs, got):
        exact = FUNCTIONS[name].exact(mpmath.mpf(at))
        assert _ulps(value, exact, 0.0, 53) <= 3, f"{name}({at!r}) = {value!r}, exactly {float(exact)!r}"


@pytest.mark.parametrize("name", ["igamma", "igammac"])
def test_incomplete_gamma(name: str) -> None:
    draw = random.Random(5)
    a = [10 ** draw.uniform(-2, 3) for _ in range(200)]
    x = [v * 10 ** draw.uniform(-0.3, 0.3) for v in a]
    got = getattr(mica, name)(mica.tensor(a, dtype=mica.float64), mica.tensor(x, dtype=mica.float64))
    for p, q, value in zip(a, x, got.tolist()):
        bounds = (0, q) if name == "igamma" else (q, mpmath.inf)
        exact = mpmath.gammainc(mpmath.mpf(p), *bounds, regularized=True)
        if exact < 1e-12:
            continue  # relative errors grow with the exponent
        assert abs(value - exact) <= 2e-13 * abs(exact), (p, q, value, float(exact))


def test_zeta_and_polygamma() -> None:
    draw = random.Random(5)
    for _ in range(100):
        s, q = draw.uniform(1.05, 12), 10 ** draw.uniform(-1, 1.5)
        got = float(mica.special.zeta(mica.tensor(s, dtype=mica.float64), mica.tensor(q, dtype=mica.float64)))
        exact = mpmath.zeta(mpmath.mpf(s), mpmath.mpf(q))
        assert abs(got - exact) <= 2e-13 * abs(exact), (s, q)
        n = draw.randint(1, 6)
        got = float(mica.polygamma(n, mica.tensor(q, dtype=mica.float64)))
        exact = mpmath.polygamma(n, mpmath.mpf(q))
        assert abs(got - exact) <= 2e-14 * abs(exact), (n, q)


@pytest.mark.parametrize("name", ["digamma", "polygamma1", "polygamma2", "zeta3"])
def test_left_of_zero(name: str) -> None:
    """To a few units of the largest term: reflection and sums cancel there."""
    functions: dict[str, tuple[Any, Any]] = {
        "digamma": (mica.digamma, mpmath.digamma),
        "polygamma1": (lambda x: mica.polygamma(1, x), lambda x: mpmath.polygamma(1, x)),
        "polygamma2": (lambda x: mica.polygamma(2, x), lambda x: mpmath.polygamma(2, x)),
        "zeta3": (lambda x: mica.special.zeta(3.0, x), lambda x: -mpmath.polygamma(2, x) / 2),
    }
    function, exact = functions[name]
    draw = random.Random(7)
    xs = [draw.uniform(-30, 0) for _ in range(200)] + [-k + e for k in range(1, 9) for e in (1e-3, -1e-6)]
    for at, got in zip(xs, function(mica.tensor(xs, dtype=mica.float64)).tolist()):
        true, near = exact(mpmath.mpf(at)), abs(at - round(at))
        assert abs(got - true) <= 4e-15 * (abs(true) + 1 / near), (at, got, float(true))


def test_poles_and_ends() -> None:
    inf, nan = math.inf, math.nan
    ends = mica.tensor([0.0, -0.0, -1.0, -7.0, inf, -inf, nan], dtype=mica.float64)
    expected: dict[str, tuple[Any, list[float]]] = {
        "lgamma": (mica.lgamma, [inf, inf, inf, inf, inf, inf, nan]),
        "digamma": (mica.digamma, [-inf, inf, nan, nan, inf, nan, nan]),
        "polygamma1": (lambda x: mica.polygamma(1, x), [inf, inf, inf, inf, 0.0, nan, nan]),
        "zeta3": (lambda x: mica.special.zeta(3.0, x), [inf, inf, inf, inf, 0.0, inf, nan]),
    }
    for name, (function, values) in expected.items():
        for dtype in (mica.float64, mica.float32):
            got = function(ends.to(dtype)).tolist()
            assert [repr(v) for v in got] == [repr(v) for v in values], name


def _chebyshev(k: int, x: Any, value: Any, before: Any) -> Any:
    return 2 * x * value - before


# The value of degree 1, and the recurrence from degrees k and k - 1 to k + 1.
POLYNOMIALS: dict[str, tuple[Callable[[Any], Any], Callable[[int, Any, Any, Any], Any]]] = {
    "chebyshev_polynomial_t": (lambda x: x, _chebyshev),
    "chebyshev_polynomial_u": (lambda x: 2 * x, _chebyshev),
    "chebyshev_polynomial_v": (lambda x: 2 * x - 1, _chebyshev),
    "chebyshev_polynomial_w": (lambda x: 2 * x + 1, _chebyshev),
    "hermite_polynomial_h": (lambda x: 2 * x, lambda k, x, value, before: 2 * x * value - 2 * k * before),
    "hermite_polynomial_he": (lambda x: x, lambda k, x, value, before: x * value - k * before),
    "laguerre_polynomial_l": (
        lambda x: 1 - x,
        lambda k, x, value, before: ((2 * k + 1 - x) * value - k * before) / (k + 1),
    ),
    "legendre_polynomial_p": (
        lambda x: x,
        lambda k, x, value, before: ((2 * k + 1) * x * value - k * before) / (k + 1),
    ),
}


def _polynomial(name: str, n: int, x: Any) -> Any:
    """The polynomial in 40 digits."""
    first, step = POLYNOMIALS[name]
    before, value = mpmath.mpf(1), first(x)
    for k in range(1, n):
        before, value = value, step(k, x, value, before)
    return value if n else before


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_polynomials(name: str) -> None:
    for n in (0, 1, 2, 5, 12, 30):
        x = mica.linspace(-1.5, 1.5, 31, dtype=mica.float64)
        got = getattr(mica.special, name)(x, mica.full_like(x, n))
        exact = [_polynomial(name, n, mpmath.mpf(v)) for v in x.tolist()]
        scale = max(abs(e) for e in exact)
        for at, value, e in zip(x.tolist(), got.tolist(), exact):
            # The recurrence's rounding errors grow with the degree, not with the value.
            assert abs(value - e) <= 4e-15 * (n + 1) * max(abs(e), min(scale, 1)), (n, at)


def test_ends_of_the_domain() -> None:
    inf, nan = math.inf, math.nan

    def at(name: str, *values: float) -> list[float]:
        return getattr(mica.special, name)(mica.tensor(values, dtype=mica.float64)).tolist()

    assert at("modified_bessel_k0", 0.0, -0.0) == [inf, inf]
    assert at("bessel_y1", 0.0) == [-inf]
    assert at("ndtri", 0.0, 1.0, 0.5) == [-inf, inf, 0.0]
    assert at("ndtr", -inf, inf) == [0.0, 1.0]
    assert at("log_ndtr", -inf, inf) == [-inf, 0.0]
    assert at("erfcx", inf, -inf, -30.0) == [0.0, inf, inf]
    assert at("i0", inf, -inf) == [inf, inf]
    assert at("entr", 0.0, -1.0) == [0.0, -inf]
    assert all(math.isnan(v) for v in at("ndtri", -0.1, 1.1, nan))
    for name in FUNCTIONS:
        assert math.isnan(at(name, nan)[0]), name


@pytest.mark.parametrize(("dtype", "limit"), [(mica.float64, 1e-13), (mica.float32, 4e-5)])
def test_tangent_of_logcumsumexp(dtype: Any, limit: float) -> None:
    """The tangents' mean with the weights exp(x), however far the elements lie apart."""
    draw = random.Random(5)
    x = mica.tensor([draw.uniform(-60, 60) for _ in range(40)], dtype=dtype)
    v = mica.tensor([draw.uniform(-1, 1) for _ in range(40)], dtype=dtype)
    with mica.autograd.forward_ad.dual_level():
        dual = mica.autograd.forward_ad.make_dual(x, v)
        got = mica.autograd.forward_ad.unpack_dual(mica.logcumsumexp(dual, 0)).tangent.tolist()
    weights = [mpmath.exp(e) for e in x.tolist()]
    for n, value in enumerate(got, 1):
        exact = mpmath.fdot(weights[:n], v.tolist()[:n]) / mpmath.fsum(weights[:n])
        terms = mpmath.fdot(weights[:n], map(abs, v.tolist()[:n])) / mpmath.fsum(weights[:n])
        assert abs(value - exact) <= limit * terms, (n, value, float(exact))
