"""The ends of every integer dtype's range, in and out of a tensor in every way there is."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import mica

DTYPES = ["uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"]
ENDS = {name: (int(np.iinfo(name).min), int(np.iinfo(name).max)) for name in DTYPES}


@pytest.mark.parametrize("name", DTYPES)
def test_ends_of_the_range_go_in_and_out(name: str) -> None:
    low, high = ENDS[name]
    dtype = getattr(mica, name)
    t = mica.tensor([low, high], dtype=dtype)
    assert t.tolist() == [low, high]
    assert [t[0].item(), t[1].item()] == [low, high]
    assert str(high) in repr(t) and str(low) in repr(t)
    assert t.numpy().tolist() == [low, high]
    assert mica.from_numpy(np.array([low, high], name)).tolist() == [low, high]
    assert mica.full((2,), high, dtype=dtype).tolist() == [high, high]
    assert mica.zeros(1, dtype=dtype).fill_(high).item() == high
    assert mica.tensor(high, dtype=dtype).item() == high
    assert (t == high).tolist() == [low == high, True]
    assert copy.deepcopy(t).tolist() == pickle.loads(pickle.dumps(t)).tolist() == [low, high]
    assert t.to(mica.float64).tolist() == [float(low), float(high)]
    assert t.to(mica.float64)[1].item() == float(t[1])
    t[0] = high
    assert t.tolist() == [high, high]
    assert mica.ops.mica._local_scalar_dense(mica.tensor(high, dtype=dtype)) == high


@pytest.mark.parametrize("name", DTYPES)
def test_order_and_arithmetic_at_the_ends(name: str) -> None:
    low, high = ENDS[name]
    t = mica.tensor([high, low, 5], dtype=getattr(mica, name))
    assert t.sort()[0].tolist() == sorted([high, low, 5])
    assert t.max().item() == high and t.min().item() == low
    assert (t // 2).tolist() == [high // 2, low // 2, 2]
    assert (t > 5).tolist() == [high > 5, low > 5, False]
    assert t.argmax().item() == 0 and t.argmin().item() == 1


@pytest.mark.parametrize("name", DTYPES)
def test_a_number_beyond_the_range_is_refused(name: str) -> None:
    low, high = ENDS[name]
    dtype = getattr(mica, name)
    for number in (high + 1, low - 1):
        if number < 0 and name.startswith("u"):  # wraps, as in torch
            assert mica.tensor([number], dtype=dtype).tolist() == [number + high + 1]
            continue
        with pytest.raises((OverflowError, RuntimeError, ValueError)):
            mica.tensor([number], dtype=dtype)
        with pytest.raises((OverflowError, RuntimeError, ValueError)):
            mica.full((2,), number, dtype=dtype)


def test_a_large_number_has_no_dtype_of_its_own() -> None:
    with pytest.raises((OverflowError, RuntimeError, ValueError), match="9223372036854775808"):
        mica.tensor(2**63)
    with pytest.raises((OverflowError, RuntimeError, ValueError)):
        mica.full((2,), 2**63)
    with pytest.raises(OverflowError):
        mica.tensor([1], dtype=mica.uint64) + 2**64
    assert mica.tensor([1.0]).add(2**63).tolist() == [float(2**63)]


@pytest.mark.parametrize("name", ["uint8", "int8", "int16"])
def test_trapezoids_of_narrow_integers_do_not_wrap(name):
    dtype = getattr(mica, name)
    most = mica.iinfo(dtype).max
    y, x = [most, most, 3, most], [0, most - 1, 1, most]
    wide = np.asarray(y, np.float32), np.asarray(x, np.float32)
    values, places = mica.tensor(y, dtype=dtype), mica.tensor(x, dtype=dtype)
    areas = (wide[0][1:] + wide[0][:-1]) / 2
    steps = np.diff(wide[1])
    assert mica.trapezoid(values).item() == areas.sum()
    assert mica.cumulative_trapezoid(values).tolist() == areas.cumsum().tolist()
    assert mica.trapezoid(values, places).item() == (areas * steps).sum()
    assert mica.cumulative_trapezoid(values, places).tolist() == (areas * steps).cumsum().tolist()


@pytest.mark.parametrize("name", ["float32", "float64"])
def test_wide_integers_as_floats(name: str) -> None:
    """Small ones alone, and one beyond 2^51 in each place of a stretch of 1,024 that matters; each rounded once."""
    random = np.random.default_rng(2)
    ends = [0, 1, -1, 2**24 + 1, 2**31, -(2**31) - 1, 2**51 - 1, -(2**51), 2**51, -(2**51) - 1]
    ends += [2**53 + 1, -(2**53) - 1, 2**62 + 2**37 + 1, 2**63 - 1, -(2**63)]
    for n in (1, 7, 1023, 1024, 1025, 3000):
        for end in ends:
            x = random.integers(-(2**40), 2**40, n)
            x[random.integers(0, n)] = x[-1] = end
            assert mica.tensor(x).to(getattr(mica, name)).tolist() == x.astype(name).tolist(), (n, end)
