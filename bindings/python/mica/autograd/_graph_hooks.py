"""Hooks on nodes and on groups of tensors, and edges of the graph as values."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, NamedTuple

from mica import _C
from mica._C import Node, Tensor
from mica._tensor.removable_handle import RemovableHandle


class GradientEdge(NamedTuple):
    """The place in the graph where a Tensor's gradient flows: a node, and the number of its result.

    As `torch.autograd.graph.GradientEdge`. It stands for a Tensor in `autograd.grad` and
    `autograd.backward`, without keeping the Tensor's memory. `get_gradient_edge` makes it.

    Args:
        node (Node): The node that made the Tensor, or that accumulates a leaf's gradient.
        output_nr (int): Which of the node's results the Tensor is, from 0.
        ownership_token (object, optional): Not used. Default: None.

    Example:
        >>> x = mica.ones(2, requires_grad=True)
        >>> y = 3 * x
        >>> edge = mica.autograd.graph.get_gradient_edge(y)
        >>> mica.autograd.grad((y * y).sum(), edge)
        (tensor([6., 6.]),)
    """

    node: Node
    output_nr: int
    ownership_token: Any = None


class InputMetadata(NamedTuple):
    """What one result of a node's forward looked like, and so what its gradient does.

    As the entries of torch's `grad_fn._input_metadata`.

    Args:
        shape (Size): The shape.
        dtype (dtype): The dtype of the Tensor.
        device (device): The device.

    Example:
        >>> y = mica.ones(2, requires_grad=True).exp()
        >>> y.grad_fn._input_metadata[0].shape
        mica.Size([2])
    """

    shape: Any
    dtype: Any
    device: Any


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """Returns the edge of the graph into which the gradient of a Tensor flows.

    As `torch.autograd.graph.get_gradient_edge`.

    Args:
        tensor (Tensor): A Tensor that requires grad.

    Returns:
        GradientEdge: Stands for the Tensor in `autograd.grad` and `autograd.backward`.

    Raises:
        RuntimeError: `tensor` does not require grad.

    Example:
        >>> edge = mica.autograd.graph.get_gradient_edge(mica.ones(2, requires_grad=True).exp())
        >>> edge.node.name(), edge.output_nr
        ('ExpBackward0', 0)
    """
    node, number = _C._gradient_edge(tensor)
    if node is None:
        raise RuntimeError(
            "get_gradient_edge: the tensor does not require grad, so that no gradient flows to it."
        )
    return GradientEdge(node, number)


def increment_version(tensor: Tensor | Iterable[Tensor]) -> None:
    """Tells autograd that a Tensor's memory was written by something else than an operator of Mica.

    As `torch.autograd.graph.increment_version`. A backward pass that saved the Tensor then refuses to
    use it.

    Args:
        tensor (Tensor or iterable of Tensor): What was written.

    Example:
        >>> x = mica.ones(2)
        >>> before = x._version
        >>> mica.autograd.graph.increment_version(x)
        >>> x._version - before
        1
    """
    for t in (tensor,) if isinstance(tensor, Tensor) else tensor:
        _C._increment_version(t)


def register_hook(node: Node, hook: Callable[..., Any]) -> RemovableHandle:
    """Calls a function after a node of the graph has run; it may replace the gradients of the node's inputs.

    As `node.register_hook(hook)`.

    Args:
        node (Node): The node, `tensor.grad_fn`.
        hook (callable): `hook(grad_inputs, grad_outputs)`, tuples of Tensors and None. It returns None,
            or gradients in the place of `grad_inputs`.

    Returns:
        RemovableHandle: Its `remove()` takes the hook away.

    Example:
        >>> x = mica.ones(2, requires_grad=True)
        >>> y = 3 * x
        >>> handle = mica.autograd.graph.register_hook(y.grad_fn, lambda grads, outs: print(outs))
        >>> y.sum().backward()
        (tensor([1., 1.]),)
    """
    return RemovableHandle(node._add_hook(hook))


def register_prehook(node: Node, hook: Callable[..., Any]) -> RemovableHandle:
    """Calls a function before a node of the graph runs; it may replace the gradients of the node's outputs.

    As `node.register_prehook(hook)`.

    Args:
        node (Node): The node, `tensor.grad_fn`.
        hook (callable): `hook(grad_outputs)`, a tuple of Tensors and None. It returns None, or
            gradients in the place of `grad_outputs`.

    Returns:
        RemovableHandle: Its `remove()` takes the hook away.

    Example:
        >>> x = mica.ones(2, requires_grad=True)
        >>> y = 3 * x
        >>> handle = mica.autograd.graph.register_prehook(y.grad_fn, lambda outs: (2 * outs[0],))
        >>> y.sum().backward()
        >>> x.grad
        tensor([6., 6.])
    """
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
    """Calls a function once in each backward pass that computes gradients of some of the given Tensors.

    As `torch.autograd.graph.register_multi_grad_hook`.

    Args:
        tensors (sequence of Tensor): The Tensors, which require grad.
        fn (callable): `fn(grads)` in mode "all", a list with None for Tensors that this pass does not
            come to; `fn(grad)` in mode "any".
        mode (str): "all" calls when the last of the gradients is computed, "any" with the first.
            Default: "all".

    Returns:
        RemovableHandle: Its `remove()` takes the hook away.

    Raises:
        ValueError: `mode` is neither of the two.
        RuntimeError: A Tensor does not require grad, in mode "all".

    Example:
        >>> a, b = mica.ones(1, requires_grad=True), mica.ones(1, requires_grad=True)
        >>> handle = mica.autograd.graph.register_multi_grad_hook([a, b], print)
        >>> (2 * a + 3 * b).backward()
        [tensor([2.]), tensor([3.])]
    """
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
