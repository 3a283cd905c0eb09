"""Worker processes of a DataLoader: each loads the batches whose numbers it is given.

Batches are handed out in turn, `prefetch` ahead for each worker, and come back in
order. An exception in a worker is raised where the batch is awaited, with the worker's
traceback in its message; a worker that dies is an error that says so.
"""

from __future__ import annotations

import multiprocessing
import os
import queue
import signal
import threading
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import mica


@dataclass(frozen=True)
class WorkerInfo:
    """What get_worker_info() says inside a worker."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """The worker that the caller runs in; None in the main process."""
    return _info


@dataclass
class _Failure:
    kind: type[BaseException]
    text: str

    def raise_(self, worker: int) -> None:
        message = f"Worker process ({worker}) of a DataLoader raised:\n{self.text}"
        try:
            error = self.kind(message)
        except Exception:  # an exception that takes no single text
            error = RuntimeError(message)
        raise error


class _Uninterrupted:
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


def _next_task(tasks: Any, parent: int) -> Any:
    """The next task; None after the last one, or when the main process is gone."""
    while os.getppid() == parent:
        try:
            return tasks.get(timeout=5)
        except queue.Empty:
            continue
    return None


def _work(
    info: WorkerInfo,
    fetch: Callable[[Any], Any],
    init: Callable[[int], None] | None,
    tasks: Any,
    results: Any,
    parent: int,
) -> None:
    global _info
    _info = info
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the main process ends the workers
    mica.manual_seed(info.seed)
    mica.set_num_threads(1)
    failure = None
    try:
        if init is not None:
            init(info.id)
    except Exception as error:
        failure = _Failure(type(error), traceback.format_exc())
    while (task := _next_task(tasks, parent)) is not None:
        number, places = task
        try:
            result = failure or fetch(places)
        except Exception as error:
            result = _Failure(type(error), traceback.format_exc())
        results.put((number, info.id, result))


def load(
    batches: Iterator[Any],
    fetch: Callable[[Any], Any],
    *,
    dataset: Any,
    num_workers: int,
    prefetch: int,
    seed: int,
    init: Callable[[int], None] | None,
    timeout: float,
    context: Any,
) -> Iterator[Any]:
    """fetch(batch) of each batch, in order, computed by worker processes."""
    if context is None or isinstance(context, str):
        context = multiprocessing.get_context(context)
    results = context.Queue()
    tasks = [context.Queue() for _ in range(num_workers)]
    workers: list[Any] = []
    sent = given = 0
    arrived: dict[int, tuple[int, Any]] = {}

    def send() -> None:
        nonlocal sent
        batch = next(batches, None)
        if batch is not None:
            tasks[sent % num_workers].put((sent, batch))
            sent += 1

    try:
        with _Uninterrupted():
            for i in range(num_workers):
                info = WorkerInfo(i, num_workers, seed + i, dataset)
                arguments = (info, fetch, init, tasks[i], results, os.getpid())
                process = context.Process(target=_work, args=arguments, daemon=True)
                process.start()
                workers.append(process)
        for _ in range(prefetch * num_workers):
            send()
        while given < sent:
            while given not in arrived:
                number, worker, result = _await(results, workers, timeout)
                arrived[number] = (worker, result)
            worker, result = arrived.pop(given)
            given += 1
            send()
            if isinstance(result, _Failure):
                result.raise_(worker)
            yield result
    finally:
        for task in tasks:
            task.put(None)
        for process in workers:
            process.join(timeout=5)
            if process.is_alive():
                process.terminate()
        for q in [results, *tasks]:
            q.cancel_join_thread()
            q.close()


def _await(results: Any, workers: list[Any], timeout: float) -> Any:
    waited = 0.0
    while True:
        try:
            return results.get(timeout=0.5)
        except queue.Empty:
            waited += 0.5
        for i, process in enumerate(workers):
            if not process.is_alive():
                raise RuntimeError(
                    f"Worker process ({i}) of a DataLoader ended with exit code ({process.exitcode})."
                )
        if timeout and waited >= timeout:
            raise RuntimeError(f"No batch came from the workers of a DataLoader within ({timeout}) seconds.")
