"""Paired timing: two callables in turn, and the ratio of each pair.

Machines are noisy and drift, so absolute times mean little. `compare` runs A B A B ..., and
reports the median of the pairs' ratios with its quartiles; a row of one callable against
itself shows how far noise alone carries.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

Thunk = Callable[[], Any]


@dataclass(frozen=True)
class Result:
    """One row: medians in microseconds; ratio is mica's time over the peer's."""

    name: str
    peer: str
    mica_us: float
    peer_us: float
    ratio: float
    low: float  # quartiles of the pairs' ratios
    high: float
    goal: float | None  # the ratio to stay under; None where there is none

    @property
    def met(self) -> bool | None:
        return None if self.goal is None else self.ratio <= self.goal

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"met": self.met}


def loops_for(call: Thunk, seconds: float) -> int:
    """How many calls take about `seconds`."""
    call()
    start = time.perf_counter()
    call()
    once = max(time.perf_counter() - start, 1e-7)
    return max(1, int(seconds / once))


def time_of(call: Thunk, loops: int) -> float:
    start = time.perf_counter()
    for _ in range(loops):
        call()
    return (time.perf_counter() - start) / loops


def compare(
    name: str, mica: Thunk, peer: Thunk, peer_name: str, goal: float | None = None,
    pairs: int = 31, seconds: float = 0.02,
) -> Result:  # fmt: skip
    """Times `mica` against `peer` in `pairs` interleaved pairs of about `seconds` each."""
    loops = min(loops_for(mica, seconds), loops_for(peer, seconds) * 4)
    peer_loops = loops_for(peer, seconds)
    ours, theirs = [], []
    for i in range(pairs):
        # Which of the two goes first takes turns, so that drift favours neither.
        for first in (i % 2 == 0, i % 2 != 0):
            if first:
                ours.append(time_of(mica, loops))
            else:
                theirs.append(time_of(peer, peer_loops))
    ratios = [a / b for a, b in zip(ours, theirs, strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4)
    return Result(
        name, peer_name, statistics.median(ours) * 1e6, statistics.median(theirs) * 1e6,
        middle, low, high, goal,
    )  # fmt: skip
