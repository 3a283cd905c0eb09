"""Puts functions that are written in Python behind the question whether a function mode
or a subclass wants the call, as generated ones ask by themselves."""

from __future__ import annotations

from mica import _C

TYPE_CHECKING = False  # importing typing takes as long as all of mica
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

_FUNCTION = type(lambda: None)


def install(namespace: dict[str, Any], *, ignored: Iterable[str] = ()) -> None:
    """Replaces the public functions that a module of the package defines."""
    left = frozenset(ignored)
    for name, value in list(namespace.items()):
        if type(value) is not _FUNCTION or name.startswith("_") or name in left:
            continue
        if value.__module__.startswith("mica."):
            value.__module__ = namespace["__name__"]  # where pickle finds the object, not the bare function
            namespace[name] = _C._Overridable(value)


class _Disabled:
    """A block in which objects among the arguments (and with `_what` of 3 modes too) are not asked."""

    _what = 1

    def __enter__(self) -> None:
        self._before = _C._disable_functions(self._what)

    def __exit__(self, *exc: object) -> None:
        _C._restore_functions(self._before)


class DisableFunctionSubclass(_Disabled):
    """Keeps subclasses, and other objects among the arguments, from overriding calls inside a `with` block.

    As `torch._C.DisableTorchFunctionSubclass`. Function modes still see the calls.

    Example:
        >>> class Loud(mica.Tensor):
        ...     @classmethod
        ...     def __mica_function__(cls, func, types, args=(), kwargs=None):
        ...         print("called")
        ...         return super().__mica_function__(func, types, args, kwargs)
        >>> x = mica.ones(1).as_subclass(Loud)
        >>> with mica.overrides.DisableFunctionSubclass():
        ...     y = x.exp()
        >>> y = x.exp()
        called
    """


class DisableFunction(_Disabled):
    """Keeps function modes, and objects among the arguments, from overriding calls inside a `with` block.

    As `torch._C.DisableTorchFunction`.

    Example:
        >>> with mica.overrides.DisableFunction():
        ...     print(mica.overrides.has_torch_function(()))
        False
    """

    _what = 3


_C.DisableTorchFunctionSubclass, _C.DisableTorchFunction = DisableFunctionSubclass, DisableFunction
