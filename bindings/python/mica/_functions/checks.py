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
    """Raises AssertionError unless a condition holds; a trace of a program keeps it.

    As `torch._assert`.

    Args:
        condition (bool or Tensor): The condition.
        message (str, optional): What the error says. Default: a general sentence.

    Raises:
        AssertionError: The condition does not hold.

    Example:
        >>> mica._assert(mica.ones(2).sum() == 2, "the sum is 2")
    """
    if type(condition) is not bool and _C._has_function((condition,)):
        import mica
        from mica.overrides import handle_torch_function

        handle_torch_function(mica._assert, (condition,), condition, message)
    elif not condition:
        _fail(AssertionError, message)


def _check(cond: Any, message: Any = None) -> None:
    """Raises RuntimeError unless a condition holds.

    As `torch._check`.

    Args:
        cond (bool): The condition.
        message (callable, optional): `message()` returns what the error says. Default: a general sentence.

    Raises:
        RuntimeError: The condition does not hold.

    Example:
        >>> mica._check(1 < 2, lambda: "the order of numbers")
    """
    if not cond:
        _fail(RuntimeError, message)


def _check_index(cond: Any, message: Any = None) -> None:
    """Raises IndexError unless a condition holds; see `_check()`.

    Args:
        cond (bool): The condition.
        message (callable, optional): `message()` returns what the error says.

    Raises:
        IndexError: The condition does not hold.
    """
    if not cond:
        _fail(IndexError, message)


def _check_type(cond: Any, message: Any = None) -> None:
    """Raises TypeError unless a condition holds; see `_check()`.

    Args:
        cond (bool): The condition.
        message (callable, optional): `message()` returns what the error says.

    Raises:
        TypeError: The condition does not hold.
    """
    if not cond:
        _fail(TypeError, message)


def _check_not_implemented(cond: Any, message: Any = None) -> None:
    """Raises NotImplementedError unless a condition holds; see `_check()`.

    Args:
        cond (bool): The condition.
        message (callable, optional): `message()` returns what the error says.

    Raises:
        NotImplementedError: The condition does not hold.
    """
    if not cond:
        _fail(NotImplementedError, message)


def _check_value(cond: Any, message: Any = None) -> None:
    """Raises ValueError unless a condition holds; see `_check()`.

    Args:
        cond (bool): The condition.
        message (callable, optional): `message()` returns what the error says.

    Raises:
        ValueError: The condition does not hold.
    """
    if not cond:
        _fail(ValueError, message)
