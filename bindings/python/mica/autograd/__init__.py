"""mica.autograd: gradients, custom functions, checks and hooks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mica import _C
from mica._C import (
    Node as Node,
    Tensor as Tensor,
)
from mica._grad_mode import (
    enable_grad as enable_grad,
    inference_mode as inference_mode,
    no_grad as no_grad,
    set_grad_enabled as set_grad_enabled,
)
from mica.autograd import (
    forward_ad as forward_ad,
    functional as functional,
    graph as graph,
)
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

Variable = Tensor
Tensors = Tensor | Sequence[Tensor]


def backward(
    tensors: Tensors,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Tensors | None = None,
) -> None:
    """Adds the gradients of `tensors` to the .grad of the leaves (or of `inputs`)."""
    _C._backward(
        tensors, grad_tensors, inputs, create_graph if retain_graph is None else retain_graph, create_graph
    )


def grad(
    outputs: Tensors,
    inputs: Tensors,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor, ...]:
    """The gradients of `outputs` with respect to `inputs`; nothing is accumulated."""
    if is_grads_batched:
        raise NotImplementedError("grad() with is_grads_batched is not there yet; call it once for each row.")
    retain = create_graph if retain_graph is None else retain_graph
    unused = materialize_grads if allow_unused is None else allow_unused
    return _C._gradients(outputs, inputs, grad_outputs, retain, create_graph, unused, materialize_grads)
