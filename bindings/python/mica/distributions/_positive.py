"""Families on the positive half line and the unit interval: gamma, beta and their kin."""

from __future__ import annotations

import math
from typing import Any

import mica
from mica._C import Tensor
from mica.distributions import constraints
from mica.distributions._location_scale import _Pair
from mica.distributions.distribution import ExponentialFamily, Size
from mica.distributions.utils import broadcast_all


def _tiny(t: Tensor) -> float:
    return float(mica.finfo(t.dtype).tiny)


class Exponential(ExponentialFamily):
    """Waiting times of a steady rate: density `rate * exp(-rate * x)` for `x >= 0`.

    As `torch.distributions.Exponential`. It has `rsample`, `cdf`, `icdf` and `entropy`.

    Args:
        rate (Tensor or float): Events per unit, above 0: 1 / mean. Its shape is the batch.
        validate_args (bool, optional): Check parameters and the values of `log_prob`. Default: True, or what
            `Distribution.set_default_validate_args` says.

    Raises:
        ValueError: A parameter is outside of its range, unless `validate_args` is False.

    Example:
        >>> d = mica.distributions.Exponential(2.0)
        >>> d.mean, d.log_prob(mica.tensor(0.0))
        (tensor(0.5000), tensor(0.6931))
    """

    arg_constraints = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.size() if isinstance(rate, Tensor) else (), validate_args=validate_args)

    mean = stddev = property(lambda self: self.rate.reciprocal())  # type: ignore[assignment]
    mode = property(lambda self: mica.zeros_like(self.rate))  # type: ignore[assignment]
    variance = property(lambda self: self.rate.pow(-2))  # type: ignore[assignment]

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.rate.new_empty(self._extended_shape(sample_shape)).exponential_() / self.rate

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return self.rate.log() - self.rate * value

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return 1 - mica.exp(-self.rate * value)

    def icdf(self, value: Tensor) -> Tensor:
        return -mica.log1p(-value) / self.rate

    def entropy(self) -> Tensor:
        return 1.0 - mica.log(self.rate)


class Gamma(_Pair, ExponentialFamily):
    """The gamma distribution: density proportional to `x ** (concentration - 1) * exp(-rate * x)` for `x > 0`.

    As `torch.distributions.Gamma`. It has `rsample`, `cdf` and `entropy`.

    Args:
        concentration (Tensor or float): Shape of the density, above 0.
        rate (Tensor or float): 1 / scale, above 0. The two broadcast to the batch.
        validate_args (bool, optional): Check parameters and the values of `log_prob`. Default: True, or what
            `Distribution.set_default_validate_args` says.

    Raises:
        ValueError: A parameter is outside of its range, unless `validate_args` is False.

    Example:
        >>> d = mica.distributions.Gamma(3.0, 2.0)
        >>> d.mean, d.variance, d.log_prob(mica.tensor(1.0))
        (tensor(1.5000), tensor(0.7500), tensor(-0.6137))
    """

    _names = ("concentration", "rate")
    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    concentration: Tensor
    rate: Tensor

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        super().__init__(concentration, rate, validate_args)

    mean = property(lambda self: self.concentration / self.rate)  # type: ignore[assignment]
    mode = property(lambda self: ((self.concentration - 1) / self.rate).clamp(min=0))  # type: ignore[assignment]
    variance = property(lambda self: self.concentration / self.rate.pow(2))  # type: ignore[assignment]

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        value = mica._standard_gamma(self.concentration.expand(shape)) / self.rate.expand(shape)
        value.detach().clamp_(min=_tiny(value))
        return value

    def log_prob(self, value: Tensor) -> Tensor:
        value = mica.as_tensor(value, dtype=self.rate.dtype, device=self.rate.device)
        if self._validate_args:
            self._validate_sample(value)
        a, b = self.concentration, self.rate
        return mica.xlogy(a, b) + mica.xlogy(a - 1, value) - b * value - mica.lgamma(a)

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return mica.special.gammainc(self.concentration, self.rate * value)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a - mica.log(self.rate) + mica.lgamma(a) + (1.0 - a) * mica.digamma(a)


class Chi2(Gamma):
    """The chi-squared distribution, of the sum of `df` squared standard normals: `Gamma(df / 2, 1 / 2)`.

    As `torch.distributions.Chi2`. It has `rsample`, `cdf` and `entropy`.

    Args:
        df (Tensor or float): Degrees of freedom, above 0. Its shape is the batch.
        validate_args (bool, optional): Check parameters and the values of `log_prob`. Default: True, or what
            `Distribution.set_default_validate_args` says.

    Raises:
        ValueError: A parameter is outside of its range, unless `validate_args` is False.

    Example:
        >>> d = mica.distributions.Chi2(3.0)
        >>> d.mean, d.variance
        (tensor(3.), tensor(6.))
    """

    arg_constraints = {"df": constraints.positive}
    _own_dims = {"concentration": 0, "rate": 0}

    def __init__(self, df: Any, validate_args: bool | None = None) -> None:
        super().__init__(0.5 * df, 0.5, validate_args)

    df = property(lambda self: self.concentration * 2)


class Dirichlet(ExponentialFamily):
    """Vectors of probabilities that sum to 1: density proportional to `prod(x ** (concentration - 1))`.

    As `torch.distributions.Dirichlet`. It has `rsample` and `entropy`.

    Args:
        concentration (Tensor): `batch_shape + (K)`, above 0, with events of `K` elements.
        validate_args (bool, optional): Check parameters and the values of `log_prob`. Default: True, or what
            `Distribution.set_default_validate_args` says.

    Raises:
        ValueError: `concentration` has no dimension, or an element that is not positive.

    Example:
        >>> d = mica.distributions.Dirichlet(mica.tensor([1.0, 2.0, 1.0]))
        >>> d.mean, d.log_prob(mica.tensor([0.2, 0.5, 0.3]))
        (tensor([0.2500, 0.5000, 0.2500]), tensor(1.0986))
    """

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True
    _own_dims = {"concentration": 1}

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args)

    mean = property(lambda self: self.concentration / self.concentration.sum(-1, True))  # type: ignore[assignment]

    @property
    def mode(self) -> Tensor:
        excess = (self.concentration - 1).clamp(min=0.0)
        mode = excess / excess.sum(-1, True)
        corners = (self.concentration < 1).all(-1, True)
        corner = mica.nn.functional.one_hot(mode.argmax(-1), self.concentration.shape[-1]).to(mode)
        return mica.where(corners, corner, mode)

    @property
    def variance(self) -> Tensor:
        total = self.concentration.sum(-1, True)
        return self.concentration * (total - self.concentration) / (total.pow(2) * (total + 1))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return mica._sample_dirichlet(self.concentration.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        a = self.concentration
        return mica.xlogy(a - 1.0, value).sum(-1) + mica.lgamma(a.sum(-1)) - mica.lgamma(a).sum(-1)

    def entropy(self) -> Tensor:
        a, k = self.concentration, self.concentration.size(-1)
        a0 = a.sum(-1)
        rest = (k - a0) * mica.digamma(a0) + ((a - 1.0) * mica.digamma(a)).sum(-1)
        return mica.lgamma(a).sum(-1) - mica.lgamma(a0) - rest


class Beta(ExponentialFamily):
    """Numbers in [0, 1]: density proportional to `x ** (concentration1 - 1) * (1 - x) ** (concentration0 - 1)`.

    As `torch.distributions.Beta`. It has `rsample` and `entropy`.

    Args:
        concentration1 (Tensor or float): Weight of 1, above 0; also called alpha.
        concentration0 (Tensor or float): Weight of 0, above 0; also called beta. The two broadcast to the
            batch.
        validate_args (bool, optional): Check parameters and the values of `log_prob`. Default: True, or what
            `Distribution.set_default_validate_args` says.

    Raises:
        ValueError: A parameter is outside of its range, unless `validate_args` is False.

    Example:
        >>> d = mica.distributions.Beta(2.0, 1.0)
        >>> d.mean, d.log_prob(mica.tensor(0.5))
        (tensor(0.6667), tensor(0.))
    """

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True
    _own_dims = {"_dirichlet": 0}

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        one, zero = broadcast_all(concentration1, concentration0)
        self._dirichlet = Dirichlet(mica.stack([one, zero], -1), validate_args=validate_args)
        super().__init__(self._dirichlet._batch_shape, validate_args=validate_args)

    concentration1 = property(lambda self: self._dirichlet.concentration[..., 0])
    concentration0 = property(lambda self: self._dirichlet.concentration[..., 1])
    mean = property(lambda self: self.concentration1 / (self.concentration1 + self.concentration0))  # type: ignore[assignment]
    mode = property(lambda self: self._dirichlet.mode[..., 0])  # type: ignore[assignment]

    @property
    def variance(self) -> Tensor:
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total.pow(2) * (total + 1))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self._dirichlet.rsample(sample_shape).select(-1, 0)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return self._dirichlet.log_prob(mica.stack([value, 1.0 - value], -1))

    def entropy(self) -> Tensor:
        return self._dirichlet.entropy()


class FisherSnedecor(_Pair):
    """The F-distribution: that of `(chi2 of df1 / df1) / (chi2 of df2 / df2)`.

    As `torch.distributions.FisherSnedecor`. It has `rsample`. The mean is nan for `df2` up to 2, the variance
    up to 4.

    Args:
        df1 (Tensor or float): Degrees of freedom of the numerator, above 0.
        df2 (Tensor or float): Degrees of freedom of the denominator, above 0. The two broadcast to the batch.
        validate_args (bool, optional): Check parameters and the values of `log_prob`. Default: True, or what
            `Distribution.set_default_validate_args` says.

    Raises:
        ValueError: A parameter is outside of its range, unless `validate_args` is False.

    Example:
        >>> d = mica.distributions.FisherSnedecor(2.0, 4.0)
        >>> d.mean, d.log_prob(mica.tensor(1.0))
        (tensor(2.), tensor(-1.2164))
    """

    _names = ("df1", "df2")
    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True
    df1: Tensor
    df2: Tensor

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None) -> None:
        super().__init__(df1, df2, validate_args)

    @property
    def mean(self) -> Tensor:
        return mica.where(self.df2 > 2, self.df2 / (self.df2 - 2), math.nan)

    @property
    def mode(self) -> Tensor:
        mode = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return mica.where(self.df1 > 2, mode, math.nan)

    @property
    def variance(self) -> Tensor:
        d2 = mica.where(self.df2 > 4, self.df2, math.nan)
        return 2 * d2.pow(2) * (self.df1 + d2 - 2) / (self.df1 * (d2 - 2).pow(2) * (d2 - 4))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = Size(sample_shape)
        x1 = Gamma(self.df1 * 0.5, self.df1).rsample(shape).view(self._extended_shape(shape))
        x2 = Gamma(self.df2 * 0.5, self.df2).rsample(shape).view(self._extended_shape(shape))
        x2 = x2.clamp(min=_tiny(x2))
        return (x1 / x2).clamp(min=_tiny(x1))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        a, b = self.df1 * 0.5, self.df2 * 0.5
        ratio = self.df1 / self.df2
        constant = (a + b).lgamma() - a.lgamma() - b.lgamma()
        return constant + a * ratio.log() + (a - 1) * value.log() - (a + b) * mica.log1p(ratio * value)
