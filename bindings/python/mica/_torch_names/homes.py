"""Where a class or function of Mica lives under torch's name: "torch.nn.modules.linear" for Linear.

While the shim is installed, what a program takes from torch's modules says so in `__module__`, as do
pickles that refer to it; uninstall() gives everything its own module back. homes.txt lists the
modules as torch has them.
"""

from __future__ import annotations

import functools
import importlib
import sys
from pathlib import Path
from typing import Any

from mica._torch_names import table

_FILE = Path(__file__).with_name("homes.txt")
_moved: list[tuple[Any, str]] = []


@functools.cache
def _homes() -> dict[str, list[str]]:
    """The modules that define something of a name."""
    found: dict[str, list[str]] = {}
    for line in _FILE.read_text(encoding="utf-8").splitlines():
        module, colon, names = line.partition(": ")
        for name in names.split() if colon and not line.startswith("#") else ():
            found.setdefault(name, []).append(module)
    return found


def home(module: str, name: str) -> str | None:
    """The module of torch that defines what `module` shows under `name`; None where that is not known."""
    homes = _homes().get(f"{name}@{module}") or _homes().get(name, [])
    if module in homes:
        return module
    inside = [h for h in homes if h.startswith(module + ".")] or homes
    return inside[0] if len(inside) == 1 else None


@functools.cache
def _names() -> dict[str, set[str]]:
    """The names of each module."""
    found: dict[str, set[str]] = {}
    for name, modules in _homes().items():
        for module in modules:
            found.setdefault(module, set()).add(name.partition("@")[0])
    return found


def names(module: str) -> set[str]:
    """What torch defines in a module; nothing for a module that is no home."""
    return _names().get(module, set())


def modules() -> set[str]:
    """The modules that define something."""
    return set(_names())


@functools.cache
def packages() -> set[str]:
    """The modules that have others inside of them."""
    return {module.rpartition(".")[0] for module in _names()}


def names_inside(module: str) -> set[str]:
    """What torch defines in a module and in those inside of it."""
    start = module + "."
    return {n for home, held in _names().items() if home == module or home.startswith(start) for n in held}


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
        value.__module__ = found
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
        value.__module__ = own
