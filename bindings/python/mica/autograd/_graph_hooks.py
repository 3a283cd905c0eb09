"""Hooks on nodes and on groups of tensors, and edges of the graph as values."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, NamedTuple

from mica import _C
from mica._C import Node, Tensor
from mica._tensor.removable_handle import RemovableHandle


class GradientEdge(NamedTuple):
    """Where a gradient flows: into input `output_nr` of `node`, which made that result.

    It stands for a tensor in autograd.grad and autograd.backward, without keeping the
    tensor's memory."""

    node: Node
    output_nr: int
    ownership_token: Any = None


class InputMetadata(NamedTuple):
    """What one result of a node's forward looked like, and so what its gradient does."""

    shape: Any
    dtype: Any
    device: Any


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The edge into which the gradient of `tensor` flows."""
    node, number = _C._gradient_edge(tensor)
    if node is None:
        raise RuntimeError(
            "get_gradient_edge: the tensor does not require grad, so that no gradient flows to it."
        )
    return GradientEdge(node, number)


def increment_version(tensor: Tensor | Iterable[Tensor]) -> None:
    """Says that a tensor's memory was written by something else than an operator, so that a
    backward that saved it refuses to use it."""
    for t in (tensor,) if isinstance(tensor, Tensor) else tensor:
        _C._increment_version(t)


def register_hook(node: Node, hook: Callable[..., Any]) -> RemovableHandle:
    """hook(grad_inputs, grad_outputs) after the node ran."""
    return RemovableHandle(node._add_hook(hook))


def register_prehook(node: Node, hook: Callable[..., Any]) -> RemovableHandle:
    """hook(grad_outputs) before the node runs."""
    return RemovableHandle(node._add_prehook(hook))


class _Arrived:
    """The gradients of one backward, until the last of them is there."""

    def __init__(self, count: int, expected: int) -> None:
        self.grads: list[Tensor | None] = [None] * count
        self.missing = expected


def _all_hooks(
    tensors: Sequence[Tensor], fn: Callable[[Sequence[Tensor | None]], None]
) -> list[Callable[[Tensor], None]]:
    nodes = [get_gradient_edge(t).node for t in tensors]
    running: dict[int, _Arrived] = {}  # by the number of the backward
    lock = threading.Lock()

    def hook(index: int, grad: Tensor) -> None:
        number = _C._backward_number()
        with lock:
            if number not in running:
                running[number] = _Arrived(len(tensors), sum(map(_C._will_run, nodes)))
                _C._queue_callback(lambda: running.pop(number, None))  # where one never comes
            arrived = running[number]
            arrived.grads[index] = grad
            arrived.missing -= 1
            complete = arrived.missing == 0
        if complete:
            fn(arrived.grads)

    return [lambda grad, index=i: hook(index, grad) for i in range(len(tensors))]  # type: ignore[misc]


def _any_hook(fn: Callable[[Tensor], None]) -> Callable[[Tensor], None]:
    called: set[int] = set()
    lock = threading.Lock()

    def hook(grad: Tensor) -> None:
        number = _C._backward_number()
        with lock:
            if number in called:
                return
            called.add(number)
            _C._queue_callback(lambda: called.discard(number))
        fn(grad)

    return hook


def register_multi_grad_hook(
    tensors: Sequence[Tensor],
    fn: Callable[[Sequence[Tensor | None]], None] | Callable[[Tensor], None],
    *,
    mode: Literal["all", "any"] = "all",
) -> RemovableHandle:
    """Calls `fn` once in each backward that comes to some of `tensors`.

    mode="all": fn(grads), when the last of their gradients is computed; None for tensors that
    this backward does not come to. mode="any": fn(grad), with the first gradient computed."""
    if mode not in ("all", "any"):
        raise ValueError(
            f"Expects mode to be one of ('all', 'any') but got {mode} in register_multi_grad_hook()."
        )
    watched = list(tensors) if mode == "all" else [t for t in tensors if t.requires_grad]
    hooks = _all_hooks(watched, fn) if mode == "all" else [_any_hook(fn)] * len(watched)  # type: ignore[arg-type]
    handles = [t.register_hook(hook) for t, hook in zip(watched, hooks)]

    def remove() -> None:
        for handle in handles:
            handle.remove()

    return RemovableHandle(remove)
