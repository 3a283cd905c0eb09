"""Data pipes: datasets that are chained by their methods, `pipe.map(f).shuffle().batch(4)`.

A method is a class that was registered under a name (functional_datapipe). The pipes that a pipe
is made of are those in its attributes; settings (shuffle, seeds, shards) go through all of them.
datapipes/ has the pipes themselves.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

import mica
from mica.utils.data._dataset import Dataset, IterableDataset


class _Chained:
    """What both kinds of pipes do: their methods are the registered classes."""

    functions: ClassVar[dict[str, Callable[..., Any]]]

    def __getattr__(self, name: str) -> Any:
        made = type(self).functions.get(name)
        if made is None:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        return functools.partial(made, self)

    @classmethod
    def register_function(cls, function_name: str, function: Callable[..., Any]) -> None:
        """Makes a function a method of all pipes of this kind.

        Args:
            function_name (str): The method's name.
            function (callable): Called with the pipe and the method's arguments.
        """
        cls.functions[function_name] = function

    @classmethod
    def register_datapipe_as_function(
        cls, function_name: str, cls_to_register: Any, enable_df_api_tracing: bool = False
    ) -> None:
        """Makes a class a method of all pipes of this kind; `functional_datapipe` calls it.

        Args:
            function_name (str): The method's name.
            cls_to_register (type): The class of pipes that the method makes.
            enable_df_api_tracing (bool): Ignored. Default: False.

        Raises:
            Exception: The name is taken.
        """
        if function_name in cls.functions:
            raise Exception(  # torch's kind
                f"Unable to add DataPipe function name {function_name} as it is already taken"
            )
        cls.functions[function_name] = cls_to_register

    def __getstate__(self) -> Any:
        return self.__dict__

    def __setstate__(self, state: Any) -> None:
        self.__dict__.update(state)

    def __str__(self) -> str:
        return type(self).__qualname__

    __repr__ = __str__


class IterDataPipe(_Chained, IterableDataset):
    """The base of pipes that are read as a stream, and chained by methods: `pipe.map(f).batch(4)`.

    As `torch.utils.data.IterDataPipe`. A subclass defines `__iter__()`. The methods are the classes of
    `mica.utils.data.datapipes.iter` and those registered by `functional_datapipe`. Of one pipe only the
    newest iterator is valid; an earlier one raises RuntimeError.

    Example:
        >>> pipe = mica.utils.data.datapipes.iter.IterableWrapper(range(6))
        >>> list(pipe.filter(lambda n: n % 2 == 0).map(lambda n: n * 10).batch(2))
        [[0, 20], [40]]
    """

    functions: ClassVar[dict[str, Callable[..., Any]]] = {}
    _iteration = 0

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__iter__" in cls.__dict__:
            cls.__iter__ = _single(cls.__dict__["__iter__"])  # type: ignore[method-assign]

    def __iter__(self) -> Iterator[Any]:
        return self  # type: ignore[return-value]

    def reset(self) -> None:
        """Called before each new iterator; a subclass sets back here what iteration changes."""


def _single(begin: Callable[[Any], Iterator[Any]]) -> Callable[[Any], Iterator[Any]]:
    """An __iter__ after which earlier iterators of the pipe raise."""

    def values(self: Any, number: int) -> Iterator[Any]:
        for value in begin(self):
            if self._iteration != number:
                break
            yield value
            if self._iteration != number:
                break
        else:
            return
        raise RuntimeError(
            f"This iterator has been invalidated because another iterator has been created from the same IterDataPipe: "
            f"{self}. Only one iterator of a pipe is valid at a time."
        )

    @functools.wraps(begin)
    def __iter__(self: Any) -> Iterator[Any]:
        self._iteration += 1
        self.reset()
        return values(self, self._iteration)

    return __iter__


class MapDataPipe(_Chained, Dataset):
    """The base of pipes that are read by index, and chained by methods: `pipe.map(f)`.

    As `torch.utils.data.MapDataPipe`. A subclass defines `__getitem__(index)` and `__len__()`. The methods
    are the classes of `mica.utils.data.datapipes.map`.

    Example:
        >>> pipe = mica.utils.data.datapipes.map.SequenceWrapper([1, 2, 3]).map(lambda n: n * 10)
        >>> pipe[1], len(pipe)
        (20, 3)
    """

    functions: ClassVar[dict[str, Callable[..., Any]]] = {}


class DFIterDataPipe(IterDataPipe):
    """The base of streams of data frames, for programs that ask what kind a pipe is.

    Example:
        >>> issubclass(mica.utils.data.DFIterDataPipe, mica.utils.data.IterDataPipe)
        True
    """


class DataChunk(list):
    """A batch of a pipe's samples, before they are joined: a list.

    As `torch.utils.data.DataChunk`.

    Args:
        items (iterable): The samples.

    Example:
        >>> chunk = mica.utils.data.DataChunk([1, 2])
        >>> chunk[0], chunk.as_str("> ")
        (1, '> [1, 2]')
    """

    def __init__(self, items: Any) -> None:
        super().__init__(items)
        self.items = list(items)

    def as_str(self, indent: str = "") -> str:
        """The samples as one line of text.

        Args:
            indent (str): What the line begins with. Default: "".

        Returns:
            str: The line.
        """
        return indent + "[" + ", ".join(str(item) for item in self) + "]"

    def raw_iterator(self) -> Iterator[Any]:
        """Iterates over the samples themselves, also in a subclass whose `__iter__` gives something else."""
        yield from self.items


class functional_datapipe:  # noqa: N801  (torch's name)
    """Decorates a class of pipes: all pipes of its kind get it as a method.

    As `torch.utils.data.functional_datapipe`.

    Args:
        name (str): The method's name: `pipe.name(...)` makes the class of `pipe` and the arguments.
        enable_df_api_tracing (bool): Ignored. Default: False.

    Raises:
        TypeError: When it decorates: the class is neither an `IterDataPipe` nor a `MapDataPipe`.
        Exception: The name is taken.

    Example:
        >>> @mica.utils.data.functional_datapipe("doubled")
        ... class Doubler(mica.utils.data.IterDataPipe):
        ...     def __init__(self, source):
        ...         self.source = source
        ...     def __iter__(self):
        ...         return (2 * value for value in self.source)
        >>> list(mica.utils.data.datapipes.iter.IterableWrapper([1, 2]).doubled())
        [2, 4]
    """

    def __init__(self, name: str, enable_df_api_tracing: bool = False) -> None:
        self.name = name

    def __call__(self, cls: Any) -> Any:
        if not issubclass(cls, (IterDataPipe, MapDataPipe)):
            raise TypeError("`functional_datapipe` can only decorate IterDataPipe or MapDataPipe")
        base = IterDataPipe if issubclass(cls, IterDataPipe) else MapDataPipe
        base.register_datapipe_as_function(self.name, cls)
        return cls


def traverse_dps(datapipe: Any) -> dict[int, tuple[Any, Any]]:
    """The pipe and those it is made of: {id: (pipe, the same of its parts)}."""
    return _traverse(datapipe, frozenset())


def _traverse(pipe: Any, above: frozenset[int]) -> dict[int, tuple[Any, Any]]:
    below: dict[int, tuple[Any, Any]] = {}
    for part in _pipes_in(list(pipe.__dict__.values())):
        if id(part) not in above:
            below.update(_traverse(part, above | {id(pipe)}))
    return {id(pipe): (pipe, below)}


def _pipes_in(value: Any) -> Iterator[Any]:
    if isinstance(value, (IterDataPipe, MapDataPipe)):
        yield value
    elif isinstance(value, Mapping):
        yield from _pipes_in(list(value.values()))
    elif isinstance(value, (list, tuple, set)):
        for item in value:
            yield from _pipes_in(item)


def get_all_graph_pipes(graph: dict[int, tuple[Any, Any]]) -> list[Any]:
    """The pipes of traverse_dps(), each once."""
    found: dict[int, Any] = {}
    for key, (pipe, below) in graph.items():
        found.setdefault(key, pipe)
        for part in get_all_graph_pipes(below):
            found.setdefault(id(part), part)
    return list(found.values())


def _pipes(datapipe: Any) -> list[Any]:
    return get_all_graph_pipes(traverse_dps(datapipe))


def apply_shuffle_settings(datapipe: Any, shuffle: bool | None = None) -> Any:
    """Turns shuffling on or off in all pipes; adds it at the end if there is none to turn on."""
    if shuffle is None:
        return datapipe
    shufflers = [pipe for pipe in _pipes(datapipe) if hasattr(pipe, "set_shuffle")]
    if not shufflers and shuffle:
        warnings.warn(
            "`shuffle=True` was set, but the datapipe does not contain a `Shuffler`. Adding one at the end; its "
            "buffer may be too small for the task.",
            stacklevel=2,
        )
        datapipe = datapipe.shuffle()
        shufflers = [datapipe]
    for pipe in shufflers:
        pipe.set_shuffle(shuffle)
    return datapipe


def apply_random_seed(datapipe: Any, rng: Any) -> Any:
    """Gives each pipe that draws a seed of its own."""
    for pipe in _pipes(datapipe):
        if hasattr(pipe, "set_seed"):
            pipe.set_seed(int(mica.empty((), dtype=mica.int64).random_(generator=rng).item()))
    return datapipe


def apply_sharding(datapipe: Any, num_of_instances: int, instance_id: int, sharding_group: Any = None) -> Any:
    """Gives each pipe that shards its part."""

    def visit(graph: dict[int, tuple[Any, Any]], applied: Any) -> None:
        for pipe, below in graph.values():
            here = applied
            if hasattr(pipe, "apply_sharding"):
                if applied is not None:
                    raise RuntimeError(
                        "Sharding twice on a single pipeline is likely unintended and will cause data loss. "
                        f"Sharding already applied to {applied} while trying to apply to {pipe}"
                    )
                pipe.apply_sharding(num_of_instances, instance_id)
                here = pipe
            visit(below, here)

    visit(traverse_dps(datapipe), None)
    return datapipe


def draw_seed(dataset: Any, generator: Any) -> int | None:
    """The number that seeds a pipe for another pass of a loader; None for other datasets."""
    if not isinstance(dataset, IterDataPipe):
        return None
    return int(mica.empty((), dtype=mica.int64).random_(generator=generator).item())


def apply_seed(dataset: Any, seed: int | None) -> None:
    """Gives the pipes their seeds, as torch does from that number."""
    if seed is not None:
        apply_random_seed(dataset, mica.Generator().manual_seed(seed))
