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
    """Switches anomaly mode on or off, at once; as a `with` block, until its end.

    As `torch.autograd.set_detect_anomaly`; `detect_anomaly` says what the mode does.

    Args:
        mode (bool): Whether it is on.
        check_nan (bool): Raise RuntimeError where backward computes a NaN. Default: True.

    Example:
        >>> with mica.autograd.set_detect_anomaly(True):
        ...     print(mica.is_anomaly_enabled())
        True
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self._previous = (_C.is_anomaly_enabled(), _C.is_anomaly_check_nan_enabled())
        _C._set_anomaly(mode, check_nan)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        _C._set_anomaly(*self._previous)


class detect_anomaly:
    """Finds where in the forward pass a failing or NaN gradient comes from, inside a `with` block.

    As `torch.autograd.detect_anomaly`. Each operator records the stack of its call, which costs time;
    when its backward fails, a warning shows that stack. It warns that it is on.

    Args:
        check_nan (bool): Raise RuntimeError where backward computes a NaN. Default: True.

    Example:
        >>> x = mica.zeros(1, requires_grad=True)
        >>> with mica.autograd.detect_anomaly():
        ...     y = (x.sqrt() * 0).sum()
        ...     y.backward()
        Traceback (most recent call last):
            ...
        RuntimeError: Function 'SqrtBackward0' returned nan values in its 0th output...
    """

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
