"""bincount on the simulated GPU: few bins, which groups count in local memory, and more, which are sorted."""

import re
from pathlib import Path

import pytest
from gpu_device import DEVICE

import mica

pytestmark = pytest.mark.usefixtures("simt")

HEADER = Path(__file__).resolve().parents[2] / "sdk" / "include" / "mica" / "kit" / "bincount.h"
FEW, GROUPS, GROUP, AT_ONCE = (
    int(re.search(rf"\b{name} = (\d+)", HEADER.read_text())[1])  # type: ignore[index]
    for name in ("kFewBins", "kBinGroups", "kGroup", "kAtOnce")
)
COUNTS = [1, 2, 255, 256, 257, AT_ONCE * GROUP - 1, AT_ONCE * GROUP + 1, 5000]
BINS = [1, 2, 15, 16, 17, 255, 257, FEW - 1, FEW, FEW + 1]


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "int64"])
def test_every_number_of_bins(dtype):
    for bins in BINS:
        if bins > mica.iinfo(getattr(mica, dtype)).max:
            continue
        for count in COUNTS:
            x = (mica.arange(count) * 7919 % bins).to(getattr(mica, dtype))
            x[count // 2] = bins - 1
            for y in (x, x[::2]):
                for least in (0, bins + 3):
                    want = y.bincount(minlength=least)
                    assert mica.equal(y.to(DEVICE).bincount(minlength=least).cpu(), want), (bins, count)
    assert mica.fallback_counts() == {}


def test_more_numbers_than_groups_take_at_once():
    x = mica.arange(AT_ONCE * GROUP * GROUPS + 77) * 31 % 50
    assert mica.equal(x.to(DEVICE).bincount().cpu(), x.bincount())


@pytest.mark.parametrize("number", [-1, -5000])
def test_negative_numbers_are_refused(number):
    x = mica.arange(1000)
    x[777] = number
    with pytest.raises(RuntimeError, match=rf"an element of `self` is \({number}\)"):
        x.to(DEVICE).bincount()
