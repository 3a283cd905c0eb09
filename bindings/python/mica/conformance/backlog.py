"""Work that keeps a stream busy while a check queues what must wait for it.

A fault of order shows only where the device is behind the host: on an idle device, work
that waits for nothing comes at the right time by luck. So every check of order queues a
backlog first, and measures it: a round counts where the backlog still ran a while after the
host had queued everything. Where it had run out, the backlog doubles. A device that is never
behind, since it works when it is asked, gets the rounds as they are.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import mica

_SMALLEST, _LARGEST = 1 << 18, 16 << 20  # float32 numbers of a tensor
_ROUNDS = 3  # that count
PAUSE = 0.02  # seconds that a backlog must go on: more than work that waits for nothing needs to be done
_PATIENCE = 1.5  # seconds of rounds that do not count, after which no longer one is tried

_kernels: dict[str, bool] = {}
_lock = threading.Lock()


def has_kernel(device: Any) -> bool:
    """Whether the device multiplies float32 tensors itself."""
    with _lock:
        if device.type not in _kernels:
            x = mica.zeros([4]).to(device)
            before = mica.set_fallback("error")
            try:
                mica.mul(x, x, out=mica.empty([4], device=device))
                _kernels[device.type] = True
            except NotImplementedError:
                _kernels[device.type] = False
            finally:
                mica.set_fallback(before)
        return _kernels[device.type]


class Backlog:
    """Work that is queued on a stream, and an event behind it.

    One quarter of it are copies, the rest kernels where the device has one: whichever of the two a
    device puts into another stream then comes at another time than the rest.
    """

    def __init__(self, stream: mica.Stream) -> None:
        self.stream = stream
        self.counts = False
        self._event = mica.Event()
        self._number, self._size = 64, _SMALLEST
        self._tensors: list[Any] = []

    def queue(self) -> None:
        """Queues the work."""
        self.counts = False
        if not self._tensors:
            self._tensors = [mica.zeros([self._size]).to(self.stream.device) for _ in "ab"]
            mica.synchronize(self.stream.device)
        a, b = self._tensors
        copies = self._number // 4 if has_kernel(self.stream.device) else self._number
        with mica.stream(self.stream):
            for _ in range(copies):
                a.copy_(b, non_blocking=True)
            for _ in range(self._number - copies):
                mica.mul(b, b, out=a)
            self._event.record(self.stream)

    def lasts(self) -> None:
        """Called when everything is queued: what waits for nothing gets the time to go wrong."""
        end = time.perf_counter() + PAUSE
        while time.perf_counter() < end:
            if self._event.query():
                return
            time.sleep(PAUSE / 10)
        self.counts = not self._event.query()

    def wait(self, waits: Callable[[], None]) -> None:
        """Runs a wait of the host's for what comes behind the backlog, in place of `lasts()`."""
        behind, start = not self._event.query(), time.perf_counter()
        waits()
        self.counts = behind and time.perf_counter() - start > PAUSE

    def grow(self) -> None:
        """Makes the backlog longer: its tensors larger, too, since queueing more takes the host longer."""
        self._number *= 2
        if self._size < _LARGEST:
            self._size, self._tensors = 2 * self._size, []


def host_memory(device: str, count: int) -> mica.Tensor:
    """A float32 CPU tensor of -1, pinned where the device can, so that copies into it do not make the host wait."""
    try:
        return mica.full([count], -1.0).pin_memory(device)
    except NotImplementedError:
        return mica.full([count], -1.0)


def backlogs(stream: mica.Stream, before: Callable[[], None] = lambda: None) -> Iterator[Backlog]:
    """The rounds of a check whose work must come behind a backlog on this stream, which is queued.

    `before` is called before it is. The body of the loop queues its work, calls `lasts()` or `wait()`, and
    judges the work when it is done.
    """
    backlog, rounds, lost = Backlog(stream), 0, 0.0
    while rounds < _ROUNDS:
        start = time.perf_counter()
        before()
        backlog.queue()
        yield backlog
        stream.synchronize()
        if backlog.counts:
            rounds += 1
            continue
        lost += time.perf_counter() - start
        if lost > _PATIENCE:
            return
        backlog.grow()
