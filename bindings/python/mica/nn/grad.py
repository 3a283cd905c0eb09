"""Gradients of convolutions by hand, as torch.nn.grad has them: for the input and for the weight.

Each function takes the shape of what it differentiates for; the rest of the arguments are the
convolution's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mica
from mica._C import Tensor
from mica.nn.modules.utils import _ntuple


def _backward(
    input: Tensor, weight: Tensor, grad_output: Tensor, options: tuple[Any, ...], for_input: bool
) -> Tensor:
    count = grad_output.ndim - 2
    stride, padding, dilation = map(_ntuple(count), options[:3])
    found = mica.ops.mica.convolution_backward.default(
        grad_output,
        input,
        weight,
        None,
        stride,
        padding,
        dilation,
        False,
        [0] * count,
        options[3],
        [for_input, not for_input, False],
    )
    result: Tensor = found[0 if for_input else 1]
    return result


def _for_input(dims: int) -> Callable[..., Tensor]:
    def gradient(
        input_size: Any,
        weight: Tensor,
        grad_output: Tensor,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:
        input = grad_output.new_empty(1).expand(input_size)
        return _backward(input, weight, grad_output, (stride, padding, dilation, groups), True)

    gradient.__name__ = gradient.__qualname__ = f"conv{dims}d_input"
    gradient.__doc__ = f"The gradient of conv{dims}d for its input, of shape `input_size`."
    return gradient


def _for_weight(dims: int) -> Callable[..., Tensor]:
    def gradient(
        input: Tensor,
        weight_size: Any,
        grad_output: Tensor,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:
        weight = grad_output.new_empty(1).expand(weight_size)
        return _backward(input, weight, grad_output, (stride, padding, dilation, groups), False)

    gradient.__name__ = gradient.__qualname__ = f"conv{dims}d_weight"
    gradient.__doc__ = f"The gradient of conv{dims}d for its weight, of shape `weight_size`."
    return gradient


conv1d_input, conv2d_input, conv3d_input = (_for_input(dims) for dims in (1, 2, 3))
conv1d_weight, conv2d_weight, conv3d_weight = (_for_weight(dims) for dims in (1, 2, 3))
