"""Checks that a program makes of its own values: torch._assert and torch._check."""

from __future__ import annotations

from mica import _C

TYPE_CHECKING = False  # importing typing takes as long as all of mica
if TYPE_CHECKING:
    from typing import Any

__all__ = ["_assert", "_check", "_check_index", "_check_not_implemented", "_check_type", "_check_value"]


def _fail(kind: type[Exception], message: Any) -> None:
    raise kind(
        message()
        if callable(message)
        else message or "Expected cond to be True; a check of the program's failed."
    )


def _assert(condition: Any, message: Any = None) -> None:
    """`assert condition, message`, where a program is traced too."""
    if type(condition) is not bool and _C._has_function((condition,)):
        import mica
        from mica.overrides import handle_torch_function

        handle_torch_function(mica._assert, (condition,), condition, message)
    elif not condition:
        _fail(AssertionError, message)


def _check(cond: Any, message: Any = None) -> None:
    """Raises RuntimeError(message()) unless `cond`."""
    if not cond:
        _fail(RuntimeError, message)


def _check_index(cond: Any, message: Any = None) -> None:
    """Raises IndexError(message()) unless `cond`."""
    if not cond:
        _fail(IndexError, message)


def _check_type(cond: Any, message: Any = None) -> None:
    """Raises TypeError(message()) unless `cond`."""
    if not cond:
        _fail(TypeError, message)


def _check_not_implemented(cond: Any, message: Any = None) -> None:
    """Raises NotImplementedError(message()) unless `cond`."""
    if not cond:
        _fail(NotImplementedError, message)


def _check_value(cond: Any, message: Any = None) -> None:
    """Raises ValueError(message()) unless `cond`."""
    if not cond:
        _fail(ValueError, message)
