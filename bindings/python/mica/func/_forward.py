"""jvp and linearize: derivatives along a direction."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import mica
from mica import _C
from mica._C import Tensor
from mica.autograd.forward_ad import direction
from mica.func._reverse import Pullback
from mica.func._trees import split_aux, tensors_of
from mica.utils._pytree import tree_map, tree_unflatten


def _check_directions(name: str, primals: Any, tangents: Any) -> tuple[list[Tensor], list[Tensor], Any]:
    flat, spec = tensors_of(primals, name, "primals")
    directions, given = tensors_of(tangents, name, "tangents")
    if given != spec:
        raise RuntimeError(
            f"{name}: the tree of the tangents ({given}) differs from that of the primals ({spec})."
        )
    along = [direction(name, p, t, i) for i, (p, t) in enumerate(zip(flat, directions))]
    return flat, along, spec


def jvp(
    func: Callable[..., Any],
    primals: tuple[Any, ...],
    tangents: tuple[Any, ...],
    *,
    strict: bool = False,
    has_aux: bool = False,
) -> tuple[Any, ...]:
    """Computes a function and its derivative along a direction: `(f(x), J(x) @ v)`, by forward mode.

    As `torch.func.jvp`. Costs about two evaluations of `func`, however many inputs there are.

    Args:
        func (callable): A function of Tensors, or trees of them, that returns the like.
        primals (tuple): Its arguments, at which it is differentiated.
        tangents (tuple): The direction: for each primal a Tensor of its shape, in trees of the same
            form.
        strict (bool): Raise where an output does not depend on the primals, instead of giving zeros.
            Default: False.
        has_aux (bool): `func` returns a pair `(output, aux)`, and only `output` is differentiated.
            Default: False.

    Returns:
        tuple: `(output, derivative)`, or `(output, derivative, aux)` with `has_aux`. The derivative has the
        output's form and shapes.

    Raises:
        RuntimeError: Shapes or trees of primals and tangents differ, `primals` is no tuple, or `strict`
            fails.
        ValueError: A primal or tangent is of an integer dtype.

    Example:
        >>> x, v = mica.tensor([1.0, 2.0]), mica.tensor([1.0, 0.0])
        >>> mica.func.jvp(lambda x: x**3, (x,), (v,))
        (tensor([1., 8.]), tensor([3., 0.]))
    """
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
            aux = tree_map(_C._frame_value, aux)
    finally:
        _C._frame_exit(frame)
    for i, value in enumerate(values):
        if derivatives[i] is None:
            if strict:
                raise RuntimeError(f"jvp: output ({i}) does not depend on the primals, and strict is True.")
            derivatives[i] = mica.zeros_like(value)
    result = tree_unflatten(values, output_spec), tree_unflatten(derivatives, output_spec)
    return (*result, aux) if has_aux else result


class Linearized(Pullback):
    """A function that ran once, whose derivative along any direction is found from its
    gradient: that is linear in the cotangent, and the gradient of it with respect to the
    cotangent, in the direction, is the derivative."""

    def __init__(self, name: str, func: Callable[..., Any], primals: tuple[Any, ...], has_aux: bool) -> None:
        super().__init__(name, func, primals, has_aux)
        frame = _C._frame_enter("grad", self.tag)
        try:
            self.recorded = [i for i, t in enumerate(self.outputs) if _C._frame_owns(t) and t.requires_grad]
            outputs = [self.outputs[i] for i in self.recorded]
            # Of ones: a formula may branch by the sign of its gradient.
            self.cotangents = [mica.ones_like(t.detach()).requires_grad_() for t in outputs]
            self.gradients: tuple[Any, ...] = (None,) * len(self.inputs)
            if outputs:
                self.gradients = _C._gradients(outputs, self.inputs, self.cotangents, True, True, True, False)
        finally:
            _C._frame_exit(frame)

    def push(self, directions: Iterable[dict[int, Tensor]]) -> list[dict[int, Tensor]]:
        """For each direction, given by the inputs that it moves, the derivatives of the
        outputs that depend on them, by number."""
        frame = _C._frame_enter("grad", self.tag)
        try:
            return [self._push(d) for d in directions]
        finally:
            _C._frame_exit(frame)

    def _push(self, direction: dict[int, Tensor]) -> dict[int, Tensor]:
        linear = [i for i in direction if self.gradients[i] is not None and self.gradients[i].requires_grad]
        if not linear:
            return {}
        found = _C._gradients(
            [self.gradients[i] for i in linear],
            self.cotangents,
            [direction[i] for i in linear],
            True,
            False,
            True,
            False,
        )
        return {i: _C._frame_value(t) for i, t in zip(self.recorded, found) if t is not None}


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """Runs a function once and returns its value, with a function for its derivative along any direction.

    As `torch.func.linearize`. Where many directions are wanted at one point, this is cheaper than
    `jvp`: each call costs one backward pass, and `func` does not run again.

    Args:
        func (callable): A function of Tensors, or trees of them, that returns the like.
        *primals: Its arguments, at which it is differentiated.

    Returns:
        tuple: `(output, jvp_fn)`; `jvp_fn(*tangents)` takes Tensors of the primals' shapes and returns the
        derivative, of the output's form.

    Raises:
        RuntimeError: There are no primals, or shapes or trees of primals and tangents differ.

    Example:
        >>> output, jvp_fn = mica.func.linearize(mica.sin, mica.zeros(2))
        >>> jvp_fn(mica.tensor([1.0, 5.0]))
        tensor([1., 5.])
    """
    if not primals:
        raise RuntimeError("linearize: the function has no primals; give at least one.")
    linear = Linearized("linearize", func, primals, False)

    def jvp_fn(*tangents: Any) -> Any:
        _, directions, _ = _check_directions("linearize", primals, tangents)
        (found,) = linear.push([dict(enumerate(directions))])
        results = [found[i] if i in found else mica.zeros_like(v) for i, v in enumerate(linear.values)]
        return tree_unflatten(results, linear.spec)

    return linear.output(), jvp_fn
