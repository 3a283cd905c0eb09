"""What a work-item reads and writes at once on a wide device: elements with gaps between them, batches of
chunks, a member's share of a scan, the elements of a gather. Sizes lie around each of these."""

import itertools
import math

import pytest
from gpu_device import DEVICE

import mica

pytestmark = pytest.mark.usefixtures("simt")

FLOATS = ["float16", "bfloat16", "float32", "float64"]
DTYPES = ["bool", "uint8", "int16", "int32", "int64", *FLOATS]


def made(shape, dtype):
    """Small whole numbers, whose sums every dtype holds."""
    count = 1
    for size in shape:
        count *= size
    return (mica.arange(count) * 7919 % 5 - (2 if dtype not in ("bool", "uint8") else 0)).reshape(shape).to(getattr(mica, dtype))  # fmt: skip


# ---- gaps

COUNTS = [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 257, 1025]


@pytest.mark.parametrize("dtype", [*DTYPES, "complex64"])
@pytest.mark.parametrize("step", [2, 3, 4])
def test_elements_with_gaps_between_them(step, dtype):
    for count, first in itertools.product(COUNTS, [0, 1, 2]):
        # The last element is the allocation's last.
        base = made((3, first + (count - 1) * step + 1), dtype)
        there = base.to(DEVICE)
        assert there[:, first::step].contiguous().tolist() == base[:, first::step].tolist()
        assert (there[0, first::step] == 1).tolist() == (base[0, first::step] == 1).tolist()
        expanded = base[1:2, first::step].expand(4, -1)
        assert there[1:2, first::step].expand(4, -1).contiguous().tolist() == expanded.tolist()
    assert mica.fallback_counts() == {}


@pytest.mark.parametrize("dtype", FLOATS)
def test_gaps_beside_dense_elements(dtype):
    for count in COUNTS:
        x, y = made((5, 2 * count), dtype), made((5, count), dtype)
        row, column = made((4 * count,), dtype), made((5, 1), dtype)
        want = x[:, ::2] * 2 + y - row[1::4] + column
        x, y, row, column = (t.to(DEVICE) for t in (x, y, row, column))
        assert (x[:, ::2] * 2 + y - row[1::4] + column).tolist() == want.tolist()


# ---- reductions and rows: a member has four chunks of up to 8 elements at once, and a team up to 512 members

LENGTHS = [31, 127, 128, 129, 511, 513, 1023, 1024, 1025, 2047, 4095, 4096, 4097, 8193, 16383, 16384, 16385, 16392, 50257]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
def test_reductions_of_every_length(dtype):
    for number, length in enumerate(LENGTHS):
        rows = 1 + number % 3
        x = made((rows, length), dtype)
        x[rows - 1, length - 1 - number % 9] = 3
        there = x.to(DEVICE)
        # A row that begins one element later than an allocation.
        later = mica.cat([x[:, :1], x], 1).to(DEVICE)[:, 1:]
        for y in (there, later):
            assert y.sum(1).tolist() == x.double().sum(1).to(y.sum(1).dtype).tolist(), length
            assert y.amax(1).tolist() == x.amax(1).tolist(), length
            if dtype != "bool":
                assert y.argmax(1).tolist() == x.argmax(1).tolist(), length
        assert there.sum().tolist() == x.double().sum().to(there.sum().dtype).tolist()
    assert mica.fallback_counts() == {}


@pytest.mark.parametrize("dtype", ["float32", "int64"])
@pytest.mark.parametrize("length", [(1 << 17) - 1, 1 << 17, (1 << 17) + 1, 300_007])
def test_reductions_in_pieces(length, dtype):
    x = made((length,), dtype)
    x[length - 2] = 4
    there = x.to(DEVICE)
    assert there.sum().item() == x.sum().item() and there.argmax().item() == length - 2
    assert there[1:].sum().item() == x[1:].sum().item() and there[3:].argmax().item() == length - 5


@pytest.mark.parametrize("dtype", FLOATS)
def test_rows_of_every_length(dtype):
    mica.manual_seed(0)
    close = {"float16": 1e-3, "bfloat16": 8e-3, "float32": 1e-5, "float64": 1e-13}[dtype]
    for number, length in enumerate(LENGTHS):
        x = mica.randn(1 + number % 3, length).to(getattr(mica, dtype))
        later = mica.cat([x[:, :1], x], 1).to(DEVICE)[:, 1:]
        for name in ("softmax", "log_softmax"):
            want = getattr(x.double(), name)(1)
            for y in (x.to(DEVICE), later):
                got = getattr(y, name)(1).cpu().double()
                assert ((got - want).abs() <= close * want.abs() + 1e-7).all().item(), (name, length)
    x = mica.randn(1500, 300).to(getattr(mica, dtype))  # rows that need no large teams
    got = x.to(DEVICE).softmax(1).cpu().double()
    assert ((got - x.double().softmax(1)).abs() <= close * got + 1e-7).all().item()


@pytest.mark.parametrize("length", [1000, 1024, 1025, 4096, 1 << 17])
def test_rows_of_one_element_that_is_expanded(length):
    for shape in ((3, 1), (1, 1)):
        there = mica.ones(*shape).to(DEVICE).expand(shape[0], length)
        for name, want in (("softmax", 1 / length), ("log_softmax", -math.log(length))):
            got = getattr(there, name)(1).cpu()
            assert (got - want).abs().max().item() <= 1e-5 * abs(want), (name, shape)
    assert mica.fallback_counts() == {}


# ---- scans: 8 elements a member where they lie densely, else 4

SCANS = [2, 7, 8, 9, 63, 64, 65, 255, 256, 257, 2047, 2049, 4095, 4096, 4097, 12_289]


@pytest.mark.parametrize("dtype", DTYPES)
def test_scans_of_every_length(dtype):
    for number, length in enumerate(SCANS):
        x = made((1 + number % 2, 2 * length), dtype)
        there = x.to(DEVICE)
        for part in (lambda t: t[:, :length], lambda t: t[:, 1 : length + 1], lambda t: t[:, ::2]):  # noqa: B023
            want = part(x)
            # All sums that a half type rounds stay small here.
            assert part(there).cumsum(1).tolist() == want.cumsum(1).tolist(), length
            if dtype != "bool":
                for a, b in zip(part(there).cummax(1), want.cummax(1), strict=True):
                    assert a.tolist() == b.tolist(), length
    assert mica.fallback_counts() == {}


# ---- gathers: four elements an item from 2^19 elements on, a group 256 items apart


@pytest.mark.parametrize("count", [(1 << 19) - 1, 1 << 19, (1 << 19) + 1, (1 << 19) + 767, (1 << 19) + 1025])
def test_gathers_of_many_elements(count):
    x = mica.arange(1000, dtype=mica.float32)
    index = mica.arange(count) * 7919 % 1000
    there, places = x.to(DEVICE), index.to(DEVICE)
    assert (there[places].cpu() == x[index]).all().item()
    assert (there.gather(0, places).cpu() == x[index]).all().item()
    assert (there.expand(2, -1).index_select(1, places[: count // 2 + 1]).cpu() == x[index[: count // 2 + 1]]).all().item()  # fmt: skip
    assert (there[: 1000].repeat(count // 1000 + 1)[:count].flip(0).cpu() == x.repeat(count // 1000 + 1)[:count].flip(0)).all().item()  # fmt: skip


def test_one_index_of_many_is_out_of_bounds():
    x, index = mica.arange(10.0, device=DEVICE), mica.arange(1 << 19, device=DEVICE) % 10
    index[(1 << 19) - 1] = 10
    with pytest.raises(IndexError, match="out of bounds"):
        x[index].tolist()
    index[(1 << 19) - 1] = -10
    assert x[index][-1].item() == 0
