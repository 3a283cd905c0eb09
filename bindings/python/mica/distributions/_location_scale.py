"""Families of a location and a scale: Normal, Laplace, Cauchy, StudentT and their kin, Uniform."""

from __future__ import annotations

import math
from typing import Any

import mica
from mica._C import Tensor
from mica.distributions import constraints
from mica.distributions.distribution import Distribution, ExponentialFamily, Size
from mica.distributions.utils import broadcast_all


class _Pair(Distribution):
    """Two broadcast parameters, the first two of the constructor."""

    _names = ("loc", "scale")

    def __init__(self, first: Any, second: Any, validate_args: bool | None = None) -> None:
        a, b = broadcast_all(first, second)
        self.__dict__[self._names[0]], self.__dict__[self._names[1]] = a, b
        numbers = not isinstance(first, Tensor) and not isinstance(second, Tensor)
        super().__init__(Size() if numbers else a.size(), validate_args=validate_args)


class Normal(_Pair, ExponentialFamily):
    """The normal distribution: density `exp(-((x - loc) / scale) ** 2 / 2) / (scale * sqrt(2 * pi))`.

    As `torch.distributions.Normal`. It has `rsample`, `cdf`, `icdf` and `entropy`.

    Args:
        loc (Tensor or float): Mean of the distribution.
        scale (Tensor or float): Standard deviation, above 0. The two broadcast to the batch.
        validate_args (bool, optional): Check parameters and the values of `log_prob`. Default: True, or what
            `Distribution.set_default_validate_args` says.

    Raises:
        ValueError: A parameter is outside of its range, unless `validate_args` is False.

    Example:
        >>> d = mica.distributions.Normal(0.0, 2.0)
        >>> d.log_prob(mica.tensor([0.0, 2.0]))
        tensor([-1.6121, -2.1121])
        >>> d.cdf(mica.tensor(0.0)), d.variance
        (tensor(0.5000), tensor(4.))
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    loc: Tensor
    scale: Tensor

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(loc, scale, validate_args)

    mean = mode = property(lambda self: self.loc)  # type: ignore[assignment]
    stddev = property(lambda self: self.scale)  # type: ignore[assignment]
    variance = property(lambda self: self.stddev.pow(2))  # type: ignore[assignment]

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with mica.no_grad():
            return mica.normal(self.loc.expand(shape), self.scale.expand(shape))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.loc + self.loc.new_empty(shape).normal_() * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        var = self.scale**2
        return -((value - self.loc) ** 2) / (2 * var) - self.scale.log() - math.log(math.sqrt(2 * math.pi))

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return 0.5 * (1 + mica.erf((value - self.loc) * self.scale.reciprocal() / math.sqrt(2)))

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * mica.erfinv(2 * value - 1) * math.sqrt(2)

    def entropy(self) -> Tensor:
        return 0.5 + 0.5 * math.log(2 * math.pi) + mica.log(self.scale)


class Laplace(_Pair):
    """The Laplace or double exponential distribution: density `exp(-abs(x - loc) / scale) / (2 * scale)`.

    As `torch.distributions.Laplace`. It has `rsample`, `cdf`, `icdf` and `entropy`.

    Args:
        loc (Tensor or float): Mean of the distribution.
        scale (Tensor or float): Mean distance from it, above 0. The two broadcast to the batch.
        validate_args (bool, optional): Check parameters and the values of `log_prob`. Default: True, or what
            `Distribution.set_default_validate_args` says.

    Raises:
        ValueError: A parameter is outside of its range, unless `validate_args` is False.

    Example:
        >>> d = mica.distributions.Laplace(0.0, 1.0)
        >>> d.log_prob(mica.tensor(0.0)), d.variance
        (tensor(-0.6931), tensor(2.))
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    loc: Tensor
    scale: Tensor

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(loc, scale, validate_args)

    mean = mode = property(lambda self: self.loc)  # type: ignore[assignment]
    variance = property(lambda self: 2 * self.scale.pow(2))  # type: ignore[assignment]
    stddev = property(lambda self: (2**0.5) * self.scale)  # type: ignore[assignment]

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        low = mica.finfo(self.loc.dtype).eps - 1
        u = mica.empty(shape, dtype=self.loc.dtype, device=self.loc.device).uniform_(low, 1)
        return self.loc - self.scale * u.sign() * mica.log1p(-u.abs())

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return -mica.log(2 * self.scale) - mica.abs(value - self.loc) / self.scale

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        d = value - self.loc
        return 0.5 - 0.5 * d.sign() * mica.expm1(-d.abs() / self.scale)

    def icdf(self, value: Tensor) -> Tensor:
        term = value - 0.5
        return self.loc - self.scale * term.sign() * mica.log1p(-2 * term.abs())

    def entropy(self) -> Tensor:
        return 1 + mica.log(2 * self.scale)


class Cauchy(_Pair):
    """The Cauchy or Lorentz distribution: density `1 / (pi * scale * (1 + ((x - loc) / scale) ** 2))`.

    As `torch.distributions.Cauchy`. It has `rsample`, `cdf`, `icdf` and `entropy`; its mean is nan, its
    variance infinite.

    Args:
        loc (Tensor or float): Median of the distribution.
        scale (Tensor or float): Half of the width at half of the height, above 0. The two broadcast to
            the batch.
        validate_args (bool, optional): Check parameters and the values of `log_prob`. Default: True, or what
            `Distribution.set_default_validate_args` says.

    Raises:
        ValueError: A parameter is outside of its range, unless `validate_args` is False.

    Example:
        >>> d = mica.distributions.Cauchy(0.0, 1.0)
        >>> d.cdf(mica.tensor([0.0, 1.0]))
        tensor([0.5000, 0.7500])
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    loc: Tensor
    scale: Tensor

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(loc, scale, validate_args)

    mode = property(lambda self: self.loc)  # type: ignore[assignment]
    mean = property(lambda self: mica.full_like(self.loc, math.nan))  # type: ignore[assignment]
    variance = property(lambda self: mica.full_like(self.loc, math.inf))  # type: ignore[assignment]

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.loc + self.loc.new_empty(shape).cauchy_() * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return -math.log(math.pi) - self.scale.log() - ((value - self.loc) / self.scale).square().log1p()

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return mica.atan((value - self.loc) / self.scale) / math.pi + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        return mica.tan(math.pi * (value - 0.5)) * self.scale + self.loc

    def entropy(self) -> Tensor:
        return math.log(4 * math.pi) + self.scale.log()


class Uniform(_Pair):
    """The uniform distribution on [low, high): density `1 / (high - low)`.

    As `torch.distributions.Uniform`. It has `rsample`, `cdf`, `icdf` and `entropy`.

    Args:
        low (Tensor or float): Smallest value.
        high (Tensor or float): Upper end, above `low`. The two broadcast to the batch.
        validate_args (bool, optional): Check parameters and the values of `log_prob`. Default: True, or what
            `Distribution.set_default_validate_args` says.

    Raises:
        ValueError: `low` is not below `high`, unless `validate_args` is False.

    Example:
        >>> d = mica.distributions.Uniform(1.0, 3.0)
        >>> d.mean, d.log_prob(mica.tensor(2.0)), d.icdf(mica.tensor(0.25))
        (tensor(2.), tensor(-0.6931), tensor(1.5000))
    """

    _names = ("low", "high")
    has_rsample = True
    low: Tensor
    high: Tensor

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None) -> None:
        super().__init__(low, high, validate_args)
        if self._validate_args and not mica.lt(self.low, self.high).all():
            raise ValueError("Uniform is not defined when low>= high")

    @property
    def arg_constraints(self) -> Any:  # type: ignore[override]
        return {"low": constraints.dependent(is_discrete=False, event_dim=0), "high": constraints.dependent}

    mean = property(lambda self: (self.high + self.low) / 2)  # type: ignore[assignment]
    mode = property(lambda self: math.nan * self.high)  # type: ignore[assignment]
    stddev = property(lambda self: (self.high - self.low) / 12**0.5)  # type: ignore[assignment]
    variance = property(lambda self: (self.high - self.low).pow(2) / 12)  # type: ignore[assignment]

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:  # type: ignore[override]
        return constraints.interval(self.low, self.high)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        u = self.low.new_empty(shape).uniform_()
        return self.low + u * (self.high - self.low)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        inside = self.low.le(value).type_as(self.low) * self.high.gt(value).type_as(self.low)
        return mica.log(inside) - mica.log(self.high - self.low)

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return ((value - self.low) / (self.high - self.low)).clamp(min=0, max=1)

    def icdf(self, value: Tensor) -> Tensor:
        return value * (self.high - self.low) + self.low

    def entropy(self) -> Tensor:
        return mica.log(self.high - self.low)


class StudentT(Distribution):
    """Student's t-distribution: a bell with heavy tails, that of `loc + scale * normal / sqrt(chi2 / df)`.

    As `torch.distributions.StudentT`. It has `rsample` and `entropy`. The mean is nan for `df` up to 1, the
    variance infinite up to 2.

    Args:
        df (Tensor or float): Degrees of freedom, above 0.
        loc (Tensor or float): Centre. Default: 0.
        scale (Tensor or float): Width, above 0. The three broadcast to the batch. Default: 1.
        validate_args (bool, optional): Check parameters and the values of `log_prob`. Default: True, or what
            `Distribution.set_default_validate_args` says.

    Raises:
        ValueError: A parameter is outside of its range, unless `validate_args` is False.

    Example:
        >>> d = mica.distributions.StudentT(4.0)
        >>> d.log_prob(mica.tensor(0.0)), d.variance
        (tensor(-0.9808), tensor(2.))
    """

    arg_constraints = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _own_dims = {"_half": 0}

    def __init__(self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        self._half = 0.5 * self.df
        super().__init__(self.df.size(), validate_args=validate_args)

    mode = property(lambda self: self.loc)  # type: ignore[assignment]

    @property
    def mean(self) -> Tensor:
        return mica.where(self.df <= 1, math.nan, self.loc)

    @property
    def variance(self) -> Tensor:
        finite = self.scale.pow(2) * self.df / (self.df - 2)
        m = mica.where(self.df > 2, finite, math.inf)
        return mica.where(self.df <= 1, math.nan, m)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        x = self.df.new_empty(shape).normal_()
        z = 2.0 * mica._standard_gamma(self._half.expand(shape))
        return self.loc + self.scale * (x * mica.rsqrt(z / self.df))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        y = (value - self.loc) / self.scale
        normalizer = self.scale.log() + 0.5 * self.df.log() + 0.5 * math.log(math.pi)
        normalizer = normalizer + mica.lgamma(0.5 * self.df) - mica.lgamma(0.5 * (self.df + 1.0))
        return -0.5 * (self.df + 1.0) * mica.log1p(y**2.0 / self.df) - normalizer

    def entropy(self) -> Tensor:
        lbeta = mica.lgamma(0.5 * self.df) + math.lgamma(0.5) - mica.lgamma(0.5 * (self.df + 1))
        difference = mica.digamma(0.5 * (self.df + 1)) - mica.digamma(0.5 * self.df)
        return self.scale.log() + 0.5 * (self.df + 1) * difference + 0.5 * self.df.log() + lbeta
