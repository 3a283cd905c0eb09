"""The linear algebra that is in the standard's main namespace."""

from __future__ import annotations

import mica
from mica import Tensor
from mica.array_api._dtypes import common

TYPE_CHECKING = False  # importing typing takes as long as all of mica
if TYPE_CHECKING:
    from collections.abc import Sequence


def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Multiplies matrices, stacks of them, or a matrix and a vector.

    As `matmul` of the Python array API standard.

    Args:
        x1 (Tensor): `(..., m, k)` or `(k,)`.
        x2 (Tensor): `(..., k, n)` or `(k,)`; the leading dimensions broadcast.

    Returns:
        Tensor: `(..., m, n)`, without the dimension of a vector.

    Raises:
        RuntimeError: The sizes do not fit.

    Example:
        >>> xp = mica.array_api
        >>> xp.matmul(mica.tensor([[1, 2]]), mica.tensor([3, 4]))
        tensor([11])
    """
    dtype = common(x1, x2)
    return mica.matmul(x1.to(dtype), x2.to(dtype))


def matrix_transpose(x: Tensor, /) -> Tensor:
    """Exchanges the last two dimensions, as a view.

    As `matrix_transpose` of the Python array API standard.

    Args:
        x (Tensor): `(..., m, n)`.

    Returns:
        Tensor: `(..., n, m)`.

    Raises:
        ValueError: There are less than two dimensions.

    Example:
        >>> xp = mica.array_api
        >>> xp.matrix_transpose(mica.ones(2, 3)).shape
        mica.Size([3, 2])
    """
    if x.ndim < 2:
        raise ValueError(f"A matrix has two dimensions or more; this array has {x.ndim}.")
    return x.mT


def tensordot(x1: Tensor, x2: Tensor, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> Tensor:
    """Sums products of two arrays over several axes of both.

    As `tensordot` of the Python array API standard.

    Args:
        x1 (Tensor): The first array.
        x2 (Tensor): The second array.
        axes (int or pair of sequences of int): How many, the last of `x1` and the first of `x2`; or which
            of `x1` and which of `x2`. Default: 2.

    Returns:
        Tensor: The other axes of `x1`, then those of `x2`.

    Example:
        >>> xp = mica.array_api
        >>> xp.tensordot(mica.ones(2, 3), mica.ones(3, 4), axes=1).shape
        mica.Size([2, 4])
    """
    dtype = common(x1, x2)
    if isinstance(axes, int):
        axes = (range(x1.ndim - axes, x1.ndim), range(axes))
    return mica.tensordot(x1.to(dtype), x2.to(dtype), (list(axes[0]), list(axes[1])))


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """Computes dot products of vectors, those of `x1` conjugated.

    As `vecdot` of the Python array API standard.

    Args:
        x1 (Tensor): The first array.
        x2 (Tensor): The second array; the other dimensions broadcast.
        axis (int): The axis of the vectors. Default: -1.

    Returns:
        Tensor: Without the axis.

    Raises:
        ValueError: The vectors differ in length.

    Example:
        >>> xp = mica.array_api
        >>> xp.vecdot(mica.tensor([1, 2]), mica.tensor([3, 4]))
        tensor(11)
    """
    dtype = common(x1, x2)
    if x1.shape[axis] != x2.shape[axis]:
        raise ValueError(
            f"Size ({x1.shape[axis]}) of axis ({axis}) of `x1` differs from that ({x2.shape[axis]}) of `x2`."
        )
    x1, x2 = mica.broadcast_tensors([x1.to(dtype), x2.to(dtype)])
    product = (mica.conj(x1) if dtype.is_complex else x1) * x2
    return mica.sum(product, axis, dtype=dtype)
