"""For compute-sanitizer: the operators that programs use most, by the conformance kit, in this process."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from conformance import FIRST
from row import Options, Row, Skipped, expect

import mica


def rows(device: str, options: Options) -> Iterator[Row]:
    from mica.conformance.operator_checks import check_operator, chosen

    until = time.monotonic() + options.seconds - 10
    entries = {e.overload: e for e in chosen([])}

    def run(name: str) -> dict[str, Any]:
        if time.monotonic() > until:
            raise Skipped("The time is over.")
        before = mica.set_fallback("error")
        try:
            found = check_operator(
                entries[name], device, ["float32", "int64"], ["value", "inplace", "out", "gradient"]
            )
        finally:
            mica.set_fallback(before)
        wrong = [failure.detail for row in found for failure in row.failures]
        expect(not wrong, f"({len(wrong)}) cases fail: {wrong[:1]}")
        return {
            verdict: sum(row.verdict == verdict for row in found) for verdict in ("passes", "unsupported")
        }

    for name in FIRST:
        if name in entries:
            yield Row(name, lambda name=name: run(name))
