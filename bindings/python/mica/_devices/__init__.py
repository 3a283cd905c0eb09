"""Devices by name: how many there are, their streams and events, their memory, and
what falls back to the CPU. A device is "acme.npu:0", a mica.device or a number; None
says the current default device, or the first accelerator where that is the CPU."""

from __future__ import annotations

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


_reserved: set[str] = set()


def reserve(*names: str) -> None:
    """Makes these names of backends known without a plugin, as programs of torch spell them."""
    for name in names:
        if name not in _C._backend_names():
            _reserved.add(name)
            _C._register_backend_name(name)


def accelerators() -> list[str]:
    """The backends beside the CPU that plugins provide, in the order of their loading."""
    return [n for n in _C._backend_names()[2:] if n not in _reserved or _C._device_count(n)]


def _device(device: Any) -> Any:
    if device is None:
        default = _C._default_device()
        names = accelerators()
        return default if default.type != "cpu" or not names else _C.device(names[0])
    return device if isinstance(device, _C.device) else _C.device(device)


def device_count(backend: str) -> int:
    """The number of devices of a backend ("acme.npu"); 0 without its plugin."""
    return _C._device_count(backend)


def device_properties(device: Any = None) -> dict[str, Any]:
    """What the device says of itself: name, total_memory and free_memory in bytes (-1: unknown)."""
    return _C._device_properties(_device(device))


class Stream:
    """A queue of work of one device, in order. Two streams run independently."""

    _events: Any = None  # the class of the events that it makes; Event without one

    def __init__(self, device: Any = None, priority: int = 0) -> None:
        self.device = _device(device)
        self.handle, self._holder = _C._new_stream(self.device, priority)

    @classmethod
    def _of(cls, device: Any, handle: int) -> Stream:
        self = cls.__new__(cls)
        self.device = device
        self.handle, self._holder = _C._share_stream(device, handle)
        return self

    def synchronize(self) -> None:
        """Waits until all work of the stream is done."""
        _C._stream_synchronize(self.device, self.handle)

    def query(self) -> bool:
        """Whether all work of the stream is done."""
        return _C._stream_query(self.device, self.handle)

    def record_event(self, event: Event | None = None) -> Event:
        """An event (a new one without) recorded here."""
        event = (self._events or Event)() if event is None else event
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """What comes later in this stream runs after the event."""
        event.wait(self)

    def wait_stream(self, other: Stream) -> None:
        """What comes later in this stream runs after what is in the other now."""
        self.wait_event(other.record_event())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and (self.device, self.handle) == (other.device, other.handle)

    def __hash__(self) -> int:
        return hash((self.device, self.handle))

    def __repr__(self) -> str:
        return f"Stream(device='{self.device}', handle={self.handle})"


class Event:
    """A point in the work of a stream, for other streams and for this thread to wait for."""

    def __init__(self, enable_timing: bool = False) -> None:
        self.enable_timing = enable_timing
        self._event = _C._new_event()

    def record(self, stream: Stream | None = None) -> None:
        """Marks what is in the stream (the current one) now."""
        stream = current_stream() if stream is None else stream
        _C._event_record(self._event, stream.device, stream.handle)

    def wait(self, stream: Stream | None = None) -> None:
        """What comes later in the stream (the current one) runs after the event."""
        stream = current_stream() if stream is None else stream
        _C._event_wait(self._event, stream.device, stream.handle)

    def synchronize(self) -> None:
        """Waits until the event has happened."""
        _C._event_synchronize(self._event)

    def query(self) -> bool:
        """Whether the event has happened; True when it was never recorded."""
        return _C._event_query(self._event)

    def elapsed_time(self, end: Event) -> float:
        """Milliseconds from this event to `end`."""
        return _C._event_elapsed(self._event, end._event)


def current_stream(device: Any = None) -> Stream:
    """The stream that this thread's work on the device goes to."""
    device = _device(device)
    return Stream._of(device, _C._current_stream(device))


def set_stream(stream: Stream) -> None:
    """Makes a stream the current one of its device, for this thread."""
    _C._exchange_stream(stream.device, stream.handle)


class StreamContext:
    """What mica.stream(s) gives: the stream is current inside the block."""

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
    """A block in which the stream is the current one of its device; None changes nothing."""
    return StreamContext(stream)


def synchronize(device: Any = None) -> None:
    """Waits until all work of the device is done."""
    _C._synchronize(_device(device))


def memory_stats(device: Any = None) -> dict[str, int]:
    """The caching allocator of the device: bytes in use, reserved, at most in use; requests and hits."""
    return _C._memory_stats(_device(device))


def memory_allocated(device: Any = None) -> int:
    """Bytes in use by tensors of the device."""
    return memory_stats(device)["bytes_in_use"]


def memory_reserved(device: Any = None) -> int:
    """Bytes taken from the device, idle ones included."""
    return memory_stats(device)["bytes_reserved"]


def max_memory_allocated(device: Any = None) -> int:
    """The most bytes that were in use since the start or the last reset."""
    return memory_stats(device)["peak_bytes_in_use"]


def reset_peak_memory_stats(device: Any = None) -> None:
    """Begins the search for the most bytes in use anew."""
    _C._reset_peak_memory(_device(device))


def empty_cache(device: Any = None) -> None:
    """Gives idle memory back to the device."""
    _C._empty_cache(_device(device))


def set_memory_limit(bytes: int, device: Any = None) -> None:
    """At most this many bytes are taken from the device; 0 for no limit."""
    _C._set_memory_limit(_device(device), bytes)


def set_fallback(policy: str | None) -> str:
    """What happens when a backend has no kernel for a call: "allow" runs it on the CPU, "warn"
    says so once an operator, "error" raises NotImplementedError. Returns the old policy, which is
    MICA_FALLBACK's at the start; None changes nothing."""
    return _C._set_fallback(policy)


def fallback_counts(reset: bool = False) -> dict[str, dict[str, int]]:
    """How often each operator of each backend ran on the CPU instead, since the start or a reset."""
    counts: dict[str, dict[str, int]] = {}
    for backend, operator, calls in _C._fallback_counts(reset):
        counts.setdefault(backend, {})[operator] = calls
    return counts


def record_stream(self: Tensor, stream: Stream) -> None:
    """Another stream than the one that was current when the tensor was made uses its memory:
    it is not given to another tensor before that use is done."""
    if not isinstance(stream, Stream):
        raise TypeError(
            f"record_stream: `stream` must be a Stream, not a value of type ({type(stream).__name__})."
        )
    _C._record_stream(self, stream.device, stream.handle)


def pin_memory(self: Tensor, device: Any = None) -> Tensor:
    """The tensor in host memory that the device (the first that has such memory) reads and writes
    while the host goes on, for copies with non_blocking=True; itself where it is there already."""
    return _C._pin_memory(self, None if device is None else _device(device))


def is_pinned(self: Tensor) -> bool:
    """Whether the tensor lies in pinned memory."""
    return _C._is_pinned(self)


def share_memory_(self: Tensor) -> Tensor:
    """Moves the tensor's memory, and so every view of it, to where other processes can see it."""
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
    """Whether other processes can see the tensor's memory."""
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
