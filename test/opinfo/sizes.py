"""Samples grown to the sizes at which kernels change their way.

A kernel works in blocks, cascades of blocks, panels, tiles and shares of threads, each with a size of
its own, and torch's samples are smaller than all of them. Here one or two dimensions of a sample become
as long as such a size, one less or one more; the sizes are read from the sources (constants.py), so that
a kernel's new constant has its tests. The grown elements repeat the sample's own, made a little smaller,
each by another factor: values stay in the function's domain, indices in range, and few are equal.
"""

from __future__ import annotations

import math
import random
import time
import zlib
from collections.abc import Callable
from typing import Any

import constants
import torch
from agree import flatten
from layouts import map_tensors, relaid
from rules import factors
from scope import key
from torch.testing._internal.opinfo.core import SampleInput

# Elements of the largest tensor of a case, so that 2^18 + 1 fit.
LARGEST = 1 << 19
# Seconds that torch may take for a step towards a case, each of some four times the elements of the one
# before: of what looks at pairs of elements the case itself then takes half a second.
_SECONDS = 1 / 32
_STEP = 4
_FACTORED = 1 << 26  # elements times rows of matrices that are factored
_DRAWS = 4  # of sizes, before a case is given up that they make too large
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


def _grow(
    arguments: Arguments, ways: dict[int, Any], growth: dict[int, int], largest: int
) -> Arguments | None:
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
        if count > largest:
            return None

    def one(x: torch.Tensor) -> torch.Tensor:
        return _grown(x, grown.get(id(x), {})).requires_grad_(x.requires_grad)

    made: Arguments = map_tensors(arguments, one)
    return made


def _differentiated(result: Any) -> int:
    """Runs a result's backward; the elements of the result."""
    outputs = [x for x in flatten(result) if isinstance(x, torch.Tensor)]
    recorded = [x for x in outputs if x.requires_grad]
    if recorded:
        torch.autograd.backward(recorded, [torch.ones_like(x) for x in recorded])
    return max((x.numel() for x in outputs), default=0)


class Grower:
    """Grows one sample of one operator; knows which dimensions can.

    Nothing is known before `learn`, which calls torch: a worker that dies in it can leave it out.
    """

    def __init__(self, op: Any, dtype: torch.dtype, number: int, sample: Any, largest: int = LARGEST) -> None:
        self.operator, self.sample, self.factors = op.op, sample, factors(op)
        self.seed = f"{key(op)} {dtype} {number}"
        self.largest = largest
        self.arguments: Arguments = ((sample.input, *sample.args), sample.kwargs)
        first = next((x for x in _tensors(self.arguments) if x.ndim), None)
        self.sizes = list(first.shape) if first is not None else []
        self.ways: dict[int, Any] = {}
        self.powers: dict[int, float] = {}  # the result's elements grow as this power of a dimension's size
        self.elements = 0  # of the result as the sample is

    def learn(self) -> None:
        """Finds the dimensions that can grow."""
        self.elements = max(self._takes({}, {}), 1)
        for d, size in enumerate(self.sizes):
            if size == 0:
                continue
            grown = 2 * size + 31
            for way in _WAYS:
                elements = self._takes({d: way}, {d: grown})
                if elements >= 0:
                    self.ways[d] = way
                    self.powers[d] = math.log(max(elements, 1) / self.elements, grown / size)
                    break

    def _takes(self, ways: dict[int, Any], growth: dict[int, int]) -> int:
        """The elements of the result that torch gives of the sample grown so; -1 if it does not take it."""
        made = _grow(self.arguments, ways, growth, self.largest)
        if made is None:
            return -1
        try:
            return _differentiated(self.operator(*made[0], **made[1]))
        except Exception:
            return -1

    def _slow(self, growth: dict[int, int]) -> bool:
        """Whether a sample grown so takes torch too long: it is tried on the way there."""
        ratios = {d: size / self.sizes[d] for d, size in growth.items()}
        steps = math.ceil(math.log(math.prod(ratios.values()), _STEP))
        for step in range(1, steps):
            start = time.process_time()
            self._takes(self.ways, {d: round(self.sizes[d] * r ** (step / steps)) for d, r in ratios.items()})
            if time.process_time() - start > _SECONDS:
                return True
        return False

    def case(self, k: int) -> tuple[str, SampleInput] | None:
        """The layout and the sample of try k, one dimension or two of it grown; the same in every run."""
        choice = random.Random(zlib.crc32(f"{self.seed} {k}".encode()))
        arguments = next(filter(None, (self._drawn(choice) for _ in range(_DRAWS if self.ways else 0))), None)
        if arguments is None:
            return None
        layout = choice.choice(_LAYOUTS)
        (first, *rest), by_name = relaid(arguments, layout) if layout else arguments
        grown = SampleInput(first, args=tuple(rest), kwargs=by_name)
        grown.output_process_fn_grad = self.sample.output_process_fn_grad
        return layout, grown

    def _drawn(self, choice: random.Random) -> Arguments | None:
        """The arguments at sizes that are drawn, unless they are too large or slow."""
        dims = choice.sample(sorted(self.ways), min(len(self.ways), choice.choice((1, 2, 2))))
        # Never smaller: indices stay in range.
        return self.grown(
            {d: choice.choice([n for n in constants.sizes() if n >= self.sizes[d]]) for d in dims}
        )

    def grown(self, growth: dict[int, int]) -> Arguments | None:
        """The arguments with these dimensions of these sizes; None where that is too large or slow."""
        total, result = 1, float(self.elements)
        for d, size in enumerate(self.sizes):
            total *= growth.get(d, max(size, 1))
            result *= (growth[d] / size) ** self.powers[d] if d in growth else 1
        if (
            self.factors
            and total * min([growth.get(d, n) for d, n in enumerate(self.sizes)][-2:]) > _FACTORED
        ):
            return None
        if max(total, result / 4) > self.largest or self._slow(growth):
            return None
        return _grow(self.arguments, self.ways, growth, self.largest)


def shuffled(op: Any, dtype: torch.dtype, samples: list[Any]) -> list[tuple[int, Any]]:
    """(number, sample) in an order of chance, the same in every run."""
    numbered = list(enumerate(samples))
    random.Random(zlib.crc32(f"{key(op)} {dtype}".encode())).shuffle(numbered)
    return numbered
