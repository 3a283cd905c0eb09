"""Sharding rules as equations of indices: which dimensions of an operator's tensors are one and the same.

    mm:  inputs [[i, k], [k, j]], outputs [[i, j]], sums {k: "sum"}

From an equation follow all strategies of one dimension of a mesh: each index can be cut in all tensors that have it,
those without it being replicated; where results do not have it, they are partial. An operator that is linear in a
tensor also takes and gives what is partial.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Sequence
from typing import NamedTuple

from mica.distributed.tensor.placement_types import (
    REDUCTIONS,
    Partial,
    Placement,
    Replicate,
    Shard,
    _StridedShard,
)

Index = Hashable  # None: a dimension that is not cut


class Strategy(NamedTuple):
    """How tensors lie on the ranks of one dimension of a mesh, before and after a call."""

    inputs: tuple[Placement, ...]
    outputs: tuple[Placement, ...]


class Join(NamedTuple):
    """A view's strategy that cuts an inner dimension of several that count as one."""

    equal: int  # the size that ranks have to divide; 0: none
    before: Placement
    after: Placement


@dataclasses.dataclass
class Equation:
    """The indices of each tensor that an operator takes (in the order of arguments) and gives."""

    inputs: list[list[Index]]
    outputs: list[list[Index]]
    sums: dict[Index, str] = dataclasses.field(
        default_factory=dict
    )  # indices that results lack: the reduction
    added: set[int] = dataclasses.field(default_factory=set)  # tensors that are added to the result of sums
    linear: list[frozenset[int]] = dataclasses.field(default_factory=list)  # partial sums pass, together
    passing: dict[int, tuple[str, ...]] = dataclasses.field(default_factory=dict)  # these reductions pass too
    even: set[Index] = dataclasses.field(default_factory=set)  # cut into equal parts only
    filled: set[Index] = dataclasses.field(default_factory=set)  # cut only where no part is empty
    empty: set[int] = dataclasses.field(default_factory=set)  # results without elements
    sizes: str | None = None  # the argument that holds the sizes of the first result
    as_view: bool = False  # the local result is the local tensor with other sizes
    joins: list[Join] = dataclasses.field(default_factory=list)  # of views: what cuts inner dimensions
    shape_only: bool = False  # the elements of tensors are not read, so that partial ones do

    def replicated(self) -> Strategy:
        """Every rank computes all."""
        return Strategy((Replicate(),) * len(self.inputs), (Replicate(),) * len(self.outputs))

    def strategies(
        self,
        shapes: Sequence[Sequence[int]],
        results: Sequence[Sequence[int]],
        ranks: int,
        splits: Sequence[int] = (),
    ) -> list[Strategy]:
        """All strategies for tensors of these shapes on so many ranks; the replicated one first.

        Args:
            shapes (sequence of sequence of int): Of the inputs.
            results (sequence of sequence of int): Of the outputs.
            ranks (int): Of all of the mesh, so that parts of parts are equal too.
            splits (sequence of int): The split factors of tensors that are cut in an inner dimension. Default: none.

        Returns:
            list of Strategy: At least one.
        """
        found = [self.replicated()]
        indices = dict.fromkeys(i for row in [*self.inputs, *self.outputs] for i in row if i is not None)
        for index in indices:
            sizes = self._sizes(index, shapes, results)
            if index in self.even and any(size % ranks for size in sizes):
                continue
            if index in self.filled and any(-(-size // -(-size // ranks)) != ranks for size in sizes if size):
                continue
            if index in self.filled and 0 in sizes:
                continue
            strategy = self._cut(index)
            if strategy is not None:
                found.append(strategy)
                if index not in self.even | self.filled:
                    found += [_strided(strategy, k) for k in splits if not any(size % k for size in sizes)]
        found += [Strategy((j.before,), (j.after,)) for j in self.joins if j.equal % ranks == 0]
        if self.shape_only:
            whole = (Replicate(),) * len(self.outputs)
            found += [Strategy((Partial(r),) * len(self.inputs), whole) for r in REDUCTIONS]
        return found + self._partial()

    def _sizes(
        self, index: Index, shapes: Sequence[Sequence[int]], results: Sequence[Sequence[int]]
    ) -> list[int]:
        rows = [*zip(self.inputs, shapes), *zip(self.outputs, results)]
        return [size for row, shape in rows for i, size in zip(row, shape) if i == index]

    def _cut(self, index: Index) -> Strategy | None:
        """The strategy that cuts an index; None where it stands twice in a tensor, or cannot be summed."""
        if any(row.count(index) > 1 for row in [*self.inputs, *self.outputs]):
            return None
        partial = self.sums.get(index)
        outputs: list[Placement] = []
        for number, row in enumerate(self.outputs):
            if index in row:
                outputs.append(Shard(row.index(index)))
            elif number in self.empty:
                outputs.append(Replicate())
            elif partial is None:
                return None
            else:
                outputs.append(Partial(partial))
        inputs: list[Placement] = []
        for number, row in enumerate(self.inputs):
            if index in row:
                inputs.append(Shard(row.index(index)))
            elif number in self.added and partial is not None:
                inputs.append(Partial(partial))
            else:
                inputs.append(Replicate())
        return Strategy(tuple(inputs), tuple(outputs))

    def _partial(self) -> list[Strategy]:
        found = []
        groups = [(tensors, ("sum", "avg")) for tensors in self.linear]
        groups += [(frozenset([number]), reductions) for number, reductions in self.passing.items()]
        for tensors, reductions in groups:
            for reduction in reductions:
                inputs = [
                    Partial(reduction) if i in tensors else Replicate() for i in range(len(self.inputs))
                ]
                found.append(Strategy(tuple(inputs), (Partial(reduction),) * len(self.outputs)))
        return found


def _strided(strategy: Strategy, split: int) -> Strategy:
    """The same where the dimension that is cut counts through two, of which the inner one is."""

    def inner(placements: tuple[Placement, ...]) -> tuple[Placement, ...]:
        return tuple(
            _StridedShard(dim=p.dim, split_factor=split) if isinstance(p, Shard) else p for p in placements
        )

    return Strategy(inner(strategy.inputs), inner(strategy.outputs))
