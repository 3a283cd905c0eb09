"""mica.utils: data loading and helpers; `data` loads on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mica.utils import data as data
else:

    def __getattr__(name: str) -> Any:
        if name != "data":
            raise AttributeError(f"module 'mica.utils' has no attribute '{name}'")
        import importlib

        return importlib.import_module("mica.utils.data")
