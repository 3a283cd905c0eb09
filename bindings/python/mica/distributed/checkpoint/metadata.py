"""What a checkpoint holds: for each key a tensor in chunks, or a value as bytes, and where each lies."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import mica
from mica._C import Tensor

__all__ = [
    "BytesStorageMetadata",
    "ChunkStorageMetadata",
    "Metadata",
    "MetadataIndex",
    "StorageMeta",
    "TensorProperties",
    "TensorStorageMetadata",
]


@dataclass
class ChunkStorageMetadata:
    """A box of a global tensor.

    As `torch.distributed.checkpoint.ChunkStorageMetadata`.

    Args:
        offsets (Size): Where it begins in the global tensor, by dimension.
        sizes (Size): Its shape.

    Example:
        >>> box = mica.distributed.checkpoint.ChunkStorageMetadata(mica.Size([2, 0]), mica.Size([2, 8]))
        >>> box.sizes
        mica.Size([2, 8])
    """

    offsets: mica.Size
    sizes: mica.Size


@dataclass
class TensorProperties:
    """What a tensor is beside its shape.

    As `torch.distributed.checkpoint.metadata.TensorProperties`. The dtype alone is saved.

    Args:
        dtype (dtype): Default: the default dtype.
        layout (layout): Default: mica.strided.
        requires_grad (bool): Default: False.
        memory_format (memory_format): Default: mica.contiguous_format.
        pin_memory (bool): Default: False.

    Example:
        >>> from mica.distributed.checkpoint.metadata import TensorProperties
        >>> TensorProperties.create_from_tensor(mica.ones(2)).dtype
        mica.float32
    """

    dtype: Any = field(default_factory=mica.get_default_dtype)
    layout: Any = field(default=mica.strided)
    requires_grad: bool = False
    memory_format: Any = field(default=mica.contiguous_format)
    pin_memory: bool = False

    @staticmethod
    def create_from_tensor(tensor: Tensor) -> TensorProperties:
        """Gives a tensor's.

        Args:
            tensor (Tensor): The tensor.

        Returns:
            TensorProperties: Its dtype, layout and whether it requires grad.
        """
        return TensorProperties(tensor.dtype, tensor.layout, tensor.requires_grad)

    def __setstate__(self, state: Any) -> None:
        """From a pickle: a dictionary, or the tuple that torch writes, whose memory format is no object."""
        if isinstance(state, tuple):
            self.dtype, self.layout, self.requires_grad, _, self.pin_memory = state
            self.memory_format = mica.contiguous_format
        else:
            self.__dict__.update(state)


@dataclass
class TensorStorageMetadata:
    """A tensor of a checkpoint.

    As `torch.distributed.checkpoint.TensorStorageMetadata`.

    Args:
        properties (TensorProperties): Its dtype.
        size (Size): The global shape.
        chunks (list of ChunkStorageMetadata): Boxes that do not overlap and leave no hole.

    Example:
        >>> from mica.distributed import checkpoint
        >>> from mica.distributed.checkpoint.metadata import TensorProperties
        >>> whole = checkpoint.ChunkStorageMetadata(mica.Size([0]), mica.Size([4]))
        >>> checkpoint.TensorStorageMetadata(TensorProperties(), mica.Size([4]), [whole]).size
        mica.Size([4])
    """

    properties: TensorProperties
    size: mica.Size
    chunks: list[ChunkStorageMetadata]


@dataclass
class BytesStorageMetadata:
    """A value of a checkpoint that is no tensor.

    As `torch.distributed.checkpoint.BytesStorageMetadata`.

    Example:
        >>> mica.distributed.checkpoint.BytesStorageMetadata()
        BytesStorageMetadata()
    """


STORAGE_TYPES = TensorStorageMetadata | BytesStorageMetadata
STATE_DICT_TYPE = dict[str, Any]  # tensors, values, objects with a state, and dicts and lists of them


@dataclass
class StorageMeta:
    """Which checkpoint it is.

    As `torch.distributed.checkpoint.metadata.StorageMeta`.

    Args:
        checkpoint_id (str or path, optional): Its folder. Default: None.
        save_id (str, optional): Names the save. Default: None.
        load_id (str, optional): Names the load. Default: None.
        modules (list of str): Default: none.

    Example:
        >>> from mica.distributed.checkpoint.metadata import StorageMeta
        >>> StorageMeta("folder").checkpoint_id
        'folder'
    """

    checkpoint_id: str | os.PathLike[str] | None = None
    save_id: str | None = None
    load_id: str | None = None
    modules: list[str] = field(default_factory=list)


@dataclass
class Metadata:
    """What a checkpoint holds.

    As `torch.distributed.checkpoint.Metadata`.

    Args:
        state_dict_metadata (dict): For each key a TensorStorageMetadata or BytesStorageMetadata.
        planner_data (Any): The planner's own: for each key its path in the nested state dict. Default: None.
        storage_data (Any): The storage's own: where each chunk lies. Default: None.
        storage_meta (StorageMeta, optional): Which checkpoint. Default: None.
        version (str, optional): Of the format. Default: None.

    Example:
        >>> import tempfile
        >>> checkpoint = mica.distributed.checkpoint
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     checkpoint.save({"x": mica.ones(2), "epoch": 3}, checkpoint_id=folder, no_dist=True)
        ...     found = checkpoint.FileSystemReader(folder).read_metadata()
        Metadata(...)
        >>> found.state_dict_metadata["x"].size, found.state_dict_metadata["epoch"]
        (mica.Size([2]), BytesStorageMetadata())
    """

    state_dict_metadata: dict[str, STORAGE_TYPES]
    planner_data: Any = None
    storage_data: Any = None
    storage_meta: StorageMeta | None = None
    version: str | None = None


@dataclass(frozen=True)
class MetadataIndex:
    """Names a value of a state dict, or a chunk of a tensor.

    As `torch.distributed.checkpoint.metadata.MetadataIndex`. Two are equal of the same `fqn` and `offset`.

    Args:
        fqn (str): The key.
        offset (sequence of int, optional): Where the chunk begins. Default: None.
        index (int, optional): Its place in the list of chunks. Default: None.

    Example:
        >>> from mica.distributed.checkpoint.metadata import MetadataIndex
        >>> MetadataIndex("x", [0, 2]) == MetadataIndex("x", (0, 2), index=1)
        True
    """

    fqn: str
    offset: mica.Size | None = None
    index: int | None = dataclasses.field(hash=False, compare=False, default=None)

    def __init__(self, fqn: str, offset: Sequence[int] | None = None, index: int | None = None) -> None:
        object.__setattr__(self, "fqn", fqn)
        object.__setattr__(self, "index", index)
        object.__setattr__(self, "offset", None if offset is None else mica.Size(offset))
