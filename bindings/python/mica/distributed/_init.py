"""How ranks come together, and who they are."""

from __future__ import annotations

import datetime
import functools
import warnings
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import mica
from mica.distributed._connect import connected
from mica.distributed._group import ProcessGroup, begin, end, state
from mica.distributed._rendezvous import rendezvous
from mica.distributed._store import Store
from mica.distributed._store_file import FileStore

__all__ = [
    "GroupMember",
    "destroy_process_group",
    "group",
    "init_process_group",
    "is_available",
    "is_backend_available",
    "is_gloo_available",
    "is_initialized",
    "new_group",
]

_TIMEOUT = datetime.timedelta(minutes=30)
_P = ParamSpec("_P")
_R = TypeVar("_R")


class _Member(type):
    @property
    def WORLD(cls) -> ProcessGroup | None:  # noqa: N802
        """The default group of this rank."""
        return state().default


class GroupMember(metaclass=_Member):
    """What `new_group` gives to ranks outside (`NON_GROUP_MEMBER`), and the default group (`WORLD`).

    As `torch.distributed.GroupMember`, and `torch.distributed.group` of the same attributes.

    Example:
        >>> mica.distributed.init_process_group("threads", rank=0, world_size=1)
        >>> mica.distributed.GroupMember.WORLD.size()
        1
        >>> mica.distributed.new_group([0]) == mica.distributed.GroupMember.NON_GROUP_MEMBER
        False
        >>> mica.distributed.destroy_process_group()
    """

    NON_GROUP_MEMBER: Any = -100


group = GroupMember


def is_available() -> bool:
    """Says whether collectives are there.

    As `torch.distributed.is_available`.

    Returns:
        bool: True.

    Example:
        >>> mica.distributed.is_available()
        True
    """
    return True


def is_backend_available(backend: str) -> bool:
    """Says whether a plugin offers an engine of that name.

    As `torch.distributed.is_backend_available`.

    Args:
        backend (str): "gloo", for example.

    Returns:
        bool: True where `init_process_group(backend)` finds it.

    Example:
        >>> mica.distributed.is_backend_available("threads")
        True
    """
    try:
        mica.ops.collectives.close(mica.ops.collectives.open(backend.lower(), "", 0, 1, 1.0))
    except NotImplementedError:
        return False
    return True


def is_gloo_available() -> bool:
    """Says whether the engine `gloo` was built, which needs the library Gloo.

    As `torch.distributed.is_gloo_available`.

    Returns:
        bool: True where it was.

    Example:
        >>> engine = "gloo" if mica.distributed.is_gloo_available() else "threads"
        >>> mica.distributed.init_process_group(engine, rank=0, world_size=1)
        >>> mica.distributed.get_backend() == engine
        True
        >>> mica.distributed.destroy_process_group()
    """
    return is_backend_available("gloo")


def is_initialized() -> bool:
    """Says whether this rank has a default group.

    As `torch.distributed.is_initialized`. With the engine `threads` each thread is asked for itself.

    Returns:
        bool: True between `init_process_group` and `destroy_process_group`.

    Example:
        >>> mica.distributed.is_initialized()
        False
        >>> mica.distributed.init_process_group("threads", rank=0, world_size=1)
        >>> mica.distributed.is_initialized()
        True
        >>> mica.distributed.destroy_process_group()
    """
    return state().default is not None


def group_of(group: Any) -> ProcessGroup:
    """The group, or the default group for None."""
    found = state().default if group is None else group
    if found is GroupMember.NON_GROUP_MEMBER:
        raise ValueError(
            "This rank is not in the group that it gives; call collectives on its members alone."
        )
    if found is None:
        raise ValueError("There is no default group yet; call mica.distributed.init_process_group first.")
    if not isinstance(found, ProcessGroup):
        raise TypeError(f"The group ({found!r}) is no ProcessGroup; this rank may not be in it.")
    return found


def on_members(collective: Callable[_P, _R]) -> Callable[_P, _R]:
    """The collective, which warns and does nothing on a rank that is not in the group that it gives, as torch's do."""
    place = collective.__code__.co_varnames.index("group")
    gives = -1 if collective.__annotations__["return"] == "int" else None  # -1: no rank has sent anything

    @functools.wraps(collective)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        group = args[place] if len(args) > place else kwargs.get("group")
        if group is GroupMember.NON_GROUP_MEMBER:
            warnings.warn(
                f"Running {collective.__name__} on global rank {group_of(None).rank()} which does not belong to "
                "the given group.",
                stacklevel=2,
            )
            return gives  # type: ignore[return-value]
        return collective(*args, **kwargs)

    return call


def _seconds(timeout: Any) -> float:
    return float((_TIMEOUT if timeout is None else timeout).total_seconds())


def _open(backend: str, ranks: list[int], rank: int, seconds: float) -> ProcessGroup:
    held = state()
    name = f"{held.run}/{held.made}"
    handle = connected(backend, name, ranks, rank, seconds, held.store)
    group = ProcessGroup(handle, ranks, name, backend, seconds, held.store)
    held.groups.append(group)
    return group


def _engine(backend: str | None) -> str:
    """The engine of tensors on the CPU: torch's "cpu:gloo,cuda:nccl" names one for each device."""
    for part in (backend or "gloo").split(","):
        device, _, engine = part.rpartition(":")
        if device in ("", "cpu"):
            return engine.lower()
    raise NotImplementedError(
        f"init_process_group(backend={backend!r}) names no engine for tensors on the CPU, and collectives take no "
        "others so far; give the backend `gloo`."
    )


def _met(
    engine: str, init_method: str | None, timeout: Any, world_size: int, rank: int, store: Store | None
) -> tuple[Store | None, int, int]:
    """The store of the ranks, this rank and their number."""
    if store is not None and init_method is not None:
        raise ValueError(
            f"init_process_group gets an `init_method` ({init_method}) and a `store`; give one of them."
        )
    if engine == "threads":
        if init_method is not None or rank == world_size == -1:
            raise NotImplementedError(
                f"init_process_group(backend='threads', init_method={init_method!r}, rank={rank}, "
                f"world_size={world_size}) cannot learn its ranks: they are threads of one process, which need no "
                "address; give each its `rank` and `world_size`, or use the backend `gloo`, whose ranks are processes."
            )
    elif store is None:
        if init_method is None and rank == 0 and world_size == 1:
            return None, 0, 1
        return rendezvous(init_method or "env://", rank, world_size, _TIMEOUT if timeout is None else timeout)
    if world_size < 1 or not 0 <= rank < world_size:
        raise ValueError(f"Rank ({rank}) is none of ({world_size}) ranks; give `rank` and `world_size`.")
    return store, rank, world_size


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: Any = None,
    world_size: int = -1,
    rank: int = -1,
    store: Store | None = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
) -> None:
    """Makes this rank's default group.

    As `torch.distributed.init_process_group`. With the engine `gloo` a rank is a process. With `threads` each rank
    is a thread of one process that calls this, and has a default group of its own; ranks of one group give the same
    `group_name`.

    Args:
        backend (str): The engine: "gloo", "threads" or that of a vendor's plugin. Default: None, "gloo".
        init_method (str, optional): How the ranks meet: "env://" (the environment's RANK, WORLD_SIZE, MASTER_ADDR
            and MASTER_PORT), "tcp://host:port" or "file:///path". Default: None, env:// where no store is given.
        timeout (timedelta, optional): For each collective, and for meeting. Default: None, 30 minutes.
        world_size (int): The number of ranks. Default: -1, from `init_method`.
        rank (int): This one, from 0. Default: -1, from `init_method`.
        store (Store, optional): Where the ranks meet, in the place of `init_method`. Default: None.
        group_name (str): What the ranks that belong together share. Default: "".
        pg_options (Any): Taken and not used. Default: None.
        device_id (Any): Taken and not used. Default: None.

    Raises:
        NotImplementedError: There is no such engine here.
        ValueError: Rank and number of ranks do not fit, or there is a default group already.
        DistStoreError: Not all ranks came within the timeout.
        DistNetworkError: The store was not reached within the timeout.

    Example:
        >>> mica.distributed.init_process_group("threads", rank=0, world_size=1)
        >>> mica.distributed.get_world_size()
        1
        >>> mica.distributed.destroy_process_group()
    """
    if state().default is not None:
        raise ValueError(
            "This rank has a default group already; call destroy_process_group before another init."
        )
    engine, given = _engine(backend), store
    store, rank, world_size = _met(engine, init_method, timeout, world_size, rank, store)
    held = begin(engine == "threads")
    held.store, held.run, held.own_store = store, group_name, given is not None
    if store is not None:  # how often this rank has come, which is the same on all
        held.run = f"{group_name}/{store.add(f'{group_name}/come/{rank}', 1)}"
    try:
        held.default = _open(engine, list(range(world_size)), rank, _seconds(timeout))
    except BaseException:
        end()
        raise


def new_group(
    ranks: Any = None,
    timeout: Any = None,
    backend: str | None = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: Any = None,
    sort_ranks: bool = True,
) -> Any:
    """Makes a group of some ranks of the default group.

    As `torch.distributed.new_group`: all ranks of the default group call it, in the same order, with the same ranks.

    Args:
        ranks (sequence of int, optional): Which. Default: None, all.
        timeout (timedelta, optional): For each of its collectives. Default: None, the default group's.
        backend (str, optional): The engine. Default: None, the default group's.
        pg_options (Any): Taken and not used. Default: None.
        use_local_synchronization (bool): Taken and not used: no rank waits for ranks outside. Default: False.
        group_desc (str, optional): Taken and not used. Default: None.
        device_id (Any): Taken and not used. Default: None.
        sort_ranks (bool): Numbers the ranks of the group as the default group does; False: as `ranks` lists them,
            which must be the same on all of them. Default: True.

    Returns:
        ProcessGroup: `GroupMember.NON_GROUP_MEMBER` on a rank that is not in it.

    Raises:
        ValueError: A rank is none of the default group's, or is given twice.

    Example:
        >>> mica.distributed.init_process_group("threads", rank=0, world_size=1)
        >>> group = mica.distributed.new_group([0])
        >>> mica.distributed.get_process_group_ranks(group)
        [0]
        >>> mica.distributed.destroy_process_group()
    """
    world = group_of(None)
    chosen = list(range(world.size())) if ranks is None else sorted(ranks) if sort_ranks else list(ranks)
    if not chosen or len(set(chosen)) < len(chosen) or not all(0 <= r < world.size() for r in chosen):
        raise ValueError(
            f"Ranks {chosen} are not different ones of the default group's ({world.size()}) ranks."
        )
    engine = world.name() if backend is None else _engine(backend)
    if (engine == "threads") != (world.name() == "threads"):
        raise ValueError(
            f"new_group(backend={backend!r}) differs from the default group's backend ({world.name()}): ranks are "
            "either threads or processes."
        )
    state().made += 1
    if world.rank() not in chosen:
        return GroupMember.NON_GROUP_MEMBER
    seconds = world.timeout if timeout is None else timeout.total_seconds()
    return _open(engine, chosen, chosen.index(world.rank()), seconds)


def destroy_process_group(group: Any = None) -> None:
    """Leaves a group, or all of them.

    As `torch.distributed.destroy_process_group`. Collectives that other ranks still wait for with this rank end
    with an error.

    Args:
        group (ProcessGroup, optional): Default: None, the default group with all others. For
            `GroupMember.NON_GROUP_MEMBER` nothing happens.

    Example:
        >>> mica.distributed.init_process_group("threads", rank=0, world_size=1)
        >>> group = mica.distributed.new_group([0])
        >>> mica.distributed.destroy_process_group(group)  # the default group stays
        >>> mica.distributed.is_initialized()
        True
        >>> mica.distributed.destroy_process_group()
        >>> mica.distributed.is_initialized()
        False
    """
    if group is GroupMember.NON_GROUP_MEMBER:
        return
    held = state()
    leaves = [*held.groups] if group is None or group is held.default else [group_of(group)]
    for one in leaves:
        one.leave()
        held.groups.remove(one)
    if held.default not in leaves:
        return
    if isinstance(held.store, FileStore) and held.default is not None and not held.own_store:
        name, _, count = held.run.rpartition("/")
        ranks = held.default.ranks()
        if held.store.add(f"{held.run}/left", 1) == len(ranks):
            # The last one takes the file away, so that another run may use its name; unless a rank came again.
            held.store.remove({f"{name}/come/{rank}": count.encode() for rank in ranks})
    end()
