"""Where a rank's part of a tensor begins and how large it is.

A dimension of size S that n ranks cut has ceil(S / n) elements on each rank as far as they go. Where several
dimensions of a mesh cut the same dimension, each cuts what those before it have left.
"""

from __future__ import annotations

from collections.abc import Sequence

from mica.distributed.tensor.placement_types import Placement, Shard, _StridedShard


def part(size: int, ranks: int, rank: int) -> tuple[int, int]:
    """The size and the beginning of a rank's part."""
    whole = -(-size // ranks)
    begin = min(whole * rank, size)
    return min(whole, size - begin), begin


def contiguous_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of a tensor of this shape whose elements lie in order."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(strides[::-1])


def strides_like(strides: Sequence[int], shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of a dense tensor of this shape whose dimensions lie in the order of these strides."""
    order = sorted(range(len(shape)), key=lambda d: (-strides[d], d))
    made, step = [0] * len(shape), 1
    for d in reversed(order):
        made[d] = step
        step *= max(shape[d], 1)
    return tuple(made)


def local_box(
    shape: Sequence[int], mesh_shape: Sequence[int], here: Sequence[int], placements: Sequence[Placement]
) -> tuple[list[int], list[int]]:
    """The sizes and the offsets of the part at the coordinates `here`."""
    sizes, offsets = list(shape), [0] * len(shape)
    for ranks, rank, placement in zip(mesh_shape, here, placements):
        if isinstance(placement, _StridedShard):
            inner, _ = part(sizes[placement.dim] // placement.split_factor, ranks, rank)
            sizes[placement.dim] = placement.split_factor * inner
        elif isinstance(placement, Shard):
            size, begin = part(sizes[placement.dim], ranks, rank)
            sizes[placement.dim] = size
            offsets[placement.dim] += begin
    return sizes, offsets
