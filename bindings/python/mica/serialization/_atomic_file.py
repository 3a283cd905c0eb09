"""Writes a file so that nothing is lost: the old one stays until the new one is whole.

A regular file is written without a name, or beside the old one under a hidden name, and takes its place in
one step, with its mode, owner and attributes. What cannot be replaced so is written in place, as any program
does, and only once all its bytes are there: a device, a FIFO, a pipe (as /dev/stdout), a file with several
names or none, one in a folder that is not writable. What the process may not write it does not replace.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import stat

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
    path = os.fspath(path)
    target = os.path.realpath(path)
    folder = os.path.dirname(target)
    try:
        old = os.stat(path)  # by the path, as that of /dev/stdout leads to a pipe that has no other
    except (FileNotFoundError, NotADirectoryError):
        old = None
    if old is None:
        if not os.path.isdir(folder):
            raise RuntimeError(f"Parent directory {os.fsdecode(folder)} does not exist.")
    elif stat.S_ISDIR(old.st_mode):
        raise IsADirectoryError(errno.EISDIR, "A folder cannot be written as a file", target)
    elif not stat.S_ISREG(old.st_mode) or old.st_nlink != 1:
        _in_place(path, write)
        return
    else:
        os.close(_open(path))  # a file that is protected stays
    try:
        with _fresh(os.fsdecode(folder), os.fsdecode(os.path.basename(target)), old) as (file, place):
            write(file)
            file.flush()
            if old is not None:
                _take_over(file.fileno(), old, target)
            os.fsync(file.fileno())
            place(os.fsdecode(target))
    except (PermissionError, _KeepsOwnerError):
        if old is None:
            raise
        _in_place(path, write)


def _open(path: Any) -> int:
    return os.open(path, os.O_WRONLY | getattr(os, "O_CLOEXEC", 0))


def _in_place(path: Any, write: Callable[[Any], None]) -> None:
    """Over the old bytes, after all new ones are made; a device and a FIFO take them as they come."""
    held = io.BytesIO()
    write(held)
    with open(_open(path), "wb") as file:
        file.write(held.getbuffer())
        if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            file.truncate()
            os.fsync(file.fileno())


@contextlib.contextmanager
def _fresh(folder: str, name: str, old: os.stat_result | None) -> Iterator[tuple[Any, Callable[[str], None]]]:
    """A new file of the folder, and what gives it its place; gone if that is not called.

    A new one gets the mode that the system gives any; one that replaces another is private until it has that one's.
    """
    mode = 0o666 if old is None else 0o600
    try:
        unnamed = os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, mode)
        if not os.path.exists("/proc/self/fd"):  # by which it is given a name
            os.close(unnamed)
            raise OSError(errno.EOPNOTSUPP, "No /proc")
    except (AttributeError, OSError) as error:
        if isinstance(error, OSError) and error.errno not in _NO_UNNAMED:
            raise
        with _named(folder, name, mode) as fresh:
            yield fresh
        return
    with open(unnamed, "w+b") as file:

        def place(target: str) -> None:
            with contextlib.suppress(FileExistsError):
                _link(file.fileno(), target)
                return
            # A name for the moment before the file takes the old one's place, which a link cannot.
            _sweep(folder, name)
            beside = os.path.join(folder, _hidden(name))
            _link(file.fileno(), beside)
            _replace(beside, target)

        yield file, place


def _link(file: int, path: str) -> None:
    # With a folder's descriptor, which an absolute path makes no use of, Python follows the link of /proc.
    os.link(f"/proc/self/fd/{file}", path, src_dir_fd=file, follow_symlinks=True)


@contextlib.contextmanager
def _named(folder: str, name: str, mode: int) -> Iterator[tuple[Any, Callable[[str], None]]]:
    """The same under a hidden name from the beginning."""
    _sweep(folder, name)
    beside = os.path.join(folder, _hidden(name))
    handle = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), mode)
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


def _prefix(name: str) -> str:
    """What the hidden names beside a file begin with; a long name is cut, as a folder's names have a limit."""
    while len(os.fsencode(name)) > 150:
        name = name[:-1]
    return f".{name}."


def _hidden(name: str) -> str:
    """A hidden name that tells the process, and that no other thread of it takes."""
    pid = os.getpid()
    return f"{_prefix(name)}{pid}-{_start(pid)}-{_machine()}.{os.urandom(4).hex()}.part"


def _machine() -> str:
    """What tells processes of one number: the machine since it started, and the container."""
    with contextlib.suppress(OSError), open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return f"{file.read(8)}{os.stat('/proc/self/ns/pid').st_ino:x}"
    return "0"


def _start(pid: int) -> str:
    """When the process began, which tells it from a later one of its number; "0" where nothing says it."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return "0"


def _sweep(folder: str, name: str) -> None:
    """Removes what processes that were killed left beside the file."""
    prefix, here = _prefix(name), _machine()
    for entry in os.listdir(folder):
        if not (entry.startswith(prefix) and entry.endswith(".part")):
            continue
        pid, began, where = (*entry[len(prefix) :].split(".")[0].split("-"), "", "")[:3]
        if where == here and pid.isdecimal() and began.isdecimal() and _start(int(pid)) != began:
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(folder, entry))


def _take_over(file: int, old: os.stat_result, path: Any) -> None:
    """Owner, attributes (of users, and lists of who may do what) and mode of the old file."""
    mine = os.fstat(file)
    if (mine.st_uid, mine.st_gid) != (old.st_uid, old.st_gid):
        try:
            os.fchown(file, old.st_uid, old.st_gid)
        except OSError as error:
            raise _KeepsOwnerError from error
    for name in _attributes(path):
        with contextlib.suppress(OSError):  # one that the system alone gives
            os.setxattr(file, name, os.getxattr(path, name))
    os.fchmod(file, stat.S_IMODE(old.st_mode))


def _attributes(path: Any) -> list[str]:
    with contextlib.suppress(OSError, AttributeError):  # a file system or a system without them
        return os.listxattr(path)
    return []
