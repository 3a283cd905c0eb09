"""Collectives that give new tensors and have gradients.

All ranks must run backward through them alike, as it calls collectives. A gradient is that of the sum of all ranks'
losses.

    every = functional.all_gather(features)  # of all ranks
    loss(mica.cat(every)).backward()
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mica
from mica._C import Tensor
from mica.distributed._collectives import reduction_name, splits_of
from mica.distributed._group import ProcessGroup
from mica.distributed._init import group_of
from mica.distributed._reduction import ReduceOp

__all__ = [
    "all_gather",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "broadcast",
    "gather",
    "reduce",
    "reduce_scatter",
    "scatter",
]


def _fill(outputs: Sequence[Tensor], values: Sequence[Tensor]) -> None:
    """Writes into the tensors that torch's calls write, which have no gradient here."""
    with mica.no_grad():
        for output, value in zip(outputs, values):
            output.copy_(value)


def _check_one_each(call: str, tensors: Sequence[Tensor], ranks: ProcessGroup, what: str = "tensors") -> None:
    if len(tensors) != ranks.size():
        raise ValueError(
            f"{call} got ({len(tensors)}) {what}; expected one for each of ({ranks.size()}) ranks."
        )


def all_reduce(tensor: Tensor, op: Any = ReduceOp.SUM, group: Any = None) -> Tensor:
    """Reduces the tensors of all ranks.

    As `torch.distributed.nn.functional.all_reduce`.

    Args:
        tensor (Tensor): Of the same shape and dtype on all ranks.
        op (ReduceOp): How; SUM and AVG have gradients. Default: ReduceOp.SUM.
        group (ProcessGroup, optional): Default: None, the default group.

    Returns:
        Tensor: Of the shape of `tensor`.

    Raises:
        ValueError: The ranks disagree.

    Example:
        >>> from mica.distributed.nn import functional
        >>> mica.distributed.init_process_group("threads", rank=0, world_size=1)
        >>> x = mica.ones(2, requires_grad=True)
        >>> y = functional.all_reduce(x)
        >>> y.detach()
        tensor([1., 1.])
        >>> y.sum().backward()
        >>> x.grad
        tensor([1., 1.])
        >>> mica.distributed.destroy_process_group()
    """
    reduced: Tensor = mica.ops.collectives.all_reduce(
        tensor.contiguous(), group_of(group).handle, reduction_name(op)
    )
    return reduced


def reduce(tensor: Tensor, dst: int, op: Any = ReduceOp.SUM, group: Any = None) -> Tensor:
    """Reduces the tensors of all ranks for one of them.

    As `torch.distributed.nn.functional.reduce`.

    Args:
        tensor (Tensor): Of the same shape and dtype on all ranks.
        dst (int): The rank, numbered in the default group.
        op (ReduceOp): How; SUM and AVG have gradients. Default: ReduceOp.SUM.
        group (ProcessGroup, optional): Default: None, the default group.

    Returns:
        Tensor: Of the shape of `tensor`; zeros on the other ranks.

    Raises:
        ValueError: The rank is not in the group, or the ranks disagree.

    Example:
        >>> from mica.distributed.nn import functional
        >>> mica.distributed.init_process_group("threads", rank=0, world_size=1)
        >>> x = mica.ones(2, requires_grad=True)
        >>> y = functional.reduce(x, dst=0)
        >>> y.detach()
        tensor([1., 1.])
        >>> y.sum().backward()
        >>> x.grad
        tensor([1., 1.])
        >>> mica.distributed.destroy_process_group()
    """
    ranks = group_of(group)
    here = ranks.place(dst) == ranks.rank()
    reduced = all_reduce(tensor, op, group)
    return reduced if here else reduced.masked_fill(mica.tensor(True), 0)


def broadcast(tensor: Tensor, src: int, group: Any = None) -> Tensor:
    """Gives all ranks the tensor of one.

    As `torch.distributed.nn.functional.broadcast`.

    Args:
        tensor (Tensor): Of the same shape and dtype on all ranks.
        src (int): The rank, numbered in the default group.
        group (ProcessGroup, optional): Default: None, the default group.

    Returns:
        Tensor: That of `src`.

    Raises:
        ValueError: The rank is not in the group, or the ranks disagree.

    Example:
        >>> from mica.distributed.nn import functional
        >>> mica.distributed.init_process_group("threads", rank=0, world_size=1)
        >>> x = mica.ones(2, requires_grad=True)
        >>> y = functional.broadcast(x, src=0)
        >>> y.detach()
        tensor([1., 1.])
        >>> y.sum().backward()
        >>> x.grad
        tensor([1., 1.])
        >>> mica.distributed.destroy_process_group()
    """
    ranks = group_of(group)
    sent: Tensor = mica.ops.collectives.broadcast(tensor.contiguous(), ranks.handle, ranks.place(src))
    return sent


def all_gather(tensor: Tensor, group: Any = None) -> tuple[Tensor, ...]:
    """Gives all ranks the tensors of all.

    As `torch.distributed.nn.functional.all_gather`.

    Args:
        tensor (Tensor): Of the same shape and dtype on all ranks.
        group (ProcessGroup, optional): Default: None, the default group.

    Returns:
        tuple of Tensor: One for each rank.

    Raises:
        ValueError: The ranks disagree.

    Example:
        >>> from mica.distributed.nn import functional
        >>> mica.distributed.init_process_group("threads", rank=0, world_size=1)
        >>> x = mica.ones(2, requires_grad=True)
        >>> every = functional.all_gather(x)
        >>> mica.cat(every).sum().backward()
        >>> len(every), x.grad
        (1, tensor([1., 1.]))
        >>> mica.distributed.destroy_process_group()
    """
    joined: Tensor = mica.ops.collectives.all_gather(tensor.contiguous().unsqueeze(0), group_of(group).handle)
    return tuple(joined.unbind())


def gather(tensor: Tensor, dst: int = 0, group: Any = None) -> tuple[Tensor, ...]:
    """Gives one rank the tensors of all.

    As `torch.distributed.nn.functional.gather`.

    Args:
        tensor (Tensor): Of the same shape and dtype on all ranks.
        dst (int): The rank, numbered in the default group. Default: 0.
        group (ProcessGroup, optional): Default: None, the default group.

    Returns:
        tuple of Tensor: One for each rank; zeros on the other ranks.

    Raises:
        ValueError: The rank is not in the group, or the ranks disagree.

    Example:
        >>> from mica.distributed.nn import functional
        >>> mica.distributed.init_process_group("threads", rank=0, world_size=1)
        >>> x = mica.ones(2, requires_grad=True)
        >>> every = functional.gather(x, dst=0)
        >>> mica.cat(every).sum().backward()
        >>> len(every), x.grad
        (1, tensor([1., 1.]))
        >>> mica.distributed.destroy_process_group()
    """
    ranks = group_of(group)
    joined: Tensor = mica.ops.collectives.gather(
        tensor.contiguous().unsqueeze(0), ranks.handle, ranks.place(dst)
    )
    return tuple(joined.unbind())


def scatter(tensors: Sequence[Tensor], src: int = 0, group: Any = None) -> Tensor:
    """Gives each rank a tensor of one.

    As `torch.distributed.nn.functional.scatter`.

    Args:
        tensors (sequence of Tensor): One for each rank, all of one shape; on ranks other than `src` their shape
            alone counts.
        src (int): The rank, numbered in the default group. Default: 0.
        group (ProcessGroup, optional): Default: None, the default group.

    Returns:
        Tensor: This rank's.

    Raises:
        ValueError: There is not one for each rank, the rank is not in the group, or the ranks disagree.

    Example:
        >>> from mica.distributed.nn import functional
        >>> mica.distributed.init_process_group("threads", rank=0, world_size=1)
        >>> x = mica.ones(2, requires_grad=True)
        >>> part = functional.scatter([x], src=0)
        >>> part.sum().backward()
        >>> part.detach(), x.grad
        (tensor([1., 1.]), tensor([1., 1.]))
        >>> mica.distributed.destroy_process_group()
    """
    ranks = group_of(group)
    _check_one_each("scatter", tensors, ranks)
    part: Tensor = mica.ops.collectives.scatter(mica.stack(list(tensors)), ranks.handle, ranks.place(src))
    return part.squeeze(0)


def reduce_scatter(
    output: Tensor, input_list: Sequence[Tensor], op: Any = ReduceOp.SUM, group: Any = None
) -> Tensor:
    """Reduces tensors of all ranks, and gives each rank one of them.

    As `torch.distributed.nn.functional.reduce_scatter`.

    Args:
        output (Tensor): Written, without a gradient.
        input_list (sequence of Tensor): One for each rank, all of the shape of `output`.
        op (ReduceOp): How; SUM and AVG have gradients. Default: ReduceOp.SUM.
        group (ProcessGroup, optional): Default: None, the default group.

    Returns:
        Tensor: This rank's.

    Raises:
        ValueError: There is not one for each rank, or the ranks disagree.

    Example:
        >>> from mica.distributed.nn import functional
        >>> mica.distributed.init_process_group("threads", rank=0, world_size=1)
        >>> x = mica.ones(2, requires_grad=True)
        >>> part = functional.reduce_scatter(mica.empty(2), [x])
        >>> part.sum().backward()
        >>> part.detach(), x.grad
        (tensor([1., 1.]), tensor([1., 1.]))
        >>> mica.distributed.destroy_process_group()
    """
    ranks = group_of(group)
    _check_one_each("reduce_scatter", input_list, ranks)
    part: Tensor = mica.ops.collectives.reduce_scatter(
        mica.stack(list(input_list)), ranks.handle, reduction_name(op)
    ).squeeze(0)
    _fill([output], [part])
    return part


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: Any = None,
) -> Tensor:
    """Sends a part of the input to each rank, and joins what the ranks sent.

    As `torch.distributed.nn.functional.all_to_all_single`.

    Args:
        output (Tensor): Written, without a gradient.
        input (Tensor): Cut along the first dimension.
        output_split_sizes (sequence of int, optional): Rows from each rank. Default: None, equal parts.
        input_split_sizes (sequence of int, optional): Rows for each rank. Default: None, equal parts.
        group (ProcessGroup, optional): Default: None, the default group.

    Returns:
        Tensor: Of the shape of `output`.

    Raises:
        ValueError: The sizes are not those of the tensors, or the ranks disagree on them.

    Example:
        >>> from mica.distributed.nn import functional
        >>> mica.distributed.init_process_group("threads", rank=0, world_size=1)
        >>> x = mica.ones(2, requires_grad=True)
        >>> received = functional.all_to_all_single(mica.empty(2), x)
        >>> received.sum().backward()
        >>> received.detach(), x.grad
        (tensor([1., 1.]), tensor([1., 1.]))
        >>> mica.distributed.destroy_process_group()
    """
    ranks = group_of(group)
    outputs, inputs = splits_of(output, output_split_sizes, ranks), splits_of(input, input_split_sizes, ranks)
    joined: Tensor = mica.ops.collectives.all_to_all(
        input.contiguous(), ranks.handle, list(outputs), list(inputs)
    )
    _fill([output], [joined])
    return joined


def all_to_all(
    output_tensor_list: Sequence[Tensor], input_tensor_list: Sequence[Tensor], group: Any = None
) -> tuple[Tensor, ...]:
    """Sends a tensor to each rank, and gives what the ranks sent.

    As `torch.distributed.nn.functional.all_to_all`.

    Args:
        output_tensor_list (sequence of Tensor): One from each rank; written, without a gradient.
        input_tensor_list (sequence of Tensor): One for each rank, of any shapes.
        group (ProcessGroup, optional): Default: None, the default group.

    Returns:
        tuple of Tensor: Of the shapes of `output_tensor_list`.

    Raises:
        ValueError: There is not one for each rank, or the ranks disagree on their sizes.

    Example:
        >>> from mica.distributed.nn import functional
        >>> mica.distributed.init_process_group("threads", rank=0, world_size=1)
        >>> x = mica.ones(2, requires_grad=True)
        >>> (received,) = functional.all_to_all([mica.empty(2)], [x])
        >>> received.sum().backward()
        >>> received.detach(), x.grad
        (tensor([1., 1.]), tensor([1., 1.]))
        >>> mica.distributed.destroy_process_group()
    """
    ranks = group_of(group)
    _check_one_each("all_to_all", output_tensor_list, ranks, "output tensors")
    _check_one_each("all_to_all", input_tensor_list, ranks, "input tensors")
    sizes = [t.numel() for t in output_tensor_list]
    joined: Tensor = mica.ops.collectives.all_to_all(
        mica.cat([t.reshape(-1) for t in input_tensor_list]),
        ranks.handle,
        sizes,
        [t.numel() for t in input_tensor_list],
    )
    parts = [part.view(like.shape) for part, like in zip(joined.split(sizes), output_tensor_list)]
    _fill(output_tensor_list, parts)
    return tuple(parts)
