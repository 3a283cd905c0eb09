"""mica.accelerator: the one device that a program means without naming it, which is the
first backend beside the CPU that is loaded. mica.cuda has the same for "cuda"."""

from __future__ import annotations

from typing import Any

from mica import _C
from mica._devices import (
    accelerators,
    current_stream as current_stream,
    empty_cache as empty_cache,
    max_memory_allocated as max_memory_allocated,
    memory_allocated as memory_allocated,
    memory_reserved as memory_reserved,
    memory_stats as memory_stats,
    reset_peak_memory_stats as reset_peak_memory_stats,
    set_stream as set_stream,
    synchronize as synchronize,
)


def current_accelerator(check_available: bool = False) -> Any:
    """The backend's device, without a number; None if there is none."""
    names = [n for n in accelerators() if not check_available or _C._device_count(n)]
    return _C.device(names[0]) if names else None


def is_available() -> bool:
    """Whether there is an accelerator with a device."""
    return any(_C._device_count(name) for name in accelerators())


def device_count() -> int:
    """The number of devices of the accelerator; 0 without one."""
    accelerator = current_accelerator()
    return _C._device_count(accelerator.type) if accelerator is not None else 0
