"""The two sides of a cell, Mica's and torch's, and their times: calls in turn, minima over rounds."""

from __future__ import annotations

import math
import os
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from agree import flatten
from cells import Cell
from operands import NoCellError, Operands
from sizes import Arguments
from translate import function, to_mica

import mica

warnings.simplefilter("ignore")
_ROUND = 0.004  # seconds of one side in a round, at least one call
_ROUNDS = 5
_LONGEST = 3.0  # seconds of both sides, after which no further round begins
SLOW = 1.2  # times torch's time, from which a cell is measured again
_RUNS = 3


@dataclass
class Side:
    """A call to be timed, and what is done before each call of it without being timed."""

    call: Callable[[], Any]
    before: Callable[[], Any] | None = None

    def once(self) -> float:
        """Seconds of one call."""
        if self.before:
            self.before()
        start = time.perf_counter()
        self.call()
        return time.perf_counter() - start

    def least(self, loops: int) -> float:
        """Seconds of a call: the least of so many, or their mean where nothing is done between them."""
        if self.before:
            return min(self.once() for _ in range(loops))
        start = time.perf_counter()
        for _ in range(loops):
            self.call()
        return (time.perf_counter() - start) / loops


def _tensors(library: Any, value: Any) -> list[Any]:
    return [x for x in flatten([value]) if isinstance(x, library.Tensor)]


def _gradient(library: Any, result: Any, direction: str) -> Any:
    if direction == "backward_expanded":
        return library.ones((), dtype=result.dtype).expand(result.shape)
    if direction == "backward_transposed":
        if result.ndim < 2:
            raise NoCellError("the result has no two dimensions to transpose")
        shape = [*result.shape[:-2], result.shape[-1], result.shape[-2]]
        return library.ones(shape, dtype=result.dtype).mT
    return library.ones(list(result.shape), dtype=result.dtype)


def _side(library: Any, call: Any, in_place: Any, arguments: Arguments, direction: str) -> Side:
    args, kwargs = arguments
    if direction == "forward":
        return Side(lambda: call(*args, **kwargs))
    if direction == "in_place":
        first, kept = args[0], args[0].clone()
        in_place(*args, **kwargs)
        if first.shape != kept.shape:
            raise NoCellError("the call changes the shape")
        return Side(lambda: in_place(*args, **kwargs), lambda: first.copy_(kept))
    if direction == "out":
        out = call(*args, **kwargs)
        return Side(lambda: call(*args, **kwargs, out=out))
    inputs = [x for x in _tensors(library, [*args, *kwargs.values()]) if x.requires_grad]
    results = [x for x in _tensors(library, call(*args, **kwargs)) if x.requires_grad]
    if not inputs or not results:
        raise NoCellError("nothing is differentiated")
    gradients = [_gradient(library, x, direction) for x in results]
    grad = library.autograd.grad
    return Side(lambda: grad(results, inputs, gradients, retain_graph=True, allow_unused=True))


def _loops(side: Side) -> int:
    side.once()
    return max(1, min(10000, int(_ROUND / max(side.once(), 1e-7))))


def _least(sides: tuple[Side, Side]) -> tuple[float, float]:
    """The least seconds of each side over the rounds, the sides in turn."""
    loops = [_loops(s) for s in sides]
    least = [math.inf, math.inf]
    start = time.perf_counter()
    for turn in range(_ROUNDS):
        for k in (0, 1) if turn % 2 else (1, 0):
            least[k] = min(least[k], sides[k].least(loops[k]))
        if time.perf_counter() - start > _LONGEST:
            break
    return least[0], least[1]


def measure(operands: Operands, cell: Cell) -> dict[str, Any]:
    """What is written down of a cell: microseconds and ratios of up to three runs, or why there are none."""
    try:
        torch.set_num_threads(1)
        theirs = operands.of(cell)
        threads = 1 if cell.threads == "one" else len(os.sched_getaffinity(0))
        torch.set_num_threads(threads)
        mica.set_num_threads(threads)
        return _measured(operands, cell, theirs)
    except NoCellError as reason:
        return {"left_out": str(reason)}


def _measured(operands: Operands, cell: Cell, theirs: Arguments) -> dict[str, Any]:
    op = operands.op
    try:
        peer = _side(torch, op.op, op.inplace_variant, theirs, cell.direction)
        peer.once()
    except NoCellError:
        raise
    except Exception as error:
        raise NoCellError(f"torch refuses it: {type(error).__name__}") from error
    try:
        ours = to_mica(operands.of(cell))
        in_place = (
            function(op.inplace_variant, f"Tensor.{op.name}_") if cell.direction == "in_place" else None
        )
        side = _side(mica, function(op.op, op.name), in_place, ours, cell.direction)
        side.once()
    except Exception as error:
        return {"failed": f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]:.200}"}
    runs = list(_runs(side, peer))
    best = min(runs, key=lambda run: run[0] / run[1])
    return {
        "mica_us": best[0] * 1e6,
        "torch_us": best[1] * 1e6,
        "ratios": [round(a / b, 4) for a, b in runs],
    }


def _runs(ours: Side, theirs: Side) -> Iterator[tuple[float, float]]:
    """Until one shows that the cell is not slow: noise makes cells slower, and both sides alike."""
    for _ in range(_RUNS):
        found = _least((ours, theirs))
        yield found
        if found[0] <= SLOW * found[1]:
            return
