"""Samples grown to the sizes at which kernels change their way.

A kernel works in blocks, cascades of blocks, panels, tiles and shares of threads, each with a size of
its own, and torch's samples are smaller than all of them. Here one or two dimensions of a sample become
as long as such a size, one less or one more; the sizes are read from the sources (constants.py), so that
a kernel's new constant has its tests. The grown elements repeat the sample's own, made a little smaller,
each by another factor: values stay in the function's domain, indices in range, and few are equal.
"""

from __future__ import annotations

import itertools
import random
import time
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import constants
import torch
from agree import flatten
from layouts import map_tensors, relaid
from scope import key
from torch.testing._internal.opinfo.core import SampleInput

# Elements of the largest tensor of a case, and seconds that torch may take for it, by estimate.
LARGEST = 1 << 21
_SECONDS = 0.25
_LAYOUTS = ("", "", "", "transposed", "stepped", "offset", "expanded")

Arguments = tuple[Any, Any]  # positional, by name


def _grown(x: torch.Tensor, growth: dict[int, int]) -> torch.Tensor:
    """The tensor with dimension d of size growth[d], of its own elements times numbers in (0.97, 1]."""
    made = x.detach().resolve_conj().resolve_neg()
    for d, size in growth.items():
        made = made.index_select(d, torch.arange(size) % made.shape[d])
    if growth and (made.is_floating_point() or made.is_complex()) and made.dtype.itemsize > 1:
        generator = torch.Generator().manual_seed(made.numel())
        factor = 1 - 0.03 * torch.rand(made.shape, generator=generator, dtype=torch.float64)
        made = (made.to(torch.promote_types(made.dtype, torch.float64)) * factor).to(made.dtype)
    return made.contiguous()


# Which dimensions of the other tensors grow with dimension d of the first: those of the same size that
# stand as far from the end, as far from the beginning, anywhere; none.
def _from_end(x: torch.Tensor, first: torch.Tensor, d: int) -> list[int]:
    at = x.ndim - (first.ndim - d)
    return [at] if at >= 0 and x.shape[at] == first.shape[d] else []


def _from_start(x: torch.Tensor, first: torch.Tensor, d: int) -> list[int]:
    return [d] if d < x.ndim and x.shape[d] == first.shape[d] else []


def _anywhere(x: torch.Tensor, first: torch.Tensor, d: int) -> list[int]:
    return [at for at in range(x.ndim) if x.shape[at] == first.shape[d]]


def _nowhere(x: torch.Tensor, first: torch.Tensor, d: int) -> list[int]:
    return [d] if x is first else []


_WAYS: tuple[Callable[[torch.Tensor, torch.Tensor, int], list[int]], ...] = (
    _from_end,
    _from_start,
    _anywhere,
    _nowhere,
)


def _tensors(arguments: Arguments) -> list[torch.Tensor]:
    return [x for x in flatten([*arguments[0], *arguments[1].values()]) if isinstance(x, torch.Tensor)]


def _grow(arguments: Arguments, ways: dict[int, Any], growth: dict[int, int]) -> Arguments | None:
    """The arguments with these dimensions of the first tensor, and what goes with them, of these sizes."""
    first = next((x for x in _tensors(arguments) if x.ndim), None)
    if first is None:
        return None
    grown: dict[int, dict[int, int]] = {}
    for d, size in growth.items():
        for x in _tensors(arguments):
            for at in ways[d](x, first, d):
                grown.setdefault(id(x), {})[at] = size
    for x in _tensors(arguments):
        count = x.numel()
        for at, size in grown.get(id(x), {}).items():
            count = count // max(x.shape[at], 1) * size
        if count > LARGEST:
            return None

    def one(x: torch.Tensor) -> torch.Tensor:
        return _grown(x, grown.get(id(x), {})).requires_grad_(x.requires_grad)

    made: Arguments = map_tensors(arguments, one)
    return made


class Grower:
    """Grows one sample of one operator; knows which dimensions can, and about what a call costs."""

    def __init__(self, operator: Callable[..., Any], arguments: Arguments) -> None:
        self.operator, self.arguments = operator, arguments
        first = next((x for x in _tensors(arguments) if x.ndim), None)
        self.sizes = list(first.shape) if first is not None else []
        self.ways: dict[int, Any] = {}
        self.slowest = (0.0, 1)  # seconds of the dearest try, and the elements of its largest tensor
        for d, size in enumerate(self.sizes):
            if size == 0:
                continue
            for way in _WAYS:
                if self._takes(d, way, 2 * size + 31):
                    self.ways[d] = way
                    break

    def _takes(self, d: int, way: Any, size: int) -> bool:
        """Whether torch takes the sample grown so."""
        made = _grow(self.arguments, {d: way}, {d: size})
        if made is None:
            return False
        start = time.perf_counter()
        try:
            self.operator(*made[0], **made[1])
        except Exception:
            return False
        elements = max(x.numel() for x in _tensors(made))
        self.slowest = max(self.slowest, (time.perf_counter() - start - 1e-3, max(elements, 1)))
        return True

    def cases(self, choice: random.Random, count: int) -> Iterator[Arguments]:
        """`count` tries to grow one dimension or two."""
        for _ in range(count if self.ways else 0):
            dims = choice.sample(sorted(self.ways), min(len(self.ways), choice.choice((1, 2, 2))))
            growth = {d: choice.choice(constants.sizes()) for d in dims}
            total = 1
            for d, size in enumerate(self.sizes):
                total *= growth.get(d, size)
            # Most operators' time grows as their elements, that of square matrices as their power 1.5.
            seconds, elements = self.slowest
            if total > LARGEST or seconds * (total / elements) ** 1.5 > _SECONDS:
                continue
            made = _grow(self.arguments, self.ways, growth)
            if made is not None:
                yield made


def cases(
    op: Any, dtype: torch.dtype, samples: list[Any], count: int
) -> Iterator[tuple[int, str, SampleInput]]:
    """(sample's number, layout, grown sample) of about `count` cases, the same in every run."""
    choice = random.Random(zlib.crc32(f"{key(op)} {dtype}".encode()))
    numbers = list(range(len(samples)))
    choice.shuffle(numbers)
    each = max(1, count // max(len(numbers), 1))
    made = 0
    for n in numbers:
        sample = samples[n]
        grower = Grower(op.op, ((sample.input, *sample.args), sample.kwargs))
        for arguments in itertools.islice(grower.cases(choice, 4 * each), each):
            layout = choice.choice(_LAYOUTS)
            (first, *rest), by_name = relaid(arguments, layout) if layout else arguments
            grown = SampleInput(first, args=tuple(rest), kwargs=by_name)
            grown.output_process_fn_grad = sample.output_process_fn_grad
            yield n, layout, grown
            made += 1
        if made >= count:
            return
