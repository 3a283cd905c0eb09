"""Function: operators with a forward and a backward written in Python."""

from __future__ import annotations

import copy
import functools
import warnings
from collections.abc import Callable
from typing import Any

import mica
from mica import _C
from mica._C import Tensor

# What a context has of its node, once that is there.
_OF_NODE = ("metadata", "name", "next_functions", "register_hook", "register_prehook", "_sequence_nr")


class FunctionCtx:
    """What forward hands over to backward. The node of the graph (grad_fn) shows what it has."""

    needs_input_grad: tuple[bool, ...]

    def __init__(self, function: type[Function] | None = None, num_inputs: int = 0) -> None:
        self.needs_input_grad = ()
        self._function = function
        self._num_inputs = num_inputs
        self._to_save: tuple[Any, ...] = ()
        self._for_forward: tuple[Any, ...] | None = None
        self._keeper: Any = None  # of the node
        self._saved: Any = None  # the same, when it keeps the tensors of save_for_backward
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
        return self._to_save if self._saved is None else tuple(_C._unpack_for_backward(self._saved))

    @property
    def saved_variables(self) -> tuple[Any, ...]:
        """The old name of saved_tensors."""
        warnings.warn(
            "'saved_variables' is deprecated; use 'saved_tensors'.", DeprecationWarning, stacklevel=2
        )
        return self.saved_tensors

    def __getattr__(self, name: str) -> Any:
        saved = self.__dict__.get("_saved") if name in _OF_NODE else None
        node = None if saved is None else _C._node_of(saved)
        if node is None:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        return getattr(node, name)

    def _backward(self, *grads: Any) -> tuple[Any, ...]:
        function = self._function
        assert function is not None
        result = _formula(function)(self, *grads)
        values = result if isinstance(result, tuple) else (result,)
        given, expected = len(values), self._num_inputs
        if given < expected or any(v is not None for v in values[expected:]):
            raise RuntimeError(
                f"{function.__name__}.backward() returned {given} gradients; forward() takes {expected} inputs."
            )
        return values[:expected]


_NO_BACKWARD = "You must implement either the backward or vjp method for your custom autograd.Function to be differentiated."


class Function:
    """The base of custom functions. Define static forward(ctx, ...) and
    backward(ctx, *grads), and call them through apply()."""

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd "
            f"function with static forward method: {type(self).__name__}.apply(...)."
        )

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        raise NotImplementedError("setup_context() is not defined.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        raise NotImplementedError(_NO_BACKWARD)

    # Another name of backward.
    @staticmethod
    def vjp(ctx: Any, *grad_outputs: Any) -> Any:
        raise NotImplementedError(_NO_BACKWARD)

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
    if cls.setup_context is not Function.setup_context:
        args = _with_defaults(cls.forward, args)
    ctx, node, inputs = _context(cls, args)
    with mica.no_grad():
        if cls.setup_context is not Function.setup_context:
            output = cls.forward(*args)
            cls.setup_context(ctx, args, output)
        else:
            output = cls.forward(ctx, *args)
    return ctx, _finish(cls, ctx, node, inputs, output)


def _with_defaults(forward: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments of forward(), with those left out that it has defaults for, as setup_context() gets them."""
    code = getattr(forward, "__code__", None)
    if code is not None and len(args) >= code.co_argcount:
        return args
    import inspect

    bound = inspect.signature(forward).bind(*args)
    bound.apply_defaults()
    return bound.args


def _context(cls: type[Function], args: tuple[Any, ...]) -> tuple[FunctionCtx, Any, list[Any]]:
    """The context of a call, its node (None where nothing is recorded) and its tensors."""
    ctx = FunctionCtx(cls, len(args))
    inputs = [a if isinstance(a, Tensor) else None for a in args]
    ctx.needs_input_grad = tuple(t is not None and t.requires_grad for t in inputs)
    if not (_C.is_grad_enabled() and any(ctx.needs_input_grad)):
        return ctx, None, inputs
    node, ctx._keeper = _C._make_custom_node(cls.__name__ + "Backward", ctx, inputs)
    return ctx, node, inputs


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
        to_save = [originals.get(id(t), t) for t in ctx._to_save]
        _C._save_for_backward(ctx._keeper, to_save, tuple(id(t) in is_output for t in to_save))
        ctx._saved, ctx._to_save = ctx._keeper, ()
    results = tuple(o if t is None else made for o, t, made in zip(outputs, tensors, with_history))
    return results if isinstance(output, tuple) else results[0]


def _formula(cls: type[Function]) -> Callable[..., Any]:
    """backward(), by the one of its two names that the class defines."""
    if cls.vjp is Function.vjp:
        return cls.backward
    if cls.backward is not Function.backward:
        raise RuntimeError(
            f"Implementing both 'backward' and 'vjp' for a custom Function, as {cls.__name__} does, is not allowed: they "
            "are two names of one method."
        )
    return cls.vjp


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator for backward(): its result cannot be differentiated again."""

    @functools.wraps(backward)
    def wrapper(ctx: Any, *grads: Any) -> Any:
        with mica.no_grad():
            found = backward(ctx, *grads)
        if not (_C.is_grad_enabled() and any(isinstance(g, Tensor) and g.requires_grad for g in grads)):
            return found
        given = found if isinstance(found, tuple) else (found,)
        return _Once.apply(*(g.detach().requires_grad_() if isinstance(g, Tensor) else g for g in given))

    return wrapper


class InplaceFunction(Function):
    """torch's old base of functions that write an input; mark_dirty() is what says so."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


class _Once(Function):
    """Gradients as they are, whose own gradient is refused."""

    @staticmethod
    def forward(ctx: Any, *gradients: Any) -> Any:
        return tuple(g.view_as(g) if isinstance(g, Tensor) else g for g in gradients)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise RuntimeError(
            "trying to differentiate twice a function that was marked with @once_differentiable: its "
            "backward() is not recorded."
        )
