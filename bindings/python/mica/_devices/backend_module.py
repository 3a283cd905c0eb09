"""The functions that torch.cuda, torch.xpu and torch.mps share, made for one backend by name.

Each asks the plugin that provides the backend. Without it there is no device: queries answer
so, seeds and caches have nothing to do, and what needs a device raises RuntimeError.

In a docstring of a function, `mica.cuda` stands for the backend's module.
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import mica
from mica import _C, _devices
from mica._devices import backend_memory, backend_streams, graphs
from mica._devices.numbered import needed, numbered, present, python_name

_MAKERS = (__name__, graphs.__name__, backend_streams.__name__, backend_memory.__name__)
_LEGACY = ["Float", "Double", "Half", "BFloat16", "Long", "Int", "Short", "Char", "Byte", "Bool"]


def install(namespace: dict[str, Any], backend: str) -> None:
    """Puts the functions for `backend` into a module's namespace, where it has none of the name."""
    made = {**_devices_of(backend), **backend_memory.functions(backend), **_random_of(backend)}
    for name, value in made.items():
        if isinstance(value, (type(install), type)) and value.__module__ in _MAKERS:
            value.__module__ = namespace["__name__"]
            text = (value.__doc__ or "").replace("mica.cuda", f"mica.{python_name(backend)}")
            value.__doc__ = text.replace('"cuda"', f'"{backend}"')
        namespace.setdefault(name, value)
    namespace.setdefault("OutOfMemoryError", _C.OutOfMemoryError)
    namespace.setdefault("__getattr__", _late_names(namespace, backend))


def _late_names(namespace: dict[str, Any], backend: str) -> Any:
    """The module's __getattr__: what needs the device, or is rarely asked for."""

    def late(name: str) -> Any:
        if name == "default_generators":
            return tuple(_C._default_generator(f"{backend}:{i}") for i in range(_C._device_count(backend)))
        if name == "amp":
            from mica._devices import backend_amp

            namespace["amp"] = backend_amp.module(backend)
            return namespace["amp"]
        raise AttributeError(f"module '{namespace['__name__']}' has no attribute '{name}'")

    return late


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
        return present(backend)

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
        needed(backend)
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
        needed(backend)
        if isinstance(device, int) and device < 0:
            return
        _C._set_current_device(numbered(backend, device))

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
        needed(backend)
        unknown = {"architecture": "", "multiprocessors": 0, "warp_size": 0}
        found = {**unknown, **_devices.device_properties(numbered(backend, device))}
        found["major"], found["minor"] = (
            _C._device_attribute(numbered(backend, device), f"capability_{part}") or 0
            for part in ("major", "minor")
        )
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

    def get_device_attribute(key: str, device: Any = None) -> int:
        """Returns a number that describes a device, by a key that its plugin knows.

        Args:
            key (str): One that every plugin may know, "capability_major", or one of the vendor's, which begins with
                its name: "acme.cores".
            device (int, str or device, optional): The device that is meant. Default: None, the current one.

        Returns:
            int: The number.

        Raises:
            KeyError: The plugin does not know the key.
            RuntimeError: There is no such device.

        Example:
            >>> major = mica.cuda.is_available() and mica.cuda.get_device_attribute("capability_major")
        """
        needed(backend)
        place = numbered(backend, device)
        found = _C._device_attribute(place, key)
        if found is None:
            raise KeyError(
                f"The device ({place}) has no attribute of the key ({key}); its plugin knows which it has."
            )
        number: int = found
        return number

    def can_device_access_peer(device: Any, peer_device: Any) -> bool:
        """Returns whether kernels of one device can read the memory of another.

        As `torch.cuda.can_device_access_peer`. Copies between devices need no such access.

        Args:
            device (int, str or device): The device whose kernels read.
            peer_device (int, str or device): The device whose memory it is.

        Returns:
            bool: Whether they can; False also for one device twice, and where the plugin does not say.

        Raises:
            RuntimeError: There is no such device.

        Example:
            >>> both = mica.cuda.device_count() > 1 and mica.cuda.can_device_access_peer(0, 1)
        """
        needed(backend)
        return _C._can_access_peer(numbered(backend, device), numbered(backend, peer_device))

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
        needed(backend)
        _C._synchronize(numbered(backend, device))

    def fallback_counts() -> dict[str, int]:
        """Counts the calls that ran on the CPU since this backend had no kernel for them.

        `mica.fallback_counts` counts for all backends, and sets the counts to 0.

        Returns:
            dict of str to int: From each operator to its calls. Empty where there were none.

        Example:
            >>> mica.cuda.fallback_counts().get("mica::mm", 0)
            0
        """
        return _devices.fallback_counts().get(backend, {})

    def init() -> None:
        """Does nothing where there is a device, which starts at its first use.

        As `torch.cuda.init`.

        Raises:
            RuntimeError: There is no device.

        Example:
            >>> if mica.cuda.is_available():
            ...     mica.cuda.init()
        """
        needed(backend)

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
        return present(backend) and including_emulation

    def get_amp_supported_dtype() -> list[Any]:
        """Lists the dtypes that autocast computes in on the backend's devices.

        As torch asks the module of a backend of one's own.

        Returns:
            list of dtype: float16 and bfloat16.

        Example:
            >>> mica.float16 in mica.cuda.get_amp_supported_dtype()
            True
        """
        return [mica.float16, mica.bfloat16]

    def _is_in_bad_fork() -> bool:
        return False

    def _exchange_device(device: int) -> int:
        """Makes a device the current one; returns the number of that before. A negative number changes nothing."""
        before = current_device()
        set_device(device)
        return before

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

    made = {k: v for k, v in locals().items() if k != "backend"} | backend_streams.functions(backend)
    made |= graphs.functions(backend, needed, made)
    aliases = {"_lazy_init": init, "_maybe_exchange_device": _exchange_device, "is_initialized": is_available}
    return {**made, **aliases}


def _random_of(backend: str) -> dict[str, Any]:
    def generator(device: Any = None) -> Any:
        return _C._default_generator(str(numbered(backend, device)))

    def manual_seed(seed: int) -> None:
        """Seeds the generator of the current device.

        As `torch.cuda.manual_seed`. Without a device it does nothing. `mica.manual_seed()` seeds all devices.

        Args:
            seed (int): Any integer; the same one gives the same numbers again.

        Example:
            >>> mica.cuda.manual_seed(0)
        """
        if present(backend):
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
        if present(backend):
            generator().seed()

    def seed_all() -> None:
        """Seeds the generators of all devices with one random number from the operating system.

        As `torch.cuda.seed_all`. Without a device it does nothing.

        Example:
            >>> mica.cuda.seed_all()
        """
        if present(backend):
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
        needed(backend)
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
        needed(backend)
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
        needed(backend)
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
            if not present(backend):
                raise TypeError(
                    f"The type ({name}) needs a device of the backend '{backend}'; there is none."
                )
            return host(*args).to(numbered(backend, None))

    doc = f"The old name of {host._dtype} tensors on the backend {backend}: makes them, and answers isinstance()."
    attributes = {"_dtype": host._dtype, "__doc__": doc, "__module__": f"mica.{backend}"}
    return OnBackend(name, (), attributes)
