"""Sample inputs of linear algebra and of Fourier transforms; see samples.py.

`GAUGE` names the results that are determined up to a sign or phase of their columns or
rows alone (singular vectors, eigenvectors, the factors of QR): their absolute values
are compared, and a test of its own puts the matrix together again.
"""

from __future__ import annotations

from mica.conformance.sample_calls import Call, T, args, t

# Results, by number, that are compared by absolute value.
GAUGE: dict[str, tuple[int, ...]] = {
    "linalg_svd": (0, 2),
    "svd": (0, 2),
    "linalg_eigh": (1,),
    "linalg_eig": (1,),
    "linalg_qr": (0, 1),
    "qr": (0, 1),
}


# Expanded inputs have equal rows: of such matrices these have no answer, or one that
# rounding decides.
NEEDS_RANK = {
    "geqrf",
    "linalg_cond",
    "linalg_cond.p_str",
    "linalg_lstsq",
    "linalg_lu",
    "linalg_lu_factor_ex",
    "linalg_matrix_exp",
    "linalg_pinv",
    "linalg_pinv.atol_rtol_float",
    "linalg_pinv.atol_rtol_tensor",
    "linalg_pinv.rcond_tensor",
    "linalg_qr",
    "linalg_svd",
    "linalg_tensorinv",
    "linalg_tensorsolve",
    "matrix_exp",
    "pinverse",
    "qr",
    "svd",
}


def made(how: str, *shape: int) -> T:
    """A matrix made of one of numbers: "positive" definite, "hermitian" or "regular"."""
    return T(shape, made=how)


def pivots(*shape: int) -> T:
    return T(shape, 1, shape[-1] + 1, "int32", False)


A = made("regular", 3, 3)
AS = made("regular", 2, 4, 4)
P = made("positive", 3, 3)
PS = made("positive", 2, 4, 4)
H = made("hermitian", 3, 3)
HS = made("hermitian", 2, 4, 4)
WIDE = t(3, 5)
TALL = t(5, 3)
MANY = t(2, 4, 3)
LOWER = made("lower", 3, 3)
UPPER = made("upper", 2, 4, 4)
EMPTY = T((0, 3, 3), dtype="float64")  # torch looks at no dtype where there are no elements
SOLVE = [
    args(A, t(3, 4)),
    args(A, t(3)),
    args(AS, t(2, 4, 3)),
    args(AS, t(2, 4)),
    args(A, t(2, 3, 2)),
    args(EMPTY, T((0, 3, 2), dtype="float64")),
]

SAMPLES: dict[str, list[Call]] = {
    "linalg_cholesky_ex": [args(P), args(PS), args(P, upper=True), args(EMPTY)],
    "linalg_cholesky": [args(P), args(PS, upper=True)],
    "cholesky": [args(P), args(PS, True)],
    "cholesky_solve": [args(t(3, 2), LOWER), args(t(2, 4, 1), UPPER, True)],
    "cholesky_inverse": [args(LOWER), args(UPPER, True)],
    "linalg_lu_factor_ex": [args(A), args(AS), args(WIDE), args(TALL), args(EMPTY)],
    "linalg_lu_factor": [args(A), args(MANY)],
    "lu_unpack": [
        args(A, pivots(3)),
        args(AS, pivots(2, 4)),
        args(A, pivots(3), False),
        args(A, pivots(3), True, False),
    ],
    "linalg_lu": [args(A), args(AS), args(WIDE), args(TALL)],
    "linalg_lu_solve": [
        args(P, pivots(3), t(3, 2)),
        args(PS, pivots(2, 4), t(2, 4, 2), adjoint=True),
        args(P, pivots(3), t(2, 3), left=False),
        args(P, pivots(3), t(2, 3, 2)),
    ],
    "lu_solve": [args(t(3, 2), P, pivots(3))],
    "linalg_solve_ex": SOLVE,
    "linalg_solve": [*SOLVE, args(A, t(2, 3), left=False), args(AS, t(2, 3, 4), left=False)],
    "triangular_solve": [
        args(t(3, 2), P),
        args(t(2, 4, 1), PS, False),
        args(t(3, 2), P, True, True),
        args(t(3, 2), A, True, False, True),
    ],
    "linalg_inv_ex": [args(A), args(AS), args(EMPTY)],
    "linalg_inv": [args(A), args(AS), args(EMPTY)],
    "inverse": [args(A)],
    "linalg_det": [args(A), args(AS), args(EMPTY), args(T((2, 0, 0), dtype="float64"))],
    "det": [args(A)],
    "linalg_slogdet": [args(A), args(AS), args(EMPTY)],
    "slogdet": [args(A)],
    "logdet": [args(P), args(PS)],
    "geqrf": [args(A), args(WIDE), args(TALL), args(MANY)],
    "linalg_householder_product": [args(t(4, 3), t(2)), args(t(2, 4, 3), t(2, 3)), args(t(3, 3), t(0))],
    "orgqr": [args(t(4, 3), t(3))],
    "ormqr": [
        args(t(4, 3), t(3), t(4, 2)),
        args(t(4, 3), t(3), t(2, 4), False),
        args(t(2, 4, 3), t(2, 3), t(2, 4, 2), True, True),
    ],
    "linalg_qr": [args(A), args(TALL), args(WIDE), args(MANY), args(WIDE, "complete")],
    "qr": [args(TALL), args(A, False)],
    "linalg_eigh": [args(H), args(HS), args(H, "U"), args(EMPTY)],
    "linalg_eigvalsh": [args(H), args(HS, "U")],
    "linalg_eig": [args(A), args(AS)],
    "linalg_eigvals": [args(A), args(AS)],
    "linalg_svd": [args(A), args(TALL, False), args(WIDE, False), args(MANY, False), args(EMPTY)],
    "linalg_svdvals": [args(A), args(TALL), args(MANY)],
    "svd": [args(TALL), args(WIDE), args(TALL, True, False)],
    "linalg_lstsq": [
        args(TALL, t(5, 2)),
        args(WIDE, t(3)),
        args(MANY, t(2, 4, 1)),
        args(TALL, t(5), driver="gels"),
        args(TALL, t(5, 2), driver="gelsd"),
        args(TALL, t(5, 2), 0.1, driver="gelss"),
    ],
    "linalg_ldl_factor_ex": [args(P), args(PS), args(P, hermitian=True)],
    "linalg_ldl_factor": [args(P), args(P, hermitian=True)],
    "linalg_ldl_solve": [args(P, T((3,), 1, 1.5, "int32", False), t(3, 2))],
    "matrix_power": [args(A, n) for n in (0, 1, 2, 3, 5, -2)],
    "linalg_matrix_power": [args(A, 3), args(AS, -1)],
    "linalg_matrix_exp": [args(t(3, 3)), args(t(2, 4, 4)), args(EMPTY), args(t(2, 2, low=-20, high=20))],
    "matrix_exp": [args(t(3, 3))],
    "linalg_matmul": [args(TALL, WIDE)],
    "linalg_multi_dot": [args([TALL, WIDE]), args([t(2, 5), TALL, WIDE]), args([t(5), TALL, t(3)])],
    "chain_matmul": [args([TALL, WIDE])],
    "linalg_vecdot": [args(TALL, TALL), args(TALL, t(5, 1), dim=0)],
    "linalg_diagonal": [args(A), args(MANY, offset=1)],
    "linalg_vander": [args(t(3)), args(t(2, 3), N=4)],
    "linalg_matrix_norm": [
        args(MANY, o, d, k)
        for o in (1, -1, 2, -2, float("inf"))
        for d, k in (([-2, -1], False), ([0, 2], True))
    ],
    "linalg_matrix_norm.str_ord": [args(MANY), args(MANY, "nuc"), args(MANY, "nuc", [0, 1], True)],
    "linalg_norm": [
        args(TALL),
        args(TALL, 2),
        args(MANY, 3, 1),
        args(MANY, 1, [0, 2]),
        args(t(4), float("inf")),
        args(MANY, None, None, True),
    ],
    "linalg_norm.ord_str": [args(TALL, "fro"), args(MANY, "nuc", [1, 2])],
    "nuclear_norm": [args(TALL), args(TALL, True)],
    "nuclear_norm.dim": [args(MANY, [0, 1])],
    "frobenius_norm.dim": [args(MANY, [0, 1])],
    "linalg_cond": [args(A), args(TALL), args(A, -2), args(AS, 1), args(A, float("inf"))],
    "linalg_cond.p_str": [args(A, "fro"), args(A, "nuc")],
    "linalg_matrix_rank": [args(A, 0.1), args(H, 0.1, True)],
    "linalg_matrix_rank.atol_rtol_float": [
        args(A),
        args(MANY, rtol=0.1),
        args(H, hermitian=True),
        args(A, atol=1.0),
    ],
    "linalg_matrix_rank.atol_rtol_tensor": [args(A), args(AS, atol=T((2,), 0.1, 1, None, False))],
    "linalg_matrix_rank.tol_tensor": [args(A, T((), 0.1, 1, None, False))],
    "linalg_pinv": [args(A, 1e-6), args(TALL, 0.1)],
    "linalg_pinv.atol_rtol_float": [
        args(TALL),
        args(WIDE),
        args(H, hermitian=True),
        args(MANY, rtol=0.01),
        args(t(0, 3)),
    ],
    "linalg_pinv.atol_rtol_tensor": [args(TALL), args(MANY, rtol=T((2,), 0.01, 0.02, None, False))],
    "linalg_pinv.rcond_tensor": [args(TALL, T((), 0.01, 0.02, None, False))],
    "pinverse": [args(TALL)],
    "linalg_tensorinv": [args(t(4, 6, 8, 3)), args(t(24, 8, 3), 1)],
    "linalg_tensorsolve": [args(t(2, 3, 6), t(2, 3)), args(t(2, 6, 3), t(2, 3), [1])],
    "fft_fft": [args(t(5)), args(t(3, 8), 5, 0), args(t(3, 4), 6), args(t(3, 4), None, -1, "ortho")],
    "fft_ifft": [args(t(5)), args(t(3, 8), 5, 0), args(t(3, 4), None, 1, "forward")],
    "fft_rfft": [args(t(5)), args(t(3, 8)), args(t(3, 4), 6, 0, "ortho")],
    "fft_irfft": [args(t(5)), args(t(3, 8), 7), args(t(3, 4), 6, 0, "ortho")],
    "fft_hfft": [args(t(5)), args(t(3, 4), 6, 0, "ortho")],
    "fft_ihfft": [args(t(5)), args(t(3, 4), 6, 0, "forward")],
    "fft_fftn": [args(t(3, 4)), args(t(2, 3, 4), [5, 2]), args(t(2, 3, 4), None, [0, 2], "ortho")],
    "fft_ifftn": [args(t(3, 4)), args(t(2, 3, 4), [-1, 2], [2, 0], "forward")],
    "fft_rfftn": [args(t(3, 4)), args(t(2, 3, 4), [5, 3], [0, 1], "ortho")],
    "fft_irfftn": [
        args(t(3, 4)),
        args(t(2, 3, 4), [5, 3], [0, 1], "ortho"),
        args(t(2, 3, 4), None, [0, 1, 2]),
    ],
    "fft_hfftn": [args(t(3, 4)), args(t(2, 3, 4), [5, 3], [0, 1], "ortho")],
    "fft_ihfftn": [args(t(3, 4)), args(t(2, 3, 4), [5, 3], [0, 1], "ortho")],
    **{
        f"fft_{name}2": [args(t(2, 3, 4)), args(t(2, 3, 4), [4, 5], [0, 1], "ortho")]
        for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
    },
    "fft_fftshift": [args(t(5)), args(t(3, 4)), args(t(3, 4), [0])],
    "fft_ifftshift": [args(t(5)), args(t(3, 4)), args(t(3, 4), [0])],
    "fft_fftfreq": [args(5), args(4, 0.5), args(4, dtype="float64")],
    "fft_rfftfreq": [args(5), args(4, 0.5), args(4, dtype="float64")],
    "stft.center": [
        args(t(16), 4, return_complex=True),
        args(t(2, 16), 6, 2, 4, T((4,), 0.5, 1), normalized=True, return_complex=True),
        args(t(2, 16), 4, 3, center=False, onesided=False, return_complex=True),
    ],
    "istft": [
        args(T((5, 6), dtype=None), 8, 2),
        args(T((2, 5, 6)), 8, 3, 6, T((6,), 0.5, 1), length=12),
        args(T((8, 5)), 8, 2, onesided=False, normalized=True),
    ],
}

# What is refused, each with the same kind of exception on every device.
ERRORS: dict[str, list[Call]] = {
    "linalg_cholesky": [args(t(3, 4)), args(t(3)), args(T((2, 2), -2, -1))],
    "linalg_solve": [args(t(3, 3), t(4, 2)), args(t(3, 4), t(3)), args(t(2, 2, low=1, high=1), t(2))],
    "linalg_inv": [args(t(3, 4)), args(t(3, 3, low=0, high=1e-300, dtype="float32"))],
    "linalg_eigh": [args(t(3, 3), "x"), args(t(3, 4))],
    "linalg_qr": [args(t(3, 3), "none"), args(t(3))],
    "linalg_svd": [args(t(3))],
    "linalg_lstsq": [args(t(3, 2), t(4, 1)), args(t(3, 2), t(3), driver="none")],
    "linalg_multi_dot": [args([t(3, 2)]), args([t(3, 2), t(3, 2)])],
    "linalg_matrix_norm": [args(t(3), 2), args(t(3, 3), 3), args(t(3, 3), 2, [0, 0])],
    "linalg_vander": [args(t(3), N=1)],
    "linalg_tensorinv": [args(t(2, 3, 4)), args(t(3, 3), 0)],
    "linalg_lu_solve": [args(t(3, 3), T((2,), 1, 2, "int32", False), t(3, 2))],
    "fft_fft": [args(t(3), 0), args(t(3), None, 1), args(t(3), None, 0, "none")],
    "fft_rfft": [args(T((3,), dtype="complex64"))],
    "fft_fftn": [args(t(3, 3), [2], [0, 1]), args(t(3, 3), None, [0, 0])],
    "fft_irfft": [args(t(1))],
    "stft.center": [args(t(16), 4), args(t(16), 40, return_complex=True)],
    "istft": [args(t(5, 6), 8)],
}
