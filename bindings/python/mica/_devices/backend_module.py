"""The functions that torch.cuda, torch.xpu and torch.mps share, made for one backend by name.

Each asks the plugin that provides the backend. Without it there is no device: queries answer
so, seeds and caches have nothing to do, and what needs a device raises RuntimeError.

In a docstring of a function, `mica.cuda` stands for the backend's module.
"""

from __future__ import annotations

import re
from collections import namedtuple
from typing import Any

import mica
from mica import _C, _devices
from mica._devices import graphs

_QUERIES = {  # and what each says
    "memory_allocated": "Returns how many bytes the tensors of a device use.",
    "memory_reserved": "Returns how many bytes the program has taken from a device, idle ones included.",
    "max_memory_allocated": "Returns how many bytes the tensors of a device used at most.",
    "max_memory_reserved": "Returns what `memory_reserved()` returns, since no maximum of it is kept.",
}
_LEGACY = ["Float", "Double", "Half", "BFloat16", "Long", "Int", "Short", "Char", "Byte", "Bool"]


def install(namespace: dict[str, Any], backend: str) -> None:
    """Puts the functions for `backend` into a module's namespace, where it has none of the name."""
    for name, value in functions(backend).items():
        if isinstance(value, (type(install), type)) and value.__module__ in (__name__, graphs.__name__):
            value.__module__ = namespace["__name__"]
            value.__doc__ = (value.__doc__ or "").replace("mica.cuda", f"mica.{backend}")
        namespace.setdefault(name, value)


def functions(backend: str) -> dict[str, Any]:
    """The functions and classes for a backend, by name."""
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
    """The device of a number, a name or a device; the current one where no number is given."""
    if device is None:
        device = _C._current_device_number(backend)
    if isinstance(device, int):
        return _C.device(f"{backend}:{device}")
    named = device if isinstance(device, _C.device) else _C.device(device)
    return _numbered(backend, None) if named.type == backend and named.index is None else named


def _devices_of(backend: str) -> dict[str, Any]:
    def is_available() -> bool:
        """Returns whether the backend has a device: programs ask before they use one.

        As `torch.cuda.is_available`.

        Returns:
            bool: Whether a plugin provides the backend and has found a device.

        Example:
            >>> device = "cuda" if mica.cuda.is_available() else "cpu"
            >>> mica.ones(2, device=device).sum().item()
            2.0
        """
        return _present(backend)

    def device_count() -> int:
        """Counts the backend's devices.

        As `torch.cuda.device_count`.

        Returns:
            int: How many there are; 0 without the backend's plugin.

        Example:
            >>> mica.cuda.device_count() > 0 or not mica.cuda.is_available()
            True
        """
        return _C._device_count(backend)

    def current_device() -> int:
        """Returns the number of the current device: the one that is meant where a program names none.

        As `torch.cuda.current_device`.

        Returns:
            int: Its number, from 0 on.

        Raises:
            RuntimeError: There is no device.

        Example:
            >>> mica.cuda.current_device() if mica.cuda.is_available() else 0
            0
        """
        _needed(backend)
        return _C._current_device_number(backend)

    def set_device(device: Any) -> None:
        """Makes a device the one that this thread means by "cuda" without a number.

        As `torch.cuda.set_device`; better name devices ("cuda:1") or use `with mica.cuda.device(1):`.

        Args:
            device (int, str or device): Its number or name.

        Raises:
            RuntimeError: There is no such device.
            ValueError: It is one of another backend.

        Example:
            >>> if mica.cuda.is_available():
            ...     mica.cuda.set_device(0)
        """
        _needed(backend)
        numbered = _numbered(backend, device)
        if numbered.type != backend:
            raise ValueError(
                f"mica.{backend}.set_device() gets the device ({numbered}), which is none of its own."
            )
        _C._set_current_device(numbered)

    def get_device_properties(device: Any = None) -> Any:
        """Returns the properties of a device: its name, its memory, and what the plugin adds.

        As `torch.cuda.get_device_properties`, with the attributes that Mica's plugins know.

        Args:
            device (int, str or device, optional): The device that is meant. Default: None, the current one.

        Returns:
            DeviceProperties: A named tuple with `name`, `total_memory` and `free_memory` in bytes (-1 if
            unknown), `architecture` ("sm_90"), `major` and `minor` of its compute capability,
            `multi_processor_count`, `warp_size` and what the plugin adds (0 and "" if unknown).

        Raises:
            RuntimeError: There is no such device.

        Example:
            >>> if mica.cuda.is_available():
            ...     gibibytes = mica.cuda.get_device_properties(0).total_memory / 2**30
        """
        _needed(backend)
        unknown = {"architecture": "", "multiprocessors": 0, "warp_size": 0}
        found = {**unknown, **_devices.device_properties(_numbered(backend, device))}
        number = re.fullmatch(r"sm_(\d+)(\d)[a-z]?", found["architecture"])
        found["major"], found["minor"] = map(int, number.groups()) if number else (0, 0)
        found["multi_processor_count"] = found.pop("multiprocessors")
        return namedtuple("DeviceProperties", list(found))(**found)  # noqa: PYI024

    def get_device_name(device: Any = None) -> str:
        """Returns the name of a device.

        As `torch.cuda.get_device_name`.

        Args:
            device (int, str or device, optional): The device that is meant. Default: None, the current one.

        Returns:
            str: The name that the vendor's driver gives.

        Raises:
            RuntimeError: There is no such device.

        Example:
            >>> name = mica.cuda.get_device_name() if mica.cuda.is_available() else "no device"
        """
        return str(get_device_properties(device).name)

    def get_device_capability(device: Any = None) -> tuple[int, int]:
        """Returns the compute capability of a device.

        As `torch.cuda.get_device_capability`.

        Args:
            device (int, str or device, optional): The device that is meant. Default: None, the current one.

        Returns:
            tuple of 2 int: Major and minor number; `(0, 0)` if the device has no such thing.

        Raises:
            RuntimeError: There is no such device.

        Example:
            >>> recent = mica.cuda.is_available() and mica.cuda.get_device_capability() >= (8, 0)
        """
        found = get_device_properties(device)
        return (found.major, found.minor)

    def synchronize(device: Any = None) -> None:
        """Waits until a device has done all work that was given to it.

        As `torch.cuda.synchronize`. Operators return before a device has computed; wait before you read a clock.

        Args:
            device (int, str or device, optional): The device that is meant. Default: None, the current one.

        Raises:
            RuntimeError: There is no such device.

        Example:
            >>> if mica.cuda.is_available():
            ...     mica.cuda.synchronize()
        """
        _needed(backend)
        _C._synchronize(_numbered(backend, device))

    def init() -> None:
        """Does nothing where there is a device, which starts at its first use.

        As `torch.cuda.init`.

        Raises:
            RuntimeError: There is no device.

        Example:
            >>> if mica.cuda.is_available():
            ...     mica.cuda.init()
        """
        _needed(backend)

    def is_bf16_supported(including_emulation: bool = True) -> bool:
        """Returns whether bfloat16 works, by conversion at least.

        As `torch.cuda.is_bf16_supported`, but whether a device computes with bfloat16 itself is not known: False
        whenever `including_emulation` is False.

        Args:
            including_emulation (bool): Counts computation by conversion, which every device does. Default: True.

        Returns:
            bool: True if there is a device and emulation counts.

        Example:
            >>> mica.cuda.is_bf16_supported() == mica.cuda.is_available()
            True
        """
        return _present(backend) and including_emulation

    class device:
        """A block in which a device is the one that `mica.cuda` means without a number.

        As `torch.cuda.device`.

        Args:
            device (int, str, device or None): Its number or name; None or a negative number changes nothing.

        Raises:
            RuntimeError: On entering: there is no device.

        Example:
            >>> with mica.cuda.device(0 if mica.cuda.is_available() else None):
            ...     x = mica.ones(2)
        """

        def __init__(self, device: Any) -> None:
            self.idx = (
                -1 if device is None else device if isinstance(device, int) else _C.device(device).index or 0
            )
            self.prev_idx = -1

        def __enter__(self) -> None:
            self.prev_idx = _C._current_device_number(backend)
            if self.idx >= 0:
                set_device(self.idx)

        def __exit__(self, *exc: object) -> None:
            if self.idx >= 0:
                set_device(self.prev_idx)

    def device_of(obj: Any) -> Any:
        """A block in which a tensor's device is the one that `mica.cuda` means without a number.

        As `torch.cuda.device_of`.

        Args:
            obj (Tensor): A tensor; one of another backend changes nothing.

        Returns:
            device: The context manager.

        Example:
            >>> with mica.cuda.device_of(mica.ones(2)):
            ...     pass
        """
        return device(obj.device.index if obj.device.type == backend else -1)

    def default_stream(device: Any = None) -> Any:
        """Returns the stream that a device's work goes to.

        As `torch.cuda.default_stream`, but inside `with mica.cuda.stream(s):` it is `s`.

        Args:
            device (int, str or device, optional): The device that is meant. Default: None, the current one.

        Returns:
            Stream: The stream.

        Raises:
            RuntimeError: There is no such device.

        Example:
            >>> if mica.cuda.is_available():
            ...     mica.cuda.default_stream().synchronize()
        """
        _needed(backend)
        numbered = _numbered(backend, device)
        return made["Stream"]._of(numbered, _C._current_stream(numbered))

    def current_stream(device: Any = None) -> Any:
        """Returns the stream that this thread's work on a device goes to.

        As `torch.cuda.current_stream`.

        Args:
            device (int, str or device, optional): The device that is meant. Default: None, the current one.

        Returns:
            Stream: The stream.

        Raises:
            RuntimeError: There is no such device.

        Example:
            >>> if mica.cuda.is_available():
            ...     mica.cuda.current_stream().synchronize()
        """
        return default_stream(device)

    made = {k: v for k, v in locals().items() if k != "backend"} | _queues_of(backend)
    made |= graphs.functions(backend, _needed, made)
    return {**made, "is_initialized": is_available, "StreamContext": _devices.StreamContext}


def _queues_of(backend: str) -> dict[str, Any]:
    class Event(_devices.Event):
        """A point in the work of a stream, for other streams and for this thread to wait for.

        As `torch.cuda.Event`.

        Args:
            enable_timing (bool): Kept as an attribute: every event is timed where the device can. Default: False.
            blocking (bool): Ignored. Default: False.
            interprocess (bool): Must be False. Default: False.
            external (bool): Must be False. Default: False.

        Raises:
            RuntimeError: There is no device.
            NotImplementedError: `interprocess` or `external` is true.

        Example:
            >>> if mica.cuda.is_available():
            ...     start, end = mica.cuda.Event(enable_timing=True), mica.cuda.Event(enable_timing=True)
            ...     start.record()
            ...     product = mica.ones(64, 64, device="cuda") @ mica.ones(64, 64, device="cuda")
            ...     end.record()
            ...     end.synchronize()
            ...     milliseconds = start.elapsed_time(end)
        """

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
        """A queue of work of one device, done in order. Two streams run independently.

        As `torch.cuda.Stream`.

        Args:
            device (int, str or device, optional): The device that is meant. Default: None, the current one.
            priority (int): Handed to the plugin; torch means that lower numbers go first. Default: 0.

        Raises:
            RuntimeError: There is no such device.

        Example:
            >>> if mica.cuda.is_available():
            ...     side = mica.cuda.Stream()
            ...     with mica.cuda.stream(side):
            ...         x = mica.ones(2, device="cuda")
            ...     mica.cuda.current_stream().wait_stream(side)
        """

        _events = Event

        def __init__(self, device: Any = None, priority: int = 0) -> None:
            _needed(backend)
            super().__init__(_numbered(backend, device), priority)

    return {"Event": Event, "Stream": Stream, "stream": _devices.stream, "set_stream": _devices.set_stream}


def _memory_of(backend: str) -> dict[str, Any]:
    def query(name: str) -> Any:
        wanted = "memory_reserved" if name == "max_memory_reserved" else name

        def ask(device: Any = None) -> int:
            """WHAT

            As `torch.cuda.NAME`.

            Args:
                device (int, str or device, optional): The device that is meant. Default: None, the current one.

            Returns:
                int: Bytes; 0 where there is no device.

            Example:
                >>> mica.cuda.NAME() >= 0
                True
            """
            if not _present(backend):
                return 0
            return int(getattr(_devices, wanted)(_numbered(backend, device)))

        ask.__name__ = ask.__qualname__ = name
        ask.__doc__ = (ask.__doc__ or "").replace("WHAT", _QUERIES[name]).replace("NAME", name)
        return ask

    def empty_cache() -> None:
        """Gives idle memory that the caching allocator keeps back to the devices, for other programs.

        As `torch.cuda.empty_cache`. Without a device it does nothing.

        Example:
            >>> mica.cuda.empty_cache()
        """
        if _present(backend):
            _C._empty_cache(backend)

    def memory_stats(device: Any = None) -> dict[str, int]:
        """Returns what a device's caching allocator holds, in bytes, and how many requests it has met.

        As `torch.cuda.memory_stats`, with Mica's names.

        Args:
            device (int, str or device, optional): The device that is meant. Default: None, the current one.

        Returns:
            dict of str to int: Bytes: "bytes_in_use", "bytes_reserved" (idle ones included) and
            "peak_bytes_in_use"; requests: "allocations" and those met without the device, "cache_hits".
            Empty where there is no device.

        Example:
            >>> in_use = mica.cuda.memory_stats().get("bytes_in_use", 0)
        """
        return _devices.memory_stats(_numbered(backend, device)) if _present(backend) else {}

    def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
        """Writes `memory_stats()` as text, a line for each number.

        As `torch.cuda.memory_summary`, in a plainer form.

        Args:
            device (int, str or device, optional): The device that is meant. Default: None, the current one.
            abbreviated (bool): Ignored. Default: False.

        Returns:
            str: The lines; "" where there is no device.

        Example:
            >>> text = mica.cuda.memory_summary()
        """
        return "\n".join(f"{name}: {value}" for name, value in memory_stats(device).items())

    def mem_get_info(device: Any = None) -> tuple[int, int]:
        """Returns the free and the total memory of a device, in bytes.

        As `torch.cuda.mem_get_info`.

        Args:
            device (int, str or device, optional): The device that is meant. Default: None, the current one.

        Returns:
            tuple of 2 int: Free and total bytes; -1 if the device does not know.

        Raises:
            RuntimeError: There is no such device.

        Example:
            >>> if mica.cuda.is_available():
            ...     free, total = mica.cuda.mem_get_info()
        """
        _needed(backend)
        found = _devices.device_properties(_numbered(backend, device))
        return int(found["free_memory"]), int(found["total_memory"])

    def reset_peak_memory_stats(device: Any = None) -> None:
        """Makes `max_memory_allocated()` count from now on.

        As `torch.cuda.reset_peak_memory_stats`. Without a device it does nothing. Also called
        `reset_max_memory_allocated`.

        Args:
            device (int, str or device, optional): The device that is meant. Default: None, the current one.

        Example:
            >>> mica.cuda.reset_peak_memory_stats()
        """
        if _present(backend):
            _devices.reset_peak_memory_stats(_numbered(backend, device))

    def ipc_collect() -> None:
        """Does nothing where there is a device: Mica's processes share no memory of devices.

        As `torch.cuda.ipc_collect`.

        Raises:
            RuntimeError: There is no device.

        Example:
            >>> if mica.cuda.is_available():
            ...     mica.cuda.ipc_collect()
        """
        _needed(backend)

    def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
        """Limits the memory that this process takes from a device.

        As `torch.cuda.set_per_process_memory_fraction`. Beyond the limit, making a tensor raises
        `mica.OutOfMemoryError`.

        Args:
            fraction (float): Of the device's memory, in [0, 1].
            device (int, str or device, optional): The device that is meant. Default: None, the current one.

        Raises:
            ValueError: The fraction is not in [0, 1].
            RuntimeError: There is no such device.

        Example:
            >>> if mica.cuda.is_available():
            ...     mica.cuda.set_per_process_memory_fraction(0.9)
        """
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
    def generator(device: Any = None) -> Any:
        return _C._default_generator(str(_numbered(backend, device)))

    def manual_seed(seed: int) -> None:
        """Seeds the generator of the current device.

        As `torch.cuda.manual_seed`. Without a device it does nothing. `mica.manual_seed()` seeds all devices.

        Args:
            seed (int): Any integer; the same one gives the same numbers again.

        Example:
            >>> mica.cuda.manual_seed(0)
        """
        if _present(backend):
            generator().manual_seed(seed)

    def manual_seed_all(seed: int) -> None:
        """Seeds the generators of all devices.

        As `torch.cuda.manual_seed_all`. Without a device it does nothing.

        Args:
            seed (int): Any integer; the same one gives the same numbers again.

        Example:
            >>> mica.cuda.manual_seed_all(0)
        """
        for i in range(_C._device_count(backend)):
            generator(i).manual_seed(seed)

    def seed() -> None:
        """Seeds the generator of the current device with a random number from the operating system.

        As `torch.cuda.seed`. Without a device it does nothing.

        Example:
            >>> mica.cuda.seed()
        """
        if _present(backend):
            generator().seed()

    def seed_all() -> None:
        """Seeds the generators of all devices with one random number from the operating system.

        As `torch.cuda.seed_all`. Without a device it does nothing.

        Example:
            >>> mica.cuda.seed_all()
        """
        if _present(backend):
            manual_seed_all(generator(0).seed())

    def initial_seed() -> int:
        """Returns the seed that the generator of the current device was last given.

        As `torch.cuda.initial_seed`.

        Returns:
            int: The seed.

        Raises:
            RuntimeError: There is no device.

        Example:
            >>> mica.cuda.manual_seed(7)
            >>> mica.cuda.initial_seed() if mica.cuda.is_available() else 7
            7
        """
        _needed(backend)
        return int(generator().initial_seed())

    def get_rng_state(device: Any = backend) -> Any:
        """Reads the state of a device's generator, to go on from later.

        As `torch.cuda.get_rng_state`.

        Args:
            device (int, str or device): The device. Default: the current one.

        Returns:
            Tensor: The state, uint8, on the CPU.

        Raises:
            RuntimeError: There is no such device.

        Example:
            >>> if mica.cuda.is_available():
            ...     state = mica.cuda.get_rng_state()
            ...     mica.cuda.set_rng_state(state)
        """
        _needed(backend)
        return generator(device).get_state()

    def set_rng_state(new_state: Any, device: Any = backend) -> None:
        """Sets the state of a device's generator.

        As `torch.cuda.set_rng_state`.

        Args:
            new_state (Tensor): What `get_rng_state()` returned.
            device (int, str or device): The device. Default: the current one.

        Raises:
            RuntimeError: There is no such device.

        Example:
            >>> if mica.cuda.is_available():
            ...     mica.cuda.set_rng_state(mica.cuda.get_rng_state())
        """
        _needed(backend)
        generator(device).set_state(new_state)

    def get_rng_state_all() -> list[Any]:
        """Reads the states of the generators of all devices.

        As `torch.cuda.get_rng_state_all`.

        Returns:
            list of Tensor: For `set_rng_state_all()`; one for each device, none without a device.

        Example:
            >>> len(mica.cuda.get_rng_state_all()) == mica.cuda.device_count()
            True
        """
        return [get_rng_state(i) for i in range(_C._device_count(backend))]

    def set_rng_state_all(new_states: Any) -> None:
        """Sets the states of the generators of all devices.

        As `torch.cuda.set_rng_state_all`.

        Args:
            new_states (iterable of Tensor): What `get_rng_state_all()` returned.

        Example:
            >>> mica.cuda.set_rng_state_all(mica.cuda.get_rng_state_all())
        """
        for i, state in enumerate(new_states):
            set_rng_state(state, i)

    made = {k: v for k, v in locals().items() if k not in ("backend", "generator")}
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

    doc = f"The old name of {host._dtype} tensors on the backend {backend}: makes them, and answers isinstance()."
    attributes = {"_dtype": host._dtype, "__doc__": doc, "__module__": f"mica.{backend}"}
    return OnBackend(name, (), attributes)
