"""Distributions of distributions: Independent, mixtures, and families that are transforms of others."""

from __future__ import annotations

import math
from typing import Any

import mica
from mica._C import Tensor
from mica.distributions import constraints
from mica.distributions._location_scale import Cauchy, Normal, Uniform
from mica.distributions._matrix_transforms import StickBreakingTransform
from mica.distributions._positive import Exponential, Gamma
from mica.distributions.distribution import Distribution, Size
from mica.distributions.transformed_distribution import TransformedDistribution
from mica.distributions.transforms import AbsTransform, AffineTransform, ExpTransform, PowerTransform
from mica.distributions.utils import _sum_rightmost, broadcast_all, euler_constant


class Independent(Distribution):
    """Takes the last dimensions of a distribution's batch for a part of its event.

    As `torch.distributions.Independent`. `log_prob` and `entropy` are summed over these dimensions; draws, mean,
    mode and variance are those of the base. `enumerate_support` raises NotImplementedError unless the number of
    dimensions is 0, `cdf` and `icdf` always.

    Args:
        base_distribution (Distribution): The distribution whose batch dimensions become part of an event.
        reinterpreted_batch_ndims (int): How many dimensions, from the right of the batch.
        validate_args (bool, optional): Check parameters and the values of `log_prob`. Default: True, or what
            `Distribution.set_default_validate_args` says.

    Raises:
        ValueError: The batch has fewer dimensions.

    Example:
        >>> d = mica.distributions.Independent(mica.distributions.Normal(mica.zeros(2, 3), 1.0), 1)
        >>> d.batch_shape, d.event_shape
        (mica.Size([2]), mica.Size([3]))
        >>> d.log_prob(mica.zeros(2, 3))
        tensor([-2.7568, -2.7568])
    """

    arg_constraints: Any = {}

    def __init__(
        self, base_distribution: Any, reinterpreted_batch_ndims: int, validate_args: bool | None = None
    ) -> None:
        n = reinterpreted_batch_ndims
        if n > len(base_distribution.batch_shape):
            raise ValueError(
                "Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), "
                f"actual {n} vs {len(base_distribution.batch_shape)}"
            )
        shape = base_distribution.batch_shape + base_distribution.event_shape
        dims = n + len(base_distribution.event_shape)
        self.base_dist, self.reinterpreted_batch_ndims = base_distribution, n
        super().__init__(shape[: len(shape) - dims], shape[len(shape) - dims :], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        n = self.reinterpreted_batch_ndims
        new.base_dist = self.base_dist.expand(Size(batch_shape) + self.event_shape[:n])
        return new

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        return bool(self.base_dist.has_rsample)

    @property
    def has_enumerate_support(self) -> bool:  # type: ignore[override]
        return bool(self.base_dist.has_enumerate_support) if self.reinterpreted_batch_ndims == 0 else False

    @constraints.dependent_property
    def support(self) -> Any:  # type: ignore[override]
        n = self.reinterpreted_batch_ndims
        return constraints.independent(self.base_dist.support, n) if n else self.base_dist.support

    mean = property(lambda self: self.base_dist.mean)  # type: ignore[assignment]
    mode = property(lambda self: self.base_dist.mode)  # type: ignore[assignment]
    variance = property(lambda self: self.base_dist.variance)  # type: ignore[assignment]

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return self.base_dist.sample(sample_shape)  # type: ignore[no-any-return]

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.base_dist.rsample(sample_shape)  # type: ignore[no-any-return]

    def log_prob(self, value: Tensor) -> Tensor:
        return _sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Tensor:
        return _sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        if self.reinterpreted_batch_ndims > 0:
            raise NotImplementedError("Enumeration over cartesian product is not implemented")
        return self.base_dist.enumerate_support(expand=expand)  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_dist}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamily(Distribution):
    """A mixture: draws come from one of several components, chosen at random.

    As `torch.distributions.MixtureSameFamily`. It has `cdf`, if the components have.

    Args:
        mixture_distribution (Categorical): Weights of the K components, `batch_shape + (K)`.
        component_distribution (Distribution): The components, whose batch is `batch_shape + (K)`.
        validate_args (bool, optional): Check parameters and the values of `log_prob`. Default: True, or what
            `Distribution.set_default_validate_args` says.

    Raises:
        ValueError: The first is no Categorical, the second no Distribution, or their K differ.

    Example:
        >>> weights = mica.distributions.Categorical(mica.tensor([0.5, 0.5]))
        >>> parts = mica.distributions.Normal(mica.tensor([-1.0, 1.0]), 1.0)
        >>> d = mica.distributions.MixtureSameFamily(weights, parts)
        >>> d.mean, d.variance, d.log_prob(mica.tensor(0.0))
        (tensor(0.), tensor(2.), tensor(-1.4189))
    """

    arg_constraints: Any = {}
    has_rsample = False

    def __init__(
        self, mixture_distribution: Any, component_distribution: Any, validate_args: bool | None = None
    ) -> None:
        from mica.distributions._categorical import Categorical

        mixture, component = mixture_distribution, component_distribution
        if not isinstance(mixture, Categorical):
            raise ValueError(
                " The Mixture distribution needs to be an  instance of torch.distributions.Categorical"
            )
        if not isinstance(component, Distribution):
            raise ValueError(
                "The Component distribution need to be an instance of torch.distributions.Distribution"
            )
        if mixture.logits.shape[-1] != component.batch_shape[-1]:
            raise ValueError(
                f"`mixture_distribution component` ({mixture.logits.shape[-1]}) does not equal "
                f"`component_distribution.batch_shape[-1]` ({component.batch_shape[-1]})"
            )
        self._mixture_distribution, self._component_distribution = mixture, component
        self._num_component = component.batch_shape[-1]
        self._event_ndims = len(component.event_shape)
        super().__init__(component.batch_shape[:-1], component.event_shape, validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        new._component_distribution = self._component_distribution.expand(
            Size((*batch_shape, self._num_component))
        )
        new._mixture_distribution = self._mixture_distribution.expand(Size(batch_shape))
        return new

    mixture_distribution = property(lambda self: self._mixture_distribution)
    component_distribution = property(lambda self: self._component_distribution)

    @constraints.dependent_property
    def support(self) -> Any:  # type: ignore[override]
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    def _weights(self, probs: Tensor) -> Tensor:
        return probs.reshape(*probs.shape, *([1] * self._event_ndims))

    @property
    def mean(self) -> Tensor:
        weights = self._weights(self.mixture_distribution.probs)
        return (weights * self.component_distribution.mean).sum(-1 - self._event_ndims)

    @property
    def variance(self) -> Tensor:
        weights, dim = self._weights(self.mixture_distribution.probs), -1 - self._event_ndims
        within = (weights * self.component_distribution.variance).sum(dim)
        spread = self.component_distribution.mean - self.mean.unsqueeze(dim)
        return within + (weights * spread.pow(2.0)).sum(dim)

    def cdf(self, x: Tensor) -> Tensor:
        """The probability of values that are at most these: the weighted mean of the components'.

        Args:
            x (Tensor): Values that broadcast with the batch.

        Returns:
            Tensor: Probabilities in [0, 1].
        """
        cdf = self.component_distribution.cdf(x.unsqueeze(-1 - self._event_ndims))
        return (cdf * self.mixture_distribution.probs).sum(-1)

    def log_prob(self, x: Tensor) -> Tensor:
        """The natural logarithm of the density, or of the probability of discrete values.

        Args:
            x (Tensor): Values that broadcast with `batch_shape + event_shape`.

        Returns:
            Tensor: One number for each event.

        Raises:
            ValueError: `x` is no Tensor, or of another shape, where the distribution validates.
        """
        if self._validate_args:
            self._validate_sample(x)
        log_prob = self.component_distribution.log_prob(x.unsqueeze(-1 - self._event_ndims))
        log_mix = mica.log_softmax(self.mixture_distribution.logits, dim=-1)
        return mica.logsumexp(log_prob + log_mix, dim=-1)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with mica.no_grad():
            dim = len(Size(sample_shape)) + len(self.batch_shape)
            chosen = self.mixture_distribution.sample(sample_shape)
            components = self.component_distribution.sample(sample_shape)
            index = chosen.reshape(*chosen.shape, *([1] * (self._event_ndims + 1)))
            index = index.expand(*chosen.shape, 1, *self.event_shape)
            return components.gather(dim, index).squeeze(dim)

    def __repr__(self) -> str:
        return f"MixtureSameFamily(\n  {self.mixture_distribution},\n  {self.component_distribution})"


class LogNormal(TransformedDistribution):
    """Positive numbers whose logarithm is normal: `exp(Normal(loc, scale))`.

    As `torch.distributions.LogNormal`. It has `rsample`, `cdf`, `icdf` and `entropy`.

    Args:
        loc (Tensor or float): Mean of the logarithm.
        scale (Tensor or float): Standard deviation of the logarithm, above 0. The two broadcast to the batch.
        validate_args (bool, optional): Check parameters and the values of `log_prob`. Default: True, or what
            `Distribution.set_default_validate_args` says.

    Raises:
        ValueError: A parameter is outside of its range, unless `validate_args` is False.

    Example:
        >>> d = mica.distributions.LogNormal(0.0, 1.0)
        >>> d.mean, d.mode, d.cdf(mica.tensor(1.0))
        (tensor(1.6487), tensor(0.3679), tensor(0.5000))
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Normal(loc, scale, validate_args), ExpTransform(), validate_args=validate_args)

    loc = property(lambda self: self.base_dist.loc)
    scale = property(lambda self: self.base_dist.scale)
    mean = property(lambda self: (self.loc + self.scale.pow(2) / 2).exp())  # type: ignore[assignment]
    mode = property(lambda self: (self.loc - self.scale.square()).exp())  # type: ignore[assignment]

    @property
    def variance(self) -> Tensor:
        s2 = self.scale.pow(2)
        return s2.expm1() * (2 * self.loc + s2).exp()

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() + self.loc  # type: ignore[no-any-return]


class _Half(TransformedDistribution):
    """The absolute value of a symmetric variable around 0."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    scale = property(lambda self: self.base_dist.scale)
    mode = property(lambda self: mica.zeros_like(self.scale))  # type: ignore[assignment]

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        log_prob = self.base_dist.log_prob(value) + math.log(2)
        return mica.where(mica.as_tensor(value) >= 0, log_prob, -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return 2 * self.base_dist.cdf(value) - 1  # type: ignore[no-any-return]

    def icdf(self, prob: Tensor) -> Tensor:
        return self.base_dist.icdf((prob + 1) / 2)  # type: ignore[no-any-return]

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)  # type: ignore[no-any-return]


class HalfNormal(_Half):
    """The absolute value of a normal variable around 0.

    As `torch.distributions.HalfNormal`. It has `rsample`, `cdf`, `icdf` and `entropy`.

    Args:
        scale (Tensor or float): Standard deviation of the normal variable, above 0. Its shape is the batch.
        validate_args (bool, optional): Check parameters and the values of `log_prob`. Default: True, or what
            `Distribution.set_default_validate_args` says.

    Raises:
        ValueError: A parameter is outside of its range, unless `validate_args` is False.

    Example:
        >>> d = mica.distributions.HalfNormal(1.0)
        >>> d.mean, d.log_prob(mica.tensor(0.0))
        (tensor(0.7979), tensor(-0.2258))
    """

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Normal(0, scale, False), AbsTransform(), validate_args=validate_args)

    mean = property(lambda self: self.scale * math.sqrt(2 / math.pi))  # type: ignore[assignment]
    variance = property(lambda self: self.scale.pow(2) * (1 - 2 / math.pi))  # type: ignore[assignment]


class HalfCauchy(_Half):
    """The absolute value of a Cauchy variable around 0.

    As `torch.distributions.HalfCauchy`. It has `rsample`, `cdf`, `icdf` and `entropy`; mean and variance are
    infinite.

    Args:
        scale (Tensor or float): Its median, above 0. Its shape is the batch.
        validate_args (bool, optional): Check parameters and the values of `log_prob`. Default: True, or what
            `Distribution.set_default_validate_args` says.

    Raises:
        ValueError: A parameter is outside of its range, unless `validate_args` is False.

    Example:
        >>> d = mica.distributions.HalfCauchy(2.0)
        >>> d.cdf(mica.tensor(2.0))
        tensor(0.5000)
    """

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Cauchy(0, scale, False), AbsTransform(), validate_args=validate_args)

    mean = property(lambda self: mica.full_like(self.scale, math.inf))  # type: ignore[assignment]
    variance = property(lambda self: self.base_dist.variance)  # type: ignore[assignment]


class Gumbel(TransformedDistribution):
    """The extreme value distribution: `cdf(x) = exp(-exp(-(x - loc) / scale))`, that of the largest of many.

    As `torch.distributions.Gumbel`. It has `rsample`, `cdf`, `icdf` and `entropy`.

    Args:
        loc (Tensor or float): Mode of the distribution, where its density is highest.
        scale (Tensor or float): Width, above 0. The two broadcast to the batch.
        validate_args (bool, optional): Check parameters and the values of `log_prob`. Default: True, or what
            `Distribution.set_default_validate_args` says.

    Raises:
        ValueError: A parameter is outside of its range, unless `validate_args` is False.

    Example:
        >>> d = mica.distributions.Gumbel(0.0, 1.0)
        >>> d.mean, d.log_prob(mica.tensor(0.0))
        (tensor(0.5772), tensor(-1.))
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        f = mica.finfo(self.loc.dtype)
        low, high = mica.full_like(self.loc, f.tiny), mica.full_like(self.loc, 1 - f.eps)
        numbers = not isinstance(loc, Tensor) and not isinstance(scale, Tensor)
        base = Uniform(f.tiny, 1 - f.eps, False) if numbers else Uniform(low, high, False)
        transforms = [
            ExpTransform().inv,
            AffineTransform(loc=0, scale=-mica.ones_like(self.scale)),
            ExpTransform().inv,
            AffineTransform(loc=self.loc, scale=-self.scale),
        ]
        super().__init__(base, transforms, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return Gumbel(self.loc.expand(batch_shape), self.scale.expand(batch_shape), validate_args=False)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        y = (self.loc - value) / self.scale
        return (y - y.exp()) - self.scale.log()

    mean = property(lambda self: self.loc + self.scale * euler_constant)  # type: ignore[assignment]
    mode = property(lambda self: self.loc)  # type: ignore[assignment]
    stddev = property(lambda self: (math.pi / math.sqrt(6)) * self.scale)  # type: ignore[assignment]
    variance = property(lambda self: self.stddev.pow(2))  # type: ignore[assignment]

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + euler_constant)


class Pareto(TransformedDistribution):
    """The power law: density `alpha * scale ** alpha / x ** (alpha + 1)` for `x >= scale`.

    As `torch.distributions.Pareto`. It has `rsample`, `cdf`, `icdf` and `entropy`. The mean is infinite for
    `alpha` up to 1, the variance up to 2.

    Args:
        scale (Tensor or float): Smallest value, above 0.
        alpha (Tensor or float): Exponent, above 0. The two broadcast to the batch.
        validate_args (bool, optional): Check parameters and the values of `log_prob`. Default: True, or what
            `Distribution.set_default_validate_args` says.

    Raises:
        ValueError: A parameter is outside of its range, unless `validate_args` is False.

    Example:
        >>> d = mica.distributions.Pareto(1.0, 3.0)
        >>> d.mean, d.log_prob(mica.tensor(1.0))
        (tensor(1.5000), tensor(1.0986))
    """

    arg_constraints = {"alpha": constraints.positive, "scale": constraints.positive}

    def __init__(self, scale: Any, alpha: Any, validate_args: bool | None = None) -> None:
        self.scale, self.alpha = broadcast_all(scale, alpha)
        base = Exponential(self.alpha, validate_args=validate_args)
        super().__init__(base, [ExpTransform(), AffineTransform(loc=0, scale=self.scale)], validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return Pareto(self.scale.expand(batch_shape), self.alpha.expand(batch_shape), validate_args=False)

    @property
    def mean(self) -> Tensor:
        a = self.alpha.clamp(min=1)
        return a * self.scale / (a - 1)

    mode = property(lambda self: self.scale)  # type: ignore[assignment]

    @property
    def variance(self) -> Tensor:
        a = self.alpha.clamp(min=2)
        return self.scale.pow(2) * a / ((a - 1).pow(2) * (a - 2))

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:  # type: ignore[override]
        return constraints.greater_than_eq(self.scale)

    def entropy(self) -> Tensor:
        return (self.scale / self.alpha).log() + (1 + self.alpha.reciprocal())


class Weibull(TransformedDistribution):
    """Lifetimes: `cdf(x) = 1 - exp(-(x / scale) ** concentration)` for `x > 0`.

    As `torch.distributions.Weibull`. It has `rsample`, `cdf`, `icdf` and `entropy`.

    Args:
        scale (Tensor or float): Life by which 63 % have failed, above 0.
        concentration (Tensor or float): Below 1 the rate of failures falls with age, above 1 it rises; above
            0. The two broadcast to the batch.
        validate_args (bool, optional): Check parameters and the values of `log_prob`. Default: True, or what
            `Distribution.set_default_validate_args` says.

    Raises:
        ValueError: A parameter is outside of its range, unless `validate_args` is False.

    Example:
        >>> d = mica.distributions.Weibull(1.0, 2.0)
        >>> d.mean, d.cdf(mica.tensor(1.0))
        (tensor(0.8862), tensor(0.6321))
    """

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        self.concentration_reciprocal = self.concentration.reciprocal()
        base = Exponential(mica.ones_like(self.scale), validate_args=validate_args)
        transforms = [PowerTransform(self.concentration_reciprocal), AffineTransform(0, self.scale)]
        super().__init__(base, transforms, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return Weibull(self.scale.expand(batch_shape), self.concentration.expand(batch_shape), False)

    def _moment(self, n: int) -> Tensor:
        return mica.exp(mica.lgamma(1 + n * self.concentration_reciprocal))

    mean = property(lambda self: self.scale * self._moment(1))  # type: ignore[assignment]

    @property
    def mode(self) -> Tensor:
        k = self.concentration
        return self.scale * ((k - 1) / k) ** self.concentration_reciprocal

    @property
    def variance(self) -> Tensor:
        return self.scale.pow(2) * (self._moment(2) - self._moment(1).pow(2))

    def entropy(self) -> Tensor:
        r = self.concentration_reciprocal
        return euler_constant * (1 - r) + mica.log(self.scale * r) + 1


class Kumaraswamy(TransformedDistribution):
    """Numbers in (0, 1), much like Beta: `cdf(x) = 1 - (1 - x ** concentration1) ** concentration0`.

    As `torch.distributions.Kumaraswamy`. It has `rsample`, `cdf`, `icdf` and `entropy`.

    Args:
        concentration1 (Tensor or float): Inner exponent, above 0; also called a.
        concentration0 (Tensor or float): Outer exponent, above 0; also called b. The two broadcast to the
            batch.
        validate_args (bool, optional): Check parameters and the values of `log_prob`. Default: True, or what
            `Distribution.set_default_validate_args` says.

    Raises:
        ValueError: A parameter is outside of its range, unless `validate_args` is False.

    Example:
        >>> d = mica.distributions.Kumaraswamy(1.0, 2.0)
        >>> d.mean, d.cdf(mica.tensor(0.5))
        (tensor(0.3333), tensor(0.7500))
    """

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        base = Uniform(
            mica.full_like(self.concentration0, 0), mica.full_like(self.concentration0, 1), validate_args
        )
        transforms = [
            PowerTransform(exponent=self.concentration0.reciprocal()),
            AffineTransform(loc=1.0, scale=-1.0),
            PowerTransform(exponent=self.concentration1.reciprocal()),
        ]
        super().__init__(base, transforms, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return Kumaraswamy(
            self.concentration1.expand(batch_shape), self.concentration0.expand(batch_shape), False
        )

    def _moment(self, n: int) -> Tensor:
        a, b = self.concentration1, self.concentration0
        value = 1 + n / a
        return mica.exp(b.log() + mica.lgamma(value) + mica.lgamma(b) - mica.lgamma(value + b))

    mean = property(lambda self: self._moment(1))  # type: ignore[assignment]
    variance = property(lambda self: self._moment(2) - self._moment(1).pow(2))  # type: ignore[assignment]

    @property
    def mode(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        log_mode = a.reciprocal() * (-b).log1p() - (-a * b).log1p()
        return mica.where((a < 1) | (b < 1), math.nan, log_mode.exp())

    def entropy(self) -> Tensor:
        t1, t0 = 1 - self.concentration1.reciprocal(), 1 - self.concentration0.reciprocal()
        h0 = mica.digamma(self.concentration0 + 1) + euler_constant
        return t0 + t1 * h0 - mica.log(self.concentration1) - mica.log(self.concentration0)


class InverseGamma(TransformedDistribution):
    """Positive numbers whose inverse is gamma distributed: `1 / Gamma(concentration, rate)`.

    As `torch.distributions.InverseGamma`. It has `rsample`, `cdf` and `entropy`. The mean is infinite for a
    `concentration` up to 1, the variance up to 2.

    Args:
        concentration (Tensor or float): Shape of the density, above 0.
        rate (Tensor or float): Scale of the result, above 0. The two broadcast to the batch.
        validate_args (bool, optional): Check parameters and the values of `log_prob`. Default: True, or what
            `Distribution.set_default_validate_args` says.

    Raises:
        ValueError: A parameter is outside of its range, unless `validate_args` is False.

    Example:
        >>> d = mica.distributions.InverseGamma(3.0, 2.0)
        >>> d.mean, d.log_prob(mica.tensor(1.0))
        (tensor(1.), tensor(-0.6137))
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        base = Gamma(concentration, rate, validate_args=validate_args)
        super().__init__(base, PowerTransform(base.rate.new_tensor(-1)), validate_args=validate_args)

    concentration = property(lambda self: self.base_dist.concentration)
    rate = property(lambda self: self.base_dist.rate)
    mode = property(lambda self: self.rate / (self.concentration + 1))  # type: ignore[assignment]

    @property
    def mean(self) -> Tensor:
        a = self.concentration
        return mica.where(a > 1, self.rate / (a - 1), math.inf)

    @property
    def variance(self) -> Tensor:
        a = self.concentration
        return mica.where(a > 2, self.rate.square() / ((a - 1).square() * (a - 2)), math.inf)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a + self.rate.log() + a.lgamma() - (1 + a) * a.digamma()


class LogisticNormal(TransformedDistribution):
    """Vectors of probabilities made of normal variables by StickBreakingTransform.

    As `torch.distributions.LogisticNormal`. It has `rsample`. Events have one element more than the
    parameters.

    Args:
        loc (Tensor): Means of the normal variables, `batch_shape + (K - 1)`.
        scale (Tensor): Their standard deviations, above 0. The two broadcast.
        validate_args (bool, optional): Check parameters and the values of `log_prob`. Default: True, or what
            `Distribution.set_default_validate_args` says.

    Raises:
        ValueError: A parameter is outside of its range, unless `validate_args` is False.

    Example:
        >>> d = mica.distributions.LogisticNormal(mica.zeros(2), mica.ones(2))
        >>> d.event_shape, d.sample((2,)).shape
        (mica.Size([3]), mica.Size([2, 3]))
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, loc: Tensor, scale: Tensor, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        if not base.batch_shape:
            base = base.expand([1])
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    loc = property(lambda self: self.base_dist.base_dist.loc)
    scale = property(lambda self: self.base_dist.base_dist.scale)
