"""Gradients where a formula divides by what is zero: repeated eigenvalues and singular values, singular
matrices, ties, zeros under powers, infinities; and of each result of an operator with several alone, whose
other results then have no gradient at all. A table of expressions on a table of inputs, against torch.

Where torch has a finite number, Mica has the same; where torch has none (NaN, an infinity), nothing is asked.
Losses are symmetric in equal eigenvalues, so that they do not depend on the basis that LAPACK chose.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from typing import Any

import mpmath
import numpy as np
import pytest
import torch

import mica

DTYPES = ["float64", "complex128", "float32"]
TOLERANCE = {"float32": {"rtol": 2e-3, "atol": 2e-4}, "float64": {"rtol": 1e-6, "atol": 1e-8}}
TOLERANCE["complex128"] = TOLERANCE["float64"]

_ROTATION = np.linalg.qr(np.arange(9.0).reshape(3, 3) * 0.37 + np.eye(3))[0]
SQUARE: dict[str, np.ndarray] = {
    "identity": np.eye(3),
    "zeros": np.zeros((3, 3)),
    "ones": np.ones((3, 3)),
    "negative identity": -np.eye(2),
    "two equal": np.diag([2.0, 1.0, 1.0]),
    "two equal, turned": _ROTATION @ np.diag([2.0, 1.0, 1.0]) @ _ROTATION.T,
    "rotation": _ROTATION,
    "opposite": np.diag([1.0, -1.0, 2.0]),
    "permutation": np.roll(np.eye(3), 1, 0),
    "singular": np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [5.0, 7.0, 9.0]]),
    "two zeros": np.diag([3.0, 0.0, 0.0]),
    "one": np.array([[2.0]]),
    "one zero": np.array([[0.0]]),
    "regular": np.array([[3.0, 0.4, -0.2], [0.1, 2.0, 0.3], [0.5, -0.6, 1.0]]),
    "batch": np.stack([np.eye(3), np.diag([1.0, 2.0, 3.0]), np.diag([1.0, 1.0, 4.0])]),
    "empty": np.zeros((0, 0)),
}
RECTANGULAR: dict[str, np.ndarray] = {
    "tall identity": np.eye(3, 2),
    "wide identity": np.eye(2, 3),
    "tall ones": np.ones((3, 2)),
    "wide zeros": np.zeros((2, 3)),
    "tall": np.array([[1.0, 0.3], [0.2, 2.0], [-0.4, 0.6]]),
    "wide": np.array([[1.0, 0.3, 0.1], [0.2, 2.0, -0.7]]),
}
ALL = {**SQUARE, **RECTANGULAR}
# Where the two differ and neither is asked for: a pattern of the test's id, and why.
EXCUSED = {
    r"-(slogdet( sign)?|logdet|lu( L)?|lu_factor|inv_ex|solve_ex|qr Q)-singular": "rounding decides a pivot of about 0",
    r"-qr [QR]-(tall )?ones": "the second column of Q is any unit vector",
    r"-(svd values|svd full values|svdvals|norm nuc|norm -2)-(tall )?ones": "at 0 a singular value has a kink",
    r"-norm -?2-(rotation|two equal, turned)": "rounding decides which of equal values is the extreme one",
    r"tangents-det-(singular|one zero)": "torch has 0; the adjugate's trace is right: d/dx det [[x]] = 1",
    r"inverse-tangents": "torch's tangents disagree with differences of its own values (opinfo's rules)",
    r"tangents-maximum-\[.*nan": "torch divides the tangents of NaN by which operand it took",
}
# Where Mica is still the one that lacks a number.
LEFT = {
    r"tangents-slogdet sign-(zeros|ones|two zeros|one zero)-float": "the sign of a real matrix has tangent 0",
}


def judge(request: Any) -> None:
    """Skips an excused test, and expects one that is left to fail."""
    name = request.node.callspec.id
    for pattern, reason in EXCUSED.items():
        if re.search(pattern, "-" + name):
            pytest.skip(reason)
    for pattern, reason in LEFT.items():
        if re.search(pattern, "-" + name):
            request.applymarker(pytest.mark.xfail(reason=reason, strict=True))


LARGE = 1e8  # beyond, rounding stands in for what is infinite


def symmetric(x: Any) -> Any:
    return (x + x.mH) / 2


def values(lib: Any, x: Any) -> Any:
    """A loss that is symmetric in the values."""
    return [(x * x + x).sum()]


def vectors(lib: Any, x: Any) -> Any:
    """A loss that no sign or phase of a vector moves."""
    return [((x * x.conj()).real * lib.arange(x.numel()).reshape(x.shape).cos()).sum()]


# What an expression gives is a list of losses, each of one result alone.
Expression = Callable[[Any, Any], list[Any]]
ON_SQUARE: dict[str, Expression] = {
    "eigh values": lambda lib, x: values(lib, lib.linalg.eigh(symmetric(x))[0]),
    "eigh U values": lambda lib, x: values(lib, lib.linalg.eigh(symmetric(x), UPLO="U")[0]),
    "eigh vectors": lambda lib, x: vectors(lib, lib.linalg.eigh(symmetric(x))[1]),
    "eigvalsh": lambda lib, x: values(lib, lib.linalg.eigvalsh(symmetric(x))),
    "eig values": lambda lib, x: values(lib, lib.linalg.eig(x)[0]),
    "eig vectors": lambda lib, x: vectors(lib, lib.linalg.eig(x)[1]),
    "eigvals": lambda lib, x: values(lib, lib.linalg.eigvals(x)),
    "eig of symmetric": lambda lib, x: values(lib, lib.linalg.eig(symmetric(x))[0]),
    "slogdet": lambda lib, x: [lib.linalg.slogdet(x)[1].sum()],
    "slogdet sign": lambda lib, x: [lib.linalg.slogdet(x)[0].sum()],
    "logdet": lambda lib, x: [lib.logdet(x).sum()],
    "det": lambda lib, x: [lib.linalg.det(x).sum()],
    "det squared": lambda lib, x: [(lib.linalg.det(x) ** 2).sum()],
    "lu": lambda lib, x: [lib.linalg.lu(x)[2].sum()],
    "lu L": lambda lib, x: [lib.linalg.lu(x)[1].sum()],
    "lu_factor": lambda lib, x: [lib.linalg.lu_factor(x)[0].sum()],
    "inv_ex": lambda lib, x: [lib.linalg.inv_ex(x)[0].sum()],
    "solve_ex": lambda lib, x: [lib.linalg.solve_ex(x, x + 1)[0].sum()],
    "matrix_exp": lambda lib, x: [lib.linalg.matrix_exp(x).sum()],
    "matrix_power": lambda lib, x: [lib.linalg.matrix_power(x, 3).sum()],
    "matrix_power 0": lambda lib, x: [(lib.linalg.matrix_power(x, 0) * x).sum()],
    "pinv hermitian": lambda lib, x: [lib.linalg.pinv(symmetric(x), hermitian=True).sum()],
    "cond 1": lambda lib, x: [lib.linalg.cond(x, 1).sum()],
    "cond fro": lambda lib, x: [lib.linalg.cond(x, "fro").sum()],
}
ON_ALL: dict[str, Expression] = {
    "svd values": lambda lib, x: values(lib, lib.linalg.svd(x, full_matrices=False)[1]),
    "svd full values": lambda lib, x: values(lib, lib.linalg.svd(x)[1]),
    "svd U": lambda lib, x: vectors(lib, lib.linalg.svd(x, full_matrices=False)[0]),
    "svd Vh": lambda lib, x: vectors(lib, lib.linalg.svd(x, full_matrices=False)[2]),
    "svdvals": lambda lib, x: values(lib, lib.linalg.svdvals(x)),
    "qr Q": lambda lib, x: [lib.linalg.qr(x)[0].sum()],
    "qr R": lambda lib, x: [lib.linalg.qr(x)[1].sum()],
    "norm nuc": lambda lib, x: [lib.linalg.matrix_norm(x, "nuc").sum()],
    "norm 2": lambda lib, x: [lib.linalg.matrix_norm(x, 2).sum()],
    "norm -2": lambda lib, x: [lib.linalg.matrix_norm(x, -2).sum()],
    "rank": lambda lib, x: [(x * lib.linalg.matrix_rank(x)[..., None, None]).sum()],
    "norm fro": lambda lib, x: [lib.linalg.matrix_norm(x, "fro").sum()],
    "norm 1": lambda lib, x: [lib.linalg.matrix_norm(x, 1).sum()],
    "norm inf": lambda lib, x: [lib.linalg.matrix_norm(x, float("inf")).sum()],
    "norm -1": lambda lib, x: [lib.linalg.matrix_norm(x, -1).sum()],
    "pinv": lambda lib, x: [lib.linalg.pinv(x).sum()],
    "vector_norm 2": lambda lib, x: [lib.linalg.vector_norm(x).sum()],
    "vector_norm 3": lambda lib, x: [lib.linalg.vector_norm(x, 3.0).sum()],
    "vector_norm 0.5": lambda lib, x: [lib.linalg.vector_norm(x, 0.5).sum()],
    "vector_norm inf": lambda lib, x: [lib.linalg.vector_norm(x, float("inf"), dim=-1).sum()],
    "var_mean var": lambda lib, x: [lib.var_mean(x, dim=-1)[0].sum()],
    "var_mean mean": lambda lib, x: [lib.var_mean(x, dim=-1)[1].sum()],
    "std_mean std": lambda lib, x: [lib.std_mean(x, dim=-1)[0].sum()],
    "std_mean mean": lambda lib, x: [lib.std_mean(x, dim=-1)[1].sum()],
    "var of one": lambda lib, x: [lib.var_mean(x[..., :1], dim=-1)[1].sum()],
    "prod": lambda lib, x: [lib.prod(x, -1).sum()],
    "cumprod": lambda lib, x: [lib.cumprod(x, -1).sum()],
}
REAL = {"logdet"}  # for real matrices alone
# Inputs whose values lie apart. Vectors of equal values are any basis, and second gradients of the values
# divide by the gaps between them: of the other inputs, rounding decides what both libraries give.
APART = {"one", "regular", "tall", "wide", "empty"}
BASES = {"vectors", "U", "Vh"}


def real_part(loss: Any) -> Any:
    """One real number of a loss, both of its parts."""
    return loss.real + loss.imag * 0.5 if loss.is_complex() else loss


def tensor(lib: Any, array: np.ndarray, dtype: str) -> Any:
    return lib.tensor(array.tolist(), dtype=getattr(lib, dtype)).reshape(array.shape)


def along(lib: Any, x: Any) -> Any:
    """A direction, other in every element."""
    return (lib.arange(x.numel(), dtype=lib.float64) * 0.7 + 0.4).cos().reshape(x.shape).to(x.dtype)


def first_and_second(lib: Any, f: Expression, x: Any) -> Iterator[tuple[str, Any]]:
    x = x.clone().requires_grad_()
    for k, loss in enumerate(f(lib, x)):
        yield f"loss {k}", loss.detach()
        if not loss.requires_grad:
            continue
        (g,) = lib.autograd.grad(real_part(loss), x, create_graph=True, allow_unused=True)
        if g is None:
            continue
        yield f"gradient of loss {k}", g.detach()
        if g.requires_grad:
            (h,) = lib.autograd.grad(real_part((g * along(lib, x)).sum()), x, allow_unused=True)
            if h is not None:
                yield f"second gradient of loss {k}", h.detach()


def tangents(lib: Any, f: Expression, x: Any) -> Iterator[tuple[str, Any]]:
    losses, found = lib.func.jvp(lambda t: tuple(f(lib, t)), (x,), (along(lib, x),))
    for k, t in enumerate(found):
        yield f"tangent of loss {k}", t


def gathered(steps: Iterator[tuple[str, Any]]) -> tuple[dict[str, np.ndarray], Exception | None]:
    found: dict[str, np.ndarray] = {}
    try:
        for name, t in steps:
            found[name] = t.detach().resolve_conj().numpy()
    except (RuntimeError, NotImplementedError, ValueError, IndexError) as error:
        return found, error
    return found, None


def differences(f: Expression, array: np.ndarray, dtype: str, steps: Any) -> list[str]:
    """What Mica has otherwise where torch has a finite number, or lacks."""
    theirs, _ = gathered(steps(torch, f, tensor(torch, array, dtype)))
    ours, error = gathered(steps(mica, f, tensor(mica, array, dtype)))
    wrong = []
    for name, wanted in theirs.items():
        usable = np.abs(wanted) < LARGE
        if not usable.any() and wanted.size:
            continue
        if name not in ours:
            if error is None and not wanted.any():
                continue  # a gradient that is constant has none itself
            wrong.append(f"{name}: {type(error).__name__} {str(error).splitlines()[:1]}")
            continue
        got = ours[name]
        if got.shape != wanted.shape or got.dtype != wanted.dtype:
            wrong.append(f"{name}: {got.dtype}{got.shape} for {wanted.dtype}{wanted.shape}")
        elif not np.allclose(got[usable], wanted[usable], **TOLERANCE[dtype]):
            wrong.append(f"{name}: {got[usable].tolist()} for {wanted[usable].tolist()}")
    return wrong


LINALG = [
    *itertools.product(ON_SQUARE.items(), SQUARE.items(), DTYPES),
    *itertools.product(ON_ALL.items(), ALL.items(), DTYPES),
]
LINALG = [
    (e, i, d)
    for e, i, d in LINALG
    if (d != "complex128" or e[0] not in REAL) and (i[0] in APART or e[0].split()[-1] not in BASES)
]


@pytest.mark.parametrize(
    ("f", "array", "dtype", "apart"),
    [pytest.param(e[1], i[1], d, i[0] in APART, id=f"{e[0]}-{i[0]}-{d}") for e, i, d in LINALG],
)
@pytest.mark.parametrize("steps", [first_and_second, tangents])
def test_linear_algebra(
    f: Expression, array: np.ndarray, dtype: str, apart: bool, steps: Any, request: Any
) -> None:
    judge(request)
    found = differences(f, array, dtype, steps)
    assert not [d for d in found if apart or not d.startswith("second")]


# ---- elements: (name, expression, inputs); inputs of real numbers are made complex for complex dtypes
INF, NAN = float("inf"), float("nan")
SMALL = [1e-4, 0.1, 0.3, -0.4, 1.0, 2.5]
ZEROS = [0.0, -0.0, 1.0, -1.0, 2.0]
TIES = [
    [2.0, 2.0, 2.0, 1.0, 3.0],
    [1.0, 1.0, 2.0, 2.0],
    [3.0, 1.0, 1.0, 1.0, 0.0],
    [1.0, 2.0, 2.0, 3.0, 3.0],
    [5.0] * 7,
    [NAN, 1.0, 1.0, NAN],
    [NAN, NAN],
    [1.0, NAN, 2.0, 2.0, 2.0],
]
SEGMENTS = [
    [1.0, NAN, 3.0, 2.0, 2.0, NAN, 5.0, 5.0, 1.0],
    [2.0, 2.0, 2.0, 1.0, 1.0, 3.0, 3.0, 3.0, 3.0],
    [0.0, 1.0, 2.0, 0.0, 0.0, 3.0, 1.0, 2.0, 3.0],
    [0.0, NAN, 1.0, 0.0, 0.0, NAN, NAN, NAN, 2.0],
    [INF, 1.0, -INF, INF, INF, 2.0, -INF, -INF, 1.0],
]
KINKS = [-3.0, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 3.0, 6.0]
ACTIVATIONS = [
    "relu",
    "relu6",
    "leaky_relu",
    "elu",
    "selu",
    "celu",
    "hardtanh",
    "hardswish",
    "hardsigmoid",
    "hardshrink",
    "softshrink",
    "softsign",
]
EXPONENTS: list[Any] = [0, 1, 2, 3, 0.0, 1.0, 2.0, 0.5, 1.5, -1]


def power(e: Any) -> list[tuple[str, Expression]]:
    return [
        (f"x ** {e}", lambda lib, x: [(x**e).sum()]),
        (f"x ** tensor({e})", lambda lib, x: [(x ** lib.tensor(e)).sum()]),
        (f"x ** full({e})", lambda lib, x: [(x ** lib.full_like(x, e)).sum()]),
        (f"float_power {e}", lambda lib, x: [lib.float_power(x, e).sum()]),
    ]


def segments(kind: str, initial: float | None) -> tuple[str, Expression]:
    start = {} if initial is None else {"initial": initial}

    def f(lib: Any, x: Any) -> list[Any]:
        y = lib.segment_reduce(x, kind, lengths=lib.tensor([3, 3, 0, 3]), **start)
        # An empty segment's extremum is infinite, and 0 times that is NaN.
        return [(y[k] * (k + 1)).sum() for k in (0, 1, 3)]

    return f"segment_reduce {kind} {initial}", f


def shares_cross_entropy(lib: Any, x: Any) -> list[Any]:
    """Of shares that are 0 or 1, which a sigmoid rounds to, with targets that agree and do not."""
    f = lib.nn.functional.binary_cross_entropy
    return [f(x, lib.full_like(x, y), reduction="sum") for y in (0.0, 0.25, 1.0)]


ELEMENTS: list[tuple[str, Expression, list[list[float]], list[str]]] = [
    ("sinc", lambda lib, x: [lib.sinc(x).sum()], [[v] for v in SMALL], ["float64", "complex128"]),
    *((n, f, [[v] for v in ZEROS], DTYPES) for e in EXPONENTS for n, f in power(e)),
    ("0 ** x", lambda lib, x: [(0**x).sum()], [[v] for v in ZEROS], ["float64"]),
    ("zeros ** x", lambda lib, x: [(lib.zeros_like(x) ** x).sum()], [[v] for v in ZEROS], ["float64"]),
    ("xlogy", lambda lib, x: [lib.xlogy(x, x + 1).sum()], [ZEROS], ["float64"]),
    (
        "xlog1py of bytes",
        lambda lib, x: [lib.special.xlog1py(x, lib.tensor(1, dtype=lib.uint8)).sum()],
        [ZEROS],
        ["float32", "float64"],
    ),
    ("hypot", lambda lib, x: [lib.hypot(x, x * 2).sum()], [ZEROS], ["float64"]),
    ("atan2", lambda lib, x: [lib.atan2(x, x * 2).sum()], [[v] for v in ZEROS], ["float64"]),
    ("abs", lambda lib, x: [lib.abs(x).sum()], [ZEROS], DTYPES),
    ("sgn", lambda lib, x: [lib.sgn(x).sum()], [ZEROS], DTYPES),
    ("median", lambda lib, x: [lib.median(x)], TIES, ["float64", "float32"]),
    ("nanmedian", lambda lib, x: [lib.nanmedian(x)], TIES, ["float64", "float32"]),
    ("median dim", lambda lib, x: [lib.median(x, 0)[0]], TIES, ["float64"]),
    ("nanmedian dim", lambda lib, x: [lib.nanmedian(x, 0)[0]], TIES, ["float64"]),
    ("max", lambda lib, x: [lib.max(x)], TIES, ["float64"]),
    ("min", lambda lib, x: [lib.min(x)], TIES, ["float64"]),
    ("amax", lambda lib, x: [lib.amax(x)], TIES, ["float64"]),
    ("quantile", lambda lib, x: [lib.quantile(x, 0.5)], TIES, ["float64"]),
    ("maximum", lambda lib, x: [lib.maximum(x, x.flip(0)).sum()], TIES, ["float64"]),
    ("fmin", lambda lib, x: [lib.fmin(x, x.flip(0)).sum()], TIES, ["float64"]),
    *(
        (n, lambda lib, x, n=n: [getattr(lib.nn.functional, n)(x).sum()], [KINKS], ["float64"])
        for n in ACTIVATIONS
    ),
    ("softplus", lambda lib, x: [lib.nn.functional.softplus(x, 2, 6).sum()], [KINKS], ["float64"]),
    ("smooth_l1", lambda lib, x: [lib.nn.functional.smooth_l1_loss(x, x * 0)], [KINKS], ["float64"]),
    ("huber", lambda lib, x: [lib.nn.functional.huber_loss(x * 0, x, delta=0.5)], [KINKS], ["float64"]),
    (
        "binary_cross_entropy",
        shares_cross_entropy,
        [[0.0, 0.25, 1.0], [1.0, 0.0], [0.5]],
        ["float64", "float32"],
    ),
    *(
        (n, lambda lib, x, f=f: [f(lib, x).sum()], [[2.0, 2.0], [2.0, 2.0, 2.0], [1.0, 2.0, 2.0]], DTYPES)
        for n, f in {
            "std": lambda lib, x: lib.std(x),
            "std of each": lambda lib, x: lib.std(lib.stack([x, x * 2]), 1),
            "std_mean": lambda lib, x: lib.std_mean(x, 0)[0],
        }.items()
    ),
    ("logsumexp", lambda lib, x: [lib.logsumexp(x, 0)], [*TIES, [-INF, -INF], [INF, 1.0]], ["float64"]),
    *(
        (*segments(kind, initial), SEGMENTS, ["float64"])
        for kind in ("sum", "mean", "max", "min", "prod")
        for initial in (None, 2.5, 5.0)
    ),
]


def elementwise(found: Any) -> Iterator[Any]:
    for name, f, inputs, dtypes in found:
        for values_, dtype in itertools.product(inputs, dtypes):
            yield pytest.param(f, np.array(values_), dtype, id=f"{name}-{values_}-{dtype}")


@pytest.mark.parametrize(("f", "array", "dtype"), elementwise(ELEMENTS))
@pytest.mark.parametrize("steps", [first_and_second, tangents])
def test_elements(f: Expression, array: np.ndarray, dtype: str, steps: Any, request: Any) -> None:
    judge(request)
    assert not differences(f, array, dtype, steps)


@pytest.mark.parametrize("library", [torch, mica])
def test_gradient_of_a_small_half_distance(library: Any) -> None:
    """One over the distance is infinite in float16; the direction that it is multiplied by is not."""
    x = library.full((3,), 1e-6, dtype=library.float16, requires_grad=True)
    (gradient,) = library.autograd.grad(library.linalg.vector_norm(x), x)
    assert gradient.tolist() == pytest.approx([3**-0.5] * 3, rel=0.05)


@pytest.mark.parametrize("library", [torch, mica])
def test_gradient_of_rsqrt_overflows_only_where_it_is_too_large(library: Any) -> None:
    x = library.tensor([0.00427], dtype=library.float16, requires_grad=True)
    (gradient,) = library.autograd.grad((library.rsqrt(x) ** 2).sum(), x)
    assert gradient.item() == pytest.approx(-1 / x.item() ** 2, rel=5e-3)


# ---- what torch gets wrong, or leaves open: by what it is
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize(
    "x", [0.0, 1e-300, 1e-160, 1e-30, -1e-30, 1e-12, 1e-6, 1e-3, 0.1, 0.31, 0.32, 0.33, 1.7]
)
def test_sinc_near_zero(x: float, dtype: str) -> None:
    """The first and the second derivative of sinc, which cancel in their closed forms."""
    mpmath.mp.dps = 60
    at = mica.tensor([x], dtype=getattr(mica, dtype), requires_grad=True)
    (g,) = mica.autograd.grad(real_part(mica.sinc(at).sum()), at, create_graph=True)
    (h,) = mica.autograd.grad(g.real.sum() if g.is_complex() else g.sum(), at)
    factor = 1 - 0.5j if dtype == "complex128" else 1
    series = [mpmath.diff(lambda t: mpmath.sincpi(t), mpmath.mpf(x), n) for n in (1, 2)]
    if abs(x) < 1e-5:  # where mpmath's differences fail
        t = mpmath.mpf(x)
        series = [
            -(mpmath.pi**2) * t / 3 + mpmath.pi**4 * t**3 / 30,
            -(mpmath.pi**2) / 3 + mpmath.pi**4 * t**2 / 10,
        ]
    assert g.item() == pytest.approx(complex(float(series[0])) * np.conj(factor), rel=1e-12, abs=1e-300)
    assert complex(h.item()).real == pytest.approx(float(series[1]), rel=1e-12)


COMPLEX = [complex(a, b) for a, b in itertools.product([0.0, 1.0, -2.0, INF, -INF], repeat=2)]


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("count", [1, 7, 300])  # one number, a vector's tail, blocks
def test_division_by_infinities(dtype: str, count: int) -> None:
    """What is finite over what is infinite is 0, by C99's annex G, and for torch where it has a number."""
    for z in COMPLEX:
        d = mica.full((count,), z, dtype=getattr(mica, dtype))
        one = mica.full((count,), 1 + 2j, dtype=d.dtype)
        theirs = torch.full((count,), z, dtype=getattr(torch, dtype))
        for ours, wanted in [
            (1 / d, 1 / theirs),
            (d.reciprocal(), theirs.reciprocal()),
            (one / d, (1 + 2j) / theirs),
            (one / z if z else one, (1 + 2j) / theirs if z else theirs * 0 + (1 + 2j)),
            (d / one, theirs / (1 + 2j)),
        ]:
            got, expected = ours.numpy(), wanted.numpy()
            finite = np.isfinite(expected)
            np.testing.assert_allclose(got[finite], expected[finite], rtol=1e-6)
        if np.isinf(z):
            assert not (1 / d).numpy().any() and not (one / d).numpy().any(), z


def test_complex_powers_of_zero() -> None:
    """0 to the 0 is 1 and 0 to a positive power 0, whichever overload, as for real numbers."""
    zero = mica.zeros(3, dtype=mica.complex128)
    for e, wanted in [(0, 1), (0j, 1), (1, 0), (2, 0), (0.5, 0), (1 + 1j, 0)]:
        for got in (
            zero**e,
            zero ** mica.full((3,), e, dtype=zero.dtype),
            mica.pow(0j, mica.full((3,), e, dtype=zero.dtype)),
        ):
            assert (got == wanted).all(), (e, got)


@pytest.mark.parametrize("exponent", range(19))
def test_airy_far_left(exponent: int) -> None:
    """Within 16 units of the amplitude, and what a pair of float64 loses of the phase, 2^-105 of it."""
    mpmath.mp.dps = 80
    for x in (-3.7 * 10.0**exponent, -1.0 * 10.0**exponent):
        got = mica.special.airy_ai(mica.tensor([x], dtype=mica.float64)).item()
        amplitude = abs(x) ** -0.25 / np.sqrt(np.pi)
        lost = 2 / 3 * abs(x) ** 1.5 * 2.0**-105
        difference = abs(got - float(mpmath.airyai(mpmath.mpf(x))))
        assert difference <= (16 * 2.0**-53 + lost) * amplitude, (x, got)


@pytest.mark.parametrize("x", [-1e19, -1e25, -1e50, -1e100, -1e200])
def test_airy_beyond_phases(x: float) -> None:
    assert abs(mica.special.airy_ai(mica.tensor([x], dtype=mica.float64)).item()) <= 1.01 * abs(x) ** -0.25


# ---- linear solvers: the whole factor has a gradient, also what no solver reads
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("steps", [first_and_second, tangents])
@pytest.mark.parametrize(
    "kind", ["solve L", "solve B", "solve broadcast", "inverse", "lu_solve", "householder"]
)
def test_factors(kind: str, upper: bool, dtype: str, steps: Any, request: Any) -> None:
    judge(request)
    array = np.array([[2.0, 0.7, -0.3], [0.4, 1.5, 0.2], [-0.6, 0.1, 1.0]])

    def f(lib: Any, x: Any) -> list[Any]:
        b = lib.ones(3, 2, dtype=x.dtype).cumsum(0)
        if kind == "solve L":
            return [(lib.cholesky_solve(b, x, upper=upper) ** 2).sum()]
        if kind == "solve B":
            return [(lib.cholesky_solve(x, lib.eye(3, dtype=x.dtype) * 2 + 0.3, upper=upper) ** 2).sum()]
        if kind == "solve broadcast":
            return [(lib.cholesky_solve(lib.stack([b, b * 2]), x, upper=upper) ** 2).sum()]
        if kind == "inverse":
            return [(lib.cholesky_inverse(x, upper=upper) ** 2).sum()]
        if kind == "lu_solve":
            pivots = lib.tensor([1, 2, 3], dtype=lib.int32)
            return [(lib.linalg.lu_solve(x, pivots, b, adjoint=upper) ** 2).sum()]
        return [lib.linalg.householder_product(x, x[0]).sum()]

    assert not differences(f, array, dtype, steps)
