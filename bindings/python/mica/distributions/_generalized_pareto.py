"""The generalized Pareto distribution: what lies above a high threshold (Pickands, 1975)."""

from __future__ import annotations

import math
from typing import Any

import mica
from mica._C import Tensor
from mica.distributions import constraints
from mica.distributions.distribution import Distribution, Size
from mica.distributions.utils import broadcast_all


class GeneralizedPareto(Distribution):
    """What lies above a high threshold: the generalized Pareto distribution.

    The probability of a value above `x` is `(1 + concentration * (x - loc) / scale) ** (-1 / concentration)`.
    As `torch.distributions.GeneralizedPareto` (Pickands, 1975). It has `rsample`, `cdf`, `icdf` and
    `entropy`.

    Args:
        loc (Tensor or float): Threshold: the smallest value.
        scale (Tensor or float): Width, above 0.
        concentration (Tensor or float): Weight of the tail: 0 is the exponential distribution, and below it
            values end at `loc - scale / concentration`. The three broadcast to the batch.
        validate_args (bool, optional): Check parameters and the values of `log_prob`. Default: True, or what
            `Distribution.set_default_validate_args` says.

    Raises:
        ValueError: A parameter is outside of its range, unless `validate_args` is False.

    Example:
        >>> d = mica.distributions.GeneralizedPareto(0.0, 1.0, 0.25)
        >>> d.mean, d.log_prob(mica.tensor(0.0))
        (tensor(1.3333), tensor(-0.))
    """

    arg_constraints = {
        "loc": constraints.real,
        "scale": constraints.positive,
        "concentration": constraints.real,
    }
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        numbers = not any(isinstance(given, Tensor) for given in (loc, scale, concentration))
        super().__init__(Size() if numbers else self.loc.size(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        whole = (t.expand(batch_shape) for t in (self.loc, self.scale, self.concentration))
        return GeneralizedPareto(*whole, validate_args=False)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:  # type: ignore[override]
        end = self.loc - self.scale / self.concentration
        return constraints.interval(self.loc, mica.where(self.concentration < 0, end, math.inf))

    def _or_exponential(self, value: Tensor, exponential: Tensor) -> Tensor:
        """The value, and where the concentration is zero, which it divides by, that of the exponential."""
        zero = mica.isclose(self.concentration, mica.zeros_like(self.concentration))
        return mica.where(zero, exponential, value)

    def _scaled(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return (value - self.loc) / self.scale

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.icdf(self.loc.new_empty(shape).uniform_())

    def log_prob(self, value: Tensor) -> Tensor:
        y, c = self._scaled(value), self.concentration
        return self._or_exponential(-(1 + 1 / c) * mica.log1p(c * y), -y) - self.scale.log()

    def log_survival_function(self, value: Tensor) -> Tensor:
        """The logarithm of the probability of values that are above these.

        Args:
            value (Tensor): Values that broadcast with the batch.

        Returns:
            Tensor: Logarithms, at most 0.
        """
        y, c = self._scaled(value), self.concentration
        return self._or_exponential(-mica.log1p(c * y) / c, -y)

    def log_cdf(self, value: Tensor) -> Tensor:
        """The logarithm of the probability of values that are at most these.

        Args:
            value (Tensor): Values that broadcast with the batch.

        Returns:
            Tensor: Logarithms, at most 0.
        """
        return mica.log1p(-self.log_survival_function(value).exp())

    def cdf(self, value: Tensor) -> Tensor:
        return -mica.expm1(self.log_survival_function(value))

    def icdf(self, value: Tensor) -> Tensor:
        left, c = mica.log1p(-value), self.concentration
        return self.loc + self.scale * self._or_exponential(mica.expm1(-c * left) / c, -left)

    @property
    def mean(self) -> Tensor:
        c = self.concentration
        return mica.where(c < 1, self.loc + self.scale / (1 - c), math.inf)

    @property
    def variance(self) -> Tensor:
        c = self.concentration
        return mica.where(c < 0.5, self.scale.pow(2) / ((1 - c).pow(2) * (1 - 2 * c)), math.inf)

    mode = property(lambda self: self.loc)  # type: ignore[assignment]

    def entropy(self) -> Tensor:
        return (self.scale.log() + self.concentration + 1).expand(self.batch_shape)
