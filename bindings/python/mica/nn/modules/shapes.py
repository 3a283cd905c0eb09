"""Modules that pad or reorder."""

from __future__ import annotations

from typing import Any

from mica._C import Tensor
from mica.nn import functional as F
from mica.nn.modules.module import Module


class PixelShuffle(Module):
    """Moves groups of channels into space: `(C * r ** 2, H, W)` becomes `(C, H * r, W * r)`.

    As `torch.nn.PixelShuffle`: the last step of upsampling by a convolution. `PixelUnshuffle` is the inverse.

    Args:
        upscale_factor (int): `r`, by which height and width grow.

    Shape:
        - Input: `(*, C * r ** 2, H, W)`.
        - Output: `(*, C, H * r, W * r)`.

    Raises:
        RuntimeError: At the call, `r ** 2` does not divide the channels, `r` is not positive, or the input
            has fewer than 3 dimensions.

    Example:
        >>> shuffle = mica.nn.PixelShuffle(2)
        >>> shuffle(mica.arange(4.).view(4, 1, 1))
        tensor([[[0., 1.],
                 [2., 3.]]])
    """

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        return f"upscale_factor={self.upscale_factor}"


class _Pad(Module):
    _dims: int
    _mode = "constant"

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = (padding,) * (2 * self._dims) if isinstance(padding, int) else tuple(padding)

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, mode=self._mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPadNd(_Pad):
    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class _ReflectionPadNd(_Pad):
    _mode = "reflect"


class _ReplicationPadNd(_Pad):
    _mode = "replicate"


class _CircularPadNd(_Pad):
    _mode = "circular"


class ReflectionPad1d(_ReflectionPadNd):
    """Extends a sequence at both ends by its mirror image, without repeating the last element.

    As `torch.nn.ReflectionPad1d`. A negative padding takes elements away.

    Args:
        padding (int or tuple of 2 int): Elements added: `(left, right)`, or one number for both ends, fewer
            than the input has.

    Shape:
        - Input: `(N, C, L)` or `(C, L)`.
        - Output: `(N, C, L_out)` or `(C, L_out)`, with `L_out = L + left + right`.

    Raises:
        RuntimeError: At the call, the input has other dimensions, or a padding is not below the size that it
            extends.

    Example:
        >>> pad = mica.nn.ReflectionPad1d((2, 1))
        >>> pad(mica.arange(4.).view(1, 4))
        tensor([[2., 1., 0., 1., 2., 3., 2.]])
    """

    _dims = 1


class ReflectionPad2d(_ReflectionPadNd):
    """Extends an image on all sides by its mirror image, without repeating the border.

    As `torch.nn.ReflectionPad2d`. A negative padding takes pixels away.

    Args:
        padding (int or tuple of 4 int): Pixels added: `(left, right, top, bottom)`, or one number for all
            sides, fewer than the input has along that side.

    Shape:
        - Input: `(N, C, H, W)` or `(C, H, W)`.
        - Output: `(N, C, H_out, W_out)` or `(C, H_out, W_out)`, with `H_out = H + top + bottom`,
          `W_out = W + left + right`.

    Raises:
        RuntimeError: At the call, the input has other dimensions, or a padding is not below the size that it
            extends.

    Example:
        >>> pad = mica.nn.ReflectionPad2d((1, 0, 0, 1))
        >>> pad(mica.arange(4.).view(1, 2, 2))
        tensor([[[1., 0., 1.],
                 [3., 2., 3.],
                 [1., 0., 1.]]])
    """

    _dims = 2


class ReplicationPad1d(_ReplicationPadNd):
    """Extends a sequence at both ends by repeating its first and last element.

    As `torch.nn.ReplicationPad1d`. A negative padding takes elements away.

    Args:
        padding (int or tuple of 2 int): Elements added: `(left, right)`, or one number for both ends.

    Shape:
        - Input: `(N, C, L)` or `(C, L)`.
        - Output: `(N, C, L_out)` or `(C, L_out)`, with `L_out = L + left + right`.

    Raises:
        RuntimeError: At the call, the input has other dimensions, or no elements.

    Example:
        >>> pad = mica.nn.ReplicationPad1d((2, 1))
        >>> pad(mica.arange(4.).view(1, 4))
        tensor([[0., 0., 0., 1., 2., 3., 3.]])
    """

    _dims = 1


class ReplicationPad2d(_ReplicationPadNd):
    """Extends an image on all sides by repeating its border pixels.

    As `torch.nn.ReplicationPad2d`. A negative padding takes pixels away.

    Args:
        padding (int or tuple of 4 int): Pixels added: `(left, right, top, bottom)`, or one number for all
            sides.

    Shape:
        - Input: `(N, C, H, W)` or `(C, H, W)`.
        - Output: `(N, C, H_out, W_out)` or `(C, H_out, W_out)`, with `H_out = H + top + bottom`,
          `W_out = W + left + right`.

    Raises:
        RuntimeError: At the call, the input has other dimensions, or no elements.

    Example:
        >>> pad = mica.nn.ReplicationPad2d((1, 0, 0, 1))
        >>> pad(mica.arange(4.).view(1, 2, 2))
        tensor([[[0., 0., 1.],
                 [2., 2., 3.],
                 [2., 2., 3.]]])
    """

    _dims = 2


class CircularPad1d(_CircularPadNd):
    """Extends a sequence at both ends as if it were a ring: by the elements of the other end.

    As `torch.nn.CircularPad1d`. A negative padding takes elements away.

    Args:
        padding (int or tuple of 2 int): Elements added: `(left, right)`, or one number for both ends, no more
            than the input has.

    Shape:
        - Input: `(N, C, L)` or `(C, L)`.
        - Output: `(N, C, L_out)` or `(C, L_out)`, with `L_out = L + left + right`.

    Raises:
        RuntimeError: At the call, the input has other dimensions, or a padding is above the size that it
            extends.

    Example:
        >>> pad = mica.nn.CircularPad1d((2, 1))
        >>> pad(mica.arange(4.).view(1, 4))
        tensor([[2., 3., 0., 1., 2., 3., 0.]])
    """

    _dims = 1


class CircularPad2d(_CircularPadNd):
    """Extends an image on all sides as if it were a torus: by the pixels of the other side.

    As `torch.nn.CircularPad2d`. A negative padding takes pixels away.

    Args:
        padding (int or tuple of 4 int): Pixels added: `(left, right, top, bottom)`, or one number for all
            sides, no more than the input has along that side.

    Shape:
        - Input: `(N, C, H, W)` or `(C, H, W)`.
        - Output: `(N, C, H_out, W_out)` or `(C, H_out, W_out)`, with `H_out = H + top + bottom`,
          `W_out = W + left + right`.

    Raises:
        RuntimeError: At the call, the input has other dimensions, or a padding is above the size that it
            extends.

    Example:
        >>> pad = mica.nn.CircularPad2d((1, 0, 0, 1))
        >>> pad(mica.arange(4.).view(1, 2, 2))
        tensor([[[1., 0., 1.],
                 [3., 2., 3.],
                 [1., 0., 1.]]])
    """

    _dims = 2


class CircularPad3d(_CircularPadNd):
    """Extends a volume on all sides as if it were periodic: by the voxels of the other side.

    As `torch.nn.CircularPad3d`. A negative padding takes voxels away.

    Args:
        padding (int or tuple of 6 int): Voxels added: `(left, right, top, bottom, front, back)`, or one
            number for all sides, no more than the input has along that side.

    Shape:
        - Input: `(N, C, D, H, W)` or `(C, D, H, W)`.
        - Output: `(N, C, D_out, H_out, W_out)` or `(C, D_out, H_out, W_out)`, with
          `D_out = D + front + back`, `H_out = H + top + bottom`, `W_out = W + left + right`.

    Raises:
        RuntimeError: At the call, the input has other dimensions, or a padding is above the size that it
            extends.

    Example:
        >>> pad = mica.nn.CircularPad3d(1)
        >>> pad(mica.ones(1, 2, 2, 2)).shape
        mica.Size([1, 4, 4, 4])
    """

    _dims = 3


class ReflectionPad3d(_ReflectionPadNd):
    """Extends a volume on all sides by its mirror image, without repeating the border.

    As `torch.nn.ReflectionPad3d`. A negative padding takes voxels away.

    Args:
        padding (int or tuple of 6 int): Voxels added: `(left, right, top, bottom, front, back)`, or one
            number for all sides, fewer than the input has along that side.

    Shape:
        - Input: `(N, C, D, H, W)` or `(C, D, H, W)`.
        - Output: `(N, C, D_out, H_out, W_out)` or `(C, D_out, H_out, W_out)`, with
          `D_out = D + front + back`, `H_out = H + top + bottom`, `W_out = W + left + right`.

    Raises:
        RuntimeError: At the call, the input has other dimensions, or a padding is not below the size that it
            extends.

    Example:
        >>> pad = mica.nn.ReflectionPad3d(1)
        >>> pad(mica.ones(1, 2, 2, 2)).shape
        mica.Size([1, 4, 4, 4])
    """

    _dims = 3


class ReplicationPad3d(_ReplicationPadNd):
    """Extends a volume on all sides by repeating its border voxels.

    As `torch.nn.ReplicationPad3d`. A negative padding takes voxels away.

    Args:
        padding (int or tuple of 6 int): Voxels added: `(left, right, top, bottom, front, back)`, or one
            number for all sides.

    Shape:
        - Input: `(N, C, D, H, W)` or `(C, D, H, W)`.
        - Output: `(N, C, D_out, H_out, W_out)` or `(C, D_out, H_out, W_out)`, with
          `D_out = D + front + back`, `H_out = H + top + bottom`, `W_out = W + left + right`.

    Raises:
        RuntimeError: At the call, the input has other dimensions, or no elements.

    Example:
        >>> pad = mica.nn.ReplicationPad3d(1)
        >>> pad(mica.ones(1, 2, 2, 2)).shape
        mica.Size([1, 4, 4, 4])
    """

    _dims = 3


class ConstantPad1d(_ConstantPadNd):
    """Extends the last dimension at both ends by a constant value.

    As `torch.nn.ConstantPad1d`. A negative padding takes elements away.

    Args:
        padding (int or tuple of 2 int): Elements added: `(left, right)`, or one number for both ends.
        value (float): What is put there.

    Shape:
        - Input: `(*, L)`.
        - Output: `(*, L_out)`, with `L_out = L + left + right`.

    Raises:
        RuntimeError: At the call, the input has too few dimensions, or negative paddings take away more than
            there is.

    Example:
        >>> pad = mica.nn.ConstantPad1d((2, 1), 7.0)
        >>> pad(mica.ones(2, 3))
        tensor([[7., 7., 1., 1., 1., 7.],
                [7., 7., 1., 1., 1., 7.]])
    """

    _dims = 1


class ConstantPad2d(_ConstantPadNd):
    """Surrounds the last two dimensions by a constant value.

    As `torch.nn.ConstantPad2d`. A negative padding takes pixels away.

    Args:
        padding (int or tuple of 4 int): Pixels added: `(left, right, top, bottom)`, or one number for all
            sides.
        value (float): What is put there.

    Shape:
        - Input: `(*, H, W)`.
        - Output: `(*, H_out, W_out)`, with `H_out = H + top + bottom`, `W_out = W + left + right`.

    Raises:
        RuntimeError: At the call, the input has too few dimensions, or negative paddings take away more than
            there is.

    Example:
        >>> pad = mica.nn.ConstantPad2d((1, 0, 0, 1), 7.0)
        >>> pad(mica.ones(2, 2))
        tensor([[7., 1., 1.],
                [7., 1., 1.],
                [7., 7., 7.]])
    """

    _dims = 2


class ConstantPad3d(_ConstantPadNd):
    """Surrounds the last three dimensions by a constant value.

    As `torch.nn.ConstantPad3d`. A negative padding takes voxels away.

    Args:
        padding (int or tuple of 6 int): Voxels added: `(left, right, top, bottom, front, back)`, or one
            number for all sides.
        value (float): What is put there.

    Shape:
        - Input: `(*, D, H, W)`.
        - Output: `(*, D_out, H_out, W_out)`, with `D_out = D + front + back`, `H_out = H + top + bottom`,
          `W_out = W + left + right`.

    Raises:
        RuntimeError: At the call, the input has too few dimensions, or negative paddings take away more than
            there is.

    Example:
        >>> pad = mica.nn.ConstantPad3d(1, 7.0)
        >>> pad(mica.ones(2, 2, 2)).shape
        mica.Size([4, 4, 4])
    """

    _dims = 3


class ZeroPad1d(ConstantPad1d):
    """Extends the last dimension at both ends by zeros.

    As `torch.nn.ZeroPad1d`. A negative padding takes elements away.

    Args:
        padding (int or tuple of 2 int): Elements added: `(left, right)`, or one number for both ends.

    Shape:
        - Input: `(*, L)`.
        - Output: `(*, L_out)`, with `L_out = L + left + right`.

    Raises:
        RuntimeError: At the call, the input has too few dimensions, or negative paddings take away more than
            there is.

    Example:
        >>> pad = mica.nn.ZeroPad1d((2, 1))
        >>> pad(mica.ones(2, 3))
        tensor([[0., 0., 1., 1., 1., 0.],
                [0., 0., 1., 1., 1., 0.]])
    """

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    extra_repr = _Pad.extra_repr


class ZeroPad2d(ConstantPad2d):
    """Surrounds the last two dimensions by zeros.

    As `torch.nn.ZeroPad2d`. A negative padding takes pixels away.

    Args:
        padding (int or tuple of 4 int): Pixels added: `(left, right, top, bottom)`, or one number for all
            sides.

    Shape:
        - Input: `(*, H, W)`.
        - Output: `(*, H_out, W_out)`, with `H_out = H + top + bottom`, `W_out = W + left + right`.

    Raises:
        RuntimeError: At the call, the input has too few dimensions, or negative paddings take away more than
            there is.

    Example:
        >>> pad = mica.nn.ZeroPad2d((1, 0, 0, 1))
        >>> pad(mica.ones(2, 2))
        tensor([[0., 1., 1.],
                [0., 1., 1.],
                [0., 0., 0.]])
    """

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    extra_repr = _Pad.extra_repr


class ZeroPad3d(ConstantPad3d):
    """Surrounds the last three dimensions by zeros.

    As `torch.nn.ZeroPad3d`. A negative padding takes voxels away.

    Args:
        padding (int or tuple of 6 int): Voxels added: `(left, right, top, bottom, front, back)`, or one
            number for all sides.

    Shape:
        - Input: `(*, D, H, W)`.
        - Output: `(*, D_out, H_out, W_out)`, with `D_out = D + front + back`, `H_out = H + top + bottom`,
          `W_out = W + left + right`.

    Raises:
        RuntimeError: At the call, the input has too few dimensions, or negative paddings take away more than
            there is.

    Example:
        >>> pad = mica.nn.ZeroPad3d(1)
        >>> pad(mica.ones(2, 2, 2)).shape
        mica.Size([4, 4, 4])
    """

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    extra_repr = _Pad.extra_repr


class Unfold(Module):
    """The sliding windows of images, as columns of a matrix (im2col).

    As `torch.nn.Unfold`. A convolution is a matrix product with these columns; `Fold` adds them back.

    Args:
        kernel_size (int or tuple of 2 int): Height and width of the window, in pixels.
        dilation (int or tuple of 2 int): Pixels between neighbours within a window. Default: 1.
        padding (int or tuple of 2 int): Pixels of zeros added on both sides. Default: 0.
        stride (int or tuple of 2 int): Pixels between the starts of windows. Default: 1.

    Shape:
        - Input: `(N, C, H, W)` or `(C, H, W)`.
        - Output: `(N, C * kh * kw, L)` or `(C * kh * kw, L)`, with `L` the number of windows, row by row: the
          product of `floor((size + 2 * padding - dilation * (kernel_size - 1) - 1) / stride + 1)` over height
          and width.

    Raises:
        RuntimeError: At the call, the window is larger than the padded input.
        IndexError: At the call, the input has fewer than 3 dimensions.

    Example:
        >>> unfold = mica.nn.Unfold(2)
        >>> unfold(mica.arange(9.).view(1, 3, 3))
        tensor([[0., 1., 3., 4.],
                [1., 2., 4., 5.],
                [3., 4., 6., 7.],
                [4., 5., 7., 8.]])
    """

    def __init__(self, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> None:
        super().__init__()
        self.kernel_size, self.dilation, self.padding, self.stride = kernel_size, dilation, padding, stride

    def forward(self, input: Tensor) -> Tensor:
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, dilation={self.dilation}, padding={self.padding}, "
            f"stride={self.stride}"
        )


class Fold(Module):
    """Adds the columns of a matrix back into images, at the places that `Unfold` took them from (col2im).

    As `torch.nn.Fold`. Where windows overlap, their values add up, so that it is no inverse of `Unfold`
    there.

    Args:
        output_size (int or tuple of 2 int): Height and width of the images, in pixels.
        kernel_size (int or tuple of 2 int): Height and width of the window, in pixels.
        dilation (int or tuple of 2 int): Pixels between neighbours within a window. Default: 1.
        padding (int or tuple of 2 int): Pixels on both sides that the windows cover and the images have not.
            Default: 0.
        stride (int or tuple of 2 int): Pixels between the starts of windows. Default: 1.

    Shape:
        - Input: `(N, C * kh * kw, L)` or `(C * kh * kw, L)`, with `L` the number of windows that `Unfold`
          finds.
        - Output: `(N, C, *output_size)` or `(C, *output_size)`.

    Raises:
        RuntimeError: At the call, the input has other dimensions, its rows are no multiple of `kh * kw`, or
            its columns not as many as there are windows.

    Example:
        >>> fold = mica.nn.Fold((3, 3), 2)
        >>> fold(mica.ones(4, 4))
        tensor([[[1., 2., 1.],
                 [2., 4., 2.],
                 [1., 2., 1.]]])
    """

    def __init__(
        self,
        output_size: Any,
        kernel_size: Any,
        dilation: Any = 1,
        padding: Any = 0,
        stride: Any = 1,
    ) -> None:
        super().__init__()
        self.output_size, self.kernel_size = output_size, kernel_size
        self.dilation, self.padding, self.stride = dilation, padding, stride

    def forward(self, input: Tensor) -> Tensor:
        return F.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return (
            f"output_size={self.output_size}, kernel_size={self.kernel_size}, dilation={self.dilation}, "
            f"padding={self.padding}, stride={self.stride}"
        )
