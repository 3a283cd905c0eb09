"""Lends torch's own testing package to a process in which `import torch` gives Mica.

torch's test files compare, sample and parametrise by torch.testing._internal, which comes in torch's wheel
and is Python over torch's public names. lend() makes these modules, read from an installed torch's folder,
importable over the shim. What they name besides and Mica lacks is a stand-in, and so is what a test file
names while it is being imported: a missing name fails the tests that use it, and not its whole file. A test
that calls a stand-in gets NotImplementedError.
"""

from __future__ import annotations

import contextlib
import dis
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

# Modules that are run as the wheel has them; all else is the shim's, or a stand-in.
LENT = (
    "torch.testing._internal",
    "torch.testing._comparison",
    "torch.testing._utils",
    "torch.utils._import_utils",
    "torch._vendor",
)
# Dtypes of torch that Mica lacks, which the testing package checks for at import.
_DTYPES = [
    "complex32",
    "qint8",
    "qint32",
    "quint8",
    "quint4x2",
    "quint2x4",
    "float8_e4m3fnuz",
    "float8_e5m2fnuz",
]
_importing = [False]


class _Meta(type):
    """Classes, so that a test file can derive from a stand-in or ask isinstance()."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__") or not _is_written(sys._getframe(1)):
            raise AttributeError(name)
        return stand_in(f"{cls._path}.{name}")

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls._derived:
            return super().__call__(*args, **kwargs)
        if not _importing[0] and not _is_lent(sys._getframe(1)):
            raise NotImplementedError(f"The name {cls._path} is not part of Mica.")
        if len(args) == 1 and not kwargs and callable(args[0]) and not isinstance(args[0], _Meta):
            return args[0]  # as a decorator
        return stand_in(f"{cls._path}()")

    def __bool__(cls) -> bool:
        return cls._path.rpartition(".")[2] in _DTYPES

    def __enter__(cls) -> None:
        """Nothing: a block in a mode that Mica lacks is a plain block."""

    def __exit__(cls, *exc: object) -> None:
        pass

    def __iter__(cls) -> Iterator[Any]:
        return iter(())

    def __repr__(cls) -> str:
        return cls._path


def stand_in(path: str) -> Any:
    """Something for a name that Mica lacks: false, empty, and usable as a decorator, base class or block."""

    def derived(cls: type, **_: Any) -> None:
        cls._derived = True  # type: ignore[attr-defined]

    body = {"_path": path, "_derived": False, "__init_subclass__": classmethod(derived)}
    return _Meta(path.rpartition(".")[2], (), body)


class _Missing(ModuleType):
    """A module of torch's wheel that Mica has nothing for."""

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":
            return ["nothing"]
        if name.startswith("__"):
            raise AttributeError(name)
        return stand_in(f"{self.__name__}.{name}")


class _Lender(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        from mica._torch_names import table

        if fullname.startswith("torchgen"):
            return importlib.machinery.PathFinder.find_spec(fullname, [str(self._place(fullname))])
        if not fullname.startswith("torch."):
            return None
        if any(fullname == name or fullname.startswith(f"{name}.") for name in LENT):
            spec = importlib.machinery.PathFinder.find_spec(fullname, [str(self._place(fullname))])
            if spec is not None and spec.origin is not None:
                spec.loader = _Adapted(fullname, spec.origin)
            return spec
        found = self._place(fullname) / fullname.rpartition(".")[2]
        if _importing[0] and not table.is_module(fullname) and _is_module(found):
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        return None

    def _place(self, fullname: str) -> Path:
        return self._folder.joinpath(*fullname.split(".")[:-1])

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return _Missing(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Nothing: its names are stand-ins."""


def _isinstance(value: Any, of: Any) -> bool:
    """isinstance(), for which stand-ins are dtypes, as torch.complex32 is."""
    return isinstance(value, of) or (type(value) is _Meta and of is sys.modules["torch"].dtype)


def _getattr(owner: Any, name: str, *default: Any) -> Any:
    """getattr(), whose answer is a stand-in where a module of torch lacks a name that must be there."""
    from mica import ops
    from mica.torch import _modules

    try:
        return getattr(owner, name, *default)
    except AttributeError:
        if default or not isinstance(owner, (_modules.TorchModule, ops.OpNamespace, _Missing, _Meta)):
            raise
        return stand_in(name)


class _Adapted(importlib.machinery.SourceFileLoader):
    """Loads a module of the wheel, whose lists of dtypes may hold some that Mica lacks."""

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__.update(isinstance=_isinstance, getattr=_getattr)
        super().exec_module(module)
        _tolerant(module)


def _is_module(place: Path) -> bool:
    return place.is_dir() or place.with_suffix(".py").exists()


def lend(folder: Path) -> None:
    """Makes the testing package of the torch in `folder` (a site-packages) importable over the shim."""
    from mica import ops
    from mica.torch import _modules

    sys.meta_path.insert(0, _Lender(folder))
    for name in _DTYPES:
        setattr(_modules.module("torch"), name, stand_in(f"torch.{name}"))
    _modules.module("torch").chalf = _modules.module("torch").complex32
    for cls, name_of in ((_modules.TorchModule, "__name__"), (ops.OpNamespace, "_name")):
        cls.__getattr__ = _filled(cls.__getattr__, name_of)  # type: ignore[method-assign, attr-defined]
    _opens_no_test_libraries()
    # The testing package reads it off torch.testing, where a stand-in would freeze no random numbers.
    importlib.import_module("torch.testing._utils")


def _opens_no_test_libraries() -> None:
    """Passes over the C++ libraries of torch's own test suite, which whole classes of tests open as they begin.

    What a test needs of them is missing where it asks for it.
    """
    from mica.torch import _ops

    opens = _ops.load_library

    def load_library(path: Any) -> None:
        if not Path(path).name.startswith("libtorchbind_test."):
            opens(path)

    _ops.load_library = load_library


def _filled(ask: Any, name_of: str) -> Any:
    """__getattr__ of a class, with stand-ins while modules are being imported."""

    def asked(self: Any, name: str) -> Any:
        try:
            return ask(self, name)
        except AttributeError:
            if name.startswith("__") or not _is_written(sys._getframe(1)):
                raise
            return stand_in(f"{getattr(self, name_of)}.{name}")

    return asked


def _is_lent(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).startswith("torch.testing._internal")


def _is_written(frame: FrameType) -> bool:
    """Whether a stand-in may answer a frame: a module that is being imported, or torch's testing package.

    It asks by `a.b` or `from a import b`; hasattr() and getattr() take a no.
    """
    if not _importing[0] and not _is_lent(frame):
        return False
    instruction = frame.f_code.co_code[frame.f_lasti]
    return dis.opname[instruction] in ("LOAD_ATTR", "LOAD_METHOD", "IMPORT_FROM")


def _allow_empty(ops: Any) -> None:
    """Lets a test be made for an empty list of operators: then there is none, and not its file's end."""
    parametrize = ops._parametrize_test

    def parametrized(self: Any, *args: Any, **kwargs: Any) -> Iterator[Any]:
        try:
            yield from parametrize(self, *args, **kwargs)
        except ValueError as error:
            if "empty op_list" not in str(error):
                raise

    ops._parametrize_test = parametrized


def _tolerant(module: ModuleType) -> None:
    """Lets a test file import names from a module that an older release had there."""

    def missing(name: str) -> Any:
        if name.startswith("__") or not _is_written(sys._getframe(1)):
            raise AttributeError(
                f"module {module.__name__!r} has no attribute {name!r}", name=name, obj=module
            )
        later = vars(module).get(f"get_{name}")  # as new_module_tests, which a later release computes
        if later is not None:
            return later()
        return stand_in(f"{module.__name__}.{name}")

    module.__dict__.setdefault("__getattr__", missing)
    if module.__name__ == "torch.testing._internal.common_device_type":
        _allow_empty(module.ops)  # type: ignore[attr-defined]


class _Tolerant(importlib.abc.MetaPathFinder):
    """Finds torch's testing package where it is, and makes its modules tolerant."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if not fullname.startswith("torch.testing._internal."):
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                load(module)
                _tolerant(module)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def tolerate() -> None:
    """What lend() does for older test files, for a process that has torch itself."""
    import torch

    sys.meta_path.insert(0, _Tolerant())
    for module in (torch, torch._C):
        _tolerant(module)


@contextlib.contextmanager
def importing() -> Iterator[None]:
    """While it lasts, names that Mica lacks are stand-ins."""
    _importing[0] = True
    try:
        yield
    finally:
        _importing[0] = False
