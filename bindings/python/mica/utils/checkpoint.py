"""Activation checkpointing: a part of a network whose intermediate values are not kept
for backward but computed a second time there.

Saved-tensor hooks put a number in place of everything the part saves. When backward
asks for the first of them, the part runs again and its saves are taken in order.
Both values of `use_reentrant` go this way, which nests, and works with autograd.grad."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import mica
from mica._C import Tensor
from mica.autograd.graph import saved_tensors_hooks


class CheckpointError(RuntimeError):
    """The second run of a part saved something else than the first."""


def noop_context_fn() -> tuple[AbstractContextManager[Any], AbstractContextManager[Any]]:
    """No context for either run."""
    return nullcontext(), nullcontext()


class _Part:
    """One call of checkpoint(): what its two runs saved."""

    def __init__(self, run: Callable[[], Any]) -> None:
        self.run = run
        self.shapes: list[tuple[Any, Any]] = []  # of the first run's saves
        self.values: dict[int, Tensor] = {}  # of the second's, until backward takes them

    def pack(self, tensor: Tensor) -> int:
        self.shapes.append((tensor.shape, tensor.dtype))
        return len(self.shapes) - 1

    def unpack(self, number: int) -> Tensor:
        if number not in self.values:
            self.recompute()
        return self.values.pop(number)

    def recompute(self) -> None:
        again: list[Tensor] = []

        def keep(tensor: Tensor) -> Tensor:
            again.append(tensor.detach())
            return tensor

        with mica.enable_grad(), saved_tensors_hooks(keep, lambda tensor: tensor):
            self.run()
        shapes = [(tensor.shape, tensor.dtype) for tensor in again]
        if shapes != self.shapes:
            raise CheckpointError(
                f"A checkpointed function saved {len(self.shapes)} tensors in forward and {len(again)} when it was run again for "
                "backward, or tensors of other shapes or dtypes; it must do the same both times."
            )
        self.values = dict(enumerate(again))


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable[
        [], tuple[AbstractContextManager[Any], AbstractContextManager[Any]]
    ] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    preserve_rng_state: bool = True,
    **kwargs: Any,
) -> Any:
    """function(*args, **kwargs), whose intermediate values backward computes again."""
    if not mica.is_grad_enabled():
        return function(*args, **kwargs)
    first, second = context_fn()
    state = mica.get_rng_state() if preserve_rng_state else None

    def again() -> None:
        with second:
            if state is None:
                function(*args, **kwargs)
                return
            with mica.random.fork_rng():
                mica.set_rng_state(state)
                function(*args, **kwargs)

    part = _Part(again)
    with saved_tensors_hooks(part.pack, part.unpack), first:
        return function(*args, **kwargs)


def checkpoint_sequential(
    functions: Any,
    segments: int,
    input: Any,
    use_reentrant: bool | None = None,
    **options: Any,
) -> Any:
    """A Sequential in `segments` checkpointed parts, the last of which keeps its values."""
    modules = list(functions.children()) if isinstance(functions, mica.nn.Module) else list(functions)
    size = len(modules) // segments

    def chain(part: Sequence[Any]) -> Callable[[Any], Any]:
        def run(x: Any) -> Any:
            for module in part:
                x = module(x)
            return x

        return run

    for i in range(segments - 1):
        input = checkpoint(chain(modules[i * size : (i + 1) * size]), input, **options)
    return chain(modules[(segments - 1) * size :])(input)
