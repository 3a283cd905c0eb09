"""Writes a file so that nothing is lost: the old one stays until the new one is whole.

A regular file is written without a name, or beside the old one under a hidden name, and takes its place in
one step, with its mode and owner. What cannot be replaced so is written in place, as any program does, and
only once all its bytes are there: a device, a FIFO, a file with several names, one in a folder that is not
writable.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import stat
import tempfile

TYPE_CHECKING = False  # importing typing takes as long as all of mica
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

# What a file system without unnamed files says.
_NO_UNNAMED = (errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT, errno.EINVAL)


class _KeepsOwnerError(Exception):
    """Another user's file, whose place a file of ours would take."""


def save_file(path: Any, write: Callable[[Any], None]) -> None:
    """Calls `write` with a binary file, and puts what that wrote at `path`."""
    target = os.path.realpath(os.fspath(path))
    folder = os.path.dirname(target)
    if not os.path.isdir(folder):
        raise RuntimeError(f"Parent directory {folder} does not exist.")
    try:
        old = os.stat(target)
    except FileNotFoundError:
        old = None
    if old is not None and stat.S_ISDIR(old.st_mode):
        raise IsADirectoryError(errno.EISDIR, "A folder cannot be written as a file", target)
    if old is not None and (not stat.S_ISREG(old.st_mode) or old.st_nlink > 1):
        _in_place(target, write)
        return
    try:
        with _fresh(folder, os.path.basename(target)) as (file, place):
            write(file)
            file.flush()
            _take_over(file.fileno(), old)
            os.fsync(file.fileno())
            place(target)
    except (PermissionError, _KeepsOwnerError):
        if old is None or not os.access(target, os.W_OK):
            raise
        _in_place(target, write)


def _in_place(target: str, write: Callable[[Any], None]) -> None:
    """Over the old bytes, after all new ones are made; a device and a FIFO take them as they come."""
    held = io.BytesIO()
    write(held)
    with open(os.open(target, os.O_WRONLY | getattr(os, "O_CLOEXEC", 0)), "wb") as file:
        file.write(held.getbuffer())
        if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            file.truncate()
            os.fsync(file.fileno())


@contextlib.contextmanager
def _fresh(folder: str, name: str) -> Iterator[tuple[Any, Callable[[str], None]]]:
    """A new file of the folder, and what gives it its place; gone if that is not called."""
    try:
        unnamed = os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except (AttributeError, OSError) as error:
        if isinstance(error, OSError) and error.errno not in _NO_UNNAMED:
            raise
        with _named(folder, name) as fresh:
            yield fresh
        return
    with open(unnamed, "w+b") as file:

        def place(target: str) -> None:
            with contextlib.suppress(FileExistsError):
                _link(file.fileno(), target)
                return
            # A name for the moment before the file takes the old one's place, which a link cannot.
            _sweep(folder, name)
            beside = os.path.join(folder, f".{name}.{os.getpid()}-{_start(os.getpid())}.part")
            _link(file.fileno(), beside)
            _replace(beside, target)

        yield file, place


def _link(file: int, path: str) -> None:
    # With a folder's descriptor, which an absolute path makes no use of, Python follows the link of /proc.
    os.link(f"/proc/self/fd/{file}", path, src_dir_fd=file, follow_symlinks=True)


@contextlib.contextmanager
def _named(folder: str, name: str) -> Iterator[tuple[Any, Callable[[str], None]]]:
    """The same under a hidden name from the beginning."""
    _sweep(folder, name)
    mark = f".{name}.{os.getpid()}-{_start(os.getpid())}."
    handle, beside = tempfile.mkstemp(prefix=mark, suffix=".part", dir=folder)
    try:
        with open(handle, "w+b") as file:
            yield file, lambda target: _replace(beside, target)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(beside)


def _replace(beside: str, target: str) -> None:
    try:
        os.replace(beside, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(beside)
        raise


def _start(pid: int) -> str:
    """When the process began, which tells it from a later one of its number; "0" where nothing says it."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return "0"


def _sweep(folder: str, name: str) -> None:
    """Removes what processes that were killed left beside the file."""
    for entry in os.listdir(folder):
        if not (entry.startswith(f".{name}.") and entry.endswith(".part")):
            continue
        pid, _, began = entry[len(name) + 2 :].split(".")[0].partition("-")
        if pid.isdigit() and began.isdigit() and _start(int(pid)) != began:
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(folder, entry))


def _take_over(file: int, old: os.stat_result | None) -> None:
    """Mode and owner of the old file; of a new one what the process gives its files."""
    if old is None:
        os.fchmod(file, 0o666 & ~_umask())
        return
    mine = os.fstat(file)
    if (mine.st_uid, mine.st_gid) != (old.st_uid, old.st_gid):
        try:
            os.fchown(file, old.st_uid, old.st_gid)
        except OSError as error:
            raise _KeepsOwnerError from error
    os.fchmod(file, stat.S_IMODE(old.st_mode))


def _umask() -> int:
    """The process's, read without setting it, which another thread's new file would meet."""
    with contextlib.suppress(OSError), open("/proc/self/status", encoding="utf-8") as file:
        for line in file:
            if line.startswith("Umask:"):
                return int(line.split()[1], 8)
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
