"""The one table: what a name of torch is on Mica.

names.txt is the hand list, one name a line: `torch.jit.is_scripting  gives False`. What it
does not name is looked up in Mica's module of the same path (torch.nn.Linear is
mica.nn.Linear), so what Mica gets is there at once. The kinds of a line:

  = mica.path            that object of Mica
  module [mica.path]...  a module whose names are those of these modules, in order
  hidden mica.path       the same, behind the name of its parent: torch.multiprocessing.spawn is a function
  is LITERAL | gives LITERAL | decorator | context | type | enum A B | exception BASE | function | operator
                         inert things, made by mica/torch/_inert.py
  absent REASON          not there, whatever Mica has under the name

A line marked `later` (`later type`) holds only while Mica has nothing of its own there.

The core asks the table too: names in checkpoints are torch's. It never imports mica.torch, which hands in
what it makes (`Shim`) when it is imported; without it, a name that needs it is Absent.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import types
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mica._torch_names import homes

if TYPE_CHECKING:
    from collections.abc import Callable

PAGE = "docs/reference/torch_coverage.md lists what is there."
_FILE = Path(__file__).with_name("names.txt")
# Modules of Mica that are not torch's, and would hide or confuse.
OWN = {"torch", "array_api", "conformance"}
MODULES = ("module", "hidden")


class Absent(Exception):
    """Mica has no such name; the text says why, as far as the table knows."""


class Entry(NamedTuple):
    """One line of names.txt."""

    kind: str
    detail: str
    later: bool


class Shim(NamedTuple):
    """What mica.torch makes of names that are no objects of Mica's core."""

    module: Callable[[str], types.ModuleType]  # the module object of a name
    inert: Callable[[str, str, str], Any]  # the inert thing of a name, a kind and a detail
    operator: Callable[[str], Any]  # the operator that torch shows under a name of its main module, or None


_shim: list[Shim] = []


def register(shim: Shim) -> None:
    """Called by mica.torch when it is imported."""
    _shim[:] = [shim]


def _of_shim(path: str) -> Shim:
    if not _shim:
        raise Absent(
            f"{path} is made by mica.torch, which this process has not imported; `import mica.torch` first, or "
            "mica.torch.install() for programs that import torch."
        )
    return _shim[0]


def module(path: str) -> types.ModuleType:
    """The module object that `import path` gives under the shim."""
    return _of_shim(path).module(path)


@functools.cache
def hand() -> dict[str, Entry]:
    """The lines of names.txt by name."""
    lines = {}
    for line in _FILE.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            name, _, rest = line.partition(" ")
            rest = rest.strip()
            later = rest.startswith("later ")
            kind, _, detail = (rest[6:] if later else rest).partition(" ")
            lines[name] = Entry(kind, detail.strip(), later)
    return lines


@functools.cache
def children() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for name in hand():
        parts = name.split(".")
        for i in range(1, len(parts)):
            found.setdefault(".".join(parts[:i]), set()).add(parts[i])
    return found


def _import(name: str) -> types.ModuleType | None:
    try:
        if importlib.util.find_spec(name) is None:
            return None
    except (ImportError, AttributeError, ValueError):
        return None
    return importlib.import_module(name)


def _imported(path: str, name: str) -> types.ModuleType:
    """A module that names.txt names for `path`; what mica.torch has is its own to import."""
    if name.startswith("mica.torch."):
        _of_shim(path)
    return importlib.import_module(name)


@functools.cache
def real_modules(path: str) -> tuple[types.ModuleType, ...]:
    """Mica's modules behind a module of torch, those first whose names win."""
    if path == "torch":
        return (importlib.import_module("mica"),)
    line = hand().get(path)
    if line is not None and line.kind in MODULES and line.detail:
        return tuple(_imported(path, name) for name in line.detail.split())
    if (line is not None and not line.later) or "." not in path:
        return ()
    parent, _, name = path.rpartition(".")
    found = []
    for real in real_modules(parent):
        if parent == "torch" and (name.startswith("_") or name in OWN):
            continue
        module = _import(f"{real.__name__}.{name}")
        if module is None and isinstance(real.__dict__.get(name), types.ModuleType):
            module = real.__dict__[name]
        if module is not None and module.__name__.startswith("mica"):
            found.append(module)
    return tuple(found) or _ancestor(path)


def _ancestor(path: str) -> tuple[types.ModuleType, ...]:
    """Mica's module that has what torch defines in a smaller one: torch.optim.adam is mica.optim."""
    names = homes.names(path)
    parent, _, name = path.rpartition(".")
    if not names or any(part.startswith("_") for part in path.split(".")):
        return ()
    if any(hasattr(real, name) for real in real_modules(parent)):
        return ()  # torch.nn.utils.weight_norm is a function first
    return tuple(real for real in real_modules(parent) if any(hasattr(real, n) for n in names))


def known(path: str) -> bool:
    """Whether names.txt has a line for the name."""
    return path in hand()


def is_hidden(path: str) -> bool:
    """Whether the name is of something else than the module that stands behind it."""
    line = hand().get(path)
    return line is not None and line.kind == "hidden"


def is_module(path: str) -> bool:
    """Whether `import path` works."""
    line = hand().get(path)
    if line is not None and not line.later:
        return line.kind in MODULES
    if path == "torch" or real_modules(path):
        return True
    return bool(line is not None and line.kind == "module") or (
        line is None and path in children() and _is_space(path)
    )


def _is_space(path: str) -> bool:
    """Whether the names below it belong to a module, not to a class of Mica."""
    parent, _, name = path.rpartition(".")
    return not any(isinstance(getattr(real, name, None), type) for real in real_modules(parent))


def is_package(path: str) -> bool:
    """Whether a module may have modules below it. All but Mica's plain files may."""
    real = real_modules(path)
    inside = path in children() or path in homes.packages()
    return inside or not real or any(hasattr(module, "__path__") for module in real)


def resolve(path: str) -> Any:
    """The object of this name; Absent with the reason if there is none."""
    line = hand().get(path)
    if line is not None and not line.later and line.kind not in MODULES:
        return _made(path, line)
    if line is None or line.later or line.kind == "hidden":
        # torch.nn.utils.weight_norm is a function, and a module of the same name is behind it.
        parent, _, name = path.rpartition(".")
        for real in real_modules(parent):
            value = getattr(real, name, types)  # a module stands for none
            if not isinstance(value, types.ModuleType):
                return value
    if is_module(path):
        return module(path)
    if line is not None:
        return _made(path, line)
    parent, _, name = path.rpartition(".")
    if parent in ("torch", "torch._VF") and name.startswith("_") and _shim:
        operator = _shim[0].operator(name)
        if operator is not None:
            return operator
    raise Absent(f"module '{parent}' has no attribute '{name}': Mica has no {path}; {PAGE}")


def _made(path: str, line: Entry) -> Any:
    if line.kind == "absent":
        raise Absent(f"Mica has no {path}: {line.detail}; {PAGE}")
    if line.kind == "=":
        owner, _, name = line.detail.rpartition(".")
        return getattr(_imported(path, owner), name)
    return _of_shim(path).inert(path, line.kind, line.detail)
