"""In-place comparisons and signs of one- and two-byte dtypes beside torch, around the lengths of vectors and blocks."""

from __future__ import annotations

import pytest
import torch

import mica

DTYPES = ["uint8", "int8", "int16", "bool", "float16", "bfloat16"]
LENGTHS = [0, 1, 2, 15, 16, 17, 31, 33, 255, 1023, 1024, 1025, 70_001]  # a block has 1,024 lanes
SPECIAL = [0.0, -0.0, float("nan"), float("inf"), -float("inf"), 6e-8, -6e-8, 1.0]


def _numbers(n: int, dtype: str) -> torch.Tensor:
    kind = getattr(torch, dtype)
    if not kind.is_floating_point:
        return torch.randint(0, 4, (n,)).to(kind)
    x = torch.randint(-3, 4, (n,)).to(kind)
    x[: min(n, len(SPECIAL))] = torch.tensor(SPECIAL[:n], dtype=torch.float64).to(kind)
    return x


def _to_mica(x: torch.Tensor) -> mica.Tensor:
    bits = x.view(torch.int16) if x.dtype in (torch.float16, torch.bfloat16) else x
    made = mica.from_numpy(bits.numpy().copy())
    return made.view(getattr(mica, str(x.dtype)[6:])) if bits is not x else made


def _same(got: mica.Tensor, expected: torch.Tensor) -> None:
    """By their bits, those of NaN aside: its sign is torch's vector loop's, or its scalar one's."""
    if not expected.is_floating_point():
        assert torch.equal(torch.from_numpy(got.numpy()), expected)
        return
    found = torch.from_numpy(got.clone().view(mica.int16).numpy()).view(expected.dtype)
    assert torch.equal(found.isnan(), expected.isnan())
    there = ~expected.isnan()
    assert torch.equal(found[there].view(torch.int16), expected[there].view(torch.int16))


@pytest.mark.parametrize("name", ["eq_", "ne_", "lt_", "ge_", "logical_and_", "logical_not_"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_truth_in_place(name: str, dtype: str) -> None:
    torch.manual_seed(1)
    for n in LENGTHS:
        x, y = _numbers(n, dtype), _numbers(n, dtype).flip(0)
        mx, my = _to_mica(x), _to_mica(y)
        others, theirs = ((), ()) if name == "logical_not_" else ((my,), (y,))
        getattr(mx, name)(*others)
        _same(mx, getattr(x.clone(), name)(*theirs))
        # Every second element, and with itself.
        wide = _numbers(2 * n, dtype)
        mwide = _to_mica(wide)
        getattr(mwide[::2], name)(*others)
        getattr(wide[::2], name)(*theirs)
        _same(mwide, wide)
        if others:
            getattr(my, name)(my)
            _same(my, getattr(y, name)(y))


@pytest.mark.parametrize("name", ["eq", "lt"])
@pytest.mark.parametrize("result", DTYPES)
@pytest.mark.parametrize("dtype", ["uint8", "int64", "float32", "float16"])
def test_truth_into_a_given_dtype(name: str, dtype: str, result: str) -> None:
    for n in LENGTHS:
        x, y = _numbers(n, dtype), _numbers(n, dtype).flip(0)
        out = torch.empty(n, dtype=getattr(torch, result))
        mout = mica.empty(n, dtype=getattr(mica, result))
        getattr(torch, name)(x, y, out=out)
        getattr(mica, name)(_to_mica(x), _to_mica(y), out=mout)
        _same(mout, out)


@pytest.mark.parametrize("name", ["neg", "abs"])
@pytest.mark.parametrize("dtype", [d for d in DTYPES if d != "bool"])
def test_signs(name: str, dtype: str) -> None:
    for n in LENGTHS:
        x = _numbers(n, dtype)
        mx = _to_mica(x)
        expected = getattr(torch, name)(x)
        _same(getattr(mica, name)(mx), expected)
        wide = _numbers(2 * n, dtype)
        _same(getattr(mica, name)(_to_mica(wide)[::2]), getattr(torch, name)(wide[::2]))
        getattr(mx, name + "_")()
        _same(mx, expected)
