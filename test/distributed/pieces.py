"""A global tensor of which a rank holds boxes: what a checkpoint takes for one, by the protocol alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mica
from mica._C import Tensor
from mica.distributed.checkpoint import ChunkStorageMetadata, WriteItem
from mica.distributed.checkpoint.metadata import MetadataIndex, TensorProperties
from mica.distributed.checkpoint.planner import TensorWriteData, WriteItemType


class Pieces:
    """Boxes of a tensor of the shape `size`, each where it begins and its tensor."""

    def __init__(self, size: Sequence[int], boxes: Sequence[tuple[Sequence[int], Tensor]]) -> None:
        self._size = mica.Size(size)
        self.boxes = [(mica.Size(offsets), tensor) for offsets, tensor in boxes]

    def size(self) -> Any:
        return self._size

    @property
    def dtype(self) -> Any:
        return self.boxes[0][1].dtype

    def __create_write_items__(self, fqn: str, object: Any) -> list[WriteItem]:
        return [
            WriteItem(
                MetadataIndex(fqn, offsets),
                WriteItemType.SHARD,
                tensor_data=TensorWriteData(
                    ChunkStorageMetadata(offsets, tensor.shape),
                    TensorProperties.create_from_tensor(tensor),
                    self._size,
                ),
            )
            for offsets, tensor in self.boxes
        ]

    def __create_chunk_list__(self) -> list[ChunkStorageMetadata]:
        return [ChunkStorageMetadata(offsets, tensor.shape) for offsets, tensor in self.boxes]

    def __get_tensor_shard__(self, index: MetadataIndex) -> Tensor:
        return next(
            t for offsets, t in self.boxes if offsets == index.offset and (t.numel() or 0 in self._size)
        )


def cut(whole: Tensor, dim: int, world: int, rank: int) -> Pieces:
    """A rank's piece along a dimension, as torch.chunk cuts: of few rows the last ranks have none."""
    rows = -(-whole.shape[dim] // world)
    begin = min(rank * rows, whole.shape[dim])
    count = min(rows, whole.shape[dim] - begin)
    offsets = [begin if d == dim else 0 for d in range(whole.dim())]
    return Pieces(whole.shape, [(offsets, whole.narrow(dim, begin, count).clone())])


def tiled(whole: Tensor, world: int, rank: int) -> Pieces:
    """Tiles of a matrix, of 3 rows and 5 columns each, dealt to the ranks in turn; none of several tiles of a rank."""
    tiles = [
        ((i, j), whole[i : i + 3, j : j + 5].clone())
        for i in range(0, whole.shape[0], 3)
        for j in range(0, whole.shape[1], 5)
    ]
    return Pieces(whole.shape, tiles[rank::world] or [((0, 0), whole[:0, :0].clone())])


def bytes_of(tensor: Tensor) -> bytes:
    """A tensor's bytes in the order of its elements."""
    flat = tensor.detach().resolve_conj().resolve_neg().contiguous().view(-1)
    return flat.view(mica.uint8).numpy().tobytes() if flat.numel() else b""
