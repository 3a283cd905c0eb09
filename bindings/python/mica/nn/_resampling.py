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
    """Resizes images, sequences or volumes by interpolation between their elements.

    As `torch.nn.functional.interpolate`.

    Args:
        input (Tensor): `(N, C, W)`, `(N, C, H, W)` or `(N, C, D, H, W)`, floating; uint8 too for images.
        size (int or tuple of int, optional): Sizes of the spatial dimensions of the output. Default: None.
        scale_factor (float or tuple of float, optional): What to multiply the sizes by instead; results
            are rounded down. One of the two must be given. Default: None.
        mode (str): `"nearest"`, `"nearest-exact"` or `"area"` for all, `"linear"` for 3 dimensions,
            `"bilinear"` or `"bicubic"` for 4, `"lanczos"` for 4 with `antialias`, `"trilinear"` for 5.
            Default: `"nearest"`.
        align_corners (bool, optional): Let the centres of the corner elements of input and output
            coincide, else their outer edges do; for the linear and cubic modes. Default: False.
        recompute_scale_factor (bool, optional): Interpolate with the ratio of the rounded sizes instead
            of `scale_factor`. Default: False.
        antialias (bool): Widen the filter when sizes shrink; for bilinear, bicubic and lanczos of 4
            dimensions. Default: False.

    Returns:
        Tensor: `(N, C, *size)`, of the dtype of `input`.

    Raises:
        ValueError: Not exactly one of `size` and `scale_factor` is given, the number of values does not
            fit, or an option does not fit the mode.
        NotImplementedError: The mode does not exist for this number of dimensions or this dtype.
        TypeError: `size` holds no ints.

    Example:
        >>> x = mica.tensor([[[1.0, 2.0]]])
        >>> mica.nn.functional.interpolate(x, scale_factor=2)
        tensor([[[1., 1., 2., 2.]]])
        >>> mica.nn.functional.interpolate(x, size=4, mode="linear")
        tensor([[[1.0000, 1.2500, 1.7500, 2.0000]]])
    """
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
    """Resizes images, sequences or volumes: the old name of interpolate.

    As `torch.nn.functional.upsample`, without its warning.

    Args:
        input (Tensor): `(N, C, W)`, `(N, C, H, W)` or `(N, C, D, H, W)`, floating; uint8 too for images.
        size (int or tuple of int, optional): Sizes of the spatial dimensions of the output. Default: None.
        scale_factor (float or tuple of float, optional): What to multiply the sizes by instead.
            Default: None.
        mode (str): As of `interpolate`. Default: `"nearest"`.
        align_corners (bool, optional): Let the centres of the corner elements coincide. Default: False.

    Returns:
        Tensor: `(N, C, *size)`, of the dtype of `input`.

    Raises:
        ValueError: Not exactly one of `size` and `scale_factor` is given, or the number of values does
            not fit.
        NotImplementedError: The mode does not exist for this number of dimensions or this dtype.

    Example:
        >>> mica.nn.functional.upsample(mica.tensor([[[1.0, 2.0]]]), size=4)
        tensor([[[1., 1., 2., 2.]]])
    """
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """Resizes by the nearest element: interpolate with mode nearest, under its old name.

    As `torch.nn.functional.upsample_nearest`, without its warning.

    Args:
        input (Tensor): `(N, C, W)`, `(N, C, H, W)` or `(N, C, D, H, W)`, floating or uint8.
        size (int or tuple of int, optional): Sizes of the spatial dimensions of the output. Default: None.
        scale_factor (float or tuple of float, optional): What to multiply the sizes by instead.
            Default: None.

    Returns:
        Tensor: `(N, C, *size)`, of the dtype of `input`.

    Raises:
        ValueError: Not exactly one of `size` and `scale_factor` is given, or the number of values does
            not fit.

    Example:
        >>> mica.nn.functional.upsample_nearest(mica.tensor([[[1.0, 2.0]]]), scale_factor=3)
        tensor([[[1., 1., 1., 2., 2., 2.]]])
    """
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """Resizes images linearly in both directions, with aligned corners, under the old name of interpolate.

    As `torch.nn.functional.upsample_bilinear`, without its warning.

    Args:
        input (Tensor): `(N, C, H, W)`, floating or uint8.
        size (int or tuple of 2 int, optional): Height and width of the output, in pixels. Default: None.
        scale_factor (float or tuple of 2 float, optional): What to multiply them by instead. Default: None.

    Returns:
        Tensor: `(N, C, *size)`, of the dtype of `input`.

    Raises:
        ValueError: Not exactly one of `size` and `scale_factor` is given.
        NotImplementedError: `input` has other than 4 dimensions.

    Example:
        >>> x = mica.tensor([[[[0.0, 2.0], [4.0, 6.0]]]])
        >>> mica.nn.functional.upsample_bilinear(x, size=3)
        tensor([[[[0., 1., 2.],
                  [2., 3., 4.],
                  [4., 5., 6.]]]])
    """
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
    """Takes the elements of an image or volume at the places of a grid, by interpolation.

    As `torch.nn.functional.grid_sample`.

    Args:
        input (Tensor): `(N, C, H, W)` or `(N, C, D, H, W)`, floating.
        grid (Tensor): `(N, H_out, W_out, 2)` of places `(x, y)`, or `(N, D_out, H_out, W_out, 3)` of
            `(x, y, z)`, of the dtype of `input`; -1 is the left, upper or front end, 1 the other.
        mode (str): `"bilinear"` (trilinear in volumes), `"nearest"`, or `"bicubic"` for images.
            Default: `"bilinear"`.
        padding_mode (str): What stands outside: `"zeros"`, `"border"` for the nearest element inside, or
            `"reflection"`. Default: `"zeros"`.
        align_corners (bool, optional): -1 and 1 are the centres of the corner elements, else their outer
            edges. None is False, with a warning. Default: None.

    Returns:
        Tensor: `(N, C, H_out, W_out)` or `(N, C, D_out, H_out, W_out)`.

    Raises:
        ValueError: A mode is unknown.
        RuntimeError: Shapes or dtypes of `input` and `grid` do not fit, or bicubic for volumes.

    Example:
        >>> image = mica.arange(4.0).reshape(1, 1, 2, 2)
        >>> places = mica.tensor([[[[-1.0, -1.0], [0.0, 0.0], [1.0, 1.0]]]])
        >>> mica.nn.functional.grid_sample(image, places, align_corners=True)
        tensor([[[[0.0000, 1.5000, 3.0000]]]])
    """
    if mode not in _SAMPLE_MODES:
        raise ValueError(f"The mode ({mode}) is unknown; expected one of {', '.join(_SAMPLE_MODES)}.")
    if padding_mode not in _PADDING_MODES:
        raise ValueError(
            f"The padding mode ({padding_mode}) is unknown; expected one of {', '.join(_PADDING_MODES)}."
        )
    align = _default_corners(align_corners)
    return OPERATORS["grid_sampler"](input, grid, _SAMPLE_MODES[mode], _PADDING_MODES[padding_mode], align)


def affine_grid(theta: Tensor, size: Any, align_corners: bool | None = None) -> Tensor:
    """The grid for grid_sample by which each image of a batch is moved by its matrix.

    As `torch.nn.functional.affine_grid`.

    Args:
        theta (Tensor): `(N, 2, 3)` for images, `(N, 3, 4)` for volumes, floating: linear map and
            translation from places of the output to places of the input.
        size (sequence of int): Shape of the output, `(N, C, H, W)` or `(N, C, D, H, W)`.
        align_corners (bool, optional): -1 and 1 are the centres of the corner elements, else their outer
            edges. None is False, with a warning; give `grid_sample` the same. Default: None.

    Returns:
        Tensor: `(N, H, W, 2)` or `(N, D, H, W, 3)`.

    Raises:
        ValueError: `theta` is not floating or not of this shape, or a size is not positive.
        NotImplementedError: `size` has neither 4 nor 5 sizes.

    Example:
        >>> flip = mica.tensor([[[-1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])
        >>> grid = mica.nn.functional.affine_grid(flip, (1, 1, 1, 3), align_corners=False)
        >>> row = mica.tensor([[[[1.0, 2.0, 3.0]]]])
        >>> mica.nn.functional.grid_sample(row, grid, align_corners=False)
        tensor([[[[3., 2., 1.]]]])
    """
    align = _default_corners(align_corners)
    if not theta.is_floating_point():
        raise ValueError(f"Dtype ({theta.dtype}) of `theta` is not floating.")
    if len(size) not in (4, 5):
        raise NotImplementedError(f"Number of sizes ({len(size)}) is not 4 (images) or 5 (volumes).")
    matrix = (2, 3) if len(size) == 4 else (3, 4)
    if theta.ndim != 3 or tuple(theta.shape[1:]) != matrix:
        raise ValueError(f"Shape {tuple(theta.shape)} of `theta` is not (N, {matrix[0]}, {matrix[1]}).")
    if min(size) <= 0:
        raise ValueError(f"Size {tuple(size)} is not positive.")
    return OPERATORS["affine_grid_generator"](theta, list(size), align)
