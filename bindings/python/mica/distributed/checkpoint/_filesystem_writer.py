"""Writes a checkpoint into a folder, whose old one stays until the new one is whole.

Data goes into files of new names; the file `.metadata`, which makes the folder a checkpoint, takes its place by one
rename when all ranks have theirs on disk.
"""

from __future__ import annotations

import contextlib
import enum
import io
import os
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

import mica
from mica._C import Tensor
from mica.distributed.checkpoint import _boxes, _metadata_file, _safetensors
from mica.distributed.checkpoint._metadata_file import Stored
from mica.distributed.checkpoint._storage_utils import InFolder, done
from mica.distributed.checkpoint.metadata import Metadata, StorageMeta
from mica.distributed.checkpoint.planner import SavePlan, SavePlanner, WriteItem, WriteItemType
from mica.distributed.checkpoint.storage import StorageWriter, WriteResult
from mica.futures import Future
from mica.storage import bytes_of

_FILE = 4 << 30  # bytes after which a rank begins another file


class SerializationFormat(enum.Enum):
    """The format of the files with data: safetensors; torch's own is read, and not written.

    Example:
        >>> mica.distributed.checkpoint.filesystem.SerializationFormat.SAFETENSORS.value
        'safetensors'
    """

    TORCH_SAVE = "torch_save"
    SAFETENSORS = "safetensors"


class FileSystemWriter(InFolder, StorageWriter):
    """Writes checkpoints into a folder.

    As `torch.distributed.checkpoint.FileSystemWriter`, in another format (docs/concepts/distributed.md). One save at a
    time goes into a folder.

    Args:
        path (str or path): The folder, which all ranks see; made if it is not there.
        single_file_per_rank (bool): A rank writes a file a thread; False: a file for each tensor. Default: True.
        sync_files (bool): Has the disk hold the data before the checkpoint is published. Default: True.
        thread_count (int): Threads that write. Default: 1.
        per_thread_copy_ahead (int): Taken and not used. Default: 10,000,000.
        cache_staged_state_dict (bool): Taken and not used. Default: False.
        overwrite (bool): A checkpoint that is there is replaced, when the new one is whole. Default: True.
        serialization_format (SerializationFormat): Default: SAFETENSORS, the only one.

    Raises:
        NotImplementedError: Extensions or another format are asked for.

    Example:
        >>> import os, tempfile
        >>> checkpoint = mica.distributed.checkpoint
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     writer = checkpoint.FileSystemWriter(folder, thread_count=2)
        ...     done = checkpoint.save({"x": mica.ones(2), "y": mica.ones(3)}, storage_writer=writer, no_dist=True)
        ...     len(os.listdir(folder))
        3
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        single_file_per_rank: bool = True,
        sync_files: bool = True,
        thread_count: int = 1,
        per_thread_copy_ahead: int = 10_000_000,
        cache_staged_state_dict: bool = False,
        overwrite: bool = True,
        _extensions: Any = None,
        serialization_format: SerializationFormat = SerializationFormat.SAFETENSORS,
    ) -> None:
        if _extensions is not None or serialization_format != SerializationFormat.SAFETENSORS:
            raise NotImplementedError(
                f"FileSystemWriter(_extensions={_extensions!r:.40}, serialization_format={serialization_format}) is not "
                "there: files are written in the format safetensors, as they are; leave both arguments out."
            )
        self.path, self.single_file_per_rank, self.sync_files = (
            os.fspath(path),
            single_file_per_rank,
            sync_files,
        )
        self.thread_count, self.overwrite, self.save_id = max(1, thread_count), overwrite, ""
        self.rank = 0
        self._written: list[str] = []

    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """Is told who this rank is.

        Args:
            is_coordinator (bool): Whether it publishes.
            *args (Any): None so far.
            **kwargs (Any): `rank` and `use_collectives`.
        """
        self.rank, self._written = kwargs.get("rank", 0), []

    def storage_meta(self) -> StorageMeta:
        """Says which checkpoint is written.

        Returns:
            StorageMeta: The folder, and what names the save.
        """
        return StorageMeta(self.path, self.save_id)

    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        """Makes the folder.

        Args:
            plan (SavePlan): The planner's.

        Returns:
            SavePlan: The same.

        Raises:
            RuntimeError: There is a checkpoint, and `overwrite` is False.
        """
        os.makedirs(self.path, exist_ok=True)
        if not self.overwrite and os.path.exists(os.path.join(self.path, _metadata_file.NAME)):
            raise RuntimeError(f"Checkpoint already exists in ({self.path}), and self.overwrite=False.")
        return plan

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        """Names the save, and removes what saves that were killed have left.

        Args:
            plans (list of SavePlan): The planner's, in the order of ranks.

        Returns:
            list of SavePlan: With the name.
        """
        with contextlib.suppress(ValueError, OSError):  # what is not Mica's is not looked through
            text = _metadata_file.content(self.path)
            self._sweep(_metadata_file.loaded(text, self.path))
        save_id = os.urandom(8).hex()
        return [SavePlan(plan.items, save_id, plan.planner_data, plan.usable) for plan in plans]

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        """Writes this rank's files.

        Args:
            plan (SavePlan): What.
            planner (SavePlanner): Gives the data, by `resolve_data`.

        Returns:
            Future: A list of WriteResult.

        Raises:
            OSError: The disk is full, for example; what was begun is gone.
            ValueError: A tensor is not what the plan says.
        """
        self.save_id = plan.storage_data
        parts = self._parts(plan.items)
        names = [f"__{self.rank}_{n}.{self.save_id}.safetensors" for n in range(len(parts))]
        self._written = names
        try:
            count = min(self.thread_count, len(parts))
            results = _mapped(lambda one: self._write_file(*one, planner), list(zip(names, parts)), count)
            if names and self.sync_files:
                _sync_folder(self.path)
        except BaseException:
            self.discard()
            raise
        return done([result for part in results for result in part])

    def discard(self) -> None:
        """Removes what `write_data` wrote."""
        for name in self._written:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(self.path, name))
        self._written = []

    def _parts(self, items: list[WriteItem]) -> list[list[WriteItem]]:
        """What goes into each file: parts of about one size, none of which is too large."""
        if not self.single_file_per_rank:
            return [[item] for item in items]
        total = sum(item.tensor_storage_size() or 0 for item in items)
        count = min(len(items), max(self.thread_count, -(-total // _FILE)))
        parts: list[list[WriteItem]] = [[] for _ in range(count)]
        load = [0] * count
        for item in sorted(items, key=lambda i: -(i.tensor_storage_size() or 0)):
            least = load.index(min(load))
            parts[least].append(item)
            load[least] += item.tensor_storage_size() or 1
        return parts

    def _write_file(self, name: str, items: list[WriteItem], planner: SavePlanner) -> list[WriteResult]:
        taken, entries = {"__metadata__"}, []
        for item in items:
            entries.append(_entry(item, planner, taken))
            taken.add(entries[-1].name)
        sums = _safetensors.write(os.path.join(self.path, name), entries, self.sync_files)
        return [
            WriteResult(
                item.index,
                entry.nbytes,
                Stored(name, entry.name, entry.nbytes, sums[entry.name], entry.shape),
            )
            for item, entry in zip(items, entries)
        ]

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        """Publishes the checkpoint, and removes the files of the one before.

        Args:
            metadata (Metadata): What it holds.
            results (list of list of WriteResult): What each rank has written.

        Raises:
            OSError: A file is not there; all ranks must see one folder.
        """
        written = [result for part in results for result in part]
        metadata.storage_data = {result.index: result.storage_data for result in written}
        metadata.storage_meta, metadata.version = self.storage_meta(), "1"
        names = sorted({result.storage_data.file for result in written})
        files = {name: self._size_of(name) for name in names}
        text = _metadata_file.dumped(metadata, files)
        fresh = os.path.join(self.path, f"{_metadata_file.NAME}.{self.save_id}")
        try:
            with open(fresh, "xb") as file:
                file.write(text)
                file.flush()
                if self.sync_files:
                    os.fsync(file.fileno())
            os.replace(fresh, os.path.join(self.path, _metadata_file.NAME))
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(fresh)
            raise
        if self.sync_files:
            _sync_folder(self.path)
            _sync_folder(os.path.dirname(os.path.abspath(self.path)))  # which has the folder's own name
        self._sweep(metadata)

    def _size_of(self, name: str) -> int:
        path = os.path.join(self.path, name)
        try:
            return os.path.getsize(path)
        except FileNotFoundError as error:
            raise FileNotFoundError(
                error.errno, "A file that a rank wrote is not here; all ranks must see one folder", path
            ) from None

    def _sweep(self, metadata: Metadata) -> None:
        """Removes files of saves that are not of the checkpoint."""
        kept = {stored.file for stored in metadata.storage_data.values()}
        for name in os.listdir(self.path):
            if _metadata_file.is_of_a_save(name) and name not in kept:
                with contextlib.suppress(OSError):  # in the way of nothing
                    os.unlink(os.path.join(self.path, name))


def _mapped(f: Callable[[Any], Any], given: list[Any], count: int) -> list[Any]:
    """What f gives for each, in so many threads, of which this is one. It does all where no other can be started, as when
    the process ends while a save in the background goes on."""
    found, todo, errors = [None] * len(given), deque(range(len(given))), []

    def work() -> None:
        while not errors:
            try:
                i = todo.popleft()
            except IndexError:  # all are taken
                return
            try:
                found[i] = f(given[i])
            except BaseException as error:  # noqa: BLE001 - raised when all threads have ended
                errors.append(error)

    threads = [threading.Thread(target=work, name="save") for _ in range(count - 1)]
    with contextlib.suppress(RuntimeError):
        for thread in threads:
            thread.start()
    work()
    for thread in threads:
        if thread.ident is not None:
            thread.join()
    if errors:
        raise errors[0]
    return found


def _sync_folder(path: str) -> None:
    """Has the disk hold the names of a folder's files."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _entry(item: WriteItem, planner: SavePlanner, taken: set[str]) -> _safetensors.Entry:
    """The tensor of a file for an item: a value that is none becomes one of bytes."""
    data, name = item.tensor_data, item.index.fqn
    if data is None:
        packed: Any = planner.resolve_data(item)
        content = packed.getvalue()
        return _safetensors.Entry(_free(name, taken), mica.uint8, (len(content),), lambda: content)
    if item.type == WriteItemType.SHARD:
        name += _boxes.said(data.chunk)
    return _safetensors.Entry(
        _free(name, taken),
        data.properties.dtype,
        tuple(data.chunk.sizes),
        lambda: _content(item, planner.resolve_data(item)),
    )


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _content(item: WriteItem, found: Tensor | io.BytesIO) -> Any:
    """A tensor's bytes in the order of its elements."""
    data = item.tensor_data
    assert data is not None
    shape, dtype = tuple(data.chunk.sizes), data.properties.dtype
    if not isinstance(found, Tensor) or (tuple(found.shape), found.dtype) != (shape, dtype):
        given = (
            f"{list(found.shape)} and ({found.dtype})" if isinstance(found, Tensor) else type(found).__name__
        )
        raise ValueError(
            f"The planner gives ({given}) for the key ({item.index.fqn}), and its plan says {list(shape)} and ({dtype})."
        )
    plain = found.detach().cpu().resolve_conj().resolve_neg().contiguous()
    return bytes_of(plain.view(-1))
