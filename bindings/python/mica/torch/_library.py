"""torch.library for registrations that come before the operator: they wait for its definition.

Libraries register fakes and gradients of operators that their own binary defines, which Mica does
not load; the registrations are kept, and run once somebody defines the operator through here. For
operators that a plugin of Mica provides in the library's place they are dropped.
"""

from __future__ import annotations

import inspect
from typing import Any

from mica import _C, _runtime as runtime, library

_waiting: dict[str, list[Any]] = {}
# Namespaces that a plugin of Mica provides in the place of a package's library: its operators
# have their gradients, shapes and autocast policies, so that registrations for them are dropped.
_stand_ins: set[str] = set()


def stands_in(package: str) -> bool:
    """Whether a plugin provides the operators of this package; from then on it stands in for it."""
    if any(f"operators:{package}" in p["provides"].split(",") for p in runtime.plugins()):
        _stand_ins.add(package)
    return package in _stand_ins


def _qualified(op: Any) -> str:
    name = op if isinstance(op, str) else str(getattr(op, "_qualname", getattr(op, "_name", op)))
    return name.removesuffix(".default")


def _when_defined(op: Any, register: Any) -> None:
    """Registers at once where the operator is there, else when it is defined."""
    name = _qualified(op)
    if name.partition("::")[0] in _stand_ins:
        return
    if not isinstance(op, str) or _C._find_operator(name) is not None:
        register()
    else:
        _waiting.setdefault(name, []).append(register)


def _defined(name: str) -> None:
    for register in _waiting.pop(name.partition("(")[0], []):
        register()


def waiting() -> list[str]:
    """The operators that registrations wait for."""
    return sorted(_waiting)


def _shown(parameters: str) -> Any:
    """A decorator: the function shows these parameters, torch's."""

    def shown(function: Any) -> Any:
        function.__signature__ = inspect.signature(eval(f"lambda {parameters}: None"))
        return function

    return shown


def _registering(function: Any, parameters: str) -> Any:
    @_shown(parameters)
    def register(op: Any, func: Any = None, /, **options: Any) -> Any:
        """Registers for an operator, or as a decorator."""
        if func is None and "setup_context" not in options:
            return lambda f: register(op, f, **options)
        known = {k: v for k, v in options.items() if k in ("setup_context",)}
        _when_defined(op, lambda: function(op, func, **known))
        return func

    return register


_FAKE = "func=None, /, *, lib=None, _stacklevel=1"
register_fake = _registering(library.register_fake, f"op, {_FAKE}, allow_override=True")
impl_abstract = _registering(library.register_fake, f"qualname, {_FAKE}")
register_autograd = _registering(
    library.register_autograd, "op, backward, /, *, setup_context=None, lib=None"
)


class Library(library.Library):
    """A library whose implementations of operators that are not there yet wait, too."""

    def __init__(self, ns: str, kind: str = "FRAGMENT", dispatch_key: str = "") -> None:
        super().__init__(ns, kind, dispatch_key)
        self._ns, self._dispatch_key = ns, dispatch_key

    @_shown("self, schema, alias_analysis='', *, tags=()")
    def define(self, schema: str, *args: Any, **kwargs: Any) -> Any:
        found = super().define(schema, *args, **kwargs)
        _defined(f"{self._ns}::{schema}")
        return found

    @_shown("self, op_name, fn, dispatch_key='', *, with_keyset=False, allow_override=True")
    def impl(
        self, op_name: Any, fn: Any, dispatch_key: str = "", *, allow_override: bool = True, **kwargs: Any
    ) -> Any:
        name = op_name if isinstance(op_name, str) else _qualified(op_name)
        full = name if "::" in name else f"{self._ns}::{name}"
        parent = super()
        _when_defined(full, lambda: parent.impl(op_name, fn, dispatch_key, **kwargs))
        return fn


@_shown("name, fn=None, /, *, mutates_args, device_types=None, schema=None, tags=None")
def custom_op(name: str, fn: Any = None, /, **options: Any) -> Any:
    """Defines an operator by a function; what waited for it is registered."""
    if fn is None:
        return lambda f: custom_op(name, f, **options)
    found = library.custom_op(name, **options)(fn)
    _defined(name)
    return found


@_shown("qualname, schema, *, lib=None, tags=()")
def define(qualname: str, schema: str, *args: Any, **options: Any) -> Any:
    """Defines an operator by its schema; what waited for it is registered."""
    found = library.define(qualname, schema, *args, **options)  # type: ignore[attr-defined]
    _defined(qualname)
    return found
