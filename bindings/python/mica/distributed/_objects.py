"""Collectives of any Python objects, which travel pickled.

Unpickling runs what the sender's bytes say: take part only in groups whose ranks you trust as yourself.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import mica
from mica._C import Tensor
from mica.distributed._collectives import all_gather_into_tensor, broadcast, root_of
from mica.distributed._group import ProcessGroup
from mica.distributed._init import group_of, on_members
from mica.distributed._lists import gather, scatter
from mica.distributed._messages import recv, send

__all__ = [
    "all_gather_object",
    "broadcast_object_list",
    "gather_object",
    "recv_object_list",
    "scatter_object_list",
    "send_object_list",
]

_LIMIT = 1 << 31  # bytes of an object


def _packed(obj: Any) -> Tensor:
    data = pickle.dumps(obj)
    if len(data) > _LIMIT:
        raise ValueError(
            f"An object of the type ({type(obj).__name__}) has ({len(data)}) bytes; at most ({_LIMIT}) travel."
        )
    return mica.frombuffer(bytearray(data), dtype=mica.uint8)


def _unpacked(data: Tensor, size: int) -> Any:
    return pickle.loads(data[:size].numpy().tobytes())


def _padded(data: Tensor, size: int) -> Tensor:
    into = mica.zeros(size, dtype=mica.uint8)
    into[: data.numel()] = data
    return into


def _check_sizes(sizes: Sequence[int], what: str) -> None:
    if not all(0 < size <= _LIMIT for size in sizes):
        raise ValueError(
            f"{what} gets objects of {list(sizes)} bytes from other ranks; at most ({_LIMIT}) travel."
        )


def _room(sizes: Sequence[int], what: str) -> Tensor:
    _check_sizes(sizes, what)
    return mica.empty(sum(sizes), dtype=mica.uint8)


def _sizes_of_all(data: Tensor, ranks: ProcessGroup) -> list[int]:
    sizes = mica.empty(ranks.size(), dtype=mica.int64)
    all_gather_into_tensor(sizes, mica.tensor([data.numel()]), ranks)
    found: list[int] = sizes.tolist()
    _check_sizes(found, "An object collective")
    return found


@on_members
def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """Gives every rank the objects of all.

    As `torch.distributed.all_gather_object`. Objects are unpickled: see the module's warning.

    Args:
        object_list (list): Written, one for each rank.
        obj (object): This rank's.
        group (ProcessGroup, optional): Default: None, the default group.

    Raises:
        ValueError: The list has not a place for each rank.

    Example:
        >>> mica.distributed.init_process_group("threads", rank=0, world_size=1)
        >>> every = [None]  # one place for each rank
        >>> mica.distributed.all_gather_object(every, {"loss": 0.5})
        >>> every
        [{'loss': 0.5}]
        >>> mica.distributed.destroy_process_group()
    """
    ranks = group_of(group)
    _check_places(object_list, ranks, "object_list")
    data = _packed(obj)
    sizes = _sizes_of_all(data, ranks)
    most = max(sizes)
    every = _room([most] * ranks.size(), "all_gather_object")
    all_gather_into_tensor(every, _padded(data, most), ranks)
    for i, size in enumerate(sizes):
        object_list[i] = _unpacked(every[i * most :], size)


def _check_places(places: Any, ranks: ProcessGroup, what: str) -> None:
    if places is None:
        raise ValueError(f"Argument `{what}` must be specified on this rank, ({ranks.rank()}).")
    if len(places) != ranks.size():
        raise ValueError(
            f"`{what}` has ({len(places)}) places; expected one for each of ({ranks.size()}) ranks."
        )


@on_members
def gather_object(
    obj: Any,
    object_gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: Any = None,
    group_dst: int | None = None,
) -> None:
    """Gives one rank the objects of all.

    As `torch.distributed.gather_object`. Objects are unpickled: see the module's warning.

    Args:
        obj (object): This rank's.
        object_gather_list (list, optional): Written on rank `dst`, one for each rank. Default: None.
        dst (int, optional): The rank, numbered in the default group. Default: None, rank 0.
        group (ProcessGroup, optional): Default: None, the default group.
        group_dst (int, optional): The rank, numbered in the group. Default: None.

    Raises:
        ValueError: The list has not a place for each rank.

    Example:
        >>> mica.distributed.init_process_group("threads", rank=0, world_size=1)
        >>> every = [None]  # on rank 0 alone; None on the others
        >>> mica.distributed.gather_object({"loss": 0.5}, every, dst=0)
        >>> every
        [{'loss': 0.5}]
        >>> mica.distributed.destroy_process_group()
    """
    ranks = group_of(group)
    root = root_of(ranks, dst, group_dst, "dst", default=0)
    here = ranks.rank() == root
    if here:
        _check_places(object_gather_list, ranks, "object_gather_list")
    data = _packed(obj)
    sizes = _sizes_of_all(data, ranks)
    parts = [_room([max(sizes)], "gather_object") for _ in sizes] if here else None
    gather(_padded(data, max(sizes)), parts, group=ranks, group_dst=root)
    if parts is not None and object_gather_list is not None:
        object_gather_list[:] = [_unpacked(part, size) for part, size in zip(parts, sizes)]


@on_members
def broadcast_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Any = None,
    device: Any = None,
    group_src: int | None = None,
) -> None:
    """Gives every rank the objects of one.

    As `torch.distributed.broadcast_object_list`. Objects are unpickled: see the module's warning.

    Args:
        object_list (list): Read on rank `src`, written on the others; of the same length on all.
        src (int, optional): The rank, numbered in the default group. Default: None, rank 0.
        group (ProcessGroup, optional): Default: None, the default group.
        device (device, optional): Taken and not used. Default: None.
        group_src (int, optional): The rank, numbered in the group. Default: None.

    Raises:
        ValueError: The rank is not in the group, or the lists differ in length.

    Example:
        >>> mica.distributed.init_process_group("threads", rank=0, world_size=1)
        >>> objects = ["run 7", {"lr": 0.1}]  # on the other ranks [None, None]
        >>> mica.distributed.broadcast_object_list(objects, src=0)
        >>> objects
        ['run 7', {'lr': 0.1}]
        >>> mica.distributed.destroy_process_group()
    """
    ranks = group_of(group)
    root = root_of(ranks, src, group_src, "src", default=0)
    here = ranks.rank() == root
    packed = [_packed(obj) for obj in object_list] if here else []
    sizes = (
        mica.tensor([p.numel() for p in packed]) if here else mica.empty(len(object_list), dtype=mica.int64)
    )
    if not object_list:
        return
    broadcast(sizes, group=ranks, group_src=root)
    data = mica.cat(packed) if here else _room(sizes.tolist(), "broadcast_object_list")
    broadcast(data, group=ranks, group_src=root)
    if not here:
        _fill(object_list, data, sizes.tolist())


def _fill(object_list: list[Any], data: Tensor, sizes: Sequence[int]) -> None:
    for i, part in enumerate(data.split(list(sizes))):
        object_list[i] = _unpacked(part, sizes[i])


@on_members
def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: list[Any] | None = None,
    src: int | None = None,
    group: Any = None,
    group_src: int | None = None,
) -> None:
    """Gives each rank an object of one rank's.

    As `torch.distributed.scatter_object_list`. Objects are unpickled: see the module's warning.

    Args:
        scatter_object_output_list (list): Its first place is written.
        scatter_object_input_list (list, optional): On rank `src`, one for each rank. Default: None.
        src (int, optional): The rank, numbered in the default group. Default: None, rank 0.
        group (ProcessGroup, optional): Default: None, the default group.
        group_src (int, optional): The rank, numbered in the group. Default: None.

    Raises:
        ValueError: A list has not as many places.

    Example:
        >>> mica.distributed.init_process_group("threads", rank=0, world_size=1)
        >>> mine = [None]
        >>> mica.distributed.scatter_object_list(mine, ["part 0"], src=0)  # the second list on rank 0 alone
        >>> mine
        ['part 0']
        >>> mica.distributed.destroy_process_group()
    """
    ranks = group_of(group)
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise ValueError("Expected argument scatter_object_output_list to be a list of size at least 1.")
    root = root_of(ranks, src, group_src, "src", default=0)
    packed: list[Tensor] = []
    if ranks.rank() == root:
        _check_places(scatter_object_input_list, ranks, "scatter_object_input_list")
        packed = [_packed(obj) for obj in scatter_object_input_list or ()]
    most = mica.tensor([max((p.numel() for p in packed), default=0)])
    broadcast(most, group=ranks, group_src=root)
    size, mine = mica.empty(1, dtype=mica.int64), _room(most.tolist(), "scatter_object_list")
    here = ranks.rank() == root
    scatter(size, [mica.tensor([p.numel()]) for p in packed] if here else None, group=ranks, group_src=root)
    scatter(mine, [_padded(p, mine.numel()) for p in packed] if here else None, group=ranks, group_src=root)
    scatter_object_output_list[0] = _unpacked(mine, int(size.item()))


@on_members
def send_object_list(
    object_list: Sequence[Any],
    dst: int | None = None,
    group: Any = None,
    device: Any = None,
    group_dst: int | None = None,
) -> None:
    """Sends objects to another rank.

    As `torch.distributed.send_object_list`.

    Args:
        object_list (list): The objects.
        dst (int, optional): The rank, numbered in the default group. Default: None.
        group (ProcessGroup, optional): Default: None, the default group.
        device (device, optional): Taken and not used. Default: None.
        group_dst (int, optional): The rank, numbered in the group. Default: None.

    Raises:
        ValueError: The rank is not in the group.

    Example:
        >>> from concurrent.futures import ThreadPoolExecutor
        >>> def rank(r):
        ...     mica.distributed.init_process_group("threads", rank=r, world_size=2)
        ...     objects = ["run 7", {"lr": 0.1}] if r == 0 else [None, None]
        ...     if r == 0:
        ...         mica.distributed.send_object_list(objects, dst=1)
        ...     else:
        ...         mica.distributed.recv_object_list(objects, src=0)
        ...     mica.distributed.destroy_process_group()
        ...     return objects
        >>> with ThreadPoolExecutor(2) as pool:  # ranks that are threads
        ...     list(pool.map(rank, range(2)))
        [['run 7', {'lr': 0.1}], ['run 7', {'lr': 0.1}]]
    """
    packed = [_packed(obj) for obj in object_list]
    send(mica.tensor([p.numel() for p in packed], dtype=mica.int64), dst, group, group_dst=group_dst)
    if packed:
        send(mica.cat(packed), dst, group, group_dst=group_dst)


@on_members
def recv_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Any = None,
    device: Any = None,
    group_src: int | None = None,
) -> int:
    """Receives objects of another rank.

    As `torch.distributed.recv_object_list`. Objects are unpickled: see the module's warning.

    Args:
        object_list (list): Written; as long as the sender's.
        src (int, optional): The rank, numbered in the default group. Default: None.
        group (ProcessGroup, optional): Default: None, the default group.
        device (device, optional): Taken and not used. Default: None.
        group_src (int, optional): The rank, numbered in the group. Default: None.

    Returns:
        int: The rank that sent, numbered in the default group.

    Raises:
        NotImplementedError: No rank is given.
        ValueError: The rank is not in the group.

    Example:
        >>> from concurrent.futures import ThreadPoolExecutor
        >>> def rank(r):
        ...     mica.distributed.init_process_group("threads", rank=r, world_size=2)
        ...     objects = ["run 7", {"lr": 0.1}] if r == 0 else [None, None]
        ...     if r == 0:
        ...         mica.distributed.send_object_list(objects, dst=1)
        ...     else:
        ...         mica.distributed.recv_object_list(objects, src=0)
        ...     mica.distributed.destroy_process_group()
        ...     return objects
        >>> with ThreadPoolExecutor(2) as pool:  # ranks that are threads
        ...     list(pool.map(rank, range(2)))
        [['run 7', {'lr': 0.1}], ['run 7', {'lr': 0.1}]]
    """
    sizes = mica.empty(len(object_list), dtype=mica.int64)
    sender = recv(sizes, src, group, group_src=group_src)
    if object_list:
        data = _room(sizes.tolist(), "recv_object_list")
        recv(data, src, group, group_src=group_src)
        _fill(object_list, data, sizes.tolist())
    return sender
