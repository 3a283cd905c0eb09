"""Backward hooks of modules: identities around forward() that see its gradients, and the older kind."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import mica
from mica._C import Tensor

if TYPE_CHECKING:
    from mica.nn.modules.module import Module


def _tensors(values: tuple[Any, ...]) -> list[int]:
    return [i for i, value in enumerate(values) if isinstance(value, Tensor)]


def _spread(places: list[int], values: Any, count: int) -> tuple[Any, ...]:
    spread = [None] * count
    for place, value in zip(places, values):
        spread[place] = value
    return tuple(spread)


def _checked(changed: Any, before: tuple[Any, ...], what: str, module: Module) -> tuple[Any, ...]:
    """What a hook made of gradients; one gradient may come without its tuple."""
    if changed is None:
        return before
    changed = tuple(changed) if isinstance(changed, (tuple, list)) else (changed,)
    for gradient in changed:
        if gradient is not None and not isinstance(gradient, Tensor):
            raise TypeError(
                f"A backward hook of {type(module).__name__} returned a value of type ({type(gradient).__name__}) "
                f"among the gradients of {what}; expected Tensors and None."
            )
    if len(changed) != len(before):
        raise RuntimeError(
            f"A backward hook returned ({len(changed)}) gradients of {what}; expected ({len(before)}), "
            f"one for each of {type(module).__name__}."
        )
    return changed


class BackwardHooks:
    """Watches a module's inputs and outputs and calls its full backward hooks."""

    def __init__(self, module: Module, hooks: list[Any], before: list[Any]) -> None:
        self.module = module
        self.hooks = hooks
        self.before = before
        self.inputs: list[int] = []  # the places of tensors among the arguments, if one requires a gradient
        self.outputs: list[int] = []
        self.input_count = self.output_count = 0
        # Known between the node of the outputs and that of the inputs.
        self.grad_output: tuple[Any, ...] | None = None

    def watch_inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        self.input_count = len(args)
        args, self.inputs = self._watch(args, lambda inputs, outputs: self._on_inputs(inputs))
        return args

    def watch_outputs(self, result: Any) -> Any:
        if not isinstance(result, (Tensor, tuple)):
            warnings.warn(
                f"The output of {type(self.module).__name__} should be a Tensor or a tuple of Tensors for its "
                f"backward hooks to be called, but is a {type(result).__name__}.",
                stacklevel=4,
            )
        outputs = result if isinstance(result, tuple) else (result,)
        self.output_count = len(outputs)
        watched, self.outputs = self._watch(outputs, lambda inputs, outputs: self._on_outputs(outputs))
        if not self.outputs:
            return result
        return watched if isinstance(result, tuple) else watched[0]

    def _watch(self, values: tuple[Any, ...], seen: Callable[..., Any]) -> tuple[tuple[Any, ...], list[int]]:
        places = _tensors(values)
        if not mica.is_grad_enabled() or not any(values[i].requires_grad for i in places):
            return values, []
        watched = list(values)
        for place, tensor in zip(places, _identity.apply(*(values[i] for i in places))):
            watched[place] = tensor
        next(t for t in watched if isinstance(t, Tensor) and t.requires_grad).grad_fn.register_hook(seen)
        return (tuple(watched) if type(values) is tuple else type(values)(*watched)), places

    def _on_outputs(self, known: tuple[Any, ...]) -> tuple[Any, ...]:
        grads = _spread(self.outputs, known, self.output_count)
        for hook in self.before:
            grads = _checked(hook(self.module, grads), grads, "outputs", self.module)
        self.grad_output = grads
        if not self.inputs:
            self._without_inputs(grads)
        return tuple(grads[i] for i in self.outputs)

    def _without_inputs(self, grads: tuple[Any, ...]) -> None:
        warnings.warn(
            f"The full backward hooks of {type(self.module).__name__} are called with the gradients of its outputs "
            "alone, since none of its inputs requires a gradient.",
            stacklevel=6,
        )
        for hook in self.hooks:
            changed = hook(self.module, (None,) * self.input_count, grads)
            if changed is not None and not (isinstance(changed, tuple) and all(g is None for g in changed)):
                raise RuntimeError(
                    "A backward hook returned gradients of inputs none of which requires a gradient."
                )
        self.grad_output = None

    def _on_inputs(self, known: tuple[Any, ...]) -> tuple[Any, ...]:
        if self.grad_output is None:  # gradients that do not come from the outputs, as in a second backward
            return known
        grads = _spread(self.inputs, known, self.input_count)
        for hook in self.hooks:
            grads = _checked(hook(self.module, grads, self.grad_output), grads, "inputs", self.module)
        self.grad_output = None
        return tuple(grads[i] for i in self.inputs)


class _Identity:
    """Makes the autograd Function on first use: mica.autograd loads lazily."""

    _function: Any = None

    def apply(self, *tensors: Tensor) -> Any:
        if self._function is None:
            self._function = _make_identity()
        return self._function.apply(*tensors)


def _make_identity() -> Any:
    from mica.autograd.function import Function

    class BackwardHookFunction(Function):
        """The identity, a node for hooks."""

        @staticmethod
        def forward(ctx: Any, *tensors: Tensor) -> Any:
            ctx.mark_non_differentiable(*(t for t in tensors if not t.requires_grad))
            return tensors

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            return grads

    return BackwardHookFunction


_identity = _Identity()


def watch_node(module: Module, args: tuple[Any, ...], result: Any, hooks: list[Any]) -> None:
    """Calls hooks of the older kind at the node that made the first tensor of the result."""
    first = result
    while isinstance(first, (tuple, list, dict)) and first:
        first = next(iter(first.values())) if isinstance(first, dict) else first[0]
    node = first.grad_fn if isinstance(first, Tensor) else None
    if node is None:
        return
    for hook in hooks:
        node.register_hook(lambda inputs, outputs, hook=hook: hook(module, inputs, outputs))
    missing = _missing_at_node(node, args, result)
    if missing:
        warnings.warn(
            f"A backward hook of the older kind on {type(module).__name__} misses gradients, since {missing}; "
            "register_full_backward_hook() sees them all.",
            FutureWarning,
            stacklevel=4,
        )


def _missing_at_node(node: Any, args: tuple[Any, ...], result: Any) -> str:
    """Why the node's gradients are not those of the module, or nothing."""
    results = (result,) if isinstance(result, Tensor) else result
    if not isinstance(results, tuple) or len(_tensors(results)) != len(results):
        return "the module returns neither a Tensor nor a tuple of Tensors"
    if len(_tensors(args)) != len(args):
        return "the module takes other arguments than Tensors"
    made = {t.grad_fn for t in results if t.grad_fn is not None}
    if len(made) > 1:
        return "several nodes made the outputs"
    if node not in made:
        return "the outputs lie in nested containers"
    if {t.grad_fn for t in args if t.grad_fn is not None} != {edge[0] for edge in node.next_functions}:
        return "several nodes lie between inputs and outputs"
    return ""
