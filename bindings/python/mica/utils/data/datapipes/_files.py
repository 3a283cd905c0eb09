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
    """The names of the files below folders that fit a mask."""

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
    """Pairs of a name and the open file."""

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
    """Pairs of a name and what the open file has, in pieces of `chunk` if that is given."""

    def __init__(self, datapipe: Any, chunk: int | None = None) -> None:
        self.datapipe, self.chunk = datapipe, chunk

    def __iter__(self) -> Iterator[Any]:
        for name, stream in self.datapipe:
            while content := stream.read(self.chunk):
                yield name, content
            stream.close()
