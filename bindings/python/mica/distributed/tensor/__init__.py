"""Tensors that lie on the ranks of a mesh and compute as one, with torch.distributed.tensor's names.

docs/concepts/distributed.md says how operators are computed.
"""

from mica.distributed.device_mesh import DeviceMesh, init_device_mesh
from mica.distributed.tensor._api import DTensor, distribute_module, distribute_tensor
from mica.distributed.tensor._factories import empty, full, ones, rand, randn, zeros
from mica.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard

__all__ = [
    "DTensor",
    "DeviceMesh",
    "Partial",
    "Placement",
    "Replicate",
    "Shard",
    "distribute_module",
    "distribute_tensor",
    "empty",
    "full",
    "init_device_mesh",
    "ones",
    "rand",
    "randn",
    "zeros",
]
