"""Collectives on tensors that are there, as torch.distributed calls them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mica._C import Tensor
from mica.distributed._group import ProcessGroup, Work
from mica.distributed._init import group_of, on_members
from mica.distributed._reduction import ReduceOp

__all__ = [
    "all_gather_into_tensor",
    "all_reduce",
    "all_to_all_single",
    "barrier",
    "broadcast",
    "reduce_scatter_tensor",
]


def root_of(
    group: ProcessGroup, rank: int | None, place: int | None, what: str, default: int | None = None
) -> int:
    """The number in the group of a rank that is given by its number in the default group or in the group.

    `default` is that of the rank where neither is given; None: one of them must be.
    """
    if rank is None and place is None and default is not None:
        return default
    if (rank is None) == (place is None):
        raise ValueError(f"Must specify one of `{what}` ({rank}) and `group_{what}` ({place}).")
    if rank is not None:
        return group.place(rank)
    assert place is not None
    if not 0 <= place < group.size():
        raise ValueError(f"`group_{what}` ({place}) is none of the group's ({group.size()}) ranks.")
    return place


def ended(work: Work, async_op: bool, timeout: Any = None) -> Work | None:
    if async_op:
        return work
    work.wait(timeout)
    return None


def splits_of(tensor: Tensor, sizes: Sequence[int] | None, group: ProcessGroup) -> Sequence[int]:
    """The rows of each rank's part: those given, or equal ones."""
    return sizes or [tensor.size(0) // group.size()] * group.size()


def reduction_name(op: Any) -> str:
    if not isinstance(op, ReduceOp):
        raise TypeError(f"The reduction ({op!r}) is none of mica.distributed.ReduceOp.")
    return str(op.value)


@on_members
def all_reduce(tensor: Tensor, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Any:
    """Reduces the tensors of all ranks, in place.

    As `torch.distributed.all_reduce`.

    Args:
        tensor (Tensor): Contiguous; of the same shape and dtype on all ranks.
        op (ReduceOp): How. Default: ReduceOp.SUM.
        group (ProcessGroup, optional): Default: None, the default group.
        async_op (bool): Gives a `Work` to wait for. Default: False, the call waits itself.

    Returns:
        Work or None: None where the call has waited.

    Raises:
        RuntimeError: Another rank left, or did not call it within the timeout.
        ValueError: The ranks disagree on what they call.

    Example:
        >>> mica.distributed.init_process_group("threads", rank=0, world_size=1)
        >>> x = mica.ones(2)
        >>> mica.distributed.all_reduce(x)
        >>> x
        tensor([1., 1.])
        >>> mica.distributed.destroy_process_group()
    """
    work = group_of(group).start("all_reduce", tensor, tensor, reduction=reduction_name(op))
    return ended(work, async_op)


@on_members
def broadcast(
    tensor: Tensor,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Any:
    """Fills the tensors of all ranks with that of one.

    As `torch.distributed.broadcast`.

    Args:
        tensor (Tensor): Contiguous; read on rank `src`, written on the others.
        src (int): The rank, numbered in the default group.
        group (ProcessGroup, optional): Default: None, the default group.
        async_op (bool): Gives a `Work` to wait for. Default: False.
        group_src (int, optional): The rank, numbered in the group, in the place of `src`. Default: None.

    Returns:
        Work or None: None where the call has waited.

    Raises:
        ValueError: The rank is not in the group, or the ranks disagree.

    Example:
        >>> mica.distributed.init_process_group("threads", rank=0, world_size=1)
        >>> x = mica.ones(2)
        >>> mica.distributed.broadcast(x, src=0)
        >>> x
        tensor([1., 1.])
        >>> mica.distributed.destroy_process_group()
    """
    ranks = group_of(group)
    return ended(ranks.start("broadcast", None, tensor, peer=root_of(ranks, src, group_src, "src")), async_op)


@on_members
def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: Any = None, async_op: bool = False
) -> Any:
    """Joins the tensors of all ranks, in the order of ranks.

    As `torch.distributed.all_gather_into_tensor`.

    Args:
        output_tensor (Tensor): Contiguous, with as many elements as all inputs; written.
        input_tensor (Tensor): Contiguous; of the same shape and dtype on all ranks.
        group (ProcessGroup, optional): Default: None, the default group.
        async_op (bool): Gives a `Work` to wait for. Default: False.

    Returns:
        Work or None: None where the call has waited.

    Raises:
        ValueError: `output_tensor` has not as many elements as all inputs, or the ranks disagree.

    Example:
        >>> mica.distributed.init_process_group("threads", rank=0, world_size=1)
        >>> every = mica.zeros(2 * mica.distributed.get_world_size())
        >>> mica.distributed.all_gather_into_tensor(every, mica.ones(2))
        >>> every
        tensor([1., 1.])
        >>> mica.distributed.destroy_process_group()
    """
    ranks = group_of(group)
    if output_tensor.numel() != input_tensor.numel() * ranks.size():
        raise ValueError(
            f"The output of all_gather_into_tensor has ({output_tensor.numel()}) elements; expected "
            f"({input_tensor.numel() * ranks.size()}), ({input_tensor.numel()}) of each of ({ranks.size()}) ranks."
        )
    return ended(ranks.start("all_gather", input_tensor, output_tensor), async_op)


@on_members
def reduce_scatter_tensor(
    output: Tensor, input: Tensor, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Any:
    """Gives each rank its part of the reduced tensors.

    As `torch.distributed.reduce_scatter_tensor`.

    Args:
        output (Tensor): Contiguous; written with this rank's part.
        input (Tensor): Contiguous, of as many elements as all outputs; of the same shape on all ranks.
        op (ReduceOp): How. Default: ReduceOp.SUM.
        group (ProcessGroup, optional): Default: None, the default group.
        async_op (bool): Gives a `Work` to wait for. Default: False.

    Returns:
        Work or None: None where the call has waited.

    Raises:
        ValueError: `input` has not as many elements as all outputs, or the ranks disagree.

    Example:
        >>> mica.distributed.init_process_group("threads", rank=0, world_size=1)
        >>> x = mica.zeros(2)
        >>> mica.distributed.reduce_scatter_tensor(x, mica.ones(2 * mica.distributed.get_world_size()))
        >>> x
        tensor([1., 1.])
        >>> mica.distributed.destroy_process_group()
    """
    ranks = group_of(group)
    if input.numel() != output.numel() * ranks.size():
        raise ValueError(
            f"The input of reduce_scatter_tensor has ({input.numel()}) elements; expected "
            f"({output.numel() * ranks.size()}), ({output.numel()}) for each of ({ranks.size()}) ranks."
        )
    return ended(ranks.start("reduce_scatter", input, output, reduction=reduction_name(op)), async_op)


@on_members
def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: Any = None,
    async_op: bool = False,
) -> Any:
    """Sends a part of the input to each rank, and joins what the ranks sent.

    As `torch.distributed.all_to_all_single`.

    Args:
        output (Tensor): Contiguous; written.
        input (Tensor): Contiguous; cut along the first dimension.
        output_split_sizes (sequence of int, optional): Rows from each rank. Default: None, equal parts.
        input_split_sizes (sequence of int, optional): Rows for each rank. Default: None, equal parts.
        group (ProcessGroup, optional): Default: None, the default group.
        async_op (bool): Gives a `Work` to wait for. Default: False.

    Returns:
        Work or None: None where the call has waited.

    Raises:
        ValueError: The sizes are not those of the tensors, or the ranks disagree on them.

    Example:
        >>> mica.distributed.init_process_group("threads", rank=0, world_size=1)
        >>> x = mica.zeros(2)
        >>> mica.distributed.all_to_all_single(x, mica.ones(2))
        >>> x
        tensor([1., 1.])
        >>> mica.distributed.destroy_process_group()
    """
    ranks = group_of(group)
    splits = splits_of(output, output_split_sizes, ranks), splits_of(input, input_split_sizes, ranks)
    return ended(ranks.start("all_to_all", input, output, splits=splits), async_op)


@on_members
def barrier(group: Any = None, async_op: bool = False, device_ids: Any = None, timeout: Any = None) -> Any:
    """Waits until all ranks have come here.

    As `torch.distributed.barrier`.

    Args:
        group (ProcessGroup, optional): Default: None, the default group.
        async_op (bool): Gives a `Work` to wait for. Default: False.
        device_ids (sequence of int, optional): Taken and not used. Default: None.
        timeout (timedelta, optional): At most so long, where that is shorter than the group's timeout. Default: None.

    Returns:
        Work or None: None where the call has waited.

    Raises:
        NotImplementedError: A timeout is given for a call that does not wait.
        RuntimeError: A rank left, or did not come within the timeout.

    Example:
        >>> mica.distributed.init_process_group("threads", rank=0, world_size=1)
        >>> mica.distributed.barrier()  # goes on when all ranks have come
        >>> mica.distributed.barrier(async_op=True).wait()
        True
        >>> mica.distributed.destroy_process_group()
    """
    if async_op and timeout is not None:
        raise NotImplementedError(
            f"barrier(async_op=True, timeout={timeout!r}) waits for nothing itself; give the timeout to the `wait` of "
            "the Work that it returns."
        )
    return ended(group_of(group).start("barrier", None, None), async_op, timeout)
