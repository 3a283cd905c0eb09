"""What the checks of every operator share: which operators they run, and the verdict on what they find.

    @each("vmap", SAMPLED)
    def test_operators(name: str) -> None:
        judge("vmap", name, what_differs(ENTRIES[name]))

The samples are those of mica.conformance, as functions of tensors (`mica.conformance.batches.Sample`);
compare.py says what differs between results.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from exceptions import ROWS, Row

from mica.conformance.operators import ENTRIES
from mica.conformance.samples import UNSAMPLED

SAMPLED = [name for name, e in ENTRIES.items() if e.calls() and name not in UNSAMPLED]
INPLACE = [name for name in SAMPLED if "inplace" in ENTRIES[name].forms]
SHOWN = 12


def _table(rows: Iterable[Row]) -> dict[tuple[str, str], Row]:
    table: dict[tuple[str, str], Row] = {}
    for row in rows:
        for name in row.operators.split():
            assert (row.check, name) not in table, f"two rows of {name} for the check ({row.check})"
            table[row.check, name] = row
    return table


TABLE = _table(ROWS)


def excepted(check: str, name: str, call: int | None = None) -> bool:
    """Whether the table has a row of the operator for the check, or of one of its sample calls."""
    row = TABLE.get((check, name))
    return row is not None and (call is None or call in row.calls)


def each(check: str, names: Sequence[str], slow: Iterable[str] = ()) -> Any:
    """Runs a test once for each operator (`name`); the check's rows must be among them."""
    stray = {name for of, name in TABLE if of == check} - set(names)
    assert not stray, f"rows of the check ({check}) that it does not run: {', '.join(sorted(stray))}"
    late = set(slow)
    return pytest.mark.parametrize(
        "name", [pytest.param(n, marks=pytest.mark.slow) if n in late else n for n in names]
    )


def judge(check: str, name: str, found: Sequence[str]) -> None:
    """Fails for findings that no row excuses, and for a row that excuses nothing any more."""
    row = TABLE.get((check, name))
    patterns = [] if row is None else [rf"\bcall {n}\b" for n in row.calls] or [row.excuses]
    for pattern in patterns:
        if not any(re.search(pattern, text) for text in found):
            pytest.fail(
                f"{name} passes the check ({check}{pattern and f', {pattern}'}): "
                "take its row off test/support/exceptions.py",
                pytrace=False,
            )
    left = [text for text in found if not any(re.search(pattern, text) for pattern in patterns)]
    if left:
        more = f"\n  and {len(left) - SHOWN} more" if len(left) > SHOWN else ""
        pytest.fail(f"{len(left)} found:\n  " + "\n  ".join(left[:SHOWN]) + more, pytrace=False)
