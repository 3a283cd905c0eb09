"""Communication hooks of DistributedDataParallel: the plain average, and gradients that travel in 16 bits.

model.register_comm_hook(None, default_hooks.fp16_compress_hook)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mica
from mica.distributed._init import group_of
from mica.futures import Future

__all__ = [
    "allreduce_hook",
    "bf16_compress_hook",
    "bf16_compress_wrapper",
    "fp16_compress_hook",
    "fp16_compress_wrapper",
]


def _averaged(process_group: Any, buffer: Any) -> Future[Any]:
    """The average of memory that may be written."""
    group = group_of(process_group)
    work = group.start("all_reduce", buffer.div_(group.size()), buffer)
    return work.get_future().then(lambda done: done.value()[0])


def allreduce_hook(process_group: Any, bucket: Any) -> Future[Any]:
    """Averages the gradients, as without a hook.

    As `torch.distributed.algorithms.ddp_comm_hooks.default_hooks.allreduce_hook`.

    Args:
        process_group (ProcessGroup or None): None: the default group.
        bucket (GradBucket): The gradients.

    Returns:
        Future: Of the averages.

    Example:
        >>> from mica.distributed.algorithms.ddp_comm_hooks import default_hooks
        >>> mica.distributed.init_process_group("threads", rank=0, world_size=1)
        >>> model = mica.nn.parallel.DistributedDataParallel(mica.nn.Linear(2, 1))
        >>> model.register_comm_hook(None, default_hooks.allreduce_hook)
        >>> model(mica.full((1, 2), 2049.0)).sum().backward()
        >>> model.module.weight.grad
        tensor([[2049., 2049.]])
        >>> mica.distributed.destroy_process_group()
    """
    return _averaged(process_group, bucket.buffer())


def _compressed(dtype: Any, process_group: Any, bucket: Any) -> Future[Any]:
    buffer = bucket.buffer()
    future = _averaged(process_group, buffer.to(dtype, copy=True))
    return future.then(lambda done: buffer.copy_(done.value()))


def fp16_compress_hook(process_group: Any, bucket: Any) -> Future[Any]:
    """Averages the gradients in float16.

    As `torch.distributed.algorithms.ddp_comm_hooks.default_hooks.fp16_compress_hook`.

    Args:
        process_group (ProcessGroup or None): None: the default group.
        bucket (GradBucket): The gradients.

    Returns:
        Future: Of the averages, in the gradients' dtype.

    Example:
        >>> from mica.distributed.algorithms.ddp_comm_hooks import default_hooks
        >>> mica.distributed.init_process_group("threads", rank=0, world_size=1)
        >>> model = mica.nn.parallel.DistributedDataParallel(mica.nn.Linear(2, 1))
        >>> model.register_comm_hook(None, default_hooks.fp16_compress_hook)
        >>> model(mica.full((1, 2), 2049.0)).sum().backward()
        >>> model.module.weight.grad  # rounded to float16 on the way
        tensor([[2048., 2048.]])
        >>> mica.distributed.destroy_process_group()
    """
    return _compressed(mica.float16, process_group, bucket)


def bf16_compress_hook(process_group: Any, bucket: Any) -> Future[Any]:
    """Averages the gradients in bfloat16.

    As `torch.distributed.algorithms.ddp_comm_hooks.default_hooks.bf16_compress_hook`.

    Args:
        process_group (ProcessGroup or None): None: the default group.
        bucket (GradBucket): The gradients.

    Returns:
        Future: Of the averages, in the gradients' dtype.

    Example:
        >>> from mica.distributed.algorithms.ddp_comm_hooks import default_hooks
        >>> mica.distributed.init_process_group("threads", rank=0, world_size=1)
        >>> model = mica.nn.parallel.DistributedDataParallel(mica.nn.Linear(2, 1))
        >>> model.register_comm_hook(None, default_hooks.bf16_compress_hook)
        >>> model(mica.full((1, 2), 257.0)).sum().backward()
        >>> model.module.weight.grad  # rounded to bfloat16 on the way
        tensor([[256., 256.]])
        >>> mica.distributed.destroy_process_group()
    """
    return _compressed(mica.bfloat16, process_group, bucket)


def _wrapped(dtype: Any, hook: Callable[[Any, Any], Future[Any]]) -> Callable[[Any, Any], Future[Any]]:
    def compress(state: Any, bucket: Any) -> Future[Any]:
        whole = bucket.buffer()
        bucket.set_buffer(whole.to(dtype, copy=True))
        return hook(state, bucket).then(lambda done: whole.copy_(done.value()))

    return compress


def fp16_compress_wrapper(hook: Callable[[Any, Any], Future[Any]]) -> Callable[[Any, Any], Future[Any]]:
    """Makes a hook that gives another one the gradients in float16.

    As `torch.distributed.algorithms.ddp_comm_hooks.default_hooks.fp16_compress_wrapper`.

    Args:
        hook (callable): The other hook.

    Returns:
        callable: A hook with the same state.

    Example:
        >>> from mica.distributed.algorithms.ddp_comm_hooks import default_hooks
        >>> mica.distributed.init_process_group("threads", rank=0, world_size=1)
        >>> model = mica.nn.parallel.DistributedDataParallel(mica.nn.Linear(2, 1))
        >>> model.register_comm_hook(None, default_hooks.fp16_compress_wrapper(default_hooks.allreduce_hook))
        >>> model(mica.full((1, 2), 2049.0)).sum().backward()
        >>> model.module.weight.grad  # rounded to float16 on the way
        tensor([[2048., 2048.]])
        >>> mica.distributed.destroy_process_group()
    """
    return _wrapped(mica.float16, hook)


def bf16_compress_wrapper(hook: Callable[[Any, Any], Future[Any]]) -> Callable[[Any, Any], Future[Any]]:
    """Makes a hook that gives another one the gradients in bfloat16.

    As `torch.distributed.algorithms.ddp_comm_hooks.default_hooks.bf16_compress_wrapper`.

    Args:
        hook (callable): The other hook.

    Returns:
        callable: A hook with the same state.

    Example:
        >>> from mica.distributed.algorithms.ddp_comm_hooks import default_hooks
        >>> mica.distributed.init_process_group("threads", rank=0, world_size=1)
        >>> model = mica.nn.parallel.DistributedDataParallel(mica.nn.Linear(2, 1))
        >>> model.register_comm_hook(None, default_hooks.bf16_compress_wrapper(default_hooks.allreduce_hook))
        >>> model(mica.full((1, 2), 257.0)).sum().backward()
        >>> model.module.weight.grad  # rounded to bfloat16 on the way
        tensor([[256., 256.]])
        >>> mica.distributed.destroy_process_group()
    """
    return _wrapped(mica.bfloat16, hook)
