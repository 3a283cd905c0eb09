"""jvp and linearize: derivatives along a direction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mica
from mica import _C
from mica._C import Tensor
from mica.func._reverse import _input
from mica.func._trees import map_tensors, split_aux, tensors_of
from mica.utils._pytree import tree_unflatten


def _check_directions(name: str, primals: Any, tangents: Any) -> tuple[list[Tensor], list[Tensor], Any]:
    flat, spec = tensors_of(primals, name, "primals")
    directions, given = tensors_of(tangents, name, "tangents")
    if given != spec:
        raise RuntimeError(
            f"{name}: the tree of the tangents ({given}) differs from that of the primals ({spec})."
        )
    for i, (p, t) in enumerate(zip(flat, directions)):
        if p.shape != t.shape:
            raise RuntimeError(
                f"{name}: the shape {tuple(t.shape)} of tangent ({i}) differs from the shape "
                f"{tuple(p.shape)} of its primal."
            )
        if p.dtype != t.dtype:
            raise RuntimeError(
                f"{name}: the dtype ({t.dtype}) of tangent ({i}) differs from the dtype ({p.dtype}) of its primal."
            )
    return flat, directions, spec


def jvp(
    func: Callable[..., Any],
    primals: tuple[Any, ...],
    tangents: tuple[Any, ...],
    *,
    strict: bool = False,
    has_aux: bool = False,
) -> tuple[Any, ...]:
    """(output, its derivative along the tangents), or (output, derivative, aux) with
    has_aux. With `strict`, an output that does not depend on the primals is an error
    instead of a derivative of zeros."""
    if not isinstance(primals, tuple) or not primals:
        raise RuntimeError(
            f"jvp: primals must be a tuple of at least one argument, but it is a {type(primals).__name__}."
        )
    flat, directions, spec = _check_directions("jvp", primals, tangents)
    frame = _C._frame_enter("jvp")
    try:
        duals = [_C._frame_dual(p, t) for p, t in zip(flat, directions)]
        output, aux = split_aux(func(*tree_unflatten(duals, spec)), has_aux, "jvp")
        outputs, output_spec = tensors_of(output, "jvp", "the function's output")
        values = [_C._frame_value(t) for t in outputs]
        derivatives = [_C._frame_tangent(t) for t in outputs]
        if has_aux:
            aux = map_tensors(_C._frame_value, aux)
    finally:
        _C._frame_exit(frame)
    for i, value in enumerate(values):
        if derivatives[i] is None:
            if strict:
                raise RuntimeError(f"jvp: output ({i}) does not depend on the primals, and strict is True.")
            derivatives[i] = mica.zeros_like(value)
    result = tree_unflatten(values, output_spec), tree_unflatten(derivatives, output_spec)
    return (*result, aux) if has_aux else result


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """(output, jvp_fn), where jvp_fn(*tangents) is the derivative at the primals along the
    tangents. The function runs once, here; each jvp_fn costs one backward.

    Note: the gradient of `func` is linear in its cotangent; jvp_fn is the gradient of that
    gradient with respect to the cotangent."""
    if not primals:
        raise RuntimeError("linearize: the function has no primals; give at least one.")
    frame = _C._frame_enter("grad")
    try:
        tag = _C._frame_tag()
        flat, spec = tensors_of(primals, "linearize", "each primal")
        inputs = [_input(t) for t in flat]
        outputs, output_spec = tensors_of(
            func(*tree_unflatten(inputs, spec)), "linearize", "the function's output"
        )
        values = [_C._frame_value(t) for t in outputs]
        recorded = [i for i, t in enumerate(outputs) if _C._frame_owns(t) and t.requires_grad]
        cotangents = [mica.ones_like(outputs[i].detach()).requires_grad_() for i in recorded]
        gradients: tuple[Any, ...] = ()
        if recorded:
            gradients = _C._gradients(
                [outputs[i] for i in recorded], inputs, cotangents, True, True, True, False
            )
    finally:
        _C._frame_exit(frame)

    def jvp_fn(*tangents: Any) -> Any:
        _, directions, _ = _check_directions("linearize", primals, tangents)
        frame = _C._frame_enter("grad", tag)
        try:
            linear = [i for i, g in enumerate(gradients) if g is not None and g.requires_grad]
            found: dict[int, Any] = {}
            if linear:
                along = [directions[i] for i in linear]
                of = _C._gradients([gradients[i] for i in linear], cotangents, along, True, False, True, True)
                found = {i: _C._frame_value(t) for i, t in zip(recorded, of)}
        finally:
            _C._frame_exit(frame)
        results = [found[i] if i in found else mica.zeros_like(v) for i, v in enumerate(values)]
        return tree_unflatten(results, output_spec)

    return tree_unflatten(values, output_spec), jvp_fn
