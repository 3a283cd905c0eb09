"""Windows of images as columns, and columns added back into images."""

from __future__ import annotations

from typing import Any

from mica._C import Tensor
from mica.nn._operators import OPERATORS


def unfold(input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    """Copies each window of an image into a column, as a convolution by one matrix product needs them.

    As `torch.nn.functional.unfold`.

    Args:
        input (Tensor): `(N, C, H, W)` or `(C, H, W)`.
        kernel_size (int or tuple of 2 int): Height `kH` and width `kW` of the window, in elements.
        dilation (int or tuple of 2 int): Steps between the elements of a window, in pixels. Default: 1.
        padding (int or tuple of 2 int): Zeros added on each side, in pixels. Default: 0.
        stride (int or tuple of 2 int): Steps between windows, in pixels. Default: 1.

    Returns:
        Tensor: `(N, C * kH * kW, windows)`, or without `N`. Of windows there are, over both
        dimensions, the product of `floor((H + 2 * padding - dilation * (kH - 1) - 1) / stride + 1)`.

    Raises:
        IndexError: `input` has fewer than 3 dimensions.
        RuntimeError: The window is larger than the padded image.

    Example:
        >>> image = mica.arange(9.0).reshape(1, 3, 3)
        >>> mica.nn.functional.unfold(image, 2)
        tensor([[0., 1., 3., 4.],
                [1., 2., 4., 5.],
                [3., 4., 6., 7.],
                [4., 5., 7., 8.]])
    """
    return OPERATORS["im2col"](input, kernel_size, dilation, padding, stride)


def fold(
    input: Tensor, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Tensor:
    """Adds columns back into an image at the places of their windows: the transpose of unfold.

    As `torch.nn.functional.fold`. Where windows overlap, the result is the sum of their elements, so
    `fold(unfold(x))` counts such pixels several times.

    Args:
        input (Tensor): `(N, C * kH * kW, windows)` or without `N`: what `unfold` gives.
        output_size (int or tuple of 2 int): Height and width of the image, in pixels.
        kernel_size (int or tuple of 2 int): Height `kH` and width `kW` of the window, in elements.
        dilation (int or tuple of 2 int): Steps between the elements of a window, in pixels. Default: 1.
        padding (int or tuple of 2 int): Pixels on each side that are cut off. Default: 0.
        stride (int or tuple of 2 int): Steps between windows, in pixels. Default: 1.

    Returns:
        Tensor: `(N, C, *output_size)`, or without `N`.

    Raises:
        RuntimeError: The number of rows is no multiple of `kH * kW`, or the number of columns is not
            that of the windows.

    Example:
        >>> columns = mica.nn.functional.unfold(mica.ones(1, 3, 3), 2)
        >>> mica.nn.functional.fold(columns, (3, 3), 2)
        tensor([[[1., 2., 1.],
                 [2., 4., 2.],
                 [1., 2., 1.]]])
    """
    return OPERATORS["col2im"](input, output_size, kernel_size, dilation, padding, stride)
