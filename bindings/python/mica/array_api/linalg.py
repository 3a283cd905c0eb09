"""The standard's linear algebra extension, over mica.linalg."""

from __future__ import annotations

from typing import NamedTuple

import mica
from mica import Tensor, dtype
from mica.array_api._dtypes import common, promoted
from mica.array_api._linear_algebra import matmul, matrix_transpose, tensordot, vecdot
from mica.array_api._statistics import sum

TYPE_CHECKING = False  # importing typing takes as long as all of mica
if TYPE_CHECKING:
    Order = int | float | str


class EighResult(NamedTuple):
    """What eigh gives."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class QRResult(NamedTuple):
    """What qr gives."""

    Q: Tensor
    R: Tensor


class SlogdetResult(NamedTuple):
    """What slogdet gives."""

    sign: Tensor
    logabsdet: Tensor


class SVDResult(NamedTuple):
    """What svd gives."""

    U: Tensor
    S: Tensor
    Vh: Tensor


__all__ = [
    "EighResult",
    "QRResult",
    "SVDResult",
    "SlogdetResult",
    "cholesky",
    "cross",
    "det",
    "diagonal",
    "eigh",
    "eigvalsh",
    "inv",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]


def cholesky(x: Tensor, /, *, upper: bool = False) -> Tensor:
    """The triangular factor of a positive definite matrix."""
    return mica.linalg.cholesky(x, upper=upper)


def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The cross product of vectors of three elements along `axis`."""
    dtype = common(x1, x2)
    a, b = mica.broadcast_tensors([x1.to(dtype), x2.to(dtype)])
    return mica.linalg.cross(a, b, dim=axis)


def det(x: Tensor, /) -> Tensor:
    """The determinant."""
    return mica.linalg.det(x)


def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """A diagonal of the last two dimensions."""
    return mica.diagonal(x, offset, -2, -1)


def eigh(x: Tensor, /) -> EighResult:
    """Eigenvalues and eigenvectors of a Hermitian matrix."""
    return EighResult(*mica.linalg.eigh(x))


def eigvalsh(x: Tensor, /) -> Tensor:
    """Eigenvalues of a Hermitian matrix."""
    return mica.linalg.eigvalsh(x)


def inv(x: Tensor, /) -> Tensor:
    """The inverse."""
    return mica.linalg.inv(x)


def matrix_norm(x: Tensor, /, *, keepdims: bool = False, ord: Order | None = "fro") -> Tensor:
    """A norm of each matrix."""
    return mica.linalg.matrix_norm(x, "fro" if ord is None else ord, dim=(-2, -1), keepdim=keepdims)


def matrix_power(x: Tensor, n: int, /) -> Tensor:
    """A whole power of a square matrix."""
    return mica.linalg.matrix_power(x, n)


def matrix_rank(x: Tensor, /, *, rtol: float | Tensor | None = None) -> Tensor:
    """The number of singular values above `rtol` times the largest."""
    return mica.linalg.matrix_rank(x, rtol=rtol)


def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The product of each element of one vector with each of the other."""
    a, b = promoted(x1, x2)
    return a.unsqueeze(1) * b.unsqueeze(0)


def pinv(x: Tensor, /, *, rtol: float | Tensor | None = None) -> Tensor:
    """The Moore-Penrose inverse."""
    return mica.linalg.pinv(x, rtol=rtol)


def qr(x: Tensor, /, *, mode: str = "reduced") -> QRResult:
    """An orthonormal and an upper triangular factor."""
    return QRResult(*mica.linalg.qr(x, mode=mode))


def slogdet(x: Tensor, /) -> SlogdetResult:
    """The determinant's sign, and the logarithm of its magnitude."""
    return SlogdetResult(*mica.linalg.slogdet(x))


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The solution of x1 @ y = x2; `x2` is a vector only where it has one dimension."""
    dtype = common(x1, x2)
    a, b = x1.to(dtype), x2.to(dtype)
    if b.ndim == 1:
        return mica.linalg.solve(a, b.unsqueeze(-1)).squeeze(-1)
    batch = mica.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return mica.linalg.solve(a, b.expand(*batch, *b.shape[-2:]))


def svd(x: Tensor, /, *, full_matrices: bool = True) -> SVDResult:
    """The singular value decomposition."""
    return SVDResult(*mica.linalg.svd(x, full_matrices=full_matrices))


def svdvals(x: Tensor, /) -> Tensor:
    """The singular values, the largest first."""
    return mica.linalg.svdvals(x)


def trace(x: Tensor, /, *, offset: int = 0, dtype: dtype | None = None) -> Tensor:
    """The sum of a diagonal of the last two dimensions."""
    return sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def vector_norm(
    x: Tensor, /, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False, ord: int | float = 2
) -> Tensor:
    """A norm over the axes, or over all elements."""
    if axis == ():
        return mica.linalg.vector_norm(x.unsqueeze(-1), ord, dim=-1)
    return mica.linalg.vector_norm(x, ord, dim=axis, keepdim=keepdims)
