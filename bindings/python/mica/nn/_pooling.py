"""Pooling of windows of a fixed size: maxima and norms."""

from __future__ import annotations

import math
from typing import Any

from mica._C import Tensor
from mica.nn._operators import OPERATORS, sides


def max_pool1d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The maximum of each window of sequences.

    As `torch.nn.functional.max_pool1d`.

    Args:
        input (Tensor): `(N, C, L)` or `(C, L)`, real numbers.
        kernel_size (int): Length of the window, in elements.
        stride (int, optional): Steps between windows, in elements. Default: `kernel_size`.
        padding (int): Minus infinities added on each side, in elements; at most half of the window.
            Default: 0.
        dilation (int): Steps between the elements of a window, in elements. Default: 1.
        ceil_mode (bool): Round the output's size up, so that windows may stick out at the end.
            Default: False.
        return_indices (bool): Return also where the maxima stand, as `max_unpool1d` takes them.
            Default: False.

    Returns:
        Tensor or tuple of 2 Tensor: The maxima, `(N, C, L_out)`, with
        `L_out = floor((L + 2 * padding - dilation * (kernel_size - 1) - 1) / stride + 1)`;
        with `return_indices` also their indices in the flattened length of each channel, int64.

    Raises:
        RuntimeError: `input` has another number of dimensions, `padding` is above half of the window, a
            size or stride is not positive, or the window is larger than the padded input.

    Example:
        >>> x = mica.tensor([[1.0, 3.0, 2.0, 5.0, 4.0, 0.0]])
        >>> mica.nn.functional.max_pool1d(x, 2)
        tensor([[3., 5., 4.]])
    """
    stride = [] if stride is None else stride
    name = "max_pool1d_with_indices" if return_indices else "max_pool1d"
    return OPERATORS[name](input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool2d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The maximum of each window of images.

    As `torch.nn.functional.max_pool2d`.

    Args:
        input (Tensor): `(N, C, H, W)` or `(C, H, W)`, real numbers.
        kernel_size (int or tuple of 2 int): Height and width of the window, in pixels.
        stride (int or tuple of 2 int, optional): Steps between windows, in pixels. Default: `kernel_size`.
        padding (int or tuple of 2 int): Minus infinities added on each side, in pixels; at most half of the
            window. Default: 0.
        dilation (int or tuple of 2 int): Steps between the elements of a window, in pixels. Default: 1.
        ceil_mode (bool): Round the output's size up, so that windows may stick out at the end.
            Default: False.
        return_indices (bool): Return also where the maxima stand, as `max_unpool2d` takes them.
            Default: False.

    Returns:
        Tensor or tuple of 2 Tensor: The maxima, `(N, C, H_out, W_out)`, with
        `H_out = floor((H + 2 * padding - dilation * (kernel_size - 1) - 1) / stride + 1)`
        and likewise for the width;
        with `return_indices` also their indices in the flattened height and width of each channel, int64.

    Raises:
        RuntimeError: `input` has another number of dimensions, `padding` is above half of the window, a
            size or stride is not positive, or the window is larger than the padded input.

    Example:
        >>> x = mica.arange(16.0).reshape(1, 4, 4)
        >>> mica.nn.functional.max_pool2d(x, 2)
        tensor([[[ 5.,  7.],
                 [13., 15.]]])
    """
    stride = [] if stride is None else stride
    name = "max_pool2d_with_indices" if return_indices else "max_pool2d"
    return OPERATORS[name](input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool3d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The maximum of each window of volumes.

    As `torch.nn.functional.max_pool3d`.

    Args:
        input (Tensor): `(N, C, D, H, W)` or `(C, D, H, W)`, real numbers.
        kernel_size (int or tuple of 3 int): Depth, height and width of the window, in voxels.
        stride (int or tuple of 3 int, optional): Steps between windows, in voxels. Default: `kernel_size`.
        padding (int or tuple of 3 int): Minus infinities added on each side, in voxels; at most half of the
            window. Default: 0.
        dilation (int or tuple of 3 int): Steps between the elements of a window, in voxels. Default: 1.
        ceil_mode (bool): Round the output's size up, so that windows may stick out at the end.
            Default: False.
        return_indices (bool): Return also where the maxima stand, as `max_unpool3d` takes them.
            Default: False.

    Returns:
        Tensor or tuple of 2 Tensor: The maxima, `(N, C, D_out, H_out, W_out)`, with
        `D_out = floor((D + 2 * padding - dilation * (kernel_size - 1) - 1) / stride + 1)` and likewise for
        the others; with `return_indices` also their indices in the flattened depth, height and width of each
        channel, int64.

    Raises:
        RuntimeError: `input` has another number of dimensions, `padding` is above half of the window, a
            size or stride is not positive, or the window is larger than the padded input.

    Example:
        >>> x = mica.arange(8.0).reshape(1, 2, 2, 2)
        >>> mica.nn.functional.max_pool3d(x, 2)
        tensor([[[[7.]]]])
    """
    name = "max_pool3d_with_indices" if return_indices else "max_pool3d"
    return OPERATORS[name](input, kernel_size, [] if stride is None else stride, padding, dilation, ceil_mode)


def max_pool1d_with_indices(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The maximum of each window of sequences, and where it stands.

    As `max_pool1d` with `return_indices=True`.

    Args:
        input (Tensor): `(N, C, L)` or `(C, L)`, real numbers.
        kernel_size (int): Length of the window, in elements.
        stride (int, optional): Steps between windows, in elements. Default: `kernel_size`.
        padding (int): Minus infinities added on each side, in elements; at most half of the window.
            Default: 0.
        dilation (int): Steps between the elements of a window, in elements. Default: 1.
        ceil_mode (bool): Round the output's size up, so that windows may stick out at the end.
            Default: False.
        return_indices (bool): Has no effect: the indices always come. Default: False.

    Returns:
        tuple of 2 Tensor: The maxima, and their indices in the flattened length of each channel, int64;
        both of the output's shape of `max_pool1d`.

    Raises:
        RuntimeError: `input` has another number of dimensions, `padding` is above half of the window, a
            size or stride is not positive, or the window is larger than the padded input.

    Example:
        >>> x = mica.tensor([[1.0, 3.0, 2.0, 5.0, 4.0, 0.0]])
        >>> values, indices = mica.nn.functional.max_pool1d_with_indices(x, 2)
        >>> indices
        tensor([[1, 3, 4]])
    """
    step = [] if stride is None else stride
    return OPERATORS["max_pool1d_with_indices"](input, kernel_size, step, padding, dilation, ceil_mode)


def max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The maximum of each window of images, and where it stands.

    As `max_pool2d` with `return_indices=True`.

    Args:
        input (Tensor): `(N, C, H, W)` or `(C, H, W)`, real numbers.
        kernel_size (int or tuple of 2 int): Height and width of the window, in pixels.
        stride (int or tuple of 2 int, optional): Steps between windows, in pixels. Default: `kernel_size`.
        padding (int or tuple of 2 int): Minus infinities added on each side, in pixels; at most half of the
            window. Default: 0.
        dilation (int or tuple of 2 int): Steps between the elements of a window, in pixels. Default: 1.
        ceil_mode (bool): Round the output's size up, so that windows may stick out at the end.
            Default: False.
        return_indices (bool): Has no effect: the indices always come. Default: False.

    Returns:
        tuple of 2 Tensor: The maxima, and their indices in the flattened height and width of each channel,
        int64; both of the output's shape of `max_pool2d`.

    Raises:
        RuntimeError: `input` has another number of dimensions, `padding` is above half of the window, a
            size or stride is not positive, or the window is larger than the padded input.

    Example:
        >>> x = mica.arange(16.0).reshape(1, 4, 4)
        >>> values, indices = mica.nn.functional.max_pool2d_with_indices(x, 2)
        >>> indices
        tensor([[[ 5,  7],
                 [13, 15]]])
    """
    step = [] if stride is None else stride
    return OPERATORS["max_pool2d_with_indices"](input, kernel_size, step, padding, dilation, ceil_mode)


def max_pool3d_with_indices(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The maximum of each window of volumes, and where it stands.

    As `max_pool3d` with `return_indices=True`.

    Args:
        input (Tensor): `(N, C, D, H, W)` or `(C, D, H, W)`, real numbers.
        kernel_size (int or tuple of 3 int): Depth, height and width of the window, in voxels.
        stride (int or tuple of 3 int, optional): Steps between windows, in voxels. Default: `kernel_size`.
        padding (int or tuple of 3 int): Minus infinities added on each side, in voxels; at most half of the
            window. Default: 0.
        dilation (int or tuple of 3 int): Steps between the elements of a window, in voxels. Default: 1.
        ceil_mode (bool): Round the output's size up, so that windows may stick out at the end.
            Default: False.
        return_indices (bool): Has no effect: the indices always come. Default: False.

    Returns:
        tuple of 2 Tensor: The maxima, and their indices in the flattened depth, height and width of each
        channel, int64; both of the output's shape of `max_pool3d`.

    Raises:
        RuntimeError: `input` has another number of dimensions, `padding` is above half of the window, a
            size or stride is not positive, or the window is larger than the padded input.

    Example:
        >>> x = mica.arange(8.0).reshape(1, 2, 2, 2)
        >>> values, indices = mica.nn.functional.max_pool3d_with_indices(x, 2)
        >>> indices
        tensor([[[[7]]]])
    """
    return max_pool3d(input, kernel_size, stride, padding, dilation, ceil_mode, True)


def _lp_pool(
    input: Tensor, dims: int, norm_type: float, kernel_size: Any, stride: Any, ceil_mode: bool
) -> Tensor:
    kernel = sides(kernel_size, dims)
    step = [] if stride is None else stride
    if math.isinf(norm_type):
        sign = 1 if norm_type > 0 else -1
        return sign * OPERATORS[f"max_pool{dims}d"](sign * input.abs(), kernel, step, 0, 1, ceil_mode)
    out = OPERATORS[f"avg_pool{dims}d"](input.pow(norm_type), kernel, step, 0, ceil_mode)
    return (out.sign() * out.abs().relu()).mul(math.prod(kernel)).pow(1.0 / norm_type)


def lp_pool1d(
    input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
) -> Tensor:
    """The norm of each window of sequences: `sum(x ** norm_type) ** (1 / norm_type)`.

    As `torch.nn.functional.lp_pool1d`. Infinite orders give the maximum or minimum of `abs(x)`.

    Args:
        input (Tensor): `(N, C, L)` or `(C, L)`, floating.
        norm_type (float): Order of the norm, not 0. Elements keep their sign: 1 is the plain sum.
        kernel_size (int): Length of the window, in elements.
        stride (int, optional): Steps between windows, in elements. Default: `kernel_size`.
        ceil_mode (bool): Round the output's size up: windows that stick out count as if their elements
            inside were repeated to fill them. Default: False.

    Returns:
        Tensor: `(N, C, L_out)`, with `L_out = floor((L - kernel_size) / stride + 1)`.

    Raises:
        RuntimeError: The window is larger than the input, or a size or stride is not positive.
        ZeroDivisionError: `norm_type` is 0.

    Example:
        >>> x = mica.tensor([[1.0, 3.0, 2.0, 5.0, 4.0, 0.0]])
        >>> mica.nn.functional.lp_pool1d(x, 2, 2)
        tensor([[3.1623, 5.3852, 4.0000]])
    """
    return _lp_pool(input, 1, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(
    input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
) -> Tensor:
    """The norm of each window of images: `sum(x ** norm_type) ** (1 / norm_type)`.

    As `torch.nn.functional.lp_pool2d`. Infinite orders give the maximum or minimum of `abs(x)`.

    Args:
        input (Tensor): `(N, C, H, W)` or `(C, H, W)`, floating.
        norm_type (float): Order of the norm, not 0. Elements keep their sign: 1 is the plain sum.
        kernel_size (int or tuple of 2 int): Height and width of the window, in pixels.
        stride (int or tuple of 2 int, optional): Steps between windows, in pixels. Default: `kernel_size`.
        ceil_mode (bool): Round the output's size up: windows that stick out count as if their elements
            inside were repeated to fill them. Default: False.

    Returns:
        Tensor: `(N, C, H_out, W_out)`, with `H_out = floor((H - kernel_size) / stride + 1)` and likewise for
        the width.

    Raises:
        RuntimeError: The window is larger than the input, or a size or stride is not positive.
        ZeroDivisionError: `norm_type` is 0.

    Example:
        >>> x = mica.arange(16.0).reshape(1, 4, 4)
        >>> mica.nn.functional.lp_pool2d(x, 2, 2)
        tensor([[[ 6.4807,  9.8995],
                 [21.4009, 25.3377]]])
    """
    return _lp_pool(input, 2, norm_type, kernel_size, stride, ceil_mode)


def lp_pool3d(
    input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
) -> Tensor:
    """The norm of each window of volumes: `sum(x ** norm_type) ** (1 / norm_type)`.

    As `torch.nn.functional.lp_pool3d`. Infinite orders give the maximum or minimum of `abs(x)`.

    Args:
        input (Tensor): `(N, C, D, H, W)` or `(C, D, H, W)`, floating.
        norm_type (float): Order of the norm, not 0. Elements keep their sign: 1 is the plain sum.
        kernel_size (int or tuple of 3 int): Depth, height and width of the window, in voxels.
        stride (int or tuple of 3 int, optional): Steps between windows, in voxels. Default: `kernel_size`.
        ceil_mode (bool): Round the output's size up: windows that stick out count as if their elements
            inside were repeated to fill them. Default: False.

    Returns:
        Tensor: `(N, C, D_out, H_out, W_out)`, with `D_out = floor((D - kernel_size) / stride + 1)` and
        likewise for the others.

    Raises:
        RuntimeError: The window is larger than the input, or a size or stride is not positive.
        ZeroDivisionError: `norm_type` is 0.

    Example:
        >>> x = mica.arange(8.0).reshape(1, 2, 2, 2)
        >>> mica.nn.functional.lp_pool3d(x, 2, 2)
        tensor([[[[11.8322]]]])
    """
    return _lp_pool(input, 3, norm_type, kernel_size, stride, ceil_mode)
