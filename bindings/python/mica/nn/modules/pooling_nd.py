"""Pooling of other numbers of dimensions than the plain two."""

from __future__ import annotations

from typing import Any

from mica._C import Tensor
from mica.nn import functional as F
from mica.nn.modules.module import Module
from mica.nn.modules.pooling import _AdaptiveAvgPoolNd, _AvgPool, _AvgPoolNd as _AvgPoolNd, _MaxPoolNd


class MaxPool3d(_MaxPoolNd):
    """The maximum of each window of a volume.

    As `torch.nn.MaxPool3d`. Padding never wins: it counts as minus infinity.

    Args:
        kernel_size (int or tuple of 3 int): Depth, height and width of the window, in voxels.
        stride (int or tuple of 3 int, optional): Voxels between the starts of windows. Default:
            `kernel_size`.
        padding (int or tuple of 3 int): Voxels added on both sides, at most half the window. Default: 0.
        dilation (int or tuple of 3 int): Voxels between neighbours within a window. Default: 1.
        return_indices (bool): Also return where each maximum stands, as `MaxUnpool3d` takes it. Default:
            False.
        ceil_mode (bool): Round the output's sizes up, so that the last windows may reach over the edge.
            Default: False.

    Shape:
        - Input: `(N, C, D, H, W)` or `(C, D, H, W)`.
        - Output: `(N, C, D_out, H_out, W_out)` or `(C, D_out, H_out, W_out)`, with
          `D_out = floor((D + 2 * padding - dilation * (kernel_size - 1) - 1) / stride + 1)`, the others
          likewise. With `return_indices` a pair: the output, and int64 indices into the flat `D * H * W` of
          its shape.

    Raises:
        RuntimeError: At the call, the padding is above half the window, the window is larger than the padded
            input, or the input has other dimensions.

    Example:
        >>> pool = mica.nn.MaxPool3d(2)
        >>> pool(mica.arange(16.).view(1, 2, 2, 4))
        tensor([[[[13., 15.]]]])
    """

    _pool = staticmethod(F.max_pool3d)


class AvgPool3d(_AvgPool):
    """The mean of each window of a volume.

    As `torch.nn.AvgPool3d`.

    Args:
        kernel_size (int or tuple of 3 int): Depth, height and width of the window, in voxels.
        stride (int or tuple of 3 int, optional): Voxels between the starts of windows. Default:
            `kernel_size`.
        padding (int or tuple of 3 int): Voxels of zeros added on both sides, at most half the window.
            Default: 0.
        ceil_mode (bool): Round the output's sizes up, so that the last windows may reach over the edge.
            Default: False.
        count_include_pad (bool): Count the padding's zeros in the mean; else only voxels of the input.
            Default: True.
        divisor_override (int, optional): What each window's sum is divided by, instead of its number of
            voxels.

    Shape:
        - Input: `(N, C, D, H, W)` or `(C, D, H, W)`, floating point.
        - Output: `(N, C, D_out, H_out, W_out)` or `(C, D_out, H_out, W_out)`, with
          `D_out = floor((D + 2 * padding - kernel_size) / stride + 1)`, the others likewise.

    Raises:
        RuntimeError: At the call, the padding is above half the window, the window is larger than the padded
            input, or `divisor_override` is 0.

    Example:
        >>> pool = mica.nn.AvgPool3d(2)
        >>> pool(mica.arange(16.).view(1, 2, 2, 4))
        tensor([[[[6.5000, 8.5000]]]])
    """

    _pool = staticmethod(F.avg_pool3d)


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    """The means of windows of a sequence that are chosen so that the output has a given length.

    As `torch.nn.AdaptiveAvgPool1d`. Output element `i` is the mean of elements `floor(i * L / output_size)`
    up to, and without, `ceil((i + 1) * L / output_size)`.

    Args:
        output_size (int or tuple of 1 int): Length of the output, in elements.

    Shape:
        - Input: `(N, C, L)` or `(C, L)`, floating point.
        - Output: `(N, C, output_size)` or `(C, output_size)`.

    Raises:
        RuntimeError: At the call, the input has other dimensions, or a size is negative.

    Example:
        >>> pool = mica.nn.AdaptiveAvgPool1d(3)
        >>> pool(mica.arange(7.).view(1, 7))
        tensor([[1., 3., 5.]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool1d(input, self.output_size)


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    """The means of windows of a volume that are chosen so that the output has a given size.

    As `torch.nn.AdaptiveAvgPool3d`. Output plane `i` is the mean of planes `floor(i * D / D_out)` up to, and
    without, `ceil((i + 1) * D / D_out)`; rows and columns likewise.

    Args:
        output_size (int or tuple of 3 (int or None)): Depth, height and width of the output, in voxels; None
            keeps the input's, an int stands for all three.

    Shape:
        - Input: `(N, C, D, H, W)` or `(C, D, H, W)`, floating point.
        - Output: `(N, C, *output_size)` or `(C, *output_size)`.

    Raises:
        RuntimeError: At the call, the input has other dimensions (ValueError where it has too few for a
            tuple), or a size is negative.

    Example:
        >>> pool = mica.nn.AdaptiveAvgPool3d((1, None, 2))
        >>> pool(mica.arange(16.).view(1, 2, 2, 4))
        tensor([[[[ 4.5000,  6.5000],
                  [ 8.5000, 10.5000]]]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool3d(input, self.output_size)


class _AdaptiveMaxPoolNd(Module):
    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size = output_size
        self.return_indices = return_indices

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    """The maxima of windows of a sequence that are chosen so that the output has a given length.

    As `torch.nn.AdaptiveMaxPool1d`. Output element `i` is the maximum of elements
    `floor(i * L / output_size)` up to, and without, `ceil((i + 1) * L / output_size)`.

    Args:
        output_size (int or tuple of 1 int): Length of the output, in elements.
        return_indices (bool): Also return where each maximum stands. Default: False.

    Shape:
        - Input: `(N, C, L)` or `(C, L)`.
        - Output: `(N, C, output_size)` or `(C, output_size)`. With `return_indices` a pair: the output, and
          int64 indices along `L` of its shape.

    Raises:
        RuntimeError: At the call, the input has other dimensions, or a size is negative.

    Example:
        >>> pool = mica.nn.AdaptiveMaxPool1d(3, return_indices=True)
        >>> pool(mica.tensor([[1., 5., 2., 3., 9., 4., 7.]]))
        (tensor([[5., 9., 9.]]), tensor([[1, 4, 4]]))
    """

    def forward(self, input: Tensor) -> Any:
        return F.adaptive_max_pool1d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """The maxima of windows of an image that are chosen so that the output has a given size.

    As `torch.nn.AdaptiveMaxPool2d`. Output row `i` is the maximum of rows `floor(i * H / H_out)` up to, and
    without, `ceil((i + 1) * H / H_out)`; columns likewise.

    Args:
        output_size (int or tuple of 2 (int or None)): Height and width of the output, in pixels; None keeps
            the input's, an int stands for both.
        return_indices (bool): Also return where each maximum stands. Default: False.

    Shape:
        - Input: `(N, C, H, W)` or `(C, H, W)`.
        - Output: `(N, C, *output_size)` or `(C, *output_size)`. With `return_indices` a pair: the output, and
          int64 indices into the flat `H * W` of its shape.

    Raises:
        RuntimeError: At the call, the input has other dimensions (ValueError where it has too few for a
            tuple), or a size is negative.

    Example:
        >>> pool = mica.nn.AdaptiveMaxPool2d((2, 3))
        >>> pool(mica.arange(16.).view(1, 4, 4))
        tensor([[[ 5.,  6.,  7.],
                 [13., 14., 15.]]])
    """

    def forward(self, input: Tensor) -> Any:
        return F.adaptive_max_pool2d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """The maxima of windows of a volume that are chosen so that the output has a given size.

    As `torch.nn.AdaptiveMaxPool3d`. Output plane `i` is the maximum of planes `floor(i * D / D_out)` up to,
    and without, `ceil((i + 1) * D / D_out)`; rows and columns likewise.

    Args:
        output_size (int or tuple of 3 (int or None)): Depth, height and width of the output, in voxels; None
            keeps the input's, an int stands for all three.
        return_indices (bool): Also return where each maximum stands. Default: False.

    Shape:
        - Input: `(N, C, D, H, W)` or `(C, D, H, W)`.
        - Output: `(N, C, *output_size)` or `(C, *output_size)`. With `return_indices` a pair: the output, and
          int64 indices into the flat `D * H * W` of its shape.

    Raises:
        RuntimeError: At the call, the input has other dimensions (ValueError where it has too few for a
            tuple), or a size is negative.

    Example:
        >>> pool = mica.nn.AdaptiveMaxPool3d((1, None, 2))
        >>> pool(mica.arange(16.).view(1, 2, 2, 4))
        tensor([[[[ 9., 11.],
                  [13., 15.]]]])
    """

    def forward(self, input: Tensor) -> Any:
        return F.adaptive_max_pool3d(input, self.output_size, self.return_indices)
