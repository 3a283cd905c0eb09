"""Reading torch's zip checkpoints: what mica.load() does.

Nothing of a file is trusted. The archive's records must be stored, apart from each other and inside
the file; with `weights_only` the pickle is read by the rules of serialization/_pickle/rules.py, which build tensors
and containers and nothing else.
"""

from __future__ import annotations

import io
import mmap
import os
import pickle
import sys
import zipfile
import zlib
from typing import Any

import mica
from mica import _C
from mica._C import Tensor
from mica._torch_names import homes, table
from mica.serialization import _locations, _settings
from mica.serialization._pickle import rules
from mica.serialization._pickle.machine import Foreign, Refused, shown
from mica.storage import TypedStorage, UntypedStorage, _Memory, swap_width

_ALIGNED = 16  # the widest element's bytes: what begins elsewhere in the file is read, not mapped


class Users(dict[str, Any]):
    """What add_safe_globals() allowed, by its name in files."""

    def find(self, path: str) -> Any:
        """The object of a name; a name of torch is also that of the same thing in Mica."""
        found = self.get(path)
        parent, _, name = path.rpartition(".")
        is_named = found is None and any(getattr(o, "__name__", None) == name for o in self.values())
        if is_named and parent in homes.modules():
            known = _of_mica(path)
            found = known if any(known is o for o in self.values()) else None
        return found


safe_globals = Users()


def is_allowed(path: str) -> bool:
    """Whether weights_only=True builds what has this name in a checkpoint."""
    return rules.known(path) is not None or safe_globals.find(path) is not None


def _of_mica(path: str) -> Any:
    """What Mica has under a name of torch; None if that is nothing, or no name of torch's."""
    if path.split(".")[0] != "torch":
        return None
    try:
        return table.resolve(path)
    except table.Absent:
        return None


class _Strict(rules.Builder):
    """Reads the pickle of a checkpoint that nobody trusts."""

    def __init__(self, content: bytes, source: Source, **options: Any) -> None:
        super().__init__(content, source.name, safe_globals, **options)
        self._source = source

    def persistent(self, pid: Any) -> Any:
        if type(pid) is tuple and len(pid) == 4 and _is_word(pid[0], "module") and self.is_users(pid[1]):
            return pid[1]
        try:
            return self._source.described(pid)
        except Refused as error:
            self.refuse(str(error))


class _Trusting:
    """What an unpickler that is trusted does in a checkpoint: what is torch's, it reads as Mica's."""

    _source: Source

    def find_class(self, module: str, name: str) -> Any:
        path = f"{module}.{name}"
        for find in (rules.known, safe_globals.get):
            found = find(path)
            if found is not None:
                return found
        if module.split(".")[0] == "torch":
            try:
                return table.resolve(path)
            except table.Absent as absent:
                raise Refused(f"The file refers to {path}, which Mica lacks: {absent}") from None
        return super().find_class(module, name)  # type: ignore[misc]

    def persistent_load(self, pid: Any) -> Any:
        if isinstance(pid, tuple) and len(pid) == 4 and pid[0] == "module":
            return pid[1]  # a class, as files of torch before 1.6 name it: with its source
        return self._source.described(pid)


def _trusting(content: bytes, source: Source, encoding: str, module: Any) -> Any:
    """What the unpickler of a module (pickle, or one that offers the same) makes of a pickle."""
    kind = type("Trusting", (_Trusting, module.Unpickler), {})
    unpickler = kind(io.BytesIO(content), encoding=encoding)
    unpickler._source = source
    return unpickler.load()


def _is_word(value: Any, word: str) -> bool:
    return (type(value) is str and value == word) or (type(value) is bytes and value == word.encode())


def storage_of(pid: Any) -> tuple[rules.StorageKind, str, str, int, tuple[int, int] | None]:
    """The kind, key, place and number of elements in a pickle's reference to a storage, and the offset and
    number of those that are meant, where they are not all."""
    if type(pid) is not tuple or len(pid) not in (5, 6) or not _is_word(pid[0], "storage"):
        raise Refused(
            f"Only persistent_load of storage is allowed, but got {shown(pid)}, which is no storage."
        )
    _, kind, key, location, count = pid[:5]
    key, location = (v.decode("latin1") if type(v) is bytes else v for v in (key, location))
    if not isinstance(kind, rules.StorageKind) or type(key) is not str or type(location) is not str:
        raise Refused(f"a storage is described by {shown(kind)}, {shown(key)} and {shown(location)}.")
    if type(count) is not int or not 0 <= count < 1 << 63:
        raise Refused(f"the storage ({key:.60}) has {shown(count)} for its number of elements.")
    view = pid[5] if len(pid) == 6 else None
    if view is None:
        return kind, key, location, count, None
    if type(view) is not tuple or len(view) != 3 or not all(type(n) is int for n in view[1:]):
        raise Refused(f"the storage ({key:.60}) has {shown(view)} for the part of it that is meant.")
    _, offset, size = view
    if offset < 0 or size < 0 or offset + size > count:
        raise Refused(f"the storage ({key:.60}) has {count} elements, without {size} from ({offset}) on.")
    return kind, key, location, count, (offset, size)


def unpickle(
    content: bytes, source: Source, weights_only: bool, encoding: str = "utf-8", record: str = "data.pkl"
) -> Any:
    """What a checkpoint's pickle is of; its storages come from `source`."""
    if weights_only:
        return _Strict(content, source, encoding=encoding, record=record).load()
    try:
        return _trusting(content, source, encoding, source.pickle_module)
    except Refused:
        raise
    except Foreign as error:
        raise error.args[0] from None
    except (pickle.UnpicklingError, EOFError) as error:
        raise Refused(f"The file ({source.name}) is damaged: {type(error).__name__}: {error}") from error


class Source:
    """Where a pickle's storages come from, and on which devices they are put."""

    pickle_module: Any = pickle  # what reads a file that is trusted

    def __init__(self, map_location: Any, name: str, file: Any = None) -> None:
        self.map_location, self.name, self.file = map_location, name, file

    def storage(self, dtype: Any, key: str, location: str, count: int) -> Tensor:
        """All of a storage as a flat tensor on its device; the same memory each time."""
        raise NotImplementedError(f"{type(self).__name__} has no storages.")

    def described(self, pid: Any) -> TypedStorage:
        """The storage of a pickle's reference."""
        kind, key, location, count, part = storage_of(pid)
        flat = self.storage(kind.dtype, key, location, count)
        if part is not None:
            flat = flat[part[0] : part[0] + part[1]]
        return TypedStorage._over(flat)

    def read(self, start: int, size: int) -> Tensor:
        """Bytes of the file."""
        flat = mica.empty(size, dtype=mica.uint8, device="cpu")
        if size == 0:
            return flat
        view, done = memoryview(_C._TensorBuffer(flat)).cast("B"), 0
        self.file.seek(start)
        while done < size:
            step = self.file.readinto(view[done:])
            if not step:
                raise Refused(f"The file ({self.name}) ends within a storage, at its byte ({start + done}).")
            done += step
        return flat

    def placed(self, flat: Tensor, location: str) -> Tensor:
        wish = self.map_location
        if isinstance(wish, dict):
            location = str(wish.get(location, location))
        elif callable(wish) and not isinstance(wish, mica.device):
            try:
                placed = wish(UntypedStorage._over(flat), location)
            except Exception as error:
                raise Foreign(error) from error
            if isinstance(placed, _Memory):
                return placed._flat.view(mica.uint8)
        elif wish is not None:
            location = str(wish) if not isinstance(wish, int) else f"cuda:{wish}"
        if location in ("cpu", "meta"):
            return flat if location == "cpu" else flat.to("meta")
        for _, _, deserializer in _locations.packages:
            placed = deserializer(UntypedStorage._over(flat), location)
            if placed is not None:
                return placed._flat.view(mica.uint8)
        why = "no plugin provides one"
        try:
            if _C._device_count(location.partition(":")[0]):
                return flat.to(location)
        except (RuntimeError, ValueError) as error:
            why = str(error)
        raise rules.NoPlace(
            f"Attempting to deserialize object on a {location.partition(':')[0].upper():.80} device "
            f"({location:.80}), but {why}. Load it with map_location='cpu'."
        )


def _mapped(file: Any, shared: bool) -> mmap.mmap:
    """The file's bytes: a private copy of those that are written, or the file itself."""
    if not shared:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    with open(file.name, "r+b") as writable:
        return mmap.mmap(writable.fileno(), 0, access=mmap.ACCESS_WRITE)


class Archive(Source):
    """An open checkpoint: its records, and the storages that were read."""

    def __init__(self, file: Any, map_location: Any, mapped: bool, name: str) -> None:
        super().__init__(map_location, name, file)
        self._buffer: Any = None
        try:
            self._zip = zipfile.ZipFile(file)
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, UnicodeDecodeError) as error:
            raise Refused(
                f"The file ({name}) is not one that mica.save() or torch.save() wrote, or it was cut short: {error}."
            ) from error
        self._read: dict[str, Tensor] = {}
        self._records = self._check()
        self._widths: dict[str, int] = {}
        self._is_swapped = self._order() != sys.byteorder
        if mapped and not self._is_swapped:
            shared = _settings.get_default_mmap_options() == mmap.MAP_SHARED
            self._buffer = _mapped(file, shared)

    def _order(self) -> str:
        """The byte order of the storages: what the file tells, or set_default_load_endianness(), or little."""
        if "byteorder" in self._records:
            order = self.content("byteorder")
            if order not in (b"little", b"big"):
                raise Refused(
                    f"Unknown endianness type: the file ({self.name}) has the byte order {shown(order)}."
                )
            return order.decode()
        chosen = _settings.get_default_load_endianness()
        if chosen is None:
            return "little"
        return sys.byteorder if chosen.name == "NATIVE" else chosen.name.lower()

    def _swap(self, flat: Tensor, key: str, dtype: Any) -> None:
        """Turns the bytes of a storage that was just read into this machine's order."""
        if flat.numel() == 0:
            return
        if dtype is None:
            raise Refused(
                f"The file ({self.name}) was written in another byte order than this machine's ({sys.byteorder}), and "
                f"the storage ({key:.60}) has no dtype by which its bytes could be swapped."
            )
        UntypedStorage._over(flat[: flat.numel() // dtype.itemsize * dtype.itemsize]).byteswap(dtype)

    def _check(self) -> dict[str, tuple[int, zipfile.ZipInfo]]:
        """Where each record's bytes begin, by its name below the archive's root."""
        self.file.seek(0, os.SEEK_END)
        length = self.file.tell()
        infos = self._zip.infolist()
        mains = [i for i in infos if i.filename == "data.pkl" or i.filename.endswith("/data.pkl")]
        if len(mains) != 1:
            raise Refused(
                f"The file ({self.name}) is a zip archive, and no checkpoint: it has {len(mains)} data.pkl."
            )
        root = mains[0].filename.removesuffix("data.pkl")
        found: dict[str, tuple[int, zipfile.ZipInfo]] = {}
        spans = []
        for info in infos:
            if not 0 <= info.header_offset < length:
                raise Refused(
                    f"The record ({info.filename}) begins outside the file, at {info.header_offset}."
                )
            if info.compress_type != zipfile.ZIP_STORED or info.compress_size != info.file_size:
                raise Refused(
                    f"The record ({info.filename}) is compressed; checkpoints store theirs as they are."
                )
            self.file.seek(info.header_offset)
            header = self.file.read(30)
            if len(header) != 30 or header[:4] != b"PK\3\4":
                raise Refused(f"The record ({info.filename}) has no header at {info.header_offset}.")
            names = int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
            start = info.header_offset + 30 + names
            if start + info.file_size > length:
                raise Refused(
                    f"The record ({info.filename}) of {info.file_size} bytes ends beyond the file's {length}."
                )
            spans.append((info.header_offset, start + info.file_size, info.filename))
            short = info.filename.removeprefix(root)
            if short in found:
                raise Refused(f"The file has two records of the name ({info.filename}).")
            found[short] = (start, info)
        spans.sort()
        for (_, end, one), (begin, _, other) in zip(spans, spans[1:]):
            if begin < end:
                raise Refused(f"The records ({one}) and ({other}) overlap.")
        return found

    def content(self, name: str) -> bytes:
        """A record's bytes, whose checksum is right."""
        if name not in self._records:
            raise Refused(f"The file ({self.name}) has no record ({name}).")
        start, info = self._records[name]
        self.file.seek(start)
        content: bytes = self.file.read(info.file_size)
        self._check_sum(info, content)
        return content

    def _check_sum(self, info: zipfile.ZipInfo, content: Any) -> None:
        if len(content) != info.file_size or zlib.crc32(content) != info.CRC:
            raise Refused(f"The record ({info.filename}) is damaged: its checksum differs.")

    def storage(self, dtype: Any, key: str, location: str, count: int) -> Tensor:
        """All of a storage as a flat tensor on its device; the same tensor each time."""
        bytes_wide = mica.uint8 if dtype is None else dtype
        flat = self._read.get(key)
        if flat is None:
            name = f"data/{key}"
            if name not in self._records:
                raise Refused(f"The file ({self.name}) has no record ({name}) for a storage.")
            flat = self._bytes(*self._records[name])
            if self._is_swapped:
                self._swap(flat, key, dtype)
                self._widths[key] = swap_width(dtype)
            flat = self._read[key] = self.placed(flat, location)
        if self._widths.get(key, width := swap_width(dtype)) != width:
            raise Refused(
                f"The file ({self.name}) was written in another byte order than this machine's ({sys.byteorder}), and "
                f"the storage ({key:.60}) has elements of two sizes."
            )
        itemsize = bytes_wide.itemsize
        if count * itemsize > flat.numel():
            raise Refused(
                f"A storage of {count} elements of {bytes_wide} needs {count * itemsize} bytes; its record has {flat.numel()}."
            )
        return flat[: count * itemsize].view(bytes_wide)

    def _bytes(self, start: int, info: zipfile.ZipInfo) -> Tensor:
        size = info.file_size
        if size and self._buffer is not None and start % _ALIGNED == 0:
            return mica.frombuffer(memoryview(self._buffer)[start : start + size], dtype=mica.uint8)
        flat = self.read(start, size)
        self._check_sum(info, memoryview(_C._TensorBuffer(flat)).cast("B") if size else b"")
        return flat

    def load(self, weights_only: bool, encoding: str = "utf-8") -> Any:
        """The object that was saved."""
        record = self._records["data.pkl"][1].filename
        return unpickle(self.content("data.pkl"), self, weights_only, encoding, record)
