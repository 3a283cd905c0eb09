"""Runs the test suites of scripts/suites.py and sums their counts.

`./dev test [quick | <suite>...]` calls it. Each suite's output goes to
build/test-logs/<name>.log and is shown when it fails. The last line printed is
`N passed, N failed`; the exit status is 1 if anything failed, or if a suite ran
no test at all.
"""

from __future__ import annotations

import glob
import os
import re
import shlex
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from suites import SUITES, Suite

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "release"
LOGS = ROOT / "build" / "test-logs"
SHOWN_LINES = 60
# What a line of a failure starts with, in the words of pytest, Catch2, ctest and this repository's tallies.
FAILURE = re.compile(
    r"FAILED|ERROR|surprise:|fails?\b|\s*\d+ - .*\(Failed\)|\S+:\d+: FAILED|The (command|suite) "
)


@dataclass(frozen=True)
class Counts:
    """How many tests passed and failed."""

    passed: int = 0
    failed: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(self.passed + other.passed, self.failed + other.failed)


def number(pattern: str, text: str) -> int:
    """The number in the last match of `pattern`, or 0."""
    found = re.findall(pattern, text)
    return int(found[-1]) if found else 0


def count_pytest(output: str) -> Counts:
    """Counts of pytest's summary line; an error of collection is a failure."""
    lines = [line for line in output.splitlines() if re.search(r"\d+ (passed|failed|errors?)\b.* in ", line)]
    summary = lines[-1] if lines else ""
    passed = number(r"(\d+) passed", summary)
    return Counts(passed, number(r"(\d+) failed", summary) + number(r"(\d+) error", summary))


def count_catch2(output: str) -> Counts:
    """Counts of Catch2's console reporter, in test cases."""
    if match := re.findall(r"All tests passed \(.* in (\d+) test cases?\)", output):
        return Counts(passed=int(match[-1]))
    summary = re.findall(r"^test cases: .*$", output, re.M)
    line = summary[-1] if summary else ""
    return Counts(number(r"(\d+) passed", line), number(r"(\d+) failed", line))


def count_ctest(output: str) -> Counts:
    """Counts of every `N% tests passed[, M tests failed] out of T` line; CMake 4 leaves out a zero M."""
    counts = Counts()
    for failed, total in re.findall(r"% tests passed(?:, (\d+) tests? failed)? out of (\d+)", output):
        counts += Counts(int(total) - int(failed or 0), int(failed or 0))
    return counts


def count_tally(output: str) -> Counts:
    """Counts of the last line `N passed, M failed`."""
    return Counts(number(r"(\d+) passed, \d+ failed", output), number(r"\d+ passed, (\d+) failed", output))


COUNTERS = {"pytest": count_pytest, "catch2": count_catch2, "ctest": count_ctest, "tally": count_tally}


def prepare(need: str, done: set[str]) -> bool:
    """Builds or installs what a suite needs, once a run."""
    if need in done:
        return True
    if need == "oracle":
        command = ["./dev", "setup", "oracle"]
    else:
        preset, _, target = need.partition(":")
        command = ["./dev", "setup", "build", preset, *target.split()]
    done.add(need)
    return subprocess.run(command, cwd=ROOT, check=False).returncode == 0


def run_suite(suite: Suite, failures: list[str]) -> Counts:
    """Runs one suite and returns its counts; no test, or a bad exit, is a failure, told in `failures`."""
    names = {
        "root": str(ROOT),
        "build": str(BUILD),
        "python": sys.executable,
        "oracle": str(ROOT / ".venv-oracle" / "bin" / "python"),
    }
    environment = {
        **os.environ,
        "MICA_BUILD_DIR": str(BUILD),
        "MICA_PYTHON": str(BUILD / "python"),
        "PYTHONPATH": str(BUILD / "python"),
        **{key: value.format(**names) for key, value in suite.env.items()},
    }
    matches = (
        [m for m in sorted(glob.glob(suite.each.format(**names))) if os.access(m, os.X_OK)]
        if suite.each
        else [""]
    )
    counts = Counts()
    with (LOGS / f"{suite.name}.log").open("w") as log:
        for match in matches:
            command = shlex.split(suite.run.format(match=match, **names))
            try:
                result = subprocess.run(
                    command, cwd=ROOT, env=environment, timeout=suite.timeout, check=False,
                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                )  # fmt: skip
                output, status = result.stdout.decode(errors="replace"), result.returncode
            except subprocess.TimeoutExpired as timeout:
                output = (timeout.stdout or b"").decode(errors="replace")
                output += f"\nThe suite ran longer than its limit ({suite.timeout} s).\n"
                status = 124
            except OSError as error:
                output, status = f"{error}\n", 127
            part = COUNTERS[suite.count](output)
            if part == Counts():
                output += f"\nThe command ({shlex.join(command)}) ran no test (exit status {status}).\n"
                part = Counts(failed=1)
            elif status != 0 and part.failed == 0:
                output += f"\nThe command ({shlex.join(command)}) ended with status {status}.\n"
                part += Counts(failed=1)
            log.write(f"$ {shlex.join(command)}\n{output}\n")
            if part.failed:
                print("\n".join(output.splitlines()[-SHOWN_LINES:]), flush=True)
                told = [line[:300] for line in output.splitlines() if FAILURE.match(line)]
                failures += [f"{suite.name}: {line}" for line in told[-20:]]
            counts += part
    return counts if counts != Counts() else Counts(failed=1)


def choose(suites: list[Suite], words: list[str]) -> list[Suite]:
    """The suites that the command line names."""
    if not words:
        return suites
    if words == ["quick"]:
        return [suite for suite in suites if suite.quick]
    known = {suite.name: suite for suite in suites}
    for word in words:
        if word not in known:
            sys.exit(f"The suite ({word}) is unknown; there are: {', '.join(known)}.")
    return [known[word] for word in words]


def main() -> int:
    LOGS.mkdir(parents=True, exist_ok=True)
    total = Counts()
    rows: list[str] = []
    failures: list[str] = []
    done: set[str] = set()
    for suite in choose(SUITES, sys.argv[1:]):
        start = time.monotonic()
        print(f"== {suite.name}", flush=True)
        if all(prepare(need, done) for need in suite.needs):
            counts = run_suite(suite, failures)
        else:
            print(f"What the suite ({suite.name}) needs ({', '.join(suite.needs)}) could not be made.")
            counts = Counts(failed=1)
        seconds = time.monotonic() - start
        rows.append(f"{suite.name:<14}{counts.passed:>7} passed{counts.failed:>5} failed{seconds:>8.1f} s")
        print(rows[-1], flush=True)
        total += counts
    print("\n".join(["", *failures, *rows, f"{total.passed} passed, {total.failed} failed"]))
    return 1 if total.failed or not total.passed else 0


if __name__ == "__main__":
    sys.exit(main())
