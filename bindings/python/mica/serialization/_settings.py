"""How checkpoints are read unless a call says otherwise: byte order, checksums, mapping."""

from __future__ import annotations

import mmap
from enum import Enum
from typing import Any

MAP_SHARED, MAP_PRIVATE = mmap.MAP_SHARED, mmap.MAP_PRIVATE


class LoadEndianness(Enum):
    """The byte order of files that do not tell theirs."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


_settings: dict[str, Any] = {"endianness": None, "crc32": True, "mmap": MAP_PRIVATE}


def get_default_load_endianness() -> LoadEndianness | None:
    """The byte order of zip files that do not tell theirs; None for little."""
    return _settings["endianness"]  # type: ignore[no-any-return]


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """Sets the byte order of zip files that do not tell theirs; None for little."""
    if not isinstance(endianness, LoadEndianness) and endianness is not None:
        raise TypeError("Invalid argument type in function set_default_load_endianness")
    _settings["endianness"] = endianness


def get_crc32_options() -> bool:
    """What set_crc32_options() was given."""
    return _settings["crc32"]  # type: ignore[no-any-return]


def set_crc32_options(compute_crc32: bool) -> None:
    """Remembers the wish. Mica writes the checksum of every record in any case: load() checks it."""
    _settings["crc32"] = compute_crc32


def get_default_mmap_options() -> int:
    """How load(mmap=True) maps a file."""
    return _settings["mmap"]  # type: ignore[no-any-return]


class set_default_mmap_options:  # noqa: N801  (torch's name: a function and a context)
    """Maps files privately (MAP_PRIVATE, the default) or so that writing a tensor writes the file."""

    def __init__(self, flags: int) -> None:
        if flags not in (MAP_PRIVATE, MAP_SHARED):
            raise ValueError(
                "Invalid argument in function set_default_mmap_options, expected mmap.MAP_PRIVATE or mmap.MAP_SHARED, "
                f"but got {flags}"
            )
        self.prev, _settings["mmap"] = _settings["mmap"], flags

    def __enter__(self) -> None:
        """Set already."""

    def __exit__(self, *exc: object) -> None:
        _settings["mmap"] = self.prev
