"""Memory that several processes map, and tensors in it.

A segment is a file in memory, mapped: without a name (strategy "file_descriptor": processes hand
its descriptor to each other, and no process can leave it behind), or with one in /dev/shm (strategy
"file_system": no descriptor stays open; the file counts its users and goes with the last of them,
or with the resource tracker of multiprocessing when they are killed).

A lease is one use of a segment: the buffer under a tensor's storage. It lives as long as the
storage does. _memory/forking_pickler.py sends what is here to other processes.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import struct
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import mica
from mica._C import Tensor

HEADER = 64  # bytes before the data of a named segment: how many processes hold it, who cleans up
_DIRECTORY = "/dev/shm"
_strategy = ["file_descriptor"]

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_MAP_SHARED, _READ_WRITE = 1, 3


class Segment:
    """Mapped memory of `nbytes` bytes at `address`. Owns `fd`, -1 if it is closed."""

    def __init__(self, fd: int, nbytes: int, name: str | None = None) -> None:
        self.fd, self.nbytes, self.name, self.pid = fd, nbytes, name, os.getpid()
        self._skipped = HEADER if name else 0
        start = _libc.mmap(None, nbytes + self._skipped, _READ_WRITE, _MAP_SHARED, fd, 0)
        if start is None or start == ctypes.c_void_p(-1).value:
            self._skipped = -1
            error = os.strerror(ctypes.get_errno())
            raise RuntimeError(f"Shared memory of {nbytes} bytes could not be mapped: {error}.")
        self.address = int(start) + self._skipped
        if name:
            _leave_at_exit(self)

    def close_fd(self) -> None:
        """Closes the descriptor; the memory stays mapped."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def __del__(self) -> None:
        with contextlib.suppress(Exception):  # at the interpreter's end modules may be gone
            if self._skipped >= 0:
                _libc.munmap(self.address - self._skipped, self.nbytes + self._skipped)
            self.leave()
            self.close_fd()

    def leave(self) -> None:
        """Says that this process holds a named segment no more."""
        if self.name is not None and self.pid == os.getpid():
            count_users(self.name, -1)
            self.name = None


_named: weakref.WeakSet[Segment] = weakref.WeakSet()
_leaving = [0]  # the process that leaves its segments when it ends


def _leave_at_exit(segment: Segment) -> None:
    from multiprocessing import util

    if _leaving[-1] != os.getpid():  # a child's process too: it ends without clearing its modules
        _leaving[-1] = os.getpid()
        _named.clear()
        util.Finalize(None, _leave_all, exitpriority=0)
    _named.add(segment)


def _leave_all() -> None:
    for segment in list(_named):
        segment.leave()


def _tracker() -> int:
    """The resource tracker that this process shares with its relatives, by its pipe; 0 if there is none."""
    from multiprocessing import resource_tracker

    fd = getattr(resource_tracker._resource_tracker, "_fd", None)
    return 0 if fd is None else os.fstat(fd).st_ino


def count_users(name: str, change: int) -> None:
    """Adds to the number of processes that hold a named segment; at none it is removed."""
    import fcntl
    from multiprocessing import resource_tracker

    path = os.path.join(_DIRECTORY, name)
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        users, tracker = struct.unpack("<qQ", os.pread(fd, 16, 0))
        os.pwrite(fd, struct.pack("<q", users + change), 0)
        if users + change <= 0:
            os.unlink(path)
            if tracker == _tracker():
                resource_tracker.unregister("/" + name, "shared_memory")
    finally:
        os.close(fd)


def create(nbytes: int) -> Segment:
    """A segment of its own, by the strategy that is set."""
    return create_unnamed(nbytes) if _strategy[-1] == "file_descriptor" else _create_named(nbytes)


def create_unnamed(nbytes: int) -> Segment:
    """A segment that goes when the last process that has it open or mapped does."""
    fd = os.memfd_create("mica", os.MFD_CLOEXEC)
    try:
        os.ftruncate(fd, nbytes)
        return Segment(fd, nbytes)
    except BaseException:
        os.close(fd)
        raise


def _create_named(nbytes: int) -> Segment:
    from multiprocessing import resource_tracker

    name = f"mica_{os.getpid()}_{os.urandom(6).hex()}"
    path = os.path.join(_DIRECTORY, name)
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        # Reserved now: a page that the file system has no room for would end the process when it is touched.
        os.posix_fallocate(fd, 0, nbytes + HEADER)
        resource_tracker.ensure_running()
        os.pwrite(fd, struct.pack("<qQ", 1, _tracker()), 0)
        segment = Segment(fd, nbytes, name)
    except BaseException as error:
        os.close(fd)
        os.unlink(path)
        if isinstance(error, OSError):
            raise RuntimeError(
                f"{_DIRECTORY} has no room for {nbytes} bytes of shared memory ({error.strerror}). Make it larger, or use "
                'mica.multiprocessing.set_sharing_strategy("file_descriptor"), which needs no room there.'
            ) from error
        raise
    resource_tracker.register("/" + name, "shared_memory")
    segment.close_fd()
    return segment


class Handle:
    """What tells another process where a lease is: the segment and how many of its bytes. Its `key`
    is the segment's number in a pool, or None."""

    __slots__ = ("key", "nbytes", "segment")

    def __init__(self, segment: Segment, nbytes: int, key: int | None = None) -> None:
        self.segment, self.nbytes, self.key = segment, nbytes, key

    def __reduce__(self) -> Any:
        """By its name or its descriptor; opening it gives a flat tensor of its bytes."""
        from multiprocessing.reduction import DupFd

        segment = self.segment
        if segment.name is not None:
            count_users(segment.name, 1)  # for the process that opens it
            return (_open_name, (segment.name, segment.nbytes, self.nbytes))
        if segment.fd < 0:
            raise RuntimeError(
                "The tensor's shared memory belongs to a loader's worker and cannot be sent on; send a clone()."
            )
        return (_open_fd, (DupFd(segment.fd), segment.nbytes, self.nbytes))


class _Lease:
    handle: Handle
    freed: Callable[[], None] | None = None

    def __del__(self) -> None:
        if self.freed is not None:
            self.freed()


@functools.lru_cache(128)
def _lease_type(nbytes: int) -> Any:
    return type("_Lease", (_Lease, ctypes.c_ubyte * nbytes), {})


_leases: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()


def lease(handle: Handle, freed: Callable[[], None] | None = None) -> Tensor:
    """A flat tensor of bytes over a segment's beginning; freed() is called when its storage goes."""
    buffer = _lease_type(handle.nbytes).from_address(handle.segment.address)
    buffer.handle, buffer.freed = handle, freed
    _leases[handle.segment.address] = buffer
    return mica._C._from_buffer(memoryview(buffer).cast("B"))


_opened: weakref.WeakValueDictionary[Any, Segment] = weakref.WeakValueDictionary()


def _open_fd(duplicate: Any, capacity: int, nbytes: int) -> Tensor:
    fd = duplicate.detach()
    status = os.fstat(fd)
    key = (status.st_dev, status.st_ino)
    segment = _opened.get(key)
    if segment is None:
        _opened[key] = segment = Segment(fd, capacity)
    else:
        os.close(fd)
    return lease(Handle(segment, nbytes))


def _open_name(name: str, capacity: int, nbytes: int) -> Tensor:
    segment = _opened.get(name)
    if segment is None:
        fd = os.open(os.path.join(_DIRECTORY, name), os.O_RDWR | os.O_CLOEXEC)
        _opened[name] = segment = Segment(fd, capacity, name)
        segment.close_fd()
    else:
        count_users(name, -1)
    return lease(Handle(segment, nbytes))


def _fresh(nbytes: int) -> Tensor:
    return lease(Handle(create(nbytes), nbytes))


_allocators: list[Callable[[int], Tensor]] = [_fresh]


def allocate(nbytes: int) -> Tensor:
    """A flat tensor of `nbytes` (at least one) undefined bytes that processes can share."""
    return _allocators[-1](nbytes)


@contextlib.contextmanager
def allocating_by(allocator: Callable[[int], Tensor]) -> Iterator[None]:
    """A block in which allocate() is this one."""
    _allocators.append(allocator)
    try:
        yield
    finally:
        _allocators.remove(allocator)


def empty(size: tuple[int, ...], dtype: Any) -> Tensor:
    """A contiguous tensor of undefined elements that processes can share."""
    count = 1
    for extent in size:
        count *= extent
    itemsize = mica.empty(0, dtype=dtype).itemsize
    if count == 0:
        return mica.empty(size, dtype=dtype)
    return allocate(count * itemsize).view(dtype).view(size).detach()


def handle_of(t: Tensor) -> Handle | None:
    """Where the tensor's storage is, if processes can share it."""
    if t.device.type != "cpu":
        return None
    held = _leases.get(t._storage_ptr())
    return None if held is None or held.handle.nbytes < t._storage_nbytes() else held.handle


def is_shared(t: Tensor) -> bool:
    """Whether other processes can see the tensor's memory."""
    return handle_of(t) is not None or t.device.type not in ("cpu", "meta")


def share(t: Tensor) -> None:
    """Moves the storage, and with it every tensor over it, to memory that processes can share."""
    if t.device.type != "cpu" or handle_of(t) is not None:
        return
    if mica._C._is_wrapper(t):
        raise NotImplementedError(
            f"A {type(t).__name__} has no memory of its own to share; share the tensors that it is made of."
        )
    nbytes = t._storage_nbytes()
    if nbytes:
        t._move_storage(allocate(nbytes))
