"""Collectives whose parts are lists of tensors, one for each rank."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mica
from mica._C import Tensor
from mica.distributed._collectives import ended, reduction_name, root_of
from mica.distributed._group import ProcessGroup, Works
from mica.distributed._init import group_of, on_members
from mica.distributed._reduction import ReduceOp

__all__ = ["all_gather", "all_to_all", "gather", "reduce", "reduce_scatter", "scatter"]


def _joined(tensors: Sequence[Tensor], like: Tensor) -> Tensor:
    """New memory with the elements of all tensors, one after another."""
    with mica.no_grad():
        return mica.cat([t.detach().reshape(-1) for t in tensors]) if tensors else like.new_empty((0,))


def _spread(joined: Tensor, tensors: Sequence[Tensor]) -> Any:
    """What fills the tensors from the memory of all."""

    def finish() -> None:
        with mica.no_grad():
            for into, part in zip(tensors, joined.split([t.numel() for t in tensors])):
                into.copy_(part.reshape(into.shape))

    return finish


def _check_one_each(name: str, what: str, tensors: Any, group: ProcessGroup, like: Tensor | None) -> None:
    """One tensor for each rank, of the dtype of `like` and, where they must be equal, of its shape."""
    if tensors is None:
        raise ValueError(f"Argument `{what}` must be specified on this rank, ({group.rank()}), of {name}.")
    if len(tensors) != group.size() or (like is not None and any(t.shape != like.shape for t in tensors)):
        expected = "" if like is None else f" of shape {tuple(like.shape)}"
        raise ValueError(
            f"{name} takes one tensor{expected} for each of ({group.size()}) ranks as `{what}`; got the shapes "
            f"{[tuple(t.shape) for t in tensors]}."
        )


@on_members
def all_gather(
    tensor_list: Sequence[Tensor], tensor: Tensor, group: Any = None, async_op: bool = False
) -> Any:
    """Gives every rank the tensors of all.

    As `torch.distributed.all_gather`. The tensors of the ranks may differ in shape, where all ranks know the shapes.

    Args:
        tensor_list (sequence of Tensor): Written, one for each rank, of the shape of that rank's `tensor`.
        tensor (Tensor): Contiguous.
        group (ProcessGroup, optional): Default: None, the default group.
        async_op (bool): Gives a `Work`, whose `wait` fills the list. Default: False.

    Returns:
        Work or None: None where the call has waited.

    Raises:
        ValueError: The list has not a tensor for each rank, or the ranks disagree.

    Example:
        >>> mica.distributed.init_process_group("threads", rank=0, world_size=1)
        >>> every = [mica.zeros(2)]  # one for each rank
        >>> mica.distributed.all_gather(every, mica.ones(2))
        >>> every
        [tensor([1., 1.])]
        >>> mica.distributed.destroy_process_group()
    """
    ranks = group_of(group)
    _check_one_each("all_gather", "tensor_list", tensor_list, ranks, None)
    mine = tensor_list[ranks.rank()]
    if mine.shape != tensor.shape:
        raise ValueError(
            f"all_gather gets a tensor of shape {tuple(tensor.shape)}, for which `tensor_list` has one of shape "
            f"{tuple(mine.shape)}."
        )
    if all(t.shape == tensor.shape for t in tensor_list):
        joined = tensor.new_empty((ranks.size() * tensor.numel(),))
        return ended(ranks.start("all_gather", tensor, joined, finish=_spread(joined, tensor_list)), async_op)
    with mica.no_grad():
        parts = [t.new_empty(t.shape) for t in tensor_list]
        parts[ranks.rank()].copy_(tensor)
    works = [ranks.start("broadcast", None, part, peer=i) for i, part in enumerate(parts)]

    def finish() -> None:
        with mica.no_grad():
            for into, part in zip(tensor_list, parts):
                into.copy_(part)

    return ended(Works(works, finish), async_op)


@on_members
def all_to_all(
    output_tensor_list: Sequence[Tensor],
    input_tensor_list: Sequence[Tensor],
    group: Any = None,
    async_op: bool = False,
) -> Any:
    """Sends a tensor to each rank and gets one from each; of any shapes.

    As `torch.distributed.all_to_all`.

    Args:
        output_tensor_list (sequence of Tensor): Written, one for each rank, of the shape that this rank sends here.
        input_tensor_list (sequence of Tensor): One for each rank.
        group (ProcessGroup, optional): Default: None, the default group.
        async_op (bool): Gives a `Work`, whose `wait` fills the list. Default: False.

    Returns:
        Work or None: None where the call has waited.

    Raises:
        ValueError: A list has not a tensor for each rank, or the ranks disagree on the sizes.

    Example:
        >>> mica.distributed.init_process_group("threads", rank=0, world_size=1)
        >>> received = [mica.zeros(2)]
        >>> mica.distributed.all_to_all(received, [mica.ones(2)])
        >>> received
        [tensor([1., 1.])]
        >>> mica.distributed.destroy_process_group()
    """
    ranks = group_of(group)
    _check_one_each("all_to_all", "output_tensor_list", output_tensor_list, ranks, None)
    _check_one_each("all_to_all", "input_tensor_list", input_tensor_list, ranks, None)
    outputs, inputs = ([t.numel() for t in some] for some in (output_tensor_list, input_tensor_list))
    joined = output_tensor_list[0].new_empty((sum(outputs),))
    given = _joined(input_tensor_list, input_tensor_list[0])
    work = ranks.start(
        "all_to_all", given, joined, splits=(outputs, inputs), finish=_spread(joined, output_tensor_list)
    )
    return ended(work, async_op)


@on_members
def gather(
    tensor: Tensor,
    gather_list: Sequence[Tensor] | None = None,
    dst: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Any:
    """Gives one rank the tensors of all.

    As `torch.distributed.gather`.

    Args:
        tensor (Tensor): Contiguous; of the same shape on all ranks.
        gather_list (sequence of Tensor, optional): Written on rank `dst`, one for each rank. Default: None.
        dst (int, optional): The rank, numbered in the default group. Default: None, rank 0.
        group (ProcessGroup, optional): Default: None, the default group.
        async_op (bool): Gives a `Work`, whose `wait` fills the list. Default: False.
        group_dst (int, optional): The rank, numbered in the group. Default: None.

    Returns:
        Work or None: None where the call has waited.

    Raises:
        ValueError: The list has not a tensor of that shape for each rank, or the ranks disagree.

    Example:
        >>> mica.distributed.init_process_group("threads", rank=0, world_size=1)
        >>> every = [mica.zeros(2)]  # on rank 0 alone; None on the others
        >>> mica.distributed.gather(mica.ones(2), every, dst=0)
        >>> every
        [tensor([1., 1.])]
        >>> mica.distributed.destroy_process_group()
    """
    ranks = group_of(group)
    root = root_of(ranks, dst, group_dst, "dst", default=0)
    if ranks.rank() != root:
        return ended(ranks.start("gather", tensor, None, peer=root), async_op)
    _check_one_each("gather", "gather_list", gather_list, ranks, tensor)
    assert gather_list is not None
    joined = tensor.new_empty((ranks.size() * tensor.numel(),))
    return ended(
        ranks.start("gather", tensor, joined, peer=root, finish=_spread(joined, gather_list)), async_op
    )


@on_members
def scatter(
    tensor: Tensor,
    scatter_list: Sequence[Tensor] | None = None,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Any:
    """Gives each rank a tensor of one rank's.

    As `torch.distributed.scatter`.

    Args:
        tensor (Tensor): Contiguous; written.
        scatter_list (sequence of Tensor, optional): On rank `src`, one for each rank. Default: None.
        src (int, optional): The rank, numbered in the default group. Default: None, rank 0.
        group (ProcessGroup, optional): Default: None, the default group.
        async_op (bool): Gives a `Work` to wait for. Default: False.
        group_src (int, optional): The rank, numbered in the group. Default: None.

    Returns:
        Work or None: None where the call has waited.

    Raises:
        ValueError: The list has not a tensor of that shape for each rank, or the ranks disagree.

    Example:
        >>> mica.distributed.init_process_group("threads", rank=0, world_size=1)
        >>> x = mica.zeros(2)
        >>> mica.distributed.scatter(x, [mica.ones(2)], src=0)  # the list on rank 0 alone
        >>> x
        tensor([1., 1.])
        >>> mica.distributed.destroy_process_group()
    """
    ranks = group_of(group)
    root = root_of(ranks, src, group_src, "src", default=0)
    if ranks.rank() != root:
        return ended(ranks.start("scatter", None, tensor, peer=root), async_op)
    _check_one_each("scatter", "scatter_list", scatter_list, ranks, tensor)
    assert scatter_list is not None
    return ended(ranks.start("scatter", _joined(scatter_list, tensor), tensor, peer=root), async_op)


@on_members
def reduce(
    tensor: Tensor,
    dst: int | None = None,
    op: Any = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Any:
    """Reduces the tensors of all ranks onto one; those of the others stay as they are.

    As `torch.distributed.reduce`, at the cost of all_reduce.

    Args:
        tensor (Tensor): Contiguous; written on rank `dst`.
        dst (int, optional): The rank, numbered in the default group. Default: None.
        op (ReduceOp): How. Default: ReduceOp.SUM.
        group (ProcessGroup, optional): Default: None, the default group.
        async_op (bool): Gives a `Work` to wait for. Default: False.
        group_dst (int, optional): The rank, numbered in the group. Default: None.

    Returns:
        Work or None: None where the call has waited.

    Raises:
        ValueError: The rank is not in the group, or the ranks disagree.

    Example:
        >>> mica.distributed.init_process_group("threads", rank=0, world_size=1)
        >>> x = mica.ones(2)
        >>> mica.distributed.reduce(x, dst=0)
        >>> x
        tensor([1., 1.])
        >>> mica.distributed.destroy_process_group()
    """
    ranks = group_of(group)
    root = root_of(ranks, dst, group_dst, "dst")
    into = tensor if ranks.rank() == root else tensor.new_empty(tensor.shape)
    return ended(ranks.start("all_reduce", tensor, into, reduction=reduction_name(op)), async_op)


@on_members
def reduce_scatter(
    output: Tensor,
    input_list: Sequence[Tensor],
    op: Any = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
) -> Any:
    """Reduces a list of tensors and gives each rank one of them.

    As `torch.distributed.reduce_scatter`.

    Args:
        output (Tensor): Contiguous; written.
        input_list (sequence of Tensor): One for each rank, of the shape of `output`.
        op (ReduceOp): How. Default: ReduceOp.SUM.
        group (ProcessGroup, optional): Default: None, the default group.
        async_op (bool): Gives a `Work` to wait for. Default: False.

    Returns:
        Work or None: None where the call has waited.

    Raises:
        ValueError: The list has not a tensor of that shape for each rank, or the ranks disagree.

    Example:
        >>> mica.distributed.init_process_group("threads", rank=0, world_size=1)
        >>> x = mica.zeros(2)
        >>> mica.distributed.reduce_scatter(x, [mica.ones(2)])
        >>> x
        tensor([1., 1.])
        >>> mica.distributed.destroy_process_group()
    """
    ranks = group_of(group)
    _check_one_each("reduce_scatter", "input_list", input_list, ranks, output)
    work = ranks.start("reduce_scatter", _joined(input_list, output), output, reduction=reduction_name(op))
    return ended(work, async_op)
