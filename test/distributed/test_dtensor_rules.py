"""Sharding rules: every operator's samples, cut every way on 2, 3 and 4 ranks, against the whole; and their gradients.

Uneven cuts are among them, and parts without elements: samples have sizes 1 to 7. The suite cuts on 3 ranks, which
shows most; the other numbers and dtypes are for the long form.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest
from every_operator import INPLACE, SAMPLED
from layouts import swept

from mica.conformance.operators import ENTRIES
from mica.distributed.tensor._plan import source_of
from mica.ops import overload

pytestmark = pytest.mark.slow
long = pytest.mark.skipif("MICA_TEST_CALLS" not in os.environ, reason="for ./dev test --long python-slow")
# Operators that draw are in test_dtensor.py: ranks that are threads share a generator.
NAMES = [n for n in SAMPLED if ENTRIES[n].op_class != "random"]
# What has no rule for any cut of its samples: shapes that depend on values, and indices into the whole of the memory.
REFUSED = {
    "argwhere",
    "as_strided",
    "as_strided_copy",
    "bincount",
    "block_diag",
    "masked_scatter",
    "masked_select",
    "nonzero",
    "nonzero_numpy",
    "where",
}


@pytest.mark.parametrize("ranks", [3, *(pytest.param(n, marks=long) for n in (2, 4))])
def test_no_operator_is_wrong_and_nearly_all_have_rules(ranks: int) -> None:
    counts: dict[str, Counter[str]] = {}
    wrong: list[str] = []
    for name in NAMES:
        counts[name], found = swept(name, ranks, "float64")
        wrong += [f"{name}: {text}" for text in found]
    tried = {n for n, c in counts.items() if c}
    ruled = {n for n in tried if counts[n]["right"]}
    generated = {n for n in ruled if source_of(overload(f"mica::{n}")) != "by hand"}
    cases: Counter[str] = sum(counts.values(), Counter())
    print(
        f"{ranks} ranks: {len(tried)} operators, {len(ruled)} with rules ({len(ruled) / len(tried):.1%}), of those "
        f"{len(generated)} generated ({len(generated) / len(ruled):.1%}); layouts: {dict(cases)}"
    )
    assert not wrong, "\n".join(wrong)
    assert tried - ruled == REFUSED
    assert len(generated) >= 0.95 * len(ruled)


def _wrong(names: list[str], ranks: int, dtype: str, *, inplace: bool = False, grad: bool = False) -> str:
    right, wrong = 0, []
    for name in names:
        counts, found = swept(name, ranks, dtype, inplace, grad)
        right += counts["right"]
        wrong += [f"{name}: {text}" for text in found]
    assert right > len(names)  # layouts, several of most operators
    return "\n".join(wrong)


def test_gradients() -> None:
    names = [n for n in NAMES if ENTRIES[n].differentiable]
    assert not _wrong(names, 3, "float64", grad=True)


def test_inplace_forms() -> None:
    names = [n for n in INPLACE if n in NAMES]
    assert not _wrong(names, 3, "float64", inplace=True)


@long
@pytest.mark.parametrize("dtype", ["int64", "complex128"])
def test_other_dtypes(dtype: str) -> None:
    assert not _wrong(NAMES, 3, dtype)
