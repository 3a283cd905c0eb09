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
    """Lists the ways in which processes share the memory of tensors.

    As `torch.multiprocessing.get_all_sharing_strategies`.

    Returns:
        set of str: The names that `set_sharing_strategy()` takes.

    Example:
        >>> sorted(mica.multiprocessing.get_all_sharing_strategies())
        ['file_descriptor', 'file_system']
    """
    return {"file_descriptor", "file_system"}


def get_sharing_strategy() -> str:
    """Returns the way in which processes share the memory of tensors.

    As `torch.multiprocessing.get_sharing_strategy`.

    Returns:
        str: "file_descriptor" or "file_system".

    Example:
        >>> mica.multiprocessing.get_sharing_strategy()
        'file_descriptor'
    """
    return _shared_memory._strategy[-1]


def set_sharing_strategy(new_strategy: str) -> None:
    """Sets how memory is shared from now on.

    As `torch.multiprocessing.set_sharing_strategy`.

    Args:
        new_strategy (str): "file_descriptor", the setting at the start: memory has no name and goes with
            the last process; or "file_system": files of /dev/shm, for where descriptors are scarce or
            cannot be sent.

    Raises:
        AssertionError: The name is another.

    Example:
        >>> mica.multiprocessing.set_sharing_strategy("file_descriptor")
    """
    if new_strategy not in get_all_sharing_strategies():
        raise AssertionError(
            f"The sharing strategy ({new_strategy!r}) is unknown; expected one of {get_all_sharing_strategies()}."
        )
    _shared_memory._strategy[-1] = new_strategy
    if new_strategy == "file_system":
        from multiprocessing import resource_tracker

        resource_tracker.ensure_running()  # before children are made, so that all have the same


class ProcessException(Exception):
    """A process of `start_processes()` ended with an error.

    As `torch.multiprocessing.ProcessException`.

    Args:
        msg (str): What happened, as text.
        error_index (int): Which process, from 0 on.
        pid (int): Its process id.
    """

    def __init__(self, msg: str, error_index: int, pid: int) -> None:
        super().__init__(msg)
        self.msg, self.error_index, self.pid = msg, error_index, pid

    def __reduce__(self) -> Any:
        return type(self), (self.msg, self.error_index, self.pid)


class ProcessRaisedException(ProcessException):
    """Raised where the processes of `start_processes()` or `spawn()` are joined: one of them raised.

    As `torch.multiprocessing.ProcessRaisedException`. `ProcessContext.join()` raises it too.

    Args:
        msg (str): Traceback in the process.
        error_index (int): Number of the process, from 0 on.
        pid (int): Its process id.

    Attributes:
        msg (str): As given; also `str(error)`.
        error_index (int): As given.
        pid (int): As given.
    """


class ProcessExitedException(ProcessException):
    """Raised where processes are joined: one ended with a status other than 0, or was killed by a signal.

    As `torch.multiprocessing.ProcessExitedException`. `start_processes()`, `spawn()` and `ProcessContext.join()`
    raise it. The arguments are its attributes, `error_pid` by the name `pid`.

    Args:
        msg (str): What happened, as text.
        error_index (int): Which process, from 0 on.
        error_pid (int): Its process id.
        exit_code (int): Its status; minus the number of the signal that killed it.
        signal_name (str, optional): The signal's name, "SIGKILL".
    """

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
    """The processes that `start_processes(join=False)` began.

    As `torch.multiprocessing.ProcessContext`.

    Args:
        processes (list): The processes.
        error_queues (list): For each, the queue in which it puts the traceback of what it raises.

    Example:
        >>> context = mica.multiprocessing.start_processes(divmod, (2,), join=False, start_method="fork")
        >>> while not context.join():
        ...     pass
    """

    def __init__(self, processes: list[Any], error_queues: list[Any]) -> None:
        self.processes, self.error_queues = processes, error_queues
        self._left = {p.sentinel: i for i, p in enumerate(processes)}

    def pids(self) -> list[int]:
        """The process ids."""
        return [int(p.pid) for p in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Waits until a process ends. If it failed, the others are ended too and its error is raised.

        Args:
            timeout (float, optional): Seconds to wait. Default: None, without end.
            grace_period (float, optional): Seconds that the others get to end before they are killed.
                Default: None, 30.

        Returns:
            bool: Whether all have ended. Call it until it is true.

        Raises:
            ProcessRaisedException: A process raised.
            ProcessExitedException: A process ended with another status than 0, or by a signal.
        """
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
    """Runs a function in several processes: `fn(i, *args)` in process `i`.

    As `torch.multiprocessing.start_processes`. Tensors among `args` and in `multiprocessing`'s queues are sent by
    their memory, which both sides then see.

    Args:
        fn (callable): The function; by "spawn" it must be defined at the top of a module.
        args (tuple): Its arguments after the process's number. Default: ().
        nprocs (int): How many processes. Default: 1.
        join (bool): Waits until all have ended. Default: True.
        daemon (bool): The processes end with this one. Default: False.
        start_method (str): "spawn", "fork" or "forkserver". Default: "spawn".

    Returns:
        ProcessContext or None: The processes if `join` is False.

    Raises:
        ProcessRaisedException: A process raised; the message has its traceback.
        ProcessExitedException: A process ended with another status than 0, or by a signal.

    Example:
        >>> def fill(rank, shared):
        ...     shared[rank] = 10 * rank
        >>> shared = mica.zeros(3).share_memory_()
        >>> mica.multiprocessing.start_processes(fill, (shared,), nprocs=3, start_method="fork")
        >>> shared
        tensor([ 0., 10., 20.])
    """
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
    """Runs a function in several fresh processes: `fn(i, *args)` in process `i`.

    As `torch.multiprocessing.spawn`: `start_processes()` by the method "spawn".

    Args:
        fn (callable): The function, defined at the top of a module.
        args (tuple): Its arguments after the process's number. Default: ().
        nprocs (int): How many processes. Default: 1.
        join (bool): Waits until all have ended. Default: True.
        daemon (bool): The processes end with this one. Default: False.
        start_method (str): Ignored; "spawn".

    Returns:
        ProcessContext or None: The processes if `join` is False.

    Raises:
        ProcessRaisedException: A process raised; the message has its traceback.
        ProcessExitedException: A process ended with another status than 0, or by a signal.

    Example:
        >>> mica.multiprocessing.spawn(print, args=("of 2",), nprocs=2)  # prints "0 of 2" and "1 of 2"
    """
    return start_processes(fn, args, nprocs, join, daemon, start_method="spawn")
