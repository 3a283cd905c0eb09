"""One call of an operator as rules see it: arguments by name, the shapes of its tensors, and those of its results."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import mica
from mica._C import Tensor
from mica.ops import OpOverload


class Place(NamedTuple):
    """Where a tensor stands among the arguments."""

    argument: int
    item: int | None  # of a list


class Kind(NamedTuple):
    """What is known of a tensor without its elements."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: Any
    offset: int = 0  # of a view: from the tensor that it is a view of, in elements of its own


def kind_of(x: Tensor) -> Kind:
    """What is known of a tensor, without its place in memory."""
    return Kind(tuple(x.shape), x.stride(), x.dtype)


class Signature(NamedTuple):
    """What an operator's schema says of arguments and results, kept for each."""

    names: list[str]
    by_place: int  # so many are given by place, the rest by name
    written: frozenset[int]
    of_argument: list[int | None]  # of each result: the written argument that it is
    is_view: bool  # the result is a view of the first tensor
    is_detached: bool  # not for Autograd
    draws: bool  # random numbers
    numbers: frozenset[int]  # arguments of which a call's plan depends on the type alone


# Operators whose rules read a number among their arguments; composites may do anything with it.
_READ_NUMBERS = ("constant_pad_nd",)


def _numbers(func: OpOverload) -> frozenset[int]:
    if func.op_class == "decompose" or func._opname in _READ_NUMBERS:
        return frozenset()
    types = ("Scalar", "Scalar?", "float", "float?")
    return frozenset(i for i, a in enumerate(func._schema.arguments) if str(a.type) in types)


@functools.cache
def signature(func: OpOverload) -> Signature:
    """The signature of an operator."""
    schema = func._schema
    written = frozenset(
        i for i, a in enumerate(schema.arguments) if a.alias_info is not None and a.alias_info.is_write
    )
    names = [a.name for a in schema.arguments]
    by_place = sum(not a.kwarg_only for a in schema.arguments)
    of_argument: list[int | None] = []
    for r in schema.returns:
        alias = r.alias_info
        of_argument.append(alias.argument if alias is not None and alias.is_write else None)
    is_view, is_detached = func.op_class == "view", func._opname == "detach"
    draws = func.op_class == "random" or func._opname.startswith("rand") or "generator" in names
    return Signature(names, by_place, written, of_argument, is_view, is_detached, draws, _numbers(func))


def places_of(values: Sequence[Any]) -> list[Place]:
    """The places of all tensors, in order."""
    found = []
    for number, value in enumerate(values):
        if isinstance(value, Tensor):
            found.append(Place(number, None))
        elif isinstance(value, (list, tuple)):
            found += [Place(number, i) for i, x in enumerate(value) if isinstance(x, Tensor)]
    return found


def with_tensors(values: Sequence[Any], places: Sequence[Place], tensors: Sequence[Any]) -> list[Any]:
    """The arguments with other tensors in these places."""
    new = [list(v) if isinstance(v, (list, tuple)) else v for v in values]
    for place, tensor in zip(places, tensors):
        if place.item is None:
            new[place.argument] = tensor
        else:
            new[place.argument][place.item] = tensor
    return new


def run(func: OpOverload, values: Sequence[Any]) -> Any:
    """Calls an operator with all arguments of its schema."""
    about = signature(func)
    named = dict(zip(about.names[about.by_place :], values[about.by_place :]))
    return func(*values[: about.by_place], **named)


def results_of(value: Any) -> list[Any]:
    """The results of a call, those of a list too."""
    return list(value) if isinstance(value, (list, tuple)) else [value]


class Call:
    """One call: `kinds` are of the tensors at `places`; `results` of what it gives, None where that is not known."""

    def __init__(self, func: OpOverload, values: list[Any], kinds: list[Kind], places: list[Place]) -> None:
        self.func, self.values, self.kinds, self.places = func, values, kinds, places
        self.names = signature(func).names
        self.results = self._on_meta()

    def _on_meta(self) -> list[Kind] | None:
        tensors = [mica.empty_strided(k.shape, k.stride, dtype=k.dtype, device="meta") for k in self.kinds]
        try:
            made = results_of(run(self.func, with_tensors(self.values, self.places, tensors)))
        except NotImplementedError:
            return None  # shapes depend on values, or there is no meta function
        if not all(isinstance(x, Tensor) for x in made):
            return None
        return [Kind(tuple(x.shape), x.stride(), x.dtype, x.storage_offset()) for x in made]

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """Of the tensors."""
        return [k.shape for k in self.kinds]

    @property
    def made(self) -> list[tuple[int, ...]]:
        """The shapes of the results, which must be known."""
        assert self.results is not None
        return [k.shape for k in self.results]

    def value(self, name: str) -> Any:
        """An argument by name; None where the operator has none of that name."""
        return self.values[self.names.index(name)] if name in self.names else None

    def slots(self, name: str) -> list[int]:
        """The numbers of the tensors of an argument."""
        if name not in self.names:
            return []
        number = self.names.index(name)
        return [i for i, place in enumerate(self.places) if place.argument == number]

    def slot(self, name: str) -> int | None:
        """The number of the tensor that an argument is; None where it is none."""
        found = self.slots(name)
        return found[0] if found else None

    def dims(self, name: str, ndim: int) -> list[int] | None:
        """The dimensions that an argument names, from 0; None where it is None."""
        value = self.value(name)
        if value is None:
            return None
        return [d % ndim if ndim else 0 for d in (value if isinstance(value, (list, tuple)) else [value])]
