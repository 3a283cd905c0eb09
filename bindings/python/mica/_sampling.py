"""Draws of distributions that no operator makes: gamma, Dirichlet, Poisson, binomial.

Rejection samplers over whole tensors: what is rejected is drawn again. Their streams differ
from torch's, their distributions do not. Used by mica.distributions and as mica.poisson,
mica.binomial, mica._standard_gamma and mica._sample_dirichlet.
"""

from __future__ import annotations

from typing import Any

import mica
from mica._C import Tensor


def _uniform(like: Tensor, generator: Any) -> Tensor:
    """Uniform in (0, 1], so that its logarithm is finite."""
    return 1.0 - mica.rand(like.shape, dtype=like.dtype, device=like.device, generator=generator)


def _gamma_values(shape: Tensor, generator: Any) -> Tensor:
    """Marsaglia and Tsang (2000), in float64; shapes under 1 are lifted by one and scaled back."""
    small = shape < 1
    d = mica.where(small, shape + 1, shape) - 1.0 / 3.0
    c = 1.0 / (9.0 * d).sqrt()
    result = mica.zeros_like(shape)
    waiting = mica.ones_like(shape, dtype=mica.bool)
    while waiting.any():
        x = mica.randn(shape.shape, dtype=shape.dtype, device=shape.device, generator=generator)
        v = (1.0 + c * x) ** 3
        u = _uniform(shape, generator)
        log_v = v.clamp(min=1e-300).log()
        taken = waiting & (v > 0) & (u.log() < 0.5 * x * x + d - d * v + d * log_v)
        result = mica.where(taken, d * v, result)
        waiting = waiting & ~taken
    lift = (_uniform(shape, generator).log() / shape).exp()
    return mica.where(small, result * lift, result)


class _StandardGamma(mica.autograd.Function):
    """Gamma draws whose gradient with respect to the shape is the implicit one: -dF/da / density."""

    @staticmethod
    def forward(ctx: Any, shape: Tensor, generator: Any) -> Tensor:
        values = _gamma_values(shape.double(), generator)
        values = values.to(shape.dtype).clamp(min=mica.finfo(shape.dtype).tiny)
        ctx.save_for_backward(shape, values)
        return values

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        shape, values = ctx.saved_tensors
        return grad * _standard_gamma_grad(shape, values), None


def _standard_gamma_grad(self: Tensor, output: Tensor) -> Tensor:
    """d sample / d shape, by a central difference of the distribution function in float64."""
    a, x = self.double(), output.double()
    h = 1e-4 * a.clamp(max=1.0)
    slope = (mica.special.gammainc(a + h, x) - mica.special.gammainc(a - h, x)) / (2.0 * h)
    log_density = (a - 1.0) * x.log() - x - mica.lgamma(a)
    return (-slope * (-log_density).exp()).to(self.dtype)


def _standard_gamma(self: Tensor, generator: Any = None) -> Tensor:
    """Draws of the gamma distribution with these shapes and rate 1."""
    return _StandardGamma.apply(self, generator)


def _sample_dirichlet(self: Tensor, generator: Any = None) -> Tensor:
    """Draws of the Dirichlet distribution with these concentrations along the last dimension."""
    draws = _standard_gamma(self, generator)
    return draws / draws.sum(-1, keepdim=True)


def _poisson_small(rate: Tensor, generator: Any) -> Tensor:
    """Knuth's product of uniforms: as many factors as keep it above exp(-rate)."""
    count = mica.zeros_like(rate)
    log_product = _uniform(rate, generator).log()
    going = log_product > -rate
    while going.any():
        count = count + going
        log_product = log_product + _uniform(rate, generator).log()
        going = going & (log_product > -rate)
    return count


def _poisson_large(rate: Tensor, generator: Any) -> Tensor:
    """Transformed rejection with squeeze (Hörmann, 1993), for rates of at least 10."""
    b = 0.931 + 2.53 * rate.sqrt()
    a = -0.059 + 0.02483 * b
    inverse = 1.1239 + 1.1328 / (b - 3.4)
    result = mica.zeros_like(rate)
    waiting = mica.ones_like(rate, dtype=mica.bool)
    while waiting.any():
        u = mica.rand(rate.shape, dtype=rate.dtype, generator=generator) - 0.5
        v = _uniform(rate, generator)
        us = 0.5 - u.abs()
        k = ((2.0 * a / us + b) * u + rate + 0.43).floor()
        left = v.log() + inverse.log() - (a / (us * us) + b).log()
        fits = left <= -rate + k * rate.log() - mica.lgamma(k.clamp(min=0) + 1.0)
        taken = waiting & (k >= 0) & (us > 0) & fits
        result = mica.where(taken, k, result)
        waiting = waiting & ~taken
    return result


def poisson(input: Tensor, generator: Any = None) -> Tensor:
    """Draws of the Poisson distribution with these rates."""
    if not input.is_floating_point():
        raise RuntimeError(f"poisson() takes rates of a floating dtype; these are of dtype ({input.dtype}).")
    if (input < 0).any():
        raise RuntimeError("poisson() takes rates of at least 0; one of these is negative.")
    with mica.no_grad():
        rate = input.detach().double()
        low = _poisson_small(rate.clamp(max=10.0), generator)
        if (rate >= 10).any():
            low = mica.where(rate >= 10, _poisson_large(rate.clamp(min=10.0), generator), low)
        return low.to(input.dtype)


def binomial(count: Tensor, prob: Tensor, generator: Any = None) -> Tensor:
    """How many of `count` trials succeed, each with the probability `prob`.

    Splits the trials at an order statistic, which is beta distributed (Devroye, 1986, X.4.3), until
    few are left: the work grows with the logarithm of the count.
    """
    with mica.no_grad():
        n, p = mica.broadcast_tensors(count.detach().double().floor(), prob.detach().double())
        n, p, result = n.clone(), p.clone(), mica.zeros_like(n)
        while (n > 16).any():
            large = n > 16
            middle = mica.where(large, (n / 2).floor() + 1, mica.ones_like(n))
            rest = mica.where(large, n + 1 - middle, mica.ones_like(n))
            first, second = _gamma_values(middle, generator), _gamma_values(rest, generator)
            split = first / (first + second)
            below = split <= p
            result = mica.where(large & below, result + middle, result)
            n = mica.where(large, mica.where(below, n - middle, middle - 1), n)
            p = mica.where(large, mica.where(below, (p - split) / (1 - split), p / split), p).clamp(0, 1)
        for trial in range(int(n.max().item()) if n.numel() else 0):
            hit = mica.rand(n.shape, dtype=n.dtype, generator=generator) < p
            result = result + (hit & (n > trial))
        return result.to(count.dtype)
