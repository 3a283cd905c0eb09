"""Stores: tables of keys and bytes through which ranks find each other, with torch.distributed.Store's API.

A kind of store has three methods of its own (`_change`, `_read`, `_wait`); `Store` makes everything else of
them. One value changes at a time: `changed` says what becomes of it, wherever the table lies.
"""

from __future__ import annotations

import datetime
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from mica.distributed._errors import DistStoreError

__all__ = ["HashStore", "PrefixStore", "Store"]

KEY_LIMIT = 1 << 12  # bytes of a key
VALUE_LIMIT = 1 << 26  # bytes of a value
KEYS_LIMIT = 1 << 20  # keys of a table
TOTAL_LIMIT = 1 << 30  # bytes of a table


def changed(operation: str, old: bytes | None, given: Sequence[bytes]) -> tuple[bytes | None, bytes]:
    """The value after an operation (None: no value), and what the caller gets."""
    if operation == "set":
        return given[0], b""
    if operation == "append":
        return bounded((old or b"") + given[0]), b""
    if operation == "add":
        total = b"%d" % (_number(old or b"0") + _number(given[0]))
        return total, total
    if operation == "compare_set":
        expected, desired = given
        if old is None:
            return (None, expected) if expected else (desired, desired)
        return (desired, desired) if old == expected else (old, old)
    if operation == "delete":
        return None, b"0" if old is None else b"1"
    raise ValueError(f"A store has no operation ({operation!r}).")


def _number(text: bytes) -> int:
    try:
        found = int(text) if len(text) <= 20 else None
    except ValueError:
        found = None
    if found is None or not -(1 << 63) <= found < 1 << 63:
        raise ValueError(
            f"A value of a store ({text[:40]!r}) is no number of 64 bits, to which add() could add."
        )
    return found


def bounded(value: bytes) -> bytes:
    """The value, unless it is too long."""
    if len(value) > VALUE_LIMIT:
        raise ValueError(f"A value of a store has ({len(value)}) bytes; at most ({VALUE_LIMIT}) are taken.")
    return value


def _bytes(value: Any) -> bytes:
    if not isinstance(value, str | bytes | bytearray | memoryview):
        raise TypeError(f"A value of a store is of the type ({type(value).__name__}); expected str or bytes.")
    return bounded(value.encode() if isinstance(value, str) else bytes(value))


def bounded_key(key: bytes) -> bytes:
    """The key, unless it is too long."""
    if len(key) > KEY_LIMIT:
        raise ValueError(f"A key of a store has ({len(key)}) bytes; at most ({KEY_LIMIT}) are taken.")
    return key


def _key(key: Any) -> bytes:
    if not isinstance(key, str):
        raise TypeError(f"A key of a store is of the type ({type(key).__name__}); expected str.")
    return bounded_key(key.encode())


def _keys(keys: Any) -> list[bytes]:
    if isinstance(keys, str | bytes):
        raise TypeError(f"The keys ({keys!r}) are text; expected a list of keys.")
    return [_key(key) for key in keys]


class Store:
    """A table of keys and bytes that all ranks see.

    As `torch.distributed.Store`. Use `TCPStore`, `FileStore`, `HashStore` or `PrefixStore`.

    Args:
        timeout (timedelta): How long `get` and `wait` wait for a key. Default: 5 minutes.

    Example:
        >>> store = mica.distributed.HashStore()
        >>> isinstance(store, mica.distributed.Store)
        True
        >>> store.set("a", "1")
        >>> store.get("a")
        b'1'
    """

    def __init__(self, timeout: datetime.timedelta = datetime.timedelta(minutes=5)) -> None:
        self._timeout = timeout

    @property
    def serves(self) -> bool:
        """Whether the table goes with this object, so that others lose it."""
        return False

    def _no_kind(self) -> NotImplementedError:
        return NotImplementedError(
            f"{type(self).__name__} is no store; use TCPStore, FileStore, HashStore or PrefixStore."
        )

    # What a kind of store has.
    def _change(self, operation: str, key: bytes, given: Sequence[bytes]) -> bytes:
        raise self._no_kind()

    def _read(self, keys: Sequence[bytes] | None) -> list[bytes | None]:
        """The values of keys; for None all keys."""
        raise self._no_kind()

    def _wait(self, keys: Sequence[bytes], seconds: float) -> bool:
        """Whether all keys were there within so long."""
        raise self._no_kind()

    @property
    def timeout(self) -> datetime.timedelta:
        """How long `get` and `wait` wait for a key."""
        return self._timeout

    def set_timeout(self, timeout: datetime.timedelta) -> None:
        """Says how long `get` and `wait` wait from now on.

        Args:
            timeout (timedelta): Positive.

        Raises:
            ValueError: It is not positive.
        """
        if timeout <= datetime.timedelta():
            raise ValueError(f"The timeout ({timeout}) of a store is not positive.")
        self._timeout = timeout

    def set(self, key: str, value: str | bytes) -> None:
        """Gives a key a value.

        Args:
            key (str): At most 4096 bytes.
            value (str or bytes): At most 64 MiB.
        """
        self._change("set", _key(key), [_bytes(value)])

    def get(self, key: str) -> bytes:
        """Gives the value of a key, for which it waits.

        Args:
            key (str): The key.

        Returns:
            bytes: The value.

        Raises:
            DistStoreError: The key did not come within the timeout.
        """
        return self.multi_get([key])[0]

    def add(self, key: str, amount: int) -> int:
        """Adds to a number; a key without a value counts as 0.

        Args:
            key (str): The key.
            amount (int): How much.

        Returns:
            int: The sum.

        Raises:
            ValueError: The value is no number.
        """
        return int(self._change("add", _key(key), [b"%d" % amount]))

    def append(self, key: str, value: str | bytes) -> None:
        """Adds bytes at the end of a value.

        Args:
            key (str): The key.
            value (str or bytes): What comes at the end.
        """
        self._change("append", _key(key), [_bytes(value)])

    def compare_set(self, key: str, expected: str | bytes, desired: str | bytes) -> bytes:
        """Gives a key a value where it has the expected one; "" expects none.

        Args:
            key (str): The key.
            expected (str or bytes): The value that is replaced.
            desired (str or bytes): The new value.

        Returns:
            bytes: The value of the key now, or `expected` where it has none.
        """
        return self._change("compare_set", _key(key), [_bytes(expected), _bytes(desired)])

    def delete_key(self, key: str) -> bool:
        """Takes a key out.

        Args:
            key (str): The key.

        Returns:
            bool: Whether it was there.
        """
        return self._change("delete", _key(key), []) == b"1"

    def check(self, keys: Sequence[str]) -> bool:
        """Says whether all keys are there, and does not wait.

        Args:
            keys (sequence of str): The keys.

        Returns:
            bool: True where all are.
        """
        return None not in self._read(_keys(keys))

    def wait(self, keys: Sequence[str], timeout: datetime.timedelta | None = None) -> None:
        """Waits until all keys are there.

        Args:
            keys (sequence of str): The keys.
            timeout (timedelta, optional): At most so long. Default: None, the store's.

        Raises:
            DistStoreError: A key did not come in time.
        """
        seconds = (self._timeout if timeout is None else timeout).total_seconds()
        if not self._wait(_keys(keys), seconds):
            raise DistStoreError(
                f"wait timeout after {seconds * 1000:.0f}ms: the store did not get all of the keys {list(keys)} within ({seconds}) s."
            )

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        """Gives the values of keys, for which it waits.

        Args:
            keys (sequence of str): The keys.

        Returns:
            list of bytes: The values.

        Raises:
            DistStoreError: A key did not come within the timeout.
        """
        self.wait(keys)
        values = self._read(_keys(keys))
        gone = [key for key, value in zip(keys, values) if value is None]
        if gone:
            raise DistStoreError(f"The keys {gone} were deleted from the store while get() read them.")
        return [value for value in values if value is not None]

    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes]) -> None:
        """Gives several keys their values, one after another.

        Args:
            keys (sequence of str): The keys.
            values (sequence of str or bytes): As many values.

        Raises:
            ValueError: There are not as many values as keys.
        """
        if len(keys) != len(values):
            raise ValueError(
                f"multi_set gets ({len(keys)}) keys and ({len(values)}) values; expected as many."
            )
        for key, value in zip(keys, values):
            self.set(key, value)

    def num_keys(self) -> int:
        """Counts the keys.

        Returns:
            int: How many there are.
        """
        return len(self._read(None))

    def list_keys(self) -> list[str]:
        """Gives all keys.

        Returns:
            list of str: In no order.
        """
        return [key.decode() for key in self._read(None) if key is not None]

    def has_extended_api(self) -> bool:
        """Says whether append, multi_get and multi_set are there.

        Returns:
            bool: True.
        """
        return True


class HashStore(Store):
    """A table in this process, for ranks that are threads.

    As `torch.distributed.HashStore`.

    Example:
        >>> store = mica.distributed.HashStore()
        >>> store.set("a", "1")
        >>> store.add("a", 2)
        3
    """

    def __init__(self) -> None:
        super().__init__()
        self._table: dict[bytes, bytes] = {}
        self._size = 0  # bytes of keys and values
        self._changes = threading.Condition()

    @staticmethod
    def _size_of(key: bytes, value: bytes | None) -> int:
        return 0 if value is None else len(key) + len(value)

    def _change(self, operation: str, key: bytes, given: Sequence[bytes]) -> bytes:
        with self._changes:
            old = self._table.get(key)
            value, reply = changed(operation, old, given)
            size = self._size + self._size_of(key, value) - self._size_of(key, old)
            if len(self._table) + (old is None) > KEYS_LIMIT or size > TOTAL_LIMIT:
                raise ValueError(
                    f"The store has ({len(self._table)}) keys and ({self._size}) bytes; at most ({KEYS_LIMIT}) and "
                    f"({TOTAL_LIMIT}) are taken."
                )
            self._size = size
            if value is None:
                self._table.pop(key, None)
            else:
                self._table[key] = value
            self._changes.notify_all()
        return reply

    def _read(self, keys: Sequence[bytes] | None) -> list[bytes | None]:
        with self._changes:
            return [*self._table] if keys is None else [self._table.get(key) for key in keys]

    def _wait(self, keys: Sequence[bytes], seconds: float) -> bool:
        with self._changes:
            return self._changes.wait_for(lambda: all(key in self._table for key in keys), seconds)


class PrefixStore(Store):
    """The keys of another store that begin with a prefix.

    As `torch.distributed.PrefixStore`. `num_keys` and `list_keys` are the other store's, as torch's are.

    Args:
        prefix (str): Stands before each key, with a slash.
        store (Store): The other store.

    Example:
        >>> store = mica.distributed.HashStore()
        >>> mica.distributed.PrefixStore("group", store).set("a", "1")
        >>> store.list_keys()
        ['group/a']
    """

    def __init__(self, prefix: str, store: Store) -> None:
        if not isinstance(store, Store):
            raise TypeError(f"PrefixStore gets ({store!r}); expected a store.")
        super().__init__(store.timeout)
        self.prefix, self.underlying_store = prefix, store
        self._prefix = _key(prefix) + b"/"

    def _change(self, operation: str, key: bytes, given: Sequence[bytes]) -> bytes:
        return self.underlying_store._change(operation, bounded_key(self._prefix + key), given)

    def _read(self, keys: Sequence[bytes] | None) -> list[bytes | None]:
        return self.underlying_store._read(None if keys is None else [self._prefix + key for key in keys])

    def _wait(self, keys: Sequence[bytes], seconds: float) -> bool:
        return self.underlying_store._wait([self._prefix + key for key in keys], seconds)


def until(done: Callable[[], bool], seconds: float, pause: float = 0.01) -> bool:
    """Asks until it is done, at most so long."""
    deadline = time.monotonic() + seconds
    while not done():
        if time.monotonic() >= deadline:
            return False
        time.sleep(pause)
    return True
