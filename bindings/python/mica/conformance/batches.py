"""Sample calls as functions of their tensors, with batches of those: what vmap is tried on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import mica
from mica.conformance.operators import Entry, Made, arguments, finished, operator, settled
from mica.conformance.samples import Call


def _tensors(value: Any) -> Iterator[mica.Tensor]:
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)
    elif isinstance(value, Made):
        yield value.numbers
    elif isinstance(value, mica.Tensor):
        yield value


def _put(value: Any, tensors: Iterator[mica.Tensor]) -> Any:
    """The value with its tensors replaced, in order."""
    if isinstance(value, list):
        return [_put(v, tensors) for v in value]
    if isinstance(value, Made):
        return Made(next(tensors), value.how)
    return next(tensors) if isinstance(value, mica.Tensor) else value


def batch_of(x: mica.Tensor, examples: int) -> mica.Tensor:
    """Examples with the same numbers in other places."""
    return mica.stack([x.reshape(-1).roll(e).reshape(x.shape) for e in range(examples)])


class Mapped:
    """One sample call of an operator, callable with its tensors; `batches` has examples of each.

    Matrices that are made of any numbers are made inside, of each example's own. The batches are
    made on the CPU, so that a device needs the operator alone."""

    def __init__(
        self,
        entry: Entry,
        call: Call,
        dtype: str,
        *,
        inplace: bool = False,
        examples: int = 3,
        device: str = "cpu",
        change: Callable[[Any], Any] | None = None,
    ) -> None:
        self.entry, self.inplace = entry, inplace
        self.f = operator(entry.inplace() if inplace else entry)
        change = change or (lambda x: x)
        self.positional, keyword, _ = arguments(mica, call, dtype, "contiguous", finish=False)
        self.keyword = {k: change(v) if isinstance(v, mica.dtype) else v for k, v in keyword.items()}
        self.tensors = [change(x) for x in _tensors([*self.positional, *keyword.values()])]
        self.batches = [batch_of(x, examples) for x in self.tensors]
        if device != "cpu":
            self.tensors = [x.to(device) for x in self.tensors]
            self.batches = [x.to(device) for x in self.batches]

    def __call__(self, *tensors: mica.Tensor) -> Any:
        given = iter(tensors)
        positional = finished(_put(self.positional, given))
        keyword = {k: finished(_put(v, given)) for k, v in self.keyword.items()}
        if self.inplace:
            positional = [positional[0].clone(), *positional[1:]]
        result = self.f(*positional, **keyword)
        return settled(self.entry.overload, positional[0] if self.inplace else result)
