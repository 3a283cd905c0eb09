"""Where a class or function of Mica lives under torch's name: "torch.nn.modules.linear" for Linear.

homes.txt lists the modules as torch has them. Checkpoints name things by them, and so does what a program
takes from torch's modules while the shim is installed (mica/torch/_relocation.py).
"""

from __future__ import annotations

import functools
from pathlib import Path

_FILE = Path(__file__).with_name("homes.txt")


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
