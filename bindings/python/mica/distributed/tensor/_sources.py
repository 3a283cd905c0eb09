"""Views of tensors that had to be redistributed first: what is written to one reaches the other.

A view operator whose rule needs another layout looks at a copy of the local tensor, its *replica*; a view of such a
view at the view's own local tensor. A write through the
view goes to the replica and back into the tensor; where the tensor, or another view of it, was written since, the
view is made anew. Versions tell.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mica
from mica._C import Tensor
from mica.distributed.tensor._moves import redistributed


class Source:
    """What a view was made from: `view(replica)` is its local tensor."""

    def __init__(self, base: Any, layout: Any, replica: Tensor, view: Callable[[Tensor], Tensor]) -> None:
        self.base, self.layout, self.replica, self.view = base, layout, replica, view
        self.version = base._version


def local_of(t: Any) -> Tensor:
    """A DTensor's local tensor, as it is now; all ranks ask."""
    source = t._source
    if source is not None:
        base = local_of(source.base)
        if source.version != source.base._version and source.replica is not base:
            moved = redistributed(base, t._mesh, source.base.shape, source.base._placements, source.layout)
            source.replica.copy_(moved)
            source.version = source.base._version
    local: Tensor = t._local_tensor
    return local


def is_stale(t: Any) -> bool:
    """Whether local_of() would ask the other ranks for what was written elsewhere."""
    source = t._source
    while source is not None:
        base = source.base
        if source.version != base._version and source.replica is not base._local_tensor:
            return True
        source = base._source
    return False


def was_written(t: Any) -> None:
    """After a write to a DTensor's local tensor."""
    mica.autograd.graph.increment_version(t)
    source = t._source
    while source is not None:
        base = source.base
        if source.replica is not base._local_tensor:
            moved = redistributed(source.replica, t._mesh, base.shape, source.layout, base._placements)
            base._local_tensor.copy_(moved)
        source.version = base._version
        source = base._source
