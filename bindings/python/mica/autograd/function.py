"""Function: operators with a forward and a backward written in Python."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any

import mica
from mica import _C
from mica._C import Tensor


class FunctionCtx:
    """What forward hands over to backward."""

    needs_input_grad: tuple[bool, ...]

    def __init__(self) -> None:
        self.needs_input_grad = ()
        self._to_save: tuple[Any, ...] = ()
        self._for_forward: tuple[Any, ...] | None = None
        self._saved: tuple[Any, ...] | None = None
        self._dirty: tuple[Tensor, ...] = ()
        self._non_differentiable: tuple[Tensor, ...] = ()
        self._materialize = True

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keeps tensors for backward; writing one in place before it is an error."""
        self._to_save = tensors

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Keeps tensors for jvp, which finds them as ctx.saved_tensors."""
        self._for_forward = tensors

    def _in_jvp(self) -> FunctionCtx:
        """The context as jvp sees it: saved_tensors are those of save_for_forward, where that was called."""
        ctx = copy.copy(self)
        if self._for_forward is not None:
            ctx._saved, ctx._to_save = None, self._for_forward
        return ctx

    def mark_dirty(self, *args: Tensor) -> None:
        """Says which inputs forward wrote in place."""
        self._dirty = args

    def mark_non_differentiable(self, *args: Tensor) -> None:
        """Says which outputs have no gradient."""
        self._non_differentiable = args

    def set_materialize_grads(self, value: bool) -> None:
        """With False, backward gets None where no gradient flows, instead of zeros."""
        self._materialize = value

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The tensors of save_for_backward."""
        if self._saved is None:
            return self._to_save
        return tuple(None if box is None else _C._unpack_saved(box) for box in self._saved)

    saved_variables = saved_tensors


class Function:
    """The base of custom functions. Define static forward(ctx, ...) and
    backward(ctx, *grads), and call them through apply()."""

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("A custom function defines forward().")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        raise NotImplementedError("setup_context() is not defined.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        raise NotImplementedError("A custom function defines backward() to be differentiated.")

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        raise NotImplementedError("jvp() is not defined.")

    # With True, forward, setup_context and backward, mapped over, are the rule under vmap.
    generate_vmap_rule = False

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *args: Any) -> Any:
        raise NotImplementedError("vmap() is not defined.")

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Runs forward and records a node that runs backward."""
        if kwargs:
            raise TypeError(
                f"{cls.__name__}.apply() takes no keyword arguments; it was given {', '.join(kwargs)}."
            )
        kind = _C._frame_kind()
        if kind == "trace":  # has an Autograd of its own, and records what forward and backward call
            args = tuple(_C._trace_inside(a) if isinstance(a, Tensor) else a for a in args)
        elif kind is not None:
            from mica.autograd import _function_frames

            return _function_frames.apply(cls, args)
        return _apply(cls, args)[1]


def _apply(cls: type[Function], args: tuple[Any, ...]) -> tuple[FunctionCtx, Any]:
    """The context and the output of a call outside of transforms."""
    ctx, node, inputs = _context(cls, args)
    with mica.no_grad():
        if cls.setup_context is not Function.setup_context:
            output = cls.forward(*args)
            cls.setup_context(ctx, args, output)
        else:
            output = cls.forward(ctx, *args)
    return ctx, _finish(cls, ctx, node, inputs, output)


def _context(cls: type[Function], args: tuple[Any, ...]) -> tuple[FunctionCtx, Any, list[Any]]:
    """The context of a call, its node (None where nothing is recorded) and its tensors."""
    ctx = FunctionCtx()
    inputs = [a if isinstance(a, Tensor) else None for a in args]
    ctx.needs_input_grad = tuple(t is not None and t.requires_grad for t in inputs)
    if not (_C.is_grad_enabled() and any(ctx.needs_input_grad)):
        return ctx, None, inputs
    backward = functools.partial(_run_backward, cls, ctx, len(args))
    return ctx, _C._make_custom_node(cls.__name__ + "Backward", backward, inputs), inputs


def _finish(cls: type[Function], ctx: FunctionCtx, node: Any, inputs: list[Any], output: Any) -> Any:
    outputs = output if isinstance(output, tuple) else (output,)
    tensors = [o if isinstance(o, Tensor) else None for o in outputs]
    if not any(t is not None for t in tensors):
        if node is None:
            return output
        raise TypeError(f"{cls.__name__}.forward() must return a Tensor or a tuple with Tensors in it.")
    with_history = _C._finish_custom(
        node, inputs, tensors, list(ctx._dirty), list(ctx._non_differentiable), ctx._materialize
    )
    if node is not None:
        originals = {id(t): made for t, made in zip(tensors, with_history) if t is not None}
        is_output = {id(t) for t in with_history if t is not None}
        saved = []
        for t in ctx._to_save:
            t = originals.get(id(t), t)
            saved.append(None if t is None else _C._save_tensor(t, node, id(t) in is_output))
        ctx._saved = tuple(saved)
        ctx._to_save = ()
    results = tuple(o if t is None else made for o, t, made in zip(outputs, tensors, with_history))
    return results if isinstance(output, tuple) else results[0]


def _run_backward(cls: type[Function], ctx: FunctionCtx, num_inputs: int, *grads: Any) -> Any:
    result = cls.backward(ctx, *grads)
    values = result if isinstance(result, tuple) else (result,)
    if len(values) > num_inputs and any(v is not None for v in values[num_inputs:]):
        raise RuntimeError(
            f"{cls.__name__}.backward() returned {len(values)} gradients; forward() takes {num_inputs} inputs."
        )
    if len(values) < num_inputs:
        raise RuntimeError(
            f"{cls.__name__}.backward() returned {len(values)} gradients; forward() takes {num_inputs} inputs."
        )
    return tuple(values[:num_inputs])


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator for backward(): its result cannot be differentiated again."""

    @functools.wraps(backward)
    def wrapper(ctx: Any, *grads: Any) -> Any:
        with mica.no_grad():
            return backward(ctx, *grads)

    return wrapper
