"""A worker process of a DataLoader: what runs in it, and how it sends what it loads.

A worker reads tasks from its end of a socket and answers each on the same socket. A batch's tensors
lie in shared memory; the message says where. Segments are used again: the main process says which
of them nobody holds any more, so that after the first few batches no page is mapped or cleared.
_parallel.py is the main process's side.

Messages to a worker: (epoch, number, places); (epoch, None, seed of pipes) for a new epoch; (None, freed keys,
None) alone gives segments back; None ends it. Messages from it: (epoch, number, kind, opened
segments, dropped keys, content), and then the descriptors of the segments that were opened.
"""

from __future__ import annotations

import io
import os
import queue
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import reduction
from typing import Any

import mica

BATCH, FAILURE, END, READY = range(4)
_WATCH_SECONDS = 5
_KEPT_BYTES = 256 << 20  # of idle segments, for each worker


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """What `get_worker_info()` says of the worker process that it is called in.

    Args:
        id (int): The worker's number, from 0 on.
        num_workers (int): How many workers the loader has.
        seed (int): What seeded this worker's `random`, NumPy and Mica; other in each worker and pass.
        dataset (Dataset): This worker's copy of the dataset.
        rng (Any): None; other loaders than `DataLoader` may put their generators here.
        worker_method (str, optional): "multiprocessing".

    Example:
        >>> mica.utils.data.WorkerInfo(id=0, num_workers=2, seed=7, dataset="abc").num_workers
        2
    """

    id: int
    num_workers: int
    seed: int
    dataset: Any
    rng: Any = None
    worker_method: str | None = "multiprocessing"


_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """Returns which worker process of a `DataLoader` the caller runs in.

    As `torch.utils.data.get_worker_info`. An `IterableDataset` asks it to give each worker another part
    of the stream; a `worker_init_fn` asks it to change the worker's copy of the dataset.

    Returns:
        WorkerInfo or None: None in the main process.

    Example:
        >>> class UpTo(mica.utils.data.IterableDataset):
        ...     def __iter__(self):
        ...         info = mica.utils.data.get_worker_info()
        ...         first, step = (0, 1) if info is None else (info.id, info.num_workers)
        ...         return iter(range(first, 6, step))
        >>> list(mica.utils.data.DataLoader(UpTo(), batch_size=3, num_workers=2))
        [tensor([0, 2, 4]), tensor([1, 3, 5])]
    """
    return _info


class _Text(str):
    """A text that KeyError, which shows the repr of its argument, prints as it stands."""

    def __repr__(self) -> str:
        return str(self)


@dataclass
class Failure:
    """An exception of a worker, with its traceback as text."""

    kind: type[BaseException]
    text: str

    @classmethod
    def of(cls, error: BaseException) -> Failure:
        kind = type(error)
        if issubclass(kind, StopIteration):  # raised where a batch is awaited it would end the loop
            kind = RuntimeError
        try:
            reduction.ForkingPickler.dumps(kind)
        except Exception:  # a class that only the worker has
            kind = RuntimeError
        return cls(kind, "".join(traceback.format_exception(error)))

    def raise_(self, worker: int) -> None:
        message = _Text(f"Worker process ({worker}) of a DataLoader raised:\n{self.text}")
        try:
            error = self.kind(message)
        except Exception:  # an exception that takes no single text
            error = RuntimeError(message)
        raise error


class Arena:
    """A worker's shared memory: segments that are used again when both processes are done with them."""

    def __init__(self) -> None:
        self._segments: dict[int, Any] = {}
        self._busy: dict[int, int] = {}  # uses in either process
        self._idle: dict[int, list[int]] = {}  # by size
        self._idle_bytes = 0
        self._next = 0
        self.opened: list[int] = []
        self.dropped: list[int] = []

    def allocate(self, nbytes: int) -> Any:
        """A flat tensor of so many bytes in a segment that nobody uses."""
        from mica._memory import shared as memory

        step = max(4096, 1 << max(nbytes.bit_length() - 3, 0))  # at most a fourth more than asked for
        size = -(-nbytes // step) * step
        free = self._idle.get(size)
        if free:
            key = free.pop()
            self._idle_bytes -= size
        else:
            key, self._next = self._next, self._next + 1
            self._segments[key] = memory.create_unnamed(size)
            self.opened.append(key)
        self._busy[key] = 1
        return memory.lease(memory.Handle(self._segments[key], nbytes, key), lambda: self.done(key))

    def sent(self, key: int) -> None:
        """Counts a use in the main process, which gives it back by done()."""
        self._busy[key] += 1

    def done(self, key: int) -> None:
        """One use less; at none the segment is idle, and the oldest idle ones may go."""
        self._busy[key] -= 1
        if self._busy[key]:
            return
        size = self._segments[key].nbytes
        self._idle.setdefault(size, []).append(key)
        self._idle_bytes += size
        while self._idle_bytes > max(_KEPT_BYTES, 2 * size):
            oldest = next(keys for keys in self._idle.values() if keys)
            gone = oldest.pop(0)
            self._idle_bytes -= self._segments.pop(gone).nbytes
            self.dropped.append(gone)

    def news(self) -> tuple[list[tuple[int, int]], list[int], list[int]]:
        """Segments that the main process does not know yet, with their sizes; those that are no more;
        and the descriptors of the first, which are this process's no longer once they are sent."""
        opened = [(key, self._segments[key].nbytes) for key in self.opened if key in self._segments]
        fds = [self._segments[key].fd for key, _ in opened]
        dropped, self.opened, self.dropped = self.dropped, [], []
        return opened, dropped, fds

    def close_fds(self, opened: list[tuple[int, int]]) -> None:
        """Closes the descriptors that the main process has now."""
        for key, _ in opened:
            self._segments[key].close_fd()


class _Pickler(reduction.ForkingPickler):
    """Writes a batch; its tensors are in the arena, or are copied there."""

    def __init__(self, file: Any, arena: Arena) -> None:
        from mica._memory import shared as _shared_memory

        super().__init__(file, 5)
        self._arena, self._handle = arena, _shared_memory.Handle
        self._copies: dict[int, Any] = {}
        self._alive: list[Any] = []  # until the message is sent
        self.keys: set[int] = set()

    def persistent_id(self, obj: Any) -> Any:
        if type(obj) is not self._handle or obj.key is None:
            return None
        self.keys.add(obj.key)
        return (obj.key, obj.nbytes)

    def reducer_override(self, obj: Any) -> Any:
        if type(obj) is not mica.Tensor:
            return NotImplemented
        from mica._memory import forking_pickler as _reductions, shared as memory

        if obj.device.type != "cpu" or mica._C._is_wrapper(obj):
            return NotImplemented
        _reductions.check_leaf(obj)
        if not obj.numel():
            empty = mica.empty_strided(obj.shape, obj.stride(), dtype=obj.dtype)
            return _reductions.reduce_tensor(empty.requires_grad_(obj.requires_grad))
        handle = memory.handle_of(obj)
        if handle is None:
            obj = self._copied(obj)
            handle = memory.handle_of(obj)
        return _reductions.placed(obj, handle)

    def _copied(self, t: Any) -> Any:
        """The tensor in the arena. What the worker keeps stays its own. Tensors that share a storage
        which one of them fills share it still; of a larger one a view goes alone."""
        from mica._memory import shared as memory

        base, whole = t._storage_ptr(), t._storage_nbytes()
        flat = self._copies.get(base)
        if flat is None and whole == t.numel() * t.itemsize:
            flat = self._copies[base] = self._arena.allocate(whole)
            flat.view(t.dtype).copy_(t.detach().as_strided([t.numel()], [1], 0))
        if flat is not None:
            elements = flat[: whole // t.itemsize * t.itemsize].view(t.dtype)
            made = elements.as_strided(t.shape, t.stride(), t.storage_offset()).detach()
        else:
            made = memory.empty(tuple(t.shape), t.dtype).copy_(t.detach())
        self._alive += [t, made]
        return made.requires_grad_(t.requires_grad)


def _seed(base: int, worker: int) -> None:
    """Seeds the generators of Mica, of random and of NumPy, as torch does."""
    import random

    random.seed(base + worker)
    mica.manual_seed(base + worker)
    if "numpy" in sys.modules or os.environ.get("MICA_TORCH"):
        import numpy as np

        words = [worker, base & 0xFFFFFFFF, base >> 32, 0]
        np.random.seed(np.random.SeedSequence(words).generate_state(4))


class _Worker:
    def __init__(self, connection: Any, fetcher: Callable[[], Any]) -> None:
        self.connection, self.parent = connection, os.getppid()
        self.tasks: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.arena, self.epoch = Arena(), 0
        self.make_fetcher, self.fetcher, self.failure = fetcher, None, None

    def read(self) -> None:
        """Moves tasks from the socket to the queue, so that the main process never waits to send one.
        Ends the process when the main one is gone: nobody waits for the batch it is loading."""
        while True:
            try:
                while not self.connection.poll(_WATCH_SECONDS):
                    if os.getppid() != self.parent:
                        os._exit(1)
                task = self.connection.recv()
            except (EOFError, OSError):
                os._exit(1)
            if task is None:
                self.epoch = -1  # what is still in the queue is not wanted
            elif task[0] is not None:
                self.epoch = task[0]
            self.tasks.put(task)
            if task is None:
                return

    def run(self) -> None:
        """Answers tasks until the last."""
        while (task := self.tasks.get()) is not None:
            epoch, number, places = task
            if epoch is None:
                for key in number:
                    self.arena.done(key)
            elif epoch == self.epoch:
                self.answer(epoch, number, *self.result(number, places))

    def result(self, number: int | None, places: Any) -> tuple[int, Any]:
        try:
            if self.failure is not None:
                return FAILURE, self.failure
            if number is None:
                from mica.utils.data._datapipe import apply_seed

                apply_seed(_info.dataset if _info else None, places)
            if number is None or self.fetcher is None:
                self.fetcher = self.make_fetcher()
            return (READY, None) if number is None else (BATCH, self.fetcher.fetch(places))
        except StopIteration as stop:
            if type(self.fetcher).__name__ == "IterableFetcher":
                return END, None
            return FAILURE, Failure.of(stop)
        except Exception as error:
            return FAILURE, Failure.of(error)

    def answer(self, epoch: int, number: int | None, kind: int, result: Any) -> None:
        content = io.BytesIO()
        pickler = _Pickler(content, self.arena)
        try:
            pickler.dump(result)
        except Exception as error:  # what cannot be sent is the dataset's error, not a hang
            kind, content = FAILURE, io.BytesIO()
            pickler = _Pickler(content, self.arena)
            pickler.dump(Failure.of(error))
        for key in pickler.keys:
            self.arena.sent(key)
        opened, dropped, fds = self.arena.news()
        self.connection.send((epoch, number, kind, opened, dropped, content.getvalue()))
        if fds:
            with socket.fromfd(self.connection.fileno(), socket.AF_UNIX, socket.SOCK_STREAM) as s:
                for i in range(0, len(fds), 64):
                    # Not multiprocessing's, whose receiver answers since CPython 3.14: read() would take that for a task.
                    socket.send_fds(s, [b"\0"], fds[i : i + 64])
            self.arena.close_fds(opened)


def shard(dataset: Any, count: int, part: int) -> None:
    """Gives a pipe its part of `count`."""
    from mica.utils.data._datapipe import IterDataPipe, MapDataPipe, apply_sharding

    if isinstance(dataset, (IterDataPipe, MapDataPipe)):
        apply_sharding(dataset, count, part)


def work(
    info: WorkerInfo,
    fetcher: Callable[[], Any],
    init: Callable[[int], None] | None,
    connection: Any,
    others: list[Any],
    base_seed: int,
) -> None:
    """The main function of a worker process."""
    global _info
    from mica._memory import (
        forking_pickler as _reductions,  # noqa: F401
        shared as _shared_memory,  # noqa: F401
    )

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the main process ends the workers
    for other in others:  # a forked worker has the main process's ends too
        other.close()
    mica.set_num_threads(1)
    _seed(base_seed, info.id)
    _info = info
    worker = _Worker(connection, fetcher)
    threading.Thread(target=worker.read, daemon=True).start()
    try:
        shard(info.dataset, info.num_workers, info.id)
        if init is not None:
            init(info.id)
    except Exception as error:
        worker.failure = Failure.of(error)
    try:
        with _shared_memory.allocating_by(worker.arena.allocate):
            worker.run()
    except (BrokenPipeError, ConnectionResetError):
        pass  # nobody reads the batches any more
