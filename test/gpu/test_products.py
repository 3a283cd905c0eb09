"""Products of matrices on the simulated GPU beside the CPU: small ones, which a kernel of their own computes,
around the sizes of its tiles and the largest that it takes."""

import itertools
import re
from pathlib import Path

import pytest
from gpu_device import DEVICE

import mica

pytestmark = pytest.mark.usefixtures("simt")

HEADER = Path(__file__).resolve().parents[2] / "sdk" / "include" / "mica" / "kit" / "small_product.h"
SIDE, TILE, GROUPS = (
    int(re.search(rf"\b{name} = (\d+)", HEADER.read_text())[1])  # type: ignore[index]
    for name in ("kSmallSide", "kSmallTile", "kSmallGroups")
)
DEPTHS = [128, 64]
SIDES = [1, 2, 3, 4, 5, TILE - 1, TILE, TILE + 1, SIDE - 1, SIDE, SIDE + 1]
STEPS = [0, 1, 2, 3, 4, 5, 15, 16, 17, 31, *(d + e for d in DEPTHS for e in (-1, 0, 1))]
FLOATS = ["float16", "bfloat16", "float32", "float64"]
DTYPES = ["uint8", "int8", "int16", "int32", "int64", *FLOATS]
SIZES = [(5, 7, 3), (17, 16, 33), (33, 18, 64), (1, 20, 6), (20, 1, 5)]
LAYOUTS = ["dense", "transposed", "gaps", "shifted"]


def made(shape, dtype="float32", layout="dense", seed=1):
    """Whole numbers, of which every dtype holds the sums that the products have."""
    *batches, rows, columns = shape
    stored = {
        "dense": shape,
        "transposed": (*batches, columns, rows),
        "gaps": (*batches, rows, 2 * columns),
        "shifted": (*batches, rows, columns + 1),  # of which rows begin at addresses of any kind
    }[layout]
    count = 1
    for size in stored:
        count *= size
    numbers = mica.arange(count) * (7919 + 2 * seed) % 7 % 3 - (1 if dtype != "uint8" else 0)
    whole = numbers.reshape(stored).to(getattr(mica, dtype))
    if layout == "transposed":
        return whole, lambda x: x.mT
    return whole, {"dense": lambda x: x, "gaps": lambda x: x[..., ::2], "shifted": lambda x: x[..., 1:]}[
        layout
    ]


def pair(*arguments, **keywords):
    """The same matrix on the CPU and on the device, in the same layout."""
    whole, view = made(*arguments, **keywords)
    return view(whole), view(whole.to(DEVICE))


def same(there, here):
    assert there.dtype == here.dtype and there.shape == here.shape
    assert mica.equal(there.cpu(), here)


@pytest.fixture(autouse=True)
def everything_ran_there():
    yield
    assert mica.fallback_counts() == {}


@pytest.mark.parametrize("k", STEPS)
def test_every_size_around_the_borders(k):
    for m, n in itertools.product(SIDES, SIDES):
        if (m > 2 * TILE or n > 2 * TILE) and (m + n + k) % 3:
            continue
        (a, a_there), (b, b_there) = pair((m, k)), pair((k, n), seed=2)
        same(a_there @ b_there, a @ b)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_and_layout(dtype):
    for number, (a_layout, b_layout) in enumerate(itertools.product(LAYOUTS, LAYOUTS)):
        m, n, k = SIZES[number % len(SIZES)]
        (a, a_there), (b, b_there) = pair((m, k), dtype, a_layout), pair((k, n), dtype, b_layout, seed=2)
        same(a_there @ b_there, a @ b)
        (c, c_there) = pair((m, n), dtype, b_layout, seed=3)
        same(mica.addmm(c_there, a_there, b_there, beta=2, alpha=3), mica.addmm(c, a, b, beta=2, alpha=3))


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_linear_layer_with_its_bias(dtype):
    for rows, inside, outside in [(1, 64, 64), (32, 64, 64), (17, 33, 10), (128, 64, 128), (3, 1, 1)]:
        (x, x_there), (w, w_there) = pair((rows, inside), dtype), pair((outside, inside), dtype, seed=2)
        row, row_there = (t[0] for t in pair((1, outside), dtype, seed=3))
        want = mica.nn.functional.linear(x, w, row)
        same(mica.nn.functional.linear(x_there, w_there, row_there), want)


def test_batches_and_what_is_added():
    for batches, (m, n, k) in [
        (1, (4, 4, 4)),
        (3, (17, 5, 66)),
        (GROUPS, (3, 2, 5)),
        (GROUPS + 1, (2, 3, 4)),
    ]:
        (a, a_there), (b, b_there) = pair((batches, m, k)), pair((batches, k, n), layout="transposed", seed=2)
        same(a_there @ b_there, a @ b)
        same(a_there @ b_there[:1], a @ b[:1])
        for beta in (1, 0.5, -2):
            c, c_there = pair((batches, m, n), seed=3)
            want = mica.baddbmm(c, a, b, beta=beta, alpha=0.5)
            same(mica.baddbmm(c_there, a_there, b_there, beta=beta, alpha=0.5), want)
            c_there.baddbmm_(a_there, b_there, beta=beta, alpha=0.5)
            same(c_there, want)


def test_nothing_is_read_of_an_addend_that_counts_for_nothing():
    (a, a_there), (b, b_there) = pair((5, 6)), pair((6, 7), seed=2)
    nan = mica.full((5, 7), float("nan"), device=DEVICE)
    same(mica.addmm(nan, a_there, b_there, beta=0, alpha=2), 2 * (a @ b))


def test_results_that_do_not_lie_together():
    (a, a_there), (b, b_there) = pair((18, 9)), pair((9, 21), seed=2)
    for view in (lambda x: x[:, ::2], lambda x: x[:, 1::2], lambda x: x[:21, :18].mT):
        out = mica.full((21, 42), 5.0, device=DEVICE)[: 21 if view(mica.empty(21, 42)).shape[0] == 18 else 18]
        mica.mm(a_there, b_there, out=view(out)[:18, :21])
        same(view(out)[:18, :21].contiguous(), a @ b)
