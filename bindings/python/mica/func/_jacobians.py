"""jacrev, jacfwd and hessian: whole derivatives, a row or a column at a time."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import mica
from mica import _C
from mica._C import Tensor
from mica.func._reverse import vjp
from mica.func._trees import Argnums, checked_argnums, map_tensors, split_aux, tensors_of
from mica.utils._pytree import tree_unflatten


def _basis(like: Tensor) -> Iterator[Tensor]:
    """One tensor for each element of `like`: 1 there, 0 elsewhere."""
    n = like.numel()
    yield from mica.eye(n, dtype=like.dtype, device=like.device).reshape(n, *like.shape)


def _picked(func: Callable[..., Any], args: tuple[Any, ...], numbers: tuple[int, ...], kwargs: Any) -> Any:
    """The function of the arguments `numbers` alone."""

    def of_picked(*picked: Any) -> Any:
        replaced = list(args)
        for n, value in zip(numbers, picked):
            replaced[n] = value
        return func(*replaced, **kwargs)

    return of_picked


def jacrev(
    func: Callable[..., Any],
    argnums: Argnums = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Callable[..., Any]:
    """A function that computes the Jacobian of `func` with respect to the arguments
    `argnums` by reverse mode: for an output of shape o and an argument of shape a a tensor
    of shape o + a, in the output's tree of the arguments' trees.

    Note: it runs one backward for each element of the output; `chunk_size` changes nothing."""
    if chunk_size is not None and chunk_size < 1:
        raise ValueError(f"jacrev: chunk_size ({chunk_size}) must be at least 1.")

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        numbers = checked_argnums(argnums, len(args), "jacrev")
        results = vjp(_picked(func, args, numbers, kwargs), *(args[n] for n in numbers), has_aux=has_aux)
        output, vjp_fn = results[0], results[1]
        outputs, spec = tensors_of(output, "jacrev", "the function's output")
        zeros = [mica.zeros_like(t) for t in outputs]
        jacobians = []
        for i, out in enumerate(outputs):
            rows = [
                tensors_of(vjp_fn(tree_unflatten([*zeros[:i], e, *zeros[i + 1 :]], spec)), "jacrev", "")
                for e in _basis(out)
            ]
            if rows:
                inner = rows[0][1]
                stacked = [mica.stack(column) for column in zip(*(leaves for leaves, _ in rows))]
            else:
                inputs, inner = tensors_of(tuple(args[n] for n in numbers), "jacrev", "")
                stacked = [t.new_zeros((0, *t.shape)) for t in inputs]
            trees = tree_unflatten([s.reshape(*out.shape, *s.shape[1:]) for s in stacked], inner)
            jacobians.append(trees[0] if isinstance(argnums, int) else trees)
        result = tree_unflatten(jacobians, spec)
        return (result, results[2]) if has_aux else result

    return wrapper


def jacfwd(
    func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, *, randomness: str = "error"
) -> Callable[..., Any]:
    """The same Jacobian by forward mode.

    Note: it runs `func` once for each element of the arguments, since there is no vmap yet;
    `randomness` therefore changes nothing, and random functions draw anew for each."""

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        numbers = checked_argnums(argnums, len(args), "jacfwd")
        picked = _picked(func, args, numbers, kwargs)
        inputs, inner = tensors_of(tuple(args[n] for n in numbers), "jacfwd", "each argument")
        aux: Any = None
        spec: Any = None
        outputs: list[Tensor] = []
        by_input: list[list[list[Any]]] = []  # [input][element][output]
        for i, primal in enumerate(inputs):
            columns = []
            for e in _basis(primal):
                frame = _C._frame_enter("jvp")
                try:
                    duals = [_C._frame_dual(t, e if i == j else None) for j, t in enumerate(inputs)]
                    out, aux = split_aux(picked(*tree_unflatten(duals, inner)), has_aux, "jacfwd")
                    flat, spec = tensors_of(out, "jacfwd", "the function's output")
                    outputs = [_C._frame_value(t) for t in flat]
                    columns.append([_C._frame_tangent(t) for t in flat])
                    if has_aux:
                        aux = map_tensors(_C._frame_value, aux)
                finally:
                    _C._frame_exit(frame)
            by_input.append(columns)
        if spec is None:  # no argument has an element
            out, aux = split_aux(func(*args, **kwargs), has_aux, "jacfwd")
            outputs, spec = tensors_of(out, "jacfwd", "the function's output")
        jacobians = []
        for k, out in enumerate(outputs):
            leaves = []
            for primal, columns in zip(inputs, by_input):
                filled = [c[k] if c[k] is not None else mica.zeros_like(out) for c in columns]
                shape = (*out.shape, *primal.shape)
                leaves.append(mica.stack(filled, -1).reshape(shape) if filled else out.new_zeros(shape))
            trees = tree_unflatten(leaves, inner)
            jacobians.append(trees[0] if isinstance(argnums, int) else trees)
        result = tree_unflatten(jacobians, spec)
        return (result, aux) if has_aux else result

    return wrapper


def hessian(func: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """A function that computes the Hessian of `func`: the forward Jacobian of its reverse
    Jacobian."""
    return jacfwd(jacrev(func, argnums), argnums)
