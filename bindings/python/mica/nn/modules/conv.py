"""Convolutions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import mica
from mica._C import Tensor
from mica.nn import functional as F, init
from mica.nn.modules.module import Module
from mica.nn.modules.utils import _ntuple
from mica.nn.parameter import Parameter


class _ConvNd(Module):
    """What all convolutions are; subclasses of other people give it tuples, in torch's order."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: tuple[int, ...],
        stride: tuple[int, ...],
        padding: Any,
        dilation: tuple[int, ...],
        transposed: bool,
        output_padding: tuple[int, ...],
        groups: int,
        bias: bool,
        padding_mode: str,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if groups <= 0:
            raise ValueError(f"The number of groups ({groups}) must be positive.")
        for name, channels in (("in_channels", in_channels), ("out_channels", out_channels)):
            if channels % groups:
                raise ValueError(f"{name} must be divisible by groups, but got {channels} and {groups}.")
        if padding_mode not in ("zeros", "reflect", "replicate", "circular"):
            raise ValueError(
                f"padding_mode must be one of zeros, reflect, replicate and circular, but got padding_mode='{padding_mode}'."
            )
        if isinstance(padding, str) and padding not in ("same", "valid"):
            raise ValueError(
                f"Invalid padding string {padding!r}, should be one of same and valid, or numbers."
            )
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = kernel_size
        self.stride = stride
        self.dilation = dilation
        self.groups = groups
        self.padding_mode = padding_mode
        self.padding: Any = padding
        if padding == "same" and any(s != 1 for s in self.stride):
            raise ValueError("The padding 'same' needs a stride of 1.")
        self.transposed = transposed
        self.output_padding: tuple[int, ...] = output_padding
        self._reversed_padding_repeated_twice = self._padding_by_dimension()
        if self.transposed:
            shape = (in_channels, out_channels // groups, *self.kernel_size)
        else:
            shape = (out_channels, in_channels // groups, *self.kernel_size)
        self.weight = Parameter(mica.empty(shape, device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(mica.empty(out_channels, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws weight and bias anew."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            if fan_in != 0:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        n = len(self.kernel_size)
        text = (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        )
        if self.padding != (0,) * n:
            text += f", padding={self.padding}"
        if self.output_padding != (0,) * n:
            text += f", output_padding={self.output_padding}"
        if self.dilation != (1,) * n:
            text += f", dilation={self.dilation}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        if self.padding_mode != "zeros":
            text += f", padding_mode={self.padding_mode}"
        return text

    def _padding_by_dimension(self) -> Any:
        """The widths that F.pad takes: before and after each dimension, the last first."""
        if not isinstance(self.padding, str):
            return tuple(width for width in reversed(self.padding) for _ in range(2))
        widths: list[int] = []
        for kernel, dilation in zip(self.kernel_size, self.dilation):
            total = dilation * (kernel - 1) if self.padding == "same" else 0
            widths = [total // 2, total - total // 2, *widths]
        return widths


class _Convolution(_ConvNd):
    """The three plain convolutions: numbers stand for tuples of them."""

    _dims: int

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        sizes = _ntuple(self._dims)
        super().__init__(
            in_channels,
            out_channels,
            sizes(kernel_size),
            sizes(stride),
            padding if isinstance(padding, str) else sizes(padding),
            sizes(dilation),
            False,
            sizes(0),
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """The convolution with this weight and bias; subclasses replace it, or give it others."""
        function = (F.conv1d, F.conv2d, F.conv3d)[self._dims - 1]
        padding = self.padding
        if self.padding_mode != "zeros":
            input, padding = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode), 0
        return function(input, weight, bias, self.stride, padding, self.dilation, self.groups)

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)


class Conv1d(_Convolution):
    """Convolution over sequences: how well each filter fits every window of the input (a cross-correlation).

    As `torch.nn.Conv1d`.

    Args:
        in_channels (int): Channels of the input.
        out_channels (int): Channels of the output: the number of filters.
        kernel_size (int): Length of a window, in elements.
        stride (int): Step from window to window, in elements. Default: 1.
        padding (int or str): Elements added on both sides; "valid" adds none, "same"
            so many that the output has the input's size, for a stride of 1. Default: 0.
        dilation (int): Step from element to element of a window, in elements. Default: 1.
        groups (int): Parts that the channels fall into, each with filters of its own; divides
            `in_channels` and `out_channels`. Default: 1.
        bias (bool): Whether each output channel has a bias. Default: True.
        padding_mode (str): What is added: "zeros"; "reflect", the input mirrored at its edge; "replicate",
            the edge repeated; "circular", the other end. Default: "zeros".
        device (device, optional): Where the parameters live. Default: the default device.
        dtype (dtype, optional): Of the parameters. Default: the default dtype.

    Attributes:
        weight (Parameter): `(out_channels, in_channels / groups, *kernel_size)`, drawn uniformly from
            `[-bound, bound]` with `bound = 1 / sqrt(number of weights of a filter)`.
        bias (Parameter): `(out_channels,)`, drawn likewise, or None.

    Shape:
        - Input: `(N, in_channels, L)` or `(in_channels, L)`.
        - Output: `(N, out_channels, L_out)` or `(out_channels, L_out)`.
        - `L_out = floor((L + 2 * padding - dilation * (kernel_size - 1) - 1) / stride + 1)`.

    Raises:
        ValueError: `groups` does not divide the channels, a padding or padding mode is unknown, or "same"
            meets a stride above 1.
        RuntimeError: The input has other dimensions or channels, or is smaller than a window.

    Example:
        >>> layer = mica.nn.Conv1d(3, 8, kernel_size=3, padding=1)
        >>> layer(mica.ones(2, 3, 5)).shape
        mica.Size([2, 8, 5])
    """

    _dims = 1


class Conv2d(_Convolution):
    """Convolution over images: how well each filter fits every window of the input (a cross-correlation).

    As `torch.nn.Conv2d`.

    Args:
        in_channels (int): Channels of the input.
        out_channels (int): Channels of the output: the number of filters.
        kernel_size (int or tuple of 2 int): Height and width of a window, in pixels.
        stride (int or tuple of 2 int): Step from window to window, in pixels. Default: 1.
        padding (int, tuple of 2 int or str): Pixels added on both sides of each dimension; "valid" adds none,
            "same" so many that the output has the input's size, for a stride of 1. Default: 0.
        dilation (int or tuple of 2 int): Step from element to element of a window, in pixels. Default: 1.
        groups (int): Parts that the channels fall into, each with filters of its own; divides
            `in_channels` and `out_channels`. Default: 1.
        bias (bool): Whether each output channel has a bias. Default: True.
        padding_mode (str): What is added: "zeros"; "reflect", the input mirrored at its edge; "replicate",
            the edge repeated; "circular", the other end. Default: "zeros".
        device (device, optional): Where the parameters live. Default: the default device.
        dtype (dtype, optional): Of the parameters. Default: the default dtype.

    Attributes:
        weight (Parameter): `(out_channels, in_channels / groups, *kernel_size)`, drawn uniformly from
            `[-bound, bound]` with `bound = 1 / sqrt(number of weights of a filter)`.
        bias (Parameter): `(out_channels,)`, drawn likewise, or None.

    Shape:
        - Input: `(N, in_channels, H, W)` or `(in_channels, H, W)`.
        - Output: `(N, out_channels, H_out, W_out)` or `(out_channels, H_out, W_out)`.
        - `H_out = floor((H + 2 * padding - dilation * (kernel_size - 1) - 1) / stride + 1)`, `W_out`
          likewise.

    Raises:
        ValueError: `groups` does not divide the channels, a padding or padding mode is unknown, or "same"
            meets a stride above 1.
        RuntimeError: The input has other dimensions or channels, or is smaller than a window.

    Example:
        >>> layer = mica.nn.Conv2d(3, 8, kernel_size=3, padding=1)
        >>> layer(mica.ones(2, 3, 5, 5)).shape
        mica.Size([2, 8, 5, 5])
    """

    _dims = 2


class Conv3d(_Convolution):
    """Convolution over volumes: how well each filter fits every window of the input (a cross-correlation).

    As `torch.nn.Conv3d`.

    Args:
        in_channels (int): Channels of the input.
        out_channels (int): Channels of the output: the number of filters.
        kernel_size (int or tuple of 3 int): Depth, height and width of a window, in voxels.
        stride (int or tuple of 3 int): Step from window to window, in voxels. Default: 1.
        padding (int, tuple of 3 int or str): Voxels added on both sides of each dimension; "valid" adds none,
            "same" so many that the output has the input's size, for a stride of 1. Default: 0.
        dilation (int or tuple of 3 int): Step from element to element of a window, in voxels. Default: 1.
        groups (int): Parts that the channels fall into, each with filters of its own; divides
            `in_channels` and `out_channels`. Default: 1.
        bias (bool): Whether each output channel has a bias. Default: True.
        padding_mode (str): What is added: "zeros"; "reflect", the input mirrored at its edge; "replicate",
            the edge repeated; "circular", the other end. Default: "zeros".
        device (device, optional): Where the parameters live. Default: the default device.
        dtype (dtype, optional): Of the parameters. Default: the default dtype.

    Attributes:
        weight (Parameter): `(out_channels, in_channels / groups, *kernel_size)`, drawn uniformly from
            `[-bound, bound]` with `bound = 1 / sqrt(number of weights of a filter)`.
        bias (Parameter): `(out_channels,)`, drawn likewise, or None.

    Shape:
        - Input: `(N, in_channels, D, H, W)` or `(in_channels, D, H, W)`.
        - Output: `(N, out_channels, D_out, H_out, W_out)` or `(out_channels, D_out, H_out, W_out)`.
        - `H_out = floor((H + 2 * padding - dilation * (kernel_size - 1) - 1) / stride + 1)`, `D_out` and
          `W_out` likewise.

    Raises:
        ValueError: `groups` does not divide the channels, a padding or padding mode is unknown, or "same"
            meets a stride above 1.
        RuntimeError: The input has other dimensions or channels, or is smaller than a window.

    Example:
        >>> layer = mica.nn.Conv3d(3, 8, kernel_size=3, padding=1)
        >>> layer(mica.ones(2, 3, 5, 5, 5)).shape
        mica.Size([2, 8, 5, 5, 5])
    """

    _dims = 3


class _ConvTransposeNd(_ConvNd):
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: tuple[int, ...],
        stride: tuple[int, ...],
        padding: tuple[int, ...],
        dilation: tuple[int, ...],
        transposed: bool,
        output_padding: tuple[int, ...],
        groups: int,
        bias: bool,
        padding_mode: str,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if padding_mode != "zeros":
            raise ValueError(f"A transposed convolution pads with zeros only, not in mode ({padding_mode}).")
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            transposed,
            output_padding,
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _output_padding(
        self,
        input: Tensor,
        output_size: Sequence[int] | None,
        stride: Sequence[int],
        padding: Sequence[int],
        kernel_size: Sequence[int],
        num_spatial_dims: int,
        dilation: Sequence[int] | None = None,
    ) -> Sequence[int]:
        """The output padding that gives `output_size`, or this layer's own."""
        if output_size is None:
            return self.output_padding
        n = num_spatial_dims
        wanted = list(output_size)[-n:] if len(output_size) == input.ndim else list(output_size)
        if len(wanted) != n:
            raise ValueError(
                f"output_size {tuple(output_size)} has ({len(output_size)}) elements; expected ({n}) or ({input.ndim})."
            )
        extra = []
        for d in range(n):
            reach = (1 if dilation is None else dilation[d]) * (kernel_size[d] - 1)
            smallest = (input.size(d - n) - 1) * stride[d] - 2 * padding[d] + reach + 1
            extra.append(wanted[d] - smallest)
            if not 0 <= extra[d] < stride[d]:
                raise ValueError(
                    f"Size ({wanted[d]}) of dimension ({d}) of `output_size` is not between ({smallest}) and "
                    f"({smallest + stride[d] - 1}), which this input and stride give."
                )
        return extra


class _TransposedConvolution(_ConvTransposeNd):
    """The three transposed convolutions: numbers stand for tuples of them."""

    _dims: int

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        sizes = _ntuple(self._dims)
        super().__init__(
            in_channels,
            out_channels,
            sizes(kernel_size),
            sizes(stride),
            sizes(padding),
            sizes(dilation),
            True,
            sizes(output_padding),
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        n = self._dims
        function = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[n - 1]
        extra = self._output_padding(
            input, output_size, self.stride, self.padding, self.kernel_size, n, self.dilation
        )
        return function(
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            extra,
            self.groups,
            self.dilation,
        )


class ConvTranspose1d(_TransposedConvolution):
    """Transposed convolution over sequences: each input element adds a scaled filter to the output.

    It maps shapes as the gradient of `Conv1d` does, so that a stride enlarges. As
    `torch.nn.ConvTranspose1d`.

    Args:
        in_channels (int): Channels of the input.
        out_channels (int): Channels of the output.
        kernel_size (int): Length of a filter, in elements.
        stride (int): Step in the output for a step in the input, in elements. Default: 1.
        padding (int): Elements taken away on both sides of the output. Default: 0.
        output_padding (int): Elements added at the end of the output; less than `stride`
            or `dilation`. Default: 0.
        groups (int): Parts that the channels fall into, each with filters of its own; divides
            `in_channels` and `out_channels`. Default: 1.
        bias (bool): Whether each output channel has a bias. Default: True.
        dilation (int): Step from element to element of a filter, in elements. Default: 1.
        padding_mode (str): Only "zeros". Default: "zeros".
        device (device, optional): Where the parameters live. Default: the default device.
        dtype (dtype, optional): Of the parameters. Default: the default dtype.

    Attributes:
        weight (Parameter): `(in_channels, out_channels / groups, *kernel_size)`, drawn uniformly from
            `[-bound, bound]` with `bound = 1 / sqrt(number of weights of an input channel)`.
        bias (Parameter): `(out_channels,)`, drawn likewise, or None.

    Shape:
        - Input: `(N, in_channels, L)` or `(in_channels, L)`.
        - output_size (optional): The length that the output shall have: one that the formula gives for some
          `output_padding` from 0 to `stride - 1`, whose own value then does not count.
        - Output: `(N, out_channels, L_out)` or `(out_channels, L_out)`.
        - `L_out = (L - 1) * stride - 2 * padding + dilation * (kernel_size - 1) + output_padding + 1`.

    Raises:
        ValueError: `groups` does not divide the channels, `padding_mode` is not "zeros", or the output
            cannot have `output_size`.
        RuntimeError: The input has other dimensions or channels, or `output_padding` is too large.

    Example:
        >>> layer = mica.nn.ConvTranspose1d(8, 3, kernel_size=2, stride=2)
        >>> layer(mica.ones(2, 8, 5)).shape
        mica.Size([2, 3, 10])
    """

    _dims = 1


class ConvTranspose2d(_TransposedConvolution):
    """Transposed convolution over images: each input element adds a scaled filter to the output.

    It maps shapes as the gradient of `Conv2d` does, so that a stride enlarges. As
    `torch.nn.ConvTranspose2d`.

    Args:
        in_channels (int): Channels of the input.
        out_channels (int): Channels of the output.
        kernel_size (int or tuple of 2 int): Height and width of a filter, in pixels.
        stride (int or tuple of 2 int): Step in the output for a step in the input, in pixels. Default: 1.
        padding (int or tuple of 2 int): Pixels taken away on both sides of the output. Default: 0.
        output_padding (int or tuple of 2 int): Pixels added at the end of the output's dimensions; less than
            `stride` or `dilation`. Default: 0.
        groups (int): Parts that the channels fall into, each with filters of its own; divides
            `in_channels` and `out_channels`. Default: 1.
        bias (bool): Whether each output channel has a bias. Default: True.
        dilation (int or tuple of 2 int): Step from element to element of a filter, in pixels. Default: 1.
        padding_mode (str): Only "zeros". Default: "zeros".
        device (device, optional): Where the parameters live. Default: the default device.
        dtype (dtype, optional): Of the parameters. Default: the default dtype.

    Attributes:
        weight (Parameter): `(in_channels, out_channels / groups, *kernel_size)`, drawn uniformly from
            `[-bound, bound]` with `bound = 1 / sqrt(number of weights of an input channel)`.
        bias (Parameter): `(out_channels,)`, drawn likewise, or None.

    Shape:
        - Input: `(N, in_channels, H, W)` or `(in_channels, H, W)`.
        - output_size (optional): The sizes that the output shall have: one that the formula gives for some
          `output_padding` from 0 to `stride - 1`, whose own value then does not count.
        - Output: `(N, out_channels, H_out, W_out)` or `(out_channels, H_out, W_out)`.
        - `H_out = (H - 1) * stride - 2 * padding + dilation * (kernel_size - 1) + output_padding + 1`,
          `W_out` likewise.

    Raises:
        ValueError: `groups` does not divide the channels, `padding_mode` is not "zeros", or the output
            cannot have `output_size`.
        RuntimeError: The input has other dimensions or channels, or `output_padding` is too large.

    Example:
        >>> layer = mica.nn.ConvTranspose2d(8, 3, kernel_size=2, stride=2)
        >>> layer(mica.ones(2, 8, 5, 5)).shape
        mica.Size([2, 3, 10, 10])
    """

    _dims = 2


class ConvTranspose3d(_TransposedConvolution):
    """Transposed convolution over volumes: each input element adds a scaled filter to the output.

    It maps shapes as the gradient of `Conv3d` does, so that a stride enlarges. As
    `torch.nn.ConvTranspose3d`.

    Args:
        in_channels (int): Channels of the input.
        out_channels (int): Channels of the output.
        kernel_size (int or tuple of 3 int): Depth, height and width of a filter, in voxels.
        stride (int or tuple of 3 int): Step in the output for a step in the input, in voxels. Default: 1.
        padding (int or tuple of 3 int): Voxels taken away on both sides of the output. Default: 0.
        output_padding (int or tuple of 3 int): Voxels added at the end of the output's dimensions; less than
            `stride` or `dilation`. Default: 0.
        groups (int): Parts that the channels fall into, each with filters of its own; divides
            `in_channels` and `out_channels`. Default: 1.
        bias (bool): Whether each output channel has a bias. Default: True.
        dilation (int or tuple of 3 int): Step from element to element of a filter, in voxels. Default: 1.
        padding_mode (str): Only "zeros". Default: "zeros".
        device (device, optional): Where the parameters live. Default: the default device.
        dtype (dtype, optional): Of the parameters. Default: the default dtype.

    Attributes:
        weight (Parameter): `(in_channels, out_channels / groups, *kernel_size)`, drawn uniformly from
            `[-bound, bound]` with `bound = 1 / sqrt(number of weights of an input channel)`.
        bias (Parameter): `(out_channels,)`, drawn likewise, or None.

    Shape:
        - Input: `(N, in_channels, D, H, W)` or `(in_channels, D, H, W)`.
        - output_size (optional): The sizes that the output shall have: one that the formula gives for some
          `output_padding` from 0 to `stride - 1`, whose own value then does not count.
        - Output: `(N, out_channels, D_out, H_out, W_out)` or `(out_channels, D_out, H_out, W_out)`.
        - `H_out = (H - 1) * stride - 2 * padding + dilation * (kernel_size - 1) + output_padding + 1`,
          `D_out` and `W_out` likewise.

    Raises:
        ValueError: `groups` does not divide the channels, `padding_mode` is not "zeros", or the output
            cannot have `output_size`.
        RuntimeError: The input has other dimensions or channels, or `output_padding` is too large.

    Example:
        >>> layer = mica.nn.ConvTranspose3d(8, 3, kernel_size=2, stride=2)
        >>> layer(mica.ones(2, 8, 5, 5, 5)).shape
        mica.Size([2, 3, 10, 10, 10])
    """

    _dims = 3
