"""Sample calls as functions of their tensors, with batches of those: what vmap is tried on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mica
from mica.conformance.operators import Entry, Made, arguments, finished, operator, settled
from mica.conformance.samples import Call


def tensors_of(value: Any) -> list[mica.Tensor]:
    """The tensors in lists of values, in order."""
    if isinstance(value, (list, tuple)) and not isinstance(value, Made):
        return [x for v in value for x in tensors_of(v)]
    if isinstance(value, Made):
        return [value.numbers]
    return [value] if isinstance(value, mica.Tensor) else []


def _put(value: Any, new: dict[int, mica.Tensor]) -> Any:
    """The value with other tensors in the places of some."""
    if isinstance(value, Made):
        return Made(_put(value.numbers, new), value.how)
    if isinstance(value, list):
        return [_put(v, new) for v in value]
    return new.get(id(value), value)


class Sample:
    """One sample call of an operator as a function of tensors.

    `tensors` are those of the call, `inputs` those that the function takes: all of them, or with `grad`
    the ones that require grad. Matrices that are made of any numbers are made inside, of what is given,
    unless `finish` makes them at once. The in-place form writes a copy of its first argument.
    """

    def __init__(
        self,
        entry: Entry,
        call: Call,
        dtype: str,
        layout: str = "contiguous",
        *,
        inplace: bool = False,
        grad: bool = False,
        finish: bool = False,
    ) -> None:
        self.entry, self.inplace = entry, inplace
        self.f = operator(entry.inplace() if inplace else entry)
        self.positional, self.keyword, _ = arguments(mica, call, dtype, layout, grad, finish=finish)
        self.tensors = tensors_of([*self.positional, *self.keyword.values()])
        self.inputs = [x for x in self.tensors if x.requires_grad] if grad else self.tensors

    def given(
        self, tensors: Sequence[mica.Tensor], places: Sequence[mica.Tensor] | None = None
    ) -> tuple[list[Any], dict[str, Any]]:
        """The arguments, with these tensors in the places of the inputs, or of other tensors of the call."""
        new = {id(old): x for old, x in zip(self.inputs if places is None else places, tensors)}
        return finished(_put(self.positional, new)), {
            k: finished(_put(v, new)) for k, v in self.keyword.items()
        }

    def __call__(self, *tensors: mica.Tensor) -> Any:
        positional, keyword = self.given(tensors)
        if self.inplace:
            first = positional[0]
            positional[0] = [x.clone() for x in first] if isinstance(first, list) else first.clone()
        result = self.f(*positional, **keyword)
        return settled(self.entry.overload, positional[0] if self.inplace else result)


def batch_of(x: mica.Tensor, examples: int) -> mica.Tensor:
    """Examples with the same numbers in other places."""
    return mica.stack([x.reshape(-1).roll(e).reshape(x.shape) for e in range(examples)])


class Mapped(Sample):
    """A sample call with `batches`, examples of each tensor, each example's matrices made of its own.

    The batches are made on the CPU, so that a device needs the operator alone."""

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
        super().__init__(entry, call, dtype, inplace=inplace)
        change = change or (lambda x: x)
        self.keyword = {k: change(v) if isinstance(v, mica.dtype) else v for k, v in self.keyword.items()}
        self.tensors = [change(x) for x in self.tensors]
        self.batches = [batch_of(x, examples) for x in self.tensors]
        if device != "cpu":
            self.tensors = [x.to(device) for x in self.tensors]
            self.batches = [x.to(device) for x in self.batches]
