"""Saving a state dict by all ranks together, at once or while the program goes on."""

from __future__ import annotations

import enum
import inspect
import logging
import os
import threading
import warnings
import weakref
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from mica.distributed._connect import connected
from mica.distributed._group import ProcessGroup, state
from mica.distributed._init import is_initialized
from mica.distributed.checkpoint._ranks import Ranks
from mica.distributed.checkpoint._storage_choice import storage_of
from mica.distributed.checkpoint.api import CheckpointException
from mica.distributed.checkpoint.default_planner import DefaultSavePlanner
from mica.distributed.checkpoint.metadata import STATE_DICT_TYPE, Metadata
from mica.distributed.checkpoint.planner import SavePlan, SavePlanner
from mica.distributed.checkpoint.staging import AsyncStager, DefaultStager, StagingOptions
from mica.distributed.checkpoint.stateful import Stateful
from mica.distributed.checkpoint.storage import StorageWriter, WriteResult

__all__ = ["AsyncCheckpointerType", "AsyncSaveResponse", "async_save", "save", "save_state_dict"]

logger = logging.getLogger(__name__)
T, R = TypeVar("T"), TypeVar("R")


class AsyncCheckpointerType(enum.Enum):
    """What writes in the background: a thread; a process is not there.

    Example:
        >>> mica.distributed.checkpoint.state_dict_saver.AsyncCheckpointerType.THREAD.value
        'thread'
    """

    THREAD = "thread"
    PROCESS = "process"


def save_state_dict(
    state_dict: STATE_DICT_TYPE,
    storage_writer: StorageWriter,
    process_group: ProcessGroup | None = None,
    coordinator_rank: int = 0,
    no_dist: bool = False,
    planner: SavePlanner | None = None,
) -> Metadata:
    """Saves a state dict; use `save`, which knows objects with a state.

    As `torch.distributed.checkpoint.save_state_dict`.

    Args:
        state_dict (dict): Tensors, pieces of them and other values.
        storage_writer (StorageWriter): Where.
        process_group (ProcessGroup, optional): Its ranks save together. Default: None, the default group.
        coordinator_rank (int): The rank that plans and publishes. Default: 0.
        no_dist (bool): Saves what this process has alone. Default: False.
        planner (SavePlanner, optional): Default: None, a DefaultSavePlanner.

    Returns:
        Metadata: What the checkpoint holds.

    Raises:
        CheckpointException: A rank failed; see `save`.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     writer = mica.distributed.checkpoint.FileSystemWriter(folder)
        ...     found = mica.distributed.checkpoint.save_state_dict({"x": mica.ones(2)}, writer, no_dist=True)
        >>> list(found.state_dict_metadata)
        ['x']
    """
    warnings.warn("`save_state_dict` is deprecated; use `save`.", FutureWarning, stacklevel=2)

    def begun() -> tuple[StorageWriter, STATE_DICT_TYPE]:
        storage_writer.reset()
        return storage_writer, state_dict

    return _save(begun, Ranks(process_group, no_dist, coordinator_rank), planner)


def save(
    state_dict: STATE_DICT_TYPE,
    *,
    checkpoint_id: str | os.PathLike[str] | None = None,
    storage_writer: StorageWriter | None = None,
    planner: SavePlanner | None = None,
    process_group: ProcessGroup | None = None,
    no_dist: bool = False,
    use_collectives: bool = True,
) -> Metadata:
    """Saves a state dict; all ranks of the group call it.

    As `torch.distributed.checkpoint.save`. What several ranks have under one key is written by one of them, in equal
    shares. A checkpoint that is there stays whole until the new one is, whatever happens to the ranks.

    Args:
        state_dict (dict): Tensors, pieces of global tensors, values that `mica.save` writes, objects with a
            `state_dict()`, and dicts and lists of them.
        checkpoint_id (str or path, optional): The folder. Default: None, that of `storage_writer`.
        storage_writer (StorageWriter, optional): Default: None, a FileSystemWriter.
        planner (SavePlanner, optional): Default: None, a DefaultSavePlanner.
        process_group (ProcessGroup, optional): Its ranks save together. Default: None, the default group.
        no_dist (bool): Saves what this process has alone. Default: False.
        use_collectives (bool): Must be True. Default: True.

    Returns:
        Metadata: What the checkpoint holds.

    Raises:
        CheckpointException: A rank failed. It is raised on all ranks, names the rank, and is of the kind of its error
            too: OSError for a full disk, ValueError for pieces that overlap or leave a hole or tensors that differ,
            TypeError for a value that loading would refuse, RuntimeError if neither a folder nor a writer is given.
        NotImplementedError: `use_collectives` is False.

    Example:
        >>> import tempfile
        >>> model, folder = mica.nn.Linear(2, 2), tempfile.TemporaryDirectory()
        >>> checkpoint = mica.distributed.checkpoint
        >>> found = checkpoint.save({"model": model, "epoch": 3}, checkpoint_id=folder.name, no_dist=True)
        >>> list(found.state_dict_metadata)
        ['model.weight', 'model.bias', 'epoch']
        >>> folder.cleanup()
    """
    _check(use_collectives)
    warn_alone(no_dist, process_group, "save")
    ranks = Ranks(process_group, no_dist)
    _wait_for_background(ranks.group)

    def begun() -> tuple[StorageWriter, STATE_DICT_TYPE]:
        return storage_of(storage_writer, checkpoint_id, reader=False), _states(state_dict)

    return _save(begun, ranks, planner)


def _check(use_collectives: bool) -> None:
    if not use_collectives:
        raise NotImplementedError(
            "save(use_collectives=False) is not there: ranks that do not wait for each other make no whole checkpoint; "
            "leave it out, or save by no_dist=True into a folder for each rank."
        )


def warn_alone(no_dist: bool, group: ProcessGroup | None, what: str) -> None:
    """Warns a program that has no group and did not say so."""
    if not (no_dist or group is not None or is_initialized()):
        warnings.warn(
            f"torch.distributed is disabled, unavailable or uninitialized, assuming the intent is to {what} in a single "
            "process.",
            stacklevel=3,
        )


def _states(state_dict: STATE_DICT_TYPE) -> STATE_DICT_TYPE:
    """The dict with the states of its objects in their places."""
    return {key: one.state_dict() if isinstance(one, Stateful) else one for key, one in state_dict.items()}


def _save(
    begun: Callable[[], tuple[StorageWriter, STATE_DICT_TYPE]], ranks: Ranks, planner: SavePlanner | None
) -> Metadata:
    """Saves to where `begun()` says what it gives. Whatever a rank does alone is done within a step, as this is: the
    other ranks would wait for one that fails elsewhere, and meet it in the next save."""
    plans = DefaultSavePlanner() if planner is None else planner
    made: list[Metadata] = []  # on the coordinator
    writer: StorageWriter

    def local_plan() -> SavePlan:
        nonlocal writer
        writer, state_dict = begun()
        plans.set_up_planner(
            state_dict=state_dict, storage_meta=writer.storage_meta(), is_coordinator=ranks.is_coordinator
        )
        told = {"rank": ranks.rank, "use_collectives": True}
        takes_all = "kwargs" in inspect.signature(writer.set_up_storage_writer).parameters
        writer.set_up_storage_writer(ranks.is_coordinator, **(told if takes_all else {}))
        return writer.prepare_local_plan(plans.create_local_plan())

    def global_plan(all_plans: list[SavePlan]) -> list[SavePlan]:
        all_plans, metadata = plans.create_global_plan(all_plans)
        made.append(metadata)
        return writer.prepare_global_plan(all_plans)

    def write() -> list[WriteResult]:
        return writer.write_data(plans.finish_plan(plan), plans).wait()

    def finish(results: list[list[WriteResult]]) -> Metadata:
        writer.finish(metadata=made[0], results=results)
        return made[0]

    plan = ranks.reduce_scatter("plan", local_plan, global_plan)
    try:
        return ranks.all_reduce("write", write, finish)
    except CheckpointException as error:
        if error.step == "write":  # no rank will publish what this one wrote
            writer.discard()
        raise


@dataclass
class AsyncSaveResponse:
    """What `async_save` gives with a stager that copies in the background.

    As `torch.distributed.checkpoint.state_dict_saver.AsyncSaveResponse`.

    Args:
        staging_completion (Future): Done when the state dict was copied, and may be changed.
        upload_completion (Future): The Metadata, when the checkpoint is whole.

    Example:
        >>> import tempfile
        >>> from mica.distributed.checkpoint.staging import DefaultStager
        >>> folder, stager = tempfile.TemporaryDirectory(), DefaultStager()
        >>> begun = mica.distributed.checkpoint.async_save(
        ...     {"x": mica.ones(2)}, checkpoint_id=folder.name, async_stager=stager, no_dist=True)
        >>> begun.staging_completion.result()
        >>> list(begun.upload_completion.result().state_dict_metadata)
        ['x']
        >>> stager.close()
        >>> folder.cleanup()
    """

    staging_completion: Future[None]
    upload_completion: Future[Metadata]


def async_save(
    state_dict: STATE_DICT_TYPE,
    *,
    checkpoint_id: str | os.PathLike[str] | None = None,
    storage_writer: StorageWriter | None = None,
    planner: SavePlanner | None = None,
    process_group: ProcessGroup | None = None,
    async_checkpointer_type: AsyncCheckpointerType = AsyncCheckpointerType.THREAD,
    async_stager: AsyncStager | None = None,
    no_dist: bool = False,
    use_collectives: bool = True,
) -> Future[Metadata] | AsyncSaveResponse:
    """Saves a state dict in a thread; all ranks of the group call it.

    As `torch.distributed.checkpoint.async_save`. The state dict is copied before the call returns. Saves of one group
    are written one after another, in the order of the calls, by collectives of a group of their own. The process ends
    when they are written.

    Args:
        state_dict (dict): As `save` takes.
        checkpoint_id (str or path, optional): The folder. Default: None, that of `storage_writer`.
        storage_writer (StorageWriter, optional): Default: None, a FileSystemWriter.
        planner (SavePlanner, optional): Default: None, a DefaultSavePlanner.
        process_group (ProcessGroup, optional): Its ranks save together. Default: None, the default group.
        async_checkpointer_type (AsyncCheckpointerType): Must be THREAD. Default: THREAD.
        async_stager (AsyncStager, optional): Copies the state dict. Default: None, before the call returns.
        no_dist (bool): Saves what this process has alone. Default: False.
        use_collectives (bool): Must be True. Default: True.

    Returns:
        Future: Of the Metadata; `result()` raises what `save` would, which is logged if nobody asks for it. It cannot be
        cancelled. An AsyncSaveResponse if `async_stager` gives a Future.

    Raises:
        NotImplementedError: A process is asked for, or `use_collectives` is False.
        Exception: The state dict cannot be copied; the other ranks' `result()` raises a CheckpointException of it.

    Example:
        >>> import tempfile
        >>> folder, x = tempfile.TemporaryDirectory(), mica.zeros(2)
        >>> begun = mica.distributed.checkpoint.async_save({"x": x}, checkpoint_id=folder.name, no_dist=True)
        >>> x += 1  # training goes on
        >>> done = begun.result()
        >>> state = {"x": mica.empty(2)}
        >>> mica.distributed.checkpoint.load(state, checkpoint_id=folder.name, no_dist=True)
        >>> state
        {'x': tensor([0., 0.])}
        >>> folder.cleanup()
    """
    _check(use_collectives)
    if async_checkpointer_type != AsyncCheckpointerType.THREAD:
        raise NotImplementedError(
            f"async_save(async_checkpointer_type={async_checkpointer_type}) is not there; a thread writes: leave it out."
        )
    warn_alone(no_dist, process_group, "save")
    background = _background(Ranks(process_group, no_dist).group)
    stager: Any = async_stager
    if stager is None:
        stager = storage_writer if isinstance(storage_writer, AsyncStager) else _BLOCKING
    staged, error = _staged(stager, state_dict)

    def begun() -> tuple[StorageWriter, STATE_DICT_TYPE]:
        if error is not None:
            raise error
        whole = staged.result() if isinstance(staged, Future) else staged
        return storage_of(storage_writer, checkpoint_id, reader=False), whole

    upload = background.begin(
        lambda: _save(begun, Ranks(background.group, background.group is None), planner)
    )
    if error is not None:  # of which the other ranks hear before this one goes on, and may leave
        upload.asked = True
        background.wait()
        raise error
    if isinstance(staged, Future):
        return AsyncSaveResponse(_following(staged), upload)
    if stager.should_synchronize_after_execute:
        stager.synchronize_staging()
    return upload


_BLOCKING = DefaultStager(StagingOptions(use_async_staging=False))


def _staged(stager: Any, state_dict: STATE_DICT_TYPE) -> tuple[Any, BaseException | None]:
    """What the stager gives, or why it gives nothing."""
    try:
        return stager.stage(_states(state_dict)), None
    except BaseException as error:  # noqa: BLE001 - the other ranks are told first
        return None, error


def _following(staged: Future[Any]) -> Future[None]:
    """A Future that is done with another, without its value."""
    done: Future[None] = Future()
    staged.add_done_callback(lambda of: _settle(done, of, lambda _: None))
    return done


def _settle(future: Future[T], of: Future[R], value: Callable[[R], T]) -> None:
    """Ends a Future as another one has ended."""
    error = of.exception()
    if error is None:
        future.set_result(value(of.result()))
    else:
        future.set_exception(error)


_this_thread = threading.local()


class _Upload(Future[Metadata]):
    """A save that goes on. It cannot be cancelled, as the other ranks' cannot be, and a failure is said in the end if
    nobody asks for it."""

    def __init__(self, save: Future[Metadata]) -> None:
        super().__init__()
        self.asked = False
        self.set_running_or_notify_cancel()
        save.add_done_callback(lambda of: _settle(self, of, lambda metadata: metadata))

    def result(self, timeout: float | None = None) -> Metadata:
        self.asked = True
        return super().result(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        self.asked = True
        return super().exception(timeout)

    def __del__(self) -> None:
        if not self.asked and self.done() and (error := super().exception()) is not None:
            logger.error("A save in the background failed, and nobody has asked for its result: %s", error)


class _Background:
    """The thread that writes a group's checkpoints, and the group of the same ranks whose collectives it calls.

    The program's own collectives go on meanwhile, and ranks must call those of one group in one order.
    """

    def __init__(self, group: ProcessGroup | None) -> None:
        self.thread = ThreadPoolExecutor(1, "async_save", lambda: setattr(_this_thread, "writes", True))
        self.group = group
        if group is None:
            return
        name = f"{group.group_name}/async_save"
        handle = connected(group.name(), name, group.ranks(), group.rank(), group.timeout, group.store)
        self.group = ProcessGroup(handle, group.ranks(), name, group.name(), group.timeout, group.store)
        state().groups.append(self.group)  # destroy_process_group leaves it, too

    def begin(self, save: Callable[[], Metadata]) -> _Upload:
        """Saves in the thread, after what was begun before."""
        return _Upload(self.thread.submit(save))

    def wait(self) -> None:
        """Waits for what was begun, but not in the thread itself, as what a Future calls when it is done."""
        if not hasattr(_this_thread, "writes"):
            self.thread.submit(int).result()


_of_groups: weakref.WeakKeyDictionary[ProcessGroup, _Background] = weakref.WeakKeyDictionary()
_alone = [_Background(None)]


def _background(group: ProcessGroup | None) -> _Background:
    if group is None:
        return _alone[0]
    found = _of_groups.get(group)
    if found is None:
        found = _of_groups[group] = _Background(group)
    return found


def _wait_for_background(group: ProcessGroup | None) -> None:
    """Waits for saves that were begun: one that came later must not be replaced by an earlier one."""
    background = _alone[0] if group is None else _of_groups.get(group)
    if background is not None:
        background.wait()


def _forget() -> None:
    """In a process that was forked, which has none of the threads."""
    _of_groups.clear()
    _alone[0] = _Background(None)


os.register_at_fork(after_in_child=_forget)
