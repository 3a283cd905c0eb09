"""mica.multiprocessing: the standard library's, whose queues, pipes and processes take tensors by
their memory, which both sides then see (_memory/forking_pickler.py), with torch's start_processes() and spawn()."""

from __future__ import annotations

import multiprocessing as _standard
import signal
from multiprocessing import *  # noqa: F403
from multiprocessing import (
    current_process as current_process,
    get_all_start_methods as get_all_start_methods,
    get_context as get_context,
)
from typing import Any

from mica._memory import forking_pickler as _reductions, shared as _shared_memory
from mica._memory.forking_pickler import init_reductions as init_reductions

reductions = _reductions


def _supports_context() -> bool:
    return True


def get_all_sharing_strategies() -> set[str]:
    """The names that set_sharing_strategy() takes."""
    return {"file_descriptor", "file_system"}


def get_sharing_strategy() -> str:
    """How memory is shared: "file_descriptor" or "file_system"."""
    return _shared_memory._strategy[-1]


def set_sharing_strategy(new_strategy: str) -> None:
    """Sets how memory is shared from now on. "file_descriptor": nameless, and it goes with the last
    process. "file_system": files of /dev/shm, for where descriptors are scarce or cannot be sent."""
    if new_strategy not in get_all_sharing_strategies():
        raise AssertionError(
            f"The sharing strategy ({new_strategy!r}) is unknown; expected one of {get_all_sharing_strategies()}."
        )
    _shared_memory._strategy[-1] = new_strategy
    if new_strategy == "file_system":
        from multiprocessing import resource_tracker

        resource_tracker.ensure_running()  # before children are made, so that all have the same


class ProcessException(Exception):
    """A child ended with an error."""

    def __init__(self, msg: str, error_index: int, pid: int) -> None:
        super().__init__(msg)
        self.msg, self.error_index, self.pid = msg, error_index, pid

    def __reduce__(self) -> Any:
        return type(self), (self.msg, self.error_index, self.pid)


class ProcessRaisedException(ProcessException):
    """A child raised; the message has its traceback."""


class ProcessExitedException(ProcessException):
    """A child exited with a status or was killed by a signal."""

    def __init__(
        self, msg: str, error_index: int, error_pid: int, exit_code: int, signal_name: str | None = None
    ) -> None:
        super().__init__(msg, error_index, error_pid)
        self.exit_code, self.signal_name = exit_code, signal_name


def _child(fn: Any, i: int, args: tuple[Any, ...], errors: Any) -> None:
    try:
        fn(i, *args)
    except KeyboardInterrupt:
        pass
    except Exception:
        import sys
        import traceback

        errors.put(traceback.format_exc())
        sys.exit(1)


class ProcessContext:
    """The children that start_processes() began."""

    def __init__(self, processes: list[Any], error_queues: list[Any]) -> None:
        self.processes, self.error_queues = processes, error_queues
        self._left = {p.sentinel: i for i, p in enumerate(processes)}

    def pids(self) -> list[int]:
        return [int(p.pid) for p in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Waits for children; True when all have ended. One that failed ends the others and raises."""
        from multiprocessing import connection

        ready = connection.wait(list(self._left), timeout=timeout) if self._left else []
        failed = None
        for sentinel in ready:
            i = self._left.pop(sentinel)  # type: ignore[arg-type]
            self.processes[i].join()
            if self.processes[i].exitcode != 0:
                failed = i
                break
        if failed is None:
            return not self._left
        for p in self.processes:
            if p.is_alive():
                p.terminate()
        for p in self.processes:
            p.join(grace_period if grace_period is not None else 30)
            if p.is_alive():
                p.kill()
                p.join()
        raise self._error(failed)

    def _error(self, i: int) -> ProcessException:
        process = self.processes[i]
        if self.error_queues[i].empty():
            code = process.exitcode
            if code < 0:
                name = signal.Signals(-code).name
                text = f"process {i} terminated with signal {name}"
                return ProcessExitedException(text, i, process.pid, code, name)
            text = f"process {i} terminated with exit code {code}"
            return ProcessExitedException(text, i, process.pid, code)
        text = f"\n\n-- Process {i} terminated with the following error:\n{self.error_queues[i].get()}"
        return ProcessRaisedException(text, i, process.pid)


SpawnContext = ProcessContext


def start_processes(
    fn: Any,
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Runs fn(i, *args) in `nprocs` processes; with `join` waits for them, else gives their context."""
    context: Any = _standard.get_context(start_method)
    errors, processes = [], []
    for i in range(nprocs):
        queue = context.SimpleQueue()
        process = context.Process(target=_child, args=(fn, i, args, queue), daemon=daemon)
        process.start()
        errors.append(queue)
        processes.append(process)
    started = ProcessContext(processes, errors)
    if not join:
        return started
    while not started.join():
        pass
    return None


def spawn(
    fn: Any,
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """start_processes() by the method "spawn"."""
    return start_processes(fn, args, nprocs, join, daemon, start_method="spawn")
