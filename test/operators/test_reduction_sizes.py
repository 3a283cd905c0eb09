"""Reductions at the sizes at which their kernels change their way, over memory that is poisoned.

Shapes are drawn around blocks, cascades of blocks, narrow panels and shares of threads, with any of
their dimensions reduced, in any order in memory; NumPy's long doubles are the reference. The gradients of
biases are sums over all dimensions but one, which convolutions and norms compute in their own way.
`MICA_POISON_MEMORY=255 python test/operators/test_reduction_sizes.py 5000` runs as many shapes and counts.
"""

import collections
import os
import random
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import mica

sys.path.append(str(Path(__file__).resolve().parents[1] / "opinfo"))
from constants import defined, read, sizes  # noqa: E402

# Those of the kernels' constants, and what cascades of blocks and shares of threads make of them.
LENGTHS = [1, *(n for n in sizes() if n <= 2049)]
LONG = [1023 * 32, 1024 * 32 + 1, 1024 * 33, 65537, 262145]
MOST = 1 << 20


def _absolute(x, axis, keepdims=False):
    return np.abs(x).sum(axis=axis, keepdims=keepdims)


def _one_var(x, axis):
    return np.var(x, axis=axis, ddof=1)


# name, what NumPy computes of float64, and what the error may be a multiple of.
REDUCTIONS = {
    "sum": (lambda x, dim: x.sum(dim), lambda x, axis: x.sum(axis=axis), _absolute),
    "mean": (
        lambda x, dim: x.mean(dim),
        lambda x, axis: x.mean(axis=axis),
        lambda x, axis: np.abs(x).mean(axis=axis),
    ),
    "nansum": (lambda x, dim: x.nansum(dim), lambda x, axis: np.nansum(x, axis=axis), _absolute),
    "norm": (
        lambda x, dim: mica.linalg.vector_norm(x, dim=dim),
        lambda x, axis: np.sqrt((np.abs(x) ** 2).sum(axis=axis)),
        lambda x, axis: np.sqrt((np.abs(x) ** 2).sum(axis=axis)),
    ),
    "norm1": (lambda x, dim: mica.linalg.vector_norm(x, 1, dim=dim), _absolute, _absolute),
    "var": (
        lambda x, dim: x.var(dim),
        _one_var,
        lambda x, axis: 4 * (np.abs(x) ** 2).mean(axis=axis),
    ),  # Welford
    "logsumexp": (
        lambda x, dim: x.logsumexp(dim),
        lambda x, axis: np.log(np.exp(x).sum(axis=axis)),
        lambda x, axis: 1 + np.abs(x).max(axis=axis),
    ),
    "amax": (
        lambda x, dim: x.amax(dim),
        lambda x, axis: x.max(axis=axis),
        lambda x, axis: 0 * x.max(axis=axis),
    ),
    "sum of products": (
        lambda x, dim: mica.linalg.vecdot(x, x, dim=dim[0]),
        lambda x, axis: (x.conj() * x).sum(axis=axis[0]),
        lambda x, axis: (np.abs(x) ** 2).sum(axis=axis[0]),
    ),
}
DTYPES = ["float32", "float64", "bfloat16", "complex64"]
ONLY_REAL = {"logsumexp", "amax", "nansum"}

# name, an operator that adds a bias, the dimensions of its result, and that of the bias. Convolutions and
# products have one input channel, so that the bias' gradient is most of their work.
F = mica.nn.functional
BIASES = {
    "bias of conv1d": (lambda x, w, b: F.conv1d(x[:, :1], w, b), 3, 1),
    "bias of conv2d": (lambda x, w, b: F.conv2d(x[:, :1], w, b), 4, 1),
    "bias of conv3d": (lambda x, w, b: F.conv3d(x[:, :1], w, b), 5, 1),
    "bias of conv_transpose2d": (
        lambda x, w, b: F.conv_transpose2d(x[:, :1], w.transpose(0, 1), b),
        4,
        1,
    ),
    "bias of linear": (lambda x, w, b: F.linear(x[:, :1], w.flatten(1), b), 2, 1),
    "bias of layer_norm": (lambda x, w, b: F.layer_norm(x, b.shape, w.flatten(), b), 3, 2),
    "bias of group_norm": (lambda x, w, b: F.group_norm(x, 1, w.flatten(), b), 4, 1),
    "bias of batch_norm": (
        lambda x, w, b: F.batch_norm(x, None, None, w.flatten(), b, training=True),
        4,
        1,
    ),
}


def _shape(choice: random.Random, rank: int = 0) -> list[int]:
    shape: list[int] = []
    left = MOST
    for _ in range(rank or choice.choice((1, 2, 3, 4, 4))):
        fitting = [n for n in LENGTHS + LONG if n <= left]
        shape.append(choice.choice(fitting))
        left //= shape[-1]
    choice.shuffle(shape)
    return shape


def _values(shape: list[int], dtype: str, choice: random.Random) -> np.ndarray:
    # Of one sign, so that what is added twice or left out shows; and of both.
    values = np.random.default_rng(choice.randrange(1 << 30))
    x = values.random(shape) + (0.5 if choice.random() < 0.5 else -0.5)
    return x + 1j * values.random(shape) if dtype == "complex64" else x


def _laid(x: "mica.Tensor", choice: random.Random) -> "mica.Tensor":
    """The same elements in another order of dimensions in memory, in every second column, or expanded."""
    order = list(range(x.ndim))
    choice.shuffle(order)
    x = x.permute(order).contiguous().permute([order.index(d) for d in range(x.ndim)])
    if choice.random() < 0.2 and x.numel() <= MOST // 2:
        wide = mica.empty([*x.shape[:-1], 2 * x.shape[-1]], dtype=x.dtype)
        wide[..., ::2] = x
        x = wide[..., ::2]
    return x[:1].expand(x.shape) if choice.random() < 0.1 else x


def _wide(x: "mica.Tensor") -> np.ndarray:
    """Wider than float64: NumPy adds columns one after the other, and loses more than Mica."""
    is_complex = x.dtype == mica.complex64
    return (
        x.to(mica.complex128 if is_complex else mica.float64)
        .numpy()
        .astype(np.clongdouble if is_complex else np.longdouble)
    )


def _check_bias(number: int, name: str, choice: random.Random) -> str:
    """The gradient of a bias against the sum of the result's gradient over all other dimensions."""
    call, rank, at = BIASES[name]
    dtype = getattr(mica, choice.choice(DTYPES[:3]))
    shape = _shape(choice, rank)
    across = shape[at]
    if np.prod(shape) == across:
        return ""
    mica.set_num_threads(choice.choice((1, 2)))
    x = _laid(mica.rand(shape).to(dtype), choice)
    weight = mica.ones(across, 1, *[1] * (rank - 2), dtype=dtype)
    bias = mica.zeros(across, dtype=dtype, requires_grad=True)
    cotangent = _laid(mica.tensor(_values(shape, "float64", choice)).to(dtype), choice)
    call(x, weight, bias).backward(cotangent)
    wide = _wide(cotangent)
    axes = tuple(d for d in range(rank) if d != at)
    return _wrong(
        f"case {number}: {name} of {dtype} {shape}", bias.grad, wide.sum(axis=axes), _absolute(wide, axes)
    )


def _wrong(what: str, got: "mica.Tensor", expected: np.ndarray, allowed: np.ndarray) -> str:
    eps = float(mica.finfo(got.dtype).eps)
    off = np.abs(got.to(mica.complex128 if got.is_complex() else mica.float64).numpy() - expected)
    # Sums of 2^20 in a cascade lose a few units; half types are rounded once, at the end.
    if not (off <= 24 * eps * allowed + 2 * eps * np.abs(expected)).all():
        return f"{what} is off by {np.nanmax(off)}"
    return ""


def _name(number: int) -> str:
    return random.Random(number).choice([*REDUCTIONS, *BIASES])


def _check(number: int) -> str:
    """What is wrong with the case of this number, or nothing."""
    choice, name = random.Random(f"case {number}"), _name(number)
    if name in BIASES:
        return _check_bias(number, name, choice)
    return _check_reduction(number, name, _shape(choice), choice)


def _check_reduction(number: int, name: str, shape: list[int], choice: random.Random) -> str:
    dtype = choice.choice(DTYPES[:3] if name in ONLY_REAL else DTYPES)
    call, reference, scale = REDUCTIONS[name]
    dims = sorted(choice.sample(range(len(shape)), choice.randint(1, len(shape))))
    x = _laid(mica.tensor(_values(shape, dtype, choice)).to(getattr(mica, dtype)), choice)
    wide = _wide(x)
    axes = tuple(dims)
    if name == "var" and np.prod([shape[d] for d in dims]) < 2:
        return ""
    mica.set_num_threads(choice.choice((1, 2)))
    got = call(x, dims)
    expected, allowed = reference(wide, axes), scale(wide, axes)
    return _wrong(
        f"case {number}: {name} of {dtype} {shape} {x.stride()} over {dims}", got, expected, allowed
    )


@pytest.fixture(autouse=True)
def _threads():
    before = mica.get_num_threads()
    yield
    mica.set_num_threads(before)


def test_sizes_are_those_of_the_sources():
    text = "constexpr int64_t kBlock = 1024, kGrain = int64_t{1} << 15;\nstatic constexpr int kRows = 7 * 8;"
    assert defined(text) == {"kBlock": (1024,), "kGrain": (32768,), "kRows": (56,)}
    text = "constexpr int64_t kRows = 64;  // not 63\nconstexpr int kWide = kRows * 3, kBytes = (1 << 20) / sizeof(T);"
    assert defined(text)["kWide"] == (192,) and (1 << 18) in defined(text)["kBytes"]
    assert read("const int64_t grain = Max(64, 32768 / rows);") == {64, 32768}
    assert read("ParallelFor(rows, 2048 / to, 1, threads, [&](int64_t begin) { x[4096]; });") == {2048}
    assert {31, 32, 33, 511, 1023, 1024, 1025, 32769} <= set(sizes())  # kCascade, kWidth, kBlock, kGrain


def test_memory_is_poisoned():
    assert os.environ["MICA_POISON_MEMORY"] == "255"
    for size in (4, 1 << 12, 1 << 16, 1 << 22):
        assert mica.empty(size).isnan().all()


@pytest.mark.parametrize("first", range(0, 500, 100))
def test_reductions_around_every_size(first):
    assert not [wrong for wrong in map(_check, range(first, first + 100)) if wrong]


# Few rows of few elements are brought together where they lie apart: rows and elements around the most.
FEW = [1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65]


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_of_few_elements(name):
    choice = random.Random(f"few {name}")
    shapes = [[a, b] for a in FEW for b in FEW] + [[2, a, b] for a in FEW[:9] for b in FEW[:9]]
    wrong = [_check_reduction(i, name, shape, choice) for i, shape in enumerate(shapes)]
    assert not [w for w in wrong if w]


@pytest.mark.slow
@pytest.mark.parametrize("first", range(500, 2000, 500))
def test_reductions_around_every_size_at_length(first):
    assert not [wrong for wrong in map(_check, range(first, first + 500)) if wrong]


@pytest.mark.parametrize("shape", [(64, 8, 24, 24), (3, 5, 127, 129), (33, 2, 31, 33), (2, 1, 513, 65)])
@pytest.mark.parametrize("threads", [1, 2])
def test_bias_gradients_count_every_element(shape, threads):
    mica.set_num_threads(threads)
    n, c, h, w = shape
    x = mica.rand(n, 4, h, w)
    weight, bias = mica.rand(c, 4, 1, 1), mica.zeros(c, requires_grad=True)
    mica.nn.functional.conv2d(x, weight, bias).sum().backward()
    assert bias.grad.tolist() == [float(n * h * w)] * c


def _columns(x):
    return x.sum(0), x.numpy().astype(np.longdouble).sum(0)


def _products(x):
    return mica.linalg.vecdot(x, x, dim=0), (x.numpy().astype(np.longdouble) ** 2).sum(0)


def _bias_of_batch_norm(x):
    bias = mica.zeros(x.shape[1], dtype=x.dtype, requires_grad=True)
    images = x.unsqueeze(2).expand(-1, -1, 7) if x.shape[1] == 21 else x
    mica.nn.functional.batch_norm(mica.rand_like(images), None, None, bias=bias, training=True).backward(
        images
    )
    return bias.grad, images.numpy().astype(np.longdouble).sum((0, 2) if images.ndim == 3 else 0)


@pytest.mark.parametrize("columns", [16, 21, 256])
@pytest.mark.parametrize("rows", [32736, 65537])
@pytest.mark.parametrize("call", [_columns, _products, _bias_of_batch_norm])
def test_equal_doubles_add_up(call, rows, columns):
    # Rounding errors of equal addends have one sign: a sum that does not cascade loses digits as rows are added.
    x = mica.full((rows, columns), 1 / 3, dtype=mica.float64)
    got, expected = call(x)
    assert np.abs(got.numpy() / expected - 1).max() <= 8 * mica.finfo(mica.float64).eps


def main(count: int) -> int:
    """Runs the first `count` cases, and prints what is wrong and how many are."""
    assert os.environ.get("MICA_POISON_MEMORY") == "255", "The memory is not poisoned."
    start = time.monotonic()
    wrong = [text for text in map(_check, range(count)) if text]
    print(
        "\n".join(
            wrong + [f"{name}: {n}" for name, n in collections.Counter(map(_name, range(count))).items()]
        )
    )
    print(f"{count} shapes, {len(wrong)} wrong ({time.monotonic() - start:.0f} s)")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
