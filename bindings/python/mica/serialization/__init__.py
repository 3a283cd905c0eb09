"""mica.serialization: saving and loading, and the globals that a checkpoint may refer to."""

from __future__ import annotations

import io
import mmap
import os
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Any

import mica
from mica._functions import load as load, save as save
from mica.serialization import _zip_reader as reading
from mica.serialization._pickle.machine import Refused

MAP_LOCATION = Callable[[Any, str], Any] | mica.device | str | dict[str, str] | None
STORAGE = Any
DEFAULT_PROTOCOL = 2
MAGIC_NUMBER, PROTOCOL_VERSION = 0x1950A86A20F9469CFC6C, 1001  # of the format before zip
STORAGE_KEY_SEPARATOR = ","
MAP_SHARED, MAP_PRIVATE = mmap.MAP_SHARED, mmap.MAP_PRIVATE


class LoadEndianness(Enum):
    """The byte order of files that do not tell theirs."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


class SourceChangeWarning(Warning):
    """Never given: files' sources are not compared."""


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


def _path_of(item: Any) -> tuple[str, Any]:
    obj, path = item if isinstance(item, tuple) else (item, f"{item.__module__}.{item.__qualname__}")
    return path, obj


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Lets checkpoints refer to these classes or functions, or (object, "its.name.in.files")."""
    for item in safe_globals:
        if isinstance(item, tuple) and (len(item) != 2 or not isinstance(item[1], str)):
            raise ValueError(f"Expected a pair of an object and its name in files, but got ({item!r:.80}).")
        path, obj = _path_of(item)
        reading.safe_globals[path] = obj


def get_safe_globals() -> list[Any]:
    """What add_safe_globals() allowed."""
    return list(reading.safe_globals.values())


def clear_safe_globals() -> None:
    """Allows nothing of one's own again."""
    reading.safe_globals.clear()


@contextmanager
def safe_globals(safe_globals: list[Any]) -> Iterator[None]:
    """A block in which these are allowed."""
    before = dict(reading.safe_globals)
    add_safe_globals(safe_globals)
    try:
        yield
    finally:
        reading.safe_globals.clear()
        reading.safe_globals.update(before)


def get_unsafe_globals_in_checkpoint(f: Any) -> list[str]:
    """The names in a checkpoint that weights_only=True refuses."""
    from mica.serialization._legacy_reader import Survey

    with _opened(f) as file:
        content = reading.Archive(file, "cpu", False, str(f)).content("data.pkl")
    survey = Survey(content, str(f))
    survey.load()
    return sorted(name for name in survey.names if not reading.is_allowed(name))


_packages: list[tuple[int, Any, Any]] = []


def register_package(priority: int, tagger: Any, deserializer: Any) -> None:
    """Lets tagger(storage) name the place of storages in files, and deserializer(storage, location) put
    them there again; either gives None for what is not its own. The lowest priority is asked first."""
    _packages.append((priority, tagger, deserializer))
    _packages.sort(key=lambda package: package[0])


def location_tag(storage: Any) -> str:
    """The name of the place where a storage is, as files have it."""
    for _, tagger, _ in _packages:
        location = tagger(storage)
        if location is not None:
            return str(location)
    return str(storage.device)


def default_restore_location(storage: Any, location: Any) -> Any:
    """The storage at its place."""
    for _, _, deserializer in _packages:
        placed = deserializer(storage, location)
        if placed is not None:
            return placed
    return storage.to(device=location)


class skip_data:  # noqa: N801  (torch's name: a context)
    """Refused: files without their storages' bytes are not written."""

    def __init__(self, materialize_fake_tensors: bool = False) -> None:
        raise NotImplementedError(
            "mica.save() writes storages whole; save tensors of the device meta for their shapes alone."
        )


@contextmanager
def _opened(f: Any) -> Iterator[Any]:
    if hasattr(f, "read"):
        yield f
        return
    if not isinstance(f, (str, bytes, os.PathLike)):  # open() would take a number, and close that file after
        raise AttributeError(
            f"load() takes a path or an open file that has read() and seek(); this value is of type ({type(f).__name__})."
        )
    with open(f, "rb") as file:
        yield file


def _is_seekable(file: Any) -> bool:
    """Whether a file can be read here and there; a FIFO cannot."""
    has_all = all(hasattr(file, name) for name in ("seek", "tell", "readinto"))
    return has_all and (not hasattr(file, "seekable") or file.seekable())


def only_pickle(module: Any) -> None:
    """Refuses a pickle module that save() would not use."""
    if getattr(module, "__name__", "pickle") not in ("pickle", "_pickle"):
        raise NotImplementedError(
            f"save() works with the standard pickle alone; pickle_module is ({module.__name__}). Pickle with that "
            "module yourself, or leave it out."
        )


def load_from(
    f: Any, map_location: Any, weights_only: bool, mapped: Any, encoding: str, pickle_module: Any = None
) -> Any:
    """What mica.load() does with a path or an open file."""
    if hasattr(f, "read") and not (hasattr(f, "seek") and hasattr(f, "tell")):
        raise AttributeError(
            f"The file ({type(f).__name__}) has no seek() or no tell(). You can only torch.load from a file that is "
            "seekable. Please pre-load the data into a buffer like io.BytesIO and try to load from it instead."
        )
    mapped = bool(mapped)
    if mapped and hasattr(f, "read"):
        raise ValueError("mmap=True needs a path: the file that was given is open already.")
    if map_location is None:
        default = mica.get_default_device() if hasattr(mica, "get_default_device") else None
        map_location = default if default is not None and default.type not in ("cpu", "meta") else None
    name = os.fspath(f) if isinstance(f, (str, os.PathLike)) else getattr(f, "name", type(f).__name__)
    with _opened(f) as file:
        source = file if _is_seekable(file) else io.BytesIO(file.read())
        start = source.tell()
        head = source.read(512)
        source.seek(start)
        if head[:4] != b"PK\3\4":
            return _older(
                source, head, map_location, weights_only, mapped, str(name), encoding, pickle_module
            )
        if start:
            source = io.BytesIO(source.read())
        archive = reading.Archive(source, map_location, mapped, str(name))
        archive.pickle_module = pickle_module or pickle
        return archive.load(weights_only, encoding)


def _older(
    file: Any,
    head: bytes,
    map_location: Any,
    weights_only: bool,
    mapped: bool,
    name: str,
    encoding: str,
    pickle_module: Any,
) -> Any:
    """A file of torch before zip, or a plain pickle, as Mica's first versions wrote it."""
    from mica.serialization import _legacy_reader as _checkpoint_legacy

    if head[257:262] == b"ustar":
        raise Refused(
            f"The file ({name}) is a tar archive, as torch before 0.1.10 wrote checkpoints; Mica does not read these. "
            "Load it with a later torch and save it again."
        )
    if _checkpoint_legacy.begins_with_magic(head[:32]):
        if mapped:
            raise RuntimeError(
                f"mmap=True needs a zip checkpoint; the file ({name}) has the format before zip. Load it without mmap "
                "and save it again."
            )
        legacy = _checkpoint_legacy.Legacy(file, map_location, name)
        legacy.pickle_module = pickle_module or pickle
        return legacy.load(weights_only, encoding)
    from mica.serialization._plain_reader import load_file

    return load_file(file, weights_only, map_location, name)
