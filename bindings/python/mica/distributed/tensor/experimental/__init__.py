"""What torch.distributed.tensor.experimental has: functions of local tensors as functions of DTensors."""

from mica.distributed.tensor.experimental._local_map import implicit_replication, local_map

__all__ = ["implicit_replication", "local_map"]
