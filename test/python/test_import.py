"""`import mica` is light: it needs few modules, little time and little memory (DESIGN.md, Budgets)."""

from __future__ import annotations

import subprocess
import sys

# Each costs milliseconds; what needs them imports them on first use.
HEAVY = {
    "typing",
    "re",
    "collections",
    "functools",
    "contextlib",
    "inspect",
    "importlib",
    "numpy",
    "pickle",
    "json",
}

PROGRAM = """
import resource, sys, time
before, memory = set(sys.modules), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
start = time.perf_counter()
import mica
print((time.perf_counter() - start) * 1e3, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory) / 1024)
print(*(set(sys.modules) - before))
"""


def run() -> tuple[float, float, set[str]]:
    text = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True).stdout
    numbers, modules = text.splitlines()
    milliseconds, megabytes = map(float, numbers.split())
    return milliseconds, megabytes, set(modules.split())


def test_import_is_light() -> None:
    runs = [run() for _ in range(5)]
    assert not HEAVY & runs[0][2]
    assert min(milliseconds for milliseconds, _, _ in runs) <= 80
    assert max(megabytes for _, megabytes, _ in runs) <= 40
