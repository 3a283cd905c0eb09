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
    """The elements of an iterable, copied first so that what is done to them stays out of it."""

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
    """fn(element), or fn of columns, whose result stands in place of the first of them or in `output_col`."""

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
    """Batches joined, by default_collate() if nothing else is given."""

    def __init__(self, datapipe: Any, conversion: Any = None, collate_fn: Any = None) -> None:
        super().__init__(datapipe, collate_fn or conversion or default_collate)


@functional_datapipe("filter")
class Filter(IterDataPipe):
    """The elements of which filter_fn says True."""

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
    """Elements in chunks of a size."""

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
    """The elements of chunks, `unbatch_level` levels deep; -1 goes to the bottom."""

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
    """Elements in chunks of one key each. The largest goes when `buffer_size` elements wait."""

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
    """Pipes one after the other."""

    def __iter__(self) -> Iterator[Any]:
        for pipe in self.datapipes:
            yield from pipe

    def __len__(self) -> int:
        return sum(len(pipe) for pipe in self.datapipes)


@functional_datapipe("zip")
class Zipper(_Joined):
    """Tuples of one element of each pipe, as long as all have one."""

    def __iter__(self) -> Iterator[Any]:
        yield from zip(*self.datapipes)

    def __len__(self) -> int:
        return min(len(pipe) for pipe in self.datapipes)


@functional_datapipe("mux")
class Multiplexer(_Joined):
    """One element of each pipe in turn, as long as all have one."""

    def __iter__(self) -> Iterator[Any]:
        for row in zip(*self.datapipes):
            yield from row

    def __len__(self) -> int:
        return len(self.datapipes) * min(len(pipe) for pipe in self.datapipes)


class Sampler(IterDataPipe):
    """The indices that a sampler of the pipe gives."""

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
        """Turns the shuffling on or off."""
        self._enabled = shuffle
        return self

    def set_seed(self, seed: int) -> Any:
        """Sets the seed of the next pass."""
        self._seed = seed
        return self

    def _begin_pass(self) -> random.Random:
        if self._enabled and self._seed is None:
            self._seed = int(mica.empty((), dtype=mica.int64).random_().item())
        seed, self._seed = self._seed, None
        return random.Random(seed)


@functional_datapipe("shuffle")
class Shuffler(_Random):
    """Elements in random order, as far as a buffer reaches."""

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
    """The part of the elements that is this process's or worker's."""

    def __init__(self, source_datapipe: Any, sharding_group_filter: Any = None) -> None:
        self.source_datapipe, self.sharding_group_filter = source_datapipe, sharding_group_filter
        self.num_of_instances, self.instance_id = 1, 0

    def apply_sharding(self, num_of_instances: int, instance_id: int, sharding_group: Any = None) -> None:
        """Says which part, of how many."""
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
