"""What the transforms of mica.func share: arguments by number, trees of tensors."""

from __future__ import annotations

from typing import Any

from mica._C import Tensor
from mica.utils._pytree import TreeSpec, tree_flatten

Argnums = int | tuple[int, ...]


def checked_argnums(argnums: Argnums, num_args: int, name: str) -> tuple[int, ...]:
    """The numbers as they count from the front; a sentence for what is no argument."""
    if type(argnums) is int and 0 <= argnums < num_args:
        return (argnums,)
    if isinstance(argnums, bool) or not isinstance(argnums, (int, tuple)):
        raise RuntimeError(
            f"{name}: argnums must be an int or a tuple of ints, but it is a {type(argnums).__name__}."
        )
    numbers = (argnums,) if isinstance(argnums, int) else argnums
    if not numbers:
        raise RuntimeError(f"{name}: argnums is empty; name at least one argument.")
    found = []
    for n in numbers:
        if not isinstance(n, int) or isinstance(n, bool):
            raise RuntimeError(f"{name}: argnums must hold ints, but it holds a {type(n).__name__}.")
        if not -num_args <= n < num_args:
            raise RuntimeError(
                f"{name}: argnums names the argument ({n}), but the function was called with ({num_args}) "
                "positional arguments."
            )
        found.append(n % num_args)
    if len(set(found)) != len(found):
        raise RuntimeError(f"{name}: argnums names an argument twice: {argnums}.")
    return tuple(found)


def tensors_of(tree: Any, name: str, what: str) -> tuple[list[Tensor], TreeSpec]:
    """The leaves, all of them tensors, and the spec."""
    leaves, spec = tree_flatten(tree)
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise RuntimeError(
                f"{name}: {what} must be a Tensor or a tree of Tensors, but it holds a {type(leaf).__name__}."
            )
    return leaves, spec


def split_aux(result: Any, has_aux: bool, name: str) -> tuple[Any, Any]:
    """The output, and what stands beside it where has_aux says so."""
    if not has_aux:
        return result, None
    if not (isinstance(result, tuple) and len(result) == 2):
        raise RuntimeError(
            f"{name}: with has_aux=True the function must return a tuple (output, aux) of two, but it "
            f"returned a {type(result).__name__}"
            + (f" of {len(result)}." if isinstance(result, tuple) else ".")
        )
    return result


def check_real(tensors: list[Tensor], name: str, what: str) -> None:
    """The Jacobian of a complex function has no one convention."""
    for i, t in enumerate(tensors):
        if t.is_complex():
            raise RuntimeError(
                f"{name}: {what} must be real, and tensor ({i}) of them is {t.dtype}. Take the function of real "
                "and imaginary parts (view_as_real), or products by vjp and jvp."
            )
