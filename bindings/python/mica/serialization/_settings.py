"""How checkpoints are read unless a call says otherwise: byte order, checksums, mapping."""

from __future__ import annotations

import mmap
from enum import Enum
from typing import Any

MAP_SHARED, MAP_PRIVATE = mmap.MAP_SHARED, mmap.MAP_PRIVATE


class LoadEndianness(Enum):
    """The byte order of checkpoints that do not tell theirs.

    As `torch.serialization.LoadEndianness`: NATIVE is this machine's.

    Example:
        >>> mica.serialization.LoadEndianness.LITTLE
        <LoadEndianness.LITTLE: 2>
    """

    NATIVE = 1
    LITTLE = 2
    BIG = 3


_settings: dict[str, Any] = {"endianness": None, "crc32": True, "mmap": MAP_PRIVATE}


def get_default_load_endianness() -> LoadEndianness | None:
    """Returns the byte order of checkpoints that do not tell theirs.

    As `torch.serialization.get_default_load_endianness`.

    Returns:
        LoadEndianness or None: None stands for little.

    Example:
        >>> print(mica.serialization.get_default_load_endianness())
        None
    """
    return _settings["endianness"]  # type: ignore[no-any-return]


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """Sets the byte order of checkpoints that do not tell theirs.

    As `torch.serialization.set_default_load_endianness`.

    Args:
        endianness (LoadEndianness or None): The byte order; None stands for little.

    Raises:
        TypeError: It is neither.

    Example:
        >>> mica.serialization.set_default_load_endianness(mica.serialization.LoadEndianness.BIG)
        >>> mica.serialization.get_default_load_endianness().name
        'BIG'
        >>> mica.serialization.set_default_load_endianness(None)
    """
    if not isinstance(endianness, LoadEndianness) and endianness is not None:
        raise TypeError("Invalid argument type in function set_default_load_endianness")
    _settings["endianness"] = endianness


def get_crc32_options() -> bool:
    """Returns what `set_crc32_options()` was given; checkpoints have checksums in any case.

    As `torch.serialization.get_crc32_options`.

    Returns:
        bool: True at the start.

    Example:
        >>> mica.serialization.get_crc32_options()
        True
    """
    return _settings["crc32"]  # type: ignore[no-any-return]


def set_crc32_options(compute_crc32: bool) -> None:
    """Remembers whether a program wants checksums in checkpoints.

    As `torch.serialization.set_crc32_options`, but Mica writes the checksum of every record in any case,
    since `load()` checks it.

    Args:
        compute_crc32 (bool): What `get_crc32_options()` returns from now on.

    Example:
        >>> mica.serialization.set_crc32_options(True)
        >>> mica.serialization.get_crc32_options()
        True
    """
    _settings["crc32"] = compute_crc32


def get_default_mmap_options() -> int:
    """Returns how `load(mmap=True)` maps a file.

    As `torch.serialization.get_default_mmap_options`.

    Returns:
        int: `mmap.MAP_PRIVATE` or `mmap.MAP_SHARED`.

    Example:
        >>> mica.serialization.get_default_mmap_options() == mica.serialization.MAP_PRIVATE
        True
    """
    return _settings["mmap"]  # type: ignore[no-any-return]


class set_default_mmap_options:  # noqa: N801  (torch's name: a function and a context)
    """Sets how `load(mmap=True)` maps a file, from now on or for a block.

    As `torch.serialization.set_default_mmap_options`.

    Args:
        flags (int): `mmap.MAP_PRIVATE`, the setting at the start: the file stays as it is; or
            `mmap.MAP_SHARED`: writing a tensor writes the file, whose checksums are then wrong: only
            `load(mmap=True)` reads it afterwards; `save()` it anew for others.

    Raises:
        ValueError: The flags are others.

    Example:
        >>> import mmap
        >>> with mica.serialization.set_default_mmap_options(mmap.MAP_SHARED):
        ...     mica.serialization.get_default_mmap_options() == mmap.MAP_SHARED
        True
    """

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
