"""The modules that stand under torch's names: each asks the table for a name on first use.

What a program sets on one of them (`torch.nn.functional.linear = mine`, as tests and
accelerate do) is set on Mica's module behind it too, since Mica's layers look there, and
taking it off again restores what was there.
"""

from __future__ import annotations

import types
from pathlib import Path
from typing import Any

from mica import _tensor
from mica.torch import _homes, _table

FILE = str(Path(__file__).with_name("__init__.py"))
_made: dict[str, TorchModule] = {}


class TorchModule(types.ModuleType):
    """One module of torch's tree. Names appear as they are asked for."""

    def __init__(self, name: str) -> None:
        super().__init__(name, f"{name} on Mica; docs/reference/torch_coverage.md lists its names.")
        own = self.__dict__
        own["__file__"] = FILE
        own["_mica_replaced"] = {}
        for real in reversed(_table.real_modules(name)) if name != "torch" else ():
            # Annotations of its classes are looked up here, so that it has what the source imports.
            own.update((n, v) for n, v in vars(real).items() if n == "Tensor" or _table.is_leak(real, n))
            own["__file__"] = real.__file__
        if _table.is_package(name):
            own["__path__"] = []

    def __getattr__(self, name: str) -> Any:
        path = f"{self.__name__}.{name}"
        if name.startswith("__") and not _table.known(path):
            if name == "__all__":
                return _public(self)
            raise AttributeError(f"module '{self.__name__}' has no attribute '{name}'")
        try:
            value = _table.resolve(path)
        except _table.Absent as absent:
            raise AttributeError(str(absent), name=name, obj=self) from None
        if isinstance(value, types.ModuleType) or callable(value):
            self.__dict__[name] = value
            if _tensor.LIBRARY == "torch":
                _homes.move(value, self.__name__, name)
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("__") and not isinstance(value, TorchModule):
            for real in _table.real_modules(self.__name__):
                if hasattr(real, name):
                    self.__dict__["_mica_replaced"].setdefault(name, (real, getattr(real, name)))
                    setattr(real, name, value)
                    break
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        replaced = self.__dict__["_mica_replaced"].pop(name, None)
        if replaced is not None:
            setattr(replaced[0], name, replaced[1])
        super().__delattr__(name)

    def __dir__(self) -> list[str]:
        own = {n for n in self.__dict__ if not _table.is_leak(self, n)}
        return sorted({*own, *_table.names_in(self.__name__)} - {"_mica_replaced"})

    def __repr__(self) -> str:
        return f"<module '{self.__name__}' of Mica {_table.VERSION}>"

    def __reduce__(self) -> Any:
        return (module, (self.__name__,))


def _public(of: TorchModule) -> list[str]:
    """What `from module import *` gives: what the modules behind it declare, or all that has no underscore."""
    declared = [getattr(real, "__all__", None) for real in _table.real_modules(of.__name__)]
    if declared and None not in declared:
        return sorted({name for names in declared for name in names})
    return [name for name in dir(of) if not name.startswith("_")]


def __getattr__(name: str) -> Any:
    if name == "root":  # torch.torch is torch
        return module("torch")
    raise AttributeError(f"module 'mica.torch._modules' has no attribute '{name}'")


def module(name: str) -> TorchModule:
    """The one module of this name; ModuleNotFoundError if torch's tree on Mica has none."""
    made = _made.get(name)
    if made is None:
        if not _table.is_module(name):
            raise ModuleNotFoundError(f"No module named {name!r} on Mica; {_table.PAGE}", name=name)
        made = _made[name] = TorchModule(name)
    return made
