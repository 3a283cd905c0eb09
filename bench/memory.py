"""Peak memory of one call, in Mica and in torch: bytes in use beyond what was before it.

Mica's allocator counts blocks handed out, tensor objects included, so a small result costs some
hundred bytes. Of blocks up to 32 KB it sees those that live when the call ends, or when a thread's
own lists run out, not those that come and go between; what the lists take at once may count up to
64 KB. Torch's profiler reports each allocation of its CPU allocator, data alone. The result is
alive at the peak in both.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any

Thunk = Callable[[], Any]


def mica_peak(call: Thunk) -> int:
    """Bytes at the peak of a call of Mica."""
    import mica

    call()  # what is made once is made
    mica.reset_peak_memory_stats("cpu")
    before = mica.memory_stats("cpu")["bytes_in_use"]
    result = call()
    peak = mica.memory_stats("cpu")["peak_bytes_in_use"]
    del result
    return int(peak - before)


def torch_peak(call: Thunk) -> int:
    """Bytes at the peak of a call of torch."""
    from torch.profiler import ProfilerActivity, profile

    call()
    with _silent(), profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
        result = call()
    del result
    events = profiled.profiler.kineto_results.events()
    changes = sorted((e.start_ns(), e.nbytes()) for e in events if e.name() == "[memory]")
    now = peak = 0
    for _, change in changes:
        now += change
        peak = max(peak, now)
    return peak


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    """Without the profiler's own lines on the error stream."""
    kept, null = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(null)


def text(peak: int) -> str:
    """ "4.2 MB", for a table."""
    for unit, size in (("MB", 1 << 20), ("KB", 1 << 10)):
        if peak >= size:
            return f"{peak / size:.1f} {unit}"
    return f"{peak} B"
