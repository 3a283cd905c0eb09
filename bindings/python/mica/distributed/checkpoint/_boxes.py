"""Boxes of tensors: whether they fill a shape, where two overlap, and in what runs a box lies in memory."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from mica.distributed.checkpoint.metadata import ChunkStorageMetadata

_SHORT = (
    32 << 10
)  # bytes that are read in the time of another call: one read takes several runs that are shorter
_WASTE = 16  # with what lies between, if that is no more, or all no more than so many times what is wanted
_MOST = 4 << 20  # bytes of a read


def said(box: ChunkStorageMetadata) -> str:
    """A box in words, as a slice of the tensor: [0:2, 4:8]."""
    return "[" + ", ".join(f"{o}:{o + n}" for o, n in zip(box.offsets, box.sizes)) + "]"


def fault(size: Sequence[int], chunks: Sequence[ChunkStorageMetadata]) -> str | None:
    """What keeps chunks from filling a shape exactly; None if they do."""
    for chunk in chunks:
        if not len(chunk.offsets) == len(chunk.sizes) == len(size):
            return f"has a chunk {said(chunk)} of ({len(chunk.sizes)}) dimensions in the shape {list(size)}"
        if any(o < 0 or n < 0 or o + n > whole for o, n, whole in zip(chunk.offsets, chunk.sizes, size)):
            return f"has a chunk {said(chunk)} that is not within the shape {list(size)}"
    full = [c for c in chunks if math.prod(c.sizes)]
    for one, other in _overlapping(len(size), full):
        return f"has chunks {said(one)} and {said(other)} that overlap"
    filled, whole = sum(math.prod(c.sizes) for c in full), math.prod(size)
    if filled < whole:
        return f"has chunks that leave a hole: they have ({filled}) of the ({whole}) elements of the shape {list(size)}"
    return None


def _overlapping(
    dims: int, chunks: Sequence[ChunkStorageMetadata]
) -> Iterator[tuple[ChunkStorageMetadata, ChunkStorageMetadata]]:
    """Pairs that overlap, found along the dimension that is cut most."""
    along = most_cut(dims, chunks)
    active: list[
        tuple[int, int]
    ] = []  # ends, and places in `order`, of those that reach beyond the current begin
    order = chunks if along is None else sorted(chunks, key=lambda c: c.offsets[along])
    for i, chunk in enumerate(order):
        begin, end = (
            (0, 1) if along is None else (chunk.offsets[along], chunk.offsets[along] + chunk.sizes[along])
        )
        del active[: bisect.bisect_right(active, (begin, len(order)))]
        for _, j in active:
            if overlap(chunk, order[j]) is not None:
                yield order[j], chunk
        bisect.insort(active, (end, i))


def most_cut(dims: int, chunks: Sequence[ChunkStorageMetadata]) -> int | None:
    """The dimension along which most chunks begin at different places; None if there are no dimensions."""
    return max(range(dims), key=lambda d: len({c.offsets[d] for c in chunks}), default=None)


class Overlap(NamedTuple):
    """A box that two boxes share: where it begins in each, and its shape."""

    in_one: tuple[int, ...]
    in_other: tuple[int, ...]
    lengths: tuple[int, ...]


def overlap(one: ChunkStorageMetadata, other: ChunkStorageMetadata) -> Overlap | None:
    """What two boxes of a tensor share; None if that has no elements."""
    begins = [max(a, b) for a, b in zip(one.offsets, other.offsets)]
    ends = [min(a + n, b + m) for a, n, b, m in zip(one.offsets, one.sizes, other.offsets, other.sizes)]
    if any(end <= begin for begin, end in zip(begins, ends)):
        return None
    return Overlap(
        tuple(b - o for b, o in zip(begins, one.offsets)),
        tuple(b - o for b, o in zip(begins, other.offsets)),
        tuple(e - b for b, e in zip(begins, ends)),
    )


class Read(NamedTuple):
    """One read of a file: elements from `first` in the chunk's memory, which have the shape `shape`; the part
    `within` of that shape, by dimension a begin and a length, belongs at `at` in the box."""

    first: int
    shape: tuple[int, ...]
    within: tuple[tuple[int, int], ...]
    at: tuple[int, ...]


def reads(
    sizes: Sequence[int], offsets: Sequence[int], lengths: Sequence[int], itemsize: int
) -> Iterator[Read]:
    """The reads that give a box of a chunk, in order: no more than the box, unless its runs are short."""
    dims = len(sizes)
    if math.prod(lengths) == 0:
        return
    strides = [math.prod(sizes[d + 1 :]) for d in range(dims)]
    level = dims  # each read spans dimensions level - 1 and those after it
    while level > 0 and list(lengths[level:]) == list(sizes[level:]):
        level -= 1
    while level > 0 and lengths[level] * strides[level] * itemsize < _SHORT:
        if strides[level - 1] * itemsize > max(_SHORT, _WASTE * math.prod(lengths[level:]) * itemsize):
            break
        level -= 1
    if dims == 0:
        yield Read(0, (), (), ())
        return
    inner = tuple(sizes[level + 1 :])
    within = tuple(zip(offsets[level + 1 :], lengths[level + 1 :]))
    rows = max(1, _MOST // max(1, strides[level] * itemsize))
    for outer in itertools.product(*(range(n) for n in lengths[:level])):
        first = sum((o + i) * s for o, i, s in zip(offsets, outer, strides))
        for row in range(0, lengths[level], rows):
            count = min(rows, lengths[level] - row)
            yield Read(
                first + (offsets[level] + row) * strides[level],
                (*(1,) * level, count, *inner),
                (*((0, 1),) * level, (0, count), *within),
                (*outer, row, *(0,) * len(inner)),
            )
