"""mica.serialization: saving and loading, and the globals that a checkpoint may refer to."""

from __future__ import annotations

import io
import os
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import mica
from mica.serialization import (
    _atomic_file,
    _legacy_reader,
    _legacy_writer,
    _plain_reader,
    _zip_reader,
    _zip_writer,
)
from mica.serialization._locations import (
    default_restore_location as default_restore_location,
    location_tag as location_tag,
    register_package as register_package,
)
from mica.serialization._pickle.machine import Refused
from mica.serialization._settings import (
    MAP_PRIVATE as MAP_PRIVATE,
    MAP_SHARED as MAP_SHARED,
    LoadEndianness as LoadEndianness,
    get_crc32_options as get_crc32_options,
    get_default_load_endianness as get_default_load_endianness,
    get_default_mmap_options as get_default_mmap_options,
    set_crc32_options as set_crc32_options,
    set_default_load_endianness as set_default_load_endianness,
    set_default_mmap_options as set_default_mmap_options,
)

MAP_LOCATION = Callable[[Any, str], Any] | mica.device | str | dict[str, str] | None
STORAGE = Any
DEFAULT_PROTOCOL = 2
MAGIC_NUMBER, PROTOCOL_VERSION = _legacy_reader.MAGIC, _legacy_reader.PROTOCOL  # of the format before zip
STORAGE_KEY_SEPARATOR = ","


class SourceChangeWarning(Warning):
    """Never given: Mica does not compare the sources of classes with those in a file."""


def _path_of(item: Any) -> tuple[str, Any]:
    obj, path = item if isinstance(item, tuple) else (item, f"{item.__module__}.{item.__qualname__}")
    return path, obj


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Lets checkpoints refer to these classes or functions, for the rest of the program.

    As `torch.serialization.add_safe_globals`. `load()` builds nothing else that is not Mica's own.

    Args:
        safe_globals (list): Classes or functions, or pairs `(object, "its.name.in.files")`.

    Raises:
        ValueError: A tuple is no such pair.

    Example:
        >>> import fractions
        >>> mica.serialization.add_safe_globals([fractions.Fraction])
        >>> mica.serialization.get_safe_globals()
        [<class 'fractions.Fraction'>]
        >>> mica.serialization.clear_safe_globals()
    """
    for item in safe_globals:
        if isinstance(item, tuple) and (len(item) != 2 or not isinstance(item[1], str)):
            raise ValueError(f"Expected a pair of an object and its name in files, but got ({item!r:.80}).")
        path, obj = _path_of(item)
        _zip_reader.safe_globals[path] = obj


def get_safe_globals() -> list[Any]:
    """Lists what `add_safe_globals()` allowed.

    As `torch.serialization.get_safe_globals`.

    Returns:
        list: The classes and functions.

    Example:
        >>> mica.serialization.get_safe_globals()
        []
    """
    return list(_zip_reader.safe_globals.values())


def clear_safe_globals() -> None:
    """Takes back what `add_safe_globals()` allowed.

    As `torch.serialization.clear_safe_globals`.

    Example:
        >>> mica.serialization.clear_safe_globals()
    """
    _zip_reader.safe_globals.clear()


@contextmanager
def safe_globals(safe_globals: list[Any]) -> Iterator[None]:
    """A block in which checkpoints may refer to these classes or functions.

    As `torch.serialization.safe_globals`.

    Args:
        safe_globals (list): Classes or functions, or pairs `(object, "its.name.in.files")`.

    Yields:
        None: The block runs.

    Raises:
        ValueError: A tuple is no such pair.

    Example:
        >>> import fractions, io
        >>> file = io.BytesIO()
        >>> mica.save(fractions.Fraction(2, 3), file)
        >>> start = file.seek(0)
        >>> with mica.serialization.safe_globals([fractions.Fraction]):
        ...     mica.load(file)
        Fraction(2, 3)
    """
    before = dict(_zip_reader.safe_globals)
    add_safe_globals(safe_globals)
    try:
        yield
    finally:
        _zip_reader.safe_globals.clear()
        _zip_reader.safe_globals.update(before)


def get_unsafe_globals_in_checkpoint(f: Any) -> list[str]:
    """Lists the names in a checkpoint that `load(weights_only=True)` refuses, without running anything of it.

    As `torch.serialization.get_unsafe_globals_in_checkpoint`.

    Args:
        f (str, path or file): The checkpoint, a zip file.

    Returns:
        list of str: The names, sorted: "fractions.Fraction".

    Example:
        >>> import fractions, io
        >>> file = io.BytesIO()
        >>> mica.save(fractions.Fraction(2, 3), file)
        >>> start = file.seek(0)
        >>> mica.serialization.get_unsafe_globals_in_checkpoint(file)
        ['fractions.Fraction']
    """
    with _opened(f) as file:
        content = _zip_reader.Archive(file, "cpu", False, str(f)).content("data.pkl")
    survey = _legacy_reader.Survey(content, str(f))
    survey.load()
    return sorted(name for name in survey.names if not _zip_reader.is_allowed(name))


class skip_data:  # noqa: N801  (torch's name: a context)
    """Refused: Mica writes no checkpoints without their storages' bytes.

    Save tensors of the device meta for their shapes alone.

    Args:
        materialize_fake_tensors (bool): Ignored. Default: False.

    Raises:
        NotImplementedError: Always.

    Example:
        >>> try:
        ...     mica.serialization.skip_data()
        ... except NotImplementedError as error:
        ...     print(error)
        mica.save() writes storages whole; save tensors of the device meta for their shapes alone.
    """

    def __init__(self, materialize_fake_tensors: bool = False) -> None:
        raise NotImplementedError(
            "mica.save() writes storages whole; save tensors of the device meta for their shapes alone."
        )


def save(
    obj: Any,
    f: Any,
    pickle_module: Any = None,
    pickle_protocol: int = 2,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Writes tensors, and containers and objects that hold them, to a file.

    As `torch.save`; torch reads the file, and `load()` reads torch's. Tensors that share memory share it when
    they are loaded. An old file at the path stays as it was until the new one is whole.

    Args:
        obj (Any): What is written: a tensor, a module's `state_dict()`, whatever can be pickled.
        f (str, path or file): Where; a file is open for writing bytes, and written from where it stands.
        pickle_module (module, optional): Must be the standard `pickle`, or None. Default: None.
        pickle_protocol (int): Pickle's protocol; readers with `weights_only` want 2. Default: 2.

    Raises:
        RuntimeError: The path's folder does not exist.
        AttributeError: `f` is neither a path nor a file.
        pickle.PicklingError: An object cannot be pickled, a lambda for instance.
        NotImplementedError: `pickle_module` is another one.

    Example:
        >>> import io
        >>> file = io.BytesIO()
        >>> mica.save({"weight": mica.ones(2), "epoch": 3}, file)
        >>> start = file.seek(0)
        >>> mica.load(file)
        {'weight': tensor([1., 1.]), 'epoch': 3}
    """
    _only_pickle(pickle_module)
    write = _zip_writer.write if _use_new_zipfile_serialization else _legacy_writer.write
    if hasattr(f, "__fspath__") or isinstance(f, (str, bytes)):
        root = Path(os.fsdecode(os.path.realpath(f))).stem or "archive"
        _atomic_file.save_file(f, lambda file: write(obj, file, pickle_protocol, root))
        return
    if not callable(getattr(f, "write", None)):
        kind = TypeError if hasattr(f, "write") else AttributeError
        raise kind(
            f"save() takes a path or an open file; a value of type ({type(f).__name__}) has no write()."
        )
    write(obj, f, pickle_protocol, "archive")
    if hasattr(f, "flush"):  # who reads the file by its name next finds all of it
        f.flush()


def load(
    f: Any,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Reads what `save()` or `torch.save` wrote.

    As `torch.load`. Unless `weights_only` is False, nothing but tensors, plain containers and what
    `add_safe_globals()` allows is built, so that a stranger's file runs no code.

    Args:
        f (str, path or file): The checkpoint; a file is open for reading bytes, with `seek()`.
        map_location (str, device, dict or callable, optional): Where tensors go: a device for all; a dict
            from the names of devices in the file to others; or `map_location(storage, name)`, which
            returns the storage at its place, or None to leave it to Mica. Default: None, the device
            that each was saved from.
        pickle_module (module, optional): Unpickles if `weights_only` is false. Default: None, `pickle`.
        weights_only (bool, optional): Builds tensors and plain containers alone. Default: None, True
            unless a `pickle_module` is given.
        mmap (bool, optional): Maps the file at a path, so that a tensor's bytes are read as they are
            used. Default: None, they are read now.
        **pickle_load_args (Any): `encoding` of the texts of Python 2 in a file; `errors`, `fix_imports`
            and `buffers` are ignored.

    Returns:
        Any: What was saved.

    Raises:
        pickle.UnpicklingError: The file is no checkpoint, is damaged, or refers to something that
            `weights_only` refuses; the message names it.
        RuntimeError: A tensor's device is not there; give `map_location="cpu"`.
        ValueError: `mmap` is true and `f` is no path.
        FileNotFoundError: There is no file.

    Example:
        >>> import io
        >>> file = io.BytesIO()
        >>> mica.save(mica.arange(3), file)
        >>> start = file.seek(0)
        >>> mica.load(file, map_location="cpu")
        tensor([0, 1, 2])
    """
    unknown = set(pickle_load_args) - {"encoding", "errors", "fix_imports", "buffers"}
    if unknown:
        raise TypeError(f"load() got an unexpected keyword argument '{sorted(unknown)[0]}'")
    if weights_only and pickle_module is not None:
        raise RuntimeError("weights_only=True reads with an unpickler of its own: leave pickle_module out.")
    if weights_only is None:
        weights_only = pickle_module is None
    encoding = pickle_load_args.get("encoding", "utf-8")
    return _load_from(f, map_location, weights_only, mmap, encoding, pickle_module)


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


def _only_pickle(module: Any) -> None:
    """Refuses a pickle module that save() would not use."""
    if getattr(module, "__name__", "pickle") not in ("pickle", "_pickle"):
        raise NotImplementedError(
            f"save() works with the standard pickle alone; pickle_module is ({module.__name__}). Pickle with that "
            "module yourself, or leave it out."
        )


def _load_from(
    f: Any, map_location: Any, weights_only: bool, mapped: Any, encoding: str, pickle_module: Any = None
) -> Any:
    """What load() does with a path or an open file."""
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
        archive = _zip_reader.Archive(source, map_location, mapped, str(name))
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
    if head[257:262] == b"ustar":
        raise Refused(
            f"The file ({name}) is a tar archive, as torch before 0.1.10 wrote checkpoints; Mica does not read these. "
            "Load it with a later torch and save it again."
        )
    if _legacy_reader.begins_with_magic(head[:32]):
        if mapped:
            raise RuntimeError(
                f"mmap=True needs a zip checkpoint; the file ({name}) has the format before zip. Load it without mmap "
                "and save it again."
            )
        legacy = _legacy_reader.Legacy(file, map_location, name)
        legacy.pickle_module = pickle_module or pickle
        return legacy.load(weights_only, encoding)
    return _plain_reader.load_file(file, weights_only, map_location, name)
