"""Linear algebra where values alone do not say enough: matrices put together again, and errors.

Factors are free in signs, phases and order, so test_operators_torch.py compares their absolute
values; here the products must give the matrix back, and bases be orthonormal.
"""

from __future__ import annotations

from typing import Any

import pytest

import mica
from mica import linalg
from mica.conformance.operators import MADE

DTYPES = [mica.float32, mica.float64, mica.complex64, mica.complex128]
SHAPES = [(4, 4), (5, 3), (3, 5), (2, 3, 4, 4), (40, 60), (0, 3), (0, 2, 2)]


def _near(a: Any, b: Any) -> bool:
    """Within rounding of the largest element: errors of factorisations go with the norm."""
    scale = 1e-4 if a.dtype in (mica.float32, mica.complex64) else 1e-11
    largest = b.abs().max() if b.numel() else 0
    return a.shape == b.shape and bool(((a - b).abs() <= scale * (1 + largest)).all())


def _random(shape: tuple[int, ...], dtype: Any, how: str = "") -> Any:
    mica.manual_seed(0)
    x = mica.randn(*shape, dtype=dtype)
    return MADE[how](x) if how else x


def _unit(n: int, dtype: Any) -> Any:
    return mica.eye(n, dtype=dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_factors_give_the_matrix_back(dtype: Any, shape: tuple[int, ...]) -> None:
    a = _random(shape, dtype)
    for full in (True, False):
        u, s, vh = linalg.svd(a, full_matrices=full)
        k = s.shape[-1]
        assert _near(u[..., :k] * s.unsqueeze(-2) @ vh[..., :k, :], a)
        assert _near(u.mH @ u, _unit(u.shape[-1], dtype).expand_as(u.mH @ u))
        assert _near(vh @ vh.mH, _unit(vh.shape[-2], dtype).expand_as(vh @ vh.mH))
        assert _near(linalg.svdvals(a), s)
    for mode in ("reduced", "complete"):
        q, r = linalg.qr(a, mode)
        assert _near(q @ r, a)
        assert _near(q.mH @ q, _unit(q.shape[-1], dtype).expand_as(q.mH @ q))
        assert bool((r.tril(-1) == 0).all())
    p, lower, upper = linalg.lu(a)
    assert _near(p @ lower @ upper, a)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(4, 4), (2, 3, 4, 4), (40, 40), (0, 2, 2)])
def test_square_matrices(dtype: Any, shape: tuple[int, ...]) -> None:
    h, a = _random(shape, dtype, "hermitian"), _random(shape, dtype, "regular")
    for uplo in "LU":
        w, v = linalg.eigh(h, uplo)
        assert _near(v * w.unsqueeze(-2) @ v.mH, h)
        assert _near(linalg.eigvalsh(h, uplo), w)
    w, v = linalg.eig(a)
    assert _near(v * w.unsqueeze(-2), a.to(v.dtype) @ v)
    positive = _random(shape, dtype, "positive")
    lower = linalg.cholesky(positive)
    assert _near(lower @ lower.mH, positive)
    assert _near(linalg.cholesky(positive, upper=True), lower.mH)
    b = _random((*shape[:-1], 2), dtype)
    factors, pivots = linalg.lu_factor(a)
    for adjoint in (False, True):
        x = linalg.lu_solve(factors, pivots, b, adjoint=adjoint)
        assert _near((a.mH if adjoint else a) @ x, b)
        x = linalg.lu_solve(factors, pivots, b.mH, left=False, adjoint=adjoint)
        assert _near(x @ (a.mH if adjoint else a), b.mH)
    for hermitian in (False, True):
        symmetric = positive if hermitian else a + a.mT
        factors, pivots = linalg.ldl_factor(symmetric, hermitian=hermitian)
        assert _near(symmetric @ linalg.ldl_solve(factors, pivots, b, hermitian=hermitian), b)
    assert _near(
        linalg.matrix_exp(a * 0) if a.numel() else a, _unit(shape[-1], dtype).expand_as(a) if a.numel() else a
    )


def test_matrices_that_have_no_result_raise_lin_alg_error() -> None:
    assert issubclass(linalg.LinAlgError, RuntimeError)
    singular = mica.stack([mica.eye(2), mica.ones(2, 2)])
    with pytest.raises(
        linalg.LinAlgError, match=r"\(Batch element 1\): The diagonal element 2 is zero, the inversion"
    ):
        linalg.inv(singular)
    with pytest.raises(
        linalg.LinAlgError,
        match=r"\(Batch element 1\): The solver failed because the input matrix is singular",
    ):
        linalg.solve(singular, mica.ones(2, 2))
    with pytest.raises(
        linalg.LinAlgError,
        match=r"\(Batch element 1\): .* \(the leading minor of order 1 is not positive-definite\)",
    ):
        linalg.cholesky(mica.stack([mica.eye(2), -mica.eye(2)]))
    with pytest.raises(linalg.LinAlgError, match="converge"):
        linalg.svd(mica.full((2, 2), float("nan")))
    assert linalg.inv_ex(singular).info.tolist() == [0, 2]
    assert linalg.cholesky_ex(-mica.eye(2)).info.tolist() == 1
    assert linalg.solve_ex(singular, mica.ones(2, 2)).info.tolist() == [0, 2]


def test_pivots_that_lead_outside_the_matrix_are_refused() -> None:
    a, b = mica.eye(3), mica.ones(3, 2)
    for pivots in ([0, 2, 3], [1, 2, 4], [-1, 2, 3], [2**31 - 1, 2, 3]):
        with pytest.raises(RuntimeError, match="Pivot|pivot"):
            linalg.lu_solve(a, mica.tensor(pivots, dtype=mica.int32), b)
        if pivots[0] >= 0:
            with pytest.raises(RuntimeError, match="not those of LDL factors"):
                linalg.ldl_solve(a, mica.tensor(pivots, dtype=mica.int32), b)
    with pytest.raises(RuntimeError, match="not those of LDL factors"):
        linalg.ldl_solve(a, mica.tensor([1, 2, -3], dtype=mica.int32), b)


def test_the_gradient_of_a_singular_determinant_is_the_adjugate() -> None:
    x = mica.tensor([[1.0, 2.0], [2.0, 4.0]], dtype=mica.float64, requires_grad=True)
    mica.det(x).backward()
    assert _near(x.grad, mica.tensor([[4.0, -2.0], [-2.0, 1.0]], dtype=mica.float64))
    y = mica.tensor(
        [[1.0, 2.0, 3.0], [2.0, 4.0, 1.0], [3.0, 6.0, 5.0]], dtype=mica.float64, requires_grad=True
    )
    assert mica.autograd.gradcheck(mica.det, (y,)) and mica.autograd.gradgradcheck(mica.det, (y,))


def test_low_rank_approximations() -> None:
    mica.manual_seed(0)
    a = mica.randn(20, 3, dtype=mica.float64) @ mica.randn(3, 12, dtype=mica.float64)
    u, s, v = mica.svd_lowrank(a, q=4)
    assert _near(u * s @ v.mT, a)
    u, s, v = mica.svd_lowrank(a.mT, q=4)
    assert _near(u * s @ v.mT, a.mT)
    u, s, v = mica.pca_lowrank(a, q=3)
    assert _near(u * s @ v.mT, a - a.mean(0))
    with pytest.raises(ValueError, match="Number of components"):
        mica.pca_lowrank(a, q=13)


def test_stft_and_back() -> None:
    mica.manual_seed(0)
    x = mica.randn(2, 64, dtype=mica.float64)
    window = mica.linspace(0.5, 1, 16, dtype=mica.float64)
    for center in (True, False):
        spectrum = mica.stft(x, 16, 4, window=window, center=center, return_complex=True)
        back = mica.istft(spectrum, 16, 4, window=window, center=center, length=64)
        assert _near(back, x)
    with pytest.raises(RuntimeError, match="return_complex"):
        mica.stft(x, 16)


@pytest.mark.parametrize("n", [1, 2, 7, 12, 97, 1009, 2048])
def test_transforms_of_any_length_come_back(n: int) -> None:
    mica.manual_seed(n)
    x = mica.randn(3, n, dtype=mica.float64)
    k = mica.arange(n, dtype=mica.float64)
    assert _near(mica.fft.ifft(mica.fft.fft(x)).real, x)
    assert _near(mica.fft.irfft(mica.fft.rfft(x), n), x)
    assert _near(mica.fft.ihfft(mica.fft.hfft(mica.fft.rfft(x), n)), mica.fft.rfft(x))
    if n <= 97:
        angle = k.unsqueeze(-1) * k * (-2 * mica.pi / n)
        table = mica.complex(mica.cos(angle), mica.sin(angle))
        assert _near(mica.fft.fft(x), x.to(mica.complex128) @ table)
