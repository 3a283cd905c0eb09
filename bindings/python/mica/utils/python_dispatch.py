"""Dispatch modes and what wrapper subclasses need: interception of operators.

A mode sees every operator that this thread runs while it is active, below Autograd: those
of a backward pass, and the parts of composites. Names of torch.utils._python_dispatch
stand beside Mica's own.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from mica import _C
from mica._C import Tensor
from mica.ops import OpOverload


class DispatchMode:
    """`with` makes it see the operators of this thread, through its method
    __mica_dispatch__(func, types, args=(), kwargs=None), which returns the result. It is off
    while its own method runs: func(*args, **kwargs) goes on to the next mode, then to
    subclasses and the backend. As a decorator it is active while the function runs."""

    def __mica_dispatch__(
        self,
        func: OpOverload,
        types: tuple[type, ...],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        raise NotImplementedError(
            f"The dispatch mode ({type(self).__name__}) defines no __mica_dispatch__(func, types, args, kwargs)."
        )

    def __enter__(self) -> Any:
        _C._push_dispatch_mode(self)
        return self

    def __exit__(self, *exc: object) -> None:
        _C._pop_dispatch_mode()

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        import functools

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return wrapper

    @classmethod
    def is_infra_mode(cls) -> bool:
        """False: Mica's own transforms are layers and frames, not modes."""
        return False


TorchDispatchMode = DispatchMode


def _get_current_dispatch_mode_stack() -> list[DispatchMode]:
    """The modes of this thread, innermost last."""
    return _C._dispatch_modes()


def _get_current_dispatch_mode() -> DispatchMode | None:
    """The innermost mode of this thread."""
    stack = _C._dispatch_modes()
    return stack[-1] if stack else None


def _len_torch_dispatch_stack() -> int:
    return len(_C._dispatch_modes())


def _push_mode(mode: DispatchMode) -> None:
    _C._push_dispatch_mode(mode)


def _pop_mode() -> DispatchMode:
    return _C._pop_dispatch_mode()


@contextlib.contextmanager
def _pop_mode_temporarily() -> Iterator[DispatchMode]:
    """The innermost mode is off inside the block."""
    mode = _C._pop_dispatch_mode()
    try:
        yield mode
    finally:
        _C._push_dispatch_mode(mode)


@contextlib.contextmanager
def _disable_current_modes() -> Iterator[list[DispatchMode]]:
    """All modes of this thread are off inside the block."""
    modes = [_C._pop_dispatch_mode() for _ in _C._dispatch_modes()]
    try:
        yield modes
    finally:
        for mode in reversed(modes):
            _C._push_dispatch_mode(mode)


@contextlib.contextmanager
def no_dispatch() -> Iterator[None]:
    """Neither modes nor subclasses see the operators inside the block."""
    before = _C._exclude("DispatchMode")
    _C._exclude("PythonSubclass")
    try:
        yield
    finally:
        _C._restore_exclude(before)


def is_traceable_wrapper_subclass_type(cls: type) -> bool:
    """Whether the class wraps tensors that __tensor_flatten__ tells."""
    return (
        isinstance(cls, type)
        and _C._has_dispatch(cls)
        and hasattr(cls, "__tensor_flatten__")
        and hasattr(cls, "__tensor_unflatten__")
    )


def is_traceable_wrapper_subclass(value: object) -> bool:
    """Whether the object wraps tensors that its __tensor_flatten__ tells."""
    return isinstance(value, Tensor) and is_traceable_wrapper_subclass_type(type(value))


def transform_subclass(t: Any, callback: Callable[[str, Tensor], Tensor]) -> Tensor:
    """The wrapper subclass `t` with each tensor in it replaced by callback(its name, it)."""
    names, context = t.__tensor_flatten__()
    inner = {name: callback(name, getattr(t, name)) for name in names}
    result: Tensor = type(t).__tensor_unflatten__(inner, context, t.shape, t.stride())
    if result.shape != t.shape:
        raise RuntimeError(
            f"The transformed ({type(t).__name__}) has the shape {tuple(result.shape)} where {tuple(t.shape)} is expected."
        )
    return result


def return_and_correct_aliasing(
    func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any
) -> Any:
    """What a wrapper subclass returns for `func`: where the schema says that a result is an
    argument that was written, that argument itself stands for it."""
    schema = func._schema
    results = list(out) if isinstance(out, (tuple, list)) else [out]
    if len(schema.returns) != len(results):  # one list of tensors
        return out
    for i, declared in enumerate(schema.returns):
        if declared.alias_info is None or not declared.alias_info.is_write:
            continue
        number = declared.alias_info.argument
        name = schema.arguments[number].name
        results[i] = args[number] if number < len(args) else kwargs[name]
    if isinstance(out, (tuple, list)):
        return type(out)(results)
    return results[0]


__all__ = [
    "DispatchMode",
    "TorchDispatchMode",
    "is_traceable_wrapper_subclass",
    "is_traceable_wrapper_subclass_type",
    "no_dispatch",
    "return_and_correct_aliasing",
    "transform_subclass",
]
