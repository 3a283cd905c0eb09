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
            namespace[name] = _C._Overridable(value)
