"""Reading torch's zip checkpoints: what mica.load() does.

Nothing of a file is trusted. The archive's records must be stored, apart from each other and inside
the file; the pickle's opcodes are checked before it runs, and with `weights_only` every global in it
must be of a short list, whose members build tensors and containers and nothing else.
"""

from __future__ import annotations

import io
import mmap
import os
import pickle
import pickletools
import sys
import zipfile
import zlib
from collections import Counter, OrderedDict, defaultdict
from typing import Any

import mica
from mica import _C
from mica._C import Tensor
from mica.storage import _TYPES, TypedStorage, UntypedStorage, _Memory

_OPCODES = frozenset(
    """
    MARK STOP POP POP_MARK DUP INT BININT BININT1 BININT2 LONG LONG1 NONE NEWTRUE NEWFALSE
    STRING BINSTRING SHORT_BINSTRING UNICODE SHORT_BINUNICODE BINUNICODE BINBYTES SHORT_BINBYTES
    FLOAT BINFLOAT EMPTY_LIST APPEND APPENDS LIST EMPTY_TUPLE TUPLE TUPLE1 TUPLE2 TUPLE3
    EMPTY_DICT DICT SETITEM SETITEMS GET BINGET LONG_BINGET PUT BINPUT LONG_BINPUT MEMOIZE
    GLOBAL STACK_GLOBAL REDUCE BUILD NEWOBJ PROTO FRAME BINPERSID EMPTY_SET ADDITEMS FROZENSET
    BINUNICODE8 BINBYTES8 BYTEARRAY8
    """.split()  # noqa: SIM905
)
safe_globals: dict[str, Any] = {}


class Refused(pickle.UnpicklingError):
    """The file is damaged, or asks for what is not allowed; the text says which."""


def check_opcodes(content: bytes) -> None:
    """Refuses opcodes that no checkpoint has, and memo numbers beyond the pickle's length."""
    try:
        for op, argument, _ in pickletools.genops(content):
            if op.name not in _OPCODES:
                raise Refused(f"The pickle has the opcode {op.name}, which checkpoints have not.")
            if op.name in ("PUT", "BINPUT", "LONG_BINPUT") and int(argument) > len(content):
                raise Refused(f"The pickle numbers an object ({argument}) beyond its own length.")
    except Refused:
        raise
    except Exception as error:
        raise Refused(f"The pickle is damaged: {error}.") from error


class _Maker:
    """A function that a pickle may call, without attributes that it could set."""

    __slots__ = ("_function",)

    def __init__(self, function: Any) -> None:
        self._function = function

    def __call__(self, *args: Any) -> Any:
        return self._function(*args)


class _Kind:
    """A storage class in a pickle: a dtype, or None for bytes."""

    __slots__ = ("dtype",)

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype


def _shaped(flat: Tensor, offset: Any, size: Any, stride: Any) -> Tensor:
    """A view of a storage, checked before it is made."""
    size, stride = tuple(size), tuple(stride)
    if not all(type(n) is int and n >= 0 for n in (offset, *size, *stride)) or len(size) != len(stride):
        raise Refused(f"A tensor has the size {size}, the stride {stride} and the offset ({offset}).")
    last = offset + sum((n - 1) * s for n, s in zip(size, stride))
    if 0 not in size and last >= flat.numel():
        raise Refused(
            f"A tensor of size {size} and stride {stride} at offset ({offset}) needs {last + 1} elements; "
            f"its storage has {flat.numel()}."
        )
    if 0 in size:
        return flat.new_empty(size)
    return flat.as_strided(size, stride, offset).detach()


def _tensor_v2(
    storage: Any, offset: Any, size: Any, stride: Any, grad: Any, hooks: Any, metadata: Any = None
) -> Tensor:
    if not isinstance(storage, TypedStorage):
        raise Refused(f"A tensor is built on {type(storage).__name__}, not on a storage.")
    result = _shaped(storage._flat, offset, size, stride)
    return result.requires_grad_() if grad else result


def _tensor_v3(
    storage: Any, offset: Any, size: Any, stride: Any, grad: Any, hooks: Any, dtype: Any, metadata: Any = None
) -> Tensor:
    if not isinstance(dtype, mica.dtype) or not isinstance(storage, TypedStorage):
        raise Refused("A tensor is built without a dtype or without a storage.")
    flat = storage._flat.view(mica.uint8)
    whole = flat[: flat.numel() // dtype.itemsize * dtype.itemsize]
    return _tensor_v2(TypedStorage._over(whole.view(dtype)), offset, size, stride, grad, hooks)


def _meta_tensor(dtype: Any, size: Any, stride: Any, grad: Any) -> Tensor:
    made = mica.empty_strided(tuple(size), tuple(stride), dtype=dtype, device="meta")
    return made.requires_grad_() if grad else made


def _parameter(data: Any, grad: Any, hooks: Any, state: Any = None) -> Tensor:
    made = mica.nn.Parameter(data, bool(grad))
    if isinstance(state, dict):
        made.__dict__.update(state)
    return made


def _from_type(function: Any, cls: Any, args: Any, state: Any) -> Any:
    made = function(*args)
    if isinstance(cls, type) and issubclass(cls, Tensor) and cls is not Tensor:
        made = Tensor._make_subclass(cls, made, made.requires_grad)
    if isinstance(state, dict) and state:
        made.__dict__.update(state)
    return made


def _layout(name: Any) -> Any:
    found = getattr(mica, str(name).removeprefix("torch."), None)
    if not isinstance(found, mica.layout):
        raise Refused(f"The file refers to the layout ({name!r:.40}), which Mica lacks.")
    return found


def _device(*args: Any) -> Any:
    return mica.device(*args)


def _small_bytes(kind: type) -> Any:
    def make(*args: Any) -> Any:
        if args and isinstance(args[0], int):
            raise Refused(f"{kind.__name__} of a length is not built from a file.")
        return kind(*args)

    return make


def _encode(text: Any, encoding: Any = "latin1") -> bytes:
    if not isinstance(text, str) or encoding not in ("latin1", "utf-8", "ascii"):
        raise Refused(f"A text is encoded as ({encoding}).")
    return text.encode(encoding)


_REBUILD = {
    "torch._utils._rebuild_tensor_v2": _tensor_v2,
    "torch._utils._rebuild_tensor_v3": _tensor_v3,
    "torch._utils._rebuild_meta_tensor_no_storage": _meta_tensor,
    "torch._utils._rebuild_parameter": _parameter,
    "torch._utils._rebuild_parameter_with_state": _parameter,
    "torch._tensor._rebuild_from_type_v2": _from_type,
    "torch.device": _device,
    "_codecs.encode": _encode,
    "__builtin__.bytearray": _small_bytes(bytearray),
    "builtins.bytearray": _small_bytes(bytearray),
    "builtins.complex": complex,
    "__builtin__.complex": complex,
    "__builtin__.bytes": _small_bytes(bytes),
    "builtins.bytes": _small_bytes(bytes),
    "torch.serialization._get_layout": _layout,
}
_CLASSES = {
    "collections.OrderedDict": OrderedDict,
    "collections.Counter": Counter,
    "collections.defaultdict": defaultdict,
    "__builtin__.set": set,
    "builtins.set": set,
    "builtins.frozenset": frozenset,
    "torch.Size": mica.Size,
    "torch.Tensor": Tensor,
}
_ONE_BY_NAME = {"torch.nn.parameter.Parameter": "Parameter", "torch.nn.parameter.Buffer": "Buffer"}


def _known(path: str) -> Any:
    """The object of a global that any checkpoint may have; None if it is not one."""
    if path in _REBUILD:
        return _Maker(_REBUILD[path])
    if path in _CLASSES:
        return _CLASSES[path]
    if path in _ONE_BY_NAME:
        return getattr(mica.nn, _ONE_BY_NAME[path])
    module, _, name = path.rpartition(".")
    if module in ("torch", "torch.storage"):
        if name in ("UntypedStorage", "TypedStorage"):
            return _Kind(None)
        if name in _TYPES:
            return _Kind(getattr(mica, _TYPES[name]))
        found = getattr(_C, name, None)
        if isinstance(found, mica.dtype):
            return found
    return safe_globals.get(path)


def is_allowed(path: str) -> bool:
    """Whether weights_only=True builds what has this name in a checkpoint."""
    return _known(path) is not None or any(_of_mica(path) is o for o in safe_globals.values())


def _of_mica(path: str) -> Any:
    """What Mica has under a name of torch; None if that is nothing, or no name of torch's."""
    if path.split(".")[0] != "torch":
        return None
    from mica.torch import _table

    try:
        return _table.resolve(path)
    except _table.Absent:
        return None


class _Unpickler(pickle.Unpickler):
    def __init__(self, content: bytes, archive: Source, weights_only: bool) -> None:
        super().__init__(io.BytesIO(content), encoding="utf-8")
        self._archive, self._weights_only = archive, weights_only

    def find_class(self, module: str, name: str) -> Any:
        path = f"{module}.{name}"
        found = _known(path)
        if found is not None:
            return found
        if not self._weights_only or is_allowed(path):
            known = _of_mica(path)
            if known is not None:
                return known
        if self._weights_only:
            raise Refused(
                f"Weights only load failed: the file refers to {path}, which weights_only=True does not build. Allow it "
                "with mica.serialization.add_safe_globals([...]), or load with weights_only=False if you trust the file."
            )
        if module.split(".")[0] == "torch":
            raise Refused(f"The file refers to {path}, which Mica lacks.")
        return super().find_class(module, name)

    def persistent_load(self, pid: Any) -> Any:
        if isinstance(pid, tuple) and len(pid) == 4 and pid[0] == "module":
            return pid[1]  # a class, as files of torch before 1.6 name it: with its source
        kind, key, location, count = storage_of(pid)
        flat = self._archive.storage(kind.dtype, key, location, count)
        return TypedStorage._over(flat)


def storage_of(pid: Any) -> tuple[_Kind, str, str, int]:
    """The kind, key, place and number of elements in a pickle's reference to a storage."""
    if not (isinstance(pid, tuple) and len(pid) in (5, 6) and pid[0] == "storage"):
        raise Refused(f"The file refers to ({pid!r:.80}), which is no storage.")
    _, kind, key, location, count = pid[:5]
    if not isinstance(kind, _Kind) or not isinstance(key, str) or type(count) is not int or count < 0:
        raise Refused(f"A storage is described by ({pid!r:.120}).")
    if pid[5:] not in ((), (None,)):
        raise Refused(f"The storage ({key}) is a view of another, as in files of torch before 0.4.")
    return kind, key, str(location), count


def unpickle(content: bytes, source: Source, weights_only: bool) -> Any:
    """What a checkpoint's pickle is of; its storages come from `source`."""
    if weights_only:
        check_opcodes(content)
    try:
        return _Unpickler(content, source, weights_only).load()
    except (Refused, MemoryError, KeyboardInterrupt):
        raise
    except RuntimeError as error:
        if "map_location" in str(error):
            raise
        raise Refused(f"The file ({source.name}) is damaged: {error}") from error
    except Exception as error:
        if not weights_only and not isinstance(error, (pickle.UnpicklingError, EOFError)):
            raise
        raise Refused(f"The file ({source.name}) is damaged: {type(error).__name__}: {error}") from error


class Source:
    """Where a pickle's storages come from, and on which devices they are put."""

    def __init__(self, map_location: Any, name: str) -> None:
        self.map_location, self.name = map_location, name

    def storage(self, dtype: Any, key: str, location: str, count: int) -> Tensor:
        """All of a storage as a flat tensor on its device; the same memory each time."""
        raise NotImplementedError(f"{type(self).__name__} has no storages.")

    def _placed(self, flat: Tensor, location: str) -> Tensor:
        wish = self.map_location
        if isinstance(wish, dict):
            location = str(wish.get(location, location))
        elif callable(wish) and not isinstance(wish, mica.device):
            placed = wish(UntypedStorage._over(flat), location)
            if isinstance(placed, _Memory):
                return placed._flat.view(mica.uint8)
        elif wish is not None:
            location = str(wish) if not isinstance(wish, int) else f"cuda:{wish}"
        if location in ("cpu", "meta"):
            return flat if location == "cpu" else flat.to("meta")
        if "mica.serialization" in sys.modules:
            for _, _, deserializer in sys.modules["mica.serialization"]._packages:
                placed = deserializer(UntypedStorage._over(flat), location)
                if placed is not None:
                    return placed._flat.view(mica.uint8)
        backend = location.partition(":")[0]
        if backend != "cpu" and _C._device_count(backend) == 0:
            raise RuntimeError(
                f"The file has a storage on the device ({location}), and no plugin provides one. "
                "Load it with map_location='cpu'."
            )
        return flat.to(location)


def _mapped(file: Any, shared: bool) -> mmap.mmap:
    """The file's bytes: a private copy of those that are written, or the file itself."""
    if not shared:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    with open(file.name, "r+b") as writable:
        return mmap.mmap(writable.fileno(), 0, access=mmap.ACCESS_WRITE)


class Archive(Source):
    """An open checkpoint: its records, and the storages that were read."""

    def __init__(self, file: Any, map_location: Any, mapped: bool, name: str) -> None:
        super().__init__(map_location, name)
        self.file = file
        self._buffer: Any = None
        try:
            self._zip = zipfile.ZipFile(file)
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, UnicodeDecodeError) as error:
            raise Refused(
                f"The file ({name}) is not one that mica.save() or torch.save() wrote, or it was cut short: {error}."
            ) from error
        self._read: dict[str, Tensor] = {}
        self._records = self._check()
        order = self._records.get("byteorder")
        if order is not None and self.content("byteorder").decode("ascii", "replace") != sys.byteorder:
            raise Refused(
                f"The file ({name}) was written in another byte order than this machine's ({sys.byteorder})."
            )
        self._check_order(order is not None)
        if mapped:
            from mica import serialization

            shared = serialization.get_default_mmap_options() == mmap.MAP_SHARED
            self._buffer = _mapped(file, shared)

    def _check_order(self, told: bool) -> None:
        from mica import serialization

        order = serialization.get_default_load_endianness()
        if not told and order is not None and order.name.lower() not in ("native", sys.byteorder):
            raise Refused(
                f"The file ({self.name}) does not tell its byte order, and set_default_load_endianness() says "
                f"{order.name}, which is not this machine's ({sys.byteorder})."
            )

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
            start, info = self._records[name]
            flat = self._placed(self._bytes(start, info), location)
            self._read[key] = flat
        itemsize = bytes_wide.itemsize
        if count * itemsize > flat.numel():
            raise Refused(
                f"A storage of {count} elements of {bytes_wide} needs {count * itemsize} bytes; its record has {flat.numel()}."
            )
        return flat[: count * itemsize].view(bytes_wide)

    def _bytes(self, start: int, info: zipfile.ZipInfo) -> Tensor:
        size = info.file_size
        if size == 0:
            return mica.empty(0, dtype=mica.uint8)
        if self._buffer is not None:
            return mica.frombuffer(memoryview(self._buffer)[start : start + size], dtype=mica.uint8)
        flat = mica.empty(size, dtype=mica.uint8)
        view = memoryview(_C._TensorBuffer(flat)).cast("B")
        self.file.seek(start)
        if hasattr(self.file, "readinto"):
            done = 0
            while done < size:
                step = self.file.readinto(view[done:])
                if not step:
                    break
                done += step
        else:
            view[:] = self.file.read(size)
        self._check_sum(info, view)
        return flat

    def load(self, weights_only: bool) -> Any:
        """The object that was saved."""
        return unpickle(self.content("data.pkl"), self, weights_only)
