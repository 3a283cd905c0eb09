"""KL(p || q) of continuous families that differ: -H(p) - E_p[log q], from a table.

Each family q gives E_p[log q] from expectations under p (of x, x^2, log x, log(1 - x), exp(-x / s),
|x - m|); each family p gives those of them that it knows. Where p has values outside the support of
q the divergence is infinite. kl.py registers every pair of ACROSS on import.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mica
from mica._C import Tensor
from mica.distributions._composed import Gumbel, Pareto
from mica.distributions._discrete import ContinuousBernoulli
from mica.distributions._location_scale import Laplace, Normal, Uniform
from mica.distributions._positive import Beta, Exponential, Gamma
from mica.distributions.utils import euler_constant


def _no_mean(p: Any, alpha: float, value: Tensor) -> Tensor:
    return mica.where(p.alpha <= alpha, math.inf, value)


def _log_of_uniform(p: Any) -> Tensor:
    def whole(x: Tensor) -> Tensor:  # the integral of log x
        return mica.special.xlogy(x, x) - x

    low, high = p.low.clamp(min=0), p.high.clamp(min=0)
    return (whole(high) - whole(low)) / (p.high - p.low)


def _log1m_of_uniform(p: Any) -> Tensor:
    return _log_of_uniform(Uniform(1 - p.high, 1 - p.low, validate_args=False))


# E[log x], E[log(1 - x)], E[exp(-x / s)], E|x - m|, for the families that know them in closed form.
_LOG: dict[type, Callable[[Any], Tensor]] = {
    Beta: lambda p: p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma(),
    Exponential: lambda p: -euler_constant - p.rate.log(),
    Gamma: lambda p: p.concentration.digamma() - p.rate.log(),
    Pareto: lambda p: p.scale.log() + p.alpha.reciprocal(),
    Uniform: _log_of_uniform,
}
_LOG1M: dict[type, Callable[[Any], Tensor]] = {Uniform: _log1m_of_uniform}
_DECAY: dict[type, Callable[[Any, Tensor], Tensor]] = {
    Exponential: lambda p, s: p.rate / (p.rate + s.reciprocal()),
    Gamma: lambda p, s: (p.rate / (p.rate + s.reciprocal())).pow(p.concentration),
    Normal: lambda p, s: (-p.loc / s + 0.5 * (p.scale / s).pow(2)).exp(),
    Uniform: lambda p, s: ((-p.low / s).exp() - (-p.high / s).exp()) * s / (p.high - p.low),
}


def _mean(p: Any) -> Tensor:
    return _no_mean(p, 1, p.mean) if isinstance(p, Pareto) else p.mean


def _variance(p: Any) -> Tensor:
    return _no_mean(p, 2, p.variance) if isinstance(p, Pareto) else p.variance


def _of(table: dict[type, Any], p: Any) -> Any:
    return next(table[c] for c in type(p).__mro__ if c in table)


def _distance(p: Any, m: Tensor) -> Tensor:
    """E|x - m| of a normal."""
    z = (p.loc - m) / p.scale
    return p.scale * math.sqrt(2 / math.pi) * (-0.5 * z * z).exp() + (p.loc - m) * mica.erf(
        z * math.sqrt(0.5)
    )


def _under_gumbel(p: Any, q: Any) -> Tensor:
    decay = (q.loc / q.scale).exp() * _of(_DECAY, p)(p, q.scale)
    return -q.scale.log() - (_mean(p) - q.loc) / q.scale - decay


def _under_beta(p: Any, q: Any) -> Tensor:
    a, b = q.concentration1, q.concentration0
    norm = (a + b).lgamma() - a.lgamma() - b.lgamma()
    return norm + (a - 1) * _of(_LOG, p)(p) + (b - 1) * _of(_LOG1M, p)(p)


# E_p[log q] by the family of q.
_EXPECTED: dict[type, Callable[[Any, Any], Tensor]] = {
    Normal: lambda p, q: (
        -0.5 * (_variance(p) + (_mean(p) - q.loc).pow(2)) / q.scale.pow(2)
        - q.scale.log()
        - 0.5 * math.log(2 * math.pi)
    ),
    Laplace: lambda p, q: -(2 * q.scale).log() - _distance(p, q.loc) / q.scale,
    Exponential: lambda p, q: q.rate.log() - q.rate * _mean(p),
    Gamma: lambda p, q: (
        q.concentration * q.rate.log()
        - q.concentration.lgamma()
        + (q.concentration - 1) * _of(_LOG, p)(p)
        - q.rate * _mean(p)
    ),
    Beta: _under_beta,
    ContinuousBernoulli: lambda p, q: _mean(p) * q.logits + mica.log1p(-q.probs) + q._log_norm(),
    Uniform: lambda p, q: -(q.high - q.low).log(),
    Pareto: lambda p, q: q.alpha.log() + q.alpha * q.scale.log() - (q.alpha + 1) * _of(_LOG, p)(p),
    Gumbel: _under_gumbel,
}
# Where the values of each family lie.
_RANGE: dict[type, Callable[[Any], tuple[Any, Any]]] = {
    Beta: lambda d: (0.0, 1.0),
    ContinuousBernoulli: lambda d: (0.0, 1.0),
    Exponential: lambda d: (0.0, math.inf),
    Gamma: lambda d: (0.0, math.inf),
    Pareto: lambda d: (d.scale, math.inf),
    Uniform: lambda d: (d.low, d.high),
    Normal: lambda d: (-math.inf, math.inf),
    Laplace: lambda d: (-math.inf, math.inf),
    Gumbel: lambda d: (-math.inf, math.inf),
}
# The pairs: q, and every p that torch has with it.
ACROSS: dict[type, tuple[type, ...]] = {
    Normal: (Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, Laplace, Pareto, Uniform),
    Laplace: (Normal,),
    Exponential: (Beta, ContinuousBernoulli, Gamma, Gumbel, Laplace, Normal, Pareto, Uniform),
    Gamma: (Beta, Exponential, Gumbel, Laplace, Normal, Pareto, Uniform),
    Beta: (Exponential, Gamma, Gumbel, Laplace, Normal, Pareto, Uniform),
    ContinuousBernoulli: (Beta, Exponential, Gamma, Gumbel, Laplace, Normal, Pareto, Uniform),
    Uniform: (Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, Laplace, Normal, Pareto),
    Pareto: (Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, Laplace, Normal, Uniform),
    Gumbel: (Exponential, Gamma, Normal, Uniform),
}


def _outside(p: Any, q: Any, like: Tensor) -> Tensor:
    """Where p has values that q never has."""
    (low, high), (least, most) = _of(_RANGE, p)(p), _of(_RANGE, q)(q)
    zero = mica.zeros_like(like)
    return (zero + low < zero + least) | (zero + high > zero + most)


def divergence(p: Any, q: Any) -> Tensor:
    """KL(p || q) of two families of ACROSS."""
    entropy = p.entropy()
    shape = mica.broadcast_shapes(p.batch_shape, q.batch_shape)
    outside = _outside(p, q, entropy.expand(shape))
    if bool(outside.all()):
        return mica.full(shape, math.inf, dtype=entropy.dtype, device=entropy.device)
    return mica.where(outside, math.inf, -entropy - _of(_EXPECTED, q)(p, q))
