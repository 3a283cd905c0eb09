"""associative_scan: running combinations along a dimension, in as many rounds as the size has bits.

Neighbours are combined, the scan of the half as many pairs follows, and the elements between take
one more combination each (Blelloch, "Prefix sums and their applications", 1990).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mica
from mica._C import Tensor
from mica.utils import _pytree as pytree


def associative_scan(
    combine_fn: Callable[[Any, Any], Any],
    xs: Any,
    dim: int,
    reverse: bool = False,
    combine_mode: str = "pointwise",
) -> Any:
    """Combines elements along a dimension, each with all before it: running sums, products, states.

    As `torch._higher_order_ops.associative_scan`. The function is called for many pairs at once, in as many rounds as
    the size has bits.

    Args:
        combine_fn (callable): `combine_fn(before, after)`, associative; both are nested as `xs`, and so is what it
            returns.
        xs (Tensor or nesting of Tensor): The elements; all of one size along `dim`.
        dim (int): The dimension.
        reverse (bool): Combines from the last element on. Default: False.
        combine_mode (str): Ignored: any function of tensors may combine. Default: "pointwise".

    Returns:
        Tensor or nesting of Tensor: In the shapes of `xs`.

    Raises:
        RuntimeError: There is no tensor, or sizes differ.

    Example:
        >>> from mica._functions.associative_scan import associative_scan
        >>> associative_scan(lambda a, b: a + b, mica.tensor([1, 2, 3]), 0)
        tensor([1, 3, 6])
    """
    leaves, spec = pytree.tree_flatten(xs)
    if not leaves or not all(isinstance(leaf, Tensor) for leaf in leaves):
        raise RuntimeError("associative_scan takes tensors, at least one.")
    sizes = {leaf.shape[dim] for leaf in leaves}
    if len(sizes) != 1:
        raise RuntimeError(
            f"Sizes {sorted(sizes)} of dimension ({dim}) of the tensors differ; expected one size."
        )

    def combine(before: list[Tensor], after: list[Tensor]) -> list[Tensor]:
        found = combine_fn(pytree.tree_unflatten(before, spec), pytree.tree_unflatten(after, spec))
        return pytree.tree_flatten(found)[0]

    moved = [leaf.movedim(dim, 0) for leaf in leaves]
    if reverse:
        moved = [leaf.flip(0) for leaf in moved]
    moved = _scan(combine, moved)
    if reverse:
        moved = [leaf.flip(0) for leaf in moved]
    return pytree.tree_unflatten([leaf.movedim(0, dim) for leaf in moved], spec)


def _scan(
    combine: Callable[[list[Tensor], list[Tensor]], list[Tensor]], leaves: list[Tensor]
) -> list[Tensor]:
    size = leaves[0].shape[0]
    if size < 2:
        return leaves
    pairs = combine([x[:-1:2] for x in leaves], [x[1::2] for x in leaves])
    odd = _scan(combine, pairs)
    later = [x[2::2] for x in leaves]
    if size > 2:
        later = combine([x[: y.shape[0]] for x, y in zip(odd, later)], later)
    return [_interleaved(mica.cat([x[:1], e]), o) for x, e, o in zip(leaves, later, odd)]


def _interleaved(even: Tensor, odd: Tensor) -> Tensor:
    count = odd.shape[0]
    return mica.cat([mica.stack([even[:count], odd], 1).flatten(0, 1), even[count:]])
