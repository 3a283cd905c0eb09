"""Pipes that become several: each element for all of them (fork), or for one (demux).

The parts read one source. What one part reads on the way to its own elements waits for the others
in their buffers. A part that begins anew while the others are behind starts all of them again.
"""

from __future__ import annotations

import copy as _copy
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from mica.utils.data._datapipe import IterDataPipe, functional_datapipe


class _Source(IterDataPipe):
    """What the parts share: the source, how far it was read, and what waits for each."""

    def __init__(
        self, datapipe: Any, parts: int, buffer_size: int, places: Callable[[Any], Any], name: str
    ) -> None:
        if parts < 1:
            raise ValueError(f"Expected `num_instances` larger than 0, but {parts} is found")
        if buffer_size == 0:
            raise ValueError("buffer_size must be positive, or negative for a buffer without limit.")
        if buffer_size < 0:
            warnings.warn(f"Unlimited buffer size is set for `{name}`, please be aware of OOM.", stacklevel=4)
        self.datapipe, self.parts, self.buffer_size = datapipe, parts, buffer_size
        self.places, self.name = places, name
        self.pass_number = 0
        self.restart()

    def restart(self) -> None:
        """Begins another pass for all parts."""
        self.pass_number += 1
        self.waiting: list[deque[Any]] = [deque() for _ in range(self.parts)]
        self.values: Any = None

    def __getstate__(self) -> Any:
        return {**self.__dict__, "values": None, "waiting": [deque() for _ in range(self.parts)]}

    def __len__(self) -> int:
        return len(self.datapipe)

    def of(self, part: int, number: int) -> Iterator[Any]:
        """The elements of one part in this pass."""
        if self.values is None:
            self.values = iter(self.datapipe)
        while number == self.pass_number:
            if self.waiting[part]:
                yield self.waiting[part].popleft()
                continue
            try:
                value = next(self.values)
            except StopIteration:
                return
            for place in self.places(value):
                self.waiting[place].append(value)
            if self.buffer_size >= 0 and max(map(len, self.waiting)) > self.buffer_size:
                raise BufferError(
                    f"{self.name} buffer overflow, buffer size {self.buffer_size} is insufficient."
                )


class _Part(IterDataPipe):
    def __init__(self, source: _Source, part: int, made: Callable[[Any], Any], sized: bool) -> None:
        self.main_datapipe, self.instance_id, self._made, self._sized = source, part, made, sized
        self._pass = 0

    def __iter__(self) -> Iterator[Any]:
        if self._pass == self.main_datapipe.pass_number:
            self.main_datapipe.restart()
        self._pass = self.main_datapipe.pass_number
        for value in self.main_datapipe.of(self.instance_id, self._pass):
            yield self._made(value)

    def __len__(self) -> int:
        if not self._sized:
            raise TypeError(f"{type(self).__name__} instance doesn't have valid length")
        return len(self.main_datapipe)


def _same(value: Any) -> Any:
    return value


_COPIES: dict[Any, Callable[[Any], Any]] = {None: _same, "shallow": _copy.copy, "deep": _copy.deepcopy}


class _All:
    def __init__(self, parts: int) -> None:
        self.parts = range(parts)

    def __call__(self, value: Any) -> Any:
        return self.parts


class _One:
    def __init__(self, parts: int, classify: Callable[[Any], Any], drop_none: bool) -> None:
        self.parts, self.classify, self.drop_none = parts, classify, drop_none

    def __call__(self, value: Any) -> Any:
        part = self.classify(value)
        if part is None and self.drop_none:
            return ()
        if part is None or not 0 <= part < self.parts:
            raise ValueError(
                f"Output of the classification fn should be between 0 and {self.parts - 1}. {part} is returned."
            )
        return (part,)


@functional_datapipe("fork")
class Forker(IterDataPipe):
    """Makes several pipes that each have every element; the method `fork()`.

    As `torch.utils.data.datapipes.iter.Forker`. The pipes read one source; what one is ahead of the others is kept.

    Args:
        datapipe (IterDataPipe): The pipe whose elements come in.
        num_instances (int): How many pipes, a list of which is returned.
        buffer_size (int): Elements that one may be ahead; negative for any number. Default: 1000.
        copy (str, optional): "shallow" or "deep" copies each pipe's elements. Default: None, all have the
            same ones.

    Raises:
        ValueError: A number or `copy` is out of range.
        BufferError: While iterating: one is further ahead.

    Example:
        >>> pipe = mica.utils.data.datapipes.iter.IterableWrapper(range(3))
        >>> numbers, again = pipe.fork(2)
        >>> list(numbers), list(again)
        ([0, 1, 2], [0, 1, 2])
    """

    def __new__(
        cls, datapipe: Any, num_instances: int, buffer_size: int = 1000, copy: str | None = None
    ) -> Any:
        if copy not in _COPIES:
            raise ValueError(
                f"Unknown copy method `{copy}` requested, choose one of None, `shallow` or `deep`."
            )
        source = _Source(datapipe, num_instances, buffer_size, _All(num_instances), "fork")
        return [_Part(source, i, _COPIES[copy], True) for i in range(num_instances)]


@functional_datapipe("demux")
class Demultiplexer(IterDataPipe):
    """Makes several pipes, among which a function divides the elements; the method `demux()`.

    As `torch.utils.data.datapipes.iter.Demultiplexer`. The pipes read one source; what is on the way is kept.

    Args:
        datapipe (IterDataPipe): The pipe whose elements come in.
        num_instances (int): How many pipes, a list of which is returned.
        classifier_fn (callable): Gives the number of an element's pipe, from 0 on, or None.
        drop_none (bool): Drops elements of None in place of raising. Default: False.
        buffer_size (int): Elements that may wait for one pipe; negative for any number. Default: 1000.

    Raises:
        ValueError: A number is out of range, also what the function returns.
        BufferError: While iterating: more elements wait.

    Example:
        >>> pipe = mica.utils.data.datapipes.iter.IterableWrapper(range(5))
        >>> even, odd = pipe.demux(2, lambda n: n % 2)
        >>> list(even), list(odd)
        ([0, 2, 4], [1, 3])
    """

    def __new__(
        cls,
        datapipe: Any,
        num_instances: int,
        classifier_fn: Callable[[Any], int | None],
        drop_none: bool = False,
        buffer_size: int = 1000,
    ) -> Any:
        places = _One(num_instances, classifier_fn, drop_none)
        source = _Source(datapipe, num_instances, buffer_size, places, "demux")
        return [_Part(source, i, _same, False) for i in range(num_instances)]
