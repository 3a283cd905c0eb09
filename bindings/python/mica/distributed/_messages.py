"""Messages from one rank to another, as torch.distributed sends them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mica._C import Tensor
from mica.distributed._collectives import root_of
from mica.distributed._group import ProcessGroup, Work
from mica.distributed._init import group_of, on_members

__all__ = ["P2POp", "batch_isend_irecv", "irecv", "isend", "recv", "send"]


def _sender(group: ProcessGroup, src: int | None, group_src: int | None) -> int:
    if src is None and group_src is None:
        raise NotImplementedError("recv from any rank is not there; give `src`, the rank that sends.")
    return root_of(group, src, group_src, "src")


@on_members
def isend(
    tensor: Tensor, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None
) -> Work:
    """Starts to send a tensor to another rank.

    As `torch.distributed.isend`.

    Args:
        tensor (Tensor): Contiguous.
        dst (int): The rank, numbered in the default group.
        group (ProcessGroup, optional): Default: None, the default group.
        tag (int): That of the receiver's call. Default: 0.
        group_dst (int, optional): The rank, numbered in the group, in the place of `dst`. Default: None.

    Returns:
        Work: To wait for.

    Raises:
        ValueError: The rank is not in the group, or is this one.

    Example:
        >>> from concurrent.futures import ThreadPoolExecutor
        >>> def rank(r):
        ...     mica.distributed.init_process_group("threads", rank=r, world_size=2)
        ...     x = mica.full((2,), float(r))
        ...     if r == 0:
        ...         mica.distributed.isend(x, dst=1).wait()
        ...     else:
        ...         mica.distributed.recv(x, src=0)
        ...     mica.distributed.destroy_process_group()
        ...     return x
        >>> with ThreadPoolExecutor(2) as pool:  # ranks that are threads
        ...     list(pool.map(rank, range(2)))
        [tensor([0., 0.]), tensor([0., 0.])]
    """
    ranks = group_of(group)
    return ranks.start("send", tensor, None, peer=root_of(ranks, dst, group_dst, "dst"), tag=tag)


@on_members
def irecv(
    tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None
) -> Work:
    """Starts to fill a tensor with what another rank sends.

    As `torch.distributed.irecv`, which also receives from any rank.

    Args:
        tensor (Tensor): Contiguous; written.
        src (int): The rank, numbered in the default group.
        group (ProcessGroup, optional): Default: None, the default group.
        tag (int): That of the sender's call. Default: 0.
        group_src (int, optional): The rank, numbered in the group, in the place of `src`. Default: None.

    Returns:
        Work: To wait for.

    Raises:
        NotImplementedError: `src` is None.
        ValueError: The rank is not in the group, or is this one.

    Example:
        >>> from concurrent.futures import ThreadPoolExecutor
        >>> def rank(r):
        ...     mica.distributed.init_process_group("threads", rank=r, world_size=2)
        ...     x = mica.full((2,), float(r))
        ...     if r == 0:
        ...         mica.distributed.send(x, dst=1)
        ...     else:
        ...         mica.distributed.irecv(x, src=0).wait()
        ...     mica.distributed.destroy_process_group()
        ...     return x
        >>> with ThreadPoolExecutor(2) as pool:  # ranks that are threads
        ...     list(pool.map(rank, range(2)))
        [tensor([0., 0.]), tensor([0., 0.])]
    """
    ranks = group_of(group)
    return ranks.start("recv", None, tensor, peer=_sender(ranks, src, group_src), tag=tag)


@on_members
def send(
    tensor: Tensor, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None
) -> None:
    """Sends a tensor to another rank, and waits until it has it.

    As `torch.distributed.send`.

    Args:
        tensor (Tensor): Contiguous.
        dst (int): The rank, numbered in the default group.
        group (ProcessGroup, optional): Default: None, the default group.
        tag (int): That of the receiver's call. Default: 0.
        group_dst (int, optional): The rank, numbered in the group, in the place of `dst`. Default: None.

    Raises:
        RuntimeError: The other rank left, or did not receive within the timeout.

    Example:
        >>> from concurrent.futures import ThreadPoolExecutor
        >>> def rank(r):
        ...     mica.distributed.init_process_group("threads", rank=r, world_size=2)
        ...     x = mica.full((2,), float(r))
        ...     if r == 0:
        ...         mica.distributed.send(x, dst=1)
        ...     else:
        ...         mica.distributed.recv(x, src=0)
        ...     mica.distributed.destroy_process_group()
        ...     return x
        >>> with ThreadPoolExecutor(2) as pool:  # ranks that are threads
        ...     list(pool.map(rank, range(2)))
        [tensor([0., 0.]), tensor([0., 0.])]
    """
    isend(tensor, dst, group, tag, group_dst).wait()


@on_members
def recv(
    tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None
) -> int:
    """Fills a tensor with what another rank sends.

    As `torch.distributed.recv`, which also receives from any rank.

    Args:
        tensor (Tensor): Contiguous; written.
        src (int): The rank, numbered in the default group.
        group (ProcessGroup, optional): Default: None, the default group.
        tag (int): That of the sender's call. Default: 0.
        group_src (int, optional): The rank, numbered in the group, in the place of `src`. Default: None.

    Returns:
        int: `src`.

    Raises:
        NotImplementedError: `src` is None.
        RuntimeError: The other rank left, or did not send within the timeout.

    Example:
        >>> from concurrent.futures import ThreadPoolExecutor
        >>> def rank(r):
        ...     mica.distributed.init_process_group("threads", rank=r, world_size=2)
        ...     x = mica.full((2,), float(r))
        ...     if r == 0:
        ...         mica.distributed.send(x, dst=1)
        ...     else:
        ...         mica.distributed.recv(x, src=0)
        ...     mica.distributed.destroy_process_group()
        ...     return x
        >>> with ThreadPoolExecutor(2) as pool:  # ranks that are threads
        ...     list(pool.map(rank, range(2)))
        [tensor([0., 0.]), tensor([0., 0.])]
    """
    irecv(tensor, src, group, tag, group_src).wait()
    if src is not None:
        return src
    assert group_src is not None
    return group_of(group).ranks()[group_src]


class P2POp:
    """A message of `batch_isend_irecv`.

    As `torch.distributed.P2POp`.

    Args:
        op (callable): `mica.distributed.isend` or `irecv`.
        tensor (Tensor): Contiguous; what is sent or written.
        peer (int, optional): The other rank, numbered in the default group. Default: None.
        group (ProcessGroup, optional): Default: None, the default group.
        tag (int): That of the other rank's call. Default: 0.
        group_peer (int, optional): The other rank, numbered in the group. Default: None.

    Raises:
        ValueError: `op` is neither, or the rank is not in the group.

    Example:
        >>> from concurrent.futures import ThreadPoolExecutor
        >>> def rank(r):
        ...     mica.distributed.init_process_group("threads", rank=r, world_size=2)
        ...     x = mica.full((2,), float(r))
        ...     op = mica.distributed.isend if r == 0 else mica.distributed.irecv
        ...     message = mica.distributed.P2POp(op, x, peer=1 - r)
        ...     mica.distributed.batch_isend_irecv([message])[0].wait()
        ...     mica.distributed.destroy_process_group()
        ...     return x
        >>> with ThreadPoolExecutor(2) as pool:  # ranks that are threads
        ...     list(pool.map(rank, range(2)))
        [tensor([0., 0.]), tensor([0., 0.])]
    """

    def __init__(
        self,
        op: Callable[..., Work],
        tensor: Tensor,
        peer: int | None = None,
        group: Any = None,
        tag: int = 0,
        group_peer: int | None = None,
    ) -> None:
        if op not in (isend, irecv):
            raise ValueError(f"Invalid `op` ({op!r}) of P2POp; expected mica.distributed.isend or irecv.")
        ranks = group_of(group)
        self.op, self.tensor, self.group, self.tag = op, tensor, group, tag
        self.group_peer = root_of(ranks, peer, group_peer, "peer")
        self.peer = ranks.ranks()[self.group_peer]


def batch_isend_irecv(p2p_op_list: Sequence[P2POp]) -> list[Work]:
    """Starts several messages, in any order.

    As `torch.distributed.batch_isend_irecv`.

    Args:
        p2p_op_list (sequence of P2POp): At least one.

    Returns:
        list of Work: One for each message.

    Raises:
        ValueError: The list is empty, or holds something else.

    Example:
        >>> from concurrent.futures import ThreadPoolExecutor
        >>> def rank(r):
        ...     mica.distributed.init_process_group("threads", rank=r, world_size=2)
        ...     x, y = mica.full((2,), float(r)), mica.zeros(2)
        ...     there = mica.distributed.P2POp(mica.distributed.isend, x, peer=1 - r)
        ...     back = mica.distributed.P2POp(mica.distributed.irecv, y, peer=1 - r)
        ...     for work in mica.distributed.batch_isend_irecv([there, back]):
        ...         work.wait()
        ...     mica.distributed.destroy_process_group()
        ...     return y
        >>> with ThreadPoolExecutor(2) as pool:  # ranks that are threads
        ...     list(pool.map(rank, range(2)))
        [tensor([1., 1.]), tensor([0., 0.])]
    """
    if not p2p_op_list or not all(isinstance(one, P2POp) for one in p2p_op_list):
        raise ValueError(
            f"batch_isend_irecv gets {list(p2p_op_list)}; expected a list of at least one P2POp."
        )
    return [one.op(one.tensor, one.peer, one.group, one.tag) for one in p2p_op_list]
