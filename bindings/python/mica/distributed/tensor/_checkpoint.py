"""The box of a DTensor that a rank saves and loads, for mica.distributed.checkpoint."""

from __future__ import annotations

from typing import Any

import mica
from mica._C import Tensor
from mica.distributed.checkpoint.metadata import ChunkStorageMetadata, MetadataIndex, TensorProperties
from mica.distributed.checkpoint.planner import TensorWriteData, WriteItem, WriteItemType
from mica.distributed.tensor._layout import local_box
from mica.distributed.tensor._sources import local_of
from mica.distributed.tensor.placement_types import Partial, Replicate, _StridedShard


def _box(t: Any) -> tuple[list[int], list[int]]:
    """Sizes and offsets of this rank's part."""
    return local_box(t.shape, t.device_mesh.shape, t.device_mesh.get_coordinate(), t.placements)


def chunks(t: Any) -> list[ChunkStorageMetadata]:
    """What this rank holds, also where others hold the same."""
    sizes, offsets = _box(t)
    return (
        [ChunkStorageMetadata(mica.Size(offsets), mica.Size(sizes))] if 0 not in sizes or not t.ndim else []
    )


def write_items(fqn: str, t: Any) -> list[WriteItem]:
    """What this rank saves: of what several ranks replicate, the first of them.

    Raises:
        ValueError: The tensor is partial, or cut in an inner dimension of one.
    """
    _check_boxes(fqn, t)
    here = t.device_mesh.get_coordinate()
    if any(isinstance(p, Replicate) and place for p, place in zip(t.placements, here)):
        return []
    properties = TensorProperties.create_from_tensor(local_of(t))
    return [
        WriteItem(
            MetadataIndex(fqn, chunk.offsets),
            WriteItemType.SHARD,
            tensor_data=TensorWriteData(chunk, properties, t.size()),
        )
        for chunk in chunks(t)
    ]


def shard(t: Any, index: MetadataIndex) -> Tensor:
    """This rank's part, which loading writes into."""
    offsets = mica.Size(_box(t)[1])
    if index.offset is not None and tuple(index.offset) != tuple(offsets):
        raise ValueError(
            f"The key ({index.fqn}) is asked for the chunk at {tuple(index.offset)}, and this rank's part begins at {tuple(offsets)}."
        )
    return local_of(t).detach()


def _check_boxes(fqn: str, t: Any) -> None:
    if any(isinstance(p, (Partial, _StridedShard)) for p in t.placements):
        raise ValueError(
            f"The DTensor under the key ({fqn}) has the placements {t.placements}, and what is partial or strided is no box "
            "of the tensor; call redistribute() first."
        )
