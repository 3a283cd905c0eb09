"""Lets what a program takes from torch's modules say in `__module__` that it lives where torch's does.

So do pickles that refer to it; uninstall() gives everything its own module back.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

from mica._torch_names import table
from mica._torch_names.homes import home

_moved: list[tuple[Any, str]] = []


def _set_module(value: Any, module: str) -> None:
    """Sets `__module__`; with it CPython 3.13 takes the line of a class away, which inspect.getsource() reads."""
    line = vars(value).get("__firstlineno__") if isinstance(value, type) else None
    value.__module__ = module
    if line is not None:
        value.__firstlineno__ = line


def _move(value: Any, module: str, name: str) -> None:
    own = getattr(value, "__module__", None)
    if not isinstance(own, str) or own.split(".")[0] != "mica" or getattr(value, "__name__", None) != name:
        return
    found = home(module, name)
    if found is None or not table.is_module(found):
        return
    # torch.sigmoid is none of Python's in torch, and torch.nn.functional.sigmoid another function.
    if found != module and not isinstance(value, type) and not _shows(found, name, value):
        return
    try:
        _set_module(value, found)
    except (AttributeError, TypeError):
        return  # a builtin of the extension module
    _moved.append((value, own))
    if found != "torch":  # inspect.getsource() looks into the file of the module
        importlib.import_module(found).__dict__["__file__"] = sys.modules[own].__file__


def _shows(module: str, name: str, value: Any) -> bool:
    try:
        return table.resolve(f"{module}.{name}") is value
    except table.Absent:
        return False


def move(value: Any, module: str, name: str) -> None:
    """Lets a class or function say that it lives where torch's does; a class's bases too."""
    _move(value, module, name)
    if isinstance(value, type):
        for base in value.__mro__[1:]:
            _move(base, "torch", base.__name__)


def restore() -> None:
    """Gives all of them their own modules back."""
    while _moved:
        value, own = _moved.pop()
        _set_module(value, own)
