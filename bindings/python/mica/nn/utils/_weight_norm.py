"""Weight normalisation (Salimans and Kingma, 2016) by a hook before forward, the older
way; mica.nn.utils.parametrizations.weight_norm is the newer."""

from __future__ import annotations

from typing import Any

import mica
from mica._C import Tensor
from mica.nn.modules.module import Module
from mica.nn.parameter import Parameter, check_materialized


def norm_except(v: Tensor, dim: int | None) -> Tensor:
    """The norm over all dimensions but `dim` (None: over all), in a shape that broadcasts with `v`."""
    if dim is None or dim == -1:
        return v.norm()
    dims = [d for d in range(v.ndim) if d != dim % v.ndim]
    return mica.linalg_vector_norm(v, 2, dims, True) if dims else v.abs()


def scaled(g: Tensor, v: Tensor, dim: int | None) -> Tensor:
    """g * v / |v|."""
    return v * (g / norm_except(v, dim))


class WeightNorm:
    """The hook that computes the parameter `name` before each forward()."""

    def __init__(self, name: str, dim: int | None) -> None:
        self.name, self.dim = name, dim

    def compute_weight(self, module: Module) -> Tensor:
        """The parameter that the module's norm and direction make."""
        return scaled(getattr(module, self.name + "_g"), getattr(module, self.name + "_v"), self.dim)

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Replaces the parameter `name` by its norm `name`_g and its direction `name`_v."""
    for hook in module._forward_pre_hooks.values():
        if isinstance(hook, WeightNorm) and hook.name == name:
            raise RuntimeError(f"The parameter ({name}) is weight-normalised already.")
    weight = getattr(module, name)
    check_materialized(module, name, weight)
    if not isinstance(weight, Parameter):
        raise ValueError(
            f"The attribute ({name}) of {type(module).__name__} is no Parameter, so it cannot be normalised."
        )
    del module._parameters[name]
    module.register_parameter(name + "_g", Parameter(norm_except(weight, dim).detach()))
    module.register_parameter(name + "_v", Parameter(weight.detach()))
    hook = WeightNorm(name, dim)
    hook(module, None)
    module.register_forward_pre_hook(hook)
    return module


def remove_weight_norm(module: Module, name: str = "weight") -> Module:
    """Makes `name` one parameter again."""
    for number, hook in module._forward_pre_hooks.items():
        if isinstance(hook, WeightNorm) and hook.name == name:
            weight = hook.compute_weight(module)
            for gone in (name, name + "_g", name + "_v"):
                delattr(module, gone)
            setattr(module, name, Parameter(weight.detach()))
            del module._forward_pre_hooks[number]
            return module
    raise ValueError(f"The parameter ({name}) of {type(module).__name__} is not weight-normalised.")
