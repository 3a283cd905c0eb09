"""mica.accelerator: the one device that a program means without naming it, which is the
first backend beside the CPU that is loaded. mica.cuda has the same for "cuda"."""

from __future__ import annotations

from typing import Any

from mica import _C
from mica._devices import (
    accelerators,
    empty_cache as empty_cache,
    fallback_counts as _fallback_counts,
    max_memory_allocated as max_memory_allocated,
    max_memory_reserved as max_memory_reserved,
    memory_allocated as memory_allocated,
    memory_reserved as memory_reserved,
    memory_stats as memory_stats,
    modules as _modules,
    reset_peak_memory_stats as reset_peak_memory_stats,
    set_stream as set_stream,
)
from mica._devices.graphs import Recorded as _Recorded


def set_device_index(device: Any, /) -> None:
    """Makes a device of the accelerator the one that is meant without a number.

    As `torch.accelerator.set_device_index`.

    Args:
        device (int, str or device): Its number or name.

    Raises:
        RuntimeError: There is no accelerator.

    Example:
        >>> if mica.accelerator.is_available():
        ...     mica.accelerator.set_device_index(0)
    """
    _functions().set_device(device)


def current_device_index() -> int:
    """Returns the number of the current device of the accelerator.

    As `torch.accelerator.current_device_index`.

    Returns:
        int: Its number, from 0 on.

    Raises:
        RuntimeError: There is no accelerator.

    Example:
        >>> mica.accelerator.current_device_index() if mica.accelerator.is_available() else 0
        0
    """
    return int(_functions().current_device())


current_device_idx, set_device_idx = current_device_index, set_device_index  # torch's older names


class device_index:
    """A block in which a device of the accelerator is the one that is meant without a number.

    As `torch.accelerator.device_index`.

    Args:
        device (int or None): Its number; None changes nothing.

    Raises:
        RuntimeError: On entering: there is no accelerator.

    Example:
        >>> with mica.accelerator.device_index(0 if mica.accelerator.is_available() else None):
        ...     x = mica.ones(2)
    """

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
    """Waits until a device of the accelerator has done all work that was given to it.

    As `torch.accelerator.synchronize`.

    Args:
        device (int, str or device, optional): The device that is meant. Default: None, the current one.

    Raises:
        RuntimeError: There is no such device.

    Example:
        >>> if mica.accelerator.is_available():
        ...     mica.accelerator.synchronize()
    """
    _functions().synchronize(device)


def current_stream(device: Any = None, /) -> Any:
    """Returns the stream that this thread's work on the accelerator goes to.

    As `torch.accelerator.current_stream`.

    Args:
        device (int, str or device, optional): The device that is meant. Default: None, the current one.

    Returns:
        Stream: The stream.

    Raises:
        RuntimeError: There is no such device.

    Example:
        >>> if mica.accelerator.is_available():
        ...     mica.accelerator.current_stream().synchronize()
    """
    return _functions().current_stream(device)


def fallback_counts() -> dict[str, int]:
    """Counts the calls that ran on the CPU since the current accelerator had no kernel for them.

    Returns:
        dict of str to int: From each operator to its calls. Empty where there were none.

    Example:
        >>> mica.accelerator.fallback_counts()
        {}
    """
    accelerator = current_accelerator()
    return {} if accelerator is None else _fallback_counts().get(accelerator.type, {})


def get_memory_info(device: Any = None, /) -> tuple[int, int]:
    """Returns the free and the total memory of a device of the accelerator, in bytes.

    As `torch.accelerator.get_memory_info`.

    Args:
        device (int, str or device, optional): The device that is meant. Default: None, the current one.

    Returns:
        tuple of 2 int: Free and total bytes; -1 if the device does not know.

    Raises:
        RuntimeError: There is no such device.

    Example:
        >>> if mica.accelerator.is_available():
        ...     free, total = mica.accelerator.get_memory_info()
    """
    found: tuple[int, int] = _functions().mem_get_info(device)
    return found


def empty_host_cache() -> None:
    """Gives idle pinned memory, which the accelerator reads and writes by itself, back to the host.

    As `torch.accelerator.empty_host_cache`. Without an accelerator it does nothing.

    Example:
        >>> mica.accelerator.empty_host_cache()
    """
    for backend in accelerators():
        _C._empty_pinned_cache(_C.device(backend))


def reset_accumulated_memory_stats(device: Any = None, /) -> None:
    """Makes the numbers of `memory_stats()` that only grow count from 0: "allocated", "freed" and "num_...".

    As `torch.accelerator.reset_accumulated_memory_stats`.

    Args:
        device (int, str or device, optional): The device that is meant. Default: None, the current one.

    Raises:
        RuntimeError: There is no such device.

    Example:
        >>> if mica.accelerator.is_available():
        ...     mica.accelerator.reset_accumulated_memory_stats()
    """
    _functions().reset_accumulated_memory_stats(device)


class Graph(_Recorded):
    """Work of the accelerator's current stream that is recorded once and run again with one call.

    As `torch.accelerator.Graph`. As a context manager it records its block; if that raises, the graph stays empty.
    `mica.cuda.CUDAGraph` says what a recording keeps.

    Args:
        keep_graph (bool): Kept as an attribute: a recording is ready when it ends. Default: False.
        pool (tuple of 2 int, optional): Memory to share, another graph's `pool()`. Default: None.
        capture_error_mode (str): "default", "global", "thread_local" or "relaxed". Default: "default".

    Raises:
        RuntimeError: On recording: there is no accelerator, or its current stream is the default one.

    Example:
        >>> if mica.accelerator.is_available():
        ...     x, graph = mica.ones(2, device=mica.accelerator.current_accelerator()), mica.accelerator.Graph()
        ...     with mica.stream(mica.Stream(x.device)), graph:
        ...         x += 1
        ...     graph.replay()
    """

    def __init__(
        self,
        keep_graph: bool = False,
        *,
        pool: tuple[int, int] | None = None,
        capture_error_mode: str = "default",
    ) -> None:
        super().__init__()
        self.keep_graph, self.graph_pool, self.capture_error_mode = keep_graph, pool, capture_error_mode

    def _stream(self) -> Any:
        return current_stream()

    def capture_begin(self) -> None:
        """Begins to record what this thread calls on the accelerator's current stream."""
        mode = self.capture_error_mode
        self._begin(self.graph_pool, "global" if mode == "default" else mode)

    def __enter__(self) -> None:
        synchronize()
        empty_cache(self._stream().device)
        self.capture_begin()

    def __exit__(self, kind: Any, *rest: object) -> None:
        if kind is None:
            self.capture_end()
        else:
            self._abandon()


def _functions() -> Any:
    accelerator = current_accelerator()
    if accelerator is None:
        raise RuntimeError("No plugin provides an accelerator; mica.plugins() lists what is loaded.")
    return _modules.of(accelerator.type)


def current_accelerator(check_available: bool = False) -> Any:
    """Returns the accelerator that a program means without naming one: the first backend beside the CPU that is loaded.

    As `torch.accelerator.current_accelerator`.

    Args:
        check_available (bool): Only a backend that has a device counts. Default: False.

    Returns:
        device or None: Its device without a number; None if there is no accelerator.

    Example:
        >>> device = mica.accelerator.current_accelerator(check_available=True) or mica.device("cpu")
    """
    names = [n for n in accelerators() if not check_available or _C._device_count(n)]
    return _C.device(names[0]) if names else None


def is_available() -> bool:
    """Returns whether there is an accelerator with a device.

    As `torch.accelerator.is_available`.

    Returns:
        bool: Whether there is one.

    Example:
        >>> mica.accelerator.is_available() == (mica.accelerator.device_count() > 0)
        True
    """
    return any(_C._device_count(name) for name in accelerators())


def device_count() -> int:
    """Counts the devices of the accelerator.

    As `torch.accelerator.device_count`.

    Returns:
        int: How many there are; 0 without an accelerator.

    Example:
        >>> mica.accelerator.device_count() >= 0
        True
    """
    accelerator = current_accelerator()
    return _C._device_count(accelerator.type) if accelerator is not None else 0
