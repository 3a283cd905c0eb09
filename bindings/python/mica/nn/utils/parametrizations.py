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
    """Splits a tensor of a module into a norm and a direction that are learned apart: `weight = g * v / |v|`.

    As `torch.nn.utils.parametrizations.weight_norm` (Salimans and Kingma, 2016). `g` is
    `parametrizations.weight.original0`, `v` is `original1`. States of the older `mica.nn.utils.weight_norm`
    load too.

    Args:
        module (Module): Changed in place.
        name (str): Of the parameter or buffer. Default: `weight`.
        dim (int or None): The dimension each of whose entries has a norm of its own, usually that of the
            outputs; None for one norm of all. Default: 0.

    Returns:
        Module: `module`.

    Raises:
        ValueError: The module has no such tensor.

    Example:
        >>> layer = mica.nn.utils.parametrizations.weight_norm(mica.nn.Linear(2, 3))
        >>> parts = layer.parametrizations.weight
        >>> parts.original0.shape, parts.original1.shape
        (mica.Size([3, 1]), mica.Size([3, 2]))
    """
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
