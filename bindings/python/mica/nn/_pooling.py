"""Pooling beyond the plain operators: three dimensions, powers, fractions, and back."""

from __future__ import annotations

import math
from typing import Any

import mica
from mica._C import Tensor
from mica.nn._operators import OPERATORS, sides


def max_pool3d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The maximum of each window of (N, C, D, H, W)."""
    name = "max_pool3d_with_indices" if return_indices else "max_pool3d"
    return OPERATORS[name](input, kernel_size, [] if stride is None else stride, padding, dilation, ceil_mode)


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
    """The mean of windows chosen so that the output has `output_size`; None keeps a size."""
    return OPERATORS["adaptive_avg_pool2d"](input, _adaptive_sizes(input, output_size, 2))


def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """The mean of windows chosen so that the output has `output_size`; None keeps a size."""
    return OPERATORS["adaptive_avg_pool3d"](input, _adaptive_sizes(input, output_size, 3))


def adaptive_max_pool1d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """The maximum of windows chosen so that the output has `output_size`."""
    found = OPERATORS["adaptive_max_pool1d"](input, output_size)
    return found if return_indices else found[0]


def adaptive_max_pool2d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """The maximum of windows chosen so that the output has `output_size`; None keeps a size."""
    found = OPERATORS["adaptive_max_pool2d"](input, _adaptive_sizes(input, output_size, 2))
    return found if return_indices else found[0]


def adaptive_max_pool3d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """The maximum of windows chosen so that the output has `output_size`; None keeps a size."""
    found = OPERATORS["adaptive_max_pool3d"](input, _adaptive_sizes(input, output_size, 3))
    return found if return_indices else found[0]


def adaptive_max_pool1d_with_indices(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """adaptive_max_pool1d, and where the maxima stand."""
    return adaptive_max_pool1d(input, output_size, True)


def adaptive_max_pool2d_with_indices(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """adaptive_max_pool2d, and where the maxima stand."""
    return adaptive_max_pool2d(input, output_size, True)


def adaptive_max_pool3d_with_indices(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """adaptive_max_pool3d, and where the maxima stand."""
    return adaptive_max_pool3d(input, output_size, True)


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
        samples = mica.rand(batch, input.size(-dims - 1), dims, dtype=input.dtype, device=input.device)
    return OPERATORS[f"fractional_max_pool{dims}d"](input, kernel_size, output_size, samples)


def fractional_max_pool2d(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """The maximum of windows that begin at random, a pixel or more apart (Graham, arXiv:1412.6071)."""
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
    """fractional_max_pool2d of volumes."""
    found = _fractional(input, 3, kernel_size, output_size, output_ratio, _random_samples)
    return found if return_indices else found[0]


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
    """What max_pool1d with indices gave, back at its places; 0 elsewhere."""
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
    """What max_pool2d with indices gave, back at its places; 0 elsewhere."""
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
    """What max_pool3d with indices gave, back at its places; 0 elsewhere."""
    wanted, steps, around = _unpooled_size(input, 3, kernel_size, stride, padding, output_size)
    return OPERATORS["max_unpool3d"](input, indices, wanted, steps, around)


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
    """The norm of order `norm_type` of each window of (N, C, L)."""
    return _lp_pool(input, 1, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(
    input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
) -> Tensor:
    """The norm of order `norm_type` of each window of (N, C, H, W)."""
    return _lp_pool(input, 2, norm_type, kernel_size, stride, ceil_mode)


def lp_pool3d(
    input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
) -> Tensor:
    """The norm of order `norm_type` of each window of (N, C, D, H, W)."""
    return _lp_pool(input, 3, norm_type, kernel_size, stride, ceil_mode)


def max_pool1d_with_indices(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """max_pool1d, and where the maxima stand."""
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
    """max_pool2d, and where the maxima stand."""
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
    """max_pool3d, and where the maxima stand."""
    return max_pool3d(input, kernel_size, stride, padding, dilation, ceil_mode, True)


def fractional_max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """fractional_max_pool2d, and where the maxima stand."""
    return _fractional(input, 2, kernel_size, output_size, output_ratio, _random_samples)


def fractional_max_pool3d_with_indices(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """fractional_max_pool3d, and where the maxima stand."""
    return _fractional(input, 3, kernel_size, output_size, output_ratio, _random_samples)
