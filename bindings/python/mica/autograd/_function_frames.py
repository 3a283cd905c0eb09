"""Custom functions inside transforms: one level at a time.

At each level the function is applied to the values in the parent frame first, and so runs
forward() once, at the bottom; then the level gives what came back its own history (grad) or
tangent (jvp)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from mica import _C
from mica._C import Tensor
from mica.autograd import _function_vmap, forward_ad, function as functions


@contextmanager
def _parent() -> Iterator[None]:
    left = _C._frame_leave()
    try:
        yield
    finally:
        _C._frame_return(left)


def apply(cls: Any, args: tuple[Any, ...]) -> Any:
    """cls.apply(*args) in the current frame."""
    kind = _C._frame_kind()
    if kind == "functionalize":
        return _in_functionalize(cls, args)
    takes_ctx = cls.setup_context is functions.Function.setup_context
    if (
        takes_ctx
        and kind == "jvp"
        and cls.jvp is functions.Function.jvp
        and any(_C._frame_owns(a) for a in args)
    ):
        raise RuntimeError(
            f"{cls.__name__} has no tangent: You must implement the jvp function for custom autograd.Function to use it "
            "with forward mode AD, or a forward(*args) without ctx and a static setup_context(ctx, inputs, output)."
        )
    if takes_ctx and not (kind == "jvp" and _is_outermost()):
        raise RuntimeError(
            f"{cls.__name__} is used inside a transform ({kind}), where forward() must not take ctx: define "
            "forward(*args) and a static setup_context(ctx, inputs, output)."
        )
    if not any(_C._frame_owns(a) for a in args):
        with _parent():
            return cls.apply(*args)
    if takes_ctx and cls.jvp is not functions.Function.jvp:
        return _in_jvp_with_ctx(cls, args)
    rule = {"grad": _in_grad, "jvp": _in_jvp, "vmap": _function_vmap.apply}.get(str(kind))
    if rule is None:
        raise NotImplementedError(
            f"{cls.__name__} has no rule for the transform ({kind}); write its forward() with operators of mica "
            "and call that instead."
        )
    return rule(cls, args)


def _is_outermost() -> bool:
    """Whether the values in the parent frame are in no transform."""
    with _parent():
        return _C._frame_kind() is None


def _map_output(function: Callable[[Any], Any], output: Any) -> Any:
    return tuple(function(o) for o in output) if isinstance(output, tuple) else function(output)


def _in_functionalize(cls: Any, args: tuple[Any, ...]) -> Any:
    """As one operator, whose parts are not looked into."""
    values = [_C._frame_value(a) for a in args]
    versions = [v._version for v in values if isinstance(v, Tensor) and not v.is_inference()]
    with _parent():
        output = cls.apply(*values)
    if versions != [v._version for v in values if isinstance(v, Tensor) and not v.is_inference()]:
        raise NotImplementedError(
            f"{cls.__name__} writes its inputs in place, which functionalize does not look into; let forward() "
            "return a new tensor."
        )

    def own(o: Any) -> Any:
        same = (a for a, v in zip(args, values) if o is v)
        return next(same, _C._frame_constant(o)) if isinstance(o, Tensor) else o

    return _map_output(own, output)


def _in_grad(cls: Any, args: tuple[Any, ...]) -> Any:
    values = [_C._frame_value(a) for a in args]
    with _parent():
        output = cls.apply(*values)
    wrapped = _map_output(lambda o: _C._frame_constant(o) if isinstance(o, Tensor) else o, output)
    # What requires grad at an outer level alone is a constant at this one.
    own = tuple(None if isinstance(a, Tensor) and not _C._frame_owns(a) else a for a in args)
    ctx, node, inputs = functions._context(cls, own)
    with functions.mica.no_grad():
        cls.setup_context(ctx, args, wrapped)
    _refuse_writes(cls, ctx)
    return functions._finish(cls, ctx, node, inputs, wrapped)


def _refuse_writes(cls: Any, ctx: Any) -> None:
    if ctx._dirty:
        raise NotImplementedError(
            f"{cls.__name__} writes its inputs in place, which has no rule inside a transform; let forward() return "
            "a new tensor."
        )


def _in_jvp(cls: Any, args: tuple[Any, ...]) -> Any:
    in_dual_level = forward_ad.in_dual_level() and _is_outermost()
    values = [_C._frame_value(a) for a in args]
    tangents = [_C._frame_value(_C._frame_tangent(a)) for a in args]
    with _parent():
        if cls.jvp is not functions.Function.jvp:
            output = cls.apply(*values)
            ctx = functions.FunctionCtx()
            cls.setup_context(ctx, tuple(values), output)
            _refuse_writes(cls, ctx)
            found = _call_jvp(cls, ctx, values, tangents, output, in_dual_level)
        else:
            output, found = _by_linearizing(cls, values, tangents)
    return _duals(output, found)


def _in_jvp_with_ctx(cls: Any, args: tuple[Any, ...]) -> Any:
    """Of a function whose forward() takes ctx: it runs once, for the value and for jvp()."""
    in_dual_level = forward_ad.in_dual_level() and _is_outermost()
    values = tuple(_C._frame_value(a) for a in args)
    tangents = [_C._frame_value(_C._frame_tangent(a)) for a in args]
    with _parent():
        ctx, output = functions._apply(cls, values)
        _refuse_writes(cls, ctx)
        found = _call_jvp(cls, ctx, values, tangents, output, in_dual_level)
    return _duals(output, found)


def _call_jvp(cls: Any, ctx: Any, values: Any, tangents: list[Any], output: Any, in_dual_level: bool) -> Any:
    """jvp(), where a tensor without tangent has zeros unless set_materialize_grads(False) was called."""
    given = tangents
    if ctx._materialize:
        tangents = [_zeros_of(v) if t is None else t for v, t in zip(values, tangents)]
    found = cls.jvp(ctx._in_jvp(), *tangents)
    outputs = output if isinstance(output, tuple) else (output,)
    for number, (o, t) in enumerate(zip(outputs, found if isinstance(found, tuple) else (found,))):
        if t is not None and any(o is x for x in ctx._non_differentiable):
            raise RuntimeError(
                f"The jvp() of {cls.__name__} gives a tangent for output ({number}), which is marked as not "
                "differentiable. You should return None at that position instead."
            )
        if in_dual_level:
            _check_shares(cls, number, o, t, zip(values, given))
    return found


def _check_shares(cls: Any, number: int, output: Any, found: Any, inputs: Iterable[tuple[Any, Any]]) -> None:
    """Refuses a tangent of its own for an output that shares an input's memory: a write to the output would
    change the input and leave the input's tangent as it was."""
    if not isinstance(output, Tensor) or not isinstance(found, Tensor):
        return
    for place, (value, tangent) in enumerate(inputs):
        if tangent is None or not (output is value or output._is_view() and _share(output, value)):
            continue
        if not found._is_view():
            fault = (
                "A custom Function's forward is returning a view (or an input as-is) but the jvp is not "
                "returning a view"
            )
        elif not _share(found, tangent):
            fault = (
                "A custom Function is returning a view but the jvp is not returning a view of the given "
                "grad input"
            )
        else:
            continue
        raise RuntimeError(
            f"{fault}: output ({number}) of {cls.__name__} shares the memory of input ({place}), so its tangent "
            "must share that of the input's tangent. Return the same view of it, such as tangent.view_as(tangent), "
            "or let forward() return a clone."
        )


def _share(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors lie in the same memory; not where they have none, as on the meta device."""
    return 0 != a._storage_ptr() == b._storage_ptr()  # type: ignore[attr-defined]


def _zeros_of(value: Any) -> Any:
    if not isinstance(value, Tensor) or not (value.is_floating_point() or value.is_complex()):
        return None
    return functions.mica.zeros_like(value)


def _duals(output: Any, found: Any) -> Any:
    found = found if isinstance(found, tuple) else (found,)
    outputs = output if isinstance(output, tuple) else (output,)
    duals = tuple(_C._frame_dual(o, t) if isinstance(o, Tensor) else o for o, t in zip(outputs, found))
    return duals if isinstance(output, tuple) else duals[0]


def _by_linearizing(cls: Any, values: list[Any], tangents: list[Any]) -> tuple[Any, Any]:
    """Of a function without jvp(): by its backward, as operators without a forward rule."""
    from mica.func import linearize

    moving = [i for i, t in enumerate(tangents) if t is not None]
    if not moving:
        output = cls.apply(*values)
        return output, _map_output(lambda _: None, output)

    def of_moving(*some: Any) -> Any:
        given = list(values)
        for i, v in zip(moving, some):
            given[i] = v
        return cls.apply(*given)

    output, push = linearize(of_moving, *(values[i] for i in moving))
    return output, push(*(tangents[i] for i in moving))
