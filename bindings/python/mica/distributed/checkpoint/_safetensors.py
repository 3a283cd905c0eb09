"""Files in the format safetensors: a length, a header in JSON that names tensors, and their bytes.

Written so that any reader of the format reads them, and read as what a stranger may have made: the header is bounded,
and the tensors must lie in the file one after another.
"""

from __future__ import annotations

import json
import math
import os
import stat
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import mica

_HEADER = 100_000_000  # bytes of a header, the format's own limit
_STEP = 4 << 20  # bytes that are summed and written at once, while they are in the cache
LARGEST = 1 << 62  # of sizes, offsets and bytes
# A dtype's name in the format, and the dimensions that its elements add there.
_NAMES: dict[Any, tuple[str, tuple[int, ...]]] = {
    mica.bool: ("BOOL", ()),
    mica.uint8: ("U8", ()),
    mica.int8: ("I8", ()),
    mica.uint16: ("U16", ()),
    mica.int16: ("I16", ()),
    mica.uint32: ("U32", ()),
    mica.int32: ("I32", ()),
    mica.uint64: ("U64", ()),
    mica.int64: ("I64", ()),
    mica.float16: ("F16", ()),
    mica.bfloat16: ("BF16", ()),
    mica.float32: ("F32", ()),
    mica.float64: ("F64", ()),
    mica.float8_e4m3fn: ("F8_E4M3", ()),
    mica.float8_e5m2: ("F8_E5M2", ()),
    mica.complex64: ("F32", (2,)),
    mica.complex128: ("F64", (2,)),
}


class Entry(NamedTuple):
    """A tensor of a file that is written; `content()` gives its bytes."""

    name: str
    dtype: Any
    shape: tuple[int, ...]
    content: Callable[[], Any]

    @property
    def nbytes(self) -> int:
        return int(math.prod(self.shape) * self.dtype.itemsize)


def write(path: str, entries: Sequence[Entry], sync: bool) -> dict[str, int]:
    """Writes a new file; the checksum of each tensor by its name. What was begun is gone if that fails."""
    # Wide elements first, so that each tensor begins at a multiple of its elements' size.
    order = sorted(entries, key=lambda e: -e.dtype.itemsize)
    header: dict[str, Any] = {"__metadata__": {"format": "mica"}}
    end = 0
    for entry in order:
        name, added = _NAMES[entry.dtype]
        begin, end = end, end + entry.nbytes
        header[entry.name] = {"dtype": name, "shape": [*entry.shape, *added], "data_offsets": [begin, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > _HEADER:
        raise ValueError(
            f"The header of the file ({path}) has ({len(text)}) bytes; the format allows ({_HEADER})."
        )
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        _put(handle, len(text).to_bytes(8, "little") + text)
        sums = {entry.name: _put(handle, entry.content()) for entry in order}
        if sync:
            os.fsync(handle)
    except BaseException as error:
        os.unlink(path)
        if isinstance(error, OSError) and error.filename is None:
            error.filename = path
        raise
    finally:
        os.close(handle)
    return sums


def summed(content: Any, total: int = 0) -> int:
    """The checksum of bytes, after those of which it is `total`."""
    return zlib.crc32(content, total)


def _put(handle: int, content: Any) -> int:
    view, total = memoryview(content), 0
    for at in range(0, len(view), _STEP):
        part = view[at : at + _STEP]
        total = summed(part, total)
        while len(part):
            part = part[os.write(handle, part) :]
    return total


def parsed(text: bytes, what: str) -> Any:
    """What a text in JSON says."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{what} is damaged: it is no JSON ({error!s:.80}).") from None


def are_counts(values: Any, most: int = LARGEST) -> bool:
    """Whether a value of JSON is a list of integers from 0 to `most`."""
    return isinstance(values, list) and all(type(v) is int and 0 <= v <= most for v in values)


def regular_size(path: str) -> int:
    """The bytes of a file, which must be one: no device, no FIFO."""
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode):
        raise ValueError(f"The path ({path}) is no regular file.")
    return status.st_size


class File:
    """An open file: its tensors by name, and their bytes."""

    def __init__(self, path: str) -> None:
        self.path, self._size = path, regular_size(path)
        self._handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            self._entries = self._read_header()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> File:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()

    def close(self) -> None:
        """Closes the file."""
        os.close(self._handle)

    def _damaged(self, why: str) -> ValueError:
        return ValueError(f"The file ({self.path}) is damaged: {why}.")

    def _read_header(self) -> dict[str, tuple[str, list[int], int, int]]:
        length = int.from_bytes(os.pread(self._handle, 8, 0), "little")
        if not 2 <= length <= min(_HEADER, self._size - 8):
            raise self._damaged(f"its ({self._size}) bytes cannot have a header of ({length})")
        header = parsed(os.pread(self._handle, length, 8), f"The header of the file ({self.path})")
        if not isinstance(header, dict):
            raise self._damaged("its header is no object of JSON")
        self._data = 8 + length
        extra = header.pop("__metadata__", None)
        self.extra = extra if isinstance(extra, dict) else {}  # what whoever wrote the file adds
        entries = {name: self._entry(name, said) for name, said in header.items()}
        end = 0
        for name, (_, _, begin, after) in sorted(entries.items(), key=lambda e: e[1][2:]):
            if begin != end:
                raise self._damaged(
                    f"the tensor ({name:.80}) begins at ({begin}), and the one before it ends at ({end})"
                )
            end = after
        if self._data + end != self._size:
            raise self._damaged(
                f"its tensors end at the byte ({self._data + end}), and it has ({self._size})"
            )
        return entries

    def _entry(self, name: str, said: Any) -> tuple[str, list[int], int, int]:
        said = said if isinstance(said, dict) else {}
        dtype, shape, ends = said.get("dtype"), said.get("shape"), said.get("data_offsets")
        if not isinstance(dtype, str) or not are_counts(shape) or not are_counts(ends) or len(ends) != 2:
            raise self._damaged(f"its header says no dtype, shape or offsets of the tensor ({name:.80})")
        if ends[0] > ends[1]:
            raise self._damaged(f"the tensor ({name:.80}) begins at ({ends[0]}) and ends at ({ends[1]})")
        return dtype, shape, ends[0], ends[1]

    def tensors(self) -> Iterator[tuple[str, Any, list[int]]]:
        """The name, dtype and shape of each tensor."""
        dtypes = {name: dtype for dtype, (name, added) in _NAMES.items() if not added}
        for name, (dtype, shape, *_) in self._entries.items():
            if dtype not in dtypes:
                raise ValueError(
                    f"The file ({self.path}) has a tensor ({name:.80}) of ({dtype:.20}), which Mica lacks."
                )
            self.begin_of(name, dtypes[dtype], shape)
            yield name, dtypes[dtype], shape

    def begin_of(self, name: str, dtype: Any, shape: Sequence[int]) -> int:
        """Where the tensor's bytes begin in the file; it must have the dtype and shape."""
        if name not in self._entries:
            raise self._damaged(f"it has no tensor ({name:.80}), which the checkpoint's metadata names")
        found, sizes, begin, end = self._entries[name]
        wanted, added = _NAMES[dtype]
        if (found, sizes) != (wanted, [*shape, *added]) or end - begin != math.prod(shape) * dtype.itemsize:
            raise self._damaged(
                f"its tensor ({name:.80}) has ({found:.20}) {sizes} in ({end - begin}) bytes, and the checkpoint's metadata "
                f"says ({wanted}) {[*shape, *added]}"
            )
        return self._data + begin

    def read(self, begin: int, into: Any) -> None:
        """Reads bytes of the file into memory."""
        view = memoryview(into)
        while len(view):
            count = os.preadv(self._handle, [view], begin)
            if count == 0:
                raise self._damaged(f"it ends at the byte ({begin}), within a tensor")
            view, begin = view[count:], begin + count
