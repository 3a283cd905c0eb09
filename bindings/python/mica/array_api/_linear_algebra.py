"""The linear algebra that is in the standard's main namespace."""

from __future__ import annotations

import mica
from mica import Tensor
from mica.array_api._dtypes import common

TYPE_CHECKING = False  # importing typing takes as long as all of mica
if TYPE_CHECKING:
    from collections.abc import Sequence


def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The product of matrices, of stacks of them, or of a matrix and a vector."""
    dtype = common(x1, x2)
    return mica.matmul(x1.to(dtype), x2.to(dtype))


def matrix_transpose(x: Tensor, /) -> Tensor:
    """`x` with its last two dimensions exchanged."""
    if x.ndim < 2:
        raise ValueError(f"A matrix has two dimensions or more; this array has {x.ndim}.")
    return x.mT


def tensordot(x1: Tensor, x2: Tensor, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> Tensor:
    """The sum of products over the last and first `axes` dimensions, or over pairs of them."""
    dtype = common(x1, x2)
    if isinstance(axes, int):
        axes = (range(x1.ndim - axes, x1.ndim), range(axes))
    return mica.tensordot(x1.to(dtype), x2.to(dtype), (list(axes[0]), list(axes[1])))


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The dot product of vectors along `axis`, the first one conjugated."""
    dtype = common(x1, x2)
    if x1.shape[axis] != x2.shape[axis]:
        raise ValueError(
            f"Size ({x1.shape[axis]}) of axis ({axis}) of `x1` differs from that ({x2.shape[axis]}) of `x2`."
        )
    x1, x2 = mica.broadcast_tensors([x1.to(dtype), x2.to(dtype)])
    product = (mica.conj(x1) if dtype.is_complex else x1) * x2
    return mica.sum(product, axis, dtype=dtype)
