"""Where checkpoints lie: what a storage does for saving and loading."""

from __future__ import annotations

import abc
import os
from dataclasses import dataclass
from typing import Any

from mica.distributed.checkpoint.metadata import Metadata, MetadataIndex, StorageMeta
from mica.distributed.checkpoint.planner import LoadPlan, LoadPlanner, SavePlan, SavePlanner
from mica.futures import Future

__all__ = ["StorageReader", "StorageWriter", "WriteResult"]


@dataclass(frozen=True)
class WriteResult:
    """What was written.

    As `torch.distributed.checkpoint.storage.WriteResult`.

    Args:
        index (MetadataIndex): Its name.
        size_in_bytes (int): Its size.
        storage_data (Any): Where it lies.

    Example:
        >>> from mica.distributed.checkpoint.metadata import MetadataIndex
        >>> mica.distributed.checkpoint.storage.WriteResult(MetadataIndex("x"), 8, None).size_in_bytes
        8
    """

    index: MetadataIndex
    size_in_bytes: int
    storage_data: Any


class StorageWriter(abc.ABC):
    """Writes checkpoints.

    As `torch.distributed.checkpoint.StorageWriter`. The methods are called in their order.

    Example:
        >>> writer = mica.distributed.checkpoint.FileSystemWriter("folder")
        >>> isinstance(writer, mica.distributed.checkpoint.StorageWriter)
        True
    """

    @abc.abstractmethod
    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        """Begins a save, on all ranks.

        Args:
            checkpoint_id (str or path, optional): Which checkpoint. Default: None, the same as before.
        """

    @abc.abstractmethod
    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """Is told who this rank is.

        Args:
            is_coordinator (bool): Whether it publishes.
            *args (Any): None so far.
            **kwargs (Any): `rank` and `use_collectives`.
        """

    @abc.abstractmethod
    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        """May change what this rank says that it has.

        Args:
            plan (SavePlan): The planner's.

        Returns:
            SavePlan: The same, or another.
        """

    @abc.abstractmethod
    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        """May change what each rank writes, on the coordinator.

        Args:
            plans (list of SavePlan): The planner's, in the order of ranks.

        Returns:
            list of SavePlan: The same, or others.
        """

    @abc.abstractmethod
    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        """Writes this rank's part.

        Args:
            plan (SavePlan): What.
            planner (SavePlanner): Gives the data, by `resolve_data`.

        Returns:
            Future: A list of WriteResult, when all is written.
        """

    @abc.abstractmethod
    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        """Publishes the checkpoint, on the coordinator.

        Args:
            metadata (Metadata): What it holds.
            results (list of list of WriteResult): What each rank has written.
        """

    @classmethod
    @abc.abstractmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        """Says whether the storage can have such a checkpoint.

        Args:
            checkpoint_id (str or path): Which.

        Returns:
            bool: Whether.
        """

    def discard(self) -> None:  # noqa: B027 - a storage may have nothing to remove
        """Removes what `write_data` wrote, since another rank failed to; does nothing by default."""

    def storage_meta(self) -> StorageMeta | None:
        """Says which checkpoint is written.

        Returns:
            StorageMeta: None by default.
        """
        return None


class StorageReader(abc.ABC):
    """Reads checkpoints.

    As `torch.distributed.checkpoint.StorageReader`. The methods are called in their order.

    Example:
        >>> reader = mica.distributed.checkpoint.FileSystemReader("folder")
        >>> isinstance(reader, mica.distributed.checkpoint.StorageReader)
        True
    """

    @abc.abstractmethod
    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        """Begins a load, on all ranks.

        Args:
            checkpoint_id (str or path, optional): Which checkpoint. Default: None, the same as before.
        """

    @abc.abstractmethod
    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """Reads what the checkpoint holds.

        Args:
            *args (Any): None so far.
            **kwargs (Any): None so far.

        Returns:
            Metadata: All of it.
        """

    @abc.abstractmethod
    def set_up_storage_reader(
        self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any
    ) -> None:
        """Is told who this rank is.

        Args:
            metadata (Metadata): What `read_metadata` gave.
            is_coordinator (bool): Whether this rank plans for all.
            *args (Any): None so far.
            **kwargs (Any): `rank` and `use_collectives`.
        """

    @abc.abstractmethod
    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        """May change what this rank reads.

        Args:
            plan (LoadPlan): The planner's.

        Returns:
            LoadPlan: The same, or another.
        """

    @abc.abstractmethod
    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        """May change what each rank reads, on the coordinator.

        Args:
            plans (list of LoadPlan): The planner's, in the order of ranks.

        Returns:
            list of LoadPlan: The same, or others.
        """

    @abc.abstractmethod
    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        """Reads this rank's part.

        Args:
            plan (LoadPlan): What.
            planner (LoadPlanner): Takes the data, by `resolve_tensor` and `load_bytes`.

        Returns:
            Future: None, when all is read.
        """

    @classmethod
    @abc.abstractmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        """Says whether the storage can have such a checkpoint.

        Args:
            checkpoint_id (str or path): Which.

        Returns:
            bool: Whether.
        """
