"""vmap: a function of one example, applied to a whole batch at once."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import mica
from mica import _C
from mica._C import Tensor
from mica.utils._pytree import tree_flatten, tree_unflatten

Dims = Any  # an int, None, or a tree of them that begins as the arguments' tree does

_RANDOMNESS = {"error": 0, "same": 1, "different": 2}


def _spread(dims: Dims, tree: Any, name: str, what: str) -> list[int | None]:
    """One dimension for each leaf of `tree`; a dimension in the place of a subtree is that of
    all of its leaves."""
    if dims is None or isinstance(dims, int):
        return [dims] * len(tree_flatten(tree)[0])
    if isinstance(dims, list) and isinstance(tree, tuple):
        dims = tuple(dims)
    if type(dims) is type(tree) and isinstance(dims, (tuple, list)) and len(dims) == len(tree):
        return [d for part, sub in zip(dims, tree) for d in _spread(part, sub, name, what)]
    if isinstance(dims, dict) and isinstance(tree, dict) and dims.keys() == tree.keys():
        return [d for key, sub in tree.items() for d in _spread(dims[key], sub, name, what)]
    raise ValueError(
        f"{name}: {what}={dims!r} does not fit the structure of what it describes, "
        f"{tree_flatten(tree)[1]}; give an int, None, or the same structure of them."
    )


def _checked_inputs(leaves: list[Any], dims: list[int | None], in_dims: Dims) -> int:
    """The size of the batch; `dims` counts from the front afterwards."""
    size = None
    for i, (leaf, dim) in enumerate(zip(leaves, dims)):
        if dim is None:
            continue
        if not isinstance(dim, int) or isinstance(dim, bool):
            raise ValueError(
                f"vmap: in_dims={in_dims!r} holds a {type(dim).__name__}; expected ints and None."
            )
        if not isinstance(leaf, Tensor):
            raise ValueError(
                f"vmap: in_dims={in_dims!r} gives the dimension ({dim}) for an argument of type "
                f"{type(leaf).__name__}, which has none; only Tensors can be mapped over. Give None for it."
            )
        if not -leaf.dim() <= dim < leaf.dim():
            raise ValueError(
                f"vmap: in_dims={in_dims!r} gives the dimension ({dim}) for a tensor of shape "
                f"{tuple(leaf.shape)}; expected a dimension from -{leaf.dim()} to {leaf.dim() - 1}."
                if leaf.dim()
                else f"vmap: in_dims={in_dims!r} gives the dimension ({dim}) for a 0-d tensor, which has none "
                "to map over. Give None for it."
            )
        dims[i] = dim % leaf.dim()
        found = leaf.shape[dims[i]]
        if size is None:
            size = found
        elif size != found:
            raise ValueError(
                f"vmap: the mapped dimensions of the arguments differ in size, ({size}) and ({found}); they must "
                "be of one size."
            )
    if size is None:
        raise ValueError(
            f"vmap: in_dims={in_dims!r} maps over no argument; at least one must have a dimension."
        )
    return size


def _result_dims(out_dims: Dims, output: Any) -> list[int | None]:
    """The dimension of the batch for each leaf of the output; one tensor may have a tuple of one."""
    if isinstance(output, Tensor) and isinstance(out_dims, (tuple, list)) and len(out_dims) == 1:
        out_dims = out_dims[0]
    return _spread(out_dims, output, "vmap", "out_dims")


def _one(
    func: Callable[[list[Any]], Any],
    leaves: list[Any],
    dims: list[int | None],
    size: int,
    out_dims: Dims,
    randomness: int,
) -> Any:
    """One batch through `func`, a function of the flat arguments."""
    frame = _C._vmap_enter(size, randomness)
    try:
        batch = _C._vmap_batch
        output = func([leaf if dim is None else batch(leaf, dim) for leaf, dim in zip(leaves, dims)])
        if isinstance(output, Tensor) and isinstance(out_dims, int):
            return _unbatched(output, out_dims)
        results, out_spec = tree_flatten(output)
        places = _result_dims(out_dims, output)
        return tree_unflatten([_unbatched(r, d) for r, d in zip(results, places)], out_spec)
    finally:
        _C._vmap_exit(frame)


def _unbatched(result: Any, dim: int | None) -> Any:
    if not isinstance(result, Tensor):
        raise ValueError(
            f"vmap: the function must return Tensors, but it returned a {type(result).__name__}. "
            "Make a tensor of it (mica.tensor), or compute it outside of vmap."
        )
    if dim is None:
        if _C._vmap_text(result) is not None:
            raise ValueError(
                "vmap: out_dims is None for a result that differs between the examples; give the dimension "
                "that shall hold the batch."
            )
        return _C._frame_value(result)
    rank = result.dim() + 1
    if not -rank <= dim < rank:
        raise IndexError(
            f"vmap: out_dims gives the dimension ({dim}) for a result of {rank} dimensions with the batch; "
            f"expected one from -{rank} to {rank - 1}."
        )
    return _C._vmap_unbatch(result, dim)


def _in_chunks(
    one: Callable[[list[Any], int], Any],
    leaves: list[Any],
    dims: list[int | None],
    size: int,
    out_dims: Dims,
    chunk_size: int,
) -> Any:
    """`one`, a function of a batch and its size, of at most `chunk_size` examples at a time."""
    parts = []
    for start in range(0, size, chunk_size):
        n = min(chunk_size, size - start)
        parts.append(one([x if d is None else x.narrow(d, start, n) for x, d in zip(leaves, dims)], n))
    flat = [tree_flatten(p)[0] for p in parts]
    places = _result_dims(out_dims, parts[0])
    joined = [c[0] if d is None else mica.cat(c, d) for c, d in zip(zip(*flat), places)]
    return tree_unflatten(joined, tree_flatten(parts[0])[1])


def over_examples(func: Callable[[Tensor], Any], x: Tensor, randomness: int = 0) -> Any:
    """`func` of the examples along dimension 0 of one tensor: vmap's common case, without any tree
    of the arguments."""
    frame = _C._vmap_enter(x.shape[0], randomness)
    try:
        output = func(_C._vmap_batch(x, 0))
        if isinstance(output, Tensor):
            return _C._vmap_unbatch(output, 0)
        results, out_spec = tree_flatten(output)
        return tree_unflatten([_unbatched(r, 0) for r in results], out_spec)
    finally:
        _C._vmap_exit(frame)


def vmap(
    func: Callable[..., Any],
    in_dims: Dims = 0,
    out_dims: Dims = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """Makes a function of batches from a function of one example, without a loop.

    As `torch.func.vmap`. Each operator of `func` runs once, over the whole batch. It nests in itself
    and in the other transforms. Keyword arguments are mapped over dimension 0 of their Tensors.

    Args:
        func (callable): A function of Tensors, or trees of them, that returns Tensors.
        in_dims (int or tuple): For each positional argument the dimension that holds the batch, None
            where all examples share it, or a tree of these in the argument's form. Default: 0.
        out_dims (int or tuple): Where the results get the dimension of the batch. Default: 0.
        randomness (str): What random operators do: "error" raises, "same" draws once for all examples,
            "different" draws for each. Default: "error".
        chunk_size (int, optional): Examples computed at a time, to save memory. Default: all.

    Returns:
        callable: A function of the same arguments with a batch dimension in each.

    Raises:
        RuntimeError: `randomness` is unknown, or a random operator runs with "error" (from the call).
        ValueError: `chunk_size` is below 1; from the call: sizes of the batch differ, `in_dims` or
            `out_dims` do not fit the arguments or results, or a result is no Tensor.
        IndexError: `out_dims` names a dimension that a result does not have (from the call).

    Example:
        >>> a, b = mica.arange(6.0).reshape(3, 2), mica.ones(3, 2)
        >>> mica.func.vmap(mica.dot)(a, b)
        tensor([1., 5., 9.])
        >>> mica.func.vmap(mica.dot, in_dims=(0, None))(a, mica.tensor([1.0, 0.0]))
        tensor([0., 2., 4.])
    """
    if randomness not in _RANDOMNESS:
        raise RuntimeError(
            f"vmap: randomness is ({randomness!r}), but it must be 'error', 'same' or 'different'."
        )
    if chunk_size is not None and (not isinstance(chunk_size, int) or chunk_size < 1):
        raise ValueError(f"vmap: chunk_size ({chunk_size}) must be None or an int of at least 1.")
    if not (in_dims is None or isinstance(in_dims, (int, tuple, list))):
        raise ValueError(
            f"vmap: in_dims must be an int or a tuple of one entry for each argument, but it is a "
            f"{type(in_dims).__name__}."
        )
    choice = _RANDOMNESS[randomness]

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs and in_dims == 0 and out_dims == 0 and chunk_size is None:
            x = args[0]
            if type(x) is Tensor and x.dim() > 0:
                return over_examples(func, x, choice)
        if not args:
            raise ValueError("vmap: the function was called without arguments; give at least one tensor.")
        leaves, spec = tree_flatten(args)
        dims = _spread(in_dims, args, "vmap", "in_dims")
        size = _checked_inputs(leaves, dims, in_dims)
        count = len(leaves)
        named, named_spec = tree_flatten(kwargs)
        if named:
            leaves = leaves + named
            dims = dims + [0 if isinstance(leaf, Tensor) else None for leaf in named]
            _checked_inputs(leaves, dims, dims)

        def flat(values: list[Any]) -> Any:
            return func(*tree_unflatten(values[:count], spec), **tree_unflatten(values[count:], named_spec))

        def one(some: list[Any], n: int) -> Any:
            return _one(flat, some, dims, n, out_dims, choice)

        if chunk_size is None or chunk_size >= size:
            return one(leaves, size)
        return _in_chunks(one, leaves, dims, size, out_dims, chunk_size)

    return functools.update_wrapper(wrapper, func) if hasattr(func, "__name__") else wrapper
