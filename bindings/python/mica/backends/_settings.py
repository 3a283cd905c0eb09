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
        if not isinstance(value, self._type) or (isinstance(value, bool) and self._type is not bool):
            raise TypeError(
                f"The setting ({self._attribute}) is {'True or False' if self._type is bool else 'an int'}; this value "
                f"is of type ({type(value).__name__})."
            )
        _C._set_setting(self._name, int(value))


class Tf32(Setting):
    """The precision of float32 by a word: "tf32" where the setting lets it be rounded, "ieee" where not.

    "none" sets what holds where nobody says anything, and is read back as long as that holds. As torch's
    `fp32_precision`.
    """

    def __init__(self, name: str, *, default: bool) -> None:
        super().__init__(name)
        self._default = default
        self._word = "none"  # the last one

    def __get__(self, module: object, owner: type | None = None) -> Any:
        if module is None:
            return self
        rounds = super().__get__(module)  # which others set, too
        if rounds == self._number(self._word):
            return self._word
        return "tf32" if rounds else "ieee"

    def _number(self, word: str) -> bool:
        return self._default if word == "none" else word == "tf32"

    def __set__(self, module: object, value: Any) -> None:
        if value not in ("tf32", "ieee", "none"):
            raise RuntimeError(f"The precision ({value}) is unknown; expected 'tf32', 'ieee' or 'none'.")
        super().__set__(module, self._number(value))
        self._word = value


def install(module: str, **settings: Setting) -> None:
    """Gives a module attributes that are settings."""
    kind = type("module", (types.ModuleType,), dict(settings))
    sys.modules[module].__class__ = kind
