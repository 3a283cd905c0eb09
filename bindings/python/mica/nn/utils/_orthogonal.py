"""Orthogonal parametrisation: a weight that stays (semi-)orthogonal while it is trained.

The free parameter is a matrix of which a map makes an orthogonal one: the exponential or the Cayley
map of a skew-symmetric matrix, or a product of Householder reflections. With `use_trivialization`
(Lezcano-Casado, 2019) the result is relative to a fixed orthogonal matrix, the buffer `base`, which an
assignment moves, so that training starts at the identity of the map.
"""

from __future__ import annotations

from typing import Any

import mica
from mica._C import Tensor
from mica.nn.modules.module import Module
from mica.nn.utils.parametrize import register_parametrization

_MAPS = ("matrix_exp", "cayley", "householder")


def _is_orthogonal(q: Tensor) -> bool:
    eps = 10.0 * q.size(-2) * mica.finfo(q.dtype).eps
    unit = mica.eye(q.size(-1), dtype=q.dtype, device=q.device)
    return bool(mica.allclose(q.mH @ q, unit, atol=eps))


def _made_orthogonal(a: Tensor) -> Tensor:
    """The orthogonal factor of `a`, with the signs that make its triangular factor positive."""
    x, tau = mica.geqrf(a)
    q: Tensor = mica.linalg.householder_product(x, tau)
    return q * x.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


class _Orthogonal(Module):
    base: Any

    def __init__(self, weight: Tensor, orthogonal_map: str, *, use_trivialization: bool = True) -> None:
        super().__init__()
        if weight.is_complex() and orthogonal_map == "householder":
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X: Tensor) -> Tensor:
        wide = X.size(-2) < X.size(-1)
        x = X.mT if wide else X
        q = self._mapped(x)
        if hasattr(self, "base"):
            q = self.base @ q
        return q.mT if wide else q

    def _mapped(self, x: Tensor) -> Tensor:
        """The orthogonal matrix, as high as x and as wide, that the map makes of it."""
        n, k = x.size(-2), x.size(-1)
        if self.orthogonal_map == "householder":
            below = x.tril(-1)
            tau = 2.0 / (1.0 + (below * below).sum(-2))
            # The diagonal holds signs, which are not trained.
            signs = x.diagonal(dim1=-2, dim2=-1).to(mica.int32).unsqueeze(-2)
            return mica.linalg.householder_product(below, tau) * signs  # type: ignore[no-any-return]
        lower = x.tril()
        if n != k:
            lower = mica.cat([lower, lower.new_zeros((*lower.shape[:-2], n, n - k))], -1)
        skew = lower - lower.mH
        if self.orthogonal_map == "matrix_exp":
            q = mica.matrix_exp(skew)
        else:
            unit = mica.eye(n, dtype=skew.dtype, device=skew.device)
            q = mica.linalg.solve(unit - skew * 0.5, unit + skew * 0.5)
        return q[..., :k]

    def right_inverse(self, Q: Tensor) -> Tensor:
        """The free parameter for a given weight, which is made orthogonal where it is not."""
        if Q.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {tuple(self.shape)}. Got a tensor of shape {tuple(Q.shape)}."
            )
        with mica.no_grad():
            wide = Q.size(-2) < Q.size(-1)
            q = Q.mT if wide else Q
            if hasattr(self, "base"):
                self.base = self._whole(q)
                start = mica.zeros_like(Q)
                start.diagonal(dim1=-2, dim2=-1).fill_(-1.0)  # of which every map makes the identity
                return start
            if self.orthogonal_map != "householder":
                raise NotImplementedError(
                    "It is not possible to assign to the matrix exponential or the Cayley parametrizations when "
                    "use_trivialization=False."
                )
            a, tau = mica.geqrf(q)
            diagonal = a.diagonal(dim1=-2, dim2=-1)
            diagonal.copy_(mica.where(tau == 0, -diagonal.sign(), diagonal.sign()))
            return a.mT if wide else a

    def _whole(self, q: Tensor) -> Tensor:
        """A square orthogonal matrix that begins with the columns of q."""
        n, k = q.size(-2), q.size(-1)
        if n == k:
            return q.clone() if _is_orthogonal(q) else _made_orthogonal(q)
        more = mica.randn((*q.shape[:-2], n, n - k), dtype=q.dtype, device=q.device)
        return _made_orthogonal(mica.cat([q, more], -1))


def orthogonal(
    module: Module,
    name: str = "weight",
    orthogonal_map: str | None = None,
    *,
    use_trivialization: bool = True,
) -> Module:
    """Keeps the rows or the columns of a matrix, whichever are fewer, orthonormal while it is trained.

    As `torch.nn.utils.parametrizations.orthogonal`. The matrix is computed from a free parameter by one of
    three maps, so that any optimizer may train it. Batches of matrices, and complex ones, which become
    unitary, are taken too.

    Args:
        module (Module): Changed in place.
        name (str): Of the parameter or buffer, `(*, n, m)`. Default: `weight`.
        orthogonal_map (str, optional): `matrix_exp` or `cayley` of a skew-symmetric matrix, or `householder`,
            a product of reflections. Default: `matrix_exp` for square and complex matrices, else
            `householder`.
        use_trivialization (bool): Compute relative to a fixed orthogonal matrix, which an assignment sets.
            Without it only `householder` takes assignments. Default: True.

    Returns:
        Module: `module`.

    Raises:
        ValueError: The module has no such tensor, it has fewer than 2 dimensions, or the map is unknown or
            not for complex matrices.

    Example:
        >>> layer = mica.nn.utils.parametrizations.orthogonal(mica.nn.Linear(4, 3))
        >>> mica.allclose(layer.weight @ layer.weight.T, mica.eye(3), atol=1e-5)
        True
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if weight.ndim < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions.")
    if orthogonal_map is None:
        square = weight.size(-2) == weight.size(-1)
        orthogonal_map = "matrix_exp" if square or weight.is_complex() else "householder"
    if orthogonal_map not in _MAPS:
        raise ValueError(
            f"orthogonal_map ({orthogonal_map!r}) is unknown; expected one of {', '.join(_MAPS)}."
        )
    made = _Orthogonal(weight, orthogonal_map, use_trivialization=use_trivialization)
    return register_parametrization(module, name, made, unsafe=True)
