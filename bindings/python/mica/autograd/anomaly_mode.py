"""Anomaly mode: where in the forward pass a failing backward comes from."""

from __future__ import annotations

import sys
import traceback
import warnings
from typing import Any

import mica
from mica import _C

_PACKAGE: str = mica.__path__[0]


def _record_stack() -> str:
    """The stack down to the last line that is not the package's own, the user's call, and the module."""
    stack = traceback.extract_stack()[:-1]
    while len(stack) > 1 and stack[-1].filename.startswith(_PACKAGE):
        stack.pop()
    text = "".join(traceback.format_list(stack))
    where = sys.modules.get("mica.nn.modules._error_location")  # not there: no module is in use
    module = where.path_of_frame(sys._getframe(1)) if where is not None else ""
    return text + (f"  in module {module}\n" if module else "")


class set_detect_anomaly:
    """Switches anomaly mode on or off, at once and until the block ends."""

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self._previous = (_C.is_anomaly_enabled(), _C.is_anomaly_check_nan_enabled())
        _C._set_anomaly(mode, check_nan)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        _C._set_anomaly(*self._previous)


class detect_anomaly:
    """Records the forward stack of every node; a failing or NaN gradient shows it."""

    def __init__(self, check_nan: bool = True) -> None:
        self._check_nan = check_nan
        warnings.warn(
            "Anomaly Detection has been enabled: each operator records its stack, so use it for debugging alone.",
            stacklevel=2,
        )

    def __enter__(self) -> None:
        self._guard: Any = set_detect_anomaly(True, self._check_nan)

    def __exit__(self, *exc: object) -> None:
        self._guard.__exit__()
