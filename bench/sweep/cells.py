"""The grid: every operator of the conformance set by dtype, layout, direction, size and threads.

Which cells there are follows from torch's operator database alone. The whole grid has some seven hundred thousand;
a part of it is drawn by the cells' names, the same in every run.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import scope

DTYPES = scope.words("float32 float64 bfloat16 float16 int64 int32 uint8 bool complex64")
# In which layout every tensor of a call lies. In some, one number, row or column stands for all.
REPEATED = scope.words("number rows columns")
LAYOUTS = [*scope.words("contiguous transposed stepped offset channels_last"), *REPEATED]
# The last two: of a gradient that is one number, expanded, and of a transposed one.
DIRECTIONS = scope.words("forward in_place out backward backward_expanded backward_transposed")
# About how many elements the largest tensor has; 0: torch's sample as it is, a few dozen.
SIZES = {"small": 0, "512x512": 1 << 18, "2048x2048": 1 << 22}
THREADS = scope.words("one all")


@dataclass(frozen=True)
class Cell:
    """One combination, by words."""

    op: str
    dtype: str
    layout: str
    direction: str
    size: str
    threads: str

    @property
    def name(self) -> str:
        return " ".join((self.op, self.dtype, self.layout, self.direction, self.size, self.threads))

    @property
    def differentiates(self) -> bool:
        return self.direction.startswith("backward")


def _directions(op: Any, dtype: str) -> list[str]:
    """Those that torch's database says the operator has."""
    found = ["forward"]
    if op.inplace_variant is not None and op.inplace_variant is not op.op:
        found.append("in_place")
    if op.supports_out:
        found.append("out")
    if op.supports_autograd and dtype in {str(d)[6:] for d in op.supported_backward_dtypes("cpu")}:
        found += [d for d in DIRECTIONS if d.startswith("backward")]
    return found


@dataclass(frozen=True)
class Wanted:
    """What of the grid: words of each axis, none for all of them, and the share of the cells."""

    ops: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    layouts: tuple[str, ...] = ()
    directions: tuple[str, ...] = ()
    sizes: tuple[str, ...] = ()
    threads: tuple[str, ...] = ()
    share: float = 1.0


def cells(wanted: Wanted) -> Iterable[tuple[Any, list[Cell]]]:
    """(operator, its cells), those of one dtype and size behind each other."""
    for op in scope.entries(list(wanted.ops)):
        found = [
            cell
            for d in scope.dtypes(op, list(wanted.dtypes or DTYPES))
            for size in wanted.sizes or SIZES
            for direction in _directions(op, str(d)[6:])
            if not wanted.directions or direction in wanted.directions
            for layout in wanted.layouts or LAYOUTS
            for threads in wanted.threads or THREADS
            if _drawn(cell := Cell(scope.key(op), str(d)[6:], layout, direction, size, threads), wanted.share)
        ]
        if found:
            yield op, found


def _drawn(cell: Cell, share: float) -> bool:
    return zlib.crc32(cell.name.encode()) < share * (1 << 32)
