"""Low-rank approximations by random projections: svd_lowrank and pca_lowrank.

Algorithm 5.1 with the range finder 4.4 of Halko, Martinsson, Tropp, "Finding structure
with randomness" (2009). All of it is made of operators, so gradients follow.
"""

from __future__ import annotations

import mica
from mica import Tensor


def _range(a: Tensor, q: int, niter: int, m: Tensor | None) -> Tensor:
    """An orthonormal basis that approximates the range of a - m."""

    def apply(x: Tensor) -> Tensor:
        return a @ x if m is None else a @ x - m @ x

    def apply_adjoint(x: Tensor) -> Tensor:
        return a.mH @ x if m is None else a.mH @ x - m.mH @ x

    start = a.new_empty((a.shape[-1], q)).normal_()
    basis = mica.linalg.qr(apply(start))[0]
    for _ in range(niter):
        basis = mica.linalg.qr(apply_adjoint(basis))[0]
        basis = mica.linalg.qr(apply(basis))[0]
    return basis


def svd_lowrank(
    A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """The `q` largest singular values of `A` (less `M`), about, and their vectors: A ~ U diag(S) V^H."""
    q, niter = 6 if q is None else q, 2 if niter is None else niter
    if M is not None:
        M = M.expand(A.shape)
    if A.shape[-2] < A.shape[-1]:
        v, s, u = _svd(A.mH, q, niter, None if M is None else M.mH)
        return u, s, v
    return _svd(A, q, niter, M)


def _svd(a: Tensor, q: int, niter: int, m: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    basis = _range(a, q, niter, m)
    inner = basis.mH @ a if m is None else basis.mH @ a - basis.mH @ m
    u, s, vh = mica.linalg.svd(inner, full_matrices=False)
    return basis @ u, s, vh.mH


def pca_lowrank(
    A: Tensor, q: int | None = None, center: bool = True, niter: int = 2
) -> tuple[Tensor, Tensor, Tensor]:
    """The `q` largest principal components of the rows of `A`, about."""
    m, n = A.shape[-2:]
    q = min(6, m, n) if q is None else q
    if not 0 <= q <= min(m, n):
        raise ValueError(
            f"Number of components `q` ({q}) is not between 0 and ({min(m, n)}), the smaller size."
        )
    if niter < 0:
        raise ValueError(f"Number of iterations `niter` ({niter}) is negative.")
    if not center:
        return svd_lowrank(A, q, niter=niter)
    return svd_lowrank(A - A.mean(-2, keepdim=True), q, niter=niter)
