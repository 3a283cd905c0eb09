"""mica.conformance: whether a device does what every device of Mica must do.

`mica conformance --device acme.npu` runs it. Each failure in its report carries a Python
line that shows it again; the line needs what this module exports:

    from mica.conformance import *
    show('acme.npu', 'add.Tensor', args(T((3, 4)), T((4,)), alpha=2), dtype='float32')
"""

from __future__ import annotations

from typing import Any

from mica.conformance.sample_calls import T, args

__all__ = ["T", "args", "conform", "run", "show"]


def show(*a: Any, **k: Any) -> None:
    """Runs one case of an operator again: see operator_checks.show."""
    from mica.conformance.operator_checks import show as show_case

    show_case(*a, **k)


def run(device: str, name: str) -> None:
    """Runs one check of the device itself again: see runtime.run."""
    from mica.conformance.kit import load_checks
    from mica.conformance.runtime import run as run_check

    load_checks()
    run_check(device, name)


def conform(device: str, **options: Any) -> Any:
    """Runs the kit and returns its results.Report: see kit.conform."""
    from mica.conformance.kit import conform as run_kit

    return run_kit(device, **options)
