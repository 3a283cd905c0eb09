"""mica.autograd: gradients, custom functions, checks and hooks."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from mica import _C
from mica._C import (
    Node as Node,
    Tensor as Tensor,
)
from mica._functions.grad_mode import (
    enable_grad as enable_grad,
    inference_mode as inference_mode,
    is_multithreading_enabled as is_multithreading_enabled,
    no_grad as no_grad,
    set_grad_enabled as set_grad_enabled,
    set_multithreading_enabled as set_multithreading_enabled,
)
from mica.autograd import (
    forward_ad as forward_ad,
    functional as functional,
    graph as graph,
)
from mica.autograd._saved_hooks import SavedTensor as SavedTensor
from mica.autograd.anomaly_mode import (
    detect_anomaly as detect_anomaly,
    set_detect_anomaly as set_detect_anomaly,
)
from mica.autograd.function import Function as Function
from mica.autograd.gradcheck import (
    GradcheckError as GradcheckError,
    gradcheck as gradcheck,
    gradgradcheck as gradgradcheck,
)


class _VariableMeta(type):
    def __getattr__(cls, name: str) -> Any:
        return getattr(Tensor, name)

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, Tensor)

    def __call__(cls, data: Any = None, requires_grad: bool = False, volatile: bool = False) -> Tensor:
        if data is None:
            data = Tensor()
        if volatile:
            warnings.warn("volatile was removed and now has no effect; use no_grad().", stacklevel=2)
        fresh = data.detach()
        return fresh.requires_grad_() if requires_grad else fresh


class Variable(metaclass=_VariableMeta):
    """The old name of Tensor, kept for old programs.

    As `torch.autograd.Variable`. `Variable(data)` gives a new Tensor of the same memory, and
    `isinstance(tensor, Variable)` holds for every Tensor.

    Args:
        data (Tensor, optional): The values. Default: an empty Tensor.
        requires_grad (bool): Whether gradients are recorded. Default: False.
        volatile (bool): No effect, with a warning. Default: False.

    Example:
        >>> mica.autograd.Variable(mica.ones(2), requires_grad=True)
        tensor([1., 1.], requires_grad=True)
    """


Tensors = Tensor | graph.GradientEdge | Sequence[Tensor | graph.GradientEdge]


_warned_of_cycle = False


def _warn_of_cycle() -> None:
    """Once in a process, of what backward(create_graph=True) leaves in the leaves."""
    global _warned_of_cycle
    if _warned_of_cycle and not _C._is_warn_always():
        return
    _warned_of_cycle = True
    warnings.warn(
        "Using backward() with create_graph=True will create a reference cycle between the parameter and its gradient "
        "which can cause a memory leak: its .grad holds the graph. Use autograd.grad, or set .grad to None after use.",
        stacklevel=3,
    )


def backward(
    tensors: Tensors,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Tensors | None = None,
) -> None:
    """Computes gradients of Tensors and adds them to the `grad` of the leaves they were computed from.

    As `torch.autograd.backward`; `tensor.backward()` does the same for one. `autograd.grad` returns the
    gradients instead.

    Args:
        tensors (Tensor, GradientEdge or sequence of these): What is differentiated.
        grad_tensors (Tensor or sequence of Tensor, optional): For each of `tensors` the factors of its
            elements, of its shape. Default: 1, for Tensors of one element.
        retain_graph (bool, optional): Keep what the graph saved, so that it can run again.
            Default: `create_graph`.
        create_graph (bool): Record the computation of the gradients, so that they can be
            differentiated. Default: False.
        grad_variables (Tensor or sequence of Tensor, optional): Old name of `grad_tensors`; warns.
        inputs (Tensor, GradientEdge or sequence of these, optional): Whose `grad` is added to.
            Default: all leaves.

    Raises:
        RuntimeError: A Tensor does not require grad, has several elements and no `grad_tensors`, or the
            graph has run already without `retain_graph`.

    Example:
        >>> x = mica.tensor([1.0, 2.0], requires_grad=True)
        >>> mica.autograd.backward(x**2, mica.ones(2))
        >>> x.grad
        tensor([2., 4.])
    """
    if grad_variables is not None:
        warnings.warn(
            "`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning, stacklevel=2
        )
        if grad_tensors is not None:
            raise RuntimeError(
                "Both `grad_tensors` and `grad_variables`, its old name, are given; give one of them."
            )
        grad_tensors = grad_variables
    if create_graph:
        _warn_of_cycle()
    _C._backward(
        tensors, grad_tensors, inputs, create_graph if retain_graph is None else retain_graph, create_graph
    )


def grad(
    outputs: Tensors,
    inputs: Tensors,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor, ...]:
    """Computes the gradients of some Tensors with respect to others and returns them.

    As `torch.autograd.grad`. No `grad` attribute changes.

    Args:
        outputs (Tensor, GradientEdge or sequence of these): What is differentiated.
        inputs (Tensor, GradientEdge or sequence of these): With respect to what; `outputs` were
            computed from it.
        grad_outputs (Tensor or sequence of Tensor, optional): For each of `outputs` the factors of its
            elements, of its shape. Default: 1, for Tensors of one element.
        retain_graph (bool, optional): Keep what the graph saved, so that it can run again.
            Default: `create_graph`.
        create_graph (bool): Record the computation of the gradients, so that they can be
            differentiated. Default: False.
        only_inputs (bool): No effect. Default: True.
        allow_unused (bool, optional): Give None for an input that no output depends on.
            Default: `materialize_grads`.
        is_grads_batched (bool): `grad_outputs` have a batch dimension in front, and so have the
            gradients; they are computed under `vmap`. Default: False.
        materialize_grads (bool): Give zeros instead of None. Default: False.

    Returns:
        tuple of Tensor: A gradient for each of `inputs`, of its shape.

    Raises:
        RuntimeError: An input is not used and `allow_unused` is off, an output does not require grad or
            has several elements and no `grad_outputs`, or the graph has run already without
            `retain_graph`.
        ValueError: `materialize_grads` with `allow_unused=False`.

    Example:
        >>> x = mica.tensor(2.0, requires_grad=True)
        >>> (first,) = mica.autograd.grad(x**3, x, create_graph=True)
        >>> mica.autograd.grad(first, x)
        (tensor(12.),)
    """
    retain = create_graph if retain_graph is None else retain_graph
    unused = materialize_grads if allow_unused is None else allow_unused
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        )
    listed = [inputs] if isinstance(inputs, (Tensor, graph.GradientEdge)) else inputs
    edges = (
        [i for i, given in enumerate(listed) if isinstance(given, graph.GradientEdge)]
        if materialize_grads
        else []
    )

    def gradients(cotangents: Any) -> tuple[Tensor, ...]:
        found = _C._gradients(
            outputs, inputs, cotangents, retain, create_graph, unused, materialize_grads and not edges
        )
        return _materialized(found, listed, edges) if edges else found

    return _batched_gradients(gradients, grad_outputs) if is_grads_batched else gradients(grad_outputs)


def _materialized(found: Any, inputs: Any, edges: list[int]) -> tuple[Tensor, ...]:
    """Zeros where a tensor has no gradient; an edge has no shape to give zeros of."""
    if any(found[i] is None for i in edges):
        raise RuntimeError(
            "materialize_grads cannot be used when the given input is a GradientEdge, as one is that nothing depends on."
        )
    return tuple(x.new_zeros(x.shape) if g is None else g for g, x in zip(found, inputs))


def _batched_gradients(gradients: Any, grad_outputs: Any) -> tuple[Tensor, ...]:
    """gradients(cotangents) of every example at once; None where nothing depends."""
    from mica.func import vmap

    cotangents = [grad_outputs] if isinstance(grad_outputs, Tensor) else list(grad_outputs)
    used: list[bool] = []

    def one_example(*given: Tensor) -> tuple[Tensor, ...]:
        found = gradients(list(given))
        used[:] = [g is not None for g in found]
        return tuple(g for g in found if g is not None)

    batch = iter(vmap(one_example)(*cotangents))
    return tuple(next(batch) if u else None for u in used)  # type: ignore[misc]


def __getattr__(name: str) -> Any:
    if name != "profiler":  # loaded on first use
        raise AttributeError(f"module 'mica.autograd' has no attribute '{name}'")
    import importlib

    return importlib.import_module("mica.autograd.profiler")
