"""The file that makes a checkpoint: what it holds and where, in JSON.

    {"format": "mica.distributed.checkpoint", "version": 1, "save_id": "5f0c...",
     "files": {"__0_0.5f0c....safetensors": 1096},
     "tensors": {"model.weight": {"dtype": "float32", "size": [4, 8], "path": ["model", "weight"], "chunks": [
         {"offsets": [0, 0], "sizes": [2, 8], "file": "__0_0...", "name": "model.weight[0:2, 0:8]", "crc32": 1}]}},
     "values": {"epoch": {"path": ["epoch"], "file": "__0_0...", "name": "epoch", "bytes": 512, "crc32": 2}}}

It is read as what a stranger may have made: nothing in it runs, each value is checked, and what the tensors need in
memory is no more than their files have.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections import Counter
from dataclasses import dataclass
from typing import Any, NoReturn

import mica
from mica.distributed.checkpoint import _boxes
from mica.distributed.checkpoint._safetensors import LARGEST, are_counts, parsed, regular_size
from mica.distributed.checkpoint.metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorProperties,
    TensorStorageMetadata,
)

NAME = ".metadata"
_DATA_FILE = re.compile(r"__[0-9]{1,9}_[0-9]{1,9}\.[0-9a-f]{16}\.safetensors")
_UNPUBLISHED = re.compile(r"\.metadata\.[0-9a-f]{16}")
_FORMAT, _VERSION = "mica.distributed.checkpoint", 1
_LIMIT = 256 << 20  # bytes of the file
_DIMENSIONS = 64
# Under the shim a dtype calls itself torch's.
_DTYPES = {str(d).rpartition(".")[2]: d for d in vars(mica).values() if isinstance(d, mica.dtype)}


@dataclass(frozen=True)
class Stored:
    """Where a chunk, or a value, lies: a file of the checkpoint, and a tensor of it."""

    file: str
    name: str
    nbytes: int
    crc32: int | None  # None where nobody says it
    sizes: tuple[int, ...]  # the shape; of a value its number of bytes


def is_of_a_save(name: str) -> bool:
    """Whether a file's name is one that saves give."""
    return bool(_DATA_FILE.fullmatch(name) or _UNPUBLISHED.fullmatch(name))


def dumped(metadata: Metadata, files: dict[str, int]) -> bytes:
    """The file's text."""
    paths = metadata.planner_data
    if paths is not None and not isinstance(paths, dict):
        raise TypeError(
            f"The planner's data is of type ({type(paths).__name__}); a checkpoint holds a dict from keys to their paths."
        )
    tensors, values = {}, {}
    for key, kept in metadata.state_dict_metadata.items():
        said: dict[str, Any] = {"path": list((paths or {}).get(key, (key,)))}
        if isinstance(kept, BytesStorageMetadata):
            stored = metadata.storage_data[MetadataIndex(key)]
            values[key] = {**said, **_place(stored), "bytes": stored.nbytes}
            continue
        chunks = []
        for chunk in kept.chunks:
            stored = metadata.storage_data[MetadataIndex(key, chunk.offsets)]
            chunks.append({"offsets": list(chunk.offsets), "sizes": list(chunk.sizes), **_place(stored)})
        dtype = str(kept.properties.dtype).rpartition(".")[2]
        tensors[key] = {**said, "dtype": dtype, "size": list(kept.size), "chunks": chunks}
    save_id = metadata.storage_meta.save_id if metadata.storage_meta else None
    whole = {"format": _FORMAT, "version": _VERSION, "save_id": save_id, "files": files}
    text = json.dumps({**whole, "tensors": tensors, "values": values}, separators=(",", ":")).encode()
    if len(text) > _LIMIT:
        raise ValueError(f"The checkpoint's metadata has ({len(text)}) bytes; at most ({_LIMIT}) are read.")
    return text


def _place(stored: Stored) -> dict[str, Any]:
    return {"file": stored.file, "name": stored.name, "crc32": stored.crc32}


def content(folder: str) -> bytes:
    """The bytes of the file, of whatever format."""
    path = os.path.join(folder, NAME)
    try:
        size = regular_size(path)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise FileNotFoundError(
            error.errno, f"The folder has no checkpoint: there is no file {NAME} in it", path
        ) from None
    if size > _LIMIT:
        raise ValueError(
            f"The file ({path}) has ({size}) bytes; a checkpoint's metadata has at most ({_LIMIT})."
        )
    with open(path, "rb") as file:
        return file.read(size)


def loaded(text: bytes, folder: str) -> Metadata:
    """What a file in Mica's format says, checked against the files beside it."""
    return _Reading(folder).metadata(text)


class _Reading:
    """Reads one file."""

    def __init__(self, folder: str) -> None:
        self.folder, self.path = folder, os.path.join(folder, NAME)
        self.files: dict[str, int] = {}
        self.need: Counter[str] = Counter()  # bytes of each file that something lies in
        self.storage: dict[MetadataIndex, Stored] = {}

    def refuse(self, why: str) -> NoReturn:
        raise ValueError(f"The checkpoint's metadata ({self.path}) is damaged: {why}.")

    def metadata(self, text: bytes) -> Metadata:
        said = parsed(text, f"The checkpoint's metadata ({self.path})")
        said = said if isinstance(said, dict) else {}
        if said.get("format") != _FORMAT:
            self.refuse(f"its format is ({said.get('format')!r:.60}) and not ({_FORMAT!r})")
        if said.get("version") != _VERSION:
            raise ValueError(
                f"The checkpoint's metadata ({self.path}) has the version ({said.get('version')!r:.20}); this Mica reads "
                f"({_VERSION})."
            )
        parts: list[Any] = [said.get(part) for part in ("files", "tensors", "values")]
        if not all(isinstance(part, dict) for part in parts):
            self.refuse("it lacks its files, tensors or values")
        self.files = parts[0]
        self._check_files()
        kept: dict[str, Any] = {key: self._tensor(key, one) for key, one in parts[1].items()}
        if both := kept.keys() & parts[2].keys():
            self.refuse(f"the key ({min(both):.80}) is a tensor and a value")
        kept |= {key: self._value(key, one) for key, one in parts[2].items()}
        paths = {key: self._path(key, one) for part in parts[1:] for key, one in part.items()}
        for file, need in self.need.items():
            if need > self.files[file]:
                self.refuse(f"({need}) bytes lie in the file ({file}), which has ({self.files[file]})")
        meta = StorageMeta(self.folder, str(said.get("save_id")))
        return Metadata(kept, paths, self.storage, meta, str(_VERSION))

    def _check_files(self) -> None:
        for name, size in self.files.items():
            if not _DATA_FILE.fullmatch(name) or not are_counts([size]):
                self.refuse(f"it names a file ({name:.80}) of the size ({size!r:.20})")
            path = os.path.join(self.folder, name)
            try:
                found = regular_size(path)
            except FileNotFoundError as error:
                raise FileNotFoundError(
                    error.errno, "A file of the checkpoint is missing, which its metadata names", path
                ) from None
            if found != size:
                raise ValueError(
                    f"The file ({path}) has ({found}) bytes, and the checkpoint's metadata says ({size}): it was cut short "
                    "or written by another save."
                )

    def _tensor(self, key: str, said: Any) -> TensorStorageMetadata:
        said = said if isinstance(said, dict) else {}
        name, size, chunks = said.get("dtype"), said.get("size"), said.get("chunks")
        dtype = _DTYPES.get(name) if isinstance(name, str) else None
        if dtype is None:
            self.refuse(f"the dtype of the key ({key:.80}) is ({name!r:.40})")
        if not are_counts(size) or len(size) > _DIMENSIONS or math.prod(size) * dtype.itemsize > LARGEST:
            self.refuse(f"the size of the key ({key:.80}) is ({size!r:.80})")
        if not isinstance(chunks, list):
            self.refuse(f"the key ({key:.80}) has no chunks")
        boxes = [self._chunk(key, one, len(size), dtype) for one in chunks]
        # So that the tensor, if memory is made for it, needs no more than the files have; planning looks for overlaps.
        if sum(math.prod(box.sizes) for box in boxes) != math.prod(size):
            self.refuse(f"the tensor of the key ({key:.80}) {_boxes.fault(size, boxes)}")
        return TensorStorageMetadata(TensorProperties(dtype), mica.Size(size), boxes)

    def _chunk(self, key: str, said: Any, dims: int, dtype: Any) -> ChunkStorageMetadata:
        said = said if isinstance(said, dict) else {}
        offsets, sizes = said.get("offsets"), said.get("sizes")
        if not (are_counts(offsets) and are_counts(sizes) and len(offsets) == len(sizes) == dims):
            self.refuse(
                f"a chunk of the key ({key:.80}) has the offsets ({offsets!r:.60}) and sizes ({sizes!r:.60})"
            )
        self._store(MetadataIndex(key, offsets), said, math.prod(sizes) * dtype.itemsize, sizes)
        return ChunkStorageMetadata(mica.Size(offsets), mica.Size(sizes))

    def _value(self, key: str, said: Any) -> BytesStorageMetadata:
        said = said if isinstance(said, dict) else {}
        if not are_counts([said.get("bytes")]):
            self.refuse(f"the value of the key ({key:.80}) has ({said.get('bytes')!r:.20}) bytes")
        self._store(MetadataIndex(key), said, said["bytes"], [said["bytes"]])
        return BytesStorageMetadata()

    def _store(self, index: MetadataIndex, said: dict[str, Any], nbytes: int, sizes: list[int]) -> None:
        file, name = said.get("file"), said.get("name")
        crc32: Any = said.get("crc32")
        if not isinstance(file, str) or file not in self.files or not isinstance(name, str):
            self.refuse(f"the key ({index.fqn:.80}) lies in ({file!r:.80}) under the name ({name!r:.80})")
        if not are_counts([crc32], (1 << 32) - 1):
            self.refuse(f"the checksum of the key ({index.fqn:.80}) is ({crc32!r:.20})")
        if index in self.storage:
            self.refuse(f"the key ({index.fqn:.80}) has two chunks at {list(index.offset or ())}")
        self.storage[index] = Stored(file, name, nbytes, crc32, tuple(sizes))
        self.need[file] += nbytes

    def _path(self, key: str, said: Any) -> tuple[str | int, ...]:
        path = said.get("path")
        if not isinstance(path, list) or not path or not isinstance(path[0], str):
            self.refuse(f"the path of the key ({key:.80}) is ({path!r:.80})")
        if not all(isinstance(part, str) or are_counts([part]) for part in path):
            self.refuse(f"the path of the key ({key:.80}) is ({path!r:.80})")
        return tuple(path)
