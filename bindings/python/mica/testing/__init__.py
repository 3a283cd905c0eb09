"""mica.testing: comparisons for tests, and opcheck for operators of one's own."""

from __future__ import annotations

import math
from typing import Any

import mica
from mica._C import Tensor
from mica.testing._comparison import assert_close as assert_close
from mica.testing._opcheck import (
    OpCheckError as OpCheckError,
    opcheck as opcheck,
)

# dtype kind: the range of make_tensor() unless told otherwise, and the limits of a whole number's.
_RANGE = {"bool": (0, 2), "unsigned": (0, 10), "whole": (-9, 10), "floating": (-9.0, 9.0)}


def _range_of(dtype: Any, low: float | None, high: float | None) -> tuple[Any, Any]:
    floating = dtype.is_floating_point or dtype.is_complex
    kind = (
        "floating"
        if floating
        else "bool"
        if dtype == mica.bool
        else "whole"
        if dtype.is_signed
        else "unsigned"
    )
    bottom, top = (_RANGE[kind][i] if v is None else v for i, v in enumerate((low, high)))
    if bottom != bottom or top != top:
        raise ValueError(f"`low` ({low}) and `high` ({high}) are numbers, and one is NaN.")
    if bottom >= top and not (bottom == top and floating):
        raise ValueError(f"`low` ({bottom}) is below `high` ({top}), and here it is not.")
    limits = mica.finfo(dtype) if floating else mica.iinfo(dtype) if dtype != mica.bool else None
    least, most = (0, 1) if limits is None else (limits.min, limits.max)
    return max(bottom, least), min(top, most if floating else most + 1)


def make_tensor(
    *shape: Any,
    dtype: Any,
    device: Any,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Makes a Tensor of random values for a test, uniformly from `[low, high)`.

    As `torch.testing.make_tensor`.

    Args:
        *shape (int or sequence of int): Sizes of the result.
        dtype (dtype): Of the result.
        device (device): Where it lives.
        low (float, optional): Smallest value. Default: -9; 0 for bool and unsigned dtypes.
        high (float, optional): Bound of the values, not included. Default: 9; 10 for integers, 2 for bool.
        requires_grad (bool): Whether gradients are recorded. Default: False.
        noncontiguous (bool): Make every second element of a larger Tensor. Default: False.
        exclude_zero (bool): Replace zeros by the dtype's least positive value. Default: False.
        memory_format (memory_format, optional): Memory format; excludes `noncontiguous`.

    Returns:
        Tensor: The Tensor.

    Raises:
        ValueError: `low` is not below `high` (floating dtypes allow them to be equal) or one is NaN, an
            integer dtype with `requires_grad`, or both `noncontiguous` and `memory_format`.

    Example:
        >>> _ = mica.manual_seed(0)
        >>> x = mica.testing.make_tensor(2, 3, dtype=mica.float32, device="cpu", low=0, high=1)
        >>> x.shape, bool(((x >= 0) & (x < 1)).all())
        (mica.Size([2, 3]), True)
    """
    sizes = tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else shape
    if noncontiguous and memory_format is not None:
        raise ValueError(
            f"`noncontiguous` and `memory_format` ({memory_format}) exclude each other; both are given."
        )
    if requires_grad and not (dtype.is_floating_point or dtype.is_complex):
        raise ValueError(f"`requires_grad` needs a floating or complex dtype; this one is ({dtype}).")
    bottom, top = _range_of(dtype, low, high)
    spread = noncontiguous and math.prod(sizes) > 1
    drawn = (*sizes[:-1], 2 * sizes[-1]) if spread else sizes
    values = _draw(drawn, dtype, device, bottom, top)
    if spread:
        values = values[..., ::2]
    elif memory_format is not None:
        values = values.clone(memory_format=memory_format)
    if exclude_zero:
        least = mica.finfo(dtype).tiny if dtype.is_floating_point or dtype.is_complex else 1
        values[values == 0] = least
    return values.requires_grad_() if requires_grad else values


def _draw(sizes: tuple[int, ...], dtype: Any, device: Any, low: Any, high: Any) -> Tensor:
    if dtype.is_complex:  # real and imaginary parts in turn
        values = mica.empty(sizes, dtype=dtype, device=device)
        mica.view_as_real(values).uniform_(low, high)
        return values
    if dtype.is_floating_point:
        work = dtype if dtype in (mica.float16, mica.bfloat16, mica.float32, mica.float64) else mica.float32
        return mica.empty(sizes, dtype=work, device=device).uniform_(low, high).to(dtype)
    return mica.randint(math.ceil(low), math.ceil(high), sizes, device=device, dtype=dtype)
