"""Reads a checkpoint from a folder: Mica's, or torch's."""

from __future__ import annotations

import io
import os
from collections import defaultdict
from typing import Any

import mica
from mica._C import Tensor
from mica.distributed.checkpoint import _boxes, _metadata_file, _safetensors, _torch_format
from mica.distributed.checkpoint._metadata_file import Stored
from mica.distributed.checkpoint._storage_utils import InFolder, done
from mica.distributed.checkpoint.metadata import Metadata, TensorStorageMetadata
from mica.distributed.checkpoint.planner import LoadItemType, LoadPlan, LoadPlanner, ReadItem
from mica.distributed.checkpoint.planner_helpers import target_of
from mica.distributed.checkpoint.storage import StorageReader
from mica.futures import Future
from mica.storage import bytes_of


class FileSystemReader(InFolder, StorageReader):
    """Reads checkpoints from a folder: those of FileSystemWriter, and torch's.

    As `torch.distributed.checkpoint.FileSystemReader`. Nothing in the files is run.

    Args:
        path (str or path): The folder, which all ranks see.

    Raises:
        NotImplementedError: Extensions are asked for.

    Example:
        >>> import tempfile
        >>> checkpoint, state = mica.distributed.checkpoint, {"x": mica.ones(2)}
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     done = checkpoint.save({"x": mica.arange(2.0)}, checkpoint_id=folder, no_dist=True)
        ...     checkpoint.load(state, storage_reader=checkpoint.FileSystemReader(folder), no_dist=True)
        >>> state
        {'x': tensor([0., 1.])}
    """

    def __init__(self, path: str | os.PathLike[str], _extension_registry: Any = None) -> None:
        if _extension_registry is not None:
            raise NotImplementedError("FileSystemReader has no extensions; leave _extension_registry out.")
        self.path, self.load_id = os.fspath(path), ""
        self._metadata = Metadata({}, storage_data={})

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        """Begins a load, on all ranks.

        Args:
            checkpoint_id (str or path, optional): The folder. Default: None, the same as before.
        """
        super().reset(checkpoint_id)
        self.load_id = os.urandom(8).hex()

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """Reads what the checkpoint holds, and checks it against the files that are there.

        Args:
            *args (Any): None so far.
            **kwargs (Any): None so far.

        Returns:
            Metadata: All of it.

        Raises:
            FileNotFoundError: There is no checkpoint, or a file is missing.
            ValueError: Something is damaged.
        """
        text = _metadata_file.content(self.path)
        read = _torch_format.loaded if text[:1] == b"\x80" else _metadata_file.loaded
        metadata = read(text, self.path)
        assert metadata.storage_meta is not None
        metadata.storage_meta.load_id = self.load_id
        return metadata

    def set_up_storage_reader(
        self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any
    ) -> None:
        """Is told what the checkpoint holds.

        Args:
            metadata (Metadata): What `read_metadata` gave.
            is_coordinator (bool): Taken and not used.
            *args (Any): None so far.
            **kwargs (Any): Taken and not used.
        """
        self._metadata = metadata

    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        """Leaves the plan as it is.

        Args:
            plan (LoadPlan): The planner's.

        Returns:
            LoadPlan: The same.
        """
        return plan

    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        """Leaves the plans as they are.

        Args:
            plans (list of LoadPlan): The planner's.

        Returns:
            list of LoadPlan: The same.
        """
        return plans

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        """Reads the boxes that this rank wants, and no more of the files.

        Args:
            plan (LoadPlan): What.
            planner (LoadPlanner): Takes the data, by `resolve_tensor` and `load_bytes`.

        Returns:
            Future: None.

        Raises:
            OSError: A file cannot be read.
            ValueError: A file is damaged, or has other tensors than the metadata says.
        """
        by_file: dict[str, list[ReadItem]] = defaultdict(list)
        for item in plan.items:
            by_file[self._metadata.storage_data[item.storage_index].file].append(item)
        for name, items in by_file.items():
            path = os.path.join(self.path, name)
            if isinstance(self._metadata.storage_data[items[0].storage_index], Stored):
                with _safetensors.File(path) as file:
                    for item in items:
                        self._read(file, item, planner)
            else:
                for item in items:
                    _torch_format.read(path, self._metadata.storage_data[item.storage_index], item, planner)
        return done(None)

    def _read(self, file: _safetensors.File, item: ReadItem, planner: LoadPlanner) -> None:
        stored = self._metadata.storage_data[item.storage_index]
        if item.type == LoadItemType.BYTE_IO:
            begin = file.begin_of(stored.name, mica.uint8, stored.sizes)
            content = bytearray(stored.nbytes)
            file.read(begin, content)
            _check_sum(file.path, stored, _safetensors.summed(content))
            planner.load_bytes(item, io.BytesIO(content))
            return
        kept = self._metadata.state_dict_metadata[item.storage_index.fqn]
        assert isinstance(kept, TensorStorageMetadata)
        dtype = kept.properties.dtype
        begin = file.begin_of(stored.name, dtype, stored.sizes)
        target = target_of(planner, item)
        total = _read_box(file, begin, stored.sizes, dtype, item, target)
        if tuple(item.lengths) == stored.sizes:
            _check_sum(file.path, stored, total)
        planner.commit_tensor(item, target)


def _check_sum(path: str, stored: Stored, found: int) -> None:
    if stored.crc32 not in (None, found):
        raise ValueError(
            f"The file ({path}) is damaged: the checksum of its tensor ({stored.name:.80}) is ({found}), and the "
            f"checkpoint's metadata says ({stored.crc32})."
        )


def _read_box(
    file: _safetensors.File, begin: int, sizes: tuple[int, ...], dtype: Any, item: ReadItem, target: Tensor
) -> int:
    """Reads a box of a chunk into a tensor; the checksum of the bytes that were read, which is the chunk's if the box is
    all of it."""
    total = 0
    for one in _boxes.reads(sizes, item.storage_offsets, item.lengths, dtype.itemsize):
        part = mica.empty(one.shape, dtype=dtype)
        content = bytes_of(part.view(-1))
        file.read(begin + one.first * dtype.itemsize, content)
        total = _safetensors.summed(content, total)
        into = target
        for dim, ((offset, length), at) in enumerate(zip(one.within, one.at)):
            part, into = part.narrow(dim, offset, length), into.narrow(dim, at, length)
        into.copy_(part)
    return total
