"""The module of each backend, made by one mechanism: mica.cuda, mica.acme.

A backend that a plugin brings has its module from the start: `mica.acme` and `import mica.acme` ask which plugins
were found, and open none. In Python a backend's name has "_" where it has "." or "-": "acme.npu" is mica.acme_npu.
A name that Mica has otherwise stays what it is.
"""

from __future__ import annotations

import sys
from types import ModuleType

from mica import _C
from mica._devices.numbered import python_name

TYPE_CHECKING = False  # importing typing takes as long as all of mica
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from typing import Any


def backend_of(name: str) -> str | None:
    """The backend that Python spells so; None without one. Packages' plugins are asked for last, which is slow."""
    for all_ in (False, True):
        for backend in _C._known_backends(all_)[2:]:
            if python_name(backend) == name:
                return str(backend)
    return None


def names() -> list[str]:
    """The modules of the backends that are known without asking packages."""
    return [python_name(backend) for backend in _C._known_backends(False)[2:]]


def find_on_import() -> None:
    """Lets `import mica.acme` find a backend's module."""
    sys.meta_path.append(Finder())  # type: ignore[arg-type]


class Finder:
    """What sys.meta_path gets, last: `import mica.acme` where no file is called so."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        package, _, name = fullname.rpartition(".")
        if package != "mica" or name.startswith("_") or backend_of(name) is None:
            return None
        from importlib.machinery import ModuleSpec

        return ModuleSpec(fullname, self, origin="the backend's plugin")  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        fill(module.__name__, str(backend_of(module.__name__.rpartition(".")[2])), module)


_made: dict[str, ModuleType] = {}  # Mica's own modules, by their backends


def fill(name: str, backend: str, module: ModuleType | None = None) -> None:
    """Puts what a backend's module has into a module (that of the name), where it has none of the name."""
    from mica._devices import backend_module

    module = sys.modules[name] if module is None else module
    if not module.__doc__:
        module.__doc__ = f"mica.{python_name(backend)}: the devices of the backend {backend!r}."
    if getattr(module, "__file__", None) is None:
        module.__file__ = backend_module.__file__
    backend_module.install(vars(module), backend)
    _made[backend] = module


def find(name: str) -> Any:
    """The module mica.<name> of the backend that Python spells so; None without one."""
    if backend_of(name) is None:
        return None
    __import__(f"mica.{name}")
    return sys.modules[f"mica.{name}"]


def of(backend: str) -> Any:
    """Mica's own module of a backend that is known, also where a program has registered another."""
    name = f"mica.{python_name(backend)}"
    if backend not in _made and name in sys.modules:
        fill(name, backend, ModuleType(name))
    elif backend not in _made:
        __import__(name)
    return _made[backend]


def register(device_type: str, module: Any) -> None:
    """Gives a backend a module of the program's own, in the place of the one that Mica makes.

    As `torch._register_device_module`.

    Args:
        device_type (str): The backend.
        module (Any): A module, or another object with its functions.

    Raises:
        RuntimeError: The backend is unknown, or has a module of a program's own.
    """
    import mica

    backend = _C.device(device_type).type
    name = python_name(backend)
    before = sys.modules.get(f"mica.{name}")
    if before is not None and before is not _made.get(backend):
        raise RuntimeError(f"The runtime module of '{backend}' has already been registered with '{before}'.")
    sys.modules[f"mica.{name}"] = module
    setattr(mica, name, module)
