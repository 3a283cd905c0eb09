"""Boxes of tensors against arrays: whether they fill a shape, what two share, and the reads that give one."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import mica
from mica.distributed.checkpoint import ChunkStorageMetadata, TensorStorageMetadata, _boxes
from mica.distributed.checkpoint.metadata import TensorProperties
from mica.distributed.checkpoint.planner_helpers import create_read_items_for_chunk_list


def box(offsets: Any, sizes: Any) -> ChunkStorageMetadata:
    return ChunkStorageMetadata(mica.Size(offsets), mica.Size(sizes))


def within(array: Any, chunk: ChunkStorageMetadata) -> Any:
    return array[
        (*(slice(o, o + n) for o, n in zip(chunk.offsets, chunk.sizes)), ...)
    ]  # a view, of 0-d arrays too


def cut_at_random(
    chance: random.Random, chunk: ChunkStorageMetadata, times: int
) -> list[ChunkStorageMetadata]:
    """Boxes that fill a box, by cuts along random dimensions at random places, of which some are at the ends."""
    if times == 0 or not chunk.sizes:
        return [chunk]
    dim = chance.randrange(len(chunk.sizes))
    at = chance.randint(0, chunk.sizes[dim])
    first, second = (list(chunk.offsets), list(chunk.sizes)), (list(chunk.offsets), list(chunk.sizes))
    first[1][dim], second[1][dim] = at, chunk.sizes[dim] - at
    second[0][dim] += at
    return [one for half in (first, second) for one in cut_at_random(chance, box(*half), times - 1)]


@pytest.mark.parametrize("seed", range(60))
def test_faults_are_found(seed: int) -> None:
    chance = random.Random(seed)
    size = [chance.randint(1, 6) for _ in range(chance.randint(0, 4))]
    chunks = cut_at_random(chance, box([0] * len(size), size), chance.randint(0, 4))
    chance.shuffle(chunks)
    assert _boxes.fault(size, chunks) is None
    full = [i for i, one in enumerate(chunks) if np.prod(one.sizes)]
    for _ in range(10):
        changed = list(chunks)
        i = chance.choice(full)
        what = (
            chance.choice(["drop", "double", "move", "grow"]) if size else chance.choice(["drop", "double"])
        )
        if what == "drop":
            del changed[i]
        elif what == "double":
            changed.append(changed[i])
        else:
            dim, step = chance.randrange(len(size)), chance.choice([-1, 1])
            offsets, sizes = list(changed[i].offsets), list(changed[i].sizes)
            (offsets if what == "move" else sizes)[dim] += step
            if min(sizes) < 0:
                continue
            changed[i] = box(offsets, sizes)
        counted = np.zeros(size, dtype=int)
        outside = False
        for one in changed:
            outside |= any(o < 0 or o + n > s for o, n, s in zip(one.offsets, one.sizes, size))
            if not outside:
                within(counted, one)[...] += 1
        assert (_boxes.fault(size, changed) is None) == (not outside and bool((counted == 1).all()))


@pytest.mark.parametrize("seed", range(40))
def test_read_items_fill_any_chunks_from_any_others(seed: int) -> None:
    chance = random.Random(seed)
    size = [chance.randint(1, 7) for _ in range(chance.randint(0, 3))]
    whole = box([0] * len(size), size)
    saved, local = (cut_at_random(chance, whole, chance.randint(0, 4)) for _ in range(2))
    array = np.arange(np.prod(size, dtype=int)).reshape(size)
    got = np.full(size, -1)
    kept = TensorStorageMetadata(TensorProperties(), mica.Size(size), saved)
    items = create_read_items_for_chunk_list("x", kept, local)
    for item in items:
        source, target = (
            within(array, saved[item.storage_index.index]),
            within(got, local[item.dest_index.index]),
        )
        part = within(target, box(item.dest_offsets, item.lengths))
        assert part.size and (part == -1).all()
        part[...] = within(source, box(item.storage_offsets, item.lengths))
    assert (got == array).all()


@pytest.mark.parametrize("seed", range(80))
def test_reads_give_a_box_and_little_else(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(seed)
    monkeypatch.setattr(_boxes, "_SHORT", chance.choice([1, 8, 40, 200]))
    monkeypatch.setattr(_boxes, "_MOST", chance.choice([1, 16, 100, 1000]))
    itemsize = chance.choice([1, 2, 8])
    sizes = [chance.randint(1, 6) for _ in range(chance.randint(0, 4))]
    offsets = [chance.randrange(n) for n in sizes]
    lengths = [chance.randint(0 if chance.random() < 0.1 else 1, n - o) for n, o in zip(sizes, offsets)]
    memory = np.arange(np.prod(sizes, dtype=int))
    got, read = np.full(lengths, -1), 0
    for one in _boxes.reads(sizes, offsets, lengths, itemsize):
        count = int(np.prod(one.shape, dtype=int))
        part = memory[one.first : one.first + count].reshape(one.shape)
        kept = [length for _, length in one.within]
        into = within(got, box(one.at, kept))
        assert (into == -1).all()
        into[...] = within(part, box([begin for begin, _ in one.within], kept))
        read += count
    assert (got == within(memory.reshape(sizes), box(offsets, lengths))).all()
    wanted = int(np.prod(lengths, dtype=int))
    if _boxes._SHORT == 1:
        assert read == wanted
    whole = lengths == sizes
    assert read == wanted or not whole
    for one in _boxes.reads(sizes, offsets, lengths, itemsize):
        row = int(np.prod(one.shape[1:], dtype=int)) * itemsize
        assert np.prod(one.shape, dtype=int) * itemsize <= max(_boxes._MOST, row)


@pytest.mark.parametrize(
    ("sizes", "lengths", "calls", "elements"),
    [
        ((1 << 22, 8), (1 << 22, 1), 32, 1 << 25),  # a column: rows of 32 bytes are read, 4 MiB at a time
        ((100, 8192), (100, 1), 1, 100 * 8192),  # runs of 4 bytes in rows of 32 KiB: less than a read costs
        ((100, 16384), (100, 1), 100, 100),  # in rows of 64 KiB: more
        ((100, 16384), (100, 1024), 2, 100 * 16384),  # a sixteenth of what is read is wanted
        ((100, 16384), (100, 1023), 100, 100 * 1023),  # less is
        ((1000, 100, 100), (1000, 1, 1), 1000, 100_000),  # a row of each plane, and no plane
    ],
)
def test_numbers_of_reads(sizes: Any, lengths: Any, calls: int, elements: int) -> None:
    found = list(_boxes.reads(sizes, [0] * len(sizes), lengths, 4))
    read = sum(int(np.prod(one.shape)) for one in found)
    assert (len(found), read) == (calls, elements)
