"""Resampling of images: interpolate, grid_sample, affine_grid."""

from __future__ import annotations

import math
import warnings
from typing import Any

from mica._C import Tensor
from mica.nn._operators import OPERATORS, internal, sides

# By mode, the operator for 3, 4 and 5 dimensions; None where it has none.
_OPERATORS = {
    "nearest": ("upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d"),
    "nearest-exact": ("_upsample_nearest_exact1d", "_upsample_nearest_exact2d", "_upsample_nearest_exact3d"),
    "area": ("adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d"),
    "linear": ("upsample_linear1d", None, None),
    "bilinear": (None, "upsample_bilinear2d", None),
    "trilinear": (None, None, "upsample_trilinear3d"),
    "bicubic": (None, "upsample_bicubic2d", None),
    "lanczos": (None, "_upsample_lanczos2d_aa", None),
}
_ANTIALIASED = {
    "bilinear": "_upsample_bilinear2d_aa",
    "bicubic": "_upsample_bicubic2d_aa",
    "lanczos": "_upsample_lanczos2d_aa",
}
_WITHOUT_CORNERS = ("nearest", "nearest-exact", "area")


def _operator(input: Tensor, mode: str, antialias: bool) -> str:
    if antialias:
        if mode not in _ANTIALIASED or input.ndim != 4:
            raise ValueError(
                f"Antialiasing of mode ({mode}) with ({input.ndim}) dimensions is not possible; "
                "expected bilinear, bicubic or lanczos and 4 dimensions."
            )
        return _ANTIALIASED[mode]
    if mode == "lanczos":
        raise ValueError("Mode (lanczos) needs `antialias=True`.")
    names = _OPERATORS.get(mode)
    name = names[input.ndim - 3] if names and 3 <= input.ndim <= 5 else None
    if name is None:
        raise NotImplementedError(
            f"Interpolation of ({input.ndim}) dimensions by mode ({mode}) does not exist; expected 3 to 5 dimensions, "
            "with linear for 3, bilinear or bicubic for 4, trilinear for 5, nearest, nearest-exact or area for all."
        )
    return name


def _checked_sides(what: str, value: Any, dims: int) -> list[Any]:
    given = sides(value, dims)
    if len(given) != dims:
        raise ValueError(
            f"Number of values ({len(given)}) of `{what}` is not that ({dims}) of spatial dimensions."
        )
    return given


def interpolate(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """`input` (N, C, 1 to 3 dimensions) with other sizes, by the mode named."""
    if mode in _WITHOUT_CORNERS and align_corners is not None:
        raise ValueError(f"Argument `align_corners` has no meaning for mode ({mode}).")
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined, and both are.")
    if size is None and scale_factor is None:
        raise ValueError("either size or scale_factor should be defined, and neither is.")
    if recompute_scale_factor and size is not None:
        raise ValueError("Argument `recompute_scale_factor` has no meaning where `size` is given.")
    dims = input.ndim - 2
    name = _operator(input, mode, antialias)
    scales: list[float | None] = [None] * dims
    if size is not None:
        wanted = _checked_sides("size", size, dims)
        if not all(hasattr(s, "__index__") for s in wanted):
            raise TypeError(f"Size {wanted} is no list of ints.")
    else:
        factors = _checked_sides("scale_factor", scale_factor, dims)
        wanted = [math.floor(float(input.size(d + 2)) * factors[d]) for d in range(dims)]
        if not recompute_scale_factor and mode != "area":
            scales = [float(f) for f in factors]
    operator = internal(name) if name.startswith("_") else OPERATORS[name]
    if mode == "area":
        return operator(input, wanted)
    if mode in _WITHOUT_CORNERS:
        return operator(input, wanted, *scales)
    if mode == "lanczos" and align_corners:
        raise ValueError("Mode (lanczos) does not support `align_corners=True`.")
    return operator(input, wanted, bool(align_corners), *scales)


def upsample(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """The old name of interpolate."""
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """interpolate by mode nearest, under its old name."""
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """interpolate by mode bilinear with aligned corners, under its old name."""
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


_SAMPLE_MODES = {"bilinear": 0, "nearest": 1, "bicubic": 2}
_PADDING_MODES = {"zeros": 0, "border": 1, "reflection": 2}


def _default_corners(align_corners: bool | None) -> bool:
    if align_corners is None:
        warnings.warn(
            "Argument `align_corners` is not given; it is False, as in torch since 1.3.", stacklevel=3
        )
    return bool(align_corners)


def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """Pixels of `input` at the places of `grid`, which go from -1 to 1."""
    if mode not in _SAMPLE_MODES:
        raise ValueError(f"The mode ({mode}) is unknown; expected one of {', '.join(_SAMPLE_MODES)}.")
    if padding_mode not in _PADDING_MODES:
        raise ValueError(
            f"The padding mode ({padding_mode}) is unknown; expected one of {', '.join(_PADDING_MODES)}."
        )
    align = _default_corners(align_corners)
    return OPERATORS["grid_sampler"](input, grid, _SAMPLE_MODES[mode], _PADDING_MODES[padding_mode], align)


def affine_grid(theta: Tensor, size: Any, align_corners: bool | None = None) -> Tensor:
    """A grid for grid_sample: each image of a batch moved by its matrix of `theta`."""
    align = _default_corners(align_corners)
    if not theta.is_floating_point():
        raise ValueError(f"Dtype ({theta.dtype}) of `theta` is not floating.")
    if len(size) not in (4, 5):
        raise NotImplementedError(f"Number of sizes ({len(size)}) is not 4 (images) or 5 (volumes).")
    matrix = (2, 3) if len(size) == 4 else (3, 4)
    if theta.ndim != 3 or tuple(theta.shape[1:]) != matrix:
        raise ValueError(f"Shape {tuple(theta.shape)} of `theta` is not that of matrices {matrix}.")
    if min(size) <= 0:
        raise ValueError(f"Size {tuple(size)} is not positive.")
    return OPERATORS["affine_grid_generator"](theta, list(size), align)
