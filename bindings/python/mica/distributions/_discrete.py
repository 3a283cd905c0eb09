"""Families of counts and of yes and no: Bernoulli, binomial, geometric, Poisson."""

from __future__ import annotations

import math
from typing import Any

import mica
from mica._C import Tensor
from mica.distributions import constraints
from mica.distributions.distribution import Distribution, ExponentialFamily
from mica.distributions.utils import (
    broadcast_all,
    clamp_probs,
    lazy_property,
    logits_to_probs,
    probs_to_logits,
)


def _cross_entropy(logits: Tensor, value: Tensor) -> Tensor:
    return mica.nn.functional.binary_cross_entropy_with_logits(logits, value, reduction="none")


class _Odds(ExponentialFamily):
    """`probs` or `logits`, of which the other is computed when asked for."""

    def _take(self, probs: Any, logits: Any, *others: Any) -> list[Tensor]:
        """Broadcasts the one given with the others and keeps it; gives the others."""
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        given = probs if logits is None else logits
        first, *rest = broadcast_all(given, *others)
        self.__dict__["probs" if logits is None else "logits"] = self._param = first
        self._given = "probs" if logits is None else "logits"
        self._is_scalar = not any(isinstance(v, Tensor) for v in (given, *others))
        return rest

    def _shape(self) -> Any:
        return () if self._is_scalar else self._param.size()

    _own_dims = {"_param": 0}

    @lazy_property
    def logits(self) -> Tensor:
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Tensor:
        return logits_to_probs(self.logits, is_binary=True)

    @property
    def param_shape(self) -> Any:
        return self._param.size()


class Bernoulli(_Odds):
    """A coin: 1 with the probability `probs`, else 0.

    As `torch.distributions.Bernoulli`. It has `entropy` and `enumerate_support`.

    Args:
        probs (Tensor or float, optional): Probability of 1, in [0, 1]. Its shape is the batch.
        logits (Tensor or float, optional): `log(probs / (1 - probs))`. One of the two is given.
        validate_args (bool, optional): Check parameters and the values of `log_prob`. Default: True, or what
            `Distribution.set_default_validate_args` says.

    Raises:
        ValueError: Both or none of `probs` and `logits` are given, or one is outside of its range.

    Example:
        >>> d = mica.distributions.Bernoulli(probs=mica.tensor([0.2, 0.5]))
        >>> d.log_prob(mica.ones(2)), d.entropy()
        (tensor([-1.6094, -0.6931]), tensor([0.5004, 0.6931]))
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._take(probs, logits)
        super().__init__(self._shape(), validate_args=validate_args)

    mean = property(lambda self: self.probs)  # type: ignore[assignment]
    variance = property(lambda self: self.probs * (1 - self.probs))  # type: ignore[assignment]

    @property
    def mode(self) -> Tensor:
        return mica.where(self.probs == 0.5, math.nan, (self.probs >= 0.5).to(self.probs))

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with mica.no_grad():
            return mica.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return -_cross_entropy(logits, value)

    def entropy(self) -> Tensor:
        return _cross_entropy(self.logits, self.probs)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = mica.arange(2, dtype=self._param.dtype, device=self._param.device)
        values = values.view((-1, *([1] * len(self._batch_shape))))
        return values.expand((-1, *self._batch_shape)) if expand else values


class ContinuousBernoulli(_Odds):
    """Numbers in [0, 1]: density proportional to `probs ** x * (1 - probs) ** (1 - x)`.

    As `torch.distributions.ContinuousBernoulli` (Loaiza-Ganem and Cunningham, 2019). It has `rsample`, `cdf`,
    `icdf` and `entropy`.

    Args:
        probs (Tensor or float, optional): In (0, 1); not the mean. Its shape is the batch.
        logits (Tensor or float, optional): `log(probs / (1 - probs))`. One of the two is given.
        lims (tuple of 2 float): Between them, around 0.5, a Taylor series takes the place of the unstable
            formula. Default: (0.499, 0.501).
        validate_args (bool, optional): Check parameters and the values of `log_prob`. Default: True, or what
            `Distribution.set_default_validate_args` says.

    Raises:
        ValueError: Both or none of `probs` and `logits` are given, or one is outside of its range.

    Example:
        >>> d = mica.distributions.ContinuousBernoulli(0.75)
        >>> d.mean, d.log_prob(mica.tensor(1.0))
        (tensor(0.5898), tensor(0.4995))
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self,
        probs: Any = None,
        logits: Any = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        self._take(probs, logits)
        self._lims = lims
        if self._given == "probs":
            if validate_args is not False and not constraints.unit_interval.check(self.probs).all():
                raise ValueError("The parameter probs has invalid values")
            self.__dict__["probs"] = self._param = clamp_probs(self.probs)
        super().__init__(self._shape(), validate_args=validate_args)

    def _outside(self) -> Tensor:
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    def _cut(self) -> Tensor:
        return mica.where(self._outside(), self.probs, self._lims[0])

    def _log_norm(self) -> Tensor:
        p = self._cut()
        below = mica.where(p <= 0.5, p, 0.0)
        above = mica.where(p >= 0.5, p, 1.0)
        inner = mica.where(p <= 0.5, mica.log1p(-2.0 * below), mica.log(2.0 * above - 1.0))
        norm = mica.log(mica.abs(mica.log1p(-p) - mica.log(p))) - inner
        x = (self.probs - 0.5) ** 2
        return mica.where(self._outside(), norm, math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x) * x)

    @property
    def mean(self) -> Tensor:
        p = self._cut()
        exact = p / (2.0 * p - 1.0) + 1.0 / (mica.log1p(-p) - mica.log(p))
        x = self.probs - 0.5
        return mica.where(self._outside(), exact, 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * x**2) * x)

    @property
    def variance(self) -> Tensor:
        p = self._cut()
        exact = p * (p - 1.0) / (1.0 - 2.0 * p) ** 2 + 1.0 / (mica.log1p(-p) - mica.log(p)) ** 2
        x = (self.probs - 0.5) ** 2
        return mica.where(self._outside(), exact, 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x) * x)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        u = self.probs.new_empty(self._extended_shape(sample_shape)).uniform_()
        return self.icdf(u)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return -_cross_entropy(logits, value) + self._log_norm()

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        p = self._cut()
        inner = (mica.pow(p, value) * mica.pow(1.0 - p, 1.0 - value) + p - 1.0) / (2.0 * p - 1.0)
        inner = mica.where(self._outside(), inner, value)
        return mica.where(value <= 0.0, 0.0, mica.where(value >= 1.0, 1.0, inner))

    def icdf(self, value: Tensor) -> Tensor:
        p = self._cut()
        top = mica.log1p(-p + value * (2.0 * p - 1.0)) - mica.log1p(-p)
        return mica.where(self._outside(), top / (mica.log(p) - mica.log1p(-p)), value)

    def entropy(self) -> Tensor:
        log0, log1 = mica.log1p(-self.probs), mica.log(self.probs)
        return self.mean * (log0 - log1) - self._log_norm() - log0


class Geometric(_Odds):
    """Failures before the first success: probability `(1 - probs) ** k * probs` of k = 0, 1, ...

    As `torch.distributions.Geometric`. It has `entropy`.

    Args:
        probs (Tensor or float, optional): Probability of success, in (0, 1]. Its shape is the batch.
        logits (Tensor or float, optional): `log(probs / (1 - probs))`. One of the two is given.
        validate_args (bool, optional): Check parameters and the values of `log_prob`. Default: True, or what
            `Distribution.set_default_validate_args` says.

    Raises:
        ValueError: Both or none of `probs` and `logits` are given, or one is outside of its range.

    Example:
        >>> d = mica.distributions.Geometric(0.25)
        >>> d.mean, d.log_prob(mica.tensor([0.0, 1.0]))
        (tensor(3.), tensor([-1.3863, -1.6740]))
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._take(probs, logits)
        super().__init__(self._shape(), validate_args=validate_args)
        if self._validate_args and probs is not None and not (self.probs > 0).all():
            raise ValueError(f"The parameter probs of {type(self).__name__} must be positive:\n{self.probs}")

    mean = property(lambda self: 1.0 / self.probs - 1.0)  # type: ignore[assignment]
    mode = property(lambda self: mica.zeros_like(self.probs))  # type: ignore[assignment]
    variance = property(lambda self: (1.0 / self.probs - 1.0) / self.probs)  # type: ignore[assignment]

    def sample(self, sample_shape: Any = ()) -> Tensor:
        tiny = mica.finfo(self.probs.dtype).tiny
        with mica.no_grad():
            u = self.probs.new_empty(self._extended_shape(sample_shape)).uniform_(tiny, 1)
            return (u.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        value, probs = broadcast_all(value, self.probs)
        probs = mica.where((probs == 1) & (value == 0), 0.0, probs)
        return value * (-probs).log1p() + self.probs.log()

    def entropy(self) -> Tensor:
        return _cross_entropy(self.logits, self.probs) / self.probs


class Binomial(_Odds):
    """Successes in `total_count` independent trials.

    As `torch.distributions.Binomial`. It has `entropy` and `enumerate_support`, where all of the batch have
    one `total_count`.

    Args:
        total_count (Tensor or int): Trials, at least 0. Default: 1.
        probs (Tensor or float, optional): Probability of success, in [0, 1].
        logits (Tensor or float, optional): `log(probs / (1 - probs))`. One of the two is given; it broadcasts
            with `total_count` to the batch.
        validate_args (bool, optional): Check parameters and the values of `log_prob`. Default: True, or what
            `Distribution.set_default_validate_args` says.

    Raises:
        ValueError: Both or none of `probs` and `logits` are given, or a parameter is outside of its range.

    Example:
        >>> d = mica.distributions.Binomial(3, probs=0.5)
        >>> d.log_prob(mica.arange(4.0)).exp()
        tensor([0.1250, 0.3750, 0.3750, 0.1250])
    """

    arg_constraints = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True

    def __init__(
        self, total_count: Any = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        (count,) = self._take(probs, logits, total_count)
        self.total_count = count.type_as(self._param)
        super().__init__(self._shape(), validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:  # type: ignore[override]
        return constraints.integer_interval(0, self.total_count)

    mean = property(lambda self: self.total_count * self.probs)  # type: ignore[assignment]
    mode = property(lambda self: ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count))  # type: ignore[assignment]
    variance = property(lambda self: self.total_count * self.probs * (1 - self.probs))  # type: ignore[assignment]

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with mica.no_grad():
            return mica.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        n = self.total_count
        choose = mica.lgamma(n + 1) - mica.lgamma(value + 1) - mica.lgamma(n - value + 1)
        clamped = self.logits.clamp(min=0)
        normalizer = n * clamped + n * mica.log1p(mica.exp(-mica.abs(self.logits)))
        return value * self.logits + choose - normalizer

    def entropy(self) -> Tensor:
        count = int(self.total_count.max())
        if not self.total_count.min() == count:
            raise NotImplementedError("The entropy of Binomial needs one `total_count` for the whole batch.")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(mica.exp(log_prob) * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        count = int(self.total_count.max())
        if not self.total_count.min() == count:
            raise NotImplementedError("The support of Binomial needs one `total_count` for the whole batch.")
        values = mica.arange(1 + count, dtype=self._param.dtype, device=self._param.device)
        values = values.view((-1, *([1] * len(self._batch_shape))))
        return values.expand((-1, *self._batch_shape)) if expand else values


class NegativeBinomial(_Odds):
    """Successes before the failure number `total_count`.

    As `torch.distributions.NegativeBinomial`.

    Args:
        total_count (Tensor or float): Failures at which it ends, at least 0; real numbers too.
        probs (Tensor or float, optional): Probability of success, in [0, 1).
        logits (Tensor or float, optional): `log(probs / (1 - probs))`. One of the two is given; it broadcasts
            with `total_count` to the batch.
        validate_args (bool, optional): Check parameters and the values of `log_prob`. Default: True, or what
            `Distribution.set_default_validate_args` says.

    Raises:
        ValueError: Both or none of `probs` and `logits` are given, or a parameter is outside of its range.

    Example:
        >>> d = mica.distributions.NegativeBinomial(2, probs=0.5)
        >>> d.mean, d.log_prob(mica.tensor(0.0)).exp()
        (tensor(2.), tensor(0.2500))
    """

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer

    def __init__(
        self, total_count: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        (count,) = self._take(probs, logits, total_count)
        self.total_count = count.type_as(self._param)
        super().__init__(self._shape(), validate_args=validate_args)

    mean = property(lambda self: self.total_count * mica.exp(self.logits))  # type: ignore[assignment]
    mode = property(lambda self: ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0))  # type: ignore[assignment]
    variance = property(lambda self: self.mean / mica.sigmoid(-self.logits))  # type: ignore[assignment]

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with mica.no_grad():
            rate = mica._standard_gamma(self.total_count.expand(shape)) / (-self.logits).exp().expand(shape)
            return mica.poisson(rate)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        n, sigmoid = self.total_count, mica.nn.functional.logsigmoid
        density = n * sigmoid(-self.logits) + value * sigmoid(self.logits)
        normalizer = -mica.lgamma(n + value) + mica.lgamma(1.0 + value) + mica.lgamma(n)
        return density - normalizer.masked_fill(n + value == 0.0, 0.0)


class Poisson(ExponentialFamily):
    """Counts of independent events: probability `rate ** k * exp(-rate) / k!` of k = 0, 1, ...

    As `torch.distributions.Poisson`.

    Args:
        rate (Tensor or float): Expected count, at least 0. Its shape is the batch.
        validate_args (bool, optional): Check parameters and the values of `log_prob`. Default: True, or what
            `Distribution.set_default_validate_args` says.

    Raises:
        ValueError: A parameter is outside of its range, unless `validate_args` is False.

    Example:
        >>> d = mica.distributions.Poisson(2.0)
        >>> d.log_prob(mica.tensor([0.0, 2.0])).exp()
        tensor([0.1353, 0.2707])
    """

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.size() if isinstance(rate, Tensor) else (), validate_args=validate_args)

    mean = variance = property(lambda self: self.rate)  # type: ignore[assignment]
    mode = property(lambda self: self.rate.floor())  # type: ignore[assignment]

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with mica.no_grad():
            return mica.poisson(self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        rate, value = broadcast_all(self.rate, value)
        return value.xlogy(rate) - rate - (value + 1).lgamma()


__all__ = [
    "Bernoulli", "Binomial", "ContinuousBernoulli", "Distribution", "Geometric", "NegativeBinomial", "Poisson",
]  # fmt: skip
