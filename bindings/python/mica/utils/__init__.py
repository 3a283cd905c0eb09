"""mica.utils: data loading and helpers, each loaded on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

_LAZY = ("_pytree", "checkpoint", "data", "dlpack", "hooks")

if TYPE_CHECKING:
    from mica.utils import (
        checkpoint as checkpoint,
        data as data,
        dlpack as dlpack,
        hooks as hooks,
    )
else:

    def __getattr__(name: str) -> Any:
        if name not in _LAZY:
            raise AttributeError(f"module 'mica.utils' has no attribute '{name}'")
        import importlib

        return importlib.import_module(f"mica.utils.{name}")
