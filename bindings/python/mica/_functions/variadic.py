"""Functions of `mica` whose results or arguments no schema can say: tuples of as many
tensors as were asked for, and numbers or tensors or lists of either."""

from __future__ import annotations

from mica import _C
from mica._C import Tensor
from mica._interception.function_modes import install as _install

TYPE_CHECKING = False  # importing typing takes as long as all of mica
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

__all__ = [
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "bartlett_window",
    "blackman_window",
    "cdist",
    "gradient",
    "hamming_window",
    "hann_window",
    "histogramdd",
    "kaiser_window",
    "unique",
    "unique_consecutive",
    "unravel_index",
]

_generated = _C._functions[""]


_CDIST_MODES = {
    "use_mm_for_euclid_dist_if_necessary": None,
    "use_mm_for_euclid_dist": 1,
    "donot_use_mm_for_euclid_dist": 2,
}


def cdist(
    x1: Tensor,
    x2: Tensor,
    p: float = 2.0,
    compute_mode: str = "use_mm_for_euclid_dist_if_necessary",
) -> Tensor:
    """Distances of all pairs of rows in the norm of order `p`; `compute_mode` says when by a matrix product."""
    if not isinstance(compute_mode, str) or compute_mode not in _CDIST_MODES:
        raise ValueError(
            f"Argument `compute_mode` ({compute_mode}) is unknown; expected one of {', '.join(_CDIST_MODES)}."
        )
    if not isinstance(p, (int, float)):
        raise TypeError(f"Argument `p` of cdist() is of type {type(p).__name__}; expected a number.")
    return _generated["cdist"](x1, x2, float(p), _CDIST_MODES[compute_mode])


def _each(name: str, tensors: tuple[Any, ...]) -> Any:
    if len(tensors) != 1:
        return tuple(_generated[name](t) for t in tensors)
    if isinstance(tensors[0], (list, tuple)):
        return tuple(_generated[name](t) for t in tensors[0])
    return _generated[name](tensors[0])


def atleast_1d(*tensors: Any) -> Any:
    """Views with at least one dimension; of several tensors a tuple."""
    return _each("atleast_1d", tensors)


def atleast_2d(*tensors: Any) -> Any:
    """Views with at least two dimensions; of several tensors a tuple."""
    return _each("atleast_2d", tensors)


def atleast_3d(*tensors: Any) -> Any:
    """Views with at least three dimensions; of several tensors a tuple."""
    return _each("atleast_3d", tensors)


def _asked(found: tuple[Tensor, Tensor, Tensor], return_inverse: bool, return_counts: bool) -> Any:
    values, inverse, counts = found
    if not return_inverse and not return_counts:
        return values
    return (values, *((inverse,) if return_inverse else ()), *((counts,) if return_counts else ()))


def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """The distinct elements (slices along `dim`); their places and counts if asked."""
    if dim is None:
        found = _C._find_operator("mica::_unique2")(input, sorted, return_inverse, return_counts)
    else:
        found = _generated["unique_dim"](input, dim, sorted, return_inverse, return_counts)
    return _asked(found, return_inverse, return_counts)


def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """Elements (slices along `dim`) that differ from the one before; places and counts if asked."""
    found = _generated["unique_consecutive"](input, return_inverse, return_counts, dim)
    return _asked(found, return_inverse, return_counts)


def unravel_index(indices: Tensor, shape: Any) -> tuple[Tensor, ...]:
    """The coordinates of flat `indices` into `shape`, one tensor for each dimension."""
    import collections.abc

    given = indices.dtype if isinstance(indices, Tensor) else type(indices).__name__
    if not isinstance(indices, Tensor) or given == _C.bool or given.is_floating_point or given.is_complex:
        raise TypeError(f"unravel_index: expected 'indices' to be integer dtype, but got {given}")
    if not isinstance(shape, (int, collections.abc.Sequence)):
        raise TypeError(
            f"unravel_index: expected 'shape' to be int or sequence of ints, but got {type(shape).__name__}"
        )
    sizes = [shape] if isinstance(shape, int) else list(shape)
    if any(not isinstance(s, int) for s in sizes):
        raise TypeError(f"unravel_index: expected 'shape' sequence to only contain ints, but got {sizes}")
    if any(s < 0 for s in sizes):
        raise ValueError(f"unravel_index: 'shape' cannot have negative values, but got {tuple(sizes)}")
    indices = indices.to(_C.int64)
    strides = [1] * len(sizes)
    for d in range(len(sizes) - 2, -1, -1):
        strides[d] = strides[d + 1] * sizes[d + 1]
    return tuple(
        _generated["remainder"](_generated["floor_divide"](indices, max(stride, 1)), max(size, 1))
        for stride, size in zip(strides, sizes)
    )


def histogramdd(
    input: Tensor,
    bins: Any,
    range: Sequence[float] | None = None,  # noqa: A002  (torch's name)
    weight: Tensor | None = None,
    density: bool = False,
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """The histogram of points, rows of `input`, and the edges of each dimension."""
    if isinstance(bins, int):
        bins = [bins] * input.shape[-1]
    if all(isinstance(b, int) for b in bins):
        find = _C._find_operator("mica::_histogramdd_bin_edges")
        edges = find(input, list(bins), range=None if range is None else [float(r) for r in range])
    else:
        edges = list(bins)
    count = _C._find_operator("mica::_histogramdd_from_bin_tensors")
    return count(input, edges, weight=weight, density=density), tuple(edges)


def _difference(x: Tensor, dim: int, first: int, last: int) -> Tensor:
    """x[last] - x[first] along `dim`, the dimension kept; negative places count from the end."""
    n = x.shape[dim]
    return x.narrow(dim, last % n, 1) - x.narrow(dim, first % n, 1)


def _along_uniform(x: Tensor, dim: int, step: Any, edge_order: int) -> Tensor:
    n = x.shape[dim]
    middle = (x.narrow(dim, 2, n - 2) - x.narrow(dim, 0, n - 2)) / (2.0 * step)
    left = _difference(x, dim, 0, 1) / step
    right = _difference(x, dim, -2, -1) / step
    if edge_order == 2:
        left = 1.5 * left - 0.5 * (_difference(x, dim, 1, 2) / step)
        right = 1.5 * right - 0.5 * (_difference(x, dim, -3, -2) / step)
    return _generated["cat"]([left, middle, right], dim)


def _along_places(x: Tensor, dim: int, places: Tensor, edge_order: int) -> Tensor:
    n = x.shape[dim]
    if places.ndim != 1 or places.shape[0] != n:
        raise RuntimeError(
            f"Shape {tuple(places.shape)} of the places is no vector of the size ({n}) of dimension ({dim})."
        )
    shape = [-1 if d == dim else 1 for d in range(x.ndim)]
    steps = (places.narrow(0, 1, n - 1) - places.narrow(0, 0, n - 1)).reshape(shape)
    slopes = (x.narrow(dim, 1, n - 1) - x.narrow(dim, 0, n - 1)) / steps
    before, after = steps.narrow(dim, 0, n - 2), steps.narrow(dim, 1, n - 2)
    low, high = slopes.narrow(dim, 0, n - 2), slopes.narrow(dim, 1, n - 2)
    middle = (low * after + high * before) / (before + after)
    left, right = slopes.narrow(dim, 0, 1), slopes.narrow(dim, n - 2, 1)
    if edge_order == 2:
        h0, h1 = steps.narrow(dim, 0, 1), steps.narrow(dim, 1, 1)
        left = left + (left - slopes.narrow(dim, 1, 1)) * h0 / (h0 + h1)
        h0, h1 = steps.narrow(dim, n - 2, 1), steps.narrow(dim, n - 3, 1)
        right = right + (right - slopes.narrow(dim, n - 3, 1)) * h0 / (h0 + h1)
    return _generated["cat"]([left, middle, right], dim)


def gradient(input: Tensor, *, spacing: Any = 1, dim: Any = None, edge_order: int = 1) -> tuple[Tensor, ...]:
    """Central differences along each of `dim`; `spacing` is a distance or the places."""
    if edge_order not in (1, 2):
        raise RuntimeError(f"Argument `edge_order` ({edge_order}) is not 1 or 2.")
    spacing = 1 if spacing is None else spacing
    dims = list(range(input.ndim)) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    for d in dims:
        if not -input.ndim <= d < input.ndim:
            raise IndexError(f"Dimension ({d}) is out of range of {input.ndim} dimensions.")
    dims = [d % input.ndim for d in dims]
    spacings = list(spacing) if isinstance(spacing, (list, tuple)) else [spacing] * len(dims)
    if len(set(dims)) != len(dims):
        raise RuntimeError(f"A dimension stands twice in `dim` {tuple(dims)}.")
    if len(spacings) != len(dims):
        raise RuntimeError(
            "torch.gradient expected spacing to be unspecified, a scalar, or a list of as many spacings as "
            f"dimensions ({len(dims)}), but got a list of length ({len(spacings)})."
        )
    for d in dims:
        if input.shape[d] < edge_order + 1:
            raise RuntimeError(
                f"Size ({input.shape[d]}) of dimension ({d}) is below ({edge_order + 1}), which `edge_order` needs."
            )
    return tuple(
        _along_places(input, d, step, edge_order)
        if isinstance(step, Tensor) and step.ndim > 0
        else _along_uniform(input, d, step, edge_order)
        for d, step in zip(dims, spacings)
    )


def _window(name: str, window_length: int, periodic: bool, options: dict[str, Any], **more: Any) -> Tensor:
    """A window of mica.signal.windows in any floating dtype."""
    import mica

    dtype = options.pop("dtype", None) or mica.get_default_dtype()
    if not dtype.is_floating_point:
        raise RuntimeError(f"{name}_window expects floating point dtypes, got: {dtype}.")
    if window_length < 0:
        raise RuntimeError(f"Length `window_length` ({window_length}) of a window is negative.")
    make = getattr(mica.signal.windows, name)
    options.pop("pin_memory", None)
    wide = dtype if dtype in (mica.float32, mica.float64) else mica.float32
    found = make(window_length, sym=not periodic, dtype=wide, **more, **options)
    return found if wide is dtype else found.to(dtype)


def bartlett_window(window_length: int, periodic: bool = True, **options: Any) -> Tensor:
    """A triangle from 0 to 1 and back."""
    return _window("bartlett", window_length, periodic, options)


def blackman_window(window_length: int, periodic: bool = True, **options: Any) -> Tensor:
    """0.42 - 0.5 cos(2 pi n / N) + 0.08 cos(4 pi n / N)."""
    return _window("blackman", window_length, periodic, options)


def hamming_window(
    window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, **options: Any
) -> Tensor:
    """alpha - beta cos(2 pi n / N)."""
    return _window("general_cosine", window_length, periodic, options, a=[alpha, beta])


def hann_window(window_length: int, periodic: bool = True, **options: Any) -> Tensor:
    """0.5 - 0.5 cos(2 pi n / N)."""
    return _window("hann", window_length, periodic, options)


def kaiser_window(window_length: int, periodic: bool = True, beta: float = 12.0, **options: Any) -> Tensor:
    """i0(beta sqrt(1 - k^2)) / i0(beta) for k from -1 to 1."""
    return _window("kaiser", window_length, periodic, options, beta=beta)


def _polygamma(self: Tensor, n: int) -> Tensor:
    """The derivative of order `n` of digamma."""
    return _generated["polygamma"](n, self)


def _polygamma_(self: Tensor, n: int) -> Tensor:
    """polygamma() in place."""
    result = _generated["polygamma"](n, self)
    if result.dtype != self.dtype:
        raise RuntimeError(
            f"Dtype ({result.dtype}) of polygamma's result cannot be cast to ({self.dtype}) of `self`."
        )
    return self.copy_(result)


def _chalf(self: Tensor, *, memory_format: Any = None) -> Tensor:
    """Refuses: complex numbers of half precision are not supported."""
    raise NotImplementedError(
        "Dtype complex32 is not supported, so that chalf() has no result; use cfloat() instead."
    )


def _reversed_divide(self: Tensor, other: Any) -> Tensor:
    """other / self."""
    return _generated["reciprocal"](self) * other


_install(globals())
_C._add_tensor_attributes(
    {
        "__rdiv__": _reversed_divide,
        "chalf": _chalf,
        "polygamma": _polygamma,
        "polygamma_": _polygamma_,
        "unique": unique,
        "unique_consecutive": unique_consecutive,
    }
)
