"""Tensor parallelism: how the layers of a module lie on a mesh, with torch.distributed.tensor.parallel's names."""

from mica.distributed.tensor.parallel.api import parallelize_module
from mica.distributed.tensor.parallel.loss import loss_parallel
from mica.distributed.tensor.parallel.style import (
    ColwiseParallel,
    ParallelStyle,
    PrepareModuleInput,
    PrepareModuleInputOutput,
    PrepareModuleOutput,
    RowwiseParallel,
    SequenceParallel,
)

__all__ = [
    "ColwiseParallel",
    "ParallelStyle",
    "PrepareModuleInput",
    "PrepareModuleInputOutput",
    "PrepareModuleOutput",
    "RowwiseParallel",
    "SequenceParallel",
    "loss_parallel",
    "parallelize_module",
]
