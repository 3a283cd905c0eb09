"""How ranks come together, and who they are."""

from __future__ import annotations

import datetime
from typing import Any

import mica
from mica.distributed._group import ProcessGroup, state

__all__ = [
    "destroy_process_group",
    "get_backend",
    "get_rank",
    "get_world_size",
    "init_process_group",
    "is_available",
    "is_initialized",
    "new_group",
]

_TIMEOUT = datetime.timedelta(minutes=30)


def is_available() -> bool:
    """Says whether collectives are there.

    As `torch.distributed.is_available`.

    Returns:
        bool: True.
    """
    return True


def is_initialized() -> bool:
    """Says whether this rank has a default group.

    As `torch.distributed.is_initialized`. With the engine `threads` each thread is asked for itself.

    Returns:
        bool: True between `init_process_group` and `destroy_process_group`.
    """
    return state().default is not None


def group_of(group: Any) -> ProcessGroup:
    """The group, or the default group for None."""
    found = state().default if group is None else group
    if found is None:
        raise ValueError("There is no default group yet; call mica.distributed.init_process_group first.")
    if not isinstance(found, ProcessGroup):
        raise TypeError(f"The group ({found!r}) is no ProcessGroup; this rank may not be in it.")
    return found


def _open(backend: str, ranks: list[int], rank: int, timeout: Any) -> ProcessGroup:
    held = state()
    name = f"{held.run}/{held.made}"
    seconds = (_TIMEOUT if timeout is None else timeout).total_seconds()
    handle = mica.ops.collectives.open(backend, name, rank, len(ranks), seconds)
    group = ProcessGroup(handle, ranks, name, backend, seconds)
    held.groups.append(group)
    return group


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: Any = None,
    world_size: int = -1,
    rank: int = -1,
    group_name: str = "",
) -> None:
    """Makes this rank's default group.

    As `torch.distributed.init_process_group`, for the engine `threads`: each rank is a thread of one process that
    calls this, with a default group of its own. Ranks of one group give the same `group_name`.

    Args:
        backend (str): The engine: "threads", or that of a vendor's plugin which needs no addresses.
        init_method (str, optional): Not there yet: None alone.
        timeout (timedelta, optional): For each collective. Default: None, 30 minutes.
        world_size (int): The number of ranks.
        rank (int): This one, from 0.
        group_name (str): What the ranks that belong together share. Default: "".

    Raises:
        NotImplementedError: There is no such engine, or it needs the addresses of other processes.
        ValueError: Rank and number of ranks do not fit, or this thread has a default group.

    Example:
        >>> mica.distributed.init_process_group("threads", rank=0, world_size=1)
        >>> mica.distributed.get_world_size()
        1
        >>> mica.distributed.destroy_process_group()
    """
    held = state()
    if held.default is not None:
        raise ValueError(
            "This rank has a default group already; call destroy_process_group before another init."
        )
    if init_method is not None or backend is None or rank == world_size == -1:
        raise NotImplementedError(
            f"init_process_group(backend={backend!r}, init_method={init_method!r}, rank={rank}, world_size={world_size}) "
            "needs ranks in several processes (env://), which no engine here connects yet; use the backend `threads`, "
            "whose ranks are threads of one process, and give each its `rank` and `world_size`."
        )
    if world_size < 1 or not 0 <= rank < world_size:
        raise ValueError(f"Rank ({rank}) is none of ({world_size}) ranks; give `rank` and `world_size`.")
    held.run, held.made = group_name, 0
    group = _open(backend, list(range(world_size)), rank, timeout)
    if world_size > 1 and mica.ops.collectives.address(group.handle):
        mica.ops.collectives.close(group.handle)
        held.groups.clear()
        raise NotImplementedError(
            f"The engine ({backend}) connects ranks by addresses, for which mica.distributed has no store yet; use "
            "mica.ops.collectives.open, address and connect, or the backend `threads`."
        )
    held.default = group


def new_group(ranks: Any = None, timeout: Any = None) -> ProcessGroup | None:
    """Makes a group of some ranks of the default group.

    As `torch.distributed.new_group`: all ranks of the default group call it, in the same order, with the same ranks.

    Args:
        ranks (sequence of int, optional): Which, in the order that numbers them in the group. Default: None, all.
        timeout (timedelta, optional): For each of its collectives. Default: None, the default group's.

    Returns:
        ProcessGroup or None: None on a rank that is not in it.

    Raises:
        ValueError: A rank is none of the default group's, or is given twice.
    """
    world = group_of(None)
    chosen = list(range(world.size())) if ranks is None else list(ranks)
    if not chosen or len(set(chosen)) < len(chosen) or not all(0 <= r < world.size() for r in chosen):
        raise ValueError(
            f"Ranks {chosen} are not different ones of the default group's ({world.size()}) ranks."
        )
    state().made += 1
    if world.rank() not in chosen:
        return None
    timeout = datetime.timedelta(seconds=world.timeout) if timeout is None else timeout
    return _open(world.name(), chosen, chosen.index(world.rank()), timeout)


def destroy_process_group(group: Any = None) -> None:
    """Leaves a group, or all of them.

    As `torch.distributed.destroy_process_group`. Collectives that other ranks still wait for with this rank end
    with an error.

    Args:
        group (ProcessGroup, optional): Default: None, the default group with all others.
    """
    held = state()
    leaves = [*held.groups] if group is None or group is held.default else [group_of(group)]
    for one in leaves:
        mica.ops.collectives.close(one.handle)
        held.groups.remove(one)
    if held.default in leaves:
        held.default = None


def get_rank(group: Any = None) -> int:
    """Gives this rank's number.

    As `torch.distributed.get_rank`.

    Args:
        group (ProcessGroup, optional): Default: None, the default group.

    Returns:
        int: From 0.

    Raises:
        ValueError: There is no default group.
    """
    return group_of(group).rank()


def get_world_size(group: Any = None) -> int:
    """Gives the number of ranks.

    As `torch.distributed.get_world_size`.

    Args:
        group (ProcessGroup, optional): Default: None, the default group.

    Returns:
        int: At least 1.

    Raises:
        ValueError: There is no default group.
    """
    return group_of(group).size()


def get_backend(group: Any = None) -> str:
    """Gives the name of the engine.

    As `torch.distributed.get_backend`.

    Args:
        group (ProcessGroup, optional): Default: None, the default group.

    Returns:
        str: "threads", for example.

    Raises:
        ValueError: There is no default group.
    """
    return group_of(group).name()
