"""Ready parametrisations."""

from __future__ import annotations

from mica._C import Tensor
from mica.nn.modules.module import Module
from mica.nn.utils._orthogonal import orthogonal as orthogonal
from mica.nn.utils._spectral_norm import _SpectralNorm as _SpectralNorm, parametrized as spectral_norm
from mica.nn.utils._weight_norm import norm_except, scaled
from mica.nn.utils.parametrize import register_parametrization


class _WeightNorm(Module):
    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return scaled(weight_g, weight_v, self.dim)

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return norm_except(weight, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Makes the tensor `name` the product of a norm, original0, and a direction, original1."""
    return register_parametrization(module, name, _WeightNorm(dim), unsafe=True)


__all__ = ["orthogonal", "spectral_norm", "weight_norm"]
