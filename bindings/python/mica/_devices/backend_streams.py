"""The streams and events of one backend by name, for its module.

In a docstring, `mica.cuda` stands for the backend's module.
"""

from __future__ import annotations

from typing import Any

from mica import _C, _devices
from mica._devices.numbered import needed, numbered, python_name


def functions(backend: str) -> dict[str, Any]:
    """The functions and classes for a backend's streams, by name."""

    class Event(_devices.Event):
        """A point in the work of a stream, for other streams and for this thread to wait for.

        As `torch.cuda.Event`.

        Args:
            enable_timing (bool): Whether `elapsed_time()` may be asked for. Default: False.
            blocking (bool): Whether `synchronize()` leaves the processor to other threads where the device can.
                Default: False.
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
            needed(backend)
            if interprocess or external:
                raise NotImplementedError(
                    "Events belong to one process; leave out interprocess= and external=."
                )
            super().__init__(enable_timing=enable_timing, blocking=blocking)

    class Stream(_devices.Stream):
        """A queue of work of one device, done in order. Two streams run independently.

        As `torch.cuda.Stream`.

        Args:
            device (int, str or device, optional): The device that is meant. Default: None, the current one.
            priority (int): Lower numbers go first. Where the device says which it has, another means the next of
                them. Default: 0.

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
            needed(backend)
            super().__init__(numbered(backend, device), priority)

        @staticmethod
        def priority_range() -> tuple[int, int]:
            """Returns the priorities of the current device's streams.

            As `torch.cuda.Stream.priority_range`.

            Returns:
                tuple of 2 int: The lowest priority and the highest, which is the smaller number.

            Raises:
                RuntimeError: There is no device.
                NotImplementedError: The device does not say.

            Example:
                >>> lowest, highest = mica.cuda.Stream.priority_range() if mica.cuda.is_available() else (0, 0)
            """
            needed(backend)
            lowest, highest = _C._priority_range(numbered(backend, None))
            return lowest, highest

    def default_stream(device: Any = None) -> Any:
        """Returns the stream that a device's work goes to where no other is chosen.

        As `torch.cuda.default_stream`.

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
        needed(backend)
        return Stream._of(numbered(backend, device), 0)

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
        needed(backend)
        found = numbered(backend, device)
        return Stream._of(found, _C._current_stream(found))

    class ExternalStream(Stream):
        """A stream that another library made, by its handle: what Mica computes in its block is queued there.

        As `torch.cuda.ExternalStream`. The other library keeps the stream as long as it is used here, and
        destroys it.

        Args:
            stream_ptr (int): The handle, as the device knows it: of cuda a CUstream.
            device (int, str or device, optional): The device that is meant. Default: None, the current one.

        Raises:
            RuntimeError: There is no such device.
            ValueError: The handle is no number of 64 bits.

        Example:
            >>> if mica.cuda.is_available():
            ...     theirs = mica.cuda.ExternalStream(mica.cuda.Stream().native_handle)
            ...     with mica.cuda.stream(theirs):
            ...         x = mica.ones(2, device="cuda")
        """

        def __new__(cls, stream_ptr: int, device: Any = None, **kwargs: Any) -> Any:
            needed(backend)
            return cls._of(numbered(backend, device), stream_ptr)

        def __init__(self, stream_ptr: int, device: Any = None, **kwargs: Any) -> None:
            """All is done."""

    def get_stream_from_external(data_ptr: int, device: Any = None) -> Any:
        """Returns a stream that another library made, by its handle.

        As `torch.cuda.get_stream_from_external`; see `ExternalStream`.

        Args:
            data_ptr (int): The handle, as the device knows it.
            device (int, str or device, optional): The device that is meant. Default: None, the current one.

        Returns:
            Stream: The stream.

        Raises:
            RuntimeError: There is no such device.
            ValueError: The handle is no number of 64 bits.

        Example:
            >>> if mica.cuda.is_available():
            ...     theirs = mica.cuda.get_stream_from_external(mica.cuda.Stream().native_handle)
        """
        return ExternalStream(data_ptr, device)

    handle = property(lambda self: self.handle, doc="The device's number of the stream.")
    setattr(Stream, f"{python_name(backend)}_stream", handle)
    return {
        **{k: v for k, v in locals().items() if k not in ("backend", "handle", "__class__")},
        "StreamContext": _devices.StreamContext,
        "set_stream": _devices.set_stream,
        "stream": _devices.stream,
    }
