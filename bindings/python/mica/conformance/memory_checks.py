"""Checks of the caching allocator over a device's memory."""

from __future__ import annotations

import gc

import numpy as np

import mica
from mica.conformance.backlog import backlogs
from mica.conformance.runtime import NotApplicable, check, equal, expect, refused

_BLOCK = 8 << 20  # bytes


def _make(device: str, size: int = _BLOCK) -> mica.Tensor:
    return mica.empty([size], dtype=mica.uint8, device=device)


@check("memory")
def statistics(device: str) -> None:
    """Bytes in use rise and fall with a tensor, and the peak stays."""
    gc.collect()
    before = mica.memory_allocated(device)
    mica.reset_peak_memory_stats(device)
    x = _make(device)
    expect(mica.memory_allocated(device) - before >= _BLOCK, "A tensor's bytes are not in use.")
    expect(mica.memory_reserved(device) >= mica.memory_allocated(device), "More is in use than reserved.")
    del x
    expect(mica.memory_allocated(device) == before, "A dropped tensor's bytes are still in use.")
    expect(mica.max_memory_allocated(device) >= before + _BLOCK, "The peak does not hold the tensor.")


@check("memory")
def freed_blocks_are_used_again(device: str) -> None:
    """A tensor as large as one just dropped takes nothing from the device."""
    _make(device)
    reserved, hits = mica.memory_reserved(device), mica.memory_stats(device)["cache_hits"]
    for _ in range(10):
        _make(device)
    expect(mica.memory_reserved(device) == reserved, "More memory was taken from the device.")
    expect(mica.memory_stats(device)["cache_hits"] >= hits + 10, "The cache was not asked.")


@check("memory")
def empty_cache(device: str) -> None:
    """empty_cache gives idle memory back and leaves tensors alone."""
    a = np.arange(1 << 16, dtype="float32")
    kept = mica.from_numpy(a).to(device)
    _make(device)
    before = mica.memory_reserved(device)
    mica.empty_cache(device)
    expect(mica.memory_reserved(device) <= before - _BLOCK, "The idle block was not given back.")
    equal(kept, a, "A tensor that was in use changed.")


@check("memory")
def limit(device: str) -> None:
    """A request above the limit raises OutOfMemoryError that says device and size; idle memory is given back first."""
    mica.empty_cache(device)
    used = mica.memory_reserved(device)
    mica.set_memory_limit(used + 3 * _BLOCK, device)
    try:
        x = _make(device)
        refused(mica.OutOfMemoryError, lambda: _make(device, 16 * _BLOCK), str(mica.device(device).type))
        del x
        _make(device, 2 * _BLOCK)  # fits only when the idle block goes back
    finally:
        mica.set_memory_limit(0, device)
    _make(device, 4 * _BLOCK)


@check("memory")
def out_of_memory(device: str) -> None:
    """A request that no device can hold raises OutOfMemoryError, and the device goes on."""
    refused(mica.OutOfMemoryError, lambda: _make(device, 1 << 50), str(1 << 50))
    a = np.arange(100, dtype="float32")
    equal(mica.from_numpy(a).to(device), a, "After the error a copy gives other values.")


@check("memory")
def a_block_waits_for_other_streams(device: str) -> None:
    """Memory that was recorded on another stream is not written by its next owner too early."""
    if mica.device(device).type == "cpu":
        raise NotApplicable
    other, count = mica.Stream(device), 1 << 16
    y = mica.empty([count], device=device)
    for k, backlog in enumerate(backlogs(other)):
        a = np.full(count, float(k), "float32")
        x = mica.from_numpy(a).to(device)
        ready = mica.current_stream(device).record_event()
        with mica.stream(other):
            ready.wait(other)
            y.copy_(x, non_blocking=True)
        x.record_stream(other)
        del x
        mica.empty([count], device=device).copy_(mica.full([count], -1.0), non_blocking=True)
        backlog.lasts()
        other.synchronize()
        equal(y, a, f"In round ({k}) the block was written while another stream still read it.")


@check("memory")
def memory_goes_back(device: str) -> None:
    """The device has as much free memory as before when blocks were made and given back eight times."""
    mica.empty_cache(device)
    before = mica.device_properties(device)["free_memory"]
    if before < 0:
        raise NotApplicable
    for _ in range(8):
        _make(device, 4 * _BLOCK)
        mica.empty_cache(device)
    lost = before - mica.device_properties(device)["free_memory"]
    # Other programs may use the device meanwhile.
    expect(lost < 16 * _BLOCK, f"Of ({32 * _BLOCK}) bytes that were given back ({lost}) are not free again.")


@check("memory")
def nothing_leaks(device: str) -> None:
    """After a hundred rounds of copies and operators as much is in use as before."""
    a = np.arange(1000, dtype="float32")

    def round_trip() -> None:
        x = mica.from_numpy(a).to(device)
        (x.t() + x).to("cpu")

    round_trip()
    gc.collect()
    before = mica.memory_allocated(device)
    for _ in range(100):
        round_trip()
    gc.collect()
    expect(mica.memory_allocated(device) <= before, "More bytes are in use than before.")
