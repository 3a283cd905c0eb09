"""Convolutions."""

from __future__ import annotations

import math
from typing import Any

import mica
from mica._C import Tensor
from mica.nn import functional as F
from mica.nn import init
from mica.nn.modules.module import Module
from mica.nn.parameter import Parameter


def _tuple(value: Any, n: int) -> tuple[int, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,) * n


class _ConvNd(Module):
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
        super().__init__()
        n = self._dims
        if groups <= 0:
            raise ValueError(f"The number of groups ({groups}) must be positive.")
        if in_channels % groups or out_channels % groups:
            raise ValueError(
                f"The channels ({in_channels} in, {out_channels} out) must be multiples of the groups ({groups})."
            )
        if padding_mode != "zeros":
            raise NotImplementedError(
                f"The padding mode ({padding_mode}) is not there yet; expected 'zeros'."
            )
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = _tuple(kernel_size, n)
        self.stride = _tuple(stride, n)
        self.dilation = _tuple(dilation, n)
        self.groups = groups
        self.padding_mode = padding_mode
        self.padding: Any = padding if isinstance(padding, str) else _tuple(padding, n)
        if padding == "same" and any(s != 1 for s in self.stride):
            raise ValueError("The padding 'same' needs a stride of 1.")
        shape = (out_channels, in_channels // groups, *self.kernel_size)
        self.weight = Parameter(mica.empty(shape, device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(mica.empty(out_channels, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            if fan_in != 0:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        n = self._dims
        text = (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        )
        if self.padding != (0,) * n:
            text += f", padding={self.padding}"
        if self.dilation != (1,) * n:
            text += f", dilation={self.dilation}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        return text


class Conv1d(_ConvNd):
    """Convolution over (N, C, L) with a learned kernel."""

    _dims = 1

    def forward(self, input: Tensor) -> Tensor:
        return F.conv1d(input, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)


class Conv2d(_ConvNd):
    """Convolution over (N, C, H, W) with a learned kernel."""

    _dims = 2

    def forward(self, input: Tensor) -> Tensor:
        return F.conv2d(input, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)
