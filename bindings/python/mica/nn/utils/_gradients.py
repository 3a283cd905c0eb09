"""Helpers for training loops: gradient clipping, flat parameter vectors."""

from __future__ import annotations

import warnings
from collections.abc import Generator, Iterable

import mica
from mica._C import Tensor


def _listed(tensors: Tensor | Iterable[Tensor]) -> list[Tensor]:
    return [tensors] if isinstance(tensors, Tensor) else list(tensors)


def get_total_norm(
    tensors: Tensor | Iterable[Tensor],
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The norm of all tensors as if they were one vector.

    As `torch.nn.utils.get_total_norm`.

    Args:
        tensors (Tensor or iterable of Tensor): Of any shapes, on any devices.
        norm_type (float): Order of the norm; `inf` for the largest magnitude. Default: 2.
        error_if_nonfinite (bool): Raise where the norm is infinite or NaN. Default: False.
        foreach (bool, optional): Without effect: all tensors are always taken at once.

    Returns:
        Tensor: The norm, `()`, on the first tensor's device; 0 for no tensors.

    Raises:
        RuntimeError: The norm is not finite, and `error_if_nonfinite` is True.

    Example:
        >>> mica.nn.utils.get_total_norm([mica.ones(4), mica.full((3,), 2.0)])
        tensor(4.)
    """
    items = _listed(tensors)
    if not items:
        return mica.tensor(0.0)
    norm_type = float(norm_type)
    norms = mica._foreach_norm(items, norm_type)
    first = norms[0].device
    total = mica.linalg_vector_norm(mica.stack([n.to(first) for n in norms]), norm_type)
    if error_if_nonfinite and not mica.isfinite(total):
        raise RuntimeError(
            f"The norm of the gradients is not finite ({total.item()}), so they cannot be clipped; "
            "error_if_nonfinite=False scales them all the same."
        )
    return total


def clip_grads_with_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    total_norm: Tensor,
    foreach: bool | None = None,
) -> None:
    """Scales the gradients of parameters by `max_norm / total_norm`, in place, where that is below 1.

    As `torch.nn.utils.clip_grads_with_norm_`: the second half of `clip_grad_norm_`, for a norm that was found
    otherwise.

    Args:
        parameters (Tensor or iterable of Tensor): Those without `grad` are left out.
        max_norm (float): The norm that the gradients shall have at most.
        total_norm (Tensor): The norm that they have, `()`, as `get_total_norm` gives it.
        foreach (bool, optional): Without effect: all gradients are always taken at once.

    Example:
        >>> weight = mica.zeros(2, requires_grad=True)
        >>> weight.grad = mica.tensor([3.0, 4.0])
        >>> mica.nn.utils.clip_grads_with_norm_(weight, 1.0, mica.tensor(5.0))
        >>> weight.grad
        tensor([0.6000, 0.8000])
    """
    grads = _gradients(_listed(parameters))
    if not grads:
        return
    with mica.no_grad():
        factor = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
        for on_device in _by_device(grads):
            mica._foreach_mul_(on_device, factor.to(on_device[0].device))


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scales the gradients of parameters, in place, so that their joint norm is at most `max_norm`.

    As `torch.nn.utils.clip_grad_norm_`. Called between `backward()` and the optimizer's `step()`.

    Args:
        parameters (Tensor or iterable of Tensor): Those without `grad` are left out.
        max_norm (float): The norm that the gradients shall have at most.
        norm_type (float): Order of the norm; `inf` for the largest magnitude. Default: 2.
        error_if_nonfinite (bool): Raise where the norm is infinite or NaN, instead of scaling by it. Default:
            False.
        foreach (bool, optional): Without effect: all gradients are always taken at once.

    Returns:
        Tensor: The norm before, `()`.

    Raises:
        RuntimeError: The norm is not finite, and `error_if_nonfinite` is True.

    Warns:
        UserWarning: `parameters` is a generator without elements.

    Example:
        >>> weight = mica.zeros(2, requires_grad=True)
        >>> weight.grad = mica.tensor([3.0, 4.0])
        >>> mica.nn.utils.clip_grad_norm_(weight, max_norm=1.0)
        tensor(5.)
        >>> weight.grad
        tensor([0.6000, 0.8000])
    """
    items = _listed(parameters)
    if isinstance(parameters, Generator) and not items:
        warnings.warn("`parameters` is an empty generator: no gradient is clipped.", stacklevel=2)
    with mica.no_grad():
        total = get_total_norm(_gradients(items), norm_type, error_if_nonfinite)
    clip_grads_with_norm_(items, max_norm, total)
    return total


def clip_grad_value_(
    parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None
) -> None:
    """Clamps every element of the gradients of parameters to `[-clip_value, clip_value]`, in place.

    As `torch.nn.utils.clip_grad_value_`.

    Args:
        parameters (Tensor or iterable of Tensor): Those without `grad` are left out.
        clip_value (float): The largest magnitude, not negative.
        foreach (bool, optional): Without effect: all gradients are always taken at once.

    Example:
        >>> weight = mica.zeros(2, requires_grad=True)
        >>> weight.grad = mica.tensor([3.0, -0.5])
        >>> mica.nn.utils.clip_grad_value_(weight, 1.0)
        >>> weight.grad
        tensor([ 1.0000, -0.5000])
    """
    grads = _gradients(_listed(parameters))
    if grads:
        with mica.no_grad():
            mica._foreach_clamp_min_(grads, -float(clip_value))
            mica._foreach_clamp_max_(grads, float(clip_value))


_get_total_norm, _clip_grads_with_norm_ = get_total_norm, clip_grads_with_norm_  # their older names


def _gradients(parameters: list[Tensor]) -> list[Tensor]:
    return [p.grad for p in parameters if p.grad is not None]


def _by_device(tensors: list[Tensor]) -> list[list[Tensor]]:
    found: dict[object, list[Tensor]] = {}
    for tensor in tensors:
        found.setdefault(tensor.device, []).append(tensor)
    return list(found.values())


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """The elements of all parameters, one after another, as one vector.

    As `torch.nn.utils.parameters_to_vector`; gradients of the vector reach the parameters.

    Args:
        parameters (iterable of Tensor): At least one, on one device.

    Returns:
        Tensor: `(number of elements,)`, a copy.

    Raises:
        ValueError: There are no parameters.

    Example:
        >>> mica.nn.utils.parameters_to_vector([mica.ones(2, 2), mica.zeros(1)])
        tensor([1., 1., 1., 1., 0.])
    """
    return mica.cat([p.reshape(-1) for p in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Gives parameters the values of a vector: the inverse of `parameters_to_vector`.

    As `torch.nn.utils.vector_to_parameters`: the parameters become views of the vector, so that they share
    its memory. What is left of a longer vector is not used.

    Args:
        vec (Tensor): `(number of elements,)`.
        parameters (iterable of Tensor): Changed in place.

    Raises:
        TypeError: `vec` is no Tensor.
        RuntimeError: `vec` has too few elements.

    Example:
        >>> layer = mica.nn.Linear(2, 1)
        >>> mica.nn.utils.vector_to_parameters(mica.arange(3.), layer.parameters())
        >>> layer.weight.detach(), layer.bias.detach()
        (tensor([[0., 1.]]), tensor([2.]))
    """
    if not isinstance(vec, Tensor):
        raise TypeError(
            f"The vector of parameters must be a Tensor; this value is of type ({type(vec).__name__})."
        )
    start = 0
    for p in parameters:
        p.data = vec[start : start + p.numel()].view_as(p)
        start += p.numel()
