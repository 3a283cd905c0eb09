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
    """Runs one case of an operator on a device again, and prints what was expected, what came, and the verdict.

    A report of `conform()` has such a line for each failure.

    Args:
        *a (Any): The device, the overload ("add.Tensor"), and the call as `args(...)`.
        **k (Any): `check` ("value", "inplace", "out", "gradient" or "error"), `dtype` ("float32"), `layout`
            ("contiguous") and `how`, as the report's line gives them.

    Example:
        >>> from mica.conformance import T, args, show
        >>> show("cpu", "add.Tensor", args(T((3, 4)), T((4,)), alpha=2), dtype="float32")
        expected: tensor([[-1.9277,  1.8650,  3.5375,  0.9758],
                [-2.9613,  2.1062,  4.3178,  2.0373],
                [-0.8016,  4.3328,  2.1683,  1.8761]])
        given: tensor([[-1.9277,  1.8650,  3.5375,  0.9758],
                [-2.9613,  2.1062,  4.3178,  2.0373],
                [-0.8016,  4.3328,  2.1683,  1.8761]])
        verdict: passes
    """
    from mica.conformance.operator_checks import show as show_case

    show_case(*a, **k)


def run(device: str, name: str) -> None:
    """Runs one check of the device itself again; it prints "passes", or raises what is wrong.

    A report of `conform()` has such a line for each failure.

    Args:
        device (str): The device, "acme.npu".
        name (str): The check's name.

    Example:
        >>> from mica.conformance import run
        >>> run("cpu", "programs: training")
        passes
    """
    from mica.conformance.kit import load_checks
    from mica.conformance.runtime import run as run_check

    load_checks()
    run_check(device, name)


def conform(device: str, **options: Any) -> Any:
    """Runs the checks that every device of Mica must pass, and gathers a report.

    `mica conformance --device acme.npu` does it from the command line.

    Args:
        device (str): The device, "acme.npu".
        **options (Any): `operators`, `dtypes` and `groups`, lists of str that narrow what runs; and
            `progress`, called with the numbers of tasks done and of all.

    Returns:
        Report: Rows of results: `.rows`, `.failed`.

    Example:
        >>> from mica.conformance import conform
        >>> report = conform("cpu", operators=["neg"], dtypes=["float32"], groups=["value"])
        >>> report.failed
        False
    """
    from mica.conformance.kit import conform as run_kit

    return run_kit(device, **options)
