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
            where = f"value at index {i}" if several else f"given {what}"
            raise TypeError(
                f"The {what} given to {name} must be either a Tensor or a tuple of Tensors but the {where} has type "
                f"{type(t)}."
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
    outputs, many = _as_tuple(func(*fresh), "outputs of the user-provided function", name)
    return fresh, several, outputs, many


def _direction(name: str, v: Any, of: tuple[Tensor, ...], what: str) -> tuple[Tensor, ...]:
    if v is None:
        if len(of) != 1 or of[0].numel() != 1:
            whole = (
                "user-provided function returns"
                if what == "output"
                else "input to the user-provided function is"
            )
            raise RuntimeError(
                f"The vector v can only be None if the {whole} a single Tensor with a single element; {name} is "
                f"given ({len(of)}) {what}s."
            )
        return (mica.ones_like(of[0]),)
    given, _ = _as_tuple(v, "v", name)
    if len(of) == 1 and len(given) != 1:
        raise RuntimeError(f"The given v should contain a single Tensor. {name} is given ({len(given)}).")
    if len(given) != len(of):
        raise RuntimeError(
            f"v is a tuple of invalid length: should be {len(of)} but got {len(given)}, and {name} takes a vector for "
            f"each {what}."
        )
    for i, (a, b) in enumerate(zip(given, of)):
        if a.shape != b.shape:
            raise RuntimeError(
                f"{f'Entry {i} in ' if len(of) > 1 else ''}v has invalid size: should be {b.size()} but got {a.size()}; {name} takes vectors of the "
                f"sizes of each {what}."
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
        missing = next(i for i in range(len(outputs)) if i not in recorded)
        raise RuntimeError(
            f"Output {missing} of the user-provided function does not require gradients. The outputs must be computed "
            f"in a differentiable manner from the input when running {name} in strict mode."
        )
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
        missing = next(i for i, g in enumerate(found) if g is None)
        if name == "hessian":
            raise RuntimeError(_linear(name, missing))
        output = "Output 0" if name == "jacobian" else "The output"
        raise RuntimeError(
            f"{output} of the user-provided function is independent of input {missing}. This is not allowed in "
            f"strict mode, with which {name} is called."
        )
    if strict and create_graph:
        _expect_history(name, found)
    return tuple(mica.zeros_like(t) if g is None else g for g, t in zip(found, inputs))


def _expect_history(name: str, found: tuple[Tensor | None, ...]) -> None:
    """Raises where a gradient that will be differentiated again depends on nothing: `strict` asks for it."""
    missing = next((i for i, g in enumerate(found) if g is not None and not g.requires_grad), None)
    if missing is None:
        return
    if name in ("vjp", "jvp", "jacobian"):
        raise RuntimeError(
            f"The jacobian of the user-provided function is independent of input {missing}. This is not allowed in "
            f"strict mode when create_graph=True, as {name} is called."
        )
    raise RuntimeError(_linear(name, missing))


def _linear(name: str, missing: int) -> str:
    return (
        f"The jacobian of the user-provided function with respect to input {missing} is independent of the input. "
        f"This is not allowed in strict mode, with which {name} is called: the function must be twice differentiable."
    )


def _result(values: tuple[Tensor, ...], several: bool, create_graph: bool) -> Any:
    kept = values if create_graph else tuple(t.detach() for t in values)
    return kept if several else kept[0]


def vjp(
    func: Function, inputs: Tensors, v: Any = None, create_graph: bool = False, strict: bool = False
) -> Any:
    """Computes a function and the product of a vector with its Jacobian: `v @ J`, by reverse mode.

    As `torch.autograd.functional.vjp`. `mica.func.vjp` does the same and nests in other transforms.

    Args:
        func (callable): A function of Tensors that returns a Tensor or a tuple of them.
        inputs (Tensor or tuple of Tensor): The arguments of `func`, at which it is differentiated.
        v (Tensor or tuple of Tensor, optional): One for each output, of its shape. Default: 1, for one
            output of one element.
        create_graph (bool): Record the results, so that they can be differentiated. Default: False.
        strict (bool): Raise where an output does not depend on an input, instead of giving zeros.
            Default: False.

    Returns:
        tuple: `(outputs, product)`; the product has the form and shapes of `inputs`.

    Raises:
        RuntimeError: `v` is missing or of wrong shape, or `strict` fails.
        TypeError: An input or output is no Tensor.

    Example:
        >>> mica.autograd.functional.vjp(mica.square, mica.tensor([1.0, 2.0]), mica.tensor([1.0, 10.0]))
        (tensor([1., 4.]), tensor([ 2., 40.]))
    """
    with mica.enable_grad():
        fresh, several, outputs, many = _run("vjp", func, inputs, create_graph)
        found = _gradients(
            "vjp", outputs, fresh, _direction("vjp", v, outputs, "output"), create_graph, strict
        )
    return _result(outputs, many, create_graph), _result(found, several, create_graph)


def jvp(
    func: Function, inputs: Tensors, v: Any = None, create_graph: bool = False, strict: bool = False
) -> Any:
    """Computes a function and the product of its Jacobian with a vector: `J @ v`, by reverse mode twice.

    As `torch.autograd.functional.jvp`. `mica.func.jvp` is cheaper: it goes forward.

    Args:
        func (callable): A function of Tensors that returns a Tensor or a tuple of them.
        inputs (Tensor or tuple of Tensor): The arguments of `func`, at which it is differentiated.
        v (Tensor or tuple of Tensor, optional): One for each input, of its shape. Default: 1, for one
            input of one element.
        create_graph (bool): Record the results, so that they can be differentiated. Default: False.
        strict (bool): Raise where an output does not depend on an input, instead of giving zeros.
            Default: False.

    Returns:
        tuple: `(outputs, product)`; the product has the form and shapes of the outputs.

    Raises:
        RuntimeError: `v` is missing or of wrong shape, or `strict` fails.
        TypeError: An input or output is no Tensor.

    Example:
        >>> mica.autograd.functional.jvp(mica.square, mica.tensor([1.0, 2.0]), mica.tensor([1.0, 0.0]))
        (tensor([1., 4.]), tensor([2., 0.]))
    """
    with mica.enable_grad():
        fresh, _, outputs, many = _run("jvp", func, inputs, create_graph)
        along = _direction("jvp", v, fresh, "input")
        dummies = tuple(mica.ones_like(t).requires_grad_() for t in outputs)
        linear = _gradients("jvp", outputs, fresh, dummies, True, strict)
        found = _gradients("jvp", linear, dummies, along, create_graph, strict)
    return _result(outputs, many, create_graph), _result(found, many, create_graph)


def _refuse_strict(name: str, both: bool) -> None:
    if both:
        raise RuntimeError(
            f"{name}: strict=True and vectorize=True are not supported together; leave one of them out."
        )


def jacobian(
    func: Function,
    inputs: Tensors,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """Computes the Jacobian of a function: the derivative of each output element by each input element.

    As `torch.autograd.functional.jacobian`. `mica.func.jacrev` computes the rows in one pass.

    Args:
        func (callable): A function of Tensors that returns a Tensor or a tuple of them.
        inputs (Tensor or tuple of Tensor): The arguments of `func`, at which it is differentiated.
        create_graph (bool): Record the result, so that it can be differentiated. Default: False.
        strict (bool): Raise where an output does not depend on an input, instead of giving zeros.
            Default: False.
        vectorize (bool): No effect, but that it excludes `strict`. Default: False.
        strategy (str): "reverse-mode", a row at a time, or "forward-mode", a column at a time.
            Default: "reverse-mode".

    Returns:
        Tensor or tuple: For an output of shape `o` and an input of shape `a` a Tensor of shape `o + a`; a
        tuple over outputs, of tuples over inputs, where these are tuples.

    Raises:
        RuntimeError: `strict` fails, or is given with `vectorize`.
        TypeError: An input or output is no Tensor.
        ValueError: `strategy` is unknown.
        NotImplementedError: "forward-mode" with `create_graph`; use `mica.func.jacfwd`.

    Example:
        >>> mica.autograd.functional.jacobian(mica.square, mica.tensor([1.0, 2.0]))
        tensor([[2., 0.],
                [0., 4.]])
    """
    _refuse_strict("jacobian", strict and vectorize)
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
        _, several = _as_tuple(out, "outputs of the user-provided function", name)
        if several:
            raise RuntimeError(
                f"The function given to {name} should return a single Tensor; it returns ({len(out)}) values."
            )
        if out.numel() != 1:
            raise RuntimeError(
                f"The Tensor returned by the function given to {name} should contain a single element; its shape is "
                f"{tuple(out.shape)}."
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
    """Computes the second derivatives of a function that returns one number.

    As `torch.autograd.functional.hessian`.

    Args:
        func (callable): A function of Tensors that returns a Tensor of one element.
        inputs (Tensor or tuple of Tensor): The arguments of `func`, at which it is differentiated.
        create_graph (bool): Record the result, so that it can be differentiated. Default: False.
        strict (bool): Raise where the gradient does not depend on an input, instead of giving zeros.
            Default: False.
        vectorize (bool): No effect, but that it excludes `strict`. Default: False.
        outer_jacobian_strategy (str): "reverse-mode", or "forward-mode" over it.
            Default: "reverse-mode".

    Returns:
        Tensor or tuple of tuples: For inputs of shapes `a` and `b` a Tensor of shape `a + b`; a tuple of
        tuples where `inputs` is a tuple.

    Raises:
        RuntimeError: The output has several elements, or `strict` fails or is given with `vectorize`.
        TypeError: An input or output is no Tensor.
        ValueError: The strategy is unknown.

    Example:
        >>> mica.autograd.functional.hessian(lambda x: (x**3).sum(), mica.tensor([1.0, 2.0]))
        tensor([[ 6.,  0.],
                [ 0., 12.]])
    """
    if outer_jacobian_strategy not in ("reverse-mode", "forward-mode"):
        raise ValueError(
            f"hessian: outer_jacobian_strategy ({outer_jacobian_strategy}) must be reverse-mode or forward-mode."
        )
    _refuse_strict("hessian", strict and vectorize)
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
    """Computes a function of one number and the product of a vector with its Hessian: `v @ H`.

    As `torch.autograd.functional.vhp`. It costs less than `hvp`, and for a Hessian that is symmetric,
    as those of smooth functions are, gives the same.

    Args:
        func (callable): A function of Tensors that returns a Tensor of one element.
        inputs (Tensor or tuple of Tensor): The arguments of `func`, at which it is differentiated.
        v (Tensor or tuple of Tensor, optional): One for each input, of its shape. Default: 1, for one
            input of one element.
        create_graph (bool): Record the results, so that they can be differentiated. Default: False.
        strict (bool): Raise where the gradient does not depend on an input, instead of giving zeros.
            Default: False.

    Returns:
        tuple: `(output, product)`; the product has the form and shapes of `inputs`.

    Raises:
        RuntimeError: The output has several elements, `v` is missing or of wrong shape, or `strict`
            fails.
        TypeError: An input or output is no Tensor.

    Example:
        >>> mica.autograd.functional.vhp(lambda x: (x**3).sum(), mica.tensor([1.0, 2.0]), mica.ones(2))
        (tensor(9.), tensor([ 6., 12.]))
    """
    with mica.enable_grad():
        fresh, several, outputs, along, first = _gradient_along("vhp", func, inputs, v, strict, create_graph)
        found = _gradients("vhp", first, fresh, along, create_graph, strict)
    return _result(outputs, False, create_graph), _result(found, several, create_graph)


def hvp(
    func: Function, inputs: Tensors, v: Any = None, create_graph: bool = False, strict: bool = False
) -> Any:
    """Computes a function of one number and the product of its Hessian with a vector: `H @ v`.

    As `torch.autograd.functional.hvp`.

    Args:
        func (callable): A function of Tensors that returns a Tensor of one element.
        inputs (Tensor or tuple of Tensor): The arguments of `func`, at which it is differentiated.
        v (Tensor or tuple of Tensor, optional): One for each input, of its shape. Default: 1, for one
            input of one element.
        create_graph (bool): Record the results, so that they can be differentiated. Default: False.
        strict (bool): Raise where the gradient does not depend on an input, instead of giving zeros.
            Default: False.

    Returns:
        tuple: `(output, product)`; the product has the form and shapes of `inputs`.

    Raises:
        RuntimeError: The output has several elements, `v` is missing or of wrong shape, or `strict`
            fails.
        TypeError: An input or output is no Tensor.

    Example:
        >>> mica.autograd.functional.hvp(lambda x: (x**3).sum(), mica.tensor([1.0, 2.0]), mica.ones(2))
        (tensor(9.), tensor([ 6., 12.]))
    """
    with mica.enable_grad():
        fresh, several, outputs, along, first = _gradient_along("hvp", func, inputs, v, strict, create_graph)
        dummies = tuple(mica.ones_like(t).requires_grad_() for t in fresh)
        linear = _gradients("hvp", first, fresh, dummies, True, strict)
        found = _gradients("hvp", linear, dummies, along, create_graph, strict)
    return _result(outputs, False, create_graph), _result(found, several, create_graph)
