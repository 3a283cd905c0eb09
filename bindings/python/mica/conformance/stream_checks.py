"""Checks of streams and events: order within a stream, order between streams, waits, threads.

What must come later is queued behind a backlog (backlog.py), so that it shows when it does not.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import numpy as np

import mica
from mica.conformance.backlog import PAUSE, backlogs, has_kernel, host_memory
from mica.conformance.runtime import NotApplicable, check, equal, expect

_COUNT = 1 << 16


def _accelerator(device: str) -> None:
    if mica.device(device).type == "cpu":
        raise NotApplicable


def _numbers(seed: int, count: int = _COUNT) -> np.ndarray:
    return np.random.default_rng(seed).integers(1, 1 << 10, count).astype("float32")


def _on(device: str, *seeds: int) -> list[mica.Tensor]:
    """Tensors of the device that hold the numbers of each seed; nothing is under way."""
    made = [mica.from_numpy(_numbers(seed)).to(device) for seed in seeds]
    mica.synchronize(device)
    return made


@check("streams")
def current_inside_its_block(device: str) -> None:
    """A stream is current inside its block, the one before it after; other threads keep theirs."""
    _accelerator(device)
    before = mica.current_stream(device)
    s = mica.Stream(device)
    expect(s != before, "A new stream is the current one already.")
    seen = []
    with mica.stream(s):
        expect(mica.current_stream(device) == s, "The stream is not current inside its block.")
        thread = threading.Thread(target=lambda: seen.append(mica.current_stream(device)))
        thread.start()
        thread.join()
    expect(mica.current_stream(device) == before, "The stream before is not current after the block.")
    expect(seen == [before], "Another thread sees this thread's current stream.")


@check("streams")
def work_of_one_stream_is_in_order(device: str) -> None:
    """The last of four copies into one tensor is the one that stays."""
    _accelerator(device)
    s, y, *sources = mica.Stream(device), *_on(device, 9, 0, 1, 2, 3)
    for backlog in backlogs(s):
        with mica.stream(s):
            for x in sources:
                y.copy_(x, non_blocking=True)
        backlog.lasts()
        s.synchronize()
        equal(y, _numbers(3), "An earlier copy of the stream was done after a later one.")


@check("streams")
def copies_and_kernels_are_in_their_stream(device: str) -> None:
    """Two copies, a product, a copy within the device and one to the host: each sees what the one before wrote."""
    _accelerator(device)
    s, kernel, host = mica.Stream(device), has_kernel(mica.device(device)), host_memory(device, _COUNT)
    y, z, w, first, second = _on(device, 7, 8, 9, 0, 1)
    for k, backlog in enumerate(backlogs(s)):
        host.fill_(-1)
        with mica.stream(s):
            y.copy_((first, second)[k % 2], non_blocking=True)
            mica.mul(y, y, out=z) if kernel else z.copy_(y, non_blocking=True)
            w.copy_(z, non_blocking=True)
            host.copy_(w, non_blocking=True)
        backlog.lasts()
        s.synchronize()
        a = _numbers(k % 2)
        equal(
            host, a * a if kernel else a, "Something in the stream was done before what was queued earlier."
        )


@check("streams")
def an_event_orders_two_streams(device: str) -> None:
    """A copy on one stream, an event, a read on another: the read sees the copy, also when the event is dropped."""
    _accelerator(device)
    first, second = mica.Stream(device), mica.Stream(device)
    y, z, *sources = _on(device, 7, 8, 0, 1)
    for k, backlog in enumerate(backlogs(first)):
        with mica.stream(first):
            y.copy_(sources[k % 2], non_blocking=True)
            written = first.record_event()
        with mica.stream(second):
            written.wait(second)
            z.copy_(y, non_blocking=True)
        del written
        backlog.lasts()
        second.synchronize()
        equal(z, _numbers(k % 2), f"In round ({k}) the second stream read before the first had written.")


@check("streams")
def an_event_recorded_again(device: str) -> None:
    """An event that has happened and is recorded again is waited for again."""
    _accelerator(device)
    first, second = mica.Stream(device), mica.Stream(device)
    y, z, *sources = _on(device, 7, 8, 0, 1)
    event = mica.Event()
    event.record(first)
    event.synchronize()
    for k, backlog in enumerate(backlogs(first)):
        with mica.stream(first):
            y.copy_(sources[k % 2], non_blocking=True)
            event.record(first)
        with mica.stream(second):
            event.wait(second)
            z.copy_(y, non_blocking=True)
        backlog.lasts()
        second.synchronize()
        equal(z, _numbers(k % 2), "The second stream waited for an earlier recording of the event.")


@check("streams")
def events_happen(device: str) -> None:
    """An event that was never recorded has happened; a recorded one has after synchronize, with all before it."""
    _accelerator(device)
    event = mica.Event()
    expect(event.query(), "An event that was never recorded has not happened.")
    s, host, [x] = mica.Stream(device), host_memory(device, _COUNT), _on(device, 0)
    for backlog in backlogs(s):
        host.fill_(-1)
        with mica.stream(s):
            host.copy_(x, non_blocking=True)
            event.record(s)
        backlog.wait(event.synchronize)
        equal(host, _numbers(0), "After an event's synchronize what came before it is not done.")
        expect(event.query(), "An event has not happened after synchronize.")
        s.synchronize()
        expect(
            s.query(),
            "A stream has work after synchronize; a device whose events take time needs stream_query.",
        )


def _when(device: str, wait: Callable[[mica.Stream, mica.Event], None], what: str) -> None:
    """Work behind a backlog is done when `wait` returns, which waits for its stream or an event behind it."""
    _accelerator(device)
    s, event, host, [x] = mica.Stream(device), mica.Event(), host_memory(device, _COUNT), _on(device, 0)
    for backlog in backlogs(s):
        host.fill_(-1)
        with mica.stream(s):
            host.copy_(x, non_blocking=True)
            event.record(s)
        backlog.wait(lambda: wait(s, event))
        equal(host, _numbers(0), f"{what}, and what came before is not done.")


def _ask(query: Callable[[], bool]) -> None:
    """Asks until the answer is yes, for ten seconds at most."""
    end = time.perf_counter() + 10
    while not query():
        expect(time.perf_counter() < end, "A query still says after ten seconds that there is work left.")
        time.sleep(0.0005)


@check("streams")
def an_event_says_when_it_happened(device: str) -> None:
    """When an event's query says yes, what came before the event is done."""
    _when(device, lambda s, event: _ask(event.query), "An event says that it has happened")


@check("streams")
def a_stream_says_when_it_is_done(device: str) -> None:
    """When a stream's query says yes, its work is done."""
    _when(device, lambda s, event: _ask(s.query), "A stream says that it has no work left")


@check("streams")
def a_stream_is_waited_for(device: str) -> None:
    """After a stream's synchronize its work is done."""
    _when(device, lambda s, event: s.synchronize(), "A stream was waited for")


@check("streams")
def a_device_is_waited_for(device: str) -> None:
    """After synchronize of the device the work of a stream is done."""
    _when(device, lambda s, event: mica.synchronize(device), "The device was waited for")


@check("streams")
def time_between_events(device: str) -> None:
    """The time from one event to another is that of the work between them."""
    _accelerator(device)
    start, end = mica.Event(enable_timing=True), mica.Event(enable_timing=True)
    s, begin = mica.Stream(device), 0.0

    def started() -> None:
        nonlocal begin
        begin = time.perf_counter()
        start.record(s)

    for backlog in backlogs(s, started):
        end.record(s)
        backlog.lasts()
        end.synchronize()
        milliseconds, most = start.elapsed_time(end), (time.perf_counter() - begin) * 1000
        least = PAUSE * 500 if backlog.counts else 0  # half of what the backlog took at least
        expect(
            least <= milliseconds <= most * 1.1 + 1,
            f"The time is ({milliseconds}) ms; the host measured at least ({least}) and at most ({most}) ms.",
        )


@check("streams")
def many_streams_and_events(device: str) -> None:
    """A hundred events come and go on eight streams, dropped while work still waits for them."""
    _accelerator(device)
    streams = [mica.Stream(device) for _ in range(8)]
    a = _numbers(3, 4096)
    y = mica.from_numpy(a).to(device)
    for k in range(100):
        s = streams[k % 8]
        with mica.stream(s):
            s.wait_stream(streams[(k + 7) % 8])
            z = mica.empty([4096], device=device)
            z.copy_(y, non_blocking=True)
            z.record_stream(streams[(k + 1) % 8])
        y = z
    mica.synchronize(device)
    equal(y, a, "Values were lost on their way through the streams.")


@check("threads")
def eight_threads(device: str) -> None:
    """Eight threads, each with a stream of its own, copy and compute; every result is right."""
    failures: list[str] = []

    def work(k: int) -> None:
        try:
            a = _numbers(k, 10_000)
            stream = None if mica.device(device).type == "cpu" else mica.Stream(device)
            with mica.stream(stream):
                for _ in range(25):
                    x = mica.from_numpy(a).to(device)
                    y = (x + x) * 2
                    equal(y, a * 4, f"Thread ({k}) got another result.")
        except Exception as error:  # noqa: BLE001 - reported by the check
            failures.append(f"{type(error).__name__}: {error}")

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expect(not failures, failures[0] if failures else "")


def _devices(device: str) -> list[str]:
    """The names of this device and of another of its backend."""
    here = mica.device(device)
    others = [k for k in range(mica.device_count(here.type)) if k != (here.index or 0)]
    if here.type == "cpu" or not others:
        raise NotApplicable
    return [f"{here.type}:{here.index or 0}", f"{here.type}:{others[-1]}"]


def _squares_on(device: str) -> None:
    """On the device's default stream: kernels see the copy before them, and copies to the host the kernels."""
    y, first, second, *results = _on(device, 7, 0, 1, *range(2, 10))
    for k, backlog in enumerate(backlogs(mica.current_stream(device))):
        y.copy_((first, second)[k % 2], non_blocking=True)
        for z in results:
            mica.mul(y, y, out=z)
        backlog.lasts()
        for z in results:
            equal(z, _numbers(k % 2) ** 2, f"On ({device}) a kernel did not run behind the copy before it.")


@check("device")
def kernels_run_on_their_device(device: str) -> None:
    """A kernel runs in the default stream of its own device, on two devices in turn."""
    for each in _devices(device):
        _squares_on(each)


@check("threads")
def each_thread_has_its_device(device: str) -> None:
    """While another thread computes on another device, kernels stay in the default stream of their own."""
    here, there = _devices(device)
    done = threading.Event()

    def disturb() -> None:
        [x] = _on(there, 0)
        while not done.is_set():
            for _ in range(4):
                mica.mul(x, x, out=x)
            mica.synchronize(there)

    thread = threading.Thread(target=disturb)
    thread.start()
    try:
        _squares_on(here)
    finally:
        done.set()
        thread.join()


@check("copies")
def between_devices_in_order(device: str) -> None:
    """A copy from another device sees what a stream there wrote before, and is before what comes here later."""
    here, there = _devices(device)
    mine, theirs = mica.Stream(here), mica.Stream(there)
    y, z = _on(here, 7, 8)
    x, *sources = _on(there, 9, 0, 1)
    for k, backlog in enumerate(backlogs(theirs)):
        with mica.stream(mine), mica.stream(theirs):
            x.copy_(sources[k % 2], non_blocking=True)
            y.copy_(x, non_blocking=True)
            z.copy_(y, non_blocking=True)
        backlog.lasts()
        mine.synchronize()
        equal(z, _numbers(k % 2), "A copy between two devices was not in the order of their streams.")
