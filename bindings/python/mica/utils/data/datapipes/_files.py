"""Pipes of files: their names, the open files, and what stands in them."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterator
from typing import Any

from mica.utils.data._datapipe import IterDataPipe, functional_datapipe


def _names(root: str, recursive: bool, in_order: bool) -> Iterator[str]:
    if os.path.isfile(root):
        yield root
        return

    def refuse(error: OSError) -> None:
        raise error

    for folder, folders, files in os.walk(root, onerror=refuse):
        if in_order:
            files.sort()
            folders.sort()
        for name in files:
            yield os.path.join(folder, name)
        if not recursive:
            break


class _Sized(IterDataPipe):
    length = -1

    def __len__(self) -> int:
        if self.length == -1:
            raise TypeError(f"{type(self).__name__} instance doesn't have valid length")
        return self.length


@functional_datapipe("list_files")
class FileLister(_Sized):
    """A pipe of the names of files below folders; the method `list_files()` of a pipe of folders.

    As `torch.utils.data.datapipes.iter.FileLister`.

    Args:
        root (str or iterable of str): The folders; a file gives itself. Default: ".".
        masks (str or list of str): Patterns of names, `"*.png"`; one must fit. Default: "", all.
        recursive (bool): Goes into folders of folders. Default: False.
        abspath (bool): Gives absolute paths. Default: False.
        non_deterministic (bool): Gives names as the system does, not sorted. Default: False.
        length (int): What `len()` says; -1 for TypeError. Default: -1.

    Example:
        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     pathlib.Path(folder, "a.txt").touch()
        ...     pipe = mica.utils.data.datapipes.iter.FileLister(folder, "*.txt")
        ...     [pathlib.Path(name).name for name in pipe]
        ['a.txt']
    """

    def __init__(
        self,
        root: Any = ".",
        masks: str | list[str] = "",
        *,
        recursive: bool = False,
        abspath: bool = False,
        non_deterministic: bool = False,
        length: int = -1,
    ) -> None:
        self.datapipe = [root] if isinstance(root, str) else root
        self.masks = [masks] if isinstance(masks, str) else masks
        self.recursive, self.abspath = recursive, abspath
        self.non_deterministic, self.length = non_deterministic, length

    def __iter__(self) -> Iterator[str]:
        for root in self.datapipe:
            for path in _names(root, self.recursive, not self.non_deterministic):
                name = os.path.basename(path)
                if any(not mask or fnmatch.fnmatch(name, mask) for mask in self.masks or [""]):
                    yield os.path.abspath(path) if self.abspath else path


@functional_datapipe("open_files")
class FileOpener(_Sized):
    """A pipe of pairs of a file's name and the open file; the method `open_files()` of a pipe of names.

    As `torch.utils.data.datapipes.iter.FileOpener`. Who reads a file closes it.

    Args:
        datapipe (iterable of str): The names of the files.
        mode (str): "r", "t" or "rt" for texts, "b" or "rb" for bytes. Default: "r".
        encoding (str, optional): Encoding of text files. Default: the system's.
        length (int): What `len()` says; -1 for TypeError. Default: -1.

    Raises:
        ValueError: The mode is another, or bytes have an encoding.

    Example:
        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = pathlib.Path(folder, "a.txt").write_text("hello")
        ...     pipe = mica.utils.data.datapipes.iter.FileLister(folder).open_files()
        ...     [text for name, text in pipe.read_from_stream()]
        ['hello']
    """

    def __init__(self, datapipe: Any, mode: str = "r", encoding: str | None = None, length: int = -1) -> None:
        if mode not in ("b", "t", "rb", "rt", "r"):
            raise ValueError(f"Invalid mode {mode}")
        if "b" in mode and encoding is not None:
            raise ValueError("binary mode doesn't take an encoding argument")
        self.datapipe, self.mode, self.encoding, self.length = datapipe, mode, encoding, length

    def __iter__(self) -> Iterator[Any]:
        mode = self.mode if self.mode.startswith("r") else "r" + self.mode
        for name in self.datapipe:
            yield name, open(name, mode, encoding=self.encoding)  # noqa: SIM115  (who reads it closes it)


@functional_datapipe("read_from_stream")
class StreamReader(IterDataPipe):
    """A pipe of pairs of a name and what the open file has; the method `read_from_stream()`.

    As `torch.utils.data.datapipes.iter.StreamReader`.

    Args:
        datapipe (iterable): Pairs of a name and an open file, which is closed at its end.
        chunk (int, optional): Bytes, or characters, of a piece. Default: None, all at once.

    Example:
        >>> import io
        >>> pipe = mica.utils.data.datapipes.iter.StreamReader([("a", io.StringIO("hello"))], chunk=3)
        >>> list(pipe)
        [('a', 'hel'), ('a', 'lo')]
    """

    def __init__(self, datapipe: Any, chunk: int | None = None) -> None:
        self.datapipe, self.chunk = datapipe, chunk

    def __iter__(self) -> Iterator[Any]:
        for name, stream in self.datapipe:
            while content := stream.read(self.chunk):
                yield name, content
            stream.close()
