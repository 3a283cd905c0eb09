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
    """A function that computes what `func` does, gradients too, by operators that write none of
    its tensors: an in-place operator becomes the functional one and another value for the
    tensor, and for all views of it. With ``remove="mutations_and_views"`` views become copies
    (``transpose_copy``) too.

    Inputs that `func` writes get their new values at the end, all at once; so do tensors that it
    captured and writes (running statistics). With `return_mutations` inputs stay as they are, and the function returns the pair (output,
    mutations): a tuple with one entry for each tensor among the arguments, in order, keyword
    arguments last: its new value, or None if it was not written.

    What may not be written without it may not be written with it: a leaf that requires grad
    (outside of no_grad), an expanded tensor. Raises NotImplementedError for writes to an input that
    shares memory with another one. Nests in the other transforms."""
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
