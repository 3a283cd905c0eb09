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

_TEXT = """The gradient of `conv{dims}d` for its {what}.

As `torch.nn.grad.conv{dims}d_{what}`. Autograd computes it by itself; this is for code that does without.

Args:
    {args}
    grad_output (Tensor): The gradient for the result, `(N, out, {out})`.
    stride (int or tuple of {dims} int): As the convolution had it. Default: 1.
    padding (int or tuple of {dims} int): As the convolution had it. Default: 0.
    dilation (int or tuple of {dims} int): As the convolution had it. Default: 1.
    groups (int): As the convolution had it. Default: 1.

Returns:
    Tensor: Of the shape `{what}_size`.

Raises:
    RuntimeError: The shapes are not those of a convolution and its result.

Example:
    >>> from mica.nn.grad import conv{dims}d_{what}
    >>> conv{dims}d_{what}({example}).flatten()
    {result}
"""
_INPUT_ARGS = """input_size (sequence of int): The shape of the input, `(N, in, {sizes})`.
    weight (Tensor): `(out, in / groups, {kernel})`."""
_WEIGHT_ARGS = """input (Tensor): `(N, in, {sizes})`.
    weight_size (sequence of int): The shape of the weight, `(out, in / groups, {kernel})`."""


def _described(dims: int, what: str) -> str:
    """The docstring of a gradient; its example has one place with more than one window."""
    names = ["D", "H", "W"][-dims:] if dims > 1 else ["L"]
    sizes = ", ".join(names)
    kernel = ", ".join("k" + name for name in names)
    one = ", 1" * (dims - 1)
    shapes = {"size": f"(1, 1, 3{one})", "kernel": f"mica.ones(1, 1, 2{one})"}
    example = f"{shapes['size']}, {shapes['kernel']}, {shapes['kernel']}"
    result = "tensor([1., 2., 1.])"
    if what == "weight":
        example = f"mica.arange(3.).view(1, 1, 3{one}), (1, 1, 2{one}), {shapes['kernel']}"
        result = "tensor([1., 3.])"
    args = (_INPUT_ARGS if what == "input" else _WEIGHT_ARGS).format(sizes=sizes, kernel=kernel)
    out = ", ".join(name + "_out" for name in names)
    return _TEXT.format(dims=dims, what=what, args=args, out=out, example=example, result=result)


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
    gradient.__doc__ = _described(dims, "input")
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
    gradient.__doc__ = _described(dims, "weight")
    return gradient


conv1d_input, conv2d_input, conv3d_input = (_for_input(dims) for dims in (1, 2, 3))
conv1d_weight, conv2d_weight, conv3d_weight = (_for_weight(dims) for dims in (1, 2, 3))
