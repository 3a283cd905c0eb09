"""mica.conformance: whether a device does what every device of Mica must do.

A failure is said with a Python line that shows it again; the line needs what this module
exports:

    from mica.conformance import *
    show('acme.npu', 'add.Tensor', args(T((3, 4)), T((4,)), alpha=2), dtype='float32')
"""

from __future__ import annotations

from typing import Any

from mica.conformance.samples import T, args

__all__ = ["T", "args", "show"]


def show(*a: Any, **k: Any) -> None:
    """Runs one case of an operator again: see operator_checks.show."""
    from mica.conformance.operator_checks import show as show_case

    show_case(*a, **k)
