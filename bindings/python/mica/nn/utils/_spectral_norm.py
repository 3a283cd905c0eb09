"""Spectral normalisation (Miyato et al., 2018): a weight divided by its largest singular value, which
power iteration follows. spectral_norm() is the older way, by a hook; the parametrisation the newer."""

from __future__ import annotations

from typing import Any

import mica
from mica._C import Tensor
from mica.nn import functional as F
from mica.nn.modules.conv import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from mica.nn.modules.module import Module
from mica.nn.parameter import Parameter, check_materialized
from mica.nn.utils.parametrize import register_parametrization

_TRANSPOSED = (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)


def _matrix(weight: Tensor, dim: int) -> Tensor:
    if dim != 0:
        weight = weight.permute(dim, *[d for d in range(weight.dim()) if d != dim])
    return weight.reshape(weight.size(0), -1)


class SpectralNorm:
    """The hook of `spectral_norm`, which computes the parameter `name` of `name`_orig before each call.

    As `torch.nn.utils.spectral_norm.SpectralNorm`. `spectral_norm` makes and registers it.

    Args:
        name (str): Of the parameter. Default: `weight`.
        n_power_iterations (int): Steps of power iteration at each call in training, 1 or more. Default: 1.
        dim (int): The dimension that makes the rows of the matrix. Default: 0.
        eps (float): The least norm that divides in power iteration. Default: 1e-12.
    """

    _version = 1

    def __init__(
        self, name: str = "weight", n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12
    ) -> None:
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.name, self.n_power_iterations, self.dim, self.eps = name, n_power_iterations, dim, eps

    def compute_weight(self, module: Any, do_power_iteration: bool) -> Tensor:
        """The weight divided by its largest singular value.

        Args:
            module (Module): It has `name`_orig and the buffers `name`_u and `name`_v.
            do_power_iteration (bool): First improve the two vectors, in place.

        Returns:
            Tensor: Of the shape of the weight.
        """
        weight = getattr(module, f"{self.name}_orig")
        u, v = getattr(module, f"{self.name}_u"), getattr(module, f"{self.name}_v")
        matrix = _matrix(weight, self.dim)
        if do_power_iteration:
            with mica.no_grad():
                for _ in range(self.n_power_iterations):
                    v.copy_(F.normalize(mica.mv(matrix.t(), u), dim=0, eps=self.eps))
                    u.copy_(F.normalize(mica.mv(matrix, v), dim=0, eps=self.eps))
                u, v = u.clone(), v.clone()
        return weight / mica.dot(u, mica.mv(matrix, v))  # type: ignore[no-any-return]

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module, do_power_iteration=module.training))


def spectral_norm(
    module: Any, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Any:
    """Divides a parameter by its largest singular value at each call, so that the layer enlarges no vector.

    As `torch.nn.utils.spectral_norm` (Miyato et al., 2018). The value is estimated by power iteration, which
    goes on at each call in training; after some of them it is accurate. The module keeps the parameter
    `weight_orig` and the buffers `weight_u` and `weight_v`. `mica.nn.utils.parametrizations.spectral_norm` is
    the newer way.

    Args:
        module (Module): Changed in place.
        name (str): Of the parameter. Default: `weight`.
        n_power_iterations (int): Steps of power iteration at each call in training, 1 or more. Default: 1.
        eps (float): The least norm that divides in power iteration. Default: 1e-12.
        dim (int, optional): The dimension that makes the rows of the matrix, the others its columns. Default:
            1 for transposed convolutions, else 0.

    Returns:
        Module: `module`.

    Raises:
        RuntimeError: The parameter is normalised already.
        KeyError: The module has no parameter `name`.
        ValueError: The parameter is None or has no shape yet, or `n_power_iterations` is not positive.

    Example:
        >>> layer = mica.nn.utils.spectral_norm(mica.nn.Linear(3, 4))
        >>> [name for name, _ in layer.named_parameters()], [name for name, _ in layer.named_buffers()]
        (['bias', 'weight_orig'], ['weight_u', 'weight_v'])
    """
    for hook in module._forward_pre_hooks.values():
        if isinstance(hook, SpectralNorm) and hook.name == name:
            raise RuntimeError(f"Cannot register two spectral_norm hooks on the same parameter {name}")
    dim = (1 if isinstance(module, _TRANSPOSED) else 0) if dim is None else dim
    hook = SpectralNorm(name, n_power_iterations, dim, eps)
    weight = module._parameters[name]
    if weight is None:
        raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
    check_materialized(module, name, weight)
    with mica.no_grad():
        height, width = _matrix(weight, dim).size()
        u = F.normalize(weight.new_empty(height).normal_(0, 1), dim=0, eps=eps)
        v = F.normalize(weight.new_empty(width).normal_(0, 1), dim=0, eps=eps)
    delattr(module, name)
    module.register_parameter(f"{name}_orig", weight)
    setattr(module, name, weight.data)
    module.register_buffer(f"{name}_u", u)
    module.register_buffer(f"{name}_v", v)
    module.register_forward_pre_hook(hook)
    return module


def remove_spectral_norm(module: Any, name: str = "weight") -> Any:
    """Takes back `spectral_norm`: the parameter is one again, with its present value.

    As `torch.nn.utils.remove_spectral_norm`.

    Args:
        module (Module): Changed in place.
        name (str): Of the parameter. Default: `weight`.

    Returns:
        Module: `module`.

    Raises:
        ValueError: The parameter is not normalised.

    Example:
        >>> layer = mica.nn.utils.spectral_norm(mica.nn.Linear(3, 4))
        >>> [name for name, _ in mica.nn.utils.remove_spectral_norm(layer).named_parameters()]
        ['bias', 'weight']
    """
    for number, hook in module._forward_pre_hooks.items():
        if isinstance(hook, SpectralNorm) and hook.name == name:
            with mica.no_grad():
                weight = hook.compute_weight(module, do_power_iteration=False)
            for gone in (name, f"{name}_u", f"{name}_v", f"{name}_orig"):
                delattr(module, gone)
            module.register_parameter(name, Parameter(weight.detach()))
            del module._forward_pre_hooks[number]
            return module
    raise ValueError(f"spectral_norm of '{name}' not found in {module}")


class _SpectralNorm(Module):
    """The parametrisation, whose vectors are buffers `_u` and `_v`."""

    def __init__(self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        super().__init__()
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.dim = dim if dim >= 0 else dim + weight.ndim
        self.eps, self.n_power_iterations = eps, n_power_iterations
        if weight.ndim > 1:
            with mica.no_grad():
                matrix = _matrix(weight, self.dim)
                height, width = matrix.size()
                u, v = matrix.new_empty(height).normal_(0, 1), matrix.new_empty(width).normal_(0, 1)
            self.register_buffer("_u", F.normalize(u, dim=0, eps=eps))
            self.register_buffer("_v", F.normalize(v, dim=0, eps=eps))
            self._power_method(matrix.detach(), 15)

    def _power_method(self, matrix: Tensor, count: int) -> None:
        with mica.no_grad():
            for _ in range(count):
                self._u.copy_(F.normalize(mica.mv(matrix, self._v), dim=0, eps=self.eps))
                self._v.copy_(F.normalize(mica.mv(matrix.mH, self._u), dim=0, eps=self.eps))

    def forward(self, weight: Tensor) -> Tensor:
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = _matrix(weight, self.dim)
        if self.training:
            self._power_method(matrix.detach(), self.n_power_iterations)
        u, v = self._u.clone(), self._v.clone()
        return weight / mica.vdot(u, mica.mv(matrix, v))

    def right_inverse(self, value: Tensor) -> Tensor:
        return value


def parametrized(
    module: Any, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Any:
    """Divides a tensor of a module by its largest singular value, so that the layer enlarges no vector.

    As `torch.nn.utils.parametrizations.spectral_norm` (Miyato et al., 2018). The value is estimated by power
    iteration, which goes on whenever the tensor is read in training. A vector is divided by its norm.

    Args:
        module (Module): Changed in place.
        name (str): Of the parameter or buffer. Default: `weight`.
        n_power_iterations (int): Steps of power iteration at each reading in training, 1 or more. Default: 1.
        eps (float): The least norm that divides. Default: 1e-12.
        dim (int, optional): The dimension that makes the rows of the matrix, the others its columns. Default:
            1 for transposed convolutions, else 0.

    Returns:
        Module: `module`.

    Raises:
        ValueError: The module has no such tensor, or `n_power_iterations` is not positive.

    Example:
        >>> _ = mica.manual_seed(0)
        >>> layer = mica.nn.utils.parametrizations.spectral_norm(mica.nn.Linear(3, 4))
        >>> round(mica.linalg.matrix_norm(layer.weight, 2).item(), 2)
        1.0
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    dim = (1 if isinstance(module, _TRANSPOSED) else 0) if dim is None else dim
    return register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, dim, eps))
