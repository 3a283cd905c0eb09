"""Looking at the backward graph, and hooks on what it saves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mica import _C
from mica._C import (
    Node as Node,
    Tensor as Tensor,
)
from mica._tensor import RemovableHandle


class saved_tensors_hooks:
    """Calls `pack` when a tensor is saved for backward and `unpack` when it is used."""

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        self._hooks = (pack_hook, unpack_hook)

    def __enter__(self) -> None:
        _C._push_saved_tensor_hooks(*self._hooks)

    def __exit__(self, *exc: object) -> None:
        _C._pop_saved_tensor_hooks()


class save_on_cpu(saved_tensors_hooks):
    """Keeps what is saved in the CPU's memory."""

    def __init__(self, pin_memory: bool = False) -> None:
        super().__init__(lambda t: (t.device, t.cpu()), lambda packed: packed[1].to(packed[0]))


def register_hook(node: Node, hook: Callable[..., Any]) -> RemovableHandle:
    """hook(grad_inputs, grad_outputs) after the node ran."""
    number = node._add_hook(hook)
    return RemovableHandle(lambda: node._remove_hook(number))


def register_prehook(node: Node, hook: Callable[..., Any]) -> RemovableHandle:
    """hook(grad_outputs) before the node runs."""
    number = node._add_prehook(hook)
    return RemovableHandle(lambda: node._remove_hook(number))


def get_gradient_edge(tensor: Tensor) -> Node:
    """The node into which the gradient of `tensor` flows."""
    return _C._gradient_node(tensor)
