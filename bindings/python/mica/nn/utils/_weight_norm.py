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
    """The hook of `weight_norm`, which computes the parameter `name` before each call.

    As `torch.nn.utils.weight_norm.WeightNorm`. `weight_norm` makes and registers it.

    Args:
        name (str): Of the parameter.
        dim (int or None): The dimension over which norms are not taken; None for one norm of all.
    """

    def __init__(self, name: str, dim: int | None) -> None:
        self.name, self.dim = name, dim

    def compute_weight(self, module: Module) -> Tensor:
        """The parameter that the module's norm and direction make: `g * v / |v|`.

        Args:
            module (Module): It has the parameters `name`_g and `name`_v.

        Returns:
            Tensor: Of the shape of `name`_v.
        """
        return scaled(getattr(module, self.name + "_g"), getattr(module, self.name + "_v"), self.dim)

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Splits a parameter into a norm and a direction that are learned apart: `weight = g * v / |v|`.

    As `torch.nn.utils.weight_norm` (Salimans and Kingma, 2016). The module gets the parameters `weight_g` and
    `weight_v`, and computes `weight` before each call. `mica.nn.utils.parametrizations.weight_norm` is the
    newer way.

    Args:
        module (Module): Changed in place.
        name (str): Of the parameter. Default: `weight`.
        dim (int or None): The dimension each of whose entries has a norm of its own, usually that of the
            outputs; None for one norm of all. Default: 0.

    Returns:
        Module: `module`.

    Raises:
        RuntimeError: The parameter is weight-normalised already.
        AttributeError: The module has no `name`.
        ValueError: `name` is no parameter, or has no shape yet.

    Example:
        >>> layer = mica.nn.utils.weight_norm(mica.nn.Linear(2, 3))
        >>> layer.weight_g.shape, layer.weight_v.shape
        (mica.Size([3, 1]), mica.Size([3, 2]))
    """
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
    """Takes back `weight_norm`: the parameter is one again, with its present value.

    As `torch.nn.utils.remove_weight_norm`.

    Args:
        module (Module): Changed in place.
        name (str): Of the parameter. Default: `weight`.

    Returns:
        Module: `module`.

    Raises:
        ValueError: The parameter is not weight-normalised.

    Example:
        >>> layer = mica.nn.utils.weight_norm(mica.nn.Linear(2, 3))
        >>> [name for name, _ in mica.nn.utils.remove_weight_norm(layer).named_parameters()]
        ['bias', 'weight']
    """
    for number, hook in module._forward_pre_hooks.items():
        if isinstance(hook, WeightNorm) and hook.name == name:
            weight = hook.compute_weight(module)
            for gone in (name, name + "_g", name + "_v"):
                delattr(module, gone)
            setattr(module, name, Parameter(weight.detach()))
            del module._forward_pre_hooks[number]
            return module
    raise ValueError(f"The parameter ({name}) of {type(module).__name__} is not weight-normalised.")
