"""Work that keeps a stream busy while a check queues what must wait for it.

A fault of order shows only where the device is behind the host: on an idle device, work
that waits for nothing comes at the right time by luck. So every check of order queues a
backlog first, and measures it: a round counts where the backlog still ran a while after the
host had queued everything. Where it had run out, the backlog doubles. A device that is never
behind, since it works when it is asked, gets the rounds as they are.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import mica

_SMALLEST, _LARGEST = 1 << 20, 64 << 20  # bytes of a copy
_ROUNDS = 3  # that count
_PAUSE = 0.02  # seconds that a backlog must go on: more than work that waits for nothing needs to be done
_PATIENCE = 2.0  # seconds of a round after which no longer one is tried


class Backlog:
    """Copies that are queued on a stream, and an event behind them."""

    def __init__(self, stream: mica.Stream) -> None:
        self.stream = stream
        self.counts = False
        self._event = mica.Event()
        self._number, self._size = 16, _SMALLEST
        self._blocks: list[Any] = []

    def queue(self) -> None:
        """Queues the copies."""
        self.counts = False
        if not self._blocks:
            self._blocks = [mica.zeros([self._size], dtype=mica.uint8).to(self.stream.device) for _ in "ab"]
            mica.synchronize(self.stream.device)
        a, b = self._blocks
        with mica.stream(self.stream):
            for _ in range(self._number):
                a.copy_(b, non_blocking=True)
            self._event.record(self.stream)

    def lasts(self) -> None:
        """Called when everything is queued: what waits for nothing gets the time to go wrong."""
        end = time.perf_counter() + _PAUSE
        while time.perf_counter() < end:
            if self._event.query():
                return
            time.sleep(_PAUSE / 10)
        self.counts = not self._event.query()

    def wait(self, waits: Callable[[], None]) -> None:
        """Runs a wait of the host's for what comes behind the backlog, in place of `lasts()`."""
        behind, start = not self._event.query(), time.perf_counter()
        waits()
        self.counts = behind and time.perf_counter() - start > _PAUSE

    def grow(self) -> None:
        """Makes the backlog longer: its copies larger first, since queueing more takes the host longer."""
        self._number *= 2
        if self._size < _LARGEST:
            self._size, self._blocks = 2 * self._size, []


def host_memory(device: str, count: int) -> mica.Tensor:
    """A float32 CPU tensor of -1, pinned where a device can, so that copies into it do not make the host wait."""
    try:
        return mica.full([count], -1.0).pin_memory(device)
    except NotImplementedError:
        return mica.full([count], -1.0)


def backlogs(stream: mica.Stream) -> Iterator[Backlog]:
    """The rounds of a check whose work must come behind a backlog on this stream, which is queued.

    The body of the loop queues its work, calls `lasts()` or `wait()`, and judges the work when it is done.
    """
    backlog, rounds = Backlog(stream), 0
    while rounds < _ROUNDS:
        start = time.perf_counter()
        backlog.queue()
        yield backlog
        stream.synchronize()
        if backlog.counts:
            rounds += 1
        elif time.perf_counter() - start > _PATIENCE:
            return
        else:
            backlog.grow()
