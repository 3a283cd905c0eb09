"""Batch norms folded into the layer before them, for inference."""

from __future__ import annotations

import copy
from typing import Any

import mica
from mica._C import Tensor
from mica.nn.parameter import Parameter


def _folded(
    weight: Tensor, bias: Any, mean: Tensor, var: Tensor, eps: float, gamma: Any, beta: Any, dim: int
) -> tuple[Parameter, Parameter]:
    bias = mica.zeros_like(mean) if bias is None else bias
    gamma = mica.ones_like(mean) if gamma is None else gamma
    beta = mica.zeros_like(mean) if beta is None else beta
    scale = gamma * mica.rsqrt(var + eps)
    shape = [1] * weight.ndim
    shape[dim] = -1
    new_weight = (weight * scale.reshape(shape)).to(weight.dtype)
    new_bias = ((bias - mean) * scale + beta).to(bias.dtype)
    return Parameter(new_weight.detach(), weight.requires_grad), Parameter(
        new_bias.detach(), bias.requires_grad
    )


def _check_fixed(layer: Any, bn: Any) -> None:
    """Refuses what depends on the batch."""
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError(
            "bn.running_mean and bn.running_var must not be None: the norm has no statistics."
        )


def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Any,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Any,
    bn_b: Any,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """Weight and bias of the convolution that does what another and its batch norm do in evaluation.

    As `torch.nn.utils.fuse_conv_bn_weights`.

    Args:
        conv_w (Tensor): The convolution's weight, `(out, in / groups, *kernel)`;
            `(in, out / groups, *kernel)` if `transpose`.
        conv_b (Tensor or None): Its bias, `(out,)`.
        bn_rm (Tensor): The running mean, `(out,)`.
        bn_rv (Tensor): The running variance, `(out,)`.
        bn_eps (float): What the norm adds to the variance.
        bn_w (Tensor or None): The norm's weight, `(out,)`.
        bn_b (Tensor or None): The norm's bias, `(out,)`.
        transpose (bool): The convolution is a transposed one. Default: False.

    Returns:
        tuple of 2 Parameter: Weight and bias, of the shapes and dtypes of those given.

    Example:
        >>> one, four = mica.ones(1), mica.full((1,), 4.0)
        >>> weight, bias = mica.nn.utils.fuse_conv_bn_weights(mica.ones(1, 1, 1), None, one, four, 0.0, None, None)
        >>> weight.detach(), bias.detach()
        (tensor([[[0.5000]]]), tensor([-0.5000]))
    """
    return _folded(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, 1 if transpose else 0)


def fuse_linear_bn_weights(
    linear_w: Tensor, linear_b: Any, bn_rm: Tensor, bn_rv: Tensor, bn_eps: float, bn_w: Tensor, bn_b: Tensor
) -> tuple[Parameter, Parameter]:
    """Weight and bias of the linear layer that does what another and its batch norm do in evaluation.

    As `torch.nn.utils.fuse_linear_bn_weights`.

    Args:
        linear_w (Tensor): The layer's weight, `(out, in)`.
        linear_b (Tensor or None): Its bias, `(out,)`.
        bn_rm (Tensor): The running mean, `(out,)` or `(1,)`.
        bn_rv (Tensor): The running variance, `(out,)` or `(1,)`.
        bn_eps (float): What the norm adds to the variance.
        bn_w (Tensor): The norm's weight, `(out,)` or `(1,)`.
        bn_b (Tensor): The norm's bias, `(out,)` or `(1,)`.

    Returns:
        tuple of 2 Parameter: Weight and bias, of the shapes and dtypes of those given.

    Example:
        >>> one, four = mica.ones(1), mica.full((1,), 4.0)
        >>> weight, bias = mica.nn.utils.fuse_linear_bn_weights(mica.ones(1, 1), one, one, four, 0.0, one, one)
        >>> weight.detach(), bias.detach()
        (tensor([[0.5000]]), tensor([1.]))
    """
    return _folded(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, 0)


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """A convolution that does what a convolution and the batch norm after it do in evaluation, in one step.

    As `torch.nn.utils.fuse_conv_bn_eval`.

    Args:
        conv (Module): A convolution in evaluation mode; it is copied.
        bn (Module): A batch norm in evaluation mode, with running statistics.
        transpose (bool): The convolution is a transposed one. Default: False.

    Returns:
        Module: Of the class of `conv`, with a bias.

    Raises:
        AssertionError: One of the two is in training mode, or the norm has no running statistics.

    Example:
        >>> conv, norm = mica.nn.Conv2d(3, 4, 2).eval(), mica.nn.BatchNorm2d(4).eval()
        >>> fused = mica.nn.utils.fuse_conv_bn_eval(conv, norm)
        >>> x = mica.ones(1, 3, 5, 5)
        >>> mica.allclose(fused(x), norm(conv(x)), atol=1e-6)
        True
    """
    _check_fixed(conv, bn)
    fused = copy.deepcopy(conv)
    norm = (bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias)
    fused.weight, fused.bias = fuse_conv_bn_weights(fused.weight, fused.bias, *norm, transpose=transpose)
    return fused


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """A linear layer that does what a linear layer and the batch norm after it do in evaluation, in one step.

    As `torch.nn.utils.fuse_linear_bn_eval`.

    Args:
        linear (Module): A linear layer in evaluation mode; it is copied.
        bn (Module): A `BatchNorm1d` in evaluation mode, with running statistics, of as many features or of
            one.

    Returns:
        Module: Of the class of `linear`, with a bias.

    Raises:
        AssertionError: One of the two is in training mode, the norm has no running statistics, or the
            features do not agree.

    Example:
        >>> linear, norm = mica.nn.Linear(3, 4).eval(), mica.nn.BatchNorm1d(4).eval()
        >>> fused = mica.nn.utils.fuse_linear_bn_eval(linear, norm)
        >>> mica.allclose(fused(mica.ones(2, 3)), norm(linear(mica.ones(2, 3))), atol=1e-6)
        True
    """
    _check_fixed(linear, bn)
    if linear.out_features != bn.num_features and bn.num_features != 1:
        raise AssertionError("To fuse, linear.out_features == bn.num_features or bn.num_features == 1")
    fused = copy.deepcopy(linear)
    norm = (bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias)
    fused.weight, fused.bias = fuse_linear_bn_weights(fused.weight, fused.bias, *norm)
    return fused
