"""Two tensors that become each other, objects and names staying where they are.

Modules convert and load so where mica.__future__ says it.
"""

from __future__ import annotations

from mica import _C
from mica._C import Tensor


def swap_tensors(t1: Tensor, t2: Tensor) -> None:
    """Exchanges two Tensors: each object gets the other's elements, class, attributes, hooks and gradient.

    As `torch.utils.swap_tensors`. Names and references stay where they are.

    Args:
        t1 (Tensor): The one.
        t2 (Tensor): The other.

    Raises:
        RuntimeError: A view, a graph or a weak reference holds one of them.

    Example:
        >>> a, b = mica.zeros(2), mica.ones(3)
        >>> mica.utils.swap_tensors(a, b)
        >>> a, b
        (tensor([1., 1., 1.]), tensor([0., 0.]))
    """
    _C._swap_tensors(t1, t2)
