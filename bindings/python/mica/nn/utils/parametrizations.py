"""Ready parametrisations."""

from __future__ import annotations

from typing import Any

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
    register_parametrization(module, name, _WeightNorm(dim), unsafe=True)
    old, new = (f"{name}_g", f"{name}_v"), f"parametrizations.{name}.original"

    def read_older(state: dict[str, Any], prefix: str, *_: Any) -> None:
        """States of mica.nn.utils.weight_norm() load too."""
        if all(prefix + key in state for key in old):
            for i, key in enumerate(old):
                state[f"{prefix}{new}{i}"] = state.pop(prefix + key)

    module._register_load_state_dict_pre_hook(read_older)
    return module


__all__ = ["orthogonal", "spectral_norm", "weight_norm"]
