"""FileStore: a table in a file that all ranks see.

The file is a log: each change appends the key's new value under a lock of the whole file, and whoever reads takes
in what came since. A record is two numbers of 4 bytes (the length of the key, and of the value or `_NONE`), the
key and the value.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
import threading
from collections.abc import Iterator, Mapping, Sequence

from mica.distributed._errors import DistStoreError
from mica.distributed._store import KEY_LIMIT, VALUE_LIMIT, Store, changed, until

__all__ = ["FileStore"]

_HEAD = struct.Struct("<II")
_NONE = 0xFFFFFFFF  # the length of the value of a key that was deleted


class FileStore(Store):
    """A table in a file that all ranks see, on one machine or on a shared disk with locks.

    As `torch.distributed.FileStore`. The file should not be there before the first rank comes.

    Args:
        file_name (str): Its path.
        world_size (int): The number of ranks; not needed. Default: -1.

    Raises:
        DistStoreError: The file cannot be opened, or holds something else.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     store = mica.distributed.FileStore(f"{folder}/ranks", 1)
        ...     store.set("a", "1")
        ...     store.get("a")
        b'1'
    """

    def __init__(self, file_name: str, world_size: int = -1) -> None:
        super().__init__()
        self.path = os.fspath(file_name)
        self._table: dict[bytes, bytes] = {}
        self._at = 0  # bytes of the file that are in the table
        self._lock = threading.Lock()  # of the two; threads that read may hold the file's at once
        with self._locked(write=True):
            pass

    @contextlib.contextmanager
    def _locked(self, write: bool) -> Iterator[int]:
        """The file, with the table as new as it."""
        with self._lock:
            file = self._open(fcntl.LOCK_EX if write else fcntl.LOCK_SH)
            try:
                self._take_in(file)
                yield file
            finally:
                os.close(file)

    def _open(self, lock: int) -> int:
        """The file that is there under the path, locked."""
        while True:
            try:
                # Opened each time: a lock belongs to an open file, so that threads exclude each other too.
                file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            except OSError as error:
                raise DistStoreError(f"FileStore cannot open ({self.path}): {error.strerror}.") from error
            fcntl.flock(file, lock)
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(file), os.stat(self.path)):
                    return file
            os.close(file)  # `remove` was faster

    def remove(self, values: Mapping[str, bytes]) -> None:
        """Takes the file away, where some keys have expected values.

        Args:
            values (dict): The values of the keys.
        """
        with self._locked(write=True), contextlib.suppress(OSError):
            if all(self._table.get(key.encode()) == value for key, value in values.items()):
                os.unlink(self.path)

    def _take_in(self, file: int) -> None:
        with os.fdopen(os.dup(file), "rb") as log:
            size = log.seek(0, os.SEEK_END)
            table, at = ({}, 0) if size < self._at else (dict(self._table), self._at)
            log.seek(at)
            while at < size:
                head = log.read(_HEAD.size)
                key_size, value_size = _HEAD.unpack(head) if len(head) == _HEAD.size else (_NONE, 0)
                length = 0 if value_size == _NONE else value_size
                if key_size > KEY_LIMIT or length > VALUE_LIMIT or at + _HEAD.size + key_size + length > size:
                    raise DistStoreError(
                        f"The file ({self.path}) is no FileStore, or its end is lost, at byte ({at}); give a new file."
                    )
                key, value = log.read(key_size), log.read(length)
                table.pop(key, None)
                if value_size != _NONE:
                    table[key] = value
                at += _HEAD.size + key_size + length
        self._table, self._at = table, at

    def _change(self, operation: str, key: bytes, given: Sequence[bytes]) -> bytes:
        with self._locked(write=True) as file:
            old = self._table.get(key)
            value, reply = changed(operation, old, given)
            if value != old:
                record = _HEAD.pack(len(key), _NONE if value is None else len(value)) + key + (value or b"")
                self._append(file, record)
        return reply

    def _append(self, file: int, record: bytes) -> None:
        try:
            written = os.pwrite(file, record, self._at)
            if written < len(record):
                raise OSError(28, "the disk is full")
        except OSError as error:
            os.ftruncate(file, self._at)
            raise DistStoreError(f"FileStore cannot write to ({self.path}): {error.strerror}.") from error

    def _read(self, keys: Sequence[bytes] | None) -> list[bytes | None]:
        with self._locked(write=False):
            return [*self._table] if keys is None else [self._table.get(key) for key in keys]

    def _wait(self, keys: Sequence[bytes], seconds: float) -> bool:
        return until(lambda: None not in self._read(keys), seconds)
