"""jacrev, jacfwd and hessian: whole derivatives, a row or a column at a time."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import mica
from mica._C import Tensor
from mica.func._forward import Linearized
from mica.func._reverse import Pullback
from mica.func._trees import Argnums, check_real, checked_argnums
from mica.func._vmap import over_examples, vmap
from mica.utils._pytree import tree_leaves, tree_unflatten


def _basis(like: Tensor) -> Tensor:
    """Along dimension 0 one tensor for each element of `like`: 1 there, 0 elsewhere."""
    n = like.numel()
    return mica.eye(n, dtype=like.dtype, device=like.device).reshape(n, *like.shape)


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
    """Makes a function that computes the Jacobian of another, by reverse mode: best for few outputs.

    As `torch.func.jacrev`. The rows are computed by one backward pass under `vmap`.

    Args:
        func (callable): A function of Tensors, or trees of them, that returns real Tensors.
        argnums (int or tuple of int): Positions of the arguments to differentiate. Default: 0.
        has_aux (bool): `func` returns a pair `(output, aux)`, and only `output` is differentiated.
            Default: False.
        chunk_size (int, optional): Rows computed at a time, to save memory. Default: all.

    Returns:
        callable: A function of the same arguments. For an output of shape `o` and an argument of shape `a`
        it returns a Tensor of shape `o + a`, in the output's tree of the arguments' trees; a tuple over
        arguments where `argnums` is one; a pair `(jacobian, aux)` with `has_aux`.

    Raises:
        ValueError: `chunk_size` is below 1.
        RuntimeError: `argnums` names no argument, or an argument or output is complex (from the call).

    Example:
        >>> mica.func.jacrev(lambda x: x**2)(mica.tensor([1.0, 2.0]))
        tensor([[2., 0.],
                [0., 4.]])
    """
    if chunk_size is not None and chunk_size < 1:
        raise ValueError(f"jacrev: chunk_size ({chunk_size}) must be at least 1.")

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        numbers = checked_argnums(argnums, len(args), "jacrev")
        ran = Pullback(
            "jacrev", _picked(func, args, numbers, kwargs), tuple(args[n] for n in numbers), has_aux
        )
        check_real([*ran.inputs, *ran.values], "jacrev", "the arguments and the output")
        jacobians = []
        inputs = ran.primals
        for i, out in enumerate(ran.values):

            def row(e: Tensor, i: int = i) -> Any:
                found = ran.rows(i, (e,))[0]
                return found[0] if len(found) == 1 else tuple(found)

            if not out.numel():
                rows = tuple(t.new_zeros((0, *t.shape)) for t in inputs)
            elif chunk_size is None:
                rows = over_examples(row, _basis(out))
            else:
                rows = vmap(row, chunk_size=chunk_size)(_basis(out))
            rows = (rows,) if isinstance(rows, Tensor) else rows
            leaves = [r.reshape((*out.shape, *t.shape)) for r, t in zip(rows, inputs)]
            trees = tree_unflatten(leaves, ran.primals_spec)
            jacobians.append(trees[0] if isinstance(argnums, int) else trees)
        result = tree_unflatten(jacobians, ran.spec)
        return (result, ran.aux) if has_aux else result

    return wrapper


def jacfwd(
    func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, *, randomness: str = "error"
) -> Callable[..., Any]:
    """Makes a function that computes the Jacobian of another column by column: best for few inputs.

    As `torch.func.jacfwd`. `func` runs once and is linearized; the columns are computed under `vmap`.

    Args:
        func (callable): A function of Tensors, or trees of them, that returns real Tensors.
        argnums (int or tuple of int): Positions of the arguments to differentiate. Default: 0.
        has_aux (bool): `func` returns a pair `(output, aux)`, and only `output` is differentiated.
            Default: False.
        randomness (str): No effect: random operators draw once, as `func` runs once. Default: "error".

    Returns:
        callable: A function of the same arguments, which returns what that of `jacrev` does.

    Raises:
        RuntimeError: `argnums` names no argument, or an argument or output is complex (from the call).

    Example:
        >>> mica.func.jacfwd(lambda x: mica.stack([x, x**2]))(mica.tensor(3.0))
        tensor([1., 6.])
    """

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        numbers = checked_argnums(argnums, len(args), "jacfwd")
        picked = tuple(args[n] for n in numbers)
        linear = Linearized("jacfwd", _picked(func, args, numbers, kwargs), picked, has_aux)
        inputs = tree_leaves(picked)
        check_real([*inputs, *linear.values], "jacfwd", "the arguments and the output")
        zeros = [mica.zeros_like(out) for out in linear.values]
        columns: list[tuple[Tensor, ...] | None] = []
        for j, primal in enumerate(inputs):

            def column(e: Tensor, j: int = j) -> tuple[Tensor, ...]:
                found = linear.push([{j: e}])[0]
                return tuple(found.get(k, zero) for k, zero in enumerate(zeros))

            columns.append(vmap(column, out_dims=-1)(_basis(primal)) if primal.numel() else None)
        jacobians = []
        for k, out in enumerate(linear.values):
            leaves = []
            for primal, pushed in zip(inputs, columns):
                shape = (*out.shape, *primal.shape)
                leaves.append(out.new_zeros(shape) if pushed is None else pushed[k].reshape(shape))
            trees = tree_unflatten(leaves, linear.primals_spec)
            jacobians.append(trees[0] if isinstance(argnums, int) else trees)
        result = tree_unflatten(jacobians, linear.spec)
        return (result, linear.aux) if has_aux else result

    return wrapper


def hessian(func: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """Makes a function that computes the second derivatives of another: `jacfwd(jacrev(func))`.

    As `torch.func.hessian`.

    Args:
        func (callable): A function of Tensors, or trees of them, that returns real Tensors.
        argnums (int or tuple of int): Positions of the arguments to differentiate. Default: 0.

    Returns:
        callable: A function of the same arguments. For an output of shape `o` and an argument of shape `a`
        it returns a Tensor of shape `o + a + a`; tuples of tuples where `argnums` is a tuple.

    Example:
        >>> mica.func.hessian(lambda x: (x**3).sum())(mica.tensor([1.0, 2.0]))
        tensor([[ 6.,  0.],
                [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)
