"""Maxima of pooling back at their places."""

from __future__ import annotations

from typing import Any

from mica._C import Tensor
from mica.nn._operators import OPERATORS, sides


def _unpooled_size(
    input: Tensor, dims: int, kernel_size: Any, stride: Any, padding: Any, output_size: Any
) -> tuple[list[int], list[int], list[int]]:
    kernel = sides(kernel_size, dims)
    steps = kernel if stride is None else sides(stride, dims)
    around = sides(padding, dims)
    usual = [(input.size(d - dims) - 1) * steps[d] + kernel[d] - 2 * around[d] for d in range(dims)]
    if output_size is None:
        wanted = usual
    else:
        wanted = list(output_size)[2:] if len(output_size) == dims + 2 else list(output_size)
        if len(wanted) != dims:
            raise ValueError(
                f"Number of sizes ({len(output_size)}) of `output_size` is not ({dims}) or ({dims + 2})."
            )
        for d in range(dims):
            if not usual[d] - steps[d] < wanted[d] < usual[d] + steps[d]:
                raise ValueError(
                    f"Size ({wanted[d]}) of `output_size` is not between ({usual[d] - steps[d]}) and "
                    f"({usual[d] + steps[d]}), which windows of this stride need."
                )
    if min(wanted) < 0:
        raise ValueError(f"Output size {wanted} has a negative size.")
    return wanted, steps, around


def max_unpool1d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    output_size: Any = None,
) -> Tensor:
    """Puts what max_pool1d found back at its places among zeros.

    As `torch.nn.functional.max_unpool1d`.

    Args:
        input (Tensor): The maxima, `(N, C, L)` or `(C, L)`.
        indices (Tensor): Their places, int64, of the shape of `input`, as `max_pool1d` gives them with
            `return_indices=True`.
        kernel_size (int): Length of the window that was pooled, in elements.
        stride (int, optional): Steps between the windows. Default: `kernel_size`.
        padding (int): Of the pooling, on each side. Default: 0.
        output_size (tuple of int, optional): Length of the result, alone or as a whole shape; less
            than a stride away from the default, which is `(size - 1) * stride + kernel_size - 2 * padding`.
            Default: None.

    Returns:
        Tensor: `(N, C, L_out)`, of the dtype of `input`.

    Raises:
        ValueError: `output_size` has another number of sizes, or is too far from the default.
        RuntimeError: `indices` has another shape or dtype, or an index is out of bounds.

    Example:
        >>> x = mica.tensor([[1.0, 3.0, 2.0, 5.0, 4.0, 0.0]])
        >>> values, indices = mica.nn.functional.max_pool1d(x, 2, return_indices=True)
        >>> mica.nn.functional.max_unpool1d(values, indices, 2)
        tensor([[0., 3., 0., 5., 4., 0.]])
    """
    wanted, _, _ = _unpooled_size(input, 1, kernel_size, stride, padding, output_size)
    flat = OPERATORS["max_unpool2d"](input.unsqueeze(-1), indices.unsqueeze(-1), [*wanted, 1])
    return flat.squeeze(-1)


def max_unpool2d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    output_size: Any = None,
) -> Tensor:
    """Puts what max_pool2d found back at its places among zeros.

    As `torch.nn.functional.max_unpool2d`.

    Args:
        input (Tensor): The maxima, `(N, C, H, W)` or `(C, H, W)`.
        indices (Tensor): Their places, int64, of the shape of `input`, as `max_pool2d` gives them with
            `return_indices=True`.
        kernel_size (int or tuple of 2 int): Height and width of the window that was pooled, in pixels.
        stride (int or tuple of 2 int, optional): Steps between the windows. Default: `kernel_size`.
        padding (int or tuple of 2 int): Of the pooling, on each side. Default: 0.
        output_size (tuple of int, optional): Height and width of the result, alone or as a whole shape; less
            than a stride away from the default, which is `(size - 1) * stride + kernel_size - 2 * padding`.
            Default: None.

    Returns:
        Tensor: `(N, C, H_out, W_out)`, of the dtype of `input`.

    Raises:
        ValueError: `output_size` has another number of sizes, or is too far from the default.
        RuntimeError: `indices` has another shape or dtype, or an index is out of bounds.

    Example:
        >>> x = mica.arange(16.0).reshape(1, 4, 4)
        >>> values, indices = mica.nn.functional.max_pool2d(x, 2, return_indices=True)
        >>> mica.nn.functional.max_unpool2d(values, indices, 2)
        tensor([[[ 0.,  0.,  0.,  0.],
                 [ 0.,  5.,  0.,  7.],
                 [ 0.,  0.,  0.,  0.],
                 [ 0., 13.,  0., 15.]]])
    """
    wanted, _, _ = _unpooled_size(input, 2, kernel_size, stride, padding, output_size)
    return OPERATORS["max_unpool2d"](input, indices, wanted)


def max_unpool3d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    output_size: Any = None,
) -> Tensor:
    """Puts what max_pool3d found back at its places among zeros.

    As `torch.nn.functional.max_unpool3d`.

    Args:
        input (Tensor): The maxima, `(N, C, D, H, W)` or `(C, D, H, W)`.
        indices (Tensor): Their places, int64, of the shape of `input`, as `max_pool3d` gives them with
            `return_indices=True`.
        kernel_size (int or tuple of 3 int): Depth, height and width of the window that was pooled, in voxels.
        stride (int or tuple of 3 int, optional): Steps between the windows. Default: `kernel_size`.
        padding (int or tuple of 3 int): Of the pooling, on each side. Default: 0.
        output_size (tuple of int, optional): Depth, height and width of the result, alone or as a whole
            shape; less than a stride away from the default, which is
            `(size - 1) * stride + kernel_size - 2 * padding`. Default: None.

    Returns:
        Tensor: `(N, C, D_out, H_out, W_out)`, of the dtype of `input`.

    Raises:
        ValueError: `output_size` has another number of sizes, or is too far from the default.
        RuntimeError: `indices` has another shape or dtype, or an index is out of bounds.

    Example:
        >>> x = mica.arange(8.0).reshape(1, 2, 2, 2)
        >>> values, indices = mica.nn.functional.max_pool3d(x, 2, return_indices=True)
        >>> mica.nn.functional.max_unpool3d(values, indices, 2).flatten()
        tensor([0., 0., 0., 0., 0., 0., 0., 7.])
    """
    wanted, steps, around = _unpooled_size(input, 3, kernel_size, stride, padding, output_size)
    return OPERATORS["max_unpool3d"](input, indices, wanted, steps, around)
