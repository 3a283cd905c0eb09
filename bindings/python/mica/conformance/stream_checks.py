"""Checks of streams and events: order within a stream, order between streams, threads."""

from __future__ import annotations

import threading

import numpy as np

import mica
from mica.conformance.backlog import backlogs, host_memory
from mica.conformance.runtime import NotApplicable, check, equal, expect

_LARGE = 1 << 20


def _accelerator(device: str) -> None:
    if mica.device(device).type == "cpu":
        raise NotApplicable


def _numbers(seed: int, count: int = _LARGE) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 1 << 20, count).astype("float32")


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
    """The last of twenty copies into one tensor is the one that stays."""
    _accelerator(device)
    sources = [mica.from_numpy(_numbers(k)) for k in range(20)]
    y = mica.empty([_LARGE], device=device)
    with mica.stream(mica.Stream(device)) as s:
        s.wait_stream(mica.current_stream(device))
        for x in sources:
            y.copy_(x, non_blocking=True)
        s.synchronize()
    equal(y, sources[-1].numpy(), "An earlier copy of the stream was done after a later one.")


@check("streams")
def an_event_orders_two_streams(device: str) -> None:
    """A copy behind a backlog on one stream, an event, a read on another: the read sees the copy."""
    _accelerator(device)
    first, second = mica.Stream(device), mica.Stream(device)
    sources = [mica.from_numpy(_numbers(k)).to(device) for k in range(2)]
    y, z = mica.empty([_LARGE], device=device), mica.empty([_LARGE], device=device)
    mica.synchronize(device)
    for k, backlog in enumerate(backlogs(first)):
        with mica.stream(first):
            y.copy_(sources[k % 2], non_blocking=True)
            written = first.record_event()
        with mica.stream(second):
            written.wait(second)
            z.copy_(y, non_blocking=True)
        backlog.lasts()
        second.synchronize()
        equal(z, _numbers(k % 2), f"In round ({k}) the second stream read before the first had written.")


@check("streams")
def events_happen(device: str) -> None:
    """An event that was never recorded has happened; a recorded one has after synchronize, with all before it."""
    _accelerator(device)
    event = mica.Event()
    expect(event.query(), "An event that was never recorded has not happened.")
    s, x, back = mica.Stream(device), mica.from_numpy(_numbers(0)).to(device), host_memory(device, _LARGE)
    mica.synchronize(device)
    for backlog in backlogs(s):
        back.fill_(-1)
        with mica.stream(s):
            back.copy_(x, non_blocking=True)
            event.record(s)
        backlog.wait(event.synchronize)
        equal(back, _numbers(0), "After an event's synchronize what came before it is not done.")
        expect(event.query(), "An event has not happened after synchronize.")
        s.synchronize()
        expect(
            s.query(),
            "A stream has work after synchronize; a device whose events take time needs stream_query.",
        )


@check("streams")
def time_between_events(device: str) -> None:
    """The time from one event to a later one is not negative, and finite."""
    _accelerator(device)
    start, end = mica.Event(enable_timing=True), mica.Event(enable_timing=True)
    s = mica.current_stream(device)
    start.record(s)
    mica.from_numpy(_numbers(0)).to(device)
    end.record(s)
    end.synchronize()
    milliseconds = start.elapsed_time(end)
    expect(0 <= milliseconds < 60_000, f"The time is ({milliseconds}) ms.")


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
