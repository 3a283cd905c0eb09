"""Two tensors that become each other, objects and names staying where they are.

Modules convert and load so where mica.__future__ says it.
"""

from __future__ import annotations

from mica import _C
from mica._C import Tensor


def swap_tensors(t1: Tensor, t2: Tensor) -> None:
    """Each object gets the other's elements, class, attributes, hooks and gradient.

    Neither may be held by a view, a graph or a weak reference.
    """
    _C._swap_tensors(t1, t2)
