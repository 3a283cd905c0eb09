"""The functions that torch.cuda, torch.xpu and torch.mps share, made for one backend by name.

Each asks the plugin that provides the backend. Without it there is no device: queries answer
so, seeds and caches have nothing to do, and what needs a device raises RuntimeError.
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import mica
from mica import _C, _devices

_QUERIES = ("memory_allocated", "memory_reserved", "max_memory_allocated", "max_memory_reserved")
_LEGACY = ["Float", "Double", "Half", "BFloat16", "Long", "Int", "Short", "Char", "Byte", "Bool"]


def install(namespace: dict[str, Any], backend: str) -> None:
    """Puts the functions for `backend` into a module's namespace, where it has none of the name."""
    for name, value in _functions(backend).items():
        if isinstance(value, (type(install), type)) and value.__module__ == __name__:
            value.__module__ = namespace["__name__"]
        namespace.setdefault(name, value)


def _functions(backend: str) -> dict[str, Any]:
    return {**_devices_of(backend), **_memory_of(backend), **_random_of(backend)}


def _present(backend: str) -> bool:
    return _C._device_count(backend) > 0


class NoDeviceError(AssertionError, RuntimeError):
    """A backend is named that no plugin provides; both of the kinds that torch raises then."""


def _needed(backend: str) -> None:
    if not _present(backend):
        raise NoDeviceError(
            f"No plugin provides a device of the backend '{backend}'; mica.plugins() lists what is loaded."
        )


def _numbered(backend: str, device: Any) -> Any:
    """The device of a number, a string, a device or None (the current one)."""
    if isinstance(device, int):
        return _C.device(f"{backend}:{device}")
    if device is None:
        return _C.device(f"{backend}:{_current.get(backend, 0)}")
    return device if isinstance(device, _C.device) else _C.device(device)


_current: dict[str, int] = {}


def _devices_of(backend: str) -> dict[str, Any]:
    def is_available() -> bool:
        """Whether a plugin provides the backend and has a device."""
        return _present(backend)

    def device_count() -> int:
        """The number of devices; 0 without the plugin."""
        return _C._device_count(backend)

    def current_device() -> int:
        """The number of the device that is meant without one."""
        _needed(backend)
        return _current.get(backend, 0)

    def set_device(device: Any) -> None:
        """Makes a device the one that is meant without one."""
        _needed(backend)
        _current[backend] = _numbered(backend, device).index or 0

    def get_device_properties(device: Any = None) -> Any:
        """What the device says of itself, as attributes: name, total_memory, major, minor."""
        _needed(backend)
        found = {"major": 0, "minor": 0, **_devices.device_properties(_numbered(backend, device))}
        return namedtuple("DeviceProperties", list(found))(**found)  # noqa: PYI024

    def get_device_name(device: Any = None) -> str:
        """The device's name."""
        return str(get_device_properties(device).name)

    def get_device_capability(device: Any = None) -> tuple[int, int]:
        """The device's compute capability, (0, 0) where it has none."""
        found = get_device_properties(device)
        return (found.major, found.minor)

    def synchronize(device: Any = None) -> None:
        """Waits until all work is done."""
        _needed(backend)
        _C._synchronize(_numbered(backend, device))

    def init() -> None:
        """Devices start on first use; without one this raises."""
        _needed(backend)

    def is_bf16_supported(including_emulation: bool = True) -> bool:
        """Whether a device computes with bfloat16; every Mica device does, if by conversion."""
        return _present(backend) and including_emulation

    class device:
        """A block in which a device is the current one; -1 or None change nothing."""

        def __init__(self, device: Any) -> None:
            self.idx = (
                -1 if device is None else device if isinstance(device, int) else _C.device(device).index or 0
            )
            self.prev_idx = -1

        def __enter__(self) -> None:
            self.prev_idx = _current.get(backend, 0)
            if self.idx >= 0:
                set_device(self.idx)

        def __exit__(self, *exc: object) -> None:
            if self.idx >= 0:
                _current[backend] = self.prev_idx

    def device_of(obj: Any) -> Any:
        """A block in which the tensor's device is the current one."""
        return device(obj.device.index if obj.device.type == backend else -1)

    def default_stream(device: Any = None) -> Any:
        """The stream that work goes to unless another is made current."""
        _needed(backend)
        numbered = _numbered(backend, device)
        return made["Stream"]._of(numbered, _C._current_stream(numbered))

    def current_stream(device: Any = None) -> Any:
        """The stream that this thread's work goes to."""
        return default_stream(device)

    made = {k: v for k, v in locals().items() if k != "backend"} | _queues_of(backend)
    return {**made, "is_initialized": is_available, "StreamContext": _devices.StreamContext}


def _queues_of(backend: str) -> dict[str, Any]:
    class Event(_devices.Event):
        """A point in the work of a stream of the backend, for other streams and for this thread to wait for."""

        def __init__(
            self,
            enable_timing: bool = False,
            blocking: bool = False,
            interprocess: bool = False,
            external: bool = False,
        ) -> None:
            _needed(backend)
            if interprocess or external:
                raise NotImplementedError(
                    "Events belong to one process; leave out interprocess= and external=."
                )
            super().__init__(enable_timing)

    class Stream(_devices.Stream):
        """A queue of work of a device of the backend, in order."""

        _events = Event

        def __init__(self, device: Any = None, priority: int = 0) -> None:
            _needed(backend)
            super().__init__(_numbered(backend, device), priority)

    return {"Event": Event, "Stream": Stream, "stream": _devices.stream, "set_stream": _devices.set_stream}


def _memory_of(backend: str) -> dict[str, Any]:
    def query(name: str) -> Any:
        wanted = "memory_reserved" if name == "max_memory_reserved" else name

        def ask(device: Any = None) -> int:
            """Bytes; 0 where there is no device."""
            if not _present(backend):
                return 0
            return int(getattr(_devices, wanted)(_numbered(backend, device)))

        ask.__name__ = ask.__qualname__ = name
        return ask

    def empty_cache() -> None:
        """Gives cached memory back, where there is a device."""
        if _present(backend):
            _C._empty_cache(backend)

    def memory_stats(device: Any = None) -> dict[str, int]:
        """The caching allocator's counts; none where there is no device."""
        return _devices.memory_stats(_numbered(backend, device)) if _present(backend) else {}

    def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
        """memory_stats() as lines of text."""
        return "\n".join(f"{name}: {value}" for name, value in memory_stats(device).items())

    def mem_get_info(device: Any = None) -> tuple[int, int]:
        """Free and total bytes of the device."""
        _needed(backend)
        found = _devices.device_properties(_numbered(backend, device))
        return int(found["free_memory"]), int(found["total_memory"])

    def reset_peak_memory_stats(device: Any = None) -> None:
        """Begins the search for the most bytes in use anew."""
        if _present(backend):
            _devices.reset_peak_memory_stats(_numbered(backend, device))

    def ipc_collect() -> None:
        """Frees memory that other processes opened: none is."""
        _needed(backend)

    def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
        """Limits the memory taken from a device to a part of it."""
        if not 0 <= fraction <= 1:
            raise ValueError(f"The fraction ({fraction}) must be between 0 and 1.")
        total = mem_get_info(device)[1]
        _devices.set_memory_limit(int(fraction * total), _numbered(backend, device))

    made = {k: v for k, v in locals().items() if k not in ("backend", "query")}
    made.update({name: query(name) for name in _QUERIES})
    made["reset_max_memory_allocated"] = reset_peak_memory_stats
    made["memory_cached"] = made["memory_reserved"]
    return made


def _random_of(backend: str) -> dict[str, Any]:
    def manual_seed(seed: int) -> None:
        """Seeds the current device's generator, where there is a device."""
        if _present(backend):
            _C._default_generator(backend).manual_seed(seed)

    def seed() -> None:
        """Seeds the current device's generator from the system, where there is a device."""
        if _present(backend):
            _C._default_generator(backend).seed()

    def initial_seed() -> int:
        """The seed of the current device's generator."""
        _needed(backend)
        return int(_C._default_generator(backend).initial_seed())

    def get_rng_state(device: Any = backend) -> Any:
        """The state of a device's generator."""
        _needed(backend)
        return _C._default_generator(str(_numbered(backend, device))).get_state()

    def set_rng_state(new_state: Any, device: Any = backend) -> None:
        """Sets the state of a device's generator."""
        _needed(backend)
        _C._default_generator(str(_numbered(backend, device))).set_state(new_state)

    def get_rng_state_all() -> list[Any]:
        """The states of all devices' generators."""
        return [get_rng_state(i) for i in range(_C._device_count(backend))]

    def set_rng_state_all(new_states: Any) -> None:
        """Sets the states of all devices' generators."""
        for i, state in enumerate(new_states):
            set_rng_state(state, i)

    made = {k: v for k, v in locals().items() if k != "backend"}
    made["manual_seed_all"], made["seed_all"] = manual_seed, seed
    for kind in _LEGACY:
        made[f"{kind}Tensor"] = _legacy(f"{kind}Tensor", backend)
    return made


def _legacy(name: str, backend: str) -> Any:
    """The old type of a dtype on this backend: makes tensors there, answers isinstance by both."""
    host = getattr(mica, name)

    class OnBackend(type(host)):  # type: ignore[misc]
        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, host) and instance.device.type == backend  # type: ignore[attr-defined]

        def __call__(cls, *args: Any) -> Any:
            if not _present(backend):
                raise TypeError(
                    f"The type ({name}) needs a device of the backend '{backend}'; there is none."
                )
            return host(*args).to(_numbered(backend, None))

    return OnBackend(name, (), {"_dtype": host._dtype, "__module__": f"mica.{backend}"})
