"""The von Mises distribution: the normal one's kin on the circle."""

from __future__ import annotations

import math
from typing import Any

import mica
from mica._C import Tensor
from mica.distributions import constraints
from mica.distributions._location_scale import _Pair


def _log_bessel_ratio_free(order: int, x: Tensor) -> Tensor:
    """log I_order(x) of the modified Bessel function, for order 0 and 1."""
    scaled = mica.special.i0e(x) if order == 0 else mica.special.i1e(x)
    return scaled.log() + x.abs()


class VonMises(_Pair):
    """Angles around a direction: density `exp(concentration * cos(x - loc)) / (2 * pi * i0(concentration))`.

    As `torch.distributions.VonMises`. Draws are in [-pi, pi); the variance is the circular one.

    Args:
        loc (Tensor or float): Mean direction, in radians.
        concentration (Tensor or float): About 1 / variance where it is large; above 0. The two broadcast to
            the batch.
        validate_args (bool, optional): Check parameters and the values of `log_prob`. Default: True, or what
            `Distribution.set_default_validate_args` says.

    Raises:
        ValueError: A parameter is outside of its range, unless `validate_args` is False.

    Example:
        >>> d = mica.distributions.VonMises(0.0, 4.0)
        >>> d.log_prob(mica.tensor(0.0)), d.variance
        (tensor(-0.2628), tensor(0.1365))
    """

    _names = ("loc", "concentration")
    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    loc: Tensor
    concentration: Tensor

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        super().__init__(loc, concentration, validate_args)

    mean = mode = property(lambda self: self.loc)  # type: ignore[assignment]

    @property
    def variance(self) -> Tensor:
        k = self.concentration
        return 1 - (_log_bessel_ratio_free(1, k) - _log_bessel_ratio_free(0, k)).exp()

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        k = self.concentration
        return k * mica.cos(value - self.loc) - math.log(2 * math.pi) - _log_bessel_ratio_free(0, k)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with mica.no_grad():  # rejection from a wrapped Cauchy (Best and Fisher, 1979)
            shape = self._extended_shape(sample_shape)
            loc, k = self.loc.double().expand(shape), self.concentration.double().expand(shape)
            tau = 1 + (1 + 4 * k**2).sqrt()
            rho = (tau - (2 * tau).sqrt()) / (2 * k)
            r = mica.where(k < 1e-5, 1 / k + k, (1 + rho**2) / (2 * rho))
            x = mica.zeros(shape, dtype=mica.float64)
            done = mica.zeros(shape, dtype=mica.bool)
            while not done.all():
                u = loc.new_empty((3, *shape)).uniform_()
                z = mica.cos(math.pi * u[0])
                f = (1 + r * z) / (r + z)
                c = k * (r - f)
                accept = ((c * (2 - c) - u[1]) > 0) | ((c / u[1]).log() + 1 - c >= 0)
                # As in torch, what was accepted before is drawn again where it is accepted now.
                x = mica.where(accept, (u[2] - 0.5).sign() * f.acos(), x)
                done = done | accept
            return ((x + math.pi + loc) % (2 * math.pi) - math.pi).to(self.loc.dtype)
