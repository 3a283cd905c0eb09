"""Configuration modules of torch's compilers: attributes that a program sets, reads and patches.

Nothing of Mica's asks them; `patch` holds values for a block or a function, as with torch's.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


class Patch:
    """`patch(name=value)`, `patch("name", value)` or `patch({...})`: a block, and a decorator, with these values."""

    def __init__(self, module: Any, *args: Any, **changes: Any) -> None:
        if len(args) == 2:
            changes = {args[0]: args[1]}
        elif len(args) == 1:
            changes = dict(args[0])
        elif args:
            raise TypeError(
                f"patch() takes a dict, or a name and a value, or keywords; it was given {len(args)} values."
            )
        for name in changes:
            if not hasattr(module, name):
                raise AttributeError(f"{module.__name__}.{name} does not exist")
        self._module, self._changes = module, changes
        self._before: list[dict[str, Any]] = []

    def __enter__(self) -> None:
        self._before.append({name: getattr(self._module, name) for name in self._changes})
        for name, value in self._changes.items():
            setattr(self._module, name, value)

    def __exit__(self, *exception: object) -> None:
        for name, value in self._before.pop().items():
            setattr(self._module, name, value)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def patched(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return patched


def _module(name: str) -> Any:
    from mica.torch._modules import module

    return module(name)


def _values(name: str) -> dict[str, Any]:
    module = _module(name)
    found = {n: getattr(module, n) for n in dir(module) if not n.startswith("__")}
    return {n: v for n, v in found.items() if not callable(v) and not isinstance(v, type(module))}


def _of(name: str) -> dict[str, Any]:
    """`patch`, `shallow_copy_dict` and `get_config_copy` of one configuration module."""
    return {
        "patch": lambda *args, **changes: Patch(_module(name), *args, **changes),
        "shallow_copy_dict": lambda: _values(name),
        "get_config_copy": lambda: _values(name),
    }


dynamo_patch, _, _ = _of("torch._dynamo.config").values()
inductor_patch, inductor_shallow_copy_dict, inductor_get_config_copy = _of("torch._inductor.config").values()
functorch_patch, _, functorch_get_config_copy = _of("torch._functorch.config").values()
