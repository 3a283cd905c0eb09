"""Groups of ranks, and what they have started."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any

import mica
from mica._C import Tensor
from mica.distributed._connect import Reports
from mica.distributed._errors import DistBackendError
from mica.distributed._store import Store
from mica.futures import Future

__all__ = ["ProcessGroup", "Work"]

_FOREVER = 1e9  # seconds: the group's own timeout ends a collective earlier


class Work:
    """A collective that was started: what calls with `async_op=True` give.

    As `torch.distributed.Work`. The tensors may not be read or written before `wait`.

    Args:
        started (object): What `mica.ops.collectives.start` gave.
        finish (callable, optional): Called once after the end, by `wait`. Default: None.
        explain (callable, optional): Gives more to say of an error, from its text. Default: None.
        tensors (sequence of Tensor): Those that are written. Default: none.

    Example:
        >>> mica.distributed.init_process_group("threads", rank=0, world_size=1)
        >>> work = mica.distributed.all_reduce(mica.ones(2), async_op=True)
        >>> work.wait()
        True
        >>> mica.distributed.destroy_process_group()
    """

    def __init__(
        self, started: Any, finish: Any = None, explain: Any = None, tensors: Sequence[Tensor] = ()
    ) -> None:
        self._started, self._finish, self._explain = started, finish, explain
        self._tensors = list(tensors)

    def wait(self, timeout: Any = None) -> bool:
        """Waits for the end of the collective.

        Args:
            timeout (timedelta, optional): At most so long. Default: None, the group's timeout.

        Returns:
            bool: True.

        Raises:
            RuntimeError: The collective failed, or did not end in time.
        """
        seconds = _FOREVER if timeout is None else timeout.total_seconds()
        try:
            ended = mica.ops.collectives.wait(self._started, seconds)
        except RuntimeError as error:
            if self._explain is None or type(error) is not RuntimeError:
                raise
            raise DistBackendError(f"{error}\n{self._explain(str(error))}") from None
        if not ended:
            raise RuntimeError(
                f"The collective did not end within ({seconds}) s, the timeout given to wait()."
            )
        self._settle()
        return True

    def _settle(self) -> None:
        """Brings the results to where the caller wants them, once."""
        finish, self._finish = self._finish, None
        if finish is not None:
            finish()

    def get_future(self) -> WorkFuture:
        """Gives a Future of the tensors that are written.

        Returns:
            Future: Its value is a list of tensors. It comes when someone waits for it.
        """

        def come() -> list[Tensor]:
            self.wait()
            return self._tensors

        return WorkFuture(come, self.is_completed)

    def is_completed(self) -> bool:
        """Says whether the collective has ended, and does not wait.

        Returns:
            bool: Also True where it failed, which `wait` raises.
        """
        try:
            return bool(mica.ops.collectives.wait(self._started, 0.0))
        except RuntimeError:
            return True


class Works(Work):
    """Several collectives that were started as one.

    As what `torch.distributed` gives for them.
    """

    def __init__(self, works: Sequence[Work], finish: Any = None) -> None:
        self._works, self._finish, self._tensors = list(works), finish, []

    def wait(self, timeout: Any = None) -> bool:
        """Waits for the end of all of them.

        Args:
            timeout (timedelta, optional): At most so long for each. Default: None, the group's timeout.

        Returns:
            bool: True.
        """
        for work in self._works:
            work.wait(timeout)
        self._settle()
        return True

    def is_completed(self) -> bool:
        """Says whether all have ended, and does not wait.

        Returns:
            bool: Also True where one failed.
        """
        return all(work.is_completed() for work in self._works)


class WorkFuture(Future[Any]):
    """What a Work gives, for programs that wait for Futures: it and what follows it come when someone waits.

    As what `torch.distributed.Work.get_future` gives, whose callbacks run on a thread of the engine.
    """

    def __init__(self, come: Callable[[], Any], ended: Callable[[], bool]) -> None:
        super().__init__()
        self._come: Callable[[], Any] | None = come
        self._ended = ended

    def done(self) -> bool:
        """Says whether the value, or an error, is there, and does not wait for the collective.

        What follows it (`then`) is called here, and an error takes the seconds in which the other ranks report.

        Returns:
            bool: Whether `wait` returns at once.
        """
        if self._come is not None and self._ended():
            with contextlib.suppress(Exception):  # whoever waits gets it
                self.wait()
        return super().done()

    def wait(self) -> Any:
        """Waits for the value.

        Returns:
            object: The value.
        """
        come, self._come = self._come, None
        if come is not None:
            try:
                self.set_result(come())
            except Exception as error:  # noqa: BLE001 - whoever waits gets it
                self.set_exception(error)
        return super().wait()

    def then(self, callback: Callable[[Future[Any]], Any]) -> Future[Any]:
        """Makes a Future of what a function gives once the value is there.

        Args:
            callback (callable): `callback(future)`.

        Returns:
            Future: Of what `callback` returns.
        """

        def follow() -> Any:
            self.wait()
            return callback(self)

        return WorkFuture(follow, self.done)


class ProcessGroup:
    """One rank's end of a group of ranks, made by `init_process_group` and `new_group`.

    As `torch.distributed.ProcessGroup`. `handle` is the object that the operators `mica.ops.collectives` take.

    Args:
        handle (object): The engine's group, of `mica.ops.collectives.open`.
        ranks (sequence of int): Its ranks, numbered in the default group.
        name (str): What names it alike on all its ranks.
        backend (str): The engine: "threads", for example.
        timeout (float): Seconds for each collective.
        store (Store, optional): Where ranks tell each other of errors. Default: None, they do not.

    Example:
        >>> mica.distributed.init_process_group("threads", rank=0, world_size=1)
        >>> group = mica.distributed.new_group([0])
        >>> group.rank(), group.size(), group.name()
        (0, 1, 'threads')
        >>> mica.distributed.destroy_process_group()
    """

    def __init__(
        self,
        handle: Any,
        ranks: Sequence[int],
        name: str,
        backend: str,
        timeout: float,
        store: Store | None = None,
    ) -> None:
        self.handle, self.group_name, self.timeout, self.store = handle, name, timeout, store
        self._ranks, self._backend = list(ranks), backend
        self._rank = int(mica.ops.collectives.group_rank(handle))
        self._reports = None if store is None else Reports(name, ranks, self._rank, store, timeout)

    def rank(self) -> int:
        """Gives this rank's number in the group.

        Returns:
            int: From 0.
        """
        return self._rank

    def size(self) -> int:
        """Gives the number of ranks.

        Returns:
            int: At least 1.
        """
        return len(self._ranks)

    def name(self) -> str:
        """Gives the name of the engine.

        Returns:
            str: "threads", for example.
        """
        return self._backend

    def ranks(self) -> list[int]:
        """Gives the ranks of the group.

        Returns:
            list of int: Their numbers in the default group, in the order of the group.
        """
        return list(self._ranks)

    def leave(self) -> None:
        """Leaves the group; collectives that others still wait for with this rank end with an error."""
        if self._reports is not None:
            self._reports.leave()
        mica.ops.collectives.close(self.handle)

    def place(self, rank: int) -> int:
        """Turns a number of the default group into one of this group.

        Args:
            rank (int): The rank in the default group.

        Returns:
            int: Its number here.

        Raises:
            ValueError: The rank is not in the group.
        """
        if rank not in self._ranks:
            raise ValueError(f"Rank ({rank}) is not in the group ({self.group_name}) of ranks {self._ranks}.")
        return self._ranks.index(rank)

    def start(
        self,
        collective: str,
        given: Tensor | None,
        result: Tensor | None,
        *,
        reduction: str = "sum",
        peer: int = 0,
        tag: int = 0,
        splits: tuple[Sequence[int], Sequence[int]] = ((), ()),
        finish: Any = None,
    ) -> Work:
        """Starts a collective on memory that is there.

        Args:
            collective (str): Its name, "all_reduce" for example.
            given (Tensor or None): What this rank brings, contiguous.
            result (Tensor or None): What is written, contiguous.
            reduction (str): "sum", for example. Default: "sum".
            peer (int): The root, or the other side of send and recv, numbered in this group. Default: 0.
            tag (int): Of send and recv. Default: 0.
            splits (tuple of 2 sequence of int): Rows from and to each rank, of all_to_all. Default: none.
            finish (callable, optional): Called after the end, by `wait`. Default: None.

        Returns:
            Work: To wait for.

        Raises:
            NotImplementedError: A tensor is not on the CPU, or is a conjugated or negated view.
        """
        for tensor in (given, result):
            # The operator would see a copy of it, which is thrown away before the collective ends.
            if tensor is not None and (tensor.device.type != "cpu" or tensor.is_conj() or tensor.is_neg()):
                raise NotImplementedError(
                    f"{collective} gets a tensor on {tensor.device}, or a conjugated or negated view; collectives "
                    "take plain tensors on the CPU so far: give a copy (.cpu(), .resolve_conj()) and copy the "
                    "result back."
                )
        outputs, inputs = splits
        operator = mica.ops.collectives.start
        with mica.no_grad():
            begun = operator(
                collective, given, result, self.handle, reduction, peer, tag, list(outputs), list(inputs)
            )
        written = [] if result is None else [result]
        if self._reports is None:
            return Work(begun, finish, tensors=written)
        explain = functools.partial(self._explain, self._reports, given, result)
        return Work(begun, finish, explain, written)

    @staticmethod
    def _explain(reports: Reports, given: Tensor | None, result: Tensor | None, error: str) -> str:
        tensors = [given, None if result is given else result]
        kinds = [f"{str(t.dtype).partition('.')[2]} {tuple(t.shape)}" for t in tensors if t is not None]
        return reports.explain(
            error, f"with tensors of {' and '.join(kinds)}" if kinds else "without tensors"
        )


class _State:
    """The groups of one rank."""

    def __init__(self) -> None:
        self.default: ProcessGroup | None = None
        self.groups: list[ProcessGroup] = []
        self.store: Store | None = None
        self.run = ""  # names what the ranks of one init_process_group share
        self.own_store = False  # whether the program brought the store
        self.made = 0  # groups so far, which names them alike on all ranks


# A rank is a process, or with the engine `threads` a thread.
_process = [_State()]
_threads = threading.local()


def state() -> _State:
    """The groups of this thread's rank."""
    found: _State | None = getattr(_threads, "state", None)
    return _process[0] if found is None else found


def begin(of_thread: bool) -> _State:
    """New groups, for this thread or this process."""
    new = _State()
    if of_thread:
        _threads.state = new
    else:
        _process[0] = new
    return new


def end() -> None:
    """Forgets the groups of this thread's rank."""
    if getattr(_threads, "state", None) is None:
        _process[0] = _State()
    _threads.state = None
