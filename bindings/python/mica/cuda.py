"""mica.cuda: the devices of the backend "cuda". Programs ask before they use one."""

from __future__ import annotations

from mica import _C
from mica._devices import (
    Event as Event,
    Stream as Stream,
    current_stream as current_stream,
    stream as stream,
)


class CUDAGraph:
    """Recorded work of a stream. No device records yet, and making one says so."""

    def __init__(self, keep_graph: bool = False) -> None:
        raise NotImplementedError(
            "Work of a stream cannot be recorded: the host does not drive `capture_begin` of the device "
            "table, which is reserved; run the work each time, as without a graph."
        )


def is_available() -> bool:
    """Whether a plugin provides the backend "cuda" and has a device."""
    return device_count() > 0


def device_count() -> int:
    """The number of devices; 0 without the plugin."""
    return _C._device_count("cuda")


def manual_seed(seed: int) -> None:
    """Seeds the current device's generator, where there is a device."""
    if is_available():
        _C._default_generator("cuda").manual_seed(seed)


manual_seed_all = manual_seed


def empty_cache() -> None:
    """Gives cached memory back, where there is a device."""
    if is_available():
        _C._empty_cache("cuda")


def synchronize() -> None:
    """Waits until all work is done, where there is a device."""
    if is_available():
        _C._synchronize("cuda")
