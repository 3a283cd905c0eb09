"""mica.func: transforms of functions of tensors, with torch.func's names and meanings.

grad, vjp and the Jacobians go backward, jvp and linearize forward; each takes a function
and nests in any of the others. Arguments and results may be trees (mica.utils._pytree)."""

from __future__ import annotations

from mica.func._forward import (
    jvp as jvp,
    linearize as linearize,
)
from mica.func._functionalize import functionalize as functionalize
from mica.func._jacobians import (
    hessian as hessian,
    jacfwd as jacfwd,
    jacrev as jacrev,
)
from mica.func._modules import (
    functional_call as functional_call,
    stack_module_state as stack_module_state,
)
from mica.func._reverse import (
    grad as grad,
    grad_and_value as grad_and_value,
    vjp as vjp,
)
from mica.func._vmap import vmap as vmap

__all__ = [
    "functional_call",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "stack_module_state",
    "vjp",
    "vmap",
]
