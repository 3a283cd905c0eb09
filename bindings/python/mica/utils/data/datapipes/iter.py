"""Pipes that are iterated over, under torch's names, and their methods: `pipe.map(f)` is Mapper(pipe, f)."""

from __future__ import annotations

import copy
import random
import warnings
from builtins import iter as _begin
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import mica
from mica.utils.data._collate import default_collate
from mica.utils.data._datapipe import DataChunk, IterDataPipe, functional_datapipe
from mica.utils.data._samplers import SequentialSampler
from mica.utils.data.datapipes._chunks import Chunks
from mica.utils.data.datapipes._files import (
    FileLister as FileLister,
    FileOpener as FileOpener,
    StreamReader as StreamReader,
)
from mica.utils.data.datapipes._split import (
    Demultiplexer as Demultiplexer,
    Forker as Forker,
)


class _Like(IterDataPipe):
    """A pipe that is as long as the one it is made of."""

    datapipe: Any

    def __len__(self) -> int:
        return len(self.datapipe)


class IterableWrapper(IterDataPipe):
    """A pipe of an iterable's elements: where a chain of pipes begins.

    As `torch.utils.data.datapipes.iter.IterableWrapper`.

    Args:
        iterable (iterable): What the elements are taken from.
        deepcopy (bool): Copies them in each pass, so that what later pipes do to them stays out of the
            iterable. Default: True.

    Example:
        >>> pipe = mica.utils.data.datapipes.iter.IterableWrapper([1, 2, 3])
        >>> list(pipe.map(lambda n: n + 1))
        [2, 3, 4]
    """

    def __init__(self, iterable: Iterable[Any], deepcopy: bool = True) -> None:
        self.iterable, self.deepcopy = iterable, deepcopy

    def __iter__(self) -> Iterator[Any]:
        source = self.iterable
        if self.deepcopy:
            try:
                source = copy.deepcopy(source)
            except TypeError:
                warnings.warn(
                    "The input iterable can not be deepcopied; what is changed in place changes it too.",
                    stacklevel=2,
                )
        yield from source

    def __len__(self) -> int:
        return len(self.iterable)  # type: ignore[arg-type]


def _columns(function: Callable[..., Any], data: Any, columns: Any) -> Any:
    if columns is None:
        return function(data)
    if isinstance(columns, (list, tuple)):
        return function(*(data[column] for column in columns))
    return function(data[columns])


@functional_datapipe("map")
class Mapper(_Like):
    """A pipe of what a function makes of each element; the method `map()`.

    As `torch.utils.data.datapipes.iter.Mapper`.

    Args:
        datapipe (IterDataPipe): The pipe whose elements come in.
        fn (callable): `fn(element)`, or `fn` of the columns.
        input_col (int, str or list, optional): The columns of an element (places of a tuple or list, keys of a
            dict) that `fn` gets. Default: None, the element.
        output_col (int or str, optional): The column that the result is put in; -1 adds one. Default:
            None, the first of `input_col`, and the others go.

    Raises:
        ValueError: `output_col` without `input_col`, or more than one.

    Example:
        >>> pipe = mica.utils.data.datapipes.iter.IterableWrapper([(1, 2), (3, 4)])
        >>> list(pipe.map(lambda n: n * 10, input_col=1))
        [(1, 20), (3, 40)]
    """

    def __init__(
        self, datapipe: Any, fn: Callable[..., Any], input_col: Any = None, output_col: Any = None
    ) -> None:
        if input_col is None and output_col is not None:
            raise ValueError("`output_col` must be None when `input_col` is None.")
        if isinstance(output_col, (list, tuple)):
            if len(output_col) > 1:
                raise ValueError("`output_col` must be a single-element list or tuple.")
            output_col = output_col[0]
        self.datapipe, self.fn, self.input_col, self.output_col = datapipe, fn, input_col, output_col

    def __iter__(self) -> Iterator[Any]:
        for data in self.datapipe:
            yield self._apply(data)

    def _apply(self, data: Any) -> Any:
        result = _columns(self.fn, data, self.input_col)
        if self.input_col is None:
            return result
        changed = list(data) if isinstance(data, tuple) else data
        several = isinstance(self.input_col, (list, tuple))
        if self.output_col == -1:
            changed.append(result)
        elif self.output_col is not None:
            changed[self.output_col] = result
        else:
            changed[self.input_col[0] if several else self.input_col] = result
            for column in sorted(self.input_col[1:], reverse=True) if several else ():
                del changed[column]
        return tuple(changed) if isinstance(data, tuple) else changed


@functional_datapipe("collate")
class Collator(Mapper):
    """A pipe of batches joined to tensors; the method `collate()`.

    As `torch.utils.data.datapipes.iter.Collator`.

    Args:
        datapipe (IterDataPipe): The pipe whose batches come in.
        conversion (callable, optional): Joins a batch. Default: `default_collate`.
        collate_fn (callable, optional): The same, before `conversion`.

    Example:
        >>> pipe = mica.utils.data.datapipes.iter.IterableWrapper([1, 2, 3, 4])
        >>> list(pipe.batch(2).collate())
        [tensor([1, 2]), tensor([3, 4])]
    """

    def __init__(self, datapipe: Any, conversion: Any = None, collate_fn: Any = None) -> None:
        super().__init__(datapipe, collate_fn or conversion or default_collate)


@functional_datapipe("filter")
class Filter(IterDataPipe):
    """A pipe of the elements of which a function says True; the method `filter()`.

    As `torch.utils.data.datapipes.iter.Filter`.

    Args:
        datapipe (IterDataPipe): The pipe whose elements come in.
        filter_fn (callable): `filter_fn(element)`, or of the columns, returns a bool.
        input_col (int, str or list, optional): The columns of an element that it gets. Default: None, the element.

    Raises:
        ValueError: While iterating: the function returns no bool.

    Example:
        >>> pipe = mica.utils.data.datapipes.iter.IterableWrapper(range(5))
        >>> list(pipe.filter(lambda n: n % 2 == 1))
        [1, 3]
    """

    def __init__(self, datapipe: Any, filter_fn: Callable[..., bool], input_col: Any = None) -> None:
        self.datapipe, self.filter_fn, self.input_col = datapipe, filter_fn, input_col

    def __iter__(self) -> Iterator[Any]:
        for data in self.datapipe:
            kept = _columns(self.filter_fn, data, self.input_col)
            if not isinstance(kept, bool):
                raise ValueError(f"Boolean output is required for `filter_fn` of Filter, got {type(kept)}.")
            if kept:
                yield data


@functional_datapipe("batch")
class Batcher(Chunks, IterDataPipe):
    """A pipe of chunks of elements; the method `batch()`.

    As `torch.utils.data.datapipes.iter.Batcher`.

    Args:
        datapipe (IterDataPipe): The pipe whose elements come in.
        batch_size (int): Elements in a chunk.
        drop_last (bool): Leaves out the last chunk if it is smaller than the others. Default: False.
        wrapper_class (callable): Makes a chunk of a list. Default: `DataChunk`.

    Raises:
        AssertionError: The size is not positive.

    Example:
        >>> pipe = mica.utils.data.datapipes.iter.IterableWrapper(range(5))
        >>> list(pipe.batch(2))
        [[0, 1], [2, 3], [4]]
    """

    def __iter__(self) -> Iterator[Any]:
        batch: list[Any] = []
        for data in self.datapipe:
            batch.append(data)
            if len(batch) == self.batch_size:
                yield self.wrapper_class(batch)
                batch = []
        if batch and not self.drop_last:
            yield self.wrapper_class(batch)


@functional_datapipe("unbatch")
class UnBatcher(IterDataPipe):
    """A pipe of the elements of chunks; the method `unbatch()`.

    As `torch.utils.data.datapipes.iter.UnBatcher`.

    Args:
        datapipe (IterDataPipe): The chunks, lists.
        unbatch_level (int): How many lists deep it goes; -1 to the bottom. Default: 1.

    Raises:
        ValueError: While iterating: the level is below -1.
        IndexError: While iterating: the lists are not so deep.

    Example:
        >>> pipe = mica.utils.data.datapipes.iter.IterableWrapper([[1, 2], [3]])
        >>> list(pipe.unbatch())
        [1, 2, 3]
    """

    def __init__(self, datapipe: Any, unbatch_level: int = 1) -> None:
        self.datapipe, self.unbatch_level = datapipe, unbatch_level

    def __iter__(self) -> Iterator[Any]:
        if self.unbatch_level < -1:
            raise ValueError("unbatch_level must be -1 or >= 0")
        for data in self.datapipe:
            yield from self._opened(data, self.unbatch_level)

    def _opened(self, data: Any, level: int) -> Iterator[Any]:
        if level == 0 or (level == -1 and not isinstance(data, list)):
            yield data
        elif not isinstance(data, list):
            raise IndexError(f"unbatch_level {self.unbatch_level} exceeds the depth of the DataPipe")
        else:
            for item in data:
                yield from self._opened(item, max(level - 1, -1))


@functional_datapipe("groupby")
class Grouper(IterDataPipe):
    """A pipe of chunks of elements with one key each; the method `groupby()`.

    As `torch.utils.data.datapipes.iter.Grouper`.

    Args:
        datapipe (IterDataPipe): The pipe whose elements come in.
        group_key_fn (callable): Gives an element's key.
        keep_key (bool): Gives pairs of a key and a chunk. Default: False.
        buffer_size (int): When so many elements wait, the largest group goes. Default: 10000.
        group_size (int, optional): A group of this size goes at once. Default: None.
        guaranteed_group_size (int, optional): The least size of a group that goes as the buffer is full.
            Default: `group_size`.
        drop_remaining (bool): Drops smaller ones in place of raising. Default: False.

    Raises:
        AssertionError: The sizes do not fit each other.
        RuntimeError: While iterating: the buffer is full and its largest group smaller than guaranteed.

    Example:
        >>> pipe = mica.utils.data.datapipes.iter.IterableWrapper(["a1", "b1", "a2"])
        >>> list(pipe.groupby(lambda name: name[0]))
        [['a1', 'a2'], ['b1']]
    """

    def __init__(
        self,
        datapipe: Any,
        group_key_fn: Callable[[Any], Any],
        *,
        keep_key: bool = False,
        buffer_size: int = 10000,
        group_size: int | None = None,
        guaranteed_group_size: int | None = None,
        drop_remaining: bool = False,
    ) -> None:
        if group_size is not None and not 0 < group_size <= buffer_size:
            raise AssertionError("group_size must be > 0 and <= buffer_size")
        least = guaranteed_group_size
        if least is not None and (group_size is None or not 0 < least <= group_size):
            raise AssertionError(
                "guaranteed_group_size must be > 0 and <= group_size and group_size must be set"
            )
        self.datapipe, self.group_key_fn, self.keep_key = datapipe, group_key_fn, keep_key
        self.max_buffer_size, self.group_size = buffer_size, group_size
        self.guaranteed_group_size = group_size if least is None else least
        self.drop_remaining = drop_remaining

    def __iter__(self) -> Iterator[Any]:
        groups: defaultdict[Any, list[Any]] = defaultdict(list)
        for data in self.datapipe:
            key = self.group_key_fn(data)
            groups[key].append(data)
            if len(groups[key]) == self.group_size:
                yield self._made(key, groups.pop(key))
            if sum(map(len, groups.values())) == self.max_buffer_size:
                largest = max(groups, key=lambda k: len(groups[k]))
                chunk = groups.pop(largest)
                if len(chunk) >= (self.guaranteed_group_size or 0):
                    yield self._made(key, chunk)
                elif not self.drop_remaining:
                    raise RuntimeError("Failed to group items", str(chunk))
        for key, chunk in groups.items():
            yield self._made(key, chunk)

    def _made(self, key: Any, chunk: list[Any]) -> Any:
        return (key, DataChunk(chunk)) if self.keep_key else DataChunk(chunk)


class _Joined(IterDataPipe):
    def __init__(self, *datapipes: Any) -> None:
        if not datapipes:
            raise ValueError("Expected at least one DataPipe, but got nothing.")
        if not all(isinstance(pipe, IterDataPipe) for pipe in datapipes):
            raise TypeError("Expected all inputs to be `IterDataPipe`.")
        self.datapipes = datapipes


@functional_datapipe("concat")
class Concater(_Joined):
    """A pipe of several pipes, one after the other; the method `concat()`.

    As `torch.utils.data.datapipes.iter.Concater`.

    Args:
        *datapipes (IterDataPipe): The pipes, at least one.

    Raises:
        ValueError: There is none.
        TypeError: One is no `IterDataPipe`.

    Example:
        >>> wrap = mica.utils.data.datapipes.iter.IterableWrapper
        >>> list(wrap([1, 2]).concat(wrap([3])))
        [1, 2, 3]
    """

    def __iter__(self) -> Iterator[Any]:
        for pipe in self.datapipes:
            yield from pipe

    def __len__(self) -> int:
        return sum(len(pipe) for pipe in self.datapipes)


@functional_datapipe("zip")
class Zipper(_Joined):
    """A pipe of tuples of one element of each pipe, as long as all have one; the method `zip()`.

    As `torch.utils.data.datapipes.iter.Zipper`.

    Args:
        *datapipes (IterDataPipe): The pipes, at least one.

    Raises:
        ValueError: There is none.
        TypeError: One is no `IterDataPipe`.

    Example:
        >>> wrap = mica.utils.data.datapipes.iter.IterableWrapper
        >>> list(wrap([1, 2]).zip(wrap(["a", "b", "c"])))
        [(1, 'a'), (2, 'b')]
    """

    def __iter__(self) -> Iterator[Any]:
        yield from zip(*self.datapipes)

    def __len__(self) -> int:
        return min(len(pipe) for pipe in self.datapipes)


@functional_datapipe("mux")
class Multiplexer(_Joined):
    """A pipe of one element of each pipe in turn, as long as all have one; the method `mux()`.

    As `torch.utils.data.datapipes.iter.Multiplexer`.

    Args:
        *datapipes (IterDataPipe): The pipes, at least one.

    Raises:
        ValueError: There is none.
        TypeError: One is no `IterDataPipe`.

    Example:
        >>> wrap = mica.utils.data.datapipes.iter.IterableWrapper
        >>> list(wrap([1, 2]).mux(wrap(["a", "b", "c"])))
        [1, 'a', 2, 'b']
    """

    def __iter__(self) -> Iterator[Any]:
        for row in zip(*self.datapipes):
            yield from row

    def __len__(self) -> int:
        return len(self.datapipes) * min(len(pipe) for pipe in self.datapipes)


class Sampler(IterDataPipe):
    """A pipe of the indices that a sampler of another pipe gives.

    As `torch.utils.data.datapipes.iter.Sampler`.

    Args:
        datapipe (Dataset): Its length is asked.
        sampler (type): The sampler's class. Default: `SequentialSampler`.
        sampler_args (sequence, optional): Further arguments of it.
        sampler_kwargs (dict, optional): Further arguments of it by name.

    Example:
        >>> pipe = mica.utils.data.datapipes.iter.IterableWrapper(["a", "b"])
        >>> list(mica.utils.data.datapipes.iter.Sampler(pipe))
        [0, 1]
    """

    def __init__(
        self,
        datapipe: Any,
        sampler: Any = SequentialSampler,
        sampler_args: Any = None,
        sampler_kwargs: Any = None,
    ) -> None:
        self.datapipe = datapipe
        self.sampler = sampler(*(sampler_args or ()), data_source=datapipe, **(sampler_kwargs or {}))

    def __iter__(self) -> Iterator[Any]:
        return _begin(self.sampler)

    def __len__(self) -> int:
        return len(self.sampler)


class _Random(_Like):
    """What draws: it has a seed, which a loader sets for each pass."""

    _seed: int | None = None
    _enabled = True

    def set_shuffle(self, shuffle: bool = True) -> Any:
        """Turns the shuffling on or off.

        Args:
            shuffle (bool): Whether to. Default: True.

        Returns:
            IterDataPipe: The pipe itself.
        """
        self._enabled = shuffle
        return self

    def set_seed(self, seed: int) -> Any:
        """Sets the seed of the next pass; a `DataLoader` does it.

        Args:
            seed (int): Any integer; the same one gives the same numbers again.

        Returns:
            IterDataPipe: The pipe itself.
        """
        self._seed = seed
        return self

    def _begin_pass(self) -> random.Random:
        if self._enabled and self._seed is None:
            self._seed = int(mica.empty((), dtype=mica.int64).random_().item())
        seed, self._seed = self._seed, None
        return random.Random(seed)


@functional_datapipe("shuffle")
class Shuffler(_Random):
    """A pipe of elements in random order, as far as a buffer reaches; the method `shuffle()`.

    As `torch.utils.data.datapipes.iter.Shuffler`. The order comes from the default generator (`mica.manual_seed`), anew in each
    pass; `set_seed(n)` fixes the next pass, `set_shuffle(False)` keeps the order.

    Args:
        datapipe (IterDataPipe): The pipe whose elements come in.
        buffer_size (int): Elements among which the next is drawn. Default: 10000.
        unbatch_level (int): Takes elements that are lists apart first, so many levels deep (-1: all), and
            shuffles what was in them; they are not put together again, and the pipe has no `len()`. Default: 0.

    Raises:
        AssertionError: The buffer's size is not positive.

    Example:
        >>> pipe = mica.utils.data.datapipes.iter.IterableWrapper(range(5)).shuffle()
        >>> sorted(pipe)
        [0, 1, 2, 3, 4]
    """

    def __init__(self, datapipe: Any, *, buffer_size: int = 10000, unbatch_level: int = 0) -> None:
        if buffer_size <= 0:
            raise AssertionError("buffer_size should be larger than 0")
        self.datapipe = datapipe if unbatch_level == 0 else datapipe.unbatch(unbatch_level=unbatch_level)
        self.buffer_size = buffer_size
        self._rng = random.Random()

    def reset(self) -> None:
        if self._enabled:
            self._rng = self._begin_pass()

    def __iter__(self) -> Iterator[Any]:
        if not self._enabled:
            yield from self.datapipe
            return
        buffer: list[Any] = []
        for data in self.datapipe:
            if len(buffer) < self.buffer_size:
                buffer.append(data)
                continue
            place = self._rng.randint(0, len(buffer) - 1)
            taken, buffer[place] = buffer[place], data
            yield taken
        while buffer:
            yield buffer.pop(self._rng.randint(0, len(buffer) - 1))


@functional_datapipe("sharding_filter")
class ShardingFilter(IterDataPipe):
    """A pipe of the part of the elements that is this worker's; the method `sharding_filter()`.

    As `torch.utils.data.datapipes.iter.ShardingFilter`. A `DataLoader` says which part, so that no two workers
    give the same element.

    Args:
        source_datapipe (IterDataPipe): The pipe whose elements come in.
        sharding_group_filter (Any, optional): Ignored.

    Example:
        >>> pipe = mica.utils.data.datapipes.iter.IterableWrapper(range(5)).sharding_filter()
        >>> pipe.apply_sharding(2, 1)
        >>> list(pipe)
        [1, 3]
    """

    def __init__(self, source_datapipe: Any, sharding_group_filter: Any = None) -> None:
        self.source_datapipe, self.sharding_group_filter = source_datapipe, sharding_group_filter
        self.num_of_instances, self.instance_id = 1, 0

    def apply_sharding(self, num_of_instances: int, instance_id: int, sharding_group: Any = None) -> None:
        """Sets which part of the elements is this pipe's.

        Args:
            num_of_instances (int): How many parts there are.
            instance_id (int): Which one, from 0 on: elements `instance_id`, `instance_id + num_of_instances`, ...
            sharding_group (Any, optional): Ignored.

        Raises:
            ValueError: There is no such part.
        """
        if instance_id >= num_of_instances:
            raise ValueError(
                f"instance_id({instance_id}) should be smaller than num_of_instances({num_of_instances})"
            )
        self.num_of_instances, self.instance_id = num_of_instances, instance_id

    def __iter__(self) -> Iterator[Any]:
        for i, data in enumerate(self.source_datapipe):
            if i % self.num_of_instances == self.instance_id:
                yield data

    def __len__(self) -> int:
        n = len(self.source_datapipe)
        return n // self.num_of_instances + (self.instance_id < n % self.num_of_instances)


__all__: Sequence[str] = [
    "Batcher",
    "Collator",
    "Concater",
    "Demultiplexer",
    "FileLister",
    "FileOpener",
    "Filter",
    "Forker",
    "Grouper",
    "IterableWrapper",
    "Mapper",
    "Multiplexer",
    "Sampler",
    "ShardingFilter",
    "Shuffler",
    "StreamReader",
    "UnBatcher",
    "Zipper",
]
