"""Pooling whose windows are chosen so that the output has the size that is asked for."""

from __future__ import annotations

from typing import Any

from mica._C import Tensor
from mica.nn._operators import OPERATORS


def _adaptive_sizes(input: Tensor, output_size: Any, dims: int) -> list[int]:
    if isinstance(output_size, int):
        return [output_size] * dims
    wanted = list(output_size)
    if input.ndim <= len(wanted):
        raise ValueError(f"Number of dimensions ({input.ndim}) of `input` is not above ({len(wanted)}).")
    if len(wanted) not in (1, dims):
        raise RuntimeError(f"Number of sizes ({len(wanted)}) of `output_size` is not ({dims}).")
    wanted = wanted * dims if len(wanted) != dims else wanted
    return [input.size(d - dims) if w is None else w for d, w in enumerate(wanted)]


def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """The mean of windows of images that are chosen so that the output has a given size.

    As `torch.nn.functional.adaptive_avg_pool2d`. In each dimension window `i` goes from
    `floor(i * W / W_out)` up to `ceil((i + 1) * W / W_out)`.

    Args:
        input (Tensor): `(N, C, H, W)` or `(C, H, W)`, floating.
        output_size (int or tuple of 2 int or None): Height and width of the output, in pixels. None keeps a
            size.

    Returns:
        Tensor: `(N, C, *output_size)`, or without `N`.

    Raises:
        RuntimeError: The number of dimensions of `input` or of sizes does not fit, or a size is negative.
        ValueError: Sizes are given as a tuple and `input` has no dimension of channels.

    Example:
        >>> x = mica.arange(16.0).reshape(1, 4, 4)
        >>> mica.nn.functional.adaptive_avg_pool2d(x, (None, 2))
        tensor([[[ 0.5000,  2.5000],
                 [ 4.5000,  6.5000],
                 [ 8.5000, 10.5000],
                 [12.5000, 14.5000]]])
    """
    return OPERATORS["adaptive_avg_pool2d"](input, _adaptive_sizes(input, output_size, 2))


def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """The mean of windows of volumes that are chosen so that the output has a given size.

    As `torch.nn.functional.adaptive_avg_pool3d`. In each dimension window `i` goes from
    `floor(i * W / W_out)` up to `ceil((i + 1) * W / W_out)`.

    Args:
        input (Tensor): `(N, C, D, H, W)` or `(C, D, H, W)`, floating.
        output_size (int or tuple of 3 int or None): Depth, height and width of the output, in voxels. None
            keeps a size.

    Returns:
        Tensor: `(N, C, *output_size)`, or without `N`.

    Raises:
        RuntimeError: The number of dimensions of `input` or of sizes does not fit, or a size is negative.
        ValueError: Sizes are given as a tuple and `input` has no dimension of channels.

    Example:
        >>> x = mica.arange(8.0).reshape(1, 2, 2, 2)
        >>> mica.nn.functional.adaptive_avg_pool3d(x, (1, 1, 2))
        tensor([[[[3., 4.]]]])
    """
    return OPERATORS["adaptive_avg_pool3d"](input, _adaptive_sizes(input, output_size, 3))


def adaptive_max_pool1d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """The maximum of windows of sequences that are chosen so that the output has a given size.

    As `torch.nn.functional.adaptive_max_pool1d`. Window `i` goes from
    `floor(i * L / L_out)` up to `ceil((i + 1) * L / L_out)`.

    Args:
        input (Tensor): `(N, C, L)` or `(C, L)`, real numbers.
        output_size (int or tuple of 1 int): Length of the output, in elements.
        return_indices (bool): Return also where the maxima stand. Default: False.

    Returns:
        Tensor or tuple of 2 Tensor: The maxima, `(N, C, *output_size)`, or without `N`; with
        `return_indices` also their indices in the flattened length of each channel, int64.

    Raises:
        RuntimeError: The number of dimensions of `input` or of sizes does not fit, or a size is negative.

    Example:
        >>> x = mica.tensor([[1.0, 3.0, 2.0, 5.0, 4.0, 0.0]])
        >>> mica.nn.functional.adaptive_max_pool1d(x, 3)
        tensor([[3., 5., 4.]])
    """
    found = OPERATORS["adaptive_max_pool1d"](input, output_size)
    return found if return_indices else found[0]


def adaptive_max_pool2d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """The maximum of windows of images that are chosen so that the output has a given size.

    As `torch.nn.functional.adaptive_max_pool2d`. In each dimension window `i` goes from
    `floor(i * W / W_out)` up to `ceil((i + 1) * W / W_out)`.

    Args:
        input (Tensor): `(N, C, H, W)` or `(C, H, W)`, real numbers.
        output_size (int or tuple of 2 int or None): Height and width of the output, in pixels. None keeps a
            size.
        return_indices (bool): Return also where the maxima stand. Default: False.

    Returns:
        Tensor or tuple of 2 Tensor: The maxima, `(N, C, *output_size)`, or without `N`; with
        `return_indices` also their indices in the flattened height and width of each channel, int64.

    Raises:
        RuntimeError: The number of dimensions of `input` or of sizes does not fit, or a size is negative.
        ValueError: Sizes are given as a tuple and `input` has no dimension of channels.

    Example:
        >>> x = mica.arange(16.0).reshape(1, 4, 4)
        >>> mica.nn.functional.adaptive_max_pool2d(x, (None, 2))
        tensor([[[ 1.,  3.],
                 [ 5.,  7.],
                 [ 9., 11.],
                 [13., 15.]]])
    """
    found = OPERATORS["adaptive_max_pool2d"](input, _adaptive_sizes(input, output_size, 2))
    return found if return_indices else found[0]


def adaptive_max_pool3d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """The maximum of windows of volumes that are chosen so that the output has a given size.

    As `torch.nn.functional.adaptive_max_pool3d`. In each dimension window `i` goes from
    `floor(i * W / W_out)` up to `ceil((i + 1) * W / W_out)`.

    Args:
        input (Tensor): `(N, C, D, H, W)` or `(C, D, H, W)`, real numbers.
        output_size (int or tuple of 3 int or None): Depth, height and width of the output, in voxels. None
            keeps a size.
        return_indices (bool): Return also where the maxima stand. Default: False.

    Returns:
        Tensor or tuple of 2 Tensor: The maxima, `(N, C, *output_size)`, or without `N`; with
        `return_indices` also their indices in the flattened depth, height and width of each channel, int64.

    Raises:
        RuntimeError: The number of dimensions of `input` or of sizes does not fit, or a size is negative.
        ValueError: Sizes are given as a tuple and `input` has no dimension of channels.

    Example:
        >>> x = mica.arange(8.0).reshape(1, 2, 2, 2)
        >>> mica.nn.functional.adaptive_max_pool3d(x, (1, 1, 2))
        tensor([[[[6., 7.]]]])
    """
    found = OPERATORS["adaptive_max_pool3d"](input, _adaptive_sizes(input, output_size, 3))
    return found if return_indices else found[0]


def adaptive_max_pool1d_with_indices(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """The maximum of windows of sequences, chosen by the output's size, and where it stands.

    As `adaptive_max_pool1d` with `return_indices=True`.

    Args:
        input (Tensor): `(N, C, L)` or `(C, L)`, real numbers.
        output_size (int or tuple of 1 int): Length of the output, in elements.
        return_indices (bool): Has no effect: the indices always come. Default: False.

    Returns:
        tuple of 2 Tensor: The maxima, `(N, C, *output_size)` or without `N`, and their indices in the
        flattened length of each channel, int64.

    Raises:
        RuntimeError: The number of dimensions of `input` or of sizes does not fit, or a size is negative.

    Example:
        >>> x = mica.tensor([[1.0, 3.0, 2.0, 5.0, 4.0, 0.0]])
        >>> values, indices = mica.nn.functional.adaptive_max_pool1d_with_indices(x, 3)
        >>> indices
        tensor([[1, 3, 4]])
    """
    return adaptive_max_pool1d(input, output_size, True)


def adaptive_max_pool2d_with_indices(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """The maximum of windows of images, chosen by the output's size, and where it stands.

    As `adaptive_max_pool2d` with `return_indices=True`.

    Args:
        input (Tensor): `(N, C, H, W)` or `(C, H, W)`, real numbers.
        output_size (int or tuple of 2 int or None): Height and width of the output, in pixels. None keeps a
            size.
        return_indices (bool): Has no effect: the indices always come. Default: False.

    Returns:
        tuple of 2 Tensor: The maxima, `(N, C, *output_size)` or without `N`, and their indices in the
        flattened height and width of each channel, int64.

    Raises:
        RuntimeError: The number of dimensions of `input` or of sizes does not fit, or a size is negative.
        ValueError: Sizes are given as a tuple and `input` has no dimension of channels.

    Example:
        >>> x = mica.arange(16.0).reshape(1, 4, 4)
        >>> values, indices = mica.nn.functional.adaptive_max_pool2d_with_indices(x, (None, 2))
        >>> indices
        tensor([[[ 1,  3],
                 [ 5,  7],
                 [ 9, 11],
                 [13, 15]]])
    """
    return adaptive_max_pool2d(input, output_size, True)


def adaptive_max_pool3d_with_indices(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """The maximum of windows of volumes, chosen by the output's size, and where it stands.

    As `adaptive_max_pool3d` with `return_indices=True`.

    Args:
        input (Tensor): `(N, C, D, H, W)` or `(C, D, H, W)`, real numbers.
        output_size (int or tuple of 3 int or None): Depth, height and width of the output, in voxels. None
            keeps a size.
        return_indices (bool): Has no effect: the indices always come. Default: False.

    Returns:
        tuple of 2 Tensor: The maxima, `(N, C, *output_size)` or without `N`, and their indices in the
        flattened depth, height and width of each channel, int64.

    Raises:
        RuntimeError: The number of dimensions of `input` or of sizes does not fit, or a size is negative.
        ValueError: Sizes are given as a tuple and `input` has no dimension of channels.

    Example:
        >>> x = mica.arange(8.0).reshape(1, 2, 2, 2)
        >>> values, indices = mica.nn.functional.adaptive_max_pool3d_with_indices(x, (1, 1, 2))
        >>> indices
        tensor([[[[6, 7]]]])
    """
    return adaptive_max_pool3d(input, output_size, True)
