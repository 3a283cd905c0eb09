"""grad, grad_and_value and vjp: reverse mode, one grad frame a level."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

from mica import _C
from mica._C import Tensor
from mica.func._trees import Argnums, checked_argnums, split_aux, tensors_of
from mica.utils._pytree import tree_flatten, tree_map, tree_unflatten


def _input(leaf: Any) -> Tensor:
    if not isinstance(leaf, Tensor):
        raise ValueError(
            f"An argument that is differentiated must be a Tensor or a tree of Tensors, but it holds a "
            f"{type(leaf).__name__}. Make a tensor of it, or name other arguments in argnums."
        )
    if not (leaf.is_floating_point() or leaf.is_complex()):
        raise RuntimeError(
            f"A tensor of dtype ({leaf.dtype}) cannot be differentiated; only floating and complex dtypes can. "
            "Convert it (x.float()), or name other arguments in argnums."
        )
    return _C._frame_grad_input(leaf)


def _gradients(
    outputs: list[Tensor], inputs: list[Tensor], cotangents: list[Tensor] | None, retain_graph: bool
) -> list[Tensor]:
    """In the grad frame; zeros where nothing depends."""
    recorded = [i for i, t in enumerate(outputs) if _C._frame_owns(t) and t.requires_grad]
    if recorded:
        found = _C._gradients(
            [outputs[i] for i in recorded],
            inputs,
            None if cotangents is None else [cotangents[i] for i in recorded],
            retain_graph,
            False,
            True,
            True,
        )
    else:
        found = [t.new_zeros(t.shape) for t in inputs]
    return [_C._frame_value(t) for t in found]


def _check_scalar(output: Any, name: str) -> None:
    if not isinstance(output, Tensor):
        raise RuntimeError(
            f"{name}: the function must return a Tensor of one element, but it returned a "
            f"{type(output).__name__}. Values beside it are returned by has_aux=True."
        )
    if output.dim() != 0:
        raise RuntimeError(
            f"{name}: the function must return a 0-d tensor, but it returned one of shape "
            f"{tuple(output.shape)}. Reduce it (output.sum()), or use jacrev or vjp."
        )
    if output.is_complex():
        raise RuntimeError(
            f"{name}: the function must return a real tensor, but it returned one of dtype ({output.dtype}). Take "
            "its real part or its absolute value, or use vjp."
        )


def _grad_and_value(
    func: Callable[..., Any], argnums: Argnums, has_aux: bool, name: str, args: tuple[Any, ...], kwargs: Any
) -> tuple[Any, Tensor, Any]:
    numbers = checked_argnums(argnums, len(args), name)
    frame = _C._frame_enter("grad")
    try:
        replaced = list(args)
        leaves: list[Tensor] = []
        specs = []
        for n in numbers:
            wrapped = _input(args[n]) if isinstance(args[n], Tensor) else tree_map(_input, args[n])
            replaced[n] = wrapped
            if isinstance(wrapped, Tensor):
                leaves.append(wrapped)
                specs.append(None)
            else:
                flat, spec = tree_flatten(wrapped)
                leaves.extend(flat)
                specs.append(spec)
        if not leaves:
            raise RuntimeError(f"{name}: the arguments that argnums names hold no tensor.")
        output, aux = split_aux(func(*replaced, **kwargs), has_aux, name)
        _check_scalar(output, name)
        found = iter(_gradients([output], leaves, None, False))
        trees = tuple(
            next(found)
            if spec is None
            else tree_unflatten([next(found) for _ in range(spec.num_leaves)], spec)
            for spec in specs
        )
        value = _C._frame_value(output)
        if has_aux:
            aux = tree_map(_C._frame_value, aux)
    finally:
        _C._frame_exit(frame)
    return (trees[0] if isinstance(argnums, int) else trees), value, aux


def grad(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Makes a function that computes the gradient of another, which returns one number.

    As `torch.func.grad`. It nests, in itself for higher derivatives and in the other transforms.

    Args:
        func (callable): A function of Tensors, or trees of them, that returns a Tensor of shape `()`.
        argnums (int or tuple of int): Positions of the arguments to differentiate. Default: 0.
        has_aux (bool): `func` returns a pair `(output, aux)`, and only `output` is differentiated.
            Default: False.

    Returns:
        callable: A function of the same arguments, which returns the gradient in the argument's form: a
        tuple where `argnums` is one, a pair `(gradient, aux)` with `has_aux`.

    Raises:
        RuntimeError: From the call: the output is no Tensor of shape `()`, `argnums` names no argument,
            or an argument is of an integer dtype.
        ValueError: From the call: an argument holds other things than Tensors.

    Example:
        >>> mica.func.grad(lambda x: x**3)(mica.tensor(2.0))
        tensor(12.)
        >>> mica.func.grad(mica.func.grad(lambda x: x**3))(mica.tensor(2.0))
        tensor(12.)
    """

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        gradient, _, aux = _grad_and_value(func, argnums, has_aux, "grad", args, kwargs)
        return (gradient, aux) if has_aux else gradient

    return wrapper


def grad_and_value(
    func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Makes a function that computes the gradient of another together with its value.

    As `torch.func.grad_and_value`.

    Args:
        func (callable): A function of Tensors, or trees of them, that returns a Tensor of shape `()`.
        argnums (int or tuple of int): Positions of the arguments to differentiate. Default: 0.
        has_aux (bool): `func` returns a pair `(output, aux)`, and only `output` is differentiated.
            Default: False.

    Returns:
        callable: A function of the same arguments, which returns `(gradient, output)`, or
        `(gradient, (output, aux))` with `has_aux`.

    Raises:
        RuntimeError: As `grad`.
        ValueError: As `grad`.

    Example:
        >>> mica.func.grad_and_value(lambda x: x**3)(mica.tensor(2.0))
        (tensor(12.), tensor(8.))
    """

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        gradient, value, aux = _grad_and_value(func, argnums, has_aux, "grad_and_value", args, kwargs)
        return (gradient, (value, aux)) if has_aux else (gradient, value)

    return wrapper


class Pullback:
    """A function that ran once in a grad frame: its output, and its gradients for any
    cotangents, in that frame again."""

    def __init__(self, name: str, func: Callable[..., Any], primals: tuple[Any, ...], has_aux: bool) -> None:
        self.aux: Any = None
        frame = _C._frame_enter("grad")
        try:
            self.tag = _C._frame_tag()
            self.primals, self.primals_spec = tensors_of(primals, name, "each primal")
            self.inputs = [_input(t) for t in self.primals]
            output, aux = split_aux(func(*tree_unflatten(self.inputs, self.primals_spec)), has_aux, name)
            self.outputs, self.spec = tensors_of(output, name, "the function's output")
            for t in self.outputs:
                if not (t.is_floating_point() or t.is_complex()):
                    raise RuntimeError(
                        f"{name}: the function's output must be floating or complex, but it holds a tensor of "
                        f"dtype ({t.dtype}). Return it beside the output, by has_aux=True."
                    )
            self.values = [_C._frame_value(t) for t in self.outputs]
            if has_aux:
                self.aux = tree_map(_C._frame_value, aux)
        finally:
            _C._frame_exit(frame)

    def output(self) -> Any:
        return tree_unflatten(self.values, self.spec)

    def pull(self, cotangents: list[Tensor], retain_graph: bool = True) -> list[Tensor]:
        frame = _C._frame_enter("grad", self.tag)
        try:
            return _gradients(self.outputs, self.inputs, cotangents, retain_graph)
        finally:
            _C._frame_exit(frame)

    def rows(self, i: int, cotangents: Iterable[Tensor]) -> list[list[Tensor]]:
        """The gradients of output i alone, for each of its cotangents."""
        frame = _C._frame_enter("grad", self.tag)
        try:
            return [_gradients([self.outputs[i]], self.inputs, [c], True) for c in cotangents]
        finally:
            _C._frame_exit(frame)


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """Runs a function once and returns its value, with a function that pulls gradients back through it.

    As `torch.func.vjp`. `vjp_fn(cotangents)` computes `cotangents @ J`; it may be called many times,
    also inside of other transforms.

    Args:
        func (callable): A function of Tensors, or trees of them, that returns the like.
        *primals: Its arguments, at which it is differentiated.
        has_aux (bool): `func` returns a pair `(output, aux)`, and only `output` is differentiated.
            Default: False.

    Returns:
        tuple: `(output, vjp_fn)`, or `(output, vjp_fn, aux)` with `has_aux`. `vjp_fn` takes Tensors of the
        output's form and shapes and returns a tuple with one gradient for each primal.

    Raises:
        RuntimeError: There are no primals, one is of an integer dtype, or an output is; from `vjp_fn`:
            the cotangents have another form than the output.

    Example:
        >>> output, vjp_fn = mica.func.vjp(mica.square, mica.tensor([1.0, 2.0]))
        >>> vjp_fn(mica.tensor([1.0, 10.0]))
        (tensor([ 2., 40.]),)
    """
    if not primals:
        raise RuntimeError("vjp: the function has no primals to be differentiated; give at least one.")
    pullback = Pullback("vjp", func, primals, has_aux)

    def vjp_fn(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        flat, given = tensors_of(cotangents, "vjp_fn", "the cotangents")
        if given != pullback.spec:
            raise RuntimeError(
                f"vjp_fn: the tree of the cotangents ({given}) differs from that of the output ({pullback.spec})."
            )
        return tree_unflatten(pullback.pull(flat, retain_graph), pullback.primals_spec)

    output = pullback.output()
    return (output, vjp_fn, pullback.aux) if has_aux else (output, vjp_fn)
