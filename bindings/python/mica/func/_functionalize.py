"""functionalize: a function without the writes, and without the views, of another."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from mica import _C
from mica._C import Tensor
from mica.utils._pytree import tree_flatten, tree_unflatten

_REMOVE = ("mutations", "mutations_and_views")


def functionalize(
    func: Callable[..., Any], *, remove: str = "mutations", return_mutations: bool = False
) -> Callable[..., Any]:
    """Makes a function whose operators write no tensor: each in-place operator becomes a pure one.

    As `torch.func.functionalize`. Results and gradients are those of `func`; a write becomes a new
    value for the tensor and for all of its views. Inputs and captured tensors that `func` writes get
    their new values at the end. With `mica.fx.make_fx` around it, the recorded graph is pure.

    Args:
        func (callable): A function of Tensors, or trees of them.
        remove (str): "mutations", or "mutations_and_views", which also turns views into copies
            (`transpose` into `transpose_copy`). Default: "mutations".
        return_mutations (bool): Leave inputs unwritten and return their new values. Default: False.

    Returns:
        callable: A function of the same arguments. With `return_mutations` it returns `(output,
        mutations)`, a tuple with the new value of each Tensor argument in order, or None where it was not
        written.

    Raises:
        RuntimeError: `remove` is neither of the two.
        NotImplementedError: An input that shares memory with another one is written.

    Example:
        >>> def double(x):
        ...     return x.mul_(2).sum()
        >>> x = mica.ones(3)
        >>> mica.func.functionalize(double, return_mutations=True)(x)
        (tensor(6.), (tensor([2., 2., 2.]),))
        >>> x
        tensor([1., 1., 1.])
    """
    if remove not in _REMOVE:
        raise RuntimeError(
            f"functionalize: remove is ({remove!r}), but it must be 'mutations' or 'mutations_and_views'."
        )
    remove_views = remove == "mutations_and_views"

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        leaves, spec = tree_flatten((args, kwargs))
        places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, Tensor)]
        frame = _C._functionalize_enter(remove_views)
        try:
            for i, lifted in zip(places, _C._functionalize_lift(frame, [leaves[i] for i in places])):
                leaves[i] = lifted
            inner_args, inner_kwargs = tree_unflatten(leaves, spec)
            results, out_spec = tree_flatten(func(*inner_args, **inner_kwargs))
            mutations = tuple(_C._functionalize_updates(frame)) if return_mutations else None
            _C._functionalize_apply(frame, mutations is None)
            output = tree_unflatten(
                [_C._functionalize_result(frame, r) if isinstance(r, Tensor) else r for r in results],
                out_spec,
            )
            return output if mutations is None else (output, mutations)
        finally:
            _C._functionalize_exit(frame)

    return functools.update_wrapper(wrapper, func) if hasattr(func, "__name__") else wrapper
