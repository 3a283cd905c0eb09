"""Every test suite of `./dev test`, in the order in which they run: one table.

Adding a suite is adding a row. A suite that runs no test fails. Every command
sees MICA_BUILD_DIR, and PYTHONPATH (also as MICA_PYTHON) with the built package.
Suites whose cores fit the machine run side by side, the earlier row first: those of one
core stand so that the long ones start first.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Suite:
    """One row. In `run`, `each` and `env`, {root}, {build}, {python}, {oracle} and {docs} are filled in."""

    name: str
    run: str  # the command
    count: str  # how its tests are counted: pytest, catch2, ctest or tally ("N passed, M failed")
    each: str = ""  # a glob: the command runs once for each {match}
    quick: bool = False  # part of `./dev test quick`
    # What must be there first: a preset to build ("release"; "tsan:a b" for two targets of it),
    # or "oracle" or "docs", the environments with PyTorch and with Sphinx.
    needs: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    timeout: int = 1200  # seconds, for each command
    cores: int = 0  # how many it keeps busy; 0: all of them, nothing runs beside it
    shares: str = ""  # what it writes: suites with the same word run one after another
    # What is other in the form that `./dev test --long` runs, for hours; without it there is no such form.
    long: dict[str, Any] = field(default_factory=dict)


# Two processes of two threads on two cores: a thread that waits for another one leaves the core to it.
SHARED_CORES = {"OMP_WAIT_POLICY": "passive"}

HOUR = 3600

SUITES = [
    Suite(
        "conformance",
        "{python} scripts/conformance.py",
        "tally",
        needs=("release",),
        env={"OMP_NUM_THREADS": "1"},
        cores=1,
        shares="installation",
    ),
    Suite("lint", "{python} scripts/lint.py", "tally", quick=True, cores=1),
    # What the compiler read of each file, generated ones included: modules see those below them alone.
    Suite("layering", "{python} scripts/layering.py", "tally", quick=True, needs=("release",), cores=1),
    # Other people's packages, on Mica under torch's name; the environment is made on first use.
    Suite(
        "torch-users",
        "{python} scripts/torch_users.py --check",
        "tally",
        needs=("release:package", "oracle"),
        env={"OMP_NUM_THREADS": "1"},
        cores=1,
    ),
    # A fifth of the samples.
    Suite(
        "opinfo",
        "{oracle} test/opinfo --suite",
        "tally",
        needs=("release:package", "oracle"),
        cores=2,
        long={"run": "{oracle} test/opinfo --suite --share 1", "timeout": HOUR},
    ),
    # Random programs on torch and on Mica, of which those that differ are printed shrunk: new ones each day.
    Suite(
        "programs",
        "{oracle} test/programs --programs 4000 --silent --shrink 30",
        "tally",
        needs=("release:package", "oracle"),
        env={"OMP_NUM_THREADS": "1"},
        cores=1,
        long={"run": "{oracle} test/programs --seconds 7200", "timeout": 3 * HOUR},
    ),
    Suite(
        "abi",
        "{python} -m pytest test/abi",
        "pytest",
        quick=True,
        needs=("release:package bench_abi",),
        cores=1,
    ),
    Suite("unit", "{match}", "catch2", each="{build}/bin/unit_*", quick=True, needs=("release",), cores=1),
    Suite(
        "examples",
        "{python} scripts/out_of_tree.py",
        "ctest",
        needs=("release",),
        cores=1,
        shares="installation",
    ),
    Suite(
        "guide-backend",
        "{python} scripts/guide_write_a_backend.py",
        "tally",
        needs=("release:package",),
        cores=1,
        shares="installation",
    ),
    Suite("array-api", "{python} scripts/array_api_tests.py", "tally", needs=("release:package",), cores=1),
    Suite(
        "guide-layer",
        "{python} scripts/guide_write_a_layer.py",
        "tally",
        needs=("release:package",),
        cores=1,
        shares="installation",
    ),
    Suite(
        "array-api-users", "{python} -m pytest test/array_api", "pytest", needs=("release:package",), cores=1
    ),
    Suite(
        "snippets",
        "{python} scripts/doc_snippets.py",
        "tally",
        quick=True,
        needs=("release:package",),
        cores=1,
    ),
    Suite(
        "reference",
        "{python} scripts/reference.py",
        "tally",
        quick=True,
        needs=("release:package",),
        cores=1,
        shares="reference",
    ),
    Suite("docstrings", "{python} scripts/docstrings.py", "tally", needs=("release:package",), cores=1),
    # The site, built without a warning and read in a browser.
    Suite(
        "docs",
        "{docs} scripts/docs_site.py --test",
        "tally",
        needs=("release:package", "docs"),
        cores=2,
        shares="reference",
    ),
    # Every name of torch that programs use, described: the page of docs/reference is up to date.
    Suite(
        "torch-names",
        "{python} scripts/torch_coverage.py --check",
        "tally",
        needs=("release:package",),
        cores=1,
    ),
    Suite("demo", "{python} scripts/demo_smoke.py", "tally", needs=("release:package",)),
    # test/<subject>/test_*.py; the environment with torch runs test_*_torch.py (test/conftest.py).
    Suite(
        "python",
        "{python} -m pytest test -n 2 -m 'not slow and not alone' --durations 20",
        "pytest",
        quick=True,
        needs=("release:package",),
        env=SHARED_CORES,
    ),
    Suite(
        "python-slow",
        "{python} -m pytest test -n 2 -m slow --durations 20",
        "pytest",
        needs=("release:package",),
        env=SHARED_CORES,
        long={"env": {**SHARED_CORES, "MICA_TEST_CALLS": "3000"}, "timeout": 3 * HOUR},
    ),
    Suite(
        "python-alone",
        "{python} -m pytest test/concurrency test/conformance -m alone",
        "pytest",
        needs=("release:package",),
        long={
            "run": "{python} test/concurrency/signal_storm.py --all 100000",
            "count": "tally",
            "timeout": 3 * HOUR,
        },
    ),
    Suite(
        "oracle",
        "{oracle} -m pytest test -n 2 --durations 20",
        "pytest",
        needs=("release:package schema_roundtrip", "oracle"),
        env=SHARED_CORES,
    ),
    # Most of their time is CMake's, the linker's and pip's, one after another.
    Suite(
        "guides",
        "{python} scripts/guide_add_operator.py",
        "tally",
        needs=("release:package",),
        timeout=1800,
        cores=1,
    ),
    Suite("wheel", "{python} scripts/wheel.py", "tally", timeout=1800, cores=1),
    Suite(
        "stress",
        "{match}",
        "catch2",
        each="{root}/build/tsan/bin/stress_*",
        needs=("tsan:stress",),
        env={"MICA_SWAP_CYCLES": "1000"},
        long={"env": {"MICA_SWAP_CYCLES": "20000", "MICA_STRESS_SECONDS": "1800"}, "timeout": 3 * HOUR},
    ),
    Suite(
        "swap",
        "{match}",
        "catch2",
        each="{root}/build/asan/bin/stress_plugin_swap",
        needs=("asan:stress_plugin_swap",),
        long={"env": {"MICA_SWAP_CYCLES": "100000"}, "timeout": 3 * HOUR},
    ),
    Suite(
        "shuffled", "{python} scripts/shuffled_host.py", "tally", needs=("release", "asan:package"), cores=1
    ),
    Suite(
        "fuzz",
        "{python} scripts/fuzz.py 30",
        "tally",
        needs=("fuzz:fuzzers",),
        long={"run": "{python} scripts/fuzz.py 7200", "timeout": 3 * HOUR},
    ),
    # Random arguments to every operator, in rounds of the same seeds each time, however fast the machine, so
    # that what fails is the change; beside them hostile checkpoints. The long form takes other seeds.
    Suite(
        "fuzz-operators",
        '{python} scripts/beside.py "{python} scripts/fuzz_operators.py 300 --seed 0 --rounds 16" '
        '"nice {python} scripts/fuzz_checkpoints.py 200 --seed 0"',
        "tally",
        needs=("asan:package",),
        long={
            "run": '{python} scripts/beside.py "{python} scripts/fuzz_operators.py 7200" '
            '"nice {python} scripts/fuzz_checkpoints.py 7200"',
            "timeout": 3 * HOUR,
        },
    ),
]

# torch's own test files come with no package: the suite is there where this names their folder.
if os.environ.get("MICA_TORCH_TESTS"):
    SUITES.append(
        Suite(
            "torch-tests",
            "{python} scripts/torch_tests.py --sample 60 --least 80",
            "tally",
            needs=("release:package", "oracle"),
            timeout=HOUR,
            cores=1,
            long={"run": "{python} scripts/torch_tests.py --sample 0 --least 80", "timeout": 12 * HOUR},
        )
    )
