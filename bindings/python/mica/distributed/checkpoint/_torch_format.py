"""torch's own checkpoints: a pickle of Metadata, and files with torch.save's archives one after another.

The pickle is read by the rules of mica.load(weights_only=True), with the classes below as the only others.
"""

from __future__ import annotations

import enum
import io
import math
import os
import pickle
from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

import mica
from mica._C import Tensor
from mica.distributed.checkpoint import _boxes, metadata as kinds
from mica.distributed.checkpoint._safetensors import are_counts, regular_size
from mica.distributed.checkpoint.planner import LoadItemType, LoadPlanner, ReadItem
from mica.distributed.checkpoint.planner_helpers import target_of
from mica.serialization._pickle import rules
from mica.serialization._zip_reader import Users


class _MemoryFormat(enum.Enum):
    """What torch writes for a memory format, which is no object that pickles."""

    TORCH_CONTIGUOUS_FORMAT = 0
    TORCH_CHANNELS_LAST = 1
    TORCH_PRESERVE_FORMAT = 2


class _StorageInfo:
    """Where torch says that something lies: `relative_path`, `offset` and `length`."""


class _PosixPath:
    """A path in a pickle, which is not needed."""

    def __new__(cls, *parts: Any) -> Any:
        return object.__new__(cls)


class TorchStored(NamedTuple):
    """Where an archive lies: bytes of a file."""

    file: str
    offset: int
    length: int


_HOME = "torch.distributed.checkpoint"
_NAMES = Users(
    {f"{_HOME}.metadata.{name}": getattr(kinds, name) for name in kinds.__all__}
    | {
        f"{_HOME}.metadata._MEM_FORMAT_ENCODING": _MemoryFormat,
        f"{_HOME}.filesystem._StorageInfo": _StorageInfo,
    }
    | {"pathlib.PosixPath": _PosixPath, "pathlib._local.PosixPath": _PosixPath}
)


def loaded(text: bytes, folder: str) -> kinds.Metadata:
    """What torch's file `.metadata` says."""
    path = os.path.join(folder, ".metadata")
    try:
        found = rules.Builder(text, path, _NAMES, record="its pickle").load()
    except pickle.UnpicklingError:
        raise
    except Exception as error:  # what the classes' own methods raise, of states that are none of theirs
        raise ValueError(
            f"The checkpoint's metadata ({path}) is damaged: {type(error).__name__}: {error}"
        ) from error
    if not isinstance(found, kinds.Metadata):
        raise ValueError(
            f"The file ({path}) is a pickle of type ({type(found).__name__}), and no checkpoint's metadata."
        )
    try:
        kept = {key: _checked(one) for key, one in found.state_dict_metadata.items()}
        stored = {index: _place(info) for index, info in found.storage_data.items()}
        paths = {str(key): tuple(parts) for key, parts in (found.planner_data or {}).items()}
        for key, one in kept.items():
            _check_places(key, one, stored)
    except (AttributeError, TypeError, ValueError) as error:
        raise ValueError(f"The checkpoint's metadata ({path}) is damaged: {error}") from error
    _check_files(folder, stored.values())
    return kinds.Metadata(kept, paths, stored, kinds.StorageMeta(folder), "torch")


def _check_places(key: str, one: Any, stored: dict[kinds.MetadataIndex, TorchStored]) -> None:
    """Refuses what lies nowhere, and what needs more memory than it has in its file."""
    if isinstance(one, kinds.BytesStorageMetadata):
        if kinds.MetadataIndex(key) not in stored:
            raise ValueError(f"it does not say where the key ({key:.80}) lies.")
        return
    full = [box for box in one.chunks if math.prod(box.sizes)]
    is_twice = len({box.offsets for box in full}) < len(full)
    if is_twice or sum(math.prod(box.sizes) for box in full) != math.prod(one.size):
        raise ValueError(f"the tensor of the key ({key:.80}) {_boxes.fault(one.size, one.chunks)}.")
    for box in one.chunks:
        place = stored.get(kinds.MetadataIndex(key, box.offsets))
        need = math.prod(box.sizes) * one.properties.dtype.itemsize
        if place is None or need > place.length:
            raise ValueError(f"({need}) bytes of the key ({key:.80}) lie in ({place}).")


def _check_files(folder: str, places: Iterable[TorchStored]) -> None:
    """Refuses places beyond the ends of files, and more of them than the files have room for."""
    held: Counter[str] = Counter()
    for place in places:
        held[place.file] += place.length
    for name, need in held.items():
        path = os.path.join(folder, name)
        size = regular_size(path)
        if need > size:
            raise ValueError(
                f"The file ({path}) has ({size}) bytes, and the checkpoint's metadata says ({need}): it was cut short."
            )


def _checked(one: Any) -> Any:
    """What is kept of a key, with the types that it must have."""
    if isinstance(one, kinds.BytesStorageMetadata):
        return one
    boxes = [kinds.ChunkStorageMetadata(_size(c.offsets), _size(c.sizes)) for c in one.chunks]
    dtype = one.properties.dtype
    if not isinstance(dtype, mica.dtype):
        raise TypeError(f"a dtype is of type ({type(dtype).__name__}).")
    return kinds.TensorStorageMetadata(kinds.TensorProperties(dtype), _size(one.size), boxes)


def _size(values: Any) -> mica.Size:
    if not are_counts(list(values)):
        raise ValueError(f"a size is ({values!r:.80}).")
    return mica.Size(values)


def _place(info: Any) -> TorchStored:
    file, offset, length = info.relative_path, info.offset, info.length
    if not isinstance(file, str) or os.path.basename(file) != file or not are_counts([offset, length]):
        raise ValueError(
            f"it names a file ({file!r:.80}) and in it ({length!r:.20}) bytes at ({offset!r:.20})."
        )
    if getattr(info, "transform_descriptors", None):
        raise ValueError(f"the file ({file:.80}) was written through extensions, which Mica does not read.")
    return TorchStored(file, offset, length)


def read(path: str, stored: TorchStored, item: ReadItem, planner: LoadPlanner) -> None:
    """Reads a value, or a tensor's box: the archive is read whole."""
    size = regular_size(path)
    if stored.offset + stored.length > size:
        raise ValueError(
            f"The file ({path}) has ({size}) bytes, and the key ({item.storage_index.fqn}) has ({stored.length}) at "
            f"({stored.offset}): it was cut short."
        )
    with open(path, "rb") as file:
        file.seek(stored.offset)
        archive = io.BytesIO(file.read(stored.length))
    if item.type == LoadItemType.BYTE_IO:
        planner.load_bytes(item, archive)
        return
    tensor = mica.load(archive, map_location="cpu", weights_only=True)
    if not isinstance(tensor, Tensor):
        raise ValueError(f"The file ({path}) has no tensor for the key ({item.storage_index.fqn}).")
    for dim, (offset, length) in enumerate(zip(item.storage_offsets, item.lengths)):
        tensor = tensor.narrow(dim, offset, length)
    target = target_of(planner, item)
    target.copy_(tensor)
    planner.commit_tensor(item, target)
