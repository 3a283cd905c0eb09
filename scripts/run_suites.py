"""Runs the test suites of scripts/suites.py and sums their counts.

`./dev test [quick | <suite>...]` calls it, `./dev test --long [<suite>...]` for the long forms. Each suite's output goes to
build/test-logs/<name>.log and is shown when it fails. Suites run side by side where
the machine has the cores for them; a build runs alone. The last line printed is
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
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from pathlib import Path

from suites import SUITES, Suite

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "release"
LOGS = ROOT / "build" / "test-logs"
CORES = len(os.sched_getaffinity(0))
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


@dataclass
class Outcome:
    """What came of one suite: its counts, the end of each output that failed, a line for each failure."""

    counts: Counts = Counts()
    shown: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def row(self, name: str) -> str:
        counts = f"{self.counts.passed:>7} passed{self.counts.failed:>5} failed"
        return f"{name:<14}{counts}{self.seconds:>8.1f} s"


def ready(need: str, done: dict[str, bool]) -> bool:
    """Whether a need was seen to; a whole preset has its targets."""
    return need in done or need.partition(":")[0] in done


def prepare(suite: Suite, done: dict[str, bool]) -> bool:
    """Builds or installs what a suite needs, once a run."""
    for need in suite.needs:
        if need in ("oracle", "docs"):
            command = ["./dev", "setup", need]
        else:
            preset, _, target = need.partition(":")
            command = ["./dev", "setup", "build", preset, *target.split()]
        if not ready(need, done):
            done[need] = subprocess.run(command, cwd=ROOT, check=False).returncode == 0
    return all(done[need if need in done else need.partition(":")[0]] for need in suite.needs)


def run_suite(suite: Suite) -> Outcome:
    """Runs one suite; no test, or a bad exit, is a failure."""
    start = time.monotonic()
    outcome = Outcome()
    names = {
        "root": str(ROOT),
        "build": str(BUILD),
        "python": sys.executable,
        "oracle": str(ROOT / ".venv-oracle" / "bin" / "python"),
        "docs": str(ROOT / ".venv-docs" / "bin" / "python"),
    }
    environment = {
        **os.environ,
        "MICA_POISON_MEMORY": "255",  # what nobody wrote is NaN: tensor/poison.h
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
                outcome.shown += output.splitlines()[-SHOWN_LINES:]
                told = [line[:300] for line in output.splitlines() if FAILURE.match(line)]
                outcome.failures += [f"{suite.name}: {line}" for line in told[-20:]]
            outcome.counts += part
    if outcome.counts == Counts():
        outcome.counts = Counts(failed=1)
    outcome.seconds = time.monotonic() - start
    return outcome


def choose(suites: list[Suite], words: list[str]) -> list[Suite]:
    """The suites that the command line names; with --long, the long forms of those that have one."""
    if "--long" in words:
        words = [word for word in words if word != "--long"]
        suites = [replace(suite, **suite.long) for suite in suites if suite.long]
    if not words:
        return suites
    if words == ["quick"]:
        return [suite for suite in suites if suite.quick]
    known = {suite.name: suite for suite in suites}
    for word in words:
        if word not in known:
            sys.exit(f"The suite ({word}) is unknown; there are: {', '.join(known)}.")
    return [known[word] for word in words]


def fits(suite: Suite, running: list[Suite], done: dict[str, bool]) -> bool:
    """Whether a suite can start beside those that run."""
    if not running:
        return True
    alone = any(s.cores == 0 for s in [suite, *running]) or not all(ready(n, done) for n in suite.needs)
    words = [s.shares for s in running if s.shares]
    return not alone and suite.shares not in words and sum(s.cores for s in [suite, *running]) <= CORES


def start(suite: Suite, threads: ThreadPoolExecutor, done: dict[str, bool]) -> Future[Outcome]:
    """Starts a suite when what it needs is there; one without it has failed."""
    print(f"== {suite.name}", flush=True)
    begin = time.monotonic()
    if prepare(suite, done):
        return threads.submit(run_suite, suite)
    lacks = f"What the suite ({suite.name}) needs ({', '.join(suite.needs)}) could not be made."
    failed: Future[Outcome] = Future()
    failed.set_result(Outcome(Counts(failed=1), [lacks], [lacks], time.monotonic() - begin))
    return failed


def main() -> int:
    LOGS.mkdir(parents=True, exist_ok=True)
    pending = choose(SUITES, sys.argv[1:])
    outcomes: dict[str, Outcome] = {}
    running: dict[Future[Outcome], Suite] = {}
    done: dict[str, bool] = {}
    begin = time.monotonic()
    with ThreadPoolExecutor(CORES) as threads:
        while pending or running:
            for suite in list(pending):
                if fits(suite, list(running.values()), done):
                    pending.remove(suite)
                    running[start(suite, threads, done)] = suite
            for ended in wait(running, return_when=FIRST_COMPLETED).done:
                name, outcome = running.pop(ended).name, ended.result()
                outcomes[name] = outcome
                print("\n".join([*outcome.shown, outcome.row(name)]), flush=True)
    total = sum((outcome.counts for outcome in outcomes.values()), Counts())
    failures = [line for outcome in outcomes.values() for line in outcome.failures]
    rows = [outcome.row(name) for name, outcome in outcomes.items()]
    print("\n".join(["", *failures, *rows, f"in {time.monotonic() - begin:.0f} s"]))
    print(f"{total.passed} passed, {total.failed} failed")
    return 1 if total.failed or not total.passed else 0


if __name__ == "__main__":
    sys.exit(main())
