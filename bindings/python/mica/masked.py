"""mica.masked: reductions and normalisations of the elements that a mask keeps.

Under torch.masked's names. `mask` broadcasts against the input; where it is False an
element counts as the operation's identity (0 of sum, -inf of amax). A result of no
elements at all is that identity, NaN where there is none (mean, median, var, std).
"""

from __future__ import annotations

import math

import mica
from mica import Tensor

TYPE_CHECKING = False  # importing typing takes as long as all of mica
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "amax",
    "amin",
    "argmax",
    "argmin",
    "cumprod",
    "cumsum",
    "log_softmax",
    "logaddexp",
    "logsumexp",
    "mean",
    "median",
    "norm",
    "normalize",
    "prod",
    "softmax",
    "softmin",
    "std",
    "sum",
    "var",
]

_SMALL = (mica.uint8, mica.bool, mica.int8, mica.int16, mica.int32)


def _accumulated(input: Tensor, dtype: Any) -> Any:
    """The dtype of sums: small integers add up in int64."""
    return dtype or (mica.int64 if input.dtype in _SMALL else input.dtype)


def _dims(dim: Any, ndim: int) -> tuple[int, ...]:
    """Sorted dimensions; None and () are all of them."""
    if dim is None or dim == ():
        return tuple(range(ndim))
    count = max(ndim, 1)
    dims: list[int] = []
    for d in (dim,) if isinstance(dim, int) else dim:
        if not -count <= d < count:
            raise IndexError(f"Dimension ({d}) is out of range [{-count}, {count - 1}].")
        if d % count in dims:
            raise RuntimeError(f"Dimension ({d}) stands twice in `dim`.")
        dims.append(d % count)
    return tuple(sorted(dims))


def _mask(input: Tensor, mask: Tensor) -> Tensor:
    """The mask as bool, in the input's shape."""
    if mask.ndim > input.ndim:
        raise IndexError(
            f"Number of dimensions ({mask.ndim}) of `mask` exceeds that ({input.ndim}) of the input."
        )
    return mica.broadcast_to(mask, input.shape).to(mica.bool)


def _input_mask(input: Tensor, *args: Any, mask: Tensor, **kwargs: Any) -> Tensor:
    """Which elements an operation called with these arguments takes."""
    return _mask(input, mask)


def _output_mask(op: Any, input: Tensor, *args: Any, mask: Tensor, **kwargs: Any) -> Tensor:
    """Which elements of the result of `op`, one of this module, come from any of the input."""
    kept = _mask(input, mask)
    if op.__name__ in ("softmax", "log_softmax", "softmin", "normalize", "cumsum", "cumprod"):
        return kept
    rest = args[1:] if op.__name__ == "norm" else args
    dims = _dims(rest[0] if rest else kwargs.get("dim"), input.ndim)
    for d in reversed(dims if input.ndim else ()):
        kept = kept.any(d, bool(kwargs.get("keepdim", False)))
    return kept


def _kept(input: Tensor, mask: Tensor | None, identity: Any) -> Tensor:
    return input if mask is None else mica.where(_mask(input, mask), input, identity)


def _least(input: Tensor) -> Any:
    if input.dtype.is_floating_point:
        return -math.inf
    if input.dtype is mica.bool or input.dtype.is_complex:
        raise NotImplementedError(f"Dtype ({input.dtype}) has no least element to stand for masked ones.")
    return mica.iinfo(input.dtype).min


def _most(input: Tensor) -> Any:
    if input.dtype.is_floating_point:
        return math.inf
    if input.dtype is mica.bool or input.dtype.is_complex:
        raise NotImplementedError(f"Dtype ({input.dtype}) has no largest element to stand for masked ones.")
    return mica.iinfo(input.dtype).max


def sum(
    input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """The sum of the elements that the mask keeps.

    As `torch.masked.sum`. Integers below int64 are added in int64.

    Args:
        input (Tensor): Numbers of any shape.
        dim (int or tuple of int, optional): Dimensions to reduce. Default: None, all.
        keepdim (bool): Keep the reduced dimensions with size 1. Default: False.
        dtype (dtype, optional): Of the result. Default: that of `input`, int64 for smaller integers.
        mask (Tensor, optional): bool, broadcasts with `input`; True keeps. Default: None, all.

    Returns:
        Tensor: `input` reduced over `dim`; 0 where nothing is kept.

    Raises:
        IndexError: There is no such dimension, or `mask` has more dimensions than `input`.
        RuntimeError: `mask` does not broadcast to the shape of `input`.

    Example:
        >>> mask = mica.tensor([[True, False, True], [False, False, False]])
        >>> mica.masked.sum(mica.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), 1, mask=mask)
        tensor([4., 0.])
    """
    dims = _dims(dim, input.ndim)
    return mica.sum(_kept(input, mask, 0), dims, bool(keepdim), dtype=_accumulated(input, dtype))


def prod(
    input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """The product of the elements that the mask keeps.

    As `torch.masked.prod`. Integers below int64 are multiplied in int64.

    Args:
        input (Tensor): Numbers of any shape.
        dim (int or tuple of int, optional): Dimensions to reduce. Default: None, all.
        keepdim (bool): Keep the reduced dimensions with size 1. Default: False.
        dtype (dtype, optional): Of the result. Default: that of `input`, int64 for smaller integers.
        mask (Tensor, optional): bool, broadcasts with `input`; True keeps. Default: None, all.

    Returns:
        Tensor: `input` reduced over `dim`; 1 where nothing is kept.

    Raises:
        IndexError: There is no such dimension, or `mask` has more dimensions than `input`.
        RuntimeError: `mask` does not broadcast to the shape of `input`.

    Example:
        >>> mask = mica.tensor([True, False, True])
        >>> mica.masked.prod(mica.tensor([2.0, 3.0, 4.0]), mask=mask)
        tensor(8.)
    """
    result = _kept(input, mask, 1).to(_accumulated(input, dtype))
    for d in reversed(_dims(dim, input.ndim)):
        result = result.prod(d, bool(keepdim))
    return result


def cumsum(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """The running sum of the elements that the mask keeps; others add nothing.

    As `torch.masked.cumsum`.

    Args:
        input (Tensor): Numbers of any shape.
        dim (int): Dimension to run along.
        dtype (dtype, optional): Of the result. Default: that of `input`.
        mask (Tensor, optional): bool, broadcasts with `input`; True keeps. Default: None, all.

    Returns:
        Tensor: Of the shape of `input`.

    Raises:
        IndexError: There is no such dimension, or `mask` has more dimensions than `input`.
        RuntimeError: `mask` does not broadcast to the shape of `input`.

    Example:
        >>> mask = mica.tensor([True, False, True])
        >>> mica.masked.cumsum(mica.tensor([1.0, 2.0, 3.0]), 0, mask=mask)
        tensor([1., 1., 4.])
    """
    return mica.cumsum(_kept(input, mask, 0), _dims(dim, input.ndim)[0], dtype=dtype or input.dtype)


def cumprod(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """The running product of the elements that the mask keeps; others change nothing.

    As `torch.masked.cumprod`.

    Args:
        input (Tensor): Numbers of any shape.
        dim (int): Dimension to run along.
        dtype (dtype, optional): Of the result. Default: that of `input`.
        mask (Tensor, optional): bool, broadcasts with `input`; True keeps. Default: None, all.

    Returns:
        Tensor: Of the shape of `input`.

    Raises:
        IndexError: There is no such dimension, or `mask` has more dimensions than `input`.
        RuntimeError: `mask` does not broadcast to the shape of `input`.

    Example:
        >>> mask = mica.tensor([True, False, True])
        >>> mica.masked.cumprod(mica.tensor([2.0, 3.0, 4.0]), 0, mask=mask)
        tensor([2., 2., 8.])
    """
    return mica.cumprod(_kept(input, mask, 1), _dims(dim, input.ndim)[0], dtype=dtype or input.dtype)


def amax(
    input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """The largest of the elements that the mask keeps.

    As `torch.masked.amax`.

    Args:
        input (Tensor): Real numbers of any shape.
        dim (int or tuple of int, optional): Dimensions to reduce. Default: None, all.
        keepdim (bool): Keep the reduced dimensions with size 1. Default: False.
        dtype (dtype, optional): Of the result. Default: that of `input`.
        mask (Tensor, optional): bool, broadcasts with `input`; True keeps. Default: None, all.

    Returns:
        Tensor: `input` reduced over `dim`; minus infinity, or the least integer, where nothing is kept.

    Raises:
        IndexError: There is no such dimension, or `mask` has more dimensions than `input`.
        RuntimeError: `mask` does not broadcast to the shape of `input`.
        NotImplementedError: A bool or complex `input` with a mask.

    Example:
        >>> mask = mica.tensor([True, True, False])
        >>> mica.masked.amax(mica.tensor([1.0, 2.0, 3.0]), mask=mask)
        tensor(2.)
    """
    kept = _kept(input, mask, None if mask is None else _least(input))
    return mica.amax(kept, _dims(dim, input.ndim), bool(keepdim)).to(dtype or input.dtype)


def amin(
    input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """The smallest of the elements that the mask keeps.

    As `torch.masked.amin`.

    Args:
        input (Tensor): Real numbers of any shape.
        dim (int or tuple of int, optional): Dimensions to reduce. Default: None, all.
        keepdim (bool): Keep the reduced dimensions with size 1. Default: False.
        dtype (dtype, optional): Of the result. Default: that of `input`.
        mask (Tensor, optional): bool, broadcasts with `input`; True keeps. Default: None, all.

    Returns:
        Tensor: `input` reduced over `dim`; infinity, or the largest integer, where nothing is kept.

    Raises:
        IndexError: There is no such dimension, or `mask` has more dimensions than `input`.
        RuntimeError: `mask` does not broadcast to the shape of `input`.
        NotImplementedError: A bool or complex `input` with a mask.

    Example:
        >>> mask = mica.tensor([False, True, True])
        >>> mica.masked.amin(mica.tensor([1.0, 2.0, 3.0]), mask=mask)
        tensor(2.)
    """
    kept = _kept(input, mask, None if mask is None else _most(input))
    return mica.amin(kept, _dims(dim, input.ndim), bool(keepdim)).to(dtype or input.dtype)


def argmax(
    input: Tensor,
    dim: int | None = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Where the largest of the elements that the mask keeps stands.

    As `torch.masked.argmax`, whose result has the dtype of the input.

    Args:
        input (Tensor): Real numbers of any shape.
        dim (int, optional): Dimension to reduce. Default: None, for the flattened `input`.
        keepdim (bool): Keep the dimension with size 1. Default: False.
        dtype (dtype, optional): Of the indices. Default: that of `input`.
        mask (Tensor, optional): bool, broadcasts with `input`; True keeps. Default: None, all.

    Returns:
        Tensor: Indices along `dim`; 0 where nothing is kept.

    Raises:
        IndexError: There is no such dimension, or `mask` has more dimensions than `input`.
        RuntimeError: `mask` does not broadcast to the shape of `input`.
        NotImplementedError: A bool or complex `input` with a mask.

    Example:
        >>> mask = mica.tensor([True, True, False])
        >>> mica.masked.argmax(mica.tensor([1.0, 2.0, 3.0]), mask=mask, dtype=mica.int64)
        tensor(1)
    """
    kept = _kept(input, mask, None if mask is None else _least(input))
    return mica.argmax(kept, dim, bool(keepdim)).to(dtype or input.dtype)


def argmin(
    input: Tensor,
    dim: int | None = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Where the smallest of the elements that the mask keeps stands.

    As `torch.masked.argmin`, whose result has the dtype of the input.

    Args:
        input (Tensor): Real numbers of any shape.
        dim (int, optional): Dimension to reduce. Default: None, for the flattened `input`.
        keepdim (bool): Keep the dimension with size 1. Default: False.
        dtype (dtype, optional): Of the indices. Default: that of `input`.
        mask (Tensor, optional): bool, broadcasts with `input`; True keeps. Default: None, all.

    Returns:
        Tensor: Indices along `dim`; 0 where nothing is kept.

    Raises:
        IndexError: There is no such dimension, or `mask` has more dimensions than `input`.
        RuntimeError: `mask` does not broadcast to the shape of `input`.
        NotImplementedError: A bool or complex `input` with a mask.

    Example:
        >>> mask = mica.tensor([False, True, True])
        >>> mica.masked.argmin(mica.tensor([1.0, 2.0, 3.0]), mask=mask, dtype=mica.int64)
        tensor(1)
    """
    kept = _kept(input, mask, None if mask is None else _most(input))
    return mica.argmin(kept, dim, bool(keepdim)).to(dtype or input.dtype)


def _count(input: Tensor, dims: tuple[int, ...], keepdim: bool, mask: Tensor | None) -> Tensor:
    kept = (
        mica.ones(input.shape, dtype=mica.bool, device=input.device) if mask is None else _mask(input, mask)
    )
    return kept.sum(dims, keepdim)


def mean(
    input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """The mean of the elements that the mask keeps.

    As `torch.masked.mean`.

    Args:
        input (Tensor): Floating or complex, of any shape.
        dim (int or tuple of int, optional): Dimensions to reduce. Default: None, all.
        keepdim (bool): Keep the reduced dimensions with size 1. Default: False.
        dtype (dtype, optional): Of the result. Default: that of `input`.
        mask (Tensor, optional): bool, broadcasts with `input`; True keeps. Default: None, all.

    Returns:
        Tensor: `input` reduced over `dim`; nan where nothing is kept.

    Raises:
        IndexError: There is no such dimension, or `mask` has more dimensions than `input`.
        RuntimeError: `mask` does not broadcast to the shape of `input`.
        ValueError: The dtype of the result is neither floating nor complex.

    Example:
        >>> mask = mica.tensor([True, False, True])
        >>> mica.masked.mean(mica.tensor([1.0, 2.0, 6.0]), mask=mask)
        tensor(3.5000)
    """
    result = dtype or input.dtype
    if not (result.is_floating_point or result.is_complex):
        raise ValueError(f"Dtype ({result}) has no mean; expected a floating or complex dtype.")
    count = _count(input, _dims(dim, input.ndim), bool(keepdim), mask)
    return sum(input, dim, keepdim=keepdim, dtype=result, mask=mask) / count


def median(
    input: Tensor, dim: int = -1, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """The median of the elements that the mask keeps: of two in the middle the lower.

    As `torch.masked.median`.

    Args:
        input (Tensor): Real numbers of any shape.
        dim (int): Dimension to reduce. Default: -1.
        keepdim (bool): Keep the dimension with size 1. Default: False.
        dtype (dtype, optional): Of the result of integers. Default: that of `input`.
        mask (Tensor, optional): bool, broadcasts with `input`; True keeps. Default: None, all.

    Returns:
        Tensor: `input` reduced over `dim`; nan where nothing is kept.

    Raises:
        IndexError: There is no such dimension, or `mask` has more dimensions than `input`.
        RuntimeError: `mask` does not broadcast to the shape of `input`.
        ValueError: `input` holds integers, and somewhere nothing is kept.

    Example:
        >>> mask = mica.tensor([True, False, True, True])
        >>> mica.masked.median(mica.tensor([1.0, 2.0, 3.0, 9.0]), mask=mask)
        tensor(3.)
    """
    is_floating = input.dtype.is_floating_point
    x = input if is_floating else input.to(mica.float32)
    result = mica.nanmedian(_kept(x, mask, math.nan), _dims(dim, input.ndim)[0], bool(keepdim))[0]
    if is_floating:
        return result
    if bool(result.isnan().any()):
        raise ValueError(
            f"A row is masked out as a whole, and dtype ({input.dtype}) has no NaN for its median."
        )
    return result.to(dtype or input.dtype)


def logsumexp(
    input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """The logarithm of the sum of exponentials of the elements that the mask keeps, without overflow.

    As `torch.masked.logsumexp`.

    Args:
        input (Tensor): Numbers of any shape.
        dim (int or tuple of int, optional): Dimensions to reduce. Default: None, all.
        keepdim (bool): Keep the reduced dimensions with size 1. Default: False.
        dtype (dtype, optional): Of the result. Default: that of `input`.
        mask (Tensor, optional): bool, broadcasts with `input`; True keeps. Default: None, all.

    Returns:
        Tensor: `input` reduced over `dim`; minus infinity where nothing is kept.

    Raises:
        IndexError: There is no such dimension, or `mask` has more dimensions than `input`.
        RuntimeError: `mask` does not broadcast to the shape of `input`.

    Example:
        >>> mask = mica.tensor([True, True, False])
        >>> mica.masked.logsumexp(mica.tensor([0.0, 0.0, 9.0]), mask=mask)
        tensor(0.6931)
    """
    identity = -math.inf if input.dtype.is_complex or mask is None else _least(input)
    kept = _kept(input, mask, identity)
    return mica.logsumexp(kept, _dims(dim, input.ndim) or (0,), bool(keepdim)).to(dtype or input.dtype)


def logaddexp(
    input: Tensor,
    other: Tensor,
    *,
    dtype: Any = None,
    input_mask: Tensor | None = None,
    other_mask: Tensor | None = None,
) -> Tensor:
    """`log(exp(input) + exp(other))`, element by element, where each counts only what its mask keeps.

    As `torch.masked.logaddexp`.

    Args:
        input (Tensor): Real numbers of any shape.
        other (Tensor): Real numbers that broadcast with `input`.
        dtype (dtype, optional): Of the result. Default: that of `input`.
        input_mask (Tensor, optional): bool, broadcasts with `input`; True keeps. Default: None, all.
        other_mask (Tensor, optional): The same for `other`. Default: None, all.

    Returns:
        Tensor: Of the broadcast shape; minus infinity where neither is kept.

    Raises:
        IndexError: A mask has more dimensions than its tensor.
        RuntimeError: Shapes do not broadcast.

    Example:
        >>> x, mask = mica.zeros(2), mica.tensor([True, False])
        >>> mica.masked.logaddexp(x, x, input_mask=mask)
        tensor([0.6931, 0.0000])
    """
    left = _kept(input, input_mask, None if input_mask is None else _least(input))
    right = _kept(other, other_mask, None if other_mask is None else _least(other))
    return mica.logaddexp(left, right).to(dtype or input.dtype)


def norm(
    input: Tensor,
    ord: float | None = 2.0,
    dim: Any = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The vector norm of the elements that the mask keeps: `sum(abs(x) ** ord) ** (1 / ord)`.

    As `torch.masked.norm`.

    Args:
        input (Tensor): Floating or complex, of any shape.
        ord (float, optional): Order of the norm; infinity is the maximum. None is 2. Default: 2.
        dim (int or tuple of int, optional): Dimensions to reduce. Default: None, all.
        keepdim (bool): Keep the reduced dimensions with size 1. Default: False.
        dtype (dtype, optional): Of the result. Default: that of `input`.
        mask (Tensor, optional): bool, broadcasts with `input`; True keeps. Default: None, all.

    Returns:
        Tensor: `input` reduced over `dim`; 0 where nothing is kept, infinity if `ord` is minus infinity.

    Raises:
        IndexError: There is no such dimension, or `mask` has more dimensions than `input`.
        RuntimeError: `mask` does not broadcast to the shape of `input`.

    Example:
        >>> mask = mica.tensor([True, False, True])
        >>> mica.masked.norm(mica.tensor([3.0, 9.0, 4.0]), mask=mask)
        tensor(5.)
    """
    order = 2.0 if ord is None else ord
    kept = _kept(input, mask, math.inf if order == -math.inf else 0)
    return mica.linalg.vector_norm(
        kept, order, _dims(dim, input.ndim), bool(keepdim), dtype=dtype or input.dtype
    )


def var(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The variance of the elements that the mask keeps: squared distances to the mean over `n - correction`.

    As `torch.masked.var`.

    Args:
        input (Tensor): Numbers of any shape; integers become float32.
        dim (int or tuple of int, optional): Dimensions to reduce. Default: None, all.
        unbiased (bool, optional): False is a correction of 0, True one of 1. Default: None.
        correction (float, optional): Subtracted from the number of elements. Default: 1.
        keepdim (bool): Keep the reduced dimensions with size 1. Default: False.
        dtype (dtype, optional): Of the result. Default: that of `input`.
        mask (Tensor, optional): bool, broadcasts with `input`; True keeps. Default: None, all.

    Returns:
        Tensor: `input` reduced over `dim`; nan where nothing is kept.

    Raises:
        IndexError: There is no such dimension, or `mask` has more dimensions than `input`.
        RuntimeError: `mask` does not broadcast to the shape of `input`.
        AssertionError: `unbiased` and `correction` are both given.

    Example:
        >>> mask = mica.tensor([True, False, True])
        >>> mica.masked.var(mica.tensor([1.0, 9.0, 3.0]), mask=mask)
        tensor(2.)
    """
    if unbiased is not None and correction is not None:
        raise AssertionError("Arguments `unbiased` and `correction` are both given; expected one of them.")
    less = float(correction) if correction is not None else 0.0 if unbiased is False else 1.0
    result = dtype or input.dtype
    if not (result.is_floating_point or result.is_complex):
        result = mica.float32
    dims = _dims(dim, input.ndim)
    count = _count(input, dims, True, mask)
    x = input - sum(input, dim, keepdim=True, dtype=result, mask=mask) / count
    total = sum(x * x.conj(), dim, keepdim=keepdim, dtype=result, mask=mask)
    divisor = count if keepdim else count.reshape(total.shape)
    if less != 0:
        real = mica.abs(total).dtype
        divisor = mica.maximum(divisor.to(real) - less, divisor.new_zeros([], dtype=real))
    return (total / divisor).to(result)


def std(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The standard deviation of the elements that the mask keeps: the square root of var.

    As `torch.masked.std`.

    Args:
        input (Tensor): Numbers of any shape; integers become float32.
        dim (int or tuple of int, optional): Dimensions to reduce. Default: None, all.
        unbiased (bool, optional): False is a correction of 0, True one of 1. Default: None.
        correction (float, optional): Subtracted from the number of elements. Default: 1.
        keepdim (bool): Keep the reduced dimensions with size 1. Default: False.
        dtype (dtype, optional): Of the result. Default: that of `input`.
        mask (Tensor, optional): bool, broadcasts with `input`; True keeps. Default: None, all.

    Returns:
        Tensor: `input` reduced over `dim`; nan where nothing is kept.

    Raises:
        IndexError: There is no such dimension, or `mask` has more dimensions than `input`.
        RuntimeError: `mask` does not broadcast to the shape of `input`.
        AssertionError: `unbiased` and `correction` are both given.

    Example:
        >>> mask = mica.tensor([True, False, True])
        >>> mica.masked.std(mica.tensor([1.0, 9.0, 3.0]), mask=mask, unbiased=False)
        tensor(1.)
    """
    return mica.sqrt(
        var(input, dim, unbiased, correction=correction, keepdim=keepdim, dtype=dtype, mask=mask)
    )


def softmax(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Probabilities of the elements that the mask keeps: `exp(x)` over its sum; 0 for the others.

    As `torch.masked.softmax`.

    Args:
        input (Tensor): Floating scores of any shape.
        dim (int): Dimension along which the results sum to 1.
        dtype (dtype, optional): Of the result. Default: that of `input`.
        mask (Tensor, optional): bool, broadcasts with `input`; True keeps. Default: None, all.

    Returns:
        Tensor: Of the shape of `input`; nan where nothing along `dim` is kept.

    Raises:
        IndexError: There is no such dimension, or `mask` has more dimensions than `input`.
        RuntimeError: `mask` does not broadcast to the shape of `input`.

    Example:
        >>> mask = mica.tensor([True, False, True])
        >>> mica.masked.softmax(mica.tensor([0.0, 5.0, 0.0]), 0, mask=mask)
        tensor([0.5000, 0.0000, 0.5000])
    """
    kept = _kept(input, mask, None if mask is None else _least(input))
    return mica.softmax(kept, _dims(dim, input.ndim)[0], dtype=dtype or input.dtype)


def log_softmax(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Log probabilities of the elements that the mask keeps; minus infinity for the others.

    As `torch.masked.log_softmax`.

    Args:
        input (Tensor): Floating scores of any shape.
        dim (int): Dimension along which the probabilities sum to 1.
        dtype (dtype, optional): Of the result. Default: that of `input`.
        mask (Tensor, optional): bool, broadcasts with `input`; True keeps. Default: None, all.

    Returns:
        Tensor: Of the shape of `input`; nan where nothing along `dim` is kept.

    Raises:
        IndexError: There is no such dimension, or `mask` has more dimensions than `input`.
        RuntimeError: `mask` does not broadcast to the shape of `input`.

    Example:
        >>> mask = mica.tensor([True, False, True])
        >>> mica.masked.log_softmax(mica.tensor([0.0, 5.0, 0.0]), 0, mask=mask)
        tensor([-0.6931,    -inf, -0.6931])
    """
    kept = _kept(input, mask, None if mask is None else _least(input))
    return mica.log_softmax(kept, _dims(dim, input.ndim)[0], dtype=dtype or input.dtype)


def softmin(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """The softmax of `-x` of the elements that the mask keeps; 0 for the others.

    As `torch.masked.softmin`.

    Args:
        input (Tensor): Floating numbers of any shape.
        dim (int): Dimension along which the results sum to 1.
        dtype (dtype, optional): Of the result. Default: that of `input`.
        mask (Tensor, optional): bool, broadcasts with `input`; True keeps. Default: None, all.

    Returns:
        Tensor: Of the shape of `input`; nan where nothing along `dim` is kept.

    Raises:
        IndexError: There is no such dimension, or `mask` has more dimensions than `input`.
        RuntimeError: `mask` does not broadcast to the shape of `input`.

    Example:
        >>> mask = mica.tensor([True, False, True])
        >>> mica.masked.softmin(mica.tensor([0.0, 5.0, 1.0]), 0, mask=mask)
        tensor([0.7311, 0.0000, 0.2689])
    """
    kept = _kept(input, mask, None if mask is None else _most(input))
    return mica.nn.functional.softmin(kept, _dims(dim, input.ndim)[0], dtype=dtype or input.dtype)


def normalize(
    input: Tensor, ord: float, dim: int, *, eps: float = 1e-12, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """Vectors divided by the norm of those of their elements that the mask keeps; the others become 0.

    As `torch.masked.normalize`.

    Args:
        input (Tensor): Floating or complex, of any shape.
        ord (float): Order of the norm.
        dim (int): Dimension of the vectors.
        eps (float): Smallest divisor. Default: 1e-12.
        dtype (dtype, optional): Of the result. Default: that of `input`.
        mask (Tensor, optional): bool, broadcasts with `input`; True keeps. Default: None, all.

    Returns:
        Tensor: Of the shape of `input`.

    Raises:
        IndexError: There is no such dimension, or `mask` has more dimensions than `input`.
        RuntimeError: `mask` does not broadcast to the shape of `input`.

    Example:
        >>> mask = mica.tensor([True, False, True])
        >>> mica.masked.normalize(mica.tensor([3.0, 9.0, 4.0]), 2.0, 0, mask=mask)
        tensor([0.6000, 0.0000, 0.8000])
    """
    size = norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    return _kept(input, mask, 0) / mica.maximum(size, size.new_full([], eps))
