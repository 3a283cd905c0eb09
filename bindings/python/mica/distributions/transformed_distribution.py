"""TransformedDistribution: what a base distribution becomes through invertible maps."""

from __future__ import annotations

from typing import Any

import mica
from mica._C import Tensor
from mica.distributions import constraints
from mica.distributions.distribution import Distribution, Size
from mica.distributions.transforms import ComposeTransform, Transform
from mica.distributions.utils import _sum_rightmost


class TransformedDistribution(Distribution):
    """What a base distribution becomes through transforms: `transforms[-1](... transforms[0](x))` of its draws.

    As `torch.distributions.TransformedDistribution`. `log_prob` needs invertible transforms with a Jacobian,
    `cdf` and `icdf` those with a `sign`; `rsample` exists if the base has it.

    Args:
        base_distribution (Distribution): The distribution of `x`, which the transforms are applied to.
        transforms (Transform or list of Transform): Applied in this order.
        validate_args (bool, optional): Check parameters and the values of `log_prob`. Default: True, or what
            `Distribution.set_default_validate_args` says.

    Raises:
        ValueError: `transforms` holds something else, or the base has too few dimensions.

    Example:
        >>> base = mica.distributions.Normal(0.0, 1.0)
        >>> d = mica.distributions.TransformedDistribution(base, mica.distributions.ExpTransform())
        >>> d.log_prob(mica.tensor(1.0)), d.icdf(mica.tensor(0.5))
        (tensor(-0.9189), tensor(1.))
    """

    def __init__(self, base_distribution: Any, transforms: Any, validate_args: bool | None = None) -> None:
        if isinstance(transforms, Transform):
            self.transforms: list[Any] = [transforms]
        elif isinstance(transforms, list) and all(isinstance(t, Transform) for t in transforms):
            self.transforms = transforms
        else:
            raise ValueError(f"transforms must be a Transform or list, but was {transforms}")
        from mica.distributions._composed import Independent

        base = base_distribution
        whole = ComposeTransform(self.transforms)
        shape = base.batch_shape + base.event_shape
        if len(shape) < whole.domain.event_dim:
            raise ValueError(
                f"base_distribution needs to have shape with size at least {whole.domain.event_dim}, but got {tuple(shape)}."
            )
        forward = whole.forward_shape(shape)
        expanded = whole.inverse_shape(forward)
        if tuple(expanded) != tuple(shape):
            base = base.expand(expanded[: len(expanded) - len(base.event_shape)])
        more = whole.domain.event_dim - len(base.event_shape)
        self.base_dist = Independent(base, more) if more > 0 else base
        change = whole.codomain.event_dim - whole.domain.event_dim
        dims = max(whole.codomain.event_dim, len(self.base_dist.event_shape) + change)
        cut = len(forward) - dims
        super().__init__(forward[:cut], forward[cut:], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = type(self).__new__(type(self)) if _instance is None else _instance
        new.__dict__.update({k: v for k, v in self.__dict__.items() if k not in new.__dict__})
        shape = Size(batch_shape)
        grown = list(shape) + list(self.event_shape)
        for t in reversed(self.transforms):
            grown = list(t.inverse_shape(Size(grown)))
        new.base_dist = self.base_dist.expand(Size(grown[: len(grown) - len(self.base_dist.event_shape)]))
        new._batch_shape = shape
        return new

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        return bool(self.base_dist.has_rsample)

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> Any:  # type: ignore[override]
        if not self.transforms:
            return self.base_dist.support
        support = self.transforms[-1].codomain
        more = len(self.event_shape) - support.event_dim
        return constraints.independent(support, more) if more > 0 else support

    def _transformed(self, x: Tensor) -> Tensor:
        for t in self.transforms:
            x = t(x)
        return x

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with mica.no_grad():
            return self._transformed(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self._transformed(self.base_dist.rsample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        dims, total, y = len(self.event_shape), 0.0, value
        for t in reversed(self.transforms):
            x = t.inv(y)
            dims += t.domain.event_dim - t.codomain.event_dim
            total = total - _sum_rightmost(t.log_abs_det_jacobian(x, y), dims - t.domain.event_dim)
            y = x
        return total + _sum_rightmost(self.base_dist.log_prob(y), dims - len(self.base_dist.event_shape))

    def _sign(self) -> Any:
        sign = 1
        for t in self.transforms:
            sign = sign * t.sign
        return sign

    def cdf(self, value: Tensor) -> Tensor:
        for t in reversed(self.transforms):
            value = t.inv(value)
        if self._validate_args:
            self.base_dist._validate_sample(value)
        p = self.base_dist.cdf(value)
        sign = self._sign()
        return p if isinstance(sign, int) and sign == 1 else sign * (p - 0.5) + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        sign = self._sign()
        if not (isinstance(sign, int) and sign == 1):
            value = sign * (value - 0.5) + 0.5
        return self._transformed(self.base_dist.icdf(value))

    def __repr__(self) -> str:
        names = [k for k in self.arg_constraints if hasattr(self, k)]
        if not names:
            return f"{type(self).__name__}()"
        values = ((n, getattr(self, n)) for n in names)
        return f"{type(self).__name__}({', '.join(f'{n}: {v if v.numel() == 1 else tuple(v.shape)}' for n, v in values)})"
