"""Attributes of modules that stand for settings of the host, which plugins read (<mica/settings.h>)."""

from __future__ import annotations

import sys
import types
from typing import Any

from mica import _C


class Setting:
    """A data descriptor: the attribute is the setting of this name, one number of the process.

    `type` is bool, or int for a number that is no flag.
    """

    def __init__(self, name: str, type: type = bool) -> None:
        self._name, self._type = name, type

    def __set_name__(self, owner: type, name: str) -> None:
        self._attribute = name

    def __get__(self, module: object, owner: type | None = None) -> Any:
        return self if module is None else self._type(_C._setting(self._name))

    def __set__(self, module: object, value: Any) -> None:
        if not isinstance(value, self._type):
            raise TypeError(
                f"The setting ({self._attribute}) is {'True or False' if self._type is bool else 'an int'}; this value "
                f"is of type ({type(value).__name__})."
            )
        _C._set_setting(self._name, int(value))


class Tf32(Setting):
    """The precision of float32 by a word: "tf32" where the setting lets it be rounded, "ieee" where not.

    "none" sets what holds where nobody says anything. As torch's `fp32_precision`.
    """

    def __init__(self, name: str, *, default: bool) -> None:
        super().__init__(name)
        self._default = default

    def __get__(self, module: object, owner: type | None = None) -> Any:
        if module is None:
            return self
        return "tf32" if super().__get__(module) else "ieee" if self._default else "none"

    def __set__(self, module: object, value: Any) -> None:
        if value not in ("tf32", "ieee", "none"):
            raise RuntimeError(f"The precision ({value}) is unknown; expected 'tf32', 'ieee' or 'none'.")
        super().__set__(module, self._default if value == "none" else value == "tf32")


def install(module: str, **settings: Setting) -> None:
    """Gives a module attributes that are settings."""
    kind = type("module", (types.ModuleType,), dict(settings))
    sys.modules[module].__class__ = kind
