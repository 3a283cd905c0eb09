"""The main process's side of a DataLoader with workers: hands out batches, takes them in order.

Batch number n goes to the next worker in turn that is still at work, `prefetch_factor` ahead for
each. Each worker has a socket of its own, so that one which is killed while it writes disturbs no
other and is noticed at once. _workers.py is the other side.
"""

from __future__ import annotations

import contextlib
import functools
import io
import os
import pickle
import selectors
import signal
import socket
import threading
import time
import weakref
from typing import Any

from mica.utils.data import _workers
from mica.utils.data._fetch import _DatasetKind

_FDS_KEPT = 256  # descriptors of all workers' segments that stay open, so that batches can be sent on
_with_fd: weakref.WeakSet[Any] = weakref.WeakSet()
_END_SECONDS = 2


class Uninterrupted:
    """Keeps Ctrl-C back until the end of the block: a process that is being started must not be lost."""

    def __enter__(self) -> None:
        self._before: Any = None
        self._pressed: list[Any] = []
        if threading.current_thread() is threading.main_thread() and callable(
            signal.getsignal(signal.SIGINT)
        ):
            self._before = signal.signal(signal.SIGINT, lambda *frame: self._pressed.append(frame))

    def __exit__(self, *exc: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
            if self._pressed:
                self._before(*self._pressed[0])


class _Unpickler(pickle.Unpickler):
    """Reads a batch. Each segment of it is one storage, which gives the segment back when it goes."""

    def __init__(self, content: bytes, link: Link) -> None:
        super().__init__(io.BytesIO(content))
        self._link, self._flat = link, {}

    def persistent_load(self, pid: Any) -> Any:
        key, nbytes = pid
        if key not in self._flat:
            self._flat[key] = self._link.lease(key, nbytes)
        return self._flat[key]


class Link:
    """One worker as the main process sees it."""

    def __init__(self, process: Any, connection: Any) -> None:
        self.process, self.connection = process, connection
        self.active, self.tasks = True, 0
        self.freed: list[int] = []
        self._segments: dict[int, Any] = {}

    def send(self, task: Any) -> None:
        """Sends a task, and which segments nobody holds any more. A worker that is dead reads neither:
        who waits for it is told."""
        with contextlib.suppress(OSError):
            if self.freed:
                freed = self.freed[:]
                del self.freed[: len(freed)]  # the list stays: leases append to it, in any thread
                self.connection.send((None, freed, None))
            self.connection.send(task)

    def receive(self) -> tuple[int, int | None, int, Any]:
        """A worker's answer: its epoch, the batch's number, its kind and what it is."""
        from mica._memory import shared as memory

        epoch, number, kind, opened, dropped, content = self.connection.recv()
        for key in dropped:
            self._segments.pop(key, None)
        for i in range(0, len(opened), 64):
            part = opened[i : i + 64]
            with socket.fromfd(self.connection.fileno(), socket.AF_UNIX, socket.SOCK_STREAM) as s:
                came, fds, _, _ = socket.recv_fds(s, 1, len(part))
            if not came:
                raise EOFError
            if len(fds) < len(part):
                for fd in fds:
                    os.close(fd)
                raise RuntimeError(
                    f"A worker of a DataLoader sent ({len(part)}) descriptors of shared memory, of which "
                    f"({len(fds)}) came: this process has too many open files (`ulimit -n`)."
                )
            for fd, (key, nbytes) in zip(fds, part):
                segment = self._segments[key] = memory.Segment(fd, nbytes)
                if len(_with_fd) < _FDS_KEPT:
                    _with_fd.add(segment)
                else:
                    segment.close_fd()
        return epoch, number, kind, _Unpickler(content, self).load()

    def lease(self, key: int, nbytes: int) -> Any:
        """A segment's first bytes as a tensor."""
        from mica._memory import shared as memory

        return memory.lease(
            memory.Handle(self._segments[key], nbytes), functools.partial(self.freed.append, key)
        )

    def end_text(self) -> str:
        """How the process ended, as text."""
        self.process.join(_END_SECONDS)
        code = self.process.exitcode
        name = f", {signal.Signals(-code).name}" if code is not None and code < 0 else ""
        hint = ""
        if code == -signal.SIGKILL:
            hint = " So ends a process when the machine has no memory left: use fewer workers or smaller batches."
        return f"(pid(s) {self.process.pid}) exited unexpectedly, with exit code ({code}){name}.{hint}"


def _context(asked: Any) -> Any:
    """How processes start: as was asked, else as the program does."""
    import multiprocessing

    context = asked or multiprocessing.get_context()
    return context if context.get_start_method() else multiprocessing.get_context("fork")


class Pool:
    """The workers of a loader, and the batches that are on their way."""

    def __init__(self, loader: Any, seed: int) -> None:
        self.prefetch, self.timeout, self.in_order = loader.prefetch_factor, loader.timeout, loader.in_order
        self.links: list[Link] = []
        self._epoch = self._sent = self._given = self._turn = 0
        self._waited: dict[int, tuple[Link, list[Any]]] = {}  # by number: who loads it, and what came
        self._selector = selectors.DefaultSelector()
        self._process = os.getpid()
        from mica._memory import forking_pickler as _reductions  # noqa: F401  (datasets go to spawned workers by it)

        context = _context(loader.multiprocessing_context)
        ends = [context.Pipe(duplex=True) for _ in range(loader.num_workers)]
        how = (loader._auto_collation, loader.collate_fn, loader.drop_last)
        fetcher = functools.partial(_DatasetKind.create_fetcher, loader._dataset_kind, loader.dataset, *how)
        forked = context.get_start_method() == "fork"
        others = [mine for mine, _ in ends] if forked else []
        try:
            with Uninterrupted():
                for i, (mine, theirs) in enumerate(ends):
                    info = _workers.WorkerInfo(i, loader.num_workers, seed + i, loader.dataset)
                    also = others + [end for j, (_, end) in enumerate(ends) if j > i] if forked else []
                    arguments = (info, fetcher, loader.worker_init_fn, theirs, also, seed)
                    process = context.Process(target=_workers.work, args=arguments, daemon=True)
                    process.start()
                    theirs.close()
                    self.links.append(Link(process, mine))
                    self._selector.register(mine, selectors.EVENT_READ, self.links[-1])
        except BaseException:
            self.close()
            raise

    def reset(self, seed: int | None) -> None:
        """Begins another epoch, for which pipes have a seed; what is still on its way is forgotten."""
        self._epoch += 1
        self._sent = self._given = self._turn = 0
        self._waited.clear()
        for link in self.links:
            link.active, link.tasks = True, 0
            link.send((self._epoch, None, seed))
        ready = 0
        while ready < len(self.links):
            _, _, kind, result = self._answer()
            if kind == _workers.FAILURE:
                result.raise_(0)
            ready += kind == _workers.READY

    def start(self, places: Any) -> None:
        """Asks for the first batches."""
        for _ in range(self.prefetch * len(self.links)):
            self._ask(places)

    def _ask(self, places: Any) -> None:
        """Asks the next worker in turn for the next batch, if there is one."""
        active = sum(link.active for link in self.links)
        try:
            wanted = next(places)
        except StopIteration:
            return
        for _ in self.links:
            link = self.links[self._turn]
            self._turn = (self._turn + 1) % len(self.links)
            most = self.prefetch * len(self.links) // max(active, 1)
            if link.active and (self.in_order or link.tasks < most):
                break
        else:
            return
        self._waited[self._sent] = (link, [])
        link.tasks += 1
        link.send((self._epoch, self._sent, wanted))
        self._sent += 1

    def next(self, places: Any) -> Any:
        """The next batch; StopIteration after the last."""
        while True:
            while self._given < self._sent:
                link, came = self._waited.get(self._given, (None, None))
                if link is not None and (came or link.active):
                    break
                self._waited.pop(self._given, None)  # its worker had no more samples
                self._given += 1
            else:
                raise StopIteration
            if came:
                del self._waited[self._given]
                self._given += 1
                return self._take(link, came[0], places)
            link, number, kind, result = self._answer()
            if kind == _workers.END:
                if link.active:
                    link.active = False
                    self._ask(places)
            elif number == self._given or not self.in_order:
                del self._waited[number]
                self._given += number == self._given
                return self._take(link, (kind, result), places)
            else:
                self._waited[number][1].append((kind, result))

    def _take(self, link: Link, answer: tuple[int, Any], places: Any) -> Any:
        kind, result = answer
        link.tasks -= 1
        self._ask(places)
        if kind == _workers.FAILURE:
            result.raise_(self.links.index(link))
        return result

    def _answer(self) -> tuple[Link, Any, int, Any]:
        """The next answer of this epoch, from whichever worker."""
        end = time.monotonic() + self.timeout if self.timeout else None
        while True:
            left = None if end is None else max(end - time.monotonic(), 0)
            ready = self._selector.select(left)
            if not ready and end is not None and time.monotonic() >= end:
                raise RuntimeError(
                    f"DataLoader timed out: no batch came from its workers within ({self.timeout}) seconds."
                )
            for key, _ in ready:
                link = key.data
                try:
                    epoch, number, kind, result = link.receive()
                except (EOFError, OSError) as error:
                    raise RuntimeError(f"DataLoader worker {link.end_text()}") from error
                if epoch == self._epoch:
                    return link, number, kind, result

    def close(self) -> None:
        """Ends the workers: at once those that wait, after some seconds all."""
        if self._process != os.getpid():
            return
        links, self.links = self.links, []
        self._waited.clear()
        for link in links:
            link.send(None)
            link.connection.close()
        end = time.monotonic() + _END_SECONDS
        for link in links:
            link.process.join(max(end - time.monotonic(), 0))
            if link.process.is_alive():
                link.process.terminate()
                link.process.join(1)
            if link.process.is_alive():
                link.process.kill()
                link.process.join()
        self._selector.close()
