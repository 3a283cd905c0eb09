"""mica.accelerator: the one device that a program means without naming it, which is the
first backend beside the CPU that is loaded. mica.cuda has the same for "cuda"."""

from __future__ import annotations

import importlib
from typing import Any

from mica import _C
from mica._devices import (
    accelerators,
    empty_cache as empty_cache,
    max_memory_allocated as max_memory_allocated,
    memory_allocated as memory_allocated,
    memory_reserved as memory_reserved,
    memory_stats as memory_stats,
    reset_peak_memory_stats as reset_peak_memory_stats,
    set_stream as set_stream,
)


def set_device_index(device: Any, /) -> None:
    """Makes a device of the accelerator, by number or name, the one that is meant without a number."""
    _functions().set_device(device)


def current_device_index() -> int:
    """The number of the device that is meant without one."""
    return int(_functions().current_device())


class device_index:
    """A block in which the device of this number is the current one; None changes nothing."""

    def __init__(self, device: int | None, /) -> None:
        self.idx = device
        self._before: int | None = None

    def __enter__(self) -> None:
        if self.idx is not None:
            self._before = current_device_index()
            set_device_index(self.idx)

    def __exit__(self, *exception: object) -> None:
        if self._before is not None:
            set_device_index(self._before)


def synchronize(device: Any = None, /) -> None:
    """Waits until all work of the accelerator's device is done."""
    _functions().synchronize(device)


def current_stream(device: Any = None, /) -> Any:
    """The stream of the accelerator's device that this thread's work goes to."""
    return _functions().current_stream(device)


def _functions() -> Any:
    accelerator = current_accelerator()
    if accelerator is None:
        raise RuntimeError("No plugin provides an accelerator; mica.plugins() lists what is loaded.")
    return importlib.import_module(f"mica.{accelerator.type}")


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
