"""Devices by name: how many there are, their streams and events, their memory, and
what falls back to the CPU. A device is "acme.npu:0", a mica.device or a number; None
says the current default device, or the first accelerator where that is the CPU."""

from __future__ import annotations

import atexit
import os

from mica import _C
from mica._C import Tensor

TYPE_CHECKING = False  # importing typing takes as long as all of mica
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "Event",
    "Stream",
    "StreamContext",
    "current_stream",
    "device_count",
    "device_properties",
    "empty_cache",
    "fallback_counts",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "reset_peak_memory_stats",
    "set_fallback",
    "set_memory_limit",
    "set_stream",
    "stream",
    "synchronize",
]


def reserve(*names: str) -> None:
    """Makes these names of backends known without a plugin, as programs of torch spell them."""
    for name in names:
        if name not in _C._backend_names():
            _C._register_backend_name(name)


def accelerators() -> list[str]:
    """Lists the backends beside the CPU that have a device. Plugins that were found are opened.

    Returns:
        list of str: Their names: that of `utils.rename_privateuse1_backend()`, then in the order of their loading.

    Example:
        >>> "cpu" in mica.accelerator.accelerators()
        False
    """
    names: list[str] = _C._accelerators(True)
    return names


def _device(device: Any) -> Any:
    """The device that is meant, with its number."""
    if device is None:
        default = _C._default_device()
        names = _C._accelerators(False)
        device = default if default.type != "cpu" or not names else names[0]
    found = device if isinstance(device, _C.device) else _C.device(device)
    if found.index is None and found.type not in ("cpu", "meta"):
        found = _C.device(found.type, _C._current_device_number(found.type))
    return found


def device_count(backend: str) -> int:
    """Counts the devices of a backend.

    Args:
        backend (str): Its name, "cuda" or "acme.npu".

    Returns:
        int: How many there are; 0 without its plugin.

    Example:
        >>> mica.device_count("cpu")
        1
    """
    return _C._device_count(backend)


def device_properties(device: Any = None) -> dict[str, Any]:
    """Returns the properties of a device: its name, its memory, and what the plugin adds.

    Args:
        device (str or device, optional): The device that is meant. Default: the default device, or the first
            accelerator where that is the CPU.

    Returns:
        dict: "name", "total_memory" and "free_memory" in bytes (-1: unknown), and where the plugin says them
        "architecture" ("sm_90"), "multiprocessors" and "warp_size".

    Example:
        >>> mica.device_properties("cpu")
        {'name': 'cpu', 'total_memory': -1, 'free_memory': -1}
    """
    return _C._device_properties(_device(device))


class Stream:
    """A queue of work of one device, done in order. Two streams run independently.

    As `torch.Stream`.

    Args:
        device (str or device, optional): The device that is meant. Default: the default device, or the first
            accelerator where that is the CPU.
        priority (int): Lower numbers go first. Where the device says which it has, another means the next of
            them. Default: 0.

    Attributes:
        device (device): The device.
        handle (int): The device's number of the stream; 0 is its default stream.

    Example:
        >>> stream = mica.Stream("cpu")
        >>> with mica.stream(stream):
        ...     x = mica.ones(2) + 1
        >>> stream.synchronize()
        >>> stream.query()
        True
    """

    _events: Any = None  # the class of the events that it makes; Event without one

    def __init__(self, device: Any = None, priority: int = 0) -> None:
        self.device = _device(device)
        self.handle, self._holder = _C._new_stream(self.device, priority)
        self._entered: list[int] = []

    @classmethod
    def _of(cls, device: Any, handle: int) -> Stream:
        self: Stream = object.__new__(cls)
        self.device = device
        self.handle, self._holder = _C._share_stream(device, handle)
        self._entered = []
        return self

    @property
    def native_handle(self) -> int:
        """`handle`, for other libraries: of cuda a CUstream."""
        return self.handle

    @property
    def stream_id(self) -> int:
        """`handle`, as torch calls it."""
        return self.handle

    @property
    def device_index(self) -> int:
        """The number of the device."""
        return self.device.index or 0

    def __enter__(self) -> Stream:
        """Makes the stream the current one of its device until the block ends."""
        self._entered.append(_C._exchange_stream(self.device, self.handle))
        return self

    def __exit__(self, *exception: object) -> None:
        _C._exchange_stream(self.device, self._entered.pop())

    def synchronize(self) -> None:
        """Waits until all work of the stream is done."""
        _C._stream_synchronize(self.device, self.handle)

    def query(self) -> bool:
        """Whether all work of the stream is done."""
        return _C._stream_query(self.device, self.handle)

    def record_event(self, event: Event | None = None) -> Event:
        """Records an event: a mark behind the work that is in the stream now.

        Args:
            event (Event, optional): The event. Default: None, a new one.

        Returns:
            Event: The event.
        """
        event = (self._events or Event)() if event is None else event
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """Makes the work that comes later in this stream wait for an event.

        Args:
            event (Event): The event.
        """
        event.wait(self)

    def wait_stream(self, other: Stream) -> None:
        """Makes the work that comes later in this stream wait for what is in another stream now.

        Args:
            other (Stream): The other stream.
        """
        self.wait_event(other.record_event())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and (self.device, self.handle) == (other.device, other.handle)

    def __hash__(self) -> int:
        return hash((self.device, self.handle))

    def __repr__(self) -> str:
        return f"Stream(device='{self.device}', handle={self.handle})"


class Event:
    """A point in the work of a stream, for other streams and for this thread to wait for.

    As `torch.Event`.

    Args:
        device (str or device, optional): The device whose current stream `record()` and `wait()` mean. Default:
            the default device, or the first accelerator where that is the CPU.
        enable_timing (bool): Whether `elapsed_time()` may be asked for. Default: False.
        blocking (bool): Whether `synchronize()` leaves the processor to other threads where the device can.
            Default: False.

    Attributes:
        device (device or None): The device, as it was given.
        enable_timing (bool): As it was given.

    Example:
        >>> event = mica.Event("cpu")
        >>> event.record()
        >>> event.synchronize()
        >>> event.query()
        True
    """

    def __init__(self, device: Any = None, *, enable_timing: bool = False, blocking: bool = False) -> None:
        self.device = None if device is None else _device(device)
        self.enable_timing = enable_timing
        self._event = _C._new_event(enable_timing, blocking)

    def record(self, stream: Stream | None = None) -> None:
        """Marks what is in a stream now.

        Args:
            stream (Stream, optional): The stream whose work is meant. Default: None, the current one.
        """
        stream = current_stream(self.device) if stream is None else stream
        _C._event_record(self._event, stream.device, stream.handle)

    def wait(self, stream: Stream | None = None) -> None:
        """Makes the work that comes later in a stream wait for the event.

        Args:
            stream (Stream, optional): The stream whose work is meant. Default: None, the current one.
        """
        stream = current_stream(self.device) if stream is None else stream
        _C._event_wait(self._event, stream.device, stream.handle)

    def synchronize(self) -> None:
        """Waits until the event has happened."""
        _C._event_synchronize(self._event)

    def query(self) -> bool:
        """Whether the event has happened; True if it was never recorded."""
        return _C._event_query(self._event)

    def elapsed_time(self, end: Event) -> float:
        """Measures the time from this event to another of the same device, both recorded.

        Args:
            end (Event): The later event.

        Returns:
            float: Milliseconds.

        Raises:
            RuntimeError: One of them was not recorded, or not made with `enable_timing`, or their devices differ.
            NotImplementedError: The device measures no time, as the CPU.
        """
        return _C._event_elapsed(self._event, end._event)


def current_stream(device: Any = None) -> Stream:
    """Returns the stream that this thread's work on a device goes to.

    Args:
        device (str or device, optional): The device that is meant. Default: the default device; if that is the CPU, the
            first accelerator, if there is one.

    Returns:
        Stream: The stream.

    Raises:
        RuntimeError: No plugin makes this device.

    Example:
        >>> mica.current_stream("cpu")
        Stream(device='cpu', handle=0)
    """
    device = _device(device)
    return Stream._of(device, _C._current_stream(device))


def set_stream(stream: Stream) -> None:
    """Makes a stream the current one of its device, for this thread. Rather use `with mica.stream(s):`.

    Args:
        stream (Stream): The stream that later work goes to.

    Example:
        >>> before, mine = mica.current_stream("cpu"), mica.Stream("cpu")
        >>> mica.set_stream(mine)
        >>> mica.current_stream("cpu") == mine
        True
        >>> mica.set_stream(before)
    """
    _C._exchange_stream(stream.device, stream.handle)


class StreamContext:
    """What `mica.stream(s)` returns: in its block the stream is the current one of its device.

    At its end the earlier stream is current again.

    Args:
        stream (Stream or None): The stream; None changes nothing.

    Example:
        >>> with mica.StreamContext(mica.Stream("cpu")) as stream:
        ...     stream.device
        device(type='cpu')
    """

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream
        self._before: list[int] = []

    def __enter__(self) -> Stream | None:
        if self.stream is not None:
            self._before.append(_C._exchange_stream(self.stream.device, self.stream.handle))
        return self.stream

    def __exit__(self, *exception: object) -> None:
        if self.stream is not None:
            _C._exchange_stream(self.stream.device, self._before.pop())


def stream(stream: Stream | None) -> StreamContext:
    """A block in which a stream is the current one of its device, for this thread.

    As `torch.cuda.stream`.

    Args:
        stream (Stream or None): The stream; None changes nothing.

    Returns:
        StreamContext: The context manager.

    Example:
        >>> mine = mica.Stream("cpu")
        >>> with mica.stream(mine):
        ...     mica.current_stream("cpu") == mine
        True
    """
    return StreamContext(stream)


def synchronize(device: Any = None) -> None:
    """Waits until a device has done all work that was given to it.

    Args:
        device (str or device, optional): The device that is meant. Default: the default device, or the first
            accelerator where that is the CPU.

    Example:
        >>> mica.synchronize("cpu")
    """
    _C._synchronize(_device(device))


def memory_stats(device: Any = None) -> dict[str, int]:
    """Returns what a device's caching allocator holds, in bytes, and how many requests it has met.

    Args:
        device (str or device, optional): The device that is meant. Default: the default device, or the first
            accelerator where that is the CPU.

    Returns:
        dict of str to int: Bytes: "bytes_in_use", "bytes_reserved" (idle ones included) and
        "peak_bytes_in_use"; requests: "allocations" and those met without the device, "cache_hits". Then
        torch's names. Each of "allocated_bytes", "requested_bytes" (before rounding), "active_bytes" (with what
        streams use still), "reserved_bytes", "inactive_split_bytes" (idle, in pieces of memory that are partly
        in use), "allocation", "active", "inactive_split" (the same as numbers of blocks) and "segment" (pieces
        of memory taken from the device) has ".all.current", ".all.peak", ".all.allocated" and ".all.freed" (how
        much was added and taken away, all in all); "num_alloc_retries", "num_ooms", "num_device_alloc" and
        "num_device_free" are numbers of events. On the CPU, blocks up to 32 KiB count in "bytes_in_use",
        "peak_bytes_in_use", "allocations" and "cache_hits" alone.

    Example:
        >>> list(mica.memory_stats("cpu"))[:5]
        ['bytes_in_use', 'bytes_reserved', 'peak_bytes_in_use', 'allocations', 'cache_hits']
    """
    return _C._memory_stats(_device(device))


def memory_allocated(device: Any = None) -> int:
    """Returns how many bytes the tensors of a device use.

    Args:
        device (str or device, optional): The device that is meant. Default: the default device, or the first
            accelerator where that is the CPU.

    Returns:
        int: Bytes.

    Example:
        >>> before = mica.memory_allocated("cpu")
        >>> x = mica.ones(1024)
        >>> mica.memory_allocated("cpu") - before >= 4096
        True
    """
    return memory_stats(device)["bytes_in_use"]


def memory_reserved(device: Any = None) -> int:
    """Returns how many bytes the program has taken from a device, idle ones included.

    Args:
        device (str or device, optional): The device that is meant. Default: the default device, or the first
            accelerator where that is the CPU.

    Returns:
        int: Bytes.

    Example:
        >>> mica.memory_reserved("cpu") >= mica.memory_allocated("cpu")
        True
    """
    return memory_stats(device)["bytes_reserved"]


def max_memory_allocated(device: Any = None) -> int:
    """Returns how many bytes the tensors of a device used at most, since the start or the last reset.

    Args:
        device (str or device, optional): The device that is meant. Default: the default device, or the first
            accelerator where that is the CPU.

    Returns:
        int: Bytes.

    Example:
        >>> mica.reset_peak_memory_stats("cpu")
        >>> mica.max_memory_allocated("cpu") >= mica.memory_allocated("cpu")
        True
    """
    return memory_stats(device)["peak_bytes_in_use"]


def max_memory_reserved(device: Any = None) -> int:
    """Returns how many bytes the program had taken from a device at most, since the start or the last reset.

    Args:
        device (str or device, optional): The device that is meant. Default: the default device, or the first
            accelerator where that is the CPU.

    Returns:
        int: Bytes.

    Example:
        >>> mica.reset_peak_memory_stats("cpu")
        >>> mica.max_memory_reserved("cpu") >= mica.memory_reserved("cpu")
        True
    """
    return memory_stats(device)["reserved_bytes.all.peak"]


def reset_peak_memory_stats(device: Any = None) -> None:
    """Makes `max_memory_allocated()` and `max_memory_reserved()` count from now on.

    Args:
        device (str or device, optional): The device that is meant. Default: the default device, or the first
            accelerator where that is the CPU.

    Example:
        >>> mica.reset_peak_memory_stats("cpu")
    """
    _C._reset_peak_memory(_device(device))


def empty_cache(device: Any = None) -> None:
    """Gives idle memory that the caching allocator keeps back to a device, for other programs.

    Args:
        device (str or device, optional): The device that is meant. Default: the default device, or the first
            accelerator where that is the CPU.

    Example:
        >>> mica.empty_cache("cpu")
    """
    _C._empty_cache(_device(device))


def set_memory_limit(bytes: int, device: Any = None) -> None:
    """Limits the memory that this process takes from a device.

    Beyond the limit, making a tensor raises `mica.OutOfMemoryError`.

    Args:
        bytes (int): At most this many; 0 for no limit.
        device (str or device, optional): The device that is meant. Default: the default device, or the first
            accelerator where that is the CPU.

    Raises:
        ValueError: The number is negative.

    Example:
        >>> mica.set_memory_limit(0, "cpu")
    """
    _C._set_memory_limit(_device(device), bytes)


def set_fallback(policy: str | None) -> str:
    """Sets what happens when a backend has no kernel for a call.

    Args:
        policy (str or None): All but "error" run the call on the CPU. "once" warns of the first such call
            of the process and "warn" of each operator's first, both with a summary at exit; "allow" says
            nothing, and "error" raises NotImplementedError. None changes nothing.

    Returns:
        str: The policy before, which at the start is that of the environment variable `MICA_FALLBACK`,
        or "once".

    Raises:
        ValueError: The policy is none of these.

    Example:
        >>> before = mica.set_fallback("warn")
        >>> mica.set_fallback(before)
        'warn'
    """
    return _C._set_fallback(policy)


def fallback_counts(reset: bool = False) -> dict[str, dict[str, int]]:
    """Counts the calls that ran on the CPU since their backend had no kernel for them.

    Args:
        reset (bool): Sets the counts to 0 once they are read. Default: False.

    Returns:
        dict: From each backend to a dict from each operator to its calls, since the start or a reset.

    Example:
        >>> on_the_cpu = mica.fallback_counts().get("cuda", {})
        >>> on_the_cpu.get("mica::mm", 0)
        0
    """
    counts: dict[str, dict[str, int]] = {}
    for backend, operator, calls in _C._fallback_counts(reset):
        counts.setdefault(backend, {})[operator] = calls
    return counts


def fallback_summary() -> str:
    """One line on the calls that ran on the CPU, the most frequent operators first; "" where there are none."""
    parts = []
    for backend, counts in fallback_counts().items():
        most = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        shown = ", ".join(f"{operator} {calls}" for operator, calls in most[:5])
        rest = f" and {len(most) - 5} more" if len(most) > 5 else ""
        parts.append(
            f"device ({backend}): {sum(counts.values())} calls of {len(most)} operators: {shown}{rest}"
        )
    return "Ran on the CPU for want of a kernel: " + "; ".join(parts) + "." if parts else ""


def _summarize_at_exit(process: int) -> None:
    silent = os.getpid() != process or set_fallback(None) == "allow"
    if not silent and _C._fallback_was_said() and (summary := fallback_summary()):
        import contextlib
        import warnings

        with contextlib.suppress(Warning):  # nobody could catch it any more
            warnings.warn(summary, stacklevel=1)


atexit.register(_summarize_at_exit, os.getpid())


def record_stream(self: Tensor, stream: Stream) -> None:
    """Tells the allocator that another stream than the current one uses the tensor's memory.

    The memory is not given to another tensor before what is in that stream now is done. As
    `torch.Tensor.record_stream`.

    Args:
        stream (Stream): The stream.

    Raises:
        TypeError: It is no stream.

    Example:
        >>> mica.ones(2).record_stream(mica.Stream("cpu"))
    """
    if not isinstance(stream, Stream):
        raise TypeError(
            f"record_stream: `stream` must be a Stream, not a value of type ({type(stream).__name__})."
        )
    _C._record_stream(self, stream.device, stream.handle)


def pin_memory(self: Tensor, device: Any = None) -> Tensor:
    """Copies the tensor into host memory that a device reads and writes while the host goes on.

    Copies from and to it with `non_blocking=True` do not wait. As `torch.Tensor.pin_memory`.

    Args:
        device (str or device, optional): The device that is meant. Default: the first that has such memory.

    Returns:
        Tensor: The copy; the tensor itself if it lies there already.

    Raises:
        NotImplementedError: No device that is loaded has such memory.

    Example:
        >>> x = mica.ones(2)
        >>> x = x.pin_memory() if mica.cuda.is_available() else x
    """
    return _C._pin_memory(self, None if device is None else _device(device))


def is_pinned(self: Tensor) -> bool:
    """Returns whether the tensor lies in pinned memory; see `pin_memory()`.

    As `torch.Tensor.is_pinned`.

    Returns:
        bool: Whether it does.

    Example:
        >>> mica.ones(2).is_pinned()
        False
    """
    return _C._is_pinned(self)


def share_memory_(self: Tensor) -> Tensor:
    """Moves the tensor's memory, and so every view of it, to where other processes can see it.

    As `torch.Tensor.share_memory_`. `mica.multiprocessing` then sends the tensor without a copy.

    Returns:
        Tensor: The tensor itself.

    Raises:
        NotImplementedError: The tensor is on an accelerator.

    Example:
        >>> mica.ones(2).share_memory_().is_shared()
        True
    """
    if self.device.type not in ("cpu", "meta"):
        raise NotImplementedError(
            f"The memory of a tensor on the device ({self.device}) cannot be shared with another process: the "
            "host does not drive `ipc_export` of the device table, which is reserved; "
            "send the tensor itself, whose values are copied."
        )
    import mica._memory.forking_pickler as sharing  # multiprocessing sends it without a copy from now on

    sharing.memory.share(self)
    return self


def is_shared(self: Tensor) -> bool:
    """Returns whether other processes can see the tensor's memory; see `share_memory_()`.

    As `torch.Tensor.is_shared`.

    Returns:
        bool: Whether they can.

    Example:
        >>> mica.ones(2).is_shared()
        False
    """
    import sys

    memory = sys.modules.get("mica._memory.shared")  # not imported: nothing is shared
    return self.device.type not in ("cpu", "meta") or (memory is not None and memory.is_shared(self))


_C._add_tensor_attributes(
    {
        "is_pinned": is_pinned,
        "is_shared": is_shared,
        "pin_memory": pin_memory,
        "record_stream": record_stream,
        "share_memory_": share_memory_,
    }
)
