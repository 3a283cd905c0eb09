"""mica.autograd.functional: products with Jacobians and Hessians, by reverse mode.

With create_graph the results can be differentiated again, also with respect to tensors
that the function captured. New code may prefer mica.func, whose transforms nest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mica
from mica._C import Tensor

Tensors = Tensor | tuple[Tensor, ...]
Function = Callable[..., Any]


def _as_tuple(values: Any, what: str, name: str) -> tuple[tuple[Tensor, ...], bool]:
    """The tensors, and whether there were several of them."""
    several = isinstance(values, tuple)
    found = values if several else (values,)
    for i, t in enumerate(found):
        if not isinstance(t, Tensor):
            place = f" at ({i})" if several else ""
            raise TypeError(
                f"{name}: the {what} must be a Tensor or a tuple of Tensors, but hold a {type(t).__name__}{place}."
            )
    return found, several


def _fresh(inputs: tuple[Tensor, ...], create_graph: bool) -> tuple[Tensor, ...]:
    """Tensors that the function is differentiated at."""
    return tuple(
        t.view_as(t) if create_graph and t.requires_grad else t.detach().requires_grad_() for t in inputs
    )


def _run(
    name: str, func: Function, inputs: Any, create_graph: bool
) -> tuple[tuple[Tensor, ...], bool, tuple[Tensor, ...], bool]:
    given, several = _as_tuple(inputs, "inputs", name)
    fresh = _fresh(given, create_graph)
    outputs, many = _as_tuple(func(*fresh), "outputs of the function", name)
    return fresh, several, outputs, many


def _direction(name: str, v: Any, of: tuple[Tensor, ...], what: str) -> tuple[Tensor, ...]:
    if v is None:
        if len(of) != 1 or of[0].numel() != 1:
            raise RuntimeError(
                f"{name}: v can be left out where the {what} is one tensor of one element only."
            )
        return (mica.ones_like(of[0]),)
    given, _ = _as_tuple(v, "tensors of v", name)
    if len(given) != len(of):
        raise RuntimeError(f"{name}: v has ({len(given)}) tensors, and the {what} ({len(of)}).")
    for i, (a, b) in enumerate(zip(given, of)):
        if a.shape != b.shape:
            raise RuntimeError(
                f"{name}: the shape {tuple(a.shape)} of v ({i}) differs from the shape {tuple(b.shape)} of the {what}."
            )
    return given


def _gradients(
    name: str,
    outputs: tuple[Tensor, ...],
    inputs: tuple[Tensor, ...],
    cotangents: tuple[Tensor, ...] | None,
    create_graph: bool,
    strict: bool,
    retain_graph: bool = False,
) -> tuple[Tensor, ...]:
    """Zeros where nothing depends, which `strict` makes an error."""
    recorded = [i for i, t in enumerate(outputs) if t.requires_grad]
    if strict and len(recorded) < len(outputs):
        raise RuntimeError(f"{name}: an output does not depend on the inputs, and strict is True.")
    if not recorded:
        return tuple(mica.zeros_like(t) for t in inputs)
    found = mica.autograd.grad(
        tuple(outputs[i] for i in recorded),
        inputs,
        None if cotangents is None else tuple(cotangents[i] for i in recorded),
        create_graph=create_graph,
        retain_graph=create_graph or retain_graph,
        allow_unused=True,
    )
    if strict and any(g is None for g in found):
        raise RuntimeError(f"{name}: the outputs do not depend on one of the inputs, and strict is True.")
    return tuple(mica.zeros_like(t) if g is None else g for g, t in zip(found, inputs))


def _result(values: tuple[Tensor, ...], several: bool, create_graph: bool) -> Any:
    kept = values if create_graph else tuple(t.detach() for t in values)
    return kept if several else kept[0]


def vjp(
    func: Function, inputs: Tensors, v: Any = None, create_graph: bool = False, strict: bool = False
) -> Any:
    """(outputs, the product of v with the Jacobian)."""
    with mica.enable_grad():
        fresh, several, outputs, many = _run("vjp", func, inputs, create_graph)
        found = _gradients(
            "vjp", outputs, fresh, _direction("vjp", v, outputs, "output"), create_graph, strict
        )
    return _result(outputs, many, create_graph), _result(found, several, create_graph)


def jvp(
    func: Function, inputs: Tensors, v: Any = None, create_graph: bool = False, strict: bool = False
) -> Any:
    """(outputs, the product of the Jacobian with v)."""
    with mica.enable_grad():
        fresh, _, outputs, many = _run("jvp", func, inputs, create_graph)
        along = _direction("jvp", v, fresh, "input")
        dummies = tuple(mica.ones_like(t).requires_grad_() for t in outputs)
        linear = _gradients("jvp", outputs, fresh, dummies, True, strict)
        found = _gradients("jvp", linear, dummies, along, create_graph, strict)
    return _result(outputs, many, create_graph), _result(found, many, create_graph)


def jacobian(
    func: Function,
    inputs: Tensors,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """The Jacobian of each output with respect to each input, of the output's shape and the
    input's after it. `vectorize` changes nothing yet."""
    if strategy not in ("reverse-mode", "forward-mode"):
        raise ValueError(f"jacobian: strategy ({strategy}) must be reverse-mode or forward-mode.")
    if strategy == "forward-mode":
        given, several = _as_tuple(inputs, "inputs", "jacobian")
        if create_graph:
            raise NotImplementedError(
                "jacobian: forward-mode with create_graph has no rule; use mica.func.jacfwd, whose result is recorded."
            )
        found = mica.func.jacfwd(func, tuple(range(len(given))))(*(t.detach() for t in given))
        rows = found if isinstance(found[0], tuple) else (found,)
        parts = tuple(_result(row, several, False) for row in rows)
        return parts if isinstance(found[0], tuple) else parts[0]
    with mica.enable_grad():
        fresh, several, outputs, many = _run("jacobian", func, inputs, create_graph)
        jacobians = []
        for out in outputs:
            flat = out.reshape(-1)
            rows = [
                _gradients("jacobian", (flat[k],), fresh, None, create_graph, strict, True)
                for k in range(flat.numel())
            ]
            columns = zip(*rows) if rows else ((),) * len(fresh)
            jacobians.append(
                tuple(
                    (mica.stack(list(c)) if c else t.new_zeros((0, *t.shape))).reshape((*out.shape, *t.shape))
                    for c, t in zip(columns, fresh)
                )
            )
    parts = tuple(_result(j, several, create_graph) for j in jacobians)
    return parts if many else parts[0]


def _one_element(name: str, func: Function) -> Function:
    def checked(*inputs: Any) -> Tensor:
        out = func(*inputs)
        if not isinstance(out, Tensor) or out.numel() != 1:
            shape = f"of shape {tuple(out.shape)}" if isinstance(out, Tensor) else f"a {type(out).__name__}"
            raise RuntimeError(
                f"{name}: the function must return a Tensor of one element, but returned one {shape}."
            )
        return out.reshape(())

    return checked


def hessian(
    func: Function,
    inputs: Tensors,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The Hessian of a function of one element, for each pair of inputs."""
    if outer_jacobian_strategy not in ("reverse-mode", "forward-mode"):
        raise ValueError(
            f"hessian: outer_jacobian_strategy ({outer_jacobian_strategy}) must be reverse-mode or forward-mode."
        )
    given, several = _as_tuple(inputs, "inputs", "hessian")
    one = _one_element("hessian", func)
    if outer_jacobian_strategy == "forward-mode" and not create_graph:
        found = mica.func.hessian(one, tuple(range(len(given))))(*(t.detach() for t in given))
        return found if several else found[0][0]

    def gradient(*fresh: Tensor) -> tuple[Tensor, ...]:
        fresh = tuple(t if t.requires_grad else t.requires_grad_() for t in fresh)
        return _gradients("hessian", (one(*fresh),), fresh, None, True, strict)

    found = jacobian(gradient, given, create_graph, strict)
    return found if several else found[0][0]


def _gradient_along(
    name: str, func: Function, inputs: Any, v: Any, strict: bool, create_graph: bool
) -> tuple[Any, ...]:
    fresh, several, outputs, _ = _run(name, _one_element(name, func), inputs, create_graph)
    along = _direction(name, v, fresh, "input")
    return fresh, several, outputs, along, _gradients(name, outputs, fresh, None, True, strict)


def vhp(
    func: Function, inputs: Tensors, v: Any = None, create_graph: bool = False, strict: bool = False
) -> Any:
    """(output, the product of v with the Hessian)."""
    with mica.enable_grad():
        fresh, several, outputs, along, first = _gradient_along("vhp", func, inputs, v, strict, create_graph)
        found = _gradients("vhp", first, fresh, along, create_graph, strict)
    return _result(outputs, False, create_graph), _result(found, several, create_graph)


def hvp(
    func: Function, inputs: Tensors, v: Any = None, create_graph: bool = False, strict: bool = False
) -> Any:
    """(output, the product of the Hessian with v)."""
    with mica.enable_grad():
        fresh, several, outputs, along, first = _gradient_along("hvp", func, inputs, v, strict, create_graph)
        dummies = tuple(mica.ones_like(t).requires_grad_() for t in fresh)
        linear = _gradients("hvp", first, fresh, dummies, True, strict)
        found = _gradients("hvp", linear, dummies, along, create_graph, strict)
    return _result(outputs, False, create_graph), _result(found, several, create_graph)
