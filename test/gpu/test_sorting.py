"""sort, topk, kthvalue, nonzero and masks on the simulated GPU, beside NumPy: every way of sorting, around
the lengths at which the kit goes from one to the next."""

import re
from pathlib import Path

import numpy as np
import pytest
from gpu_device import DEVICE

import mica

pytestmark = pytest.mark.usefixtures("simt")

KIT = Path(__file__).resolve().parents[2] / "sdk" / "include" / "mica" / "kit"


def constants(name, header="sorting.h"):
    """The numbers of a constant of the kit, or of a list of them."""
    found = re.search(rf"\b{name}(?:\[\])? = \{{?([\d, ]+)", (KIT / header).read_text())
    assert found, name
    return [int(number) for number in found[1].split(",") if number.strip()]


GROUP, SHORT, TILE = constants("kGroup")[0], constants("kShort"), constants("kTile")
[TILE_GROUPS] = constants("kTileGroups")
[PART_GROUPS], [ADD_LANES] = constants("kPartGroups"), constants("kAddLanes")
[LEAST_PART], [MOST_SELECTED] = constants("kLeastPart"), constants("kMostSelected")
SMALL_ROW, SMALL_KEPT = constants("kSmallRow")[0], constants("kSmallKept")[0]
BORDERS = sorted({*SHORT, *TILE, 2 * max(TILE), 4 * GROUP, 8 * GROUP})
SIZES = [1, 2, 31, 100, *(border + d for border in BORDERS for d in (-1, 0, 1))]
DTYPES = [
    *("bool", "uint8", "int8", "int16", "int32", "int64"),
    *("float16", "bfloat16", "float32", "float64"),
]


def elements(dtype, *shape, kind="ties"):
    """Rows with equal elements, zeros of both signs, infinities and NaN."""
    n = int(np.prod(shape))
    random = np.random.default_rng(n)
    values = {
        "ties": lambda: random.integers(-100, 100, n),
        "random": lambda: random.standard_normal(n) * 1000,
        "equal": lambda: np.full(n, 3),
        "two": lambda: random.integers(0, 2, n),
        "falling": lambda: -np.arange(n) // 3,
        "extremes": lambda: random.choice([-np.inf, np.inf, np.nan, 0.0, -0.0, 1.0, -1.0], n),
    }[kind]()
    values = np.asarray(values, dtype="float64")
    if "float" in dtype and kind in ("ties", "random"):
        values[::17], values[1::17], values[2::17], values[3::17] = np.nan, -0.0, -np.inf, np.inf
    if dtype == "uint8":
        values = np.nan_to_num(values) % 256
    if "int" in dtype:
        limits = np.iinfo(dtype)
        values = np.clip(np.nan_to_num(values), max(limits.min, -(1 << 40)), min(limits.max, 1 << 40))
    return mica.tensor(values).to(getattr(mica, dtype)).reshape(shape)


def order_of(x, dim, descending):
    """Where the sorted elements of `x` stand: NaN is the largest, equal elements keep their order."""
    values = x.to(mica.int64 if not x.dtype.is_floating_point else mica.float64).numpy()
    ranks = np.unique(values, return_inverse=True, equal_nan=True)[1].reshape(values.shape)
    return np.argsort(-ranks if descending else ranks, axis=dim, kind="stable")


def bits(x):
    """The bytes of the elements, so that zeros and NaN count by their own."""
    integer = {1: mica.uint8, 2: mica.int16, 4: mica.int32, 8: mica.int64}[x.dtype.itemsize]
    return (x if x.dtype == mica.bool else x.contiguous().view(integer)).tolist()


def expect(found, x, order, dim):
    values, indices = found[0].cpu(), found[1].cpu()
    assert np.array_equal(indices.numpy(), order)
    assert bits(values) == bits(x.gather(dim, mica.tensor(order)))


# ---- sort


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_sort(dtype, size):
    x = elements(dtype, 3, size, kind="ties" if size % 2 else "random")
    there = x.to(DEVICE)
    for descending in (False, True):
        found = mica.sort(there, dim=1, stable=True, descending=descending)
        expect(found, x, order_of(x, 1, descending), 1)


LAYOUTS = {
    "columns": (lambda x: x.t(), 0),
    "transposed": (lambda x: x.t().contiguous().t(), 1),
    "every second": (lambda x: x[:, ::2], 1),
    "from the second on": (lambda x: x[:, 1:], 1),
    "expanded": (lambda x: x[:1].expand(3, -1), 1),
    "two dimensions of rows": (lambda x: x.reshape(3, -1, 6).transpose(1, 2), 2),
    "expanded along": (lambda x: x[:, :1].expand(-1, 3000), 1),
}


@pytest.mark.parametrize("size", [600, 4098, 9000, 12300])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_sort_and_topk_of_views(dtype, layout, size):
    base = elements(dtype, 3, size)
    view, dim = LAYOUTS[layout]
    x, there = view(base), view(base.to(DEVICE))
    order = order_of(x, dim, True)
    expect(mica.sort(there, dim=dim, stable=True, descending=True), x, order, dim)
    expect(mica.topk(there, 7, dim=dim), x, order.take(range(7), dim), dim)


# Several rows a tile, of which the last one is not full, and so many that items have more entries each.
@pytest.mark.parametrize(("rows", "size"), [(9, 257), (5, 512), (3, 513), (TILE_GROUPS * 8 + 3, 300)])
@pytest.mark.parametrize("dtype", ["bool", "bfloat16", "float32"])
def test_sort_many_rows(dtype, rows, size):
    x = elements(dtype, rows, size)
    expect(mica.sort(x.to(DEVICE), dim=1, stable=True), x, order_of(x, 1, False), 1)


@pytest.mark.parametrize(
    ("rows", "tiles"),
    [(1, ADD_LANES - 1), (1, 8 * ADD_LANES + 5), (3, ADD_LANES + 1), (PART_GROUPS // 2 + 1, 2)],
)
def test_sort_adds_up_many_parts(rows, tiles):
    length = (tiles - 1) * TILE[0] + 1
    x = (mica.arange(rows * length) * 7919 % 251).to(mica.uint8).reshape(rows, length)
    found = mica.sort(x.to(DEVICE), dim=1, stable=True)
    order = np.argsort(x.numpy(), axis=1, kind="stable")
    assert np.array_equal(found[1].numpy(force=True), order)
    assert np.array_equal(found[0].numpy(force=True), np.sort(x.numpy(), axis=1))


# Keys of 8 bytes skip the passes over bytes that all of a row have in common, row by row.
@pytest.mark.parametrize("dtype", ["int64", "float64"])
@pytest.mark.parametrize("length", [TILE[1] + 1, 5 * TILE[1]])
def test_sort_skips_bytes_that_do_not_differ(dtype, length):
    shifts = [(), (0,), (8,), (56,), (0, 8), (0, 16, 40), (8, 24, 32, 56), range(0, 64, 8)]
    random = np.random.default_rng(length)
    rows = np.full((len(shifts), length), 0x3132333435363738, dtype="int64")
    for row, own in enumerate(shifts):
        for shift in own:
            rows[row] ^= random.integers(0, 128, length) << shift
    x = mica.tensor(rows).view(getattr(mica, dtype))
    for descending in (False, True):
        found = mica.sort(x.to(DEVICE), dim=1, stable=True, descending=descending)
        expect(found, x, order_of(x, 1, descending), 1)


# ---- topk and kthvalue

KINDS = ["ties", "random", "equal", "two", "falling", "extremes"]


@pytest.mark.parametrize("size", [max(SHORT) + 1, 2 * MOST_SELECTED + 1, SMALL_ROW, SMALL_ROW + 1])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_topk(dtype, kind, size):
    x = elements(dtype, 2, size, kind=kind)
    there = x.to(DEVICE)
    for largest in (False, True):
        order = order_of(x, 1, largest)
        for k in (1, 2, SMALL_KEPT, SMALL_KEPT + 1, 256, 257, size // 4, MOST_SELECTED):
            expect(mica.topk(there, k, dim=1, largest=largest), x, order[:, :k], 1)


# One row is shared by groups; of 19 lists of 1,000 entries two groups select again.
@pytest.mark.parametrize("k", [1, 50, 1000])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["uint8", "float32", "int64"])
def test_topk_of_a_long_row(dtype, kind, k):
    for size in (2 * LEAST_PART - 1, 2 * LEAST_PART, 19 * LEAST_PART + 5):
        x = elements(dtype, 1, size, kind=kind)
        expect(mica.topk(x.to(DEVICE), k, dim=1), x, order_of(x, 1, True)[:, :k], 1)


@pytest.mark.parametrize("size", [min(SHORT) + 1, max(SHORT) + 1, 5000, 20000])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_kthvalue(dtype, kind, size):
    x = elements(dtype, 2, size, kind=kind)
    there, order = x.to(DEVICE), order_of(x, 1, False)
    for k in {1, 2, 255, 257, size // 2, size - 1, size}:
        expect(mica.kthvalue(there, k, dim=1, keepdim=True), x, order[:, k - 1 : k], 1)


def test_kthvalue_of_a_very_long_row():
    x = elements("float32", 1, (1 << 18) + 1, kind="random")
    for k in (3, 100_000):
        order = order_of(x, 1, False)[:, k - 1 : k]
        expect(mica.kthvalue(x.to(DEVICE), k, dim=1, keepdim=True), x, order, 1)


def test_median_and_unique():
    x = elements("int32", 5, 3001)
    there = x.to(DEVICE)
    assert there.median(dim=1)[0].tolist() == x.median(dim=1)[0].tolist()
    for found, wanted in zip(
        there.unique(return_inverse=True, return_counts=True),
        x.unique(return_inverse=True, return_counts=True),
        strict=True,
    ):
        assert found.tolist() == wanted.tolist()


# ---- what is set

COUNTED = constants("kGroup", "counting.h")[0] * constants("kEach", "counting.h")[0]
SET_LAYOUTS = {
    "dense": lambda x: x,
    "from the second on": lambda x: x[1:],
    "every third": lambda x: x[::3],
    "transposed": lambda x: x[: len(x) // 6 * 6].reshape(-1, 2, 3).transpose(0, 2),
    "nothing": lambda x: x[:0],
}


@pytest.mark.parametrize("size", [1, 15, 16, 17, COUNTED - 1, COUNTED, COUNTED + 1, 3 * COUNTED])
@pytest.mark.parametrize("layout", SET_LAYOUTS)
@pytest.mark.parametrize(
    "dtype", ["bool", "uint8", "int64", "bfloat16", "float32", "complex64", "complex128"]
)
def test_nonzero_and_masks(dtype, layout, size):
    mask = mica.arange(size) * 2654435761 % 1000 > 400
    base = ((mica.arange(size) % 5 - 2) * mask).to(getattr(mica, dtype))
    view = SET_LAYOUTS[layout]
    x, there = view(base), view(base.to(DEVICE))
    m, there_mask = view(mask), view(mask.to(DEVICE))
    assert there.nonzero().tolist() == x.nonzero().tolist()
    assert there[there_mask].tolist() == x[m].tolist()
    source = mica.arange(size).to(x.dtype)
    wanted = x.masked_scatter(m, source).tolist()
    assert there.masked_scatter(there_mask, source.to(DEVICE)).tolist() == wanted


@pytest.mark.parametrize("value", [False, True])
def test_masks_of_one_value(value):
    mask = mica.full((2 * COUNTED + 3,), value)
    x = mica.arange(2 * COUNTED + 3)
    assert x.to(DEVICE)[mask.to(DEVICE)].tolist() == (x.tolist() if value else [])
