"""Exact values of the functions in which torch's own float64 errs by more than its last bits.

A float64 result of torch is the reference everywhere; where it does not deserve that, mpmath's
40 digits take its place. The rule stays that of agree.py: an element may be off by four times
torch's error or by two eps of the value, and both are measured from the exact value. Nothing is
excused: what Mica computes must be right where torch is wrong, element by element.

A row is the function over numbers of mpmath, of the tensors among the arguments in their order
and then of the numbers. Gradients and tangents follow from its derivative, for one tensor.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable
from typing import Any

import mpmath
import torch

DIGITS = 40
Exact = Callable[[list[int]], Any]


def _scaled(n: int) -> Callable[..., Any]:
    return lambda x: mpmath.besseli(n, x) * mpmath.exp(-abs(x))


def _logit(x: Any, eps: Any = None) -> Any:
    if eps is not None:
        x = min(max(x, mpmath.mpf(eps)), 1 - mpmath.mpf(eps))
    return mpmath.log(x / (1 - x))


def _gamma_p(a: Any, x: Any) -> Any:
    return mpmath.gammainc(a, 0, x, regularized=True)


def _gamma_q(a: Any, x: Any) -> Any:
    return mpmath.gammainc(a, x, mpmath.inf, regularized=True)


def _polynomial(of: Callable[[int, Any], Any], shifted: bool = False) -> Callable[..., Any]:
    """A family, whose degree comes after the number and is cut to an integer."""
    return lambda x, n: of(int(n), 2 * x - 1 if shifted else x)


def _chebyshev_v(n: int, x: Any) -> Any:
    return mpmath.chebyu(n, x) - mpmath.chebyu(n - 1, x)


def _chebyshev_w(n: int, x: Any) -> Any:
    return mpmath.chebyu(n, x) + mpmath.chebyu(n - 1, x)


def _hermite_he(n: int, x: Any) -> Any:
    return mpmath.hermite(n, x / mpmath.sqrt(2)) / mpmath.sqrt(2) ** n


_CHEBYSHEV = {"t": mpmath.chebyt, "u": mpmath.chebyu, "v": _chebyshev_v, "w": _chebyshev_w}

EXACT: dict[str, Callable[..., Any]] = {
    "special.bessel_j0": lambda x: mpmath.besselj(0, x),
    "special.bessel_j1": lambda x: mpmath.besselj(1, x),
    "special.bessel_y0": lambda x: mpmath.bessely(0, x),
    "special.bessel_y1": lambda x: mpmath.bessely(1, x),
    "special.airy_ai": mpmath.airyai,
    "special.ndtr": lambda x: mpmath.erfc(-x / mpmath.sqrt(2)) / 2,
    "special.modified_bessel_i0": lambda x: mpmath.besseli(0, x),
    "special.modified_bessel_i1": lambda x: mpmath.besseli(1, x),
    "special.modified_bessel_k0": lambda x: mpmath.besselk(0, x),
    "special.modified_bessel_k1": lambda x: mpmath.besselk(1, x),
    "i0": lambda x: mpmath.besseli(0, x),
    "special.erfcx": lambda x: mpmath.exp(x * x) * mpmath.erfc(x),
    "special.i0e": _scaled(0),
    "special.i1": lambda x: mpmath.besseli(1, x),
    "special.i1e": _scaled(1),
    "sinc": mpmath.sincpi,
    "special.sinc": mpmath.sincpi,
    "logit": _logit,
    "special.logit": _logit,
    "digamma": mpmath.digamma,
    "lgamma": lambda x: mpmath.re(mpmath.loggamma(x)),
    "polygamma*": lambda x, n: mpmath.psi(n, x),
    "special.polygamma*": lambda x, n: mpmath.psi(n, x),
    "igamma": _gamma_p,
    "igammac": _gamma_q,
    "special.gammainc": _gamma_p,
    "special.gammaincc": _gamma_q,
    **{f"special.chebyshev_polynomial_{k}": _polynomial(f) for k, f in _CHEBYSHEV.items()},
    **{f"special.shifted_chebyshev_polynomial_{k}": _polynomial(f, True) for k, f in _CHEBYSHEV.items()},
    "special.hermite_polynomial_h": _polynomial(mpmath.hermite),
    "special.hermite_polynomial_he": _polynomial(_hermite_he),
    "special.laguerre_polynomial_l": _polynomial(lambda n, x: mpmath.laguerre(n, 0, x)),
    "special.legendre_polynomial_p": _polynomial(mpmath.legendre),
}


def _number(value: Any) -> Any:
    return mpmath.mpmathify(value.item() if isinstance(value, torch.Tensor) else value)


def _split(args: Any, kwargs: Any) -> tuple[list[torch.Tensor], list[Any]]:
    """The tensors, broadcast, and the numbers that the function takes after them."""
    values = [*args, *(v for k, v in kwargs.items() if k in ("n", "eps", "other"))]
    tensors = [v.detach() for v in values if isinstance(v, torch.Tensor)]
    return list(torch.broadcast_tensors(*tensors)), [v for v in values if not isinstance(v, torch.Tensor)]


def exact(
    key: str,
    args: Any,
    kwargs: Any,
    along: Callable[[], list[torch.Tensor]] | None = None,
    back: bool = False,
) -> Exact | None:
    """The exact result at an index, if the function stands here and has a finite one there.

    With `along` it is the derivative, times the element of that tensor: a tangent, or, `back`,
    a cotangent.
    """
    function = next((f for name, f in EXACT.items() if fnmatch.fnmatchcase(key, name)), None)
    if function is None:
        return None

    def at(index: list[int]) -> Any:
        tensors, numbers = _split(args, kwargs)
        with mpmath.workdps(DIGITS):
            points = [_number(t[tuple(index)]) for t in tensors]
            try:
                if along is None:
                    found = function(*points, *numbers)
                else:
                    slope = mpmath.diff(lambda x: function(x, *numbers), points[0])
                    found = (mpmath.conj(slope) if back else slope) * _number(along()[0][tuple(index)])
            except (ValueError, ZeroDivisionError, mpmath.libmp.ComplexResult):
                return None  # a pole
            return found if mpmath.isfinite(found) else None

    return None if along is not None and len(_split(args, kwargs)[0]) != 1 else at
