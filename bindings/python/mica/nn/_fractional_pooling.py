"""Pooling whose windows begin at random places (Graham, arXiv:1412.6071)."""

from __future__ import annotations

from typing import Any

from mica._C import Tensor
from mica.nn._operators import OPERATORS, sides


def _fractional(
    input: Tensor, dims: int, kernel_size: Any, output_size: Any, output_ratio: Any, samples: Tensor | None
) -> Any:
    if output_size is None and output_ratio is None:
        raise ValueError("Expected one of `output_size` and `output_ratio`; neither is given.")
    if output_size is None:
        ratios = sides(output_ratio, dims)
        if len(ratios) != dims:
            raise ValueError(
                f"fractional_max_pool{dims}d requires output_ratio to either be a single Int or tuple of Ints. "
                f"Number of ratios ({len(ratios)}) of `output_ratio` is not 1 or ({dims})."
            )
        output_size = [int(input.size(d - dims) * ratios[d]) for d in range(dims)]
    if samples is None:
        batch = 1 if input.ndim == dims + 1 else input.size(0)
        samples = input.new_empty((batch, input.size(-dims - 1), dims)).uniform_()
    return OPERATORS[f"fractional_max_pool{dims}d"](input, kernel_size, output_size, samples)


def fractional_max_pool2d(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """The maximum of windows of images that begin at random places, for outputs of any size below the input's.

    As `torch.nn.functional.fractional_max_pool2d` (Graham, arXiv:1412.6071). Distances between windows are
    random but as equal as they can be.

    Args:
        input (Tensor): `(N, C, H, W)` or `(C, H, W)`.
        kernel_size (int or tuple of 2 int): Height and width of the window, in pixels.
        output_size (int or tuple of 2 int, optional): Height and width of the output, in pixels; it comes
            before `output_ratio`. `output_size + kernel_size - 1` is at most the input's. Default: None.
        output_ratio (float or tuple of 2 float, optional): Size of the output divided by that of the
            input, in (0, 1). Default: None.
        return_indices (bool): Return also where the maxima stand. Default: False.

    Returns:
        Tensor or tuple of 2 Tensor: The maxima, `(N, C, *output_size)`, or without `N`; with
        `return_indices` also their indices in the flattened height and width of each channel, int64.

    Raises:
        ValueError: Neither size nor ratio is given, or the number of ratios does not fit.
        RuntimeError: Output and window are too large for the input.

    Example:
        >>> x = mica.rand(1, 1, 10, 10)
        >>> mica.nn.functional.fractional_max_pool2d(x, 2, output_ratio=0.7).shape
        mica.Size([1, 1, 7, 7])
    """
    found = _fractional(input, 2, kernel_size, output_size, output_ratio, _random_samples)
    return found if return_indices else found[0]


def fractional_max_pool3d(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """The maximum of windows of volumes that begin at random places, for outputs of any size below the input's.

    As `torch.nn.functional.fractional_max_pool3d` (Graham, arXiv:1412.6071). Distances between windows are
    random but as equal as they can be.

    Args:
        input (Tensor): `(N, C, D, H, W)` or `(C, D, H, W)`.
        kernel_size (int or tuple of 3 int): Depth, height and width of the window, in voxels.
        output_size (int or tuple of 3 int, optional): Depth, height and width of the output, in voxels; it
            comes before `output_ratio`. `output_size + kernel_size - 1` is at most the input's.
            Default: None.
        output_ratio (float or tuple of 3 float, optional): Size of the output divided by that of the
            input, in (0, 1). Default: None.
        return_indices (bool): Return also where the maxima stand. Default: False.

    Returns:
        Tensor or tuple of 2 Tensor: The maxima, `(N, C, *output_size)`, or without `N`; with
        `return_indices` also their indices in the flattened depth, height and width of each channel, int64.

    Raises:
        ValueError: Neither size nor ratio is given, or the number of ratios does not fit.
        RuntimeError: Output and window are too large for the input.

    Example:
        >>> x = mica.rand(1, 1, 10, 10, 10)
        >>> mica.nn.functional.fractional_max_pool3d(x, 2, output_ratio=0.7).shape
        mica.Size([1, 1, 7, 7, 7])
    """
    found = _fractional(input, 3, kernel_size, output_size, output_ratio, _random_samples)
    return found if return_indices else found[0]


def fractional_max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """The maximum of windows of images that begin at random places, and where it stands.

    As `fractional_max_pool2d` with `return_indices=True`.

    Args:
        input (Tensor): `(N, C, H, W)` or `(C, H, W)`.
        kernel_size (int or tuple of 2 int): Height and width of the window, in pixels.
        output_size (int or tuple of 2 int, optional): Height and width of the output, in pixels; it comes
            before `output_ratio`. `output_size + kernel_size - 1` is at most the input's. Default: None.
        output_ratio (float or tuple of 2 float, optional): Size of the output divided by that of the
            input, in (0, 1). Default: None.
        return_indices (bool): Has no effect: the indices always come. Default: False.

    Returns:
        tuple of 2 Tensor: The maxima, `(N, C, *output_size)` or without `N`, and their indices in the
        flattened height and width of each channel, int64.

    Raises:
        ValueError: Neither size nor ratio is given, or the number of ratios does not fit.
        RuntimeError: Output and window are too large for the input.

    Example:
        >>> x = mica.rand(1, 1, 10, 10)
        >>> values, indices = mica.nn.functional.fractional_max_pool2d_with_indices(x, 2, output_size=(5, 6))
        >>> indices.shape
        mica.Size([1, 1, 5, 6])
    """
    return _fractional(input, 2, kernel_size, output_size, output_ratio, _random_samples)


def fractional_max_pool3d_with_indices(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """The maximum of windows of volumes that begin at random places, and where it stands.

    As `fractional_max_pool3d` with `return_indices=True`.

    Args:
        input (Tensor): `(N, C, D, H, W)` or `(C, D, H, W)`.
        kernel_size (int or tuple of 3 int): Depth, height and width of the window, in voxels.
        output_size (int or tuple of 3 int, optional): Depth, height and width of the output, in voxels; it
            comes before `output_ratio`. `output_size + kernel_size - 1` is at most the input's.
            Default: None.
        output_ratio (float or tuple of 3 float, optional): Size of the output divided by that of the
            input, in (0, 1). Default: None.
        return_indices (bool): Has no effect: the indices always come. Default: False.

    Returns:
        tuple of 2 Tensor: The maxima, `(N, C, *output_size)` or without `N`, and their indices in the
        flattened depth, height and width of each channel, int64.

    Raises:
        ValueError: Neither size nor ratio is given, or the number of ratios does not fit.
        RuntimeError: Output and window are too large for the input.

    Example:
        >>> x = mica.rand(1, 1, 10, 10, 10)
        >>> values, indices = mica.nn.functional.fractional_max_pool3d_with_indices(x, 2, output_size=5)
        >>> indices.shape
        mica.Size([1, 1, 5, 5, 5])
    """
    return _fractional(input, 3, kernel_size, output_size, output_ratio, _random_samples)
