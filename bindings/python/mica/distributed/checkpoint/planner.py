"""What is written and read by which rank: plans, and the planners that make them."""

from __future__ import annotations

import abc
import enum
import io
import math
from dataclasses import dataclass
from typing import Any

import mica
from mica._C import Tensor
from mica.distributed.checkpoint.metadata import (
    STATE_DICT_TYPE,
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorProperties,
)

__all__ = [
    "BytesIOWriteData",
    "LoadItemType",
    "LoadPlan",
    "LoadPlanner",
    "ReadItem",
    "SavePlan",
    "SavePlanner",
    "TensorWriteData",
    "WriteItem",
    "WriteItemType",
]


class WriteItemType(enum.Enum):
    """What is written: a whole tensor, a chunk of one, or a value that is none.

    Example:
        >>> [kind.name for kind in mica.distributed.checkpoint.planner.WriteItemType]
        ['TENSOR', 'SHARD', 'BYTE_IO']
    """

    TENSOR = enum.auto()
    SHARD = enum.auto()
    BYTE_IO = enum.auto()


class LoadItemType(enum.Enum):
    """What is read: a box of a tensor, or a value that is none.

    Example:
        >>> [kind.name for kind in mica.distributed.checkpoint.planner.LoadItemType]
        ['TENSOR', 'BYTE_IO']
    """

    TENSOR = enum.auto()
    BYTE_IO = enum.auto()


@dataclass(frozen=True)
class BytesIOWriteData:
    """The size of a value that is no tensor.

    As `torch.distributed.checkpoint.planner.BytesIOWriteData`.

    Args:
        nbytes (int): Bytes.

    Example:
        >>> mica.distributed.checkpoint.planner.BytesIOWriteData(3).nbytes
        3
    """

    nbytes: int


@dataclass(frozen=True)
class TensorWriteData:
    """A chunk of a tensor that is written.

    As `torch.distributed.checkpoint.planner.TensorWriteData`.

    Args:
        chunk (ChunkStorageMetadata): The box.
        properties (TensorProperties): The tensor's dtype.
        size (Size): The global shape.

    Example:
        >>> from mica.distributed.checkpoint.metadata import ChunkStorageMetadata, TensorProperties
        >>> box = ChunkStorageMetadata(mica.Size([2]), mica.Size([3]))
        >>> mica.distributed.checkpoint.planner.TensorWriteData(box, TensorProperties(), mica.Size([5])).size
        mica.Size([5])
    """

    chunk: ChunkStorageMetadata
    properties: TensorProperties
    size: mica.Size


@dataclass(frozen=True)
class WriteItem:
    """Something that is written.

    As `torch.distributed.checkpoint.WriteItem`.

    Args:
        index (MetadataIndex): Its name.
        type (WriteItemType): Its kind.
        bytes_io_data (BytesIOWriteData, optional): Of a value that is no tensor. Default: None.
        tensor_data (TensorWriteData, optional): Of a tensor. Default: None.

    Example:
        >>> from mica.distributed.checkpoint.metadata import MetadataIndex
        >>> from mica.distributed.checkpoint.planner import WriteItem, WriteItemType
        >>> WriteItem(MetadataIndex("epoch"), WriteItemType.BYTE_IO).tensor_storage_size()
    """

    index: MetadataIndex
    type: WriteItemType
    bytes_io_data: BytesIOWriteData | None = None
    tensor_data: TensorWriteData | None = None

    def tensor_storage_size(self) -> int | None:
        """Gives the bytes of the chunk.

        Returns:
            int: None if it is no tensor's.
        """
        if self.tensor_data is None:
            return None
        return int(math.prod(self.tensor_data.chunk.sizes) * self.tensor_data.properties.dtype.itemsize)


@dataclass(frozen=True)
class ReadItem:
    """Something that is read: a box of a chunk, into a box of what this rank has.

    As `torch.distributed.checkpoint.ReadItem`.

    Args:
        type (LoadItemType): Its kind.
        dest_index (MetadataIndex): Where it goes in the state dict.
        dest_offsets (Size): Where the box begins there.
        storage_index (MetadataIndex): The chunk of the checkpoint.
        storage_offsets (Size): Where the box begins in the chunk.
        lengths (Size): The shape of the box.

    Example:
        >>> from mica.distributed.checkpoint.metadata import MetadataIndex
        >>> from mica.distributed.checkpoint.planner import LoadItemType, ReadItem
        >>> x, zero = MetadataIndex("x", [0]), mica.Size([0])
        >>> ReadItem(LoadItemType.TENSOR, x, zero, x, zero, mica.Size([4])).lengths
        mica.Size([4])
    """

    type: LoadItemType
    dest_index: MetadataIndex
    dest_offsets: mica.Size
    storage_index: MetadataIndex
    storage_offsets: mica.Size
    lengths: mica.Size


@dataclass(frozen=True)
class SavePlan:
    """What one rank writes.

    As `torch.distributed.checkpoint.SavePlan`.

    Args:
        items (list of WriteItem): Each.
        storage_data (Any): The storage's own. Default: None.
        planner_data (Any): The planner's own. Default: None.
        usable (bool): Taken and not used. Default: True.

    Example:
        >>> mica.distributed.checkpoint.SavePlan([]).items
        []
    """

    items: list[WriteItem]
    storage_data: Any = None
    planner_data: Any = None
    usable: bool = True


@dataclass
class LoadPlan:
    """What one rank reads.

    As `torch.distributed.checkpoint.LoadPlan`.

    Args:
        items (list of ReadItem): Each.
        storage_data (Any): The storage's own. Default: None.
        planner_data (Any): The planner's own. Default: None.

    Example:
        >>> mica.distributed.checkpoint.LoadPlan([]).items
        []
    """

    items: list[ReadItem]
    storage_data: Any = None
    planner_data: Any = None


class SavePlanner(abc.ABC):
    """Decides what each rank writes.

    As `torch.distributed.checkpoint.SavePlanner`. The methods are called in their order; a class of one's own
    extends `DefaultSavePlanner`.

    Example:
        >>> planner = mica.distributed.checkpoint.DefaultSavePlanner()
        >>> isinstance(planner, mica.distributed.checkpoint.SavePlanner)
        True
    """

    @abc.abstractmethod
    def set_up_planner(
        self,
        state_dict: STATE_DICT_TYPE,
        storage_meta: StorageMeta | None = None,
        is_coordinator: bool = False,
    ) -> None:
        """Begins a save, on all ranks.

        Args:
            state_dict (dict): What is saved.
            storage_meta (StorageMeta, optional): Where. Default: None.
            is_coordinator (bool): Whether this rank plans for all. Default: False.
        """

    @abc.abstractmethod
    def create_local_plan(self) -> SavePlan:
        """Lists what this rank has, on all ranks.

        Returns:
            SavePlan: All of it.
        """

    @abc.abstractmethod
    def create_global_plan(self, all_plans: list[SavePlan]) -> tuple[list[SavePlan], Metadata]:
        """Decides what each rank writes, on the coordinator.

        Args:
            all_plans (list of SavePlan): The ranks' own, in their order.

        Returns:
            tuple: The list of their plans, and the checkpoint's Metadata.
        """

    @abc.abstractmethod
    def finish_plan(self, new_plan: SavePlan) -> SavePlan:
        """Takes the coordinator's plan, on all ranks.

        Args:
            new_plan (SavePlan): This rank's.

        Returns:
            SavePlan: What it writes.
        """

    @abc.abstractmethod
    def resolve_data(self, write_item: WriteItem) -> Tensor | io.BytesIO:
        """Gives what is written.

        Args:
            write_item (WriteItem): An item of the plan.

        Returns:
            Tensor or BytesIO: Its tensor, on any device and of any strides, or its bytes.
        """


class LoadPlanner:
    """Decides what each rank reads.

    As `torch.distributed.checkpoint.LoadPlanner`. The methods are called in their order; a class of one's own
    extends `DefaultLoadPlanner`.

    Example:
        >>> planner = mica.distributed.checkpoint.DefaultLoadPlanner()
        >>> isinstance(planner, mica.distributed.checkpoint.LoadPlanner)
        True
    """

    @abc.abstractmethod
    def set_up_planner(
        self, state_dict: STATE_DICT_TYPE, metadata: Metadata | None = None, is_coordinator: bool = False
    ) -> None:
        """Begins a load, on all ranks.

        Args:
            state_dict (dict): What is read into.
            metadata (Metadata, optional): What the checkpoint holds. Default: None.
            is_coordinator (bool): Whether this rank plans for all. Default: False.
        """

    @abc.abstractmethod
    def create_local_plan(self) -> LoadPlan:
        """Lists what this rank reads, on all ranks.

        Returns:
            LoadPlan: All of it.
        """

    @abc.abstractmethod
    def create_global_plan(self, global_plan: list[LoadPlan]) -> list[LoadPlan]:
        """Decides what each rank reads, on the coordinator.

        Args:
            global_plan (list of LoadPlan): The ranks' own, in their order.

        Returns:
            list of LoadPlan: Theirs.
        """

    @abc.abstractmethod
    def finish_plan(self, central_plan: LoadPlan) -> LoadPlan:
        """Takes the coordinator's plan, on all ranks.

        Args:
            central_plan (LoadPlan): This rank's.

        Returns:
            LoadPlan: What it reads.
        """

    @abc.abstractmethod
    def load_bytes(self, read_item: ReadItem, value: io.BytesIO) -> None:
        """Takes a value that is no tensor.

        Args:
            read_item (ReadItem): An item of the plan.
            value (BytesIO): What `SavePlanner.resolve_data` gave.
        """

    def resolve_bytes(self, read_item: ReadItem) -> io.BytesIO:
        """Refused: storages that read into the caller's bytes are not there.

        Args:
            read_item (ReadItem): An item of the plan.

        Returns:
            BytesIO: Never.

        Raises:
            NotImplementedError: Always.
        """
        raise NotImplementedError(
            f"LoadPlanner.resolve_bytes({read_item.dest_index.fqn}) is not implemented; load_bytes takes the bytes."
        )

    @abc.abstractmethod
    def resolve_tensor(self, read_item: ReadItem) -> Tensor:
        """Gives the tensor that a box is read into.

        Args:
            read_item (ReadItem): An item of the plan.

        Returns:
            Tensor: Of the shape `read_item.lengths`.
        """

    @abc.abstractmethod
    def commit_tensor(self, read_item: ReadItem, tensor: Tensor) -> None:
        """Is told that a box has been read.

        Args:
            read_item (ReadItem): An item of the plan.
            tensor (Tensor): What `resolve_tensor` gave.
        """
