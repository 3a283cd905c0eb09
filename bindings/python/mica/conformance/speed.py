"""How long the border itself takes: the smallest calls and copies, timed, without a verdict.

The same call on `meta` is the host's share: what the device adds is the difference.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import mica
from mica.conformance.results import Measurement

_SECONDS = 0.05  # for one measurement, after the calls that warm it up


def _nanoseconds(f: Callable[[], Any], finish: Callable[[], Any]) -> float:
    """The best of five means."""
    for _ in range(10):
        f()
    finish()
    count, best = 1, float("inf")
    while True:
        start = time.perf_counter_ns()
        for _ in range(count):
            f()
        finish()
        took = time.perf_counter_ns() - start
        if took > _SECONDS * 1e9 / 5:
            break
        count *= 2
    for _ in range(5):
        start = time.perf_counter_ns()
        for _ in range(count):
            f()
        finish()
        best = min(best, (time.perf_counter_ns() - start) / count)
    return best


def measure(device: str) -> list[Measurement]:
    """The measurements that the device can do."""
    host, large = mica.ones([1]), mica.ones([16 << 20], dtype=mica.uint8)
    x, big = host.to(device).clone(), large.to(device).clone()
    out = mica.empty([1], device=device)
    meta, meta_out = mica.empty([1], device="meta"), mica.empty([1], device="meta")
    back, large_back = mica.empty([1]), mica.empty_like(large)

    def finish() -> None:
        if mica.device(device).type != "cpu":
            mica.synchronize(device)

    timed: list[tuple[str, str, Callable[[], Any]]] = [
        ("add of one element, out=", "a call with the smallest kernel", lambda: mica.add(x, x, out=out)),
        ("the same on meta", "the host's share: no kernel runs", lambda: mica.add(meta, meta, out=meta_out)),
        ("copy of 4 bytes to the device", "one after another", lambda: out.copy_(host)),
        ("copy of 4 bytes from the device", "one after another", lambda: back.copy_(x)),
        (
            "empty of 4 bytes",
            "from the caching allocator, and back to it",
            lambda: mica.empty([1], device=device),
        ),
        ("copy of 16 MiB to the device", "", lambda: big.copy_(large)),
        ("copy of 16 MiB from the device", "", lambda: large_back.copy_(big)),
    ]
    if mica.device(device).type != "cpu":
        stream = mica.current_stream(device)
        timed.append(
            ("event: record and wait", "on an idle stream", lambda: stream.record_event().synchronize())
        )
    found = []
    for name, note, f in timed:
        try:
            found.append(Measurement(name, _nanoseconds(f, finish), note))
        except NotImplementedError as error:
            found.append(Measurement(name, float("nan"), f"unsupported: {str(error).splitlines()[0]}"))
    return found
