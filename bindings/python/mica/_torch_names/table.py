"""The one table: what a name of torch is on Mica.

names.txt is the hand list, one name a line: `torch.jit.is_scripting  gives False`. What it
does not name is looked up in Mica's module of the same path (torch.nn.Linear is
mica.nn.Linear), so what Mica gets is there at once. The kinds of a line:

  = mica.path            that object of Mica
  module [mica.path]...  a module whose names are those of these modules, in order
  hidden mica.path       the same, behind the name of its parent: torch.multiprocessing.spawn is a function
  is LITERAL | gives LITERAL | decorator | context | type | enum A B | exception BASE | function | operator
                         inert things, made by _inert.py
  absent REASON          not there, whatever Mica has under the name

A line marked `later` (`later type`) holds only while Mica has nothing of its own there.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import sys
import types
from pathlib import Path
from typing import Any, NamedTuple

VERSION = "2.13.0+mica"
PAGE = "docs/reference/torch_coverage.md lists what is there."
_FILE = Path(__file__).with_name("names.txt")
# Modules of Mica that are not torch's, and would hide or confuse.
_OWN = {"torch", "array_api", "conformance"}
_MODULES = ("module", "hidden")


class Absent(Exception):
    """Mica has no such name; the text says why, as far as the table knows."""


class Entry(NamedTuple):
    """One line of names.txt."""

    kind: str
    detail: str
    later: bool


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
def _children() -> dict[str, set[str]]:
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


@functools.cache
def real_modules(path: str) -> tuple[types.ModuleType, ...]:
    """Mica's modules behind a module of torch, those first whose names win."""
    if path == "torch":
        return (importlib.import_module("mica"),)
    line = hand().get(path)
    if line is not None and line.kind in _MODULES and line.detail:
        return tuple(importlib.import_module(name) for name in line.detail.split())
    if (line is not None and not line.later) or "." not in path:
        return ()
    parent, _, name = path.rpartition(".")
    found = []
    for real in real_modules(parent):
        if parent == "torch" and (name.startswith("_") or name in _OWN):
            continue
        module = _import(f"{real.__name__}.{name}")
        if module is None and isinstance(real.__dict__.get(name), types.ModuleType):
            module = real.__dict__[name]
        if module is not None and module.__name__.startswith("mica"):
            found.append(module)
    return tuple(found) or _ancestor(path)


def _ancestor(path: str) -> tuple[types.ModuleType, ...]:
    """Mica's module that has what torch defines in a smaller one: torch.optim.adam is mica.optim."""
    from mica._torch_names import homes

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
        return line.kind in _MODULES
    if path == "torch" or real_modules(path):
        return True
    return bool(line is not None and line.kind == "module") or (
        line is None and path in _children() and _is_space(path)
    )


def _is_space(path: str) -> bool:
    """Whether the names below it belong to a module, not to a class of Mica."""
    parent, _, name = path.rpartition(".")
    return not any(isinstance(getattr(real, name, None), type) for real in real_modules(parent))


def is_package(path: str) -> bool:
    """Whether a module may have modules below it. All but Mica's plain files may."""
    from mica._torch_names import homes

    real = real_modules(path)
    inside = path in _children() or path in homes.packages()
    return inside or not real or any(hasattr(module, "__path__") for module in real)


def resolve(path: str) -> Any:
    """The object of this name; Absent with the reason if there is none."""
    line = hand().get(path)
    if line is not None and not line.later and line.kind not in _MODULES:
        return _made(path, line)
    if line is None or line.later or line.kind == "hidden":
        # torch.nn.utils.weight_norm is a function, and a module of the same name is behind it.
        parent, _, name = path.rpartition(".")
        for real in real_modules(parent):
            value = getattr(real, name, types)  # a module stands for none
            if not isinstance(value, types.ModuleType):
                return value
    if is_module(path):
        from mica.torch._modules import module

        return module(path)
    if line is not None:
        return _made(path, line)
    parent, _, name = path.rpartition(".")
    if parent in ("torch", "torch._VF") and name.startswith("_"):
        operator = _operator(name)
        if operator is not None:
            return operator
    raise Absent(f"module '{parent}' has no attribute '{name}': Mica has no {path}; {PAGE}")


def _operator(name: str) -> Any:
    """The operator of this name, which Mica's main module does not show: torch._softmax; None without one."""
    ops = importlib.import_module("mica.ops")
    found = getattr(ops.mica, name, None)
    return found if isinstance(found, ops.OpPacket) else None


def _made(path: str, line: Entry) -> Any:
    if line.kind == "absent":
        raise Absent(f"Mica has no {path}: {line.detail}; {PAGE}")
    if line.kind == "=":
        owner, _, name = line.detail.rpartition(".")
        return getattr(importlib.import_module(owner), name)
    from mica.torch import _inert

    return _inert.make(path, line.kind, line.detail)


def describe(path: str) -> tuple[str, str]:
    """What a name is: ("present", ""), ("inert", its kind) or ("absent", the reason).

    Attributes of objects count: torch.Tensor.view, torch.backends.cuda.matmul.allow_tf32.
    """
    parts = path.split(".")
    if parts[0] == "Tensor":
        parts = ["torch", *parts]
    while parts[:2] == ["torch", "torch"]:
        parts = parts[1:]
    for i in range(len(parts), 1, -1):
        prefix = ".".join(parts[:i])
        line = hand().get(prefix)
        if line is not None and not line.later and line.kind == "absent":
            return ("absent", line.detail)
    value: Any = None
    inert = ""
    for i in range(1, len(parts) + 1):
        prefix = ".".join(parts[:i])
        try:
            if i > 1 and not isinstance(value, types.ModuleType):
                value = getattr(value, parts[i - 1])
                continue
            of = hand().get(prefix)
            hidden = of is not None and of.kind == "hidden" and i < len(parts)
            modules = importlib.import_module("mica.torch._modules")
            value = modules.module(prefix) if i == 1 or hidden else resolve(prefix)
        except (Absent, AttributeError, NotImplementedError) as error:
            return ("absent", str(error))
        except ImportError:  # Mica has it, and a package that it works through is not installed here
            return ("present", "")
        line = hand().get(prefix)
        inert = line.kind if line is not None and _stands(prefix, line) else ""
    return ("inert", inert) if inert else ("present", "")


def _stands(path: str, line: Entry) -> bool:
    """Whether the line, rather than Mica, gives an inert thing."""
    if line.kind == "=" or (line.kind in _MODULES and line.detail):
        return False
    if not line.later:
        return True
    if line.kind == "module":
        return not real_modules(path)
    parent, _, name = path.rpartition(".")
    return not any(hasattr(real, name) for real in real_modules(parent))


def names_in(path: str) -> set[str]:
    """The names of a module, for dir()."""
    found = set(_children().get(path, ()))
    for real in real_modules(path):
        own = vars(real)
        found.update(
            n for n in dir(real) if (path != "torch" or n not in _OWN) and not is_leak(n, own.get(n))
        )
        found -= {n for n in found if _is_inner(n, own.get(n)) and not known(f"{path}.{n}")}
    lines = hand()
    return found - {n for n in found if (line := lines.get(f"{path}.{n}")) and line.kind == "absent"}


def _is_inner(name: str, value: Any) -> bool:
    """Whether a name belongs to Mica's own files: a private module, or what Python gives each file."""
    return name in ("__builtins__", "__cached__") or (name[:1] == "_" and isinstance(value, types.ModuleType))


def is_leak(name: str, value: Any) -> bool:
    """Whether a module has a name only because its source imports it from Python's own library."""
    home = value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", None)
    top = str(home).partition(".")[0]
    return name == "annotations" or (top in sys.stdlib_module_names and top != "builtins")
