"""What an object does to be saved as a piece of a global tensor: the protocol that sharded tensors implement."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from mica._C import Tensor


@runtime_checkable
class _Checkpointable(Protocol):
    """An object that holds boxes of a global tensor, as `torch.distributed._checkpointable._Checkpointable`.

    It also has `size()`, the global shape. mica.distributed.checkpoint asks for nothing else.
    """

    def __create_write_items__(self, fqn: str, object: Any) -> list[Any]:
        """The WriteItems of the boxes that this rank holds of `object`, which is the object itself."""

    def __create_chunk_list__(self) -> list[Any]:
        """The ChunkStorageMetadata of the boxes that this rank holds."""

    def __get_tensor_shard__(self, index: Any) -> Tensor:
        """The Tensor of the box at the MetadataIndex's `offset`; loading writes into it."""
