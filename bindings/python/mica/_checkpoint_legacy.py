"""Checkpoints of torch before 1.6: five pickles one after the other, then the storages' bytes.

The pickles: a magic number, a protocol version, what the machine was, the object, and the storages'
keys in their order; then for each storage its number of elements (8 bytes) and them. torch.save
still writes so when it is asked to. Reading makes two passes over the object's pickle: the first
builds nothing and learns what the storages are, so that all of them are known to lie inside the file
before one is made.
"""

from __future__ import annotations

import io
import os
import pickle
import pickletools
import sys
from typing import Any

import mica
from mica import _C, _checkpoint_read as reading
from mica._C import Tensor

MAGIC = 0x1950A86A20F9469CFC6C
PROTOCOL = 1001


def begins_with_magic(head: bytes) -> bool:
    """Whether a file of these first bytes (32 are enough) is one."""
    try:
        for op, argument, _ in pickletools.genops(head):
            if op.name not in ("PROTO", "FRAME"):
                return op.name in ("LONG1", "LONG", "LONG4") and argument == MAGIC
    except Exception:  # cut short, or no pickle at all
        return False
    return False


def write(obj: Any, file: Any, protocol: int) -> None:
    """Writes a checkpoint of the old format to an open binary file."""
    from mica._checkpoint import _bytes_of, _Pickler

    machine = {
        "protocol_version": PROTOCOL,
        "little_endian": sys.byteorder == "little",
        "type_sizes": {"short": 2, "int": 4, "long": 4},
    }
    for head in (MAGIC, PROTOCOL, machine):
        pickle.dump(head, file, protocol)
    buffer = io.BytesIO()
    pickler = _Pickler(buffer, protocol, legacy=True)
    pickler.dump(obj)
    file.write(buffer.getvalue())
    storages = {key: flat for key, flat, _ in pickler.storages.values()}
    pickle.dump(sorted(storages), file, protocol)
    for key in sorted(storages):
        file.write(storages[key].numel().to_bytes(8, "little"))
        file.write(_bytes_of(storages[key]))


class _Nothing:
    """What stands for everything in the pass that builds nothing."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        return object.__new__(cls)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Takes anything."""

    def __setstate__(self, state: Any) -> None:
        """Takes anything."""

    def __setitem__(self, key: Any, value: Any) -> None:
        """Takes anything."""

    def append(self, value: Any) -> None:
        """Takes anything."""

    def extend(self, values: Any) -> None:
        """Takes anything."""

    def add(self, value: Any) -> None:
        """Takes anything."""


class _Survey(pickle.Unpickler):
    """Collects the storages that a pickle refers to: their dtype and number of elements."""

    def __init__(self, content: bytes) -> None:
        super().__init__(io.BytesIO(content), encoding="utf-8")
        self.storages: dict[str, tuple[Any, int]] = {}

    def find_class(self, module: str, name: str) -> Any:
        found = reading._known(f"{module}.{name}")
        return found if isinstance(found, reading._Kind) else _Nothing

    def persistent_load(self, pid: Any) -> Any:
        if isinstance(pid, tuple) and pid and pid[0] == "module":
            return _Nothing
        kind, key, _, count = reading.storage_of(pid)
        dtype = mica.uint8 if kind.dtype is None else kind.dtype
        if self.storages.setdefault(key, (dtype, count)) != (dtype, count):
            raise reading.Refused(f"The storage ({key}) is described in two ways.")
        return _Nothing()


class Legacy(reading.Source):
    """An open checkpoint of the old format."""

    def __init__(self, file: Any, map_location: Any, name: str) -> None:
        super().__init__(map_location, name)
        self.file = file
        start = file.tell()
        file.seek(0, os.SEEK_END)
        self._length = file.tell()
        file.seek(start)
        self._places: dict[str, tuple[int, Any, int]] = {}
        self._read: dict[str, Tensor] = {}

    def _pickle(self) -> bytes:
        """The bytes of the next pickle of the file."""
        start = self.file.tell()
        try:
            for _ in pickletools.genops(self.file):
                pass
        except Exception as error:
            raise reading.Refused(f"The file ({self.name}) is damaged: {error}") from error
        end = self.file.tell()
        self.file.seek(start)
        content: bytes = self.file.read(end - start)
        return content

    def _plain(self) -> Any:
        """The next pickle, which has numbers, texts and containers of them alone."""
        return reading.unpickle(self._pickle(), _NoStorages(None, self.name), True)

    def load(self, weights_only: bool) -> Any:
        """The object that was saved."""
        if self._plain() != MAGIC:
            raise reading.Refused(f"The file ({self.name}) does not begin with torch's magic number.")
        if (version := self._plain()) != PROTOCOL:
            raise reading.Refused(f"The file ({self.name}) has the protocol version ({version}).")
        machine = self._plain()
        if not isinstance(machine, dict) or machine.get("little_endian") is not (sys.byteorder == "little"):
            raise reading.Refused(
                f"The file ({self.name}) was written in another byte order than this machine's ({sys.byteorder})."
            )
        content = self._pickle()
        reading.check_opcodes(content)
        self._survey(content, self._plain())
        return reading.unpickle(content, self, weights_only)

    def _survey(self, content: bytes, keys: Any) -> None:
        """Finds where each storage lies; all must lie in the file."""
        survey = _Survey(content)
        try:
            survey.load()
        except (reading.Refused, MemoryError):
            raise
        except Exception as error:
            raise reading.Refused(f"The file ({self.name}) is damaged: {error}") from error
        if not isinstance(keys, list) or sorted(survey.storages) != sorted(map(str, keys)):
            raise reading.Refused(f"The file ({self.name}) lists other storages than its pickle refers to.")
        at = self.file.tell()
        for key in map(str, keys):
            dtype, count = survey.storages[key]
            self.file.seek(at)
            stored = int.from_bytes(self.file.read(8), "little", signed=True)
            nbytes = count * dtype.itemsize
            if stored != count or at + 8 + nbytes > self._length:
                raise reading.Refused(
                    f"The storage ({key}) of {count} elements of {dtype} is stored with {stored}, at {at} of the "
                    f"file's {self._length} bytes."
                )
            self._places[key] = (at + 8, dtype, nbytes)
            at += 8 + nbytes

    def storage(self, dtype: Any, key: str, location: str, count: int) -> Tensor:
        """All of a storage as a flat tensor on its device; the same tensor each time."""
        flat = self._read.get(key)
        if flat is None:
            start, stored, nbytes = self._places[key]
            flat = mica.empty(nbytes, dtype=mica.uint8)
            self.file.seek(start)
            if nbytes and self.file.readinto(memoryview(_C._TensorBuffer(flat)).cast("B")) != nbytes:
                raise reading.Refused(f"The file ({self.name}) ends within the storage ({key}).")
            flat = self._read[key] = self._placed(flat, location).view(stored)
        return flat


class _NoStorages(reading.Source):
    def storage(self, dtype: Any, key: str, location: str, count: int) -> Tensor:
        raise reading.Refused(f"The head of the file ({self.name}) refers to a storage.")
