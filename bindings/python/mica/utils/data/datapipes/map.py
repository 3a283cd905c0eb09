"""Pipes that are indexed, under torch's names, and their methods."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from mica.utils.data._datapipe import MapDataPipe, functional_datapipe
from mica.utils.data.datapipes._chunks import Chunks
from mica.utils.data.datapipes.iter import _Random


class SequenceWrapper(MapDataPipe):
    """The elements of a sequence or mapping, copied first."""

    def __init__(self, sequence: Any, deepcopy: bool = True) -> None:
        self.sequence = sequence
        if deepcopy:
            try:
                self.sequence = copy.deepcopy(sequence)
            except TypeError:
                warnings.warn(
                    "The input sequence can not be deepcopied; what is changed in place changes it too.",
                    stacklevel=2,
                )

    def __getitem__(self, index: Any) -> Any:
        return self.sequence[index]

    def __len__(self) -> int:
        return len(self.sequence)


@functional_datapipe("map")
class Mapper(MapDataPipe):
    """fn(element)."""

    def __init__(self, datapipe: Any, fn: Callable[[Any], Any]) -> None:
        self.datapipe, self.fn = datapipe, fn

    def __getitem__(self, index: Any) -> Any:
        return self.fn(self.datapipe[index])

    def __len__(self) -> int:
        return len(self.datapipe)


@functional_datapipe("batch")
class Batcher(Chunks, MapDataPipe):
    """Elements in chunks of a size."""

    def __getitem__(self, index: int) -> Any:
        if not 0 <= index < len(self):
            raise IndexError(f"Index {index} is out of bound.")
        first = index * self.batch_size
        last = min(first + self.batch_size, len(self.datapipe))
        return self.wrapper_class([self.datapipe[i] for i in range(first, last)])


class _Joined(MapDataPipe):
    def __init__(self, *datapipes: Any) -> None:
        if not datapipes:
            raise ValueError("Expected at least one DataPipe, but got nothing.")
        if not all(isinstance(pipe, MapDataPipe) for pipe in datapipes):
            raise TypeError("Expected all inputs to be `MapDataPipe`.")
        self.datapipes = datapipes


@functional_datapipe("concat")
class Concater(_Joined):
    """Pipes one after the other."""

    def __getitem__(self, index: int) -> Any:
        offset = 0
        for pipe in self.datapipes:
            if index - offset < len(pipe):
                return pipe[index - offset]
            offset += len(pipe)
        raise IndexError(f"Index {index} is out of range.")

    def __len__(self) -> int:
        return sum(len(pipe) for pipe in self.datapipes)


@functional_datapipe("zip")
class Zipper(_Joined):
    """Tuples of the elements of each pipe at an index."""

    def __getitem__(self, index: int) -> Any:
        return tuple(pipe[index] for pipe in self.datapipes)

    def __len__(self) -> int:
        return min(len(pipe) for pipe in self.datapipes)


class Shuffler(_Random):
    """The elements in random order: a pipe that is iterated over."""

    def __init__(self, datapipe: Any, *, indices: Sequence[Any] | None = None) -> None:
        self.datapipe = datapipe
        self.indices = list(range(len(datapipe))) if indices is None else list(indices)
        self._order = self.indices

    def reset(self) -> None:
        self._order = self._begin_pass().sample(self.indices, len(self.indices))

    def __iter__(self) -> Iterator[Any]:
        for index in reversed(self._order) if self._enabled else self.indices:
            yield self.datapipe[index]


MapDataPipe.register_datapipe_as_function("shuffle", Shuffler)
__all__ = ["Batcher", "Concater", "Mapper", "SequenceWrapper", "Shuffler", "Zipper"]
