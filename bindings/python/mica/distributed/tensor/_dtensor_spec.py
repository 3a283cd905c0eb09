"""What torch's programs read of a DTensor's layout: mesh, placements, and the whole tensor's shape, stride and dtype."""

from __future__ import annotations

from typing import Any, NamedTuple

from mica.distributed.tensor.placement_types import Placement, Shard

__all__ = ["DTensorSpec", "TensorMeta"]


class TensorMeta(NamedTuple):
    """A tensor's shape, stride and dtype, as `torch.distributed.tensor._dtensor_spec.TensorMeta`."""

    shape: Any
    stride: tuple[int, ...]
    dtype: Any


class DTensorSpec(NamedTuple):
    """How a tensor lies on a mesh, as `torch.distributed.tensor._dtensor_spec.DTensorSpec`."""

    mesh: Any
    placements: tuple[Placement, ...]
    tensor_meta: TensorMeta | None = None

    @property
    def shape(self) -> Any:
        """Of the whole tensor."""
        assert self.tensor_meta is not None
        return self.tensor_meta.shape

    @property
    def ndim(self) -> int:
        """Of the whole tensor."""
        return len(self.shape)

    @property
    def dim_map(self) -> list[int]:
        """For each dimension of the tensor the last dimension of the mesh that cuts it; -1."""
        found = [-1] * self.ndim
        for d, placement in enumerate(self.placements):
            if isinstance(placement, Shard):
                found[placement.dim] = d
        return found
