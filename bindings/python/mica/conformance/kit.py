"""Runs everything on one device and gathers a Report.

Operators run with the fallback to the CPU refused, so that what the backend lacks shows as
unsupported; checks of the device itself run with it allowed, as programs run.
"""

from __future__ import annotations

import importlib
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import mica
from mica.conformance import runtime, transform_checks  # noqa: F401 - adds its checks
from mica.conformance.operator_checks import ALL_DTYPES, CHECKS, check_operator, chosen
from mica.conformance.operators import ENTRIES
from mica.conformance.results import Report, Row
from mica.conformance.speed import measure
from mica.conformance.worker import Task, Watch, run_in_parallel

# After transform_checks has added its own.
_FILES = ("copy_checks", "stream_checks", "memory_checks", "process_checks")
GROUPS = (*CHECKS, "runtime", "speed")


def load_checks() -> None:
    """Imports the files that hold checks of the device itself, in the order of the report."""
    for name in _FILES:
        importlib.import_module(f"mica.conformance.{name}")


@contextmanager
def fallback(policy: str) -> Iterator[None]:
    """What happens, inside, to a call for which the backend has no kernel."""
    before = mica.set_fallback(policy)
    try:
        yield
    finally:
        mica.set_fallback(before)


@contextmanager
def exact() -> Iterator[None]:
    """Convolutions of float32 do not round to TF32, inside, as they may at first."""
    before = mica.backends.cudnn.allow_tf32
    mica.backends.cudnn.allow_tf32 = False
    try:
        yield
    finally:
        mica.backends.cudnn.allow_tf32 = before


def _plugin_of(device: str) -> dict[str, str]:
    backend = mica.device(device).type
    plugins = [p for p in mica.plugins() if f"backend:{backend}" in p["provides"].split(",")]
    return plugins[0] if plugins else {}


def _about(device: str) -> dict[str, str]:
    plugin = _plugin_of(device)
    about = {
        "plugin": " ".join(filter(None, (plugin.get("name"), plugin.get("version")))),
        "vendor": plugin.get("vendor", ""),
        "Mica": mica.__version__,
        "Python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
    }
    if mica.device(device).type != "cpu":
        about = {"hardware": str(mica.device_properties(device)["name"]), **about}
    return {key: value for key, value in about.items() if value}


def run_task(task: Task, watch: Watch = lambda line: None) -> list[Row]:
    """The rows of one task, run in this process."""
    if task.kind == "runtime":
        load_checks()
        with fallback("allow"):
            return runtime.run_check(task.name, task.device, watch)
    with fallback("error"), exact():
        return check_operator(ENTRIES[task.name], task.device, list(task.dtypes), list(task.checks), watch)


def _tasks(device: str, operators: list[str], dtypes: list[str], groups: list[str]) -> list[Task]:
    checks = tuple(c for c in CHECKS if c in groups)
    entries = chosen(operators) if checks else []
    tasks = [Task("operator", e.overload, device, tuple(dtypes), checks) for e in entries]
    if "runtime" in groups and not operators:
        tasks += [Task("runtime", c.name, device) for c in runtime.CHECKS]
    return tasks


def conform(
    device: str,
    *,
    operators: list[str] | None = None,
    dtypes: list[str] | None = None,
    groups: list[str] | None = None,
    jobs: int = 1,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Report:
    """Runs the groups (all of GROUPS by default); `operators` and `dtypes` narrow those of operators.

    `jobs` operators run at once, in processes of their own; a device that lives in this process runs one.
    """
    load_checks()
    mica.empty([1], device=device)  # an unknown device is said here
    wanted = groups or list(GROUPS)
    tasks = _tasks(device, operators or [], dtypes or ALL_DTYPES, wanted)
    report = Report(device, _about(device), [])
    isolated = bool(_plugin_of(device).get("path"))
    for number, rows in enumerate(run_in_parallel(tasks, jobs) if isolated else map(run_task, tasks)):
        progress(number, len(tasks))
        report.rows += rows
    if "speed" in wanted and not operators:
        with fallback("error"):
            report.measurements = measure(device)
    return report
