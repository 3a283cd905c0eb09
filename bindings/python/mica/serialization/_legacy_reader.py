"""Checkpoints of torch before 1.6: five pickles one after the other, then the storages' bytes.

The pickles: a magic number, a protocol version, what the machine was, the object, and the storages'
keys in their order; then for each storage its number of elements (8 bytes) and them. torch.save
still writes so when it is asked to. Reading makes two passes over the object's pickle: the first
builds nothing and learns what the storages are, so that all of them are known to lie inside the file
before one is made.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import mica
from mica._C import Tensor
from mica.serialization import _zip_reader as reading
from mica.serialization._pickle import rules
from mica.serialization._pickle.machine import Cut, Machine, Refused, shown

MAGIC = 0x1950A86A20F9469CFC6C
PROTOCOL = 1001


def begins_with_magic(head: bytes) -> bool:
    """Whether a file of these first bytes (32 are enough) is one."""
    return MAGIC.to_bytes(10, "little") in head or str(MAGIC).encode() in head


_NOTHING = object()


def _drop(above: int) -> Any:
    """Takes what an opcode puts into the object below, and leaves that."""

    def rule(machine: Survey) -> None:
        if above:
            del machine.stack[-above:]
        else:
            machine.marked()
        machine.stack[-1]

    return rule


def _drop_all(machine: Survey) -> None:
    machine.marked()
    machine.stack.append(_NOTHING)


class Survey(Machine):
    """Runs a pickle and builds nothing: only learns its storages (dtype and number of elements) and the
    names that it refers to."""

    opcodes = {
        **dict.fromkeys(["APPEND", "BUILD"], _drop(1)),
        "SETITEM": _drop(2),
        **dict.fromkeys(["SETITEMS", "APPENDS", "ADDITEMS"], _drop(0)),
        **dict.fromkeys(["DICT", "FROZENSET"], _drop_all),
    }

    def __init__(self, content: bytes, name: str, **options: Any) -> None:
        super().__init__(content, name, **options)
        self.storages: dict[str, tuple[Any, int]] = {}
        self.names: set[str] = set()

    def find_global(self, path: str) -> Any:
        self.names.add(path)
        found = rules.known(path)
        return found if isinstance(found, rules.StorageKind) else _NOTHING

    def call(self, function: Any, arguments: Any) -> Any:
        return _NOTHING

    def new(self, cls: Any, arguments: Any, keywords: Any) -> Any:
        return _NOTHING

    def persistent(self, pid: Any) -> Any:
        if type(pid) is tuple and len(pid) == 4:
            return _NOTHING  # a class with its source
        kind, key, _, count, _ = reading.storage_of(pid)
        dtype = mica.uint8 if kind.dtype is None else kind.dtype
        if self.storages.setdefault(key, (dtype, count)) != (dtype, count):
            self.refuse(f"the storage ({key:.60}) is described in two ways.")
        return _NOTHING


class Legacy(reading.Source):
    """An open checkpoint of the old format."""

    def __init__(self, file: Any, map_location: Any, name: str) -> None:
        super().__init__(map_location, name, file)
        start = file.tell()
        file.seek(0, os.SEEK_END)
        self._length = file.tell()
        file.seek(start)
        self._places: dict[str, tuple[int, Any, int]] = {}
        self._read: dict[str, Tensor] = {}

    def _run(self, kind: Any) -> tuple[Any, Any, bytes]:
        """What a machine makes of the next pickle of the file, the machine, and the pickle's bytes.

        No pickle tells its length. Some of the file is read, and more if that was too little: neither
        machine does anything that could not be done again."""
        start = self.file.tell()
        size = 1 << 16
        while True:
            self.file.seek(start)
            content = self.file.read(min(size, self._length - start))
            machine = kind(content, self.name, record="its pickles")
            try:
                made = machine.load()
            except Cut:
                if start + size >= self._length:
                    raise
                size *= 4
            else:
                self.file.seek(start + machine.at)
                return made, machine, content[: machine.at]

    def _plain(self) -> Any:
        """The next pickle, which has numbers, texts and containers of them alone."""
        return self._run(Machine)[0]

    def load(self, weights_only: bool, encoding: str = "utf-8") -> Any:
        """The object that was saved."""
        if self._plain() != MAGIC:
            raise Refused(f"The file ({self.name}) does not begin with torch's magic number.")
        if (version := self._plain()) != PROTOCOL:
            raise Refused(f"The file ({self.name}) has the protocol version ({shown(version)}).")
        machine = self._plain()
        if not isinstance(machine, dict):
            raise Refused(f"The file ({self.name}) has {shown(machine)} for what the machine was.")
        if sys.byteorder != "little":  # storages are little-endian whatever machine wrote them
            raise NotImplementedError("Mica reads torch's format before zip on little-endian machines alone.")
        _, survey, content = self._run(Survey)
        self._find(survey.storages, self._plain())
        return reading.unpickle(content, self, weights_only, encoding, "its pickle")

    def _find(self, storages: dict[str, tuple[Any, int]], keys: Any) -> None:
        """Finds where each storage lies; all must lie in the file."""
        if type(keys) is not list or not all(
            type(key) is str or (type(key) is int and 0 <= key < 1 << 63) for key in keys
        ):
            raise Refused(f"The file ({self.name}) has {shown(keys)} for the list of its storages.")
        if sorted(storages) != sorted(map(str, keys)):
            raise Refused(f"The file ({self.name}) lists other storages than its pickle refers to.")
        at = self.file.tell()
        for key in map(str, keys):
            dtype, count = storages[key]
            self.file.seek(at)
            stored = int.from_bytes(self.file.read(8), "little", signed=True)
            nbytes = count * dtype.itemsize
            if stored != count or at + 8 + nbytes > self._length:
                raise Refused(
                    f"The storage ({key:.60}) of {count} elements of {dtype} is stored with {stored}, at {at} of the "
                    f"file's {self._length} bytes."
                )
            self._places[key] = (at + 8, dtype, nbytes)
            at += 8 + nbytes

    def storage(self, dtype: Any, key: str, location: str, count: int) -> Tensor:
        """All of a storage as a flat tensor on its device; the same tensor each time."""
        flat = self._read.get(key)
        if flat is None:
            start, stored, nbytes = self._places[key]
            flat = self.read(start, nbytes)
            flat = self._read[key] = self.placed(flat, location).view(stored)
        return flat
