"""The modules that stand under torch's names: each asks the table for a name on first use.

What a program sets on one of them (`torch.nn.functional.linear = mine`, as tests and
accelerate do) is set on Mica's module behind it too, since Mica's layers look there, and
taking it off again restores what was there.
"""

from __future__ import annotations

import contextlib
import sys
import types
from pathlib import Path
from typing import Any

from mica import _C
from mica._torch_names import table
from mica._torch_names.version import VERSION
from mica.torch import _relocation

FILE = str(Path(__file__).with_name("__init__.py"))
_made: dict[str, TorchModule] = {}
_walked: set[str] = set()
_names_of = types.ModuleType.__dict__["__dict__"].__get__  # what a module holds, without looking for more


class TorchModule(types.ModuleType):
    """One module of torch's tree. Names appear as they are asked for."""

    def __init__(self, name: str) -> None:
        super().__init__(name, f"{name} on Mica; docs/reference/torch_coverage.md lists its names.")
        own = _names_of(self)
        own["__file__"] = FILE
        own["_mica_replaced"] = {}
        for real in reversed(table.real_modules(name)) if name != "torch" else ():
            # Annotations of its classes are looked up here, so that it has what the source imports.
            own.update((n, v) for n, v in vars(real).items() if n == "Tensor" or is_leak(n, v))
            own["__file__"] = real.__file__
        if table.is_package(name):
            own["__path__"] = []

    def __getattr__(self, name: str) -> Any:
        path = f"{self.__name__}.{name}"
        if name.startswith("__") and not table.known(path):
            if name == "__all__":
                return _public(self)
            raise AttributeError(f"module '{self.__name__}' has no attribute '{name}'")
        try:
            value = table.resolve(path)
        except table.Absent as absent:
            raise AttributeError(str(absent), name=name, obj=self) from None
        if isinstance(value, types.ModuleType) or callable(value):
            _names_of(self)[name] = value
            if _C._library_name() == "torch":
                _relocation.move(value, self.__name__, name)
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, TorchModule) and table.is_hidden(f"{self.__name__}.{name}"):
            return  # `import torch.nn.utils.weight_norm` leaves the function in its place
        if not name.startswith("__") and not isinstance(value, TorchModule):
            for real in table.real_modules(self.__name__):
                if hasattr(getattr(type(real), name, None), "__set__"):
                    setattr(real, name, value)  # a setting, which Mica's module holds alone
                    return
                if hasattr(real, name) and self._is(real, name):
                    _names_of(self)["_mica_replaced"].setdefault(name, (real, getattr(real, name)))
                    setattr(real, name, value)
                    break
        super().__setattr__(name, value)

    def _is(self, real: types.ModuleType, name: str) -> bool:
        """Whether the module's name is that of Mica's, and no other of torch's with the same spelling."""
        try:
            return table.resolve(f"{self.__name__}.{name}") is getattr(real, name)
        except table.Absent:
            return True

    def __delattr__(self, name: str) -> None:
        replaced = _names_of(self)["_mica_replaced"].pop(name, None)
        if replaced is not None:
            setattr(replaced[0], name, replaced[1])
        if name in _names_of(self) or not hasattr(self, name):
            super().__delattr__(name)  # what is asked for anew each time is not kept

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        """All names, for programs that walk them (pyro does), which are asked for first."""
        own = _names_of(self)
        if self.__name__ not in _walked:
            _walked.add(self.__name__)
            for name in set(names_in(self.__name__)) - own.keys():
                with contextlib.suppress(AttributeError, ImportError):
                    getattr(self, name)
        return own

    def __dir__(self) -> list[str]:
        own = {n for n, value in _names_of(self).items() if not is_leak(n, value)}
        return sorted({*own, *names_in(self.__name__)} - {"_mica_replaced"})

    def __repr__(self) -> str:
        return f"<module '{self.__name__}' of Mica {VERSION}>"

    def __reduce__(self) -> Any:
        return (module, (self.__name__,))


def names_in(path: str) -> set[str]:
    """The names of a module, for dir()."""
    found = set(table.children().get(path, ()))
    for real in table.real_modules(path):
        own = vars(real)
        found.update(
            n for n in dir(real) if (path != "torch" or n not in table.OWN) and not is_leak(n, own.get(n))
        )
        found -= {n for n in found if _is_inner(n, own.get(n)) and not table.known(f"{path}.{n}")}
    lines = table.hand()
    return found - {n for n in found if (line := lines.get(f"{path}.{n}")) and line.kind == "absent"}


def _is_inner(name: str, value: Any) -> bool:
    """Whether a name belongs to Mica's own files: a private module, or what Python gives each file."""
    return name in ("__builtins__", "__cached__") or (name[:1] == "_" and isinstance(value, types.ModuleType))


def is_leak(name: str, value: Any) -> bool:
    """Whether a module has a name only because its source imports it from Python's own library."""
    home = value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", None)
    top = str(home).partition(".")[0]
    return name == "annotations" or (top in sys.stdlib_module_names and top != "builtins")


def _public(of: TorchModule) -> list[str]:
    """What `from module import *` gives: what the modules behind it declare, or all that has no underscore."""
    declared = [getattr(real, "__all__", None) for real in table.real_modules(of.__name__)]
    if declared and None not in declared:
        return sorted({name for names in declared for name in names})
    return [name for name in dir(of) if not name.startswith("_")]


def __getattr__(name: str) -> Any:
    if name == "root":  # torch.torch is torch
        return module("torch")
    raise AttributeError(f"module 'mica.torch._modules' has no attribute '{name}'")


def operator(name: str) -> Any:
    """The operator of this name, which Mica's main module does not show: torch._softmax; None without one."""
    from mica import ops

    found = getattr(ops.mica, name, None)
    return found if isinstance(found, ops.OpPacket) else None


def module(name: str) -> TorchModule:
    """The one module of this name; ModuleNotFoundError if torch's tree on Mica has none."""
    made = _made.get(name)
    if made is None:
        if not table.is_module(name):
            raise ModuleNotFoundError(f"No module named {name!r} on Mica; {table.PAGE}", name=name)
        made = _made[name] = TorchModule(name)
    return made
