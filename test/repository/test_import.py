"""`import mica` is light: it needs few modules and little memory (docs/design.md, Budgets; `./dev bench` has its time)."""

from __future__ import annotations

from process import printed

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
import resource, sys
before, memory = set(sys.modules), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
import mica
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory) / 1024)
print(*(set(sys.modules) - before))
"""


def run() -> tuple[float, set[str]]:
    megabytes, modules = printed(PROGRAM).splitlines()
    return float(megabytes), set(modules.split())


def test_import_is_light() -> None:
    megabytes, modules = run()
    assert not HEAVY & modules
    assert not {"mica.serialization", "mica.storage", "mica.torch", "mica._torch_names"} & modules
    assert megabytes <= 40
