"""Pooling."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mica._C import Tensor
from mica.nn import functional as F
from mica.nn.modules.module import Module


class _MaxPoolNd(Module):
    _pool: Callable[..., Any]

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Any:
        return self._pool(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            self.ceil_mode,
            self.return_indices,
        )

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPoolNd):
    """The maximum of each window of a sequence.

    As `torch.nn.MaxPool1d`. Padding never wins: it counts as minus infinity.

    Args:
        kernel_size (int or tuple of 1 int): Elements in the window.
        stride (int or tuple of 1 int, optional): Elements between the starts of windows. Default:
            `kernel_size`.
        padding (int or tuple of 1 int): Elements added on both sides, at most half the window. Default: 0.
        dilation (int or tuple of 1 int): Elements between neighbours within a window. Default: 1.
        return_indices (bool): Also return where each maximum stands, as `MaxUnpool1d` takes it. Default:
            False.
        ceil_mode (bool): Round the output's length up, so that the last window may reach over the end.
            Default: False.

    Shape:
        - Input: `(N, C, L)` or `(C, L)`.
        - Output: `(N, C, L_out)` or `(C, L_out)`, with
          `L_out = floor((L + 2 * padding - dilation * (kernel_size - 1) - 1) / stride + 1)`. With
          `return_indices` a pair: the output, and int64 indices along `L` of its shape.

    Raises:
        RuntimeError: At the call, the padding is above half the window, the window is larger than the padded
            input, or the input has other dimensions.

    Example:
        >>> pool = mica.nn.MaxPool1d(2, return_indices=True)
        >>> pool(mica.tensor([[1., 5., 2., 3., 9., 4.]]))
        (tensor([[5., 3., 9.]]), tensor([[1, 3, 4]]))
    """

    _pool = staticmethod(F.max_pool1d)


class MaxPool2d(_MaxPoolNd):
    """The maximum of each window of an image.

    As `torch.nn.MaxPool2d`. Padding never wins: it counts as minus infinity.

    Args:
        kernel_size (int or tuple of 2 int): Height and width of the window, in pixels.
        stride (int or tuple of 2 int, optional): Pixels between the starts of windows. Default:
            `kernel_size`.
        padding (int or tuple of 2 int): Pixels added on both sides, at most half the window. Default: 0.
        dilation (int or tuple of 2 int): Pixels between neighbours within a window. Default: 1.
        return_indices (bool): Also return where each maximum stands, as `MaxUnpool2d` takes it. Default:
            False.
        ceil_mode (bool): Round the output's sizes up, so that the last windows may reach over the edge.
            Default: False.

    Shape:
        - Input: `(N, C, H, W)` or `(C, H, W)`.
        - Output: `(N, C, H_out, W_out)` or `(C, H_out, W_out)`, with
          `H_out = floor((H + 2 * padding - dilation * (kernel_size - 1) - 1) / stride + 1)` and `W_out`
          likewise. With `return_indices` a pair: the output, and int64 indices into the flat `H * W` of its
          shape.

    Raises:
        RuntimeError: At the call, the padding is above half the window, the window is larger than the padded
            input, or the input has other dimensions.

    Example:
        >>> pool = mica.nn.MaxPool2d(2)
        >>> pool(mica.arange(16.).view(1, 4, 4))
        tensor([[[ 5.,  7.],
                 [13., 15.]]])
    """

    _pool = staticmethod(F.max_pool2d)


class _AvgPoolNd(Module):
    kernel_size: Any
    stride: Any
    padding: Any

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool1d(_AvgPoolNd):
    """The mean of each window of a sequence.

    As `torch.nn.AvgPool1d`.

    Args:
        kernel_size (int or tuple of 1 int): Elements in the window.
        stride (int or tuple of 1 int, optional): Elements between the starts of windows. Default:
            `kernel_size`.
        padding (int or tuple of 1 int): Zeros added on both sides, at most half the window. Default: 0.
        ceil_mode (bool): Round the output's length up, so that the last window may reach over the end.
            Default: False.
        count_include_pad (bool): Count the padding's zeros in the mean; else only elements of the input.
            Default: True.

    Shape:
        - Input: `(N, C, L)` or `(C, L)`, floating point.
        - Output: `(N, C, L_out)` or `(C, L_out)`, with
          `L_out = floor((L + 2 * padding - kernel_size) / stride + 1)`.

    Raises:
        RuntimeError: At the call, the padding is above half the window, the window is larger than the padded
            input, or the input has other dimensions.

    Example:
        >>> mica.nn.AvgPool1d(2)(mica.arange(6.).view(1, 6))
        tensor([[0.5000, 2.5000, 4.5000]])
        >>> mica.nn.AvgPool1d(2, padding=1)(mica.ones(1, 4))
        tensor([[0.5000, 1.0000, 0.5000]])
    """

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        self.kernel_size = (kernel_size,) if isinstance(kernel_size, int) else tuple(kernel_size)
        stride = kernel_size if stride is None else stride
        self.stride = (stride,) if isinstance(stride, int) else tuple(stride)
        self.padding = (padding,) if isinstance(padding, int) else tuple(padding)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool1d(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad
        )


class _AvgPool(_AvgPoolNd):
    _pool: Callable[..., Tensor]

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Tensor:
        return self._pool(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )


class AvgPool2d(_AvgPool):
    """The mean of each window of an image.

    As `torch.nn.AvgPool2d`.

    Args:
        kernel_size (int or tuple of 2 int): Height and width of the window, in pixels.
        stride (int or tuple of 2 int, optional): Pixels between the starts of windows. Default:
            `kernel_size`.
        padding (int or tuple of 2 int): Pixels of zeros added on both sides, at most half the window.
            Default: 0.
        ceil_mode (bool): Round the output's sizes up, so that the last windows may reach over the edge.
            Default: False.
        count_include_pad (bool): Count the padding's zeros in the mean; else only pixels of the input.
            Default: True.
        divisor_override (int, optional): What each window's sum is divided by, instead of its number of
            pixels.

    Shape:
        - Input: `(N, C, H, W)` or `(C, H, W)`, floating point.
        - Output: `(N, C, H_out, W_out)` or `(C, H_out, W_out)`, with
          `H_out = floor((H + 2 * padding - kernel_size) / stride + 1)` and `W_out` likewise.

    Raises:
        RuntimeError: At the call, the padding is above half the window, the window is larger than the padded
            input, or `divisor_override` is 0.
        IndexError: At the call, the input has fewer than 3 dimensions.

    Example:
        >>> pool = mica.nn.AvgPool2d(2)
        >>> pool(mica.arange(16.).view(1, 4, 4))
        tensor([[[ 2.5000,  4.5000],
                 [10.5000, 12.5000]]])
    """

    _pool = staticmethod(F.avg_pool2d)


class _AdaptiveAvgPoolNd(Module):
    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    """The means of windows of an image that are chosen so that the output has a given size.

    As `torch.nn.AdaptiveAvgPool2d`. Output row `i` is the mean of rows `floor(i * H / H_out)` up to, and
    without, `ceil((i + 1) * H / H_out)`; columns likewise.

    Args:
        output_size (int or tuple of 2 (int or None)): Height and width of the output, in pixels; None keeps
            the input's, an int stands for both.

    Shape:
        - Input: `(N, C, H, W)` or `(C, H, W)`, floating point.
        - Output: `(N, C, *output_size)` or `(C, *output_size)`.

    Raises:
        RuntimeError: At the call, the input has other dimensions (ValueError where it has too few for a
            tuple), or a size is negative.

    Example:
        >>> pool = mica.nn.AdaptiveAvgPool2d((1, None))
        >>> pool(mica.arange(8.).view(1, 4, 2))
        tensor([[[3., 4.]]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool2d(input, self.output_size)
