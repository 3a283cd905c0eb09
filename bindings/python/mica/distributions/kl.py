"""Kullback-Leibler divergences by pairs of families; the closest registered pair of classes wins."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import mica
from mica._C import Tensor
from mica.distributions import (
    _categorical as categorical,
    _composed as composed,
    _discrete as discrete,
    _kl_across as across,
    _location_scale as scales,
    _multivariate as vectors,
    _positive as positive,
)
from mica.distributions.transformed_distribution import TransformedDistribution
from mica.distributions.utils import _sum_rightmost, euler_constant

_KL_REGISTRY: dict[tuple[type, type], Callable[[Any, Any], Tensor]] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Any], Any]:
    """Decorator: registers the function that computes the divergence of two classes of distributions.

    As `torch.distributions.register_kl`. It holds for classes below these too; the nearest pair wins.

    Args:
        type_p (type): Class of the first distribution.
        type_q (type): Class of the second.

    Returns:
        callable: Decorator that returns its function.

    Raises:
        TypeError: One is no class.

    Example:
        >>> class Certain(mica.distributions.Distribution):
        ...     pass
        >>> @mica.distributions.register_kl(Certain, Certain)
        ... def divergence(p, q):
        ...     return mica.zeros(p.batch_shape)
        >>> mica.distributions.kl_divergence(Certain(), Certain())
        tensor(0.)
    """
    for given in (type_p, type_q):
        if not isinstance(given, type):
            raise TypeError(f"register_kl() takes two classes of distributions; one is ({given!r:.60}).")

    def add(function: Any) -> Any:
        _KL_REGISTRY[type_p, type_q] = function
        return function

    return add


def kl_divergence(p: Any, q: Any) -> Tensor:
    """Divergence of Kullback and Leibler: the expectation under p of `p.log_prob(x) - q.log_prob(x)`, in nats.

    As `torch.distributions.kl_divergence`.

    Args:
        p (Distribution): The distribution that expectations are under.
        q (Distribution): The one it is compared with; batches broadcast.

    Returns:
        Tensor: One number for each event of the batch; infinite where `p` has values that `q` has not.

    Raises:
        NotImplementedError: No function is registered for these two classes.

    Example:
        >>> p, q = mica.distributions.Normal(0.0, 1.0), mica.distributions.Normal(1.0, 1.0)
        >>> mica.distributions.kl_divergence(p, q)
        tensor(0.5000)
    """
    found = [
        ((type(p).__mro__.index(a), type(q).__mro__.index(b)), f)
        for (a, b), f in _KL_REGISTRY.items()
        if isinstance(p, a) and isinstance(q, b)
    ]
    if not found:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {type(p).__name__} and q type {type(q).__name__}"
        )
    nearest = min(found, key=lambda pair: pair[0])
    if min(found, key=lambda pair: pair[0][::-1]) is not nearest:
        warnings.warn(
            f"Several registered pairs fit kl_divergence({type(p).__name__}, {type(q).__name__}) as well; the one nearer to "
            "the first type is taken. Register this pair itself to choose.",
            RuntimeWarning,
            stacklevel=2,
        )
    return nearest[1](p, q)


@register_kl(scales.Normal, scales.Normal)
def _normal(p: Any, q: Any) -> Tensor:
    ratio = (p.scale / q.scale).pow(2)
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).pow(2) - 1 - ratio.log())


@register_kl(scales.Laplace, scales.Laplace)
def _laplace(p: Any, q: Any) -> Tensor:
    ratio, distance = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + distance / q.scale + ratio * mica.exp(-distance / p.scale) - 1


@register_kl(scales.Cauchy, scales.Cauchy)
def _cauchy(p: Any, q: Any) -> Tensor:
    top = ((p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)).log()
    return top - (4 * p.scale * q.scale).log()


@register_kl(scales.Uniform, scales.Uniform)
def _uniform(p: Any, q: Any) -> Tensor:
    result = ((q.high - q.low) / (p.high - p.low)).log()
    return mica.where((q.low > p.low) | (q.high < p.high), math.inf, result)


@register_kl(discrete.Bernoulli, discrete.Bernoulli)
def _bernoulli(p: Any, q: Any) -> Tensor:
    softplus = mica.nn.functional.softplus
    t1 = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    t1 = mica.where(q.probs == 0, math.inf, t1)
    t1 = mica.where(p.probs == 0, 0.0, t1)
    t2 = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    t2 = mica.where(q.probs == 1, math.inf, t2)
    return t1 + mica.where(p.probs == 1, 0.0, t2)


@register_kl(discrete.Binomial, discrete.Binomial)
def _binomial(p: Any, q: Any) -> Tensor:
    if (p.total_count < q.total_count).any():
        raise NotImplementedError(
            "KL between Binomials where q.total_count > p.total_count is not implemented"
        )
    value = p.total_count * (p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p())
    return mica.where(p.total_count > q.total_count, math.inf, value)


@register_kl(discrete.Geometric, discrete.Geometric)
def _geometric(p: Any, q: Any) -> Tensor:
    return -p.entropy() - mica.log1p(-q.probs) / p.probs - q.logits


@register_kl(discrete.Poisson, discrete.Poisson)
def _poisson(p: Any, q: Any) -> Tensor:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(discrete.ContinuousBernoulli, discrete.ContinuousBernoulli)
def _continuous_bernoulli(p: Any, q: Any) -> Tensor:
    t1 = p.mean * (p.logits - q.logits)
    return t1 + p._log_norm() + mica.log1p(-p.probs) - q._log_norm() - mica.log1p(-q.probs)


@register_kl(categorical.Categorical, categorical.Categorical)
def _categorical(p: Any, q: Any) -> Tensor:
    t = p.probs * (p.logits - q.logits)
    t = mica.where((q.probs == 0).expand_as(t), math.inf, t)
    return mica.where((p.probs == 0).expand_as(t), 0.0, t).sum(-1)


@register_kl(categorical.OneHotCategorical, categorical.OneHotCategorical)
def _one_hot(p: Any, q: Any) -> Tensor:
    return _categorical(p._categorical, q._categorical)


@register_kl(positive.Exponential, positive.Exponential)
def _exponential(p: Any, q: Any) -> Tensor:
    ratio = q.rate / p.rate
    return -ratio.log() + ratio - 1


@register_kl(positive.Gamma, positive.Gamma)
def _gamma(p: Any, q: Any) -> Tensor:
    t1 = q.concentration * (p.rate / q.rate).log()
    t2 = mica.lgamma(q.concentration) - mica.lgamma(p.concentration)
    t3 = (p.concentration - q.concentration) * mica.digamma(p.concentration)
    return t1 + t2 + t3 + (q.rate - p.rate) * (p.concentration / p.rate)


@register_kl(positive.Dirichlet, positive.Dirichlet)
def _dirichlet(p: Any, q: Any) -> Tensor:
    sum_p, sum_q = p.concentration.sum(-1), q.concentration.sum(-1)
    t1 = sum_p.lgamma() - sum_q.lgamma()
    t2 = (p.concentration.lgamma() - q.concentration.lgamma()).sum(-1)
    centred = p.concentration.digamma() - sum_p.digamma().unsqueeze(-1)
    return t1 - t2 + ((p.concentration - q.concentration) * centred).sum(-1)


@register_kl(positive.Beta, positive.Beta)
def _beta(p: Any, q: Any) -> Tensor:
    return _dirichlet(p._dirichlet, q._dirichlet)


@register_kl(composed.Gumbel, composed.Gumbel)
def _gumbel(p: Any, q: Any) -> Tensor:
    ratio = p.scale / q.scale
    shift, start = q.loc / q.scale, p.loc / q.scale
    log_gamma = mica.lgamma(1.0 + ratio)
    return (
        -ratio.log()
        - shift
        + start
        + ratio * euler_constant
        + mica.exp(shift + log_gamma - start)
        - (1 + euler_constant)
    )


@register_kl(composed.HalfNormal, composed.HalfNormal)
def _half_normal(p: Any, q: Any) -> Tensor:
    return _normal(p.base_dist, q.base_dist)


@register_kl(composed.Pareto, composed.Pareto)
def _pareto(p: Any, q: Any) -> Tensor:
    scale_ratio, alpha_ratio = p.scale / q.scale, q.alpha / p.alpha
    result = q.alpha * scale_ratio.log() - alpha_ratio.log() + alpha_ratio - 1
    return mica.where(p.scale < q.scale, math.inf, result)


@register_kl(composed.Independent, composed.Independent)
def _independent(p: Any, q: Any) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError("KL between Independents of different event dimensions is not implemented.")
    return _sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: Any, q: Any) -> Tensor:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError("KL between distributions of different transforms is not implemented.")
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(vectors.MultivariateNormal, vectors.MultivariateNormal)
def _multivariate_normal(p: Any, q: Any) -> Tensor:
    if tuple(p.event_shape) != tuple(q.event_shape):
        raise ValueError(
            "KL-divergence between two Multivariate Normals with different event shapes cannot be computed"
        )
    own, other = p._unbroadcasted_scale_tril, q._unbroadcasted_scale_tril
    half = vectors._half_log_det(other) - vectors._half_log_det(own)
    size = p.event_shape[0]
    shape = (*mica.broadcast_shapes(own.shape[:-2], other.shape[:-2]), size, size)
    solved = mica.linalg.solve_triangular(other.expand(shape), own.expand(shape), upper=False)
    trace = solved.square().sum((-2, -1))
    distance = vectors._batch_mahalanobis(other, q.loc - p.loc)
    return half + 0.5 * (trace + distance - size)


@register_kl(vectors.LowRankMultivariateNormal, vectors.LowRankMultivariateNormal)
@register_kl(vectors.MultivariateNormal, vectors.LowRankMultivariateNormal)
@register_kl(vectors.LowRankMultivariateNormal, vectors.MultivariateNormal)
def _low_rank(p: Any, q: Any) -> Tensor:
    full = vectors.MultivariateNormal
    return _multivariate_normal(full(p.loc, scale_tril=p.scale_tril), full(q.loc, scale_tril=q.scale_tril))


@register_kl(vectors.Wishart, vectors.Wishart)
def _wishart(p: Any, q: Any) -> Tensor:
    own, other, size = p._unbroadcasted_scale_tril, q._unbroadcasted_scale_tril, p.event_shape[-1]
    half = vectors._half_log_det(other) - vectors._half_log_det(own)
    trace = mica.linalg.solve_triangular(other, own, upper=False).square().sum((-2, -1))
    steps = mica.arange(size, dtype=p.df.dtype) / 2
    digammas = mica.digamma((p.df / 2).unsqueeze(-1) - steps).sum(-1)
    gammas = mica.mvlgamma(q.df / 2, size) - mica.mvlgamma(p.df / 2, size)
    return q.df * half + p.df / 2 * (trace - size) + gammas + (p.df - q.df) / 2 * digammas


for _q, _families in across.ACROSS.items():
    for _p in _families:
        register_kl(_p, _q)(across.divergence)


@register_kl(discrete.Bernoulli, discrete.Poisson)
def _bernoulli_poisson(p: Any, q: Any) -> Tensor:
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


@register_kl(discrete.Poisson, discrete.Bernoulli)
@register_kl(discrete.Poisson, discrete.Binomial)
def _poisson_bounded(p: Any, q: Any) -> Tensor:
    return mica.full_like(p.rate, math.inf)
