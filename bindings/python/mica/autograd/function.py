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
    """What the methods of a custom `autograd.Function` hand over to each other, their argument `ctx`.

    As `torch.autograd.function.FunctionCtx`. Attributes may be set freely, numbers or shapes for
    instance; Tensors go through `save_for_backward`. `apply()` makes it, nobody else.

    Args:
        function (type, optional): The Function.
        num_inputs (int): How many arguments `apply()` was given. Default: 0.

    Attributes:
        needs_input_grad (tuple of bool): Whether each argument of `forward` needs a gradient.

    Example:
        >>> class Scale(mica.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x, factor):
        ...         ctx.factor = factor
        ...         return x * factor
        ...     @staticmethod
        ...     def backward(ctx, grad):
        ...         print(ctx.needs_input_grad)
        ...         return grad * ctx.factor, None
        >>> Scale.apply(mica.ones(1, requires_grad=True), 3.0).backward()
        (True, False)
    """

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
        """Keeps inputs, outputs or other Tensors for `backward`, which finds them as `ctx.saved_tensors`.

        Writing one of them in place before `backward` makes it raise RuntimeError. Call it once.

        Args:
            *tensors (Tensor or None): The Tensors, in the order in which they will be found. Anything else raises
                TypeError where the call is recorded.
        """
        self._to_save = tensors

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Keeps Tensors for `jvp`, which finds them as `ctx.saved_tensors`.

        Args:
            *tensors (Tensor or None): The Tensors, in the order in which they will be found.
        """
        self._for_forward = tensors

    def _in_jvp(self) -> FunctionCtx:
        """The context as jvp sees it: saved_tensors are those of save_for_forward, where that was called."""
        ctx = copy.copy(self)
        if self._for_forward is not None:
            ctx._saved, ctx._to_save = None, self._for_forward
        return ctx

    def mark_dirty(self, *args: Tensor) -> None:
        """Marks the inputs that `forward` wrote in place; they must be among its outputs.

        Args:
            *args (Tensor): The inputs.
        """
        self._dirty = args

    def mark_non_differentiable(self, *args: Tensor) -> None:
        """Marks outputs that have no gradient, such as indices.

        Args:
            *args (Tensor): The outputs.
        """
        self._non_differentiable = args

    def set_materialize_grads(self, value: bool) -> None:
        """Sets what `backward` gets for an output through which no gradient flows.

        Args:
            value (bool): True for zeros, as at first; False for None.
        """
        self._materialize = value

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The Tensors of `save_for_backward`, as a tuple."""
        return self._to_save if self._saved is None else tuple(_C._unpack_for_backward(self._saved))

    @property
    def saved_variables(self) -> tuple[Any, ...]:
        """The old name of `saved_tensors`; warns."""
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
    """Base of operators with a gradient of their own: define `forward` and `backward`, call `apply`.

    As `torch.autograd.Function`. All methods are static and nothing is instantiated. Besides the two
    there are `setup_context(ctx, inputs, output)`, which takes `ctx` out of `forward` and is needed in
    the transforms of `mica.func`; `jvp` for forward mode; and, for `vmap`, a static method `vmap` or
    `generate_vmap_rule = True`.

    Attributes:
        generate_vmap_rule (bool): With True, `vmap` maps over `forward`, `setup_context` and
            `backward`. Default: False.

    Example:
        >>> class Exp(mica.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         y = x.exp()
        ...         ctx.save_for_backward(y)
        ...         return y
        ...     @staticmethod
        ...     def backward(ctx, grad):
        ...         (y,) = ctx.saved_tensors
        ...         return grad * y
        >>> x = mica.zeros(2, requires_grad=True)
        >>> Exp.apply(x).sum().backward()
        >>> x.grad
        tensor([1., 1.])
    """

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Computes the result; a subclass defines it as `forward(ctx, *args)`, or without `ctx`.

        It runs under `no_grad`. Without `ctx`, `setup_context` saves what `backward` needs.

        Args:
            *args: The context, and what `apply` was given.
            **kwargs: None; `apply` refuses keyword arguments.

        Returns:
            Tensor or tuple: The output, with a Tensor in it.
        """
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd "
            f"function with static forward method: {type(self).__name__}.apply(...)."
        )

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Saves for `backward` what it needs, where `forward` takes no `ctx`.

        Args:
            ctx (FunctionCtx): Where to save.
            inputs (tuple): The arguments of `forward`.
            output (Tensor or tuple): What it returned.
        """
        raise NotImplementedError("setup_context() is not defined.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Computes the gradients of the arguments from those of the outputs.

        Args:
            ctx (FunctionCtx): What `forward` or `setup_context` saved.
            *grad_outputs (Tensor or None): Gradient of each output.

        Returns:
            Tensor, None or tuple: For each argument of `forward` its gradient, None where it has none.
        """
        raise NotImplementedError(_NO_BACKWARD)

    # Another name of backward.
    @staticmethod
    def vjp(ctx: Any, *grad_outputs: Any) -> Any:
        """Another name of `backward`; a class defines one of them.

        Args:
            ctx (FunctionCtx): What `forward` or `setup_context` saved.
            *grad_outputs (Tensor or None): Gradient of each output.

        Returns:
            Tensor, None or tuple: As `backward`.
        """
        raise NotImplementedError(_NO_BACKWARD)

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        """Computes the derivatives of the outputs along a direction, for forward mode.

        Args:
            ctx (FunctionCtx): What `save_for_forward` saved.
            *tangents (Tensor or None): For each argument its direction, None where it has none.

        Returns:
            Tensor, None or tuple: For each output its derivative.
        """
        raise NotImplementedError("jvp() is not defined.")

    # With True, forward, setup_context and backward, mapped over, are the rule under vmap.
    generate_vmap_rule = False

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *args: Any) -> Any:
        """Computes the function for a whole batch, for `mica.func.vmap`.

        Args:
            info (object): With attributes `batch_size` (int) and `randomness` (str).
            in_dims (tuple): For each argument the dimension of the batch, None where it has none.
            *args: The arguments, Tensors with their batch.

        Returns:
            tuple: `(output, out_dims)`, with the dimension of the batch of each output.
        """
        raise NotImplementedError("vmap() is not defined.")

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Runs `forward` and records a node of the graph that runs `backward`.

        Args:
            *args: Arguments of `forward`, without `ctx`.
            **kwargs: None are taken.

        Returns:
            What `forward` returned.

        Raises:
            TypeError: A keyword argument is given, or `forward` returned no Tensor.
        """
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


def _check_saved(values: tuple[Any, ...]) -> None:
    """Before the outputs get a history, which a refusal would leave behind."""
    for place, value in enumerate(values):
        if value is None:
            continue
        if not isinstance(value, Tensor):
            raise TypeError(
                f"save_for_backward can only save variables, but argument {place} is of type "
                f"{type(value).__name__}; keep what is no Tensor as an attribute of ctx."
            )
        if value.is_inference():
            raise RuntimeError(
                f"Inference tensors cannot be saved for backward, and argument {place} of save_for_backward is one. "
                "Clone the tensor outside inference mode to get a normal tensor, or use no_grad instead of "
                "inference mode."
            )


def _finish(cls: type[Function], ctx: FunctionCtx, node: Any, inputs: list[Any], output: Any) -> Any:
    outputs = output if isinstance(output, tuple) else (output,)
    tensors = [o if isinstance(o, Tensor) else None for o in outputs]
    if not any(t is not None for t in tensors):
        if node is None:
            return output
        raise TypeError(f"{cls.__name__}.forward() must return a Tensor or a tuple with Tensors in it.")
    if node is not None:
        _check_saved(ctx._to_save)
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
    """Decorates a `backward` whose result cannot be differentiated again; trying to raises RuntimeError.

    As `torch.autograd.function.once_differentiable`; for formulas that autograd cannot follow.

    Args:
        backward (callable): The static method.

    Returns:
        callable: The method, run under `no_grad`.

    Example:
        >>> class Double(mica.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         return 2 * x
        ...     @staticmethod
        ...     @mica.autograd.function.once_differentiable
        ...     def backward(ctx, grad):
        ...         return 2 * grad
        >>> x = mica.ones(2, requires_grad=True)
        >>> Double.apply(x).sum().backward()
        >>> x.grad
        tensor([2., 2.])
    """

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
    """The old base of functions that write an input in place; new ones derive from `Function`.

    As `torch.autograd.function.InplaceFunction`. `ctx.mark_dirty` says which input is written.

    Args:
        inplace (bool): Kept as the attribute `inplace`. Default: False.

    Example:
        >>> class AddOne(mica.autograd.function.InplaceFunction):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         ctx.mark_dirty(x)
        ...         return x.add_(1)
        ...     @staticmethod
        ...     def backward(ctx, grad):
        ...         return grad
        >>> AddOne.apply(mica.zeros(2, requires_grad=True) * 1)
        tensor([1., 1.], grad_fn=<AddOneBackward>)
    """

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
