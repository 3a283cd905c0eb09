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
    """Computes the distances of all pairs of rows: `(sum_k |x1_ik - x2_jk|^p)^(1/p)`.

    As `torch.cdist`.

    Args:
        x1 (Tensor): `(..., P, M)`.
        x2 (Tensor): `(..., R, M)`; the leading dimensions broadcast.
        p (float): The order of the norm, from 0 to infinity. Default: 2.0.
        compute_mode (str): How distances of order 2 are found: "use_mm_for_euclid_dist_if_necessary" by a
            matrix product if there are more than 25 rows, "use_mm_for_euclid_dist" always so,
            "donot_use_mm_for_euclid_dist" never. A product is faster and less exact for near points.

    Returns:
        Tensor: `(..., P, R)`.

    Raises:
        ValueError: The mode is unknown.
        TypeError: `p` is no number.
        RuntimeError: The rows differ in length.

    Example:
        >>> mica.cdist(mica.tensor([[0.0, 0.0]]), mica.tensor([[3.0, 4.0], [0.0, 1.0]]))
        tensor([[5., 1.]])
    """
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
    """Gives tensors at least one dimension, as views.

    As `torch.atleast_1d`.

    Args:
        *tensors (Tensor): The tensors, or one list of them.

    Returns:
        Tensor or tuple of Tensor: The view; a tuple for several tensors or a list.

    Example:
        >>> mica.atleast_1d(mica.tensor(5))
        tensor([5])
    """
    return _each("atleast_1d", tensors)


def atleast_2d(*tensors: Any) -> Any:
    """Gives tensors at least two dimensions, as views: of `(n,)` makes `(1, n)`.

    As `torch.atleast_2d`.

    Args:
        *tensors (Tensor): The tensors, or one list of them.

    Returns:
        Tensor or tuple of Tensor: The view; a tuple for several tensors or a list.

    Example:
        >>> mica.atleast_2d(mica.arange(3))
        tensor([[0, 1, 2]])
    """
    return _each("atleast_2d", tensors)


def atleast_3d(*tensors: Any) -> Any:
    """Gives tensors at least three dimensions, as views: of `(n,)` makes `(1, n, 1)`, of `(m, n)` `(m, n, 1)`.

    As `torch.atleast_3d`.

    Args:
        *tensors (Tensor): The tensors, or one list of them.

    Returns:
        Tensor or tuple of Tensor: The view; a tuple for several tensors or a list.

    Example:
        >>> mica.atleast_3d(mica.ones(2, 3)).shape
        mica.Size([2, 3, 1])
    """
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
    """Finds the distinct elements of a tensor, or its distinct slices along a dimension.

    As `torch.unique`.

    Args:
        input (Tensor): The tensor, of any shape.
        sorted (bool): In rising order; Mica's results always are. Default: True.
        return_inverse (bool): Also where each element is among the distinct ones. Default: False.
        return_counts (bool): Also how often each distinct one occurs. Default: False.
        dim (int, optional): The dimension of the slices. Default: None, elements.

    Returns:
        Tensor or tuple of Tensor: The distinct elements, `(n,)`, or slices; then, if asked, the inverse
        (int64, in the shape of `input`, or `(input.size(dim),)`) and the counts (int64, `(n,)`).

    Example:
        >>> mica.unique(mica.tensor([3, 1, 3]), return_inverse=True, return_counts=True)
        (tensor([1, 3]), tensor([1, 0, 1]), tensor([1, 2]))
        >>> mica.unique(mica.tensor([[1, 2], [1, 2], [0, 5]]), dim=0)
        tensor([[0, 5],
                [1, 2]])
    """
    if dim is None:
        found = _C._find_operator("mica::_unique2")(input, sorted, return_inverse, return_counts)
    else:
        found = _generated["unique_dim"](input, dim, sorted, return_inverse, return_counts)
    return _asked(found, return_inverse, return_counts)


def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """Leaves out elements, or slices along a dimension, that equal the one before them.

    As `torch.unique_consecutive`.

    Args:
        input (Tensor): The tensor, of any shape; without `dim` it is flattened.
        return_inverse (bool): Also where each element is among those that remain. Default: False.
        return_counts (bool): Also how long each run of equals is. Default: False.
        dim (int, optional): The dimension of the slices. Default: None, elements.

    Returns:
        Tensor or tuple of Tensor: What remains, `(n,)`, or slices; then, if asked, the inverse (int64, in
        the shape of `input`, or `(input.size(dim),)`) and the counts (int64, `(n,)`).

    Example:
        >>> mica.unique_consecutive(mica.tensor([1, 1, 2, 1]), return_counts=True)
        (tensor([1, 2, 1]), tensor([2, 1, 1]))
    """
    found = _generated["unique_consecutive"](input, return_inverse, return_counts, dim)
    return _asked(found, return_inverse, return_counts)


def unravel_index(indices: Tensor, shape: Any) -> tuple[Tensor, ...]:
    """Computes the coordinates that flat indices have in a tensor of some shape.

    As `torch.unravel_index`.

    Args:
        indices (Tensor): Indices of a flattened tensor, integers of any shape.
        shape (int or sequence of int): The tensor's shape.

    Returns:
        tuple of Tensor: int64, one tensor for each dimension, in the shape of `indices`.

    Raises:
        TypeError: `indices` are no integers, or `shape` is none of ints.
        ValueError: A size is negative.

    Example:
        >>> mica.unravel_index(mica.tensor([4, 5]), (2, 3))
        (tensor([1, 1]), tensor([1, 2]))
    """
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
    """Counts points in the cells of a grid of several dimensions.

    As `torch.histogramdd`.

    Args:
        input (Tensor): The points, `(..., D)`, floating-point.
        bins (int, list of int or list of Tensor): Cells along every dimension; along each; or the edges
            along each, `(cells + 1,)`, rising.
        range (sequence of float, optional): The least and the greatest edge of each dimension, `2 * D`
            numbers, if `bins` are numbers. Default: None, those of the points.
        weight (Tensor, optional): What each point counts, `(...)`. Default: None, 1.
        density (bool): Divides, so that the integral over all cells is 1. Default: False.

    Returns:
        tuple of Tensor and tuple of Tensor: The counts, with a dimension for each of the points', and the
        edges along each.

    Example:
        >>> points = mica.tensor([[0.0, 0.0], [0.1, 0.9], [1.0, 1.0]])
        >>> counts, edges = mica.histogramdd(points, bins=2)
        >>> counts
        tensor([[1., 1.],
                [0., 1.]])
    """
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
    """Estimates the derivative of sampled values along dimensions, by central differences.

    As `torch.gradient`.

    Args:
        input (Tensor): Values of a function at the points of a grid, of any shape.
        spacing (float, Tensor or list of them): The distance between samples, of all dimensions or of
            each; or the samples' places, a vector a dimension. Default: 1.
        dim (int or sequence of int, optional): The dimensions. Default: None, all.
        edge_order (int): 1 or 2: the order of the one-sided differences at both ends. Default: 1.

    Returns:
        tuple of Tensor: The derivative along each of the dimensions, in the shape of `input`.

    Raises:
        RuntimeError: `edge_order` is another, a dimension stands twice or has less than
            `edge_order + 1` samples, or there are not as many spacings as dimensions.
        IndexError: There is no such dimension.

    Example:
        >>> mica.gradient(mica.tensor([0.0, 1.0, 4.0, 9.0]))
        (tensor([1., 2., 4., 5.]),)
        >>> mica.gradient(mica.tensor([0.0, 1.0, 4.0, 9.0]), spacing=0.5)
        (tensor([ 2.,  4.,  8., 10.]),)
    """
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
    """Makes a Bartlett window, a triangle from 0 to 1 and back: `1 - |2 n / N - 1|`.

    As `torch.bartlett_window`. `n` counts from 0; one sample is `[1.]`.

    Args:
        window_length (int): Length of the window, in samples.
        periodic (bool): `N` is `window_length`, for spectra; else one less, which makes the window
            symmetric. Default: True.
        **options (Any): `dtype`, a floating one (default: the default dtype); `device`, where the result lives
            (default: the default device); `requires_grad`, whether gradients are recorded (default: False);
            `layout`, always `mica.strided`; `pin_memory`, ignored.

    Returns:
        Tensor: `(window_length,)`.

    Raises:
        RuntimeError: The length is negative, or the dtype is not floating-point.

    Example:
        >>> mica.bartlett_window(4)
        tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return _window("bartlett", window_length, periodic, options)


def blackman_window(window_length: int, periodic: bool = True, **options: Any) -> Tensor:
    """Makes a Blackman window: `0.42 - 0.5 cos(2 pi n / N) + 0.08 cos(4 pi n / N)`.

    As `torch.blackman_window`. `n` counts from 0; one sample is `[1.]`.

    Args:
        window_length (int): Length of the window, in samples.
        periodic (bool): `N` is `window_length`, for spectra; else one less, which makes the window
            symmetric. Default: True.
        **options (Any): `dtype`, a floating one (default: the default dtype); `device`, where the result lives
            (default: the default device); `requires_grad`, whether gradients are recorded (default: False);
            `layout`, always `mica.strided`; `pin_memory`, ignored.

    Returns:
        Tensor: `(window_length,)`.

    Raises:
        RuntimeError: The length is negative, or the dtype is not floating-point.

    Example:
        >>> mica.blackman_window(4)[2]
        tensor(1.)
    """
    return _window("blackman", window_length, periodic, options)


def hamming_window(
    window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, **options: Any
) -> Tensor:
    """Makes a Hamming window: `alpha - beta cos(2 pi n / N)`.

    As `torch.hamming_window`. `n` counts from 0; one sample is `[1.]`.

    Args:
        window_length (int): Length of the window, in samples.
        periodic (bool): `N` is `window_length`, for spectra; else one less, which makes the window
            symmetric. Default: True.
        alpha (float): The constant. Default: 0.54.
        beta (float): The factor of the cosine. Default: 0.46.
        **options (Any): `dtype`, a floating one (default: the default dtype); `device`, where the result lives
            (default: the default device); `requires_grad`, whether gradients are recorded (default: False);
            `layout`, always `mica.strided`; `pin_memory`, ignored.

    Returns:
        Tensor: `(window_length,)`.

    Raises:
        RuntimeError: The length is negative, or the dtype is not floating-point.

    Example:
        >>> mica.hamming_window(4)
        tensor([0.0800, 0.5400, 1.0000, 0.5400])
    """
    return _window("general_cosine", window_length, periodic, options, a=[alpha, beta])


def hann_window(window_length: int, periodic: bool = True, **options: Any) -> Tensor:
    """Makes a Hann window: `0.5 - 0.5 cos(2 pi n / N)`.

    As `torch.hann_window`. `n` counts from 0; one sample is `[1.]`.

    Args:
        window_length (int): Length of the window, in samples.
        periodic (bool): `N` is `window_length`, for spectra; else one less, which makes the window
            symmetric. Default: True.
        **options (Any): `dtype`, a floating one (default: the default dtype); `device`, where the result lives
            (default: the default device); `requires_grad`, whether gradients are recorded (default: False);
            `layout`, always `mica.strided`; `pin_memory`, ignored.

    Returns:
        Tensor: `(window_length,)`.

    Raises:
        RuntimeError: The length is negative, or the dtype is not floating-point.

    Example:
        >>> mica.hann_window(4)
        tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return _window("hann", window_length, periodic, options)


def kaiser_window(window_length: int, periodic: bool = True, beta: float = 12.0, **options: Any) -> Tensor:
    """Makes a Kaiser window: `i0(beta sqrt(1 - k^2)) / i0(beta)` for `k` from -1 to 1.

    As `torch.kaiser_window`. One sample is `[1.]`.

    Args:
        window_length (int): Length of the window, in samples.
        periodic (bool): Leaves out the last sample of a symmetric window that has one more, for spectra.
            Default: True.
        beta (float): How narrow it is; 0 makes it a rectangle. Default: 12.0.
        **options (Any): `dtype`, a floating one (default: the default dtype); `device`, where the result lives
            (default: the default device); `requires_grad`, whether gradients are recorded (default: False);
            `layout`, always `mica.strided`; `pin_memory`, ignored.

    Returns:
        Tensor: `(window_length,)`.

    Raises:
        RuntimeError: The length is negative, or the dtype is not floating-point.

    Example:
        >>> mica.kaiser_window(5, periodic=False, beta=1.0)
        tensor([0.7898, 0.9450, 1.0000, 0.9450, 0.7898])
    """
    return _window("kaiser", window_length, periodic, options, beta=beta)


def _polygamma(self: Tensor, n: int) -> Tensor:
    """Computes the derivative of order `n` of the digamma function.

    As `torch.Tensor.polygamma`.

    Args:
        n (int): The order, not negative.

    Returns:
        Tensor: The values, in the shape of the tensor.

    Example:
        >>> mica.tensor([1.0]).polygamma(1)
        tensor([1.6449])
    """
    return _generated["polygamma"](n, self)


def _polygamma_(self: Tensor, n: int) -> Tensor:
    """Replaces each element by the derivative of order `n` of the digamma function; see `polygamma()`.

    Args:
        n (int): The order, not negative.

    Returns:
        Tensor: The tensor itself.

    Raises:
        RuntimeError: The tensor holds integers.

    Example:
        >>> mica.tensor([1.0]).polygamma_(1)
        tensor([1.6449])
    """
    result = _generated["polygamma"](n, self)
    if result.dtype != self.dtype:
        raise RuntimeError(
            f"Dtype ({result.dtype}) of polygamma's result cannot be cast to ({self.dtype}) of `self`."
        )
    return self.copy_(result)


def _chalf(self: Tensor, *, memory_format: Any = None) -> Tensor:
    """Raises NotImplementedError: Mica has no complex numbers of half precision. Use `cfloat()`.

    Args:
        memory_format (memory_format, optional): Ignored. Default: None.

    Returns:
        Tensor: Never.

    Example:
        >>> try:
        ...     mica.ones(2).chalf()
        ... except NotImplementedError:
        ...     print("no complex32")
        no complex32
    """
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
