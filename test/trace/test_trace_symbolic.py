"""Symbolic traces: every sample of mica.conformance traced with symbolic sizes and run again with
other sizes, against eager; and the guards."""

from __future__ import annotations

from typing import Any

import pytest
from test_trace_operators import NAMES, VALUES_DECIDE, Traced, same

import mica
from mica.conformance.batches import tensors_of
from mica.conformance.operators import ENTRIES, attempt
from mica.fx import make_fx


def symbolic(f: Any) -> Any:
    return make_fx(f, tracing_mode="symbolic")


def resized(t: Any, change: dict[int, int]) -> Any:
    """Values for other sizes, taken from those of `t` again and again."""
    sizes = [change.get(s, s) for s in t.shape]
    count = 1
    for s in sizes:
        count *= s
    flat = t.reshape(-1)
    return flat[mica.arange(count) % flat.numel()].reshape(sizes)


def changes(inputs: list[Any]) -> list[dict[int, int]]:
    hints = sorted({s for t in inputs for s in t.shape if s >= 2})
    one = [{h: h + d} for h in hints for d in (1, 4)]
    return [*one, {h: h + 2 for h in hints}, {h: 2 * h for h in hints}]


class Count:
    other_sizes = refused = 0


@pytest.mark.parametrize("overload", NAMES)
def test_other_sizes_equal_eager(overload: str) -> None:
    for call in ENTRIES[overload].calls()[:3]:
        case = Traced(ENTRIES[overload], call, "float64")
        if not case.inputs or any(t.numel() == 0 for t in case.inputs):
            continue
        expected, error = case.run(case)
        if error is not None or not tensors_of(expected):
            continue
        graph, failure = case.run(symbolic(case))
        if failure is not None:
            assert any(s in str(failure) for s in VALUES_DECIDE), f"{overload}: {failure}"
            continue
        given = case.inputs
        for change in [{}, *changes(given)]:
            inputs = [resized(t, change) for t in given]
            mica.manual_seed(0)
            expected, error = attempt(case, *[t.clone() for t in inputs])
            mica.manual_seed(0)
            found, failure = attempt(graph, *[t.clone() for t in inputs])
            if error is not None:
                assert failure is not None, f"{overload} {change}: eager raises {error}\n{graph.code}"
            elif failure is not None:
                assert "was traced" in str(failure) and change, (
                    f"{overload} {change}: {failure}\n{graph.code}"
                )
                Count.refused += 1
            else:
                assert same(expected, found, 1e-12), f"{overload} {change}\n{graph.code}{graph}"
                Count.other_sizes += bool(change)


def test_most_other_sizes_run() -> None:
    """Where eager takes other sizes, so do most graphs."""
    if Count.other_sizes + Count.refused < 1000:
        pytest.skip("the operators' tests did not run before this one")
    print(Count.other_sizes, Count.refused)
    assert Count.other_sizes > 4 * Count.refused
