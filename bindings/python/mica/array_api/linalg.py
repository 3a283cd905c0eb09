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
    """What `eigh()` returns.

    Args:
        eigenvalues (Tensor): `(..., n)`, rising.
        eigenvectors (Tensor): `(..., n, n)`, one a column.

    Example:
        >>> values, vectors = mica.array_api.linalg.eigh(mica.eye(2))
        >>> values
        tensor([1., 1.])
    """

    eigenvalues: Tensor
    eigenvectors: Tensor


class QRResult(NamedTuple):
    """What `qr()` returns.

    Args:
        Q (Tensor): `(..., m, k)`, its columns orthonormal.
        R (Tensor): `(..., k, n)`, upper triangular.

    Example:
        >>> q, r = mica.array_api.linalg.qr(mica.ones(3, 2))
        >>> q.shape, r.shape
        (mica.Size([3, 2]), mica.Size([2, 2]))
    """

    Q: Tensor
    R: Tensor


class SlogdetResult(NamedTuple):
    """What `slogdet()` returns.

    Args:
        sign (Tensor): `(...)`, the determinants' signs.
        logabsdet (Tensor): `(...)`, the logarithms of their magnitudes.

    Example:
        >>> sign, logarithm = mica.array_api.linalg.slogdet(mica.eye(2))
        >>> sign, logarithm
        (tensor(1.), tensor(0.))
    """

    sign: Tensor
    logabsdet: Tensor


class SVDResult(NamedTuple):
    """What `svd()` returns.

    Args:
        U (Tensor): `(..., m, m)`, or `(..., m, min(m, n))`, its columns orthonormal.
        S (Tensor): `(..., min(m, n))`, the singular values, the greatest first.
        Vh (Tensor): `(..., n, n)`, or `(..., min(m, n), n)`, its rows orthonormal.

    Example:
        >>> u, s, vh = mica.array_api.linalg.svd(mica.eye(2))
        >>> s
        tensor([1., 1.])
    """

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
    """Finds the triangular factor of positive definite matrices: `x = L @ L^H`.

    As `cholesky` of the Python array API standard's linalg extension.

    Args:
        x (Tensor): `(..., n, n)`, Hermitian and positive definite.
        upper (bool): Gives the upper factor. Default: False.

    Returns:
        Tensor: `(..., n, n)`.

    Raises:
        LinAlgError: A matrix is not positive definite.

    Example:
        >>> xp = mica.array_api
        >>> xp.linalg.cholesky(mica.tensor([[4.0, 2.0], [2.0, 2.0]]))
        tensor([[2., 0.],
                [1., 1.]])
    """
    return mica.linalg.cholesky(x, upper=upper)


def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """Computes cross products of vectors of three elements.

    As `cross` of the Python array API standard's linalg extension.

    Args:
        x1 (Tensor): The first array.
        x2 (Tensor): The second array; they broadcast.
        axis (int): The axis of the vectors. Default: -1.

    Returns:
        Tensor: In the common shape.

    Example:
        >>> xp = mica.array_api
        >>> xp.linalg.cross(mica.tensor([1, 0, 0]), mica.tensor([0, 1, 0]))
        tensor([0, 0, 1])
    """
    dtype = common(x1, x2)
    a, b = mica.broadcast_tensors([x1.to(dtype), x2.to(dtype)])
    return mica.linalg.cross(a, b, dim=axis)


def det(x: Tensor, /) -> Tensor:
    """Computes determinants.

    As `det` of the Python array API standard's linalg extension.

    Args:
        x (Tensor): `(..., n, n)`, floating-point.

    Returns:
        Tensor: `(...)`.

    Example:
        >>> xp = mica.array_api
        >>> xp.linalg.det(mica.tensor([[2.0, 0.0], [0.0, 3.0]]))
        tensor(6.)
    """
    return mica.linalg.det(x)


def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """Returns a diagonal of each matrix, as a view.

    As `diagonal` of the Python array API standard's linalg extension.

    Args:
        x (Tensor): `(..., m, n)`.
        offset (int): Which; positive ones are above the main one. Default: 0.

    Returns:
        Tensor: `(..., length)`.

    Example:
        >>> xp = mica.array_api
        >>> xp.linalg.diagonal(mica.tensor([[1, 2], [3, 4]]))
        tensor([1, 4])
    """
    return mica.diagonal(x, offset, -2, -1)


def eigh(x: Tensor, /) -> EighResult:
    """Finds eigenvalues and eigenvectors of Hermitian matrices.

    As `eigh` of the Python array API standard's linalg extension.

    Args:
        x (Tensor): `(..., n, n)`.

    Returns:
        EighResult: `eigenvalues`, `(..., n)`, rising, and `eigenvectors`, `(..., n, n)`, one a column.

    Example:
        >>> xp = mica.array_api
        >>> xp.linalg.eigh(mica.tensor([[2.0, 0.0], [0.0, 1.0]])).eigenvalues
        tensor([1., 2.])
    """
    return EighResult(*mica.linalg.eigh(x))


def eigvalsh(x: Tensor, /) -> Tensor:
    """Finds eigenvalues of Hermitian matrices.

    As `eigvalsh` of the Python array API standard's linalg extension.

    Args:
        x (Tensor): `(..., n, n)`.

    Returns:
        Tensor: `(..., n)`, rising.

    Example:
        >>> xp = mica.array_api
        >>> xp.linalg.eigvalsh(mica.tensor([[2.0, 0.0], [0.0, 1.0]]))
        tensor([1., 2.])
    """
    return mica.linalg.eigvalsh(x)


def inv(x: Tensor, /) -> Tensor:
    """Inverts matrices.

    As `inv` of the Python array API standard's linalg extension.

    Args:
        x (Tensor): `(..., n, n)`, floating-point.

    Returns:
        Tensor: `(..., n, n)`.

    Raises:
        LinAlgError: A matrix is singular.

    Example:
        >>> xp = mica.array_api
        >>> xp.linalg.inv(mica.tensor([[2.0, 0.0], [0.0, 4.0]]))
        tensor([[0.5000, 0.0000],
                [0.0000, 0.2500]])
    """
    return mica.linalg.inv(x)


def matrix_norm(x: Tensor, /, *, keepdims: bool = False, ord: Order | None = "fro") -> Tensor:
    """Computes a norm of each matrix.

    As `matrix_norm` of the Python array API standard's linalg extension.

    Args:
        x (Tensor): `(..., m, n)`, floating-point.
        keepdims (bool): Keeps both dimensions, of size 1. Default: False.
        ord (number or str, optional): "fro", "nuc", 1, 2, infinity, or minus one of these numbers.
            Default: "fro".

    Returns:
        Tensor: `(...)`.

    Example:
        >>> xp = mica.array_api
        >>> xp.linalg.matrix_norm(mica.tensor([[3.0, 4.0]]))
        tensor(5.)
    """
    return mica.linalg.matrix_norm(x, "fro" if ord is None else ord, dim=(-2, -1), keepdim=keepdims)


def matrix_power(x: Tensor, n: int, /) -> Tensor:
    """Computes a whole power of square matrices.

    As `matrix_power` of the Python array API standard's linalg extension.

    Args:
        x (Tensor): `(..., n, n)`.
        n (int): The exponent; negative ones invert.

    Returns:
        Tensor: `(..., n, n)`.

    Example:
        >>> xp = mica.array_api
        >>> xp.linalg.matrix_power(mica.tensor([[1.0, 1.0], [0.0, 1.0]]), 3)
        tensor([[1., 3.],
                [0., 1.]])
    """
    return mica.linalg.matrix_power(x, n)


def matrix_rank(x: Tensor, /, *, rtol: float | Tensor | None = None) -> Tensor:
    """Counts the singular values that are above a share of the greatest.

    As `matrix_rank` of the Python array API standard's linalg extension.

    Args:
        x (Tensor): `(..., m, n)`, floating-point.
        rtol (float or Tensor, optional): Singular values up to this share of the largest count as 0. Default: None, `max(m, n)` times the dtype's `eps`.

    Returns:
        Tensor: `(...)`, int64.

    Example:
        >>> xp = mica.array_api
        >>> xp.linalg.matrix_rank(mica.ones(2, 2))
        tensor(1)
    """
    return mica.linalg.matrix_rank(x, rtol=rtol)


def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Multiplies each element of one vector with each of another.

    As `outer` of the Python array API standard's linalg extension.

    Args:
        x1 (Tensor): `(m,)`.
        x2 (Tensor): `(n,)`.

    Returns:
        Tensor: `(m, n)`.

    Example:
        >>> xp = mica.array_api
        >>> xp.linalg.outer(mica.tensor([1, 2]), mica.tensor([10, 20]))
        tensor([[10, 20],
                [20, 40]])
    """
    a, b = promoted(x1, x2)
    return a.unsqueeze(1) * b.unsqueeze(0)


def pinv(x: Tensor, /, *, rtol: float | Tensor | None = None) -> Tensor:
    """Computes the Moore-Penrose inverse of matrices.

    As `pinv` of the Python array API standard's linalg extension.

    Args:
        x (Tensor): `(..., m, n)`, floating-point.
        rtol (float or Tensor, optional): Singular values below this share of the greatest count as 0.
            Default: None, `max(m, n)` times the dtype's `eps`.

    Returns:
        Tensor: `(..., n, m)`.

    Example:
        >>> xp = mica.array_api
        >>> xp.linalg.pinv(mica.tensor([[2.0, 0.0]]))
        tensor([[0.5000],
                [0.0000]])
    """
    return mica.linalg.pinv(x, rtol=rtol)


def qr(x: Tensor, /, *, mode: str = "reduced") -> QRResult:
    """Factors matrices into an orthonormal and an upper triangular one: `x = Q @ R`.

    As `qr` of the Python array API standard's linalg extension.

    Args:
        x (Tensor): `(..., m, n)`, floating-point.
        mode (str): "reduced" or "complete". Default: "reduced".

    Returns:
        QRResult: `Q`, `(..., m, k)`, and `R`, `(..., k, n)`, with `k = min(m, n)`, or `m` if complete.

    Example:
        >>> xp = mica.array_api
        >>> xp.linalg.qr(mica.tensor([[3.0], [4.0]])).R.abs()
        tensor([[5.]])
    """
    return QRResult(*mica.linalg.qr(x, mode=mode))


def slogdet(x: Tensor, /) -> SlogdetResult:
    """Computes the sign of determinants and the logarithm of their magnitudes.

    As `slogdet` of the Python array API standard's linalg extension.

    Args:
        x (Tensor): `(..., n, n)`, floating-point.

    Returns:
        SlogdetResult: `sign` and `logabsdet`, `(...)`.

    Example:
        >>> xp = mica.array_api
        >>> xp.linalg.slogdet(mica.tensor([[2.0, 0.0], [0.0, -3.0]])).sign
        tensor(-1.)
    """
    return SlogdetResult(*mica.linalg.slogdet(x))


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Solves `x1 @ y = x2` for `y`.

    As `solve` of the Python array API standard's linalg extension.

    Args:
        x1 (Tensor): `(..., n, n)`, floating-point.
        x2 (Tensor): `(n,)` or `(..., n, k)`; a vector only where it has one dimension.

    Returns:
        Tensor: `y`, `(..., n)` or `(..., n, k)`.

    Raises:
        LinAlgError: A matrix is singular.

    Example:
        >>> xp = mica.array_api
        >>> xp.linalg.solve(mica.tensor([[2.0, 0.0], [0.0, 4.0]]), mica.tensor([2.0, 8.0]))
        tensor([1., 2.])
    """
    dtype = common(x1, x2)
    a, b = x1.to(dtype), x2.to(dtype)
    if b.ndim == 1:
        return mica.linalg.solve(a, b.unsqueeze(-1)).squeeze(-1)
    batch = mica.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return mica.linalg.solve(a, b.expand(*batch, *b.shape[-2:]))


def svd(x: Tensor, /, *, full_matrices: bool = True) -> SVDResult:
    """Computes the singular value decomposition: `x = U @ diag(S) @ Vh`.

    As `svd` of the Python array API standard's linalg extension.

    Args:
        x (Tensor): `(..., m, n)`, floating-point.
        full_matrices (bool): Completes `U` and `Vh` to square matrices. Default: True.

    Returns:
        SVDResult: `U`, `S` `(..., min(m, n))`, the greatest first, and `Vh`.

    Example:
        >>> xp = mica.array_api
        >>> xp.linalg.svd(mica.tensor([[3.0, 0.0], [0.0, 4.0]])).S
        tensor([4., 3.])
    """
    return SVDResult(*mica.linalg.svd(x, full_matrices=full_matrices))


def svdvals(x: Tensor, /) -> Tensor:
    """Computes singular values.

    As `svdvals` of the Python array API standard's linalg extension.

    Args:
        x (Tensor): `(..., m, n)`, floating-point.

    Returns:
        Tensor: `(..., min(m, n))`, the greatest first.

    Example:
        >>> xp = mica.array_api
        >>> xp.linalg.svdvals(mica.tensor([[3.0, 0.0], [0.0, 4.0]]))
        tensor([4., 3.])
    """
    return mica.linalg.svdvals(x)


def trace(x: Tensor, /, *, offset: int = 0, dtype: dtype | None = None) -> Tensor:
    """Sums a diagonal of each matrix.

    As `trace` of the Python array API standard's linalg extension.

    Args:
        x (Tensor): `(..., m, n)`.
        offset (int): Which diagonal; positive ones are above the main one. Default: 0.
        dtype (dtype, optional): Of the result. Default: as of `sum`.

    Returns:
        Tensor: `(...)`.

    Example:
        >>> xp = mica.array_api
        >>> xp.linalg.trace(mica.tensor([[1, 2], [3, 4]]))
        tensor(5)
    """
    return sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def vector_norm(
    x: Tensor, /, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False, ord: int | float = 2
) -> Tensor:
    """Computes p-norms: `(sum |x|^p)^(1/p)`.

    As `vector_norm` of the Python array API standard's linalg extension.

    Args:
        x (Tensor): The array, floating-point.
        axis (int or tuple of int, optional): Axes to reduce. Default: None, all.
        keepdims (bool): Keeps reduced axes, of size 1. Default: False.
        ord (number): The order `p`. Default: 2.

    Returns:
        Tensor: The norms.

    Example:
        >>> xp = mica.array_api
        >>> xp.linalg.vector_norm(mica.tensor([3.0, 4.0]))
        tensor(5.)
    """
    if axis == ():
        return mica.linalg.vector_norm(x.unsqueeze(-1), ord, dim=-1)
    return mica.linalg.vector_norm(x, ord, dim=axis, keepdim=keepdims)
