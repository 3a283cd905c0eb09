"""A cell's arguments: a sample of torch's database, grown to the cell's size, in the cell's layout."""

from __future__ import annotations

import math
from typing import Any

import rules
import scope
import torch
from cells import REPEATED, SIZES, Cell
from layouts import map_tensors, relaid
from sizes import Arguments, Grower

_SAMPLES = 8  # that are looked at for one that grows


class NoCellError(Exception):
    """The combination has no meaning, with the reason."""


def _grown(grower: Grower, elements: int) -> Arguments | None:
    """The sample with its last two dimensions that can grow as long as makes about so many elements."""
    dims = sorted(grower.ways)[-2:]
    if not dims:
        return None
    others = math.prod(max(n, 1) for d, n in enumerate(grower.sizes) if d not in dims)
    side = round((elements / others) ** (1 / len(dims)))
    if any(side < grower.sizes[d] for d in dims):
        return None
    return grower.grown(dict.fromkeys(dims, side))


def _dims(arguments: Arguments) -> int:
    seen: list[int] = []
    map_tensors(arguments, lambda x: seen.append(x.ndim))
    return max(seen, default=0)


class Operands:
    """The arguments of one operator's cells; those of the last dtype and sizes are kept."""

    def __init__(self, op: Any) -> None:
        self.op = op
        self._growers: dict[tuple[str, bool], list[Grower]] = {}
        self._at_size: dict[tuple[str, bool, str, bool], Arguments | None] = {}

    def of(self, cell: Cell) -> Arguments:
        """The call's (positional, named) arguments."""
        if cell.layout in REPEATED and rules.needs_rank(self.op):
            raise NoCellError("a matrix of equal rows has no answer")
        of_images = cell.layout == "channels_last"
        place = (cell.dtype, cell.differentiates, cell.size, of_images)
        if place not in self._at_size:
            self._at_size.clear()
            self._at_size[place] = self._grow(cell, of_images)
        arguments = self._at_size[place]
        if arguments is None:
            raise NoCellError("no sample is an image" if of_images else "no sample grows so far in the time")
        return arguments if cell.layout == "contiguous" else relaid(arguments, cell.layout)

    def _grow(self, cell: Cell, of_images: bool) -> Arguments | None:
        for grower in self._growers_of(cell.dtype, cell.differentiates):
            if of_images and _dims(grower.arguments) not in (4, 5):
                continue
            made = _grown(grower, SIZES[cell.size]) if SIZES[cell.size] else grower.arguments
            if made is not None:
                return made
        return None

    def _growers_of(self, dtype: str, grad: bool) -> list[Grower]:
        """Those of the operator's samples that grow along two dimensions, then the others."""
        if (dtype, grad) not in self._growers:
            samples = list(scope.samples(self.op, getattr(torch, dtype), grad, 1))
            largest = 2 * max(SIZES.values())
            found = [
                Grower(self.op, getattr(torch, dtype), n, s, largest)
                for n, s in enumerate(scope.evenly(samples, _SAMPLES))
            ]
            for grower in found:
                grower.learn()
            usable = [g for g in found if 0 not in g.sizes]
            self._growers = {(dtype, grad): sorted(usable, key=lambda g: -min(len(g.ways), 2))}
        return self._growers[dtype, grad]
