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
    """A pipe of a sequence's or mapping's elements, read by index: where a chain of pipes begins.

    As `torch.utils.data.datapipes.map.SequenceWrapper`.

    Args:
        sequence (sequence or mapping): What the elements are taken from, by index or key.
        deepcopy (bool): Copies them first, so that what later pipes do to them stays out of it. Default: True.

    Example:
        >>> pipe = mica.utils.data.datapipes.map.SequenceWrapper(["a", "b"])
        >>> pipe[1], len(pipe)
        ('b', 2)
    """

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
    """A pipe of what a function makes of each element; the method `map()`.

    As `torch.utils.data.datapipes.map.Mapper`.

    Args:
        datapipe (MapDataPipe): The pipe whose elements come in.
        fn (callable): `fn(element)`.

    Example:
        >>> mica.utils.data.datapipes.map.SequenceWrapper([1, 2]).map(lambda n: n * 10)[1]
        20
    """

    def __init__(self, datapipe: Any, fn: Callable[[Any], Any]) -> None:
        self.datapipe, self.fn = datapipe, fn

    def __getitem__(self, index: Any) -> Any:
        return self.fn(self.datapipe[index])

    def __len__(self) -> int:
        return len(self.datapipe)


@functional_datapipe("batch")
class Batcher(Chunks, MapDataPipe):
    """A pipe of chunks of elements; the method `batch()`.

    As `torch.utils.data.datapipes.map.Batcher`.

    Args:
        datapipe (MapDataPipe): The pipe whose elements come in.
        batch_size (int): Elements in a chunk.
        drop_last (bool): Leaves out the last chunk if it is smaller than the others. Default: False.
        wrapper_class (callable): Makes a chunk of a list. Default: `DataChunk`.

    Raises:
        AssertionError: The size is not positive.

    Example:
        >>> mica.utils.data.datapipes.map.SequenceWrapper([1, 2, 3]).batch(2)[1]
        [3]
    """

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
    """A pipe of several pipes, one after the other; the method `concat()`.

    As `torch.utils.data.datapipes.map.Concater`.

    Args:
        *datapipes (MapDataPipe): The pipes, at least one.

    Raises:
        ValueError: There is none.
        TypeError: One is no `MapDataPipe`.

    Example:
        >>> wrap = mica.utils.data.datapipes.map.SequenceWrapper
        >>> wrap([1, 2]).concat(wrap([3]))[2]
        3
    """

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
    """A pipe of tuples of the elements of each pipe at an index; the method `zip()`.

    As `torch.utils.data.datapipes.map.Zipper`.

    Args:
        *datapipes (MapDataPipe): The pipes, at least one; the shortest decides on the length.

    Raises:
        ValueError: There is none.
        TypeError: One is no `MapDataPipe`.

    Example:
        >>> wrap = mica.utils.data.datapipes.map.SequenceWrapper
        >>> wrap([1, 2]).zip(wrap(["a", "b"]))[1]
        (2, 'b')
    """

    def __getitem__(self, index: int) -> Any:
        return tuple(pipe[index] for pipe in self.datapipes)

    def __len__(self) -> int:
        return min(len(pipe) for pipe in self.datapipes)


class Shuffler(_Random):
    """A pipe of the elements of an indexed pipe in random order, read as a stream; the method `shuffle()`.

    As `torch.utils.data.datapipes.map.Shuffler`. The order comes from the default generator (`mica.manual_seed`), anew in each
    pass; `set_seed(n)` fixes the next pass, `set_shuffle(False)` keeps the order.

    Args:
        datapipe (MapDataPipe): The pipe whose elements come in.
        indices (sequence, optional): The indices that are shuffled. Default: None, all.

    Example:
        >>> sorted(mica.utils.data.datapipes.map.SequenceWrapper([1, 2, 3]).shuffle())
        [1, 2, 3]
    """

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
