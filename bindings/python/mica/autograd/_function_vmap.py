"""Custom functions under vmap: their own static vmap(info, in_dims, *args), or one that is made of
forward, setup_context and backward, each mapped over, where `generate_vmap_rule` is True."""

from __future__ import annotations

from typing import Any

from mica import _C
from mica._C import Tensor
from mica._runtime.layer_rules import info_of_vmap, opened, wrapped
from mica.autograd import function as functions


def apply(cls: Any, args: tuple[Any, ...]) -> Any:
    """cls.apply(*args) in the current frame, which is a vmap."""
    own = cls.vmap is not functions.Function.vmap
    if own == cls.generate_vmap_rule:
        raise RuntimeError(
            f"{cls.__name__} is used under vmap and has "
            + ("both a static vmap() and generate_vmap_rule=True" if own else "no rule for it")
            + "; define one of them: static vmap(info, in_dims, *args), which returns (output, out_dims), or "
            "generate_vmap_rule=True."
        )
    values, in_dims = opened(args)
    info = info_of_vmap()
    left = _C._frame_leave()
    try:
        found = cls.vmap(info, in_dims, *values) if own else _generated(cls, info, in_dims, values)
    finally:
        _C._frame_return(left)
    return wrapped(cls.__name__, found, info.batch_size)


class _Inside:
    """One example of `values`, in a vmap that is left at the end."""

    def __init__(self, info: Any) -> None:
        self.info = info

    def __enter__(self) -> _Inside:
        randomness = ("error", "same", "different").index(self.info.randomness)
        self.frame = _C._vmap_enter(self.info.batch_size, randomness)
        return self

    def __exit__(self, *_: Any) -> None:
        _C._vmap_exit(self.frame)

    def example(self, value: Any, dim: int | None) -> Any:
        return value if dim is None or not isinstance(value, Tensor) else _C._vmap_batch(value, dim)


def _generated(cls: Any, info: Any, in_dims: tuple[Any, ...], values: tuple[Any, ...]) -> Any:
    """(output, out_dims) of a function that maps over each part of `cls`."""
    out_dims: Any = None

    def mapped_forward(*args: Any) -> Any:
        nonlocal out_dims
        with _Inside(info) as inside:
            output = cls.forward(*map(inside.example, args, in_dims))
            found, out_dims = opened(output)
        return found

    def mapped_setup(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        with _Inside(info) as inside:
            ctx.inner = functions.FunctionCtx()
            ctx.inner.needs_input_grad = ctx.needs_input_grad
            several = isinstance(output, tuple)
            outputs = tuple(
                inside.example(o, d)
                for o, d in zip(output if several else (output,), out_dims if several else (out_dims,))
            )
            examples = tuple(map(inside.example, inputs, in_dims))
            cls.setup_context(ctx.inner, examples, outputs if several else outputs[0])
            pairs = [opened(t) for t in ctx.inner._to_save]
        ctx.saved_dims = [d for _, d in pairs]
        ctx.inner._to_save = ()
        ctx.save_for_backward(*(t for t, _ in pairs))

    def mapped_backward(ctx: Any, *grads: Any) -> Any:
        saved = ctx.saved_tensors
        dims = out_dims if isinstance(out_dims, tuple) else (out_dims,)
        with _Inside(info) as inside:
            inner = functions.FunctionCtx()
            inner.__dict__.update(ctx.inner.__dict__)
            inner._to_save = tuple(map(inside.example, saved, ctx.saved_dims))
            found = cls.backward(inner, *map(inside.example, grads, dims))
            pairs = [opened(g) for g in (found if isinstance(found, tuple) else (found,))]
        return tuple(_gradient(g, d, i, x) for (g, d), i, x in zip(pairs, in_dims, values))

    functions_of = {
        "forward": staticmethod(mapped_forward),
        "setup_context": staticmethod(mapped_setup),
        "backward": staticmethod(mapped_backward),
        "generate_vmap_rule": True,
    }
    batched = type(cls.__name__, (functions.Function,), functions_of)
    return batched.apply(*values), out_dims


def _gradient(grad: Any, dim: int | None, in_dim: int | None, value: Any) -> Any:
    """The gradient of all examples' input; of one that they share, the sum."""
    if not isinstance(grad, Tensor):
        return None
    if in_dim is None:
        return grad.sum(0) if dim is not None else grad
    return grad if dim is not None else grad.expand(value.shape)
