"""What compiles under torch's name: torch.compile, torch.jit.script and torch.jit.trace run a program
as it stands, and say so once.

torch.compile makes an OptimizedModule of a module, as torch does, since programs look for its
`_orig_mod` and for the prefix in its state dict; the others give back what they were given.
"""

from __future__ import annotations

import warnings
from inspect import signature
from typing import Any

from mica import nn

_said: set[str] = set()
_OWN = {"_orig_mod", "_compile_options"}


def _once(name: str) -> None:
    if name in _said:
        return
    _said.add(name)
    warnings.warn(
        f"{name} gives back what it was given: Mica runs it as it stands, without compiling. "
        "This is said once.",
        UserWarning,
        stacklevel=3,
    )


class OptimizedModule(nn.Module):
    """A module that torch.compile was given, as its submodule `_orig_mod`; attributes are the module's."""

    def __init__(self, mod: nn.Module, **options: Any) -> None:
        super().__init__()
        self.__dict__["_compile_options"] = options
        self._modules["_orig_mod"] = mod
        self.__dict__.pop("training", None)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the module."""
        return self._modules["_orig_mod"](*args, **kwargs)

    @property
    def training(self) -> bool:  # type: ignore[override]
        """The module's."""
        return self._modules["_orig_mod"].training

    @training.setter
    def training(self, value: bool) -> None:
        if "_orig_mod" in self.__dict__.get("_modules", ()):
            self._modules["_orig_mod"].training = value
        else:  # while it is made
            self.__dict__["training"] = value

    def __getattr__(self, name: str) -> Any:
        modules = self.__dict__.get("_modules", {})
        if "_orig_mod" not in modules:  # while it is copied
            raise AttributeError(f"Module (OptimizedModule) has no attribute ({name}).")
        if name == "_orig_mod":
            return modules["_orig_mod"]
        return getattr(modules["_orig_mod"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        if "_orig_mod" in self.__dict__.get("_modules", ()) and name not in _OWN and name != "training":
            setattr(self._modules["_orig_mod"], name, value)
        else:
            super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._modules["_orig_mod"], name)

    def __len__(self) -> int:
        return len(self._modules["_orig_mod"])

    def __bool__(self) -> bool:
        return True

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self._modules["_orig_mod"])})


def compile(model: Any = None, **options: Any) -> Any:
    """The function itself, or the module as an OptimizedModule; as a decorator with options, too."""
    unknown = options.keys() - signature(compile).parameters.keys()
    if unknown:
        raise TypeError(f"compile() got an unexpected keyword argument '{min(unknown)}'.")
    if options.get("mode") is not None and options.get("options") is not None:
        raise RuntimeError("Either mode or options can be specified, but both can't be at the same time.")
    _once("torch.compile")
    if model is None:
        return lambda f: compile(f, **options)
    return OptimizedModule(model, **options) if isinstance(model, nn.Module) else model


compile.__signature__ = signature(  # type: ignore[attr-defined]
    lambda model=None, *, fullgraph=False, dynamic=None, backend=None, mode=None, options=None, name=None, disable=False, recompile_limit=None, isolate_recompiles=False, shapes_spec=None: (
        None
    )
)


def script(obj: Any = None, *args: Any, **kwargs: Any) -> Any:
    """The function, class or module itself."""
    _once("torch.jit.script")
    return (lambda f: f) if obj is None else obj


def trace(func: Any, example_inputs: Any = None, *args: Any, **kwargs: Any) -> Any:
    """The function or module itself, which follows its input where a trace would not."""
    _once("torch.jit.trace")
    return func


def annotate(the_type: Any, the_value: Any) -> Any:
    """The value: torch.jit.annotate names a type for the compiler alone."""
    return the_value


class TracerWarning(Warning):
    """What torch.jit.trace says of code that it cannot follow; Mica runs the code itself and never says it."""

    @staticmethod
    def ignore_lib_warnings() -> None:
        """Nothing: there are no such warnings of the library's own."""
