"""mica.serialization: saving and loading, and the globals that a checkpoint may refer to."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import mica
from mica import _checkpoint_read as reading
from mica._functions import load as load, save as save

MAP_LOCATION = Callable[[Any, str], Any] | mica.device | str | dict[str, str] | None
STORAGE = Any
DEFAULT_PROTOCOL = 2


def _path_of(item: Any) -> tuple[str, Any]:
    obj, path = item if isinstance(item, tuple) else (item, f"{item.__module__}.{item.__qualname__}")
    return path, obj


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Lets checkpoints refer to these classes or functions, or (object, "its.name.in.files")."""
    for item in safe_globals:
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
    import pickletools

    with _opened(f) as file:
        archive = reading.Archive(file, "cpu", False, str(f))
        content = archive.content("data.pkl")
    names = {str(arg).replace(" ", ".") for op, arg, _ in pickletools.genops(content) if op.name == "GLOBAL"}
    return sorted(n for n in names if reading._known(n) is None)


def default_restore_location(storage: Any, location: Any) -> Any:
    """The storage on a device."""
    return type(storage)(storage._flat.to(mica.device(location)))


@contextmanager
def _opened(f: Any) -> Iterator[Any]:
    if hasattr(f, "read"):
        yield f
        return
    with open(f, "rb") as file:
        yield file


def load_from(f: Any, map_location: Any, weights_only: bool, mapped: bool) -> Any:
    """What mica.load() does with a path or an open file."""
    if mapped and hasattr(f, "read"):
        raise ValueError("mmap=True needs a path: the file that was given is open already.")
    if map_location is None:
        default = mica.get_default_device() if hasattr(mica, "get_default_device") else None
        map_location = default if default is not None and default.type not in ("cpu", "meta") else None
    name = os.fspath(f) if isinstance(f, (str, os.PathLike)) else getattr(f, "name", type(f).__name__)
    with _opened(f) as file:
        source = file if hasattr(file, "seek") else io.BytesIO(file.read())
        start = source.tell()
        head = source.read(4)
        source.seek(start)
        if head != b"PK\3\4":
            return _older(source, map_location, weights_only, str(name))
        if start:
            source = io.BytesIO(source.read())
        return reading.Archive(source, map_location, mapped, str(name)).load(weights_only)


def _older(file: Any, map_location: Any, weights_only: bool, name: str) -> Any:
    """A plain pickle, as Mica's first versions wrote it."""
    from mica._unpickle import load_file
    from mica.utils._tree import map_tensors

    obj = load_file(file, weights_only)
    return obj if map_location is None else map_tensors(obj, lambda t: t.to(map_location))
