"""mica.utils.deterministic.fill_uninitialized_memory: whether empty() and its kin, and resize_() for what
is new, are filled with NaN, the largest integer or True while use_deterministic_algorithms(True)
holds. True unless set otherwise."""

from __future__ import annotations

import sys
import types

from mica._functions import determinism


class _Module(types.ModuleType):
    @property
    def fill_uninitialized_memory(self) -> bool:
        return determinism.fill_uninitialized_memory()

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, fill: bool) -> None:
        determinism.set_fill_uninitialized_memory(fill)


sys.modules[__name__].__class__ = _Module
fill_uninitialized_memory: bool
