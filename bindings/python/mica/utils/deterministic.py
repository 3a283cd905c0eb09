"""mica.utils.deterministic.fill_uninitialized_memory: whether empty() and its kin, and resize_() for what
is new, are filled with NaN, the largest integer or True while use_deterministic_algorithms(True)
holds. True unless set otherwise."""

from __future__ import annotations

import sys
import types

from mica import _C
from mica._functions import are_deterministic_algorithms_enabled

_fill = True


def _apply() -> None:
    """Tells the factories what the flag here and the mode come to."""
    _C._set_fill_uninitialized(_fill and are_deterministic_algorithms_enabled())


class _Module(types.ModuleType):
    @property
    def fill_uninitialized_memory(self) -> bool:
        return _fill

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, fill: bool) -> None:
        global _fill
        if not isinstance(fill, bool):
            raise RuntimeError(f"The flag is True or False; this value is of type ({type(fill).__name__}).")
        _fill = fill
        _apply()


sys.modules[__name__].__class__ = _Module
fill_uninitialized_memory: bool
