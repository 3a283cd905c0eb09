"""Calls of linear algebra that torch refuses, each with the phrase of its sentence that programs match on.

test_messages_torch.py runs them on torch and on Mica.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def phases(m: Any, of: Callable[[Any], Any]) -> None:
    """Backward of a function that depends on the phases of vectors of a complex matrix."""
    rows = [[1 + 2j, 0.5j, -1.0], [2.0, 1.5 - 1j, 0.25], [0.75j, 1.0, -2 + 1j]]
    of(m.tensor(rows, requires_grad=True)).abs().backward()


LINALG: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "a condition's norm": (
        "linalg.cond got an invalid norm type: wrong",
        lambda m: m.linalg.cond(m.ones(2, 2), "wrong"),
    ),
    "a norm of matrices": (
        "linalg.matrix_norm: Order 3.5 not supported",
        lambda m: m.linalg.matrix_norm(m.ones(2, 2), 3.5),
    ),
    "dimensions of a nuclear norm": (
        "must be different",
        lambda m: m.linalg.matrix_norm(m.ones(2, 2), "nuc", (0, -2)),
    ),
    "factors of a vector": (
        "linalg.qr: The input tensor A must have at least 2 dimensions",
        lambda m: m.linalg.qr(m.ones(2)),
    ),
    "least squares of a vector": (
        "input must have at least 2 dimensions",
        lambda m: m.linalg.lstsq(m.ones(2), m.ones(2)),
    ),
    "an inverse of a vector": (
        "expected a tensor with 2 or more dimensions",
        lambda m: m.linalg.pinv(m.ones(2)),
    ),
    "an inverse of a tensor": (
        "Expected self to satisfy the requirement",
        lambda m: m.linalg.tensorinv(m.ones(2, 3, 4), 1),
    ),
    "an equation of tensors": (
        "Expected self to satisfy the requirement",
        lambda m: m.linalg.tensorsolve(m.ones(2, 3, 6), m.ones(3)),
    ),
    "a product of no matrices": ("expected at least 2 tensors", lambda m: m.linalg.multi_dot([])),
    "singular": (
        "The diagonal element 2 is zero, the inversion could not be completed",
        lambda m: m.linalg.inv(m.ones(2, 2)),
    ),
    "not positive-definite": ("the leading minor of order 1 is not positive-definite", lambda m: m.linalg.cholesky(-m.eye(2))),
    "a condition's order": (
        "linalg.cond got an invalid norm type: 5",
        lambda m: m.linalg.cond(m.ones(2, 2), 5),
    ),
    "a condition of a vector": ("at least 2 dimensions", lambda m: m.linalg.cond(m.ones(2), "fro")),
    "a named norm of matrices": (
        "linalg.matrix_norm: Order x not supported",
        lambda m: m.linalg.matrix_norm(m.ones(2, 2), "x"),
    ),
    "a matrix norm of a vector": (
        "linalg.matrix_norm: The input tensor A must have at least 2 dimensions",
        lambda m: m.norm(m.ones(2), "nuc", (0, 1)),
    ),
    "a complex tolerance": (
        "rcond tensor of complex type is not supported",
        lambda m: m.linalg.pinv(m.ones(2, 2), rcond=m.tensor(1j)),
    ),
    "real eigenvalues": (
        "Expected eigenvalues to be safely castable",
        lambda m: m.linalg.eig(m.ones(2, 2), out=(m.empty(0), m.empty(0))),
    ),
    "a factor with a zero": (
        "cholesky_inverse: The diagonal element 2 is zero",
        lambda m: m.cholesky_inverse(m.tensor([[1.0, 0], [1, 0]])),
    ),
    "least squares of two dtypes": (
        "the same dtype",
        lambda m: m.linalg.lstsq(m.ones(2, 2), m.ones(2, 2, dtype=m.int64)),
    ),
    "a chain of vectors": (
        "Tensor dimension is 1, expected 2 instead",
        lambda m: m.chain_matmul(m.ones(1), m.ones(1)),
    ),
    "no operand": ("must specify the equation string and at least one operand", lambda m: m.einsum("", [])),
    "dimensions of tensordot": ("expects dims >= 0", lambda m: m.tensordot(m.ones(2), m.ones(2), dims=-1)),
    "dot of two dtypes": (
        "dot : expected both vectors to have same dtype, but found Float and Double",
        lambda m: m.vdot(m.ones(2), m.ones(2, dtype=m.float64)),
    ),
    "dot of a matrix": ("1D tensors expected", lambda m: m.vdot(m.ones(1, 1), m.ones(3))),
    "a norm of matrices along one dimension": (
        "matrix_norm: dim must be a 2-tuple",
        lambda m: m.linalg.norm(m.ones(2, 2), "fro", 0),
    ),
    "baddbmm of two dtypes": (
        "Input dtypes must be the same",
        lambda m: m.baddbmm(m.ones(1, 2, 2, dtype=m.int16), m.ones(1, 2, 2), m.ones(1, 2, 2)),
    ),
    "the gradient of R": (
        "The derivative of linalg.qr depends on Q",
        lambda m: m.linalg.qr(m.ones(2, 3, requires_grad=True), mode="r")[1].sum().backward(),
    ),
    "phases of eigenvectors": ("ill-defined", lambda m: phases(m, lambda a: m.linalg.eig(a)[1].sum())),
    "phases of Hermitian eigenvectors": (
        "ill-defined",
        lambda m: phases(m, lambda a: m.linalg.eigh(a + a.mH)[1].sum()),
    ),
    "phases of left singular vectors": (
        "ill-defined",
        lambda m: phases(m, lambda a: m.linalg.svd(a)[0].sum()),
    ),
    "phases of singular vectors": (
        "ill-defined",
        lambda m: phases(m, lambda a: (m.linalg.svd(a)[0] + m.linalg.svd(a)[2]).sum()),
    ),
}  # fmt: skip
