"""From one layout of a tensor on the ranks to another, by collectives on the local tensors.

One dimension of the mesh is changed after the other. Where an outer dimension of the mesh changes how it cuts a
dimension of the tensor, what inner ones cut of it is put together first and cut again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mica
from mica._C import Tensor
from mica.distributed.tensor._layout import contiguous_strides, local_box, part
from mica.distributed.tensor.placement_types import (
    Partial,
    Placement,
    Replicate,
    Shard,
    _StridedShard,
)

_IDENTITY = {"sum": 0, "product": 1}


class _Line:
    """The ranks of one dimension of the mesh, and what they do."""

    def __init__(self, mesh: Any, dim: int) -> None:
        self.group = mesh.get_group(dim).handle
        self.ranks, self.rank = mesh.size(dim), mesh.get_local_rank(dim)

    def joined(self, local: Tensor, dim: int, size: int) -> Tensor:
        """Shard(dim) to Replicate: `size` is that of all parts together."""
        rows = local.movedim(dim, 0)
        whole = -(-size // self.ranks)
        if rows.shape[0] < whole:
            rows = mica.cat([rows, rows.new_zeros((whole - rows.shape[0], *rows.shape[1:]))])
        all_rows: Tensor = mica.ops.collectives.all_gather(_plain(rows), self.group)
        return _in_order(all_rows[:size].movedim(0, dim))

    def cut(self, local: Tensor, dim: int) -> Tensor:
        """Replicate to Shard(dim)."""
        size, begin = part(local.shape[dim], self.ranks, self.rank)
        return local.narrow(dim, begin, size).clone(memory_format=mica.contiguous_format)

    def reduced(self, local: Tensor, reduction: str) -> Tensor:
        """Partial to Replicate."""
        return _as_numbers(local, lambda x: mica.ops.collectives.all_reduce(_plain(x), self.group, reduction))

    def reduced_and_cut(self, local: Tensor, reduction: str, dim: int) -> Tensor:
        """Partial to Shard(dim)."""
        rows, size = local.movedim(dim, 0), local.shape[dim]
        whole = -(-size // self.ranks)
        missing = whole * self.ranks - size
        if missing:
            rows = mica.cat([rows, rows.new_zeros((missing, *rows.shape[1:]))])
        mine = _as_numbers(
            rows, lambda x: mica.ops.collectives.reduce_scatter(_plain(x), self.group, reduction)
        )
        return _in_order(mine[: part(size, self.ranks, self.rank)[0]].movedim(0, dim))

    def turned(self, local: Tensor, old: int, new: int, size: int) -> Tensor:
        """Shard(old) to Shard(new): `size` is that of `old`, of all parts together."""
        mine = part(local.shape[new], self.ranks, self.rank)[0]
        sent, shapes = [], []
        for rank in range(self.ranks):
            to, begin = part(local.shape[new], self.ranks, rank)
            sent.append(local.narrow(new, begin, to).reshape(-1))
            shape = list(local.shape)
            shape[new], shape[old] = mine, part(size, self.ranks, rank)[0]
            shapes.append(shape)
        numbers = [mica.Size(shape).numel() for shape in shapes]
        came = mica.ops.collectives.all_to_all(
            _plain(mica.cat(sent)), self.group, numbers, [x.numel() for x in sent]
        )
        parts = [x.view(shape) for x, shape in zip(came.split(numbers), shapes)]
        return mica.cat(parts, old)

    def spread(self, local: Tensor, reduction: str) -> Tensor:
        """Replicate to Partial: the reduction of what the ranks have is the tensor."""
        neutral = _IDENTITY.get(reduction)
        return mica.full_like(local, neutral) if neutral is not None and self.rank else local


def _plain(x: Tensor) -> Tensor:
    """What collectives take: in order, and no view that is read the other way."""
    return x.resolve_conj().resolve_neg().contiguous()


def _in_order(x: Tensor) -> Tensor:
    """Contiguous, with the strides of dimensions of size 1 too, which view(dtype) asks for."""
    x = x.contiguous()
    strides = contiguous_strides(x.shape)
    return x if x.stride() == strides else x.as_strided(x.shape, strides)


def _as_numbers(x: Tensor, reduce: Any) -> Tensor:
    """Reductions of bools count them as 0 and 1."""
    reduced: Tensor = reduce(x.to(mica.uint8)).to(mica.bool) if x.dtype == mica.bool else reduce(x)
    return reduced


def _changed(local: Tensor, line: _Line, old: Placement, new: Placement, size: int) -> Tensor:
    """One dimension of the mesh: `size` is of the dimension that `old` cuts."""
    if old == new or line.ranks == 1:
        return local
    if isinstance(old, _StridedShard):
        whole = line.joined(_split(local, old), old.dim + 1, size // old.split_factor)
        return _changed(whole.flatten(old.dim, old.dim + 1), line, Replicate(), new, 0)
    if isinstance(new, _StridedShard):
        whole = _changed(local, line, old, Replicate(), size)
        return line.cut(_split(whole, new), new.dim + 1).flatten(new.dim, new.dim + 1)
    if isinstance(old, Partial):
        if isinstance(new, Shard):
            return line.reduced_and_cut(local, old.reduce_op, new.dim)
        local, old = line.reduced(local, old.reduce_op), Replicate()
    elif isinstance(old, Shard):
        if isinstance(new, Shard):
            return line.turned(local, old.dim, new.dim, size)
        local = line.joined(local, old.dim, size)
    if isinstance(new, Shard):
        return line.cut(local, new.dim)
    return line.spread(local, new.reduce_op) if isinstance(new, Partial) else local


def _split(x: Tensor, placement: _StridedShard) -> Tensor:
    """The dimension as the two that it counts through."""
    outer, dim = placement.split_factor, placement.dim
    return x.reshape([*x.shape[:dim], outer, x.shape[dim] // outer, *x.shape[dim + 1 :]])


def _kept_apart(old: Sequence[Placement], new: Sequence[Placement]) -> list[int]:
    """The dimensions of the mesh that change, and those inside of them that cut the same dimension of the tensor."""
    changing: list[int] = []
    for j, placement in enumerate(old):
        cuts = {p.dim for p in (placement, new[j]) if isinstance(p, Shard)}
        outer = {p.dim for i in changing for p in (old[i], new[i]) if isinstance(p, Shard)}
        if placement != new[j] or cuts & outer:
            changing.append(j)
    return changing


def redistributed(
    local: Tensor, mesh: Any, shape: Sequence[int], old: Sequence[Placement], new: Sequence[Placement]
) -> Tensor:
    """The local tensor of a tensor of this shape that lies as `new` says, of the one that lies as `old` says.

    All ranks of the mesh call it.
    """
    changing = _kept_apart(old, new)
    if not changing:
        return local
    here, mesh_shape = mesh.get_coordinate(), mesh.shape
    now = list(old)

    def step(j: int, to: Placement) -> None:
        nonlocal local
        before = now[j]
        size = 0
        if isinstance(before, Shard):
            sizes, _ = local_box(shape, mesh_shape[:j], here[:j], now[:j])
            size = sizes[before.dim]
        local = _changed(local, _Line(mesh, j), before, to, size)
        now[j] = to

    if len(changing) == 1:
        step(changing[0], new[changing[0]])
        return local
    for j in reversed(changing):
        step(j, new[j] if old[j] == new[j] and isinstance(new[j], Partial) else Replicate())
    for j in changing:
        step(j, new[j])
    return local
