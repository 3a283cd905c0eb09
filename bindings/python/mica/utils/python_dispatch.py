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
    """Sees every operator that this thread runs inside a `with` block, below Autograd.

    As `torch.utils._python_dispatch.TorchDispatchMode`, whose name it has too. Operators of backward
    passes and the parts of composites are seen. A subclass defines
    `__mica_dispatch__(func, types, args=(), kwargs=None)`, which returns the operator's result. The
    mode is off while that runs, so `func(*args, **kwargs)` goes on. It is also a decorator.

    Example:
        >>> class Names(mica.utils.python_dispatch.DispatchMode):
        ...     def __mica_dispatch__(self, func, types, args=(), kwargs=None):
        ...         print(func)
        ...         return func(*args, **(kwargs or {}))
        >>> x = mica.ones(2)
        >>> with Names():
        ...     y = x.exp() + 1
        mica.exp.default
        mica.add.Scalar
    """

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
        """Returns False: Mica's own transforms are no modes."""
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
    """Keeps dispatch modes and Tensor subclasses from seeing operators inside a `with` block.

    As `torch.utils._mode_utils.no_dispatch`.

    Yields:
        None

    Example:
        >>> class Names(mica.utils.python_dispatch.DispatchMode):
        ...     def __mica_dispatch__(self, func, types, args=(), kwargs=None):
        ...         print(func)
        ...         return func(*args, **(kwargs or {}))
        >>> x = mica.ones(2)
        >>> with Names():
        ...     y = x + 1
        ...     with mica.utils.python_dispatch.no_dispatch():
        ...         z = x * 2
        mica.add.Scalar
    """
    before = _C._exclude("DispatchMode")
    _C._exclude("PythonSubclass")
    try:
        yield
    finally:
        _C._restore_exclude(before)


def is_traceable_wrapper_subclass_type(cls: type) -> bool:
    """Returns whether a class wraps Tensors and can be taken apart and put together again.

    As `torch.utils._python_dispatch.is_traceable_wrapper_subclass_type`.

    Args:
        cls (type): The class.

    Returns:
        bool: True where it defines `__tensor_flatten__`, `__tensor_unflatten__` and
        `__mica_dispatch__`.

    Example:
        >>> mica.utils.python_dispatch.is_traceable_wrapper_subclass_type(mica.Tensor)
        False
    """
    return (
        isinstance(cls, type)
        and _C._has_dispatch(cls)
        and hasattr(cls, "__tensor_flatten__")
        and hasattr(cls, "__tensor_unflatten__")
    )


def is_traceable_wrapper_subclass(value: object) -> bool:
    """Returns whether an object wraps Tensors and can be taken apart by `__tensor_flatten__`.

    As `torch.utils._python_dispatch.is_traceable_wrapper_subclass`.

    Args:
        value (object): The object.

    Returns:
        bool: True for instances of such a class.

    Example:
        >>> mica.utils.python_dispatch.is_traceable_wrapper_subclass(mica.ones(2))
        False
    """
    return isinstance(value, Tensor) and is_traceable_wrapper_subclass_type(type(value))


def transform_subclass(t: Any, callback: Callable[[str, Tensor], Tensor]) -> Tensor:
    """Makes a wrapper subclass anew with each of its inner Tensors replaced.

    As `torch.utils._python_dispatch.transform_subclass`.

    Args:
        t (Tensor): A Tensor of a class with `__tensor_flatten__`.
        callback (callable): `callback(name, tensor)` returns what replaces an inner Tensor.

    Returns:
        Tensor: Of the same class and shape.

    Raises:
        RuntimeError: The result has another shape.

    Example:
        >>> class Wrapped(mica.Tensor):
        ...     @staticmethod
        ...     def __new__(cls, inner):
        ...         made = mica.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)
        ...         made.inner = inner
        ...         return made
        ...     def __tensor_flatten__(self):
        ...         return ["inner"], None
        ...     @staticmethod
        ...     def __tensor_unflatten__(inner, context, shape, stride):
        ...         return Wrapped(inner["inner"])
        ...     @classmethod
        ...     def __mica_dispatch__(cls, func, types, args=(), kwargs=None):
        ...         raise NotImplementedError
        >>> x = Wrapped(mica.ones(2))
        >>> mica.utils.python_dispatch.transform_subclass(x, lambda name, inner: 2 * inner).inner
        tensor([2., 2.])
    """
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
    """Returns, for a wrapper subclass, the very argument where an operator's result is one that it wrote.

    As `torch.utils._python_dispatch.return_and_correct_aliasing`. It is the last line of a
    `__mica_dispatch__`.

    Args:
        func (OpOverload): The operator that is called.
        args (tuple): Positional arguments of the call, wrapped.
        kwargs (dict): Keyword arguments of the call.
        out (object): What the operator returned for them, wrapped anew.

    Returns:
        `out`, with written arguments in the places of their results.

    Example:
        >>> x = mica.ones(2)
        >>> out = mica.utils.python_dispatch.return_and_correct_aliasing(
        ...     mica.ops.mica.add_.Tensor, (x, 1), {}, mica.ones(2)
        ... )
        >>> out is x
        True
    """
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
