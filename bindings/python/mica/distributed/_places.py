"""Who the ranks of a group are."""

from __future__ import annotations

import os
from typing import Any

import mica
from mica.distributed._init import GroupMember, group_of

__all__ = [
    "get_backend",
    "get_default_backend_for_device",
    "get_global_rank",
    "get_group_rank",
    "get_node_local_rank",
    "get_process_group_ranks",
    "get_rank",
    "get_world_size",
    "is_torchelastic_launched",
]


def get_rank(group: Any = None) -> int:
    """Gives this rank's number.

    As `torch.distributed.get_rank`.

    Args:
        group (ProcessGroup, optional): Default: None, the default group.

    Returns:
        int: From 0; -1 on a rank outside the group.

    Raises:
        ValueError: There is no default group.

    Example:
        >>> mica.distributed.init_process_group("threads", rank=0, world_size=1)
        >>> mica.distributed.get_rank()
        0
        >>> mica.distributed.destroy_process_group()
    """
    return -1 if group is GroupMember.NON_GROUP_MEMBER else group_of(group).rank()


def get_world_size(group: Any = None) -> int:
    """Gives the number of ranks.

    As `torch.distributed.get_world_size`.

    Args:
        group (ProcessGroup, optional): Default: None, the default group.

    Returns:
        int: At least 1; -1 on a rank outside the group.

    Raises:
        ValueError: There is no default group.

    Example:
        >>> mica.distributed.init_process_group("threads", rank=0, world_size=1)
        >>> mica.distributed.get_world_size()
        1
        >>> mica.distributed.destroy_process_group()
    """
    return -1 if group is GroupMember.NON_GROUP_MEMBER else group_of(group).size()


def get_backend(group: Any = None) -> str:
    """Gives the name of the engine.

    As `torch.distributed.get_backend`.

    Args:
        group (ProcessGroup, optional): Default: None, the default group.

    Returns:
        str: "threads", for example.

    Raises:
        ValueError: There is no default group.

    Example:
        >>> mica.distributed.init_process_group("threads", rank=0, world_size=1)
        >>> mica.distributed.get_backend()
        'threads'
        >>> mica.distributed.destroy_process_group()
    """
    return group_of(group).name()


def get_process_group_ranks(group: Any) -> list[int]:
    """Gives the ranks of a group.

    As `torch.distributed.get_process_group_ranks`.

    Args:
        group (ProcessGroup or None): None: the default group.

    Returns:
        list of int: Numbered in the default group, in the order of the group.

    Example:
        >>> mica.distributed.init_process_group("threads", rank=0, world_size=1)
        >>> group = mica.distributed.new_group([0])
        >>> mica.distributed.get_process_group_ranks(group)
        [0]
        >>> mica.distributed.destroy_process_group()
    """
    return group_of(group).ranks()


def get_global_rank(group: Any, group_rank: int) -> int:
    """Turns a number of a group into one of the default group.

    As `torch.distributed.get_global_rank`.

    Args:
        group (ProcessGroup): The group.
        group_rank (int): The rank in it.

    Returns:
        int: Its number in the default group.

    Raises:
        ValueError: The group has no such rank.

    Example:
        >>> mica.distributed.init_process_group("threads", rank=0, world_size=1)
        >>> group = mica.distributed.new_group([0])
        >>> mica.distributed.get_global_rank(group, 0)
        0
        >>> mica.distributed.destroy_process_group()
    """
    ranks = group_of(group).ranks()
    if not 0 <= group_rank < len(ranks):
        raise ValueError(f"Rank ({group_rank}) is none of the ({len(ranks)}) ranks of the group.")
    return ranks[group_rank]


def get_group_rank(group: Any, global_rank: int) -> int:
    """Turns a number of the default group into one of a group.

    As `torch.distributed.get_group_rank`.

    Args:
        group (ProcessGroup): The group.
        global_rank (int): The rank in the default group.

    Returns:
        int: Its number in the group.

    Raises:
        ValueError: The rank is not in the group.

    Example:
        >>> mica.distributed.init_process_group("threads", rank=0, world_size=1)
        >>> group = mica.distributed.new_group([0])
        >>> mica.distributed.get_group_rank(group, 0)
        0
        >>> mica.distributed.destroy_process_group()
    """
    return group_of(group).place(global_rank)


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """Gives this rank's number among those of its machine, from the environment's LOCAL_RANK.

    As `torch.distributed.get_node_local_rank`.

    Args:
        fallback_rank (int, optional): Where the launcher does not say. Default: None.

    Returns:
        int: From 0.

    Raises:
        RuntimeError: Neither is there.

    Example:
        >>> mica.distributed.get_node_local_rank(fallback_rank=0)
        0
    """
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is None:
        raise RuntimeError(
            "LOCAL_RANK is not in the environment; start the ranks with python -m mica.distributed.run, or give "
            "get_node_local_rank(fallback_rank=...)."
        )
    return int(fallback_rank)


def get_default_backend_for_device(device: Any) -> str:
    """Gives the engine of a device's tensors.

    As `torch.distributed.get_default_backend_for_device`.

    Args:
        device (device or str): The device.

    Returns:
        str: "gloo" for the CPU.

    Raises:
        ValueError: The device has none.

    Example:
        >>> mica.distributed.get_default_backend_for_device("cpu")
        'gloo'
    """
    if mica.device(device).type != "cpu":
        raise ValueError(
            f"Tensors on ({device}) have no engine of collectives so far; those on the CPU have `gloo`."
        )
    return "gloo"


def is_torchelastic_launched() -> bool:
    """Says whether a launcher with torchrun's protocol started this process.

    As `torch.distributed.is_torchelastic_launched`.

    Returns:
        bool: True where TORCHELASTIC_RUN_ID is in the environment.

    Example:
        >>> mica.distributed.is_torchelastic_launched()
        False
    """
    return "TORCHELASTIC_RUN_ID" in os.environ
