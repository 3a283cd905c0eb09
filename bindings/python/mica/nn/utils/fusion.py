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
    """Weight and bias of the convolution that does both."""
    return _folded(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, 1 if transpose else 0)


def fuse_linear_bn_weights(
    linear_w: Tensor, linear_b: Any, bn_rm: Tensor, bn_rv: Tensor, bn_eps: float, bn_w: Tensor, bn_b: Tensor
) -> tuple[Parameter, Parameter]:
    """Weight and bias of the linear layer that does both."""
    return _folded(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, 0)


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """A copy of a convolution in evaluation mode that does both."""
    if conv.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    fused = copy.deepcopy(conv)
    norm = (bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias)
    fused.weight, fused.bias = fuse_conv_bn_weights(fused.weight, fused.bias, *norm, transpose=transpose)
    return fused


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """A copy of a linear layer in evaluation mode that does both."""
    if linear.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    if linear.out_features != bn.num_features and bn.num_features != 1:
        raise AssertionError("To fuse, linear.out_features == bn.num_features or bn.num_features == 1")
    fused = copy.deepcopy(linear)
    norm = (bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias)
    fused.weight, fused.bias = fuse_linear_bn_weights(fused.weight, fused.bias, *norm)
    return fused
