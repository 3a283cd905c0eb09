"""Calls every operator with random arguments under the address and undefined-behaviour sanitizers.

    python scripts/fuzz_operators.py 300                      # five minutes, a seed of its own
    python scripts/fuzz_operators.py --seed 7 --calls 40 mica::roll mica::pad

test/errors/bad_input.py, in the package of preset asan, draws and makes the calls. With
seconds given, rounds over all operators follow one another until the time is up; the
first round is always finished. A process that crashes or hangs is told with its last
call, the end of its report, and the command that shows it again; the operators after it
go on in a new process. The last line printed counts the operators.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "asan"
PROGRAM = ROOT / "test" / "errors" / "bad_input.py"
BATCH = 330  # operators a process: its start takes as long as the calls of some 60
CALLS = 8  # a round and operator
SHOWN_LINES = 12
BATCH_SECONDS = 600


def environment() -> dict[str, str]:
    """That of a Python which has the sanitizers' run times under it."""
    libraries = [
        subprocess.run(["c++", f"-print-file-name={name}"], capture_output=True, text=True, check=True)
        for name in ("libasan.so", "libubsan.so", "libstdc++.so")
    ]
    return {
        **os.environ,
        "LD_PRELOAD": " ".join(library.stdout.strip() for library in libraries),
        # Python keeps what it has until its end; a request for more memory than there is is an input.
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=4096:exitcode=99",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "MICA_BUILD_DIR": str(BUILD),
        "PYTHONPATH": str(BUILD / "python"),
        "OMP_NUM_THREADS": "1",
    }


class Fuzzer:
    """What was called so far, and what was found."""

    def __init__(self, calls: int) -> None:
        self.calls = calls
        self.environment = environment()
        self.failed: set[str] = set()
        self.called: set[str] = set()
        self.made = 0

    def operators(self) -> list[str]:
        """The names of all operators."""
        code = "from mica import _C; print(*_C._operator_names())"
        command = [sys.executable, "-c", code]
        run = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False)
        if run.returncode != 0:
            sys.exit(f"Mica cannot be imported under the sanitizers.\n{run.stderr[-4000:]}")
        return sorted(run.stdout.split())

    def batch(self, seed: int, names: list[str]) -> None:
        """Calls operators, in as many processes as it takes to reach the last one."""
        while names:
            names = self.process(seed, names)

    def process(self, seed: int, names: list[str]) -> list[str]:
        """Calls operators in one process and returns those that it did not reach."""
        with tempfile.NamedTemporaryFile("r", errors="replace") as log:
            command = [sys.executable, str(PROGRAM), str(seed), str(self.calls), "0", "1", log.name, *names]
            try:
                run = subprocess.run(
                    command, env=self.environment, timeout=BATCH_SECONDS, capture_output=True, check=False
                )
                status, output, said = run.returncode, run.stdout.decode(), run.stderr
            except subprocess.TimeoutExpired as late:
                status, output = -signal.SIGKILL, (late.stdout or b"").decode()
                said = f"The process took more than ({BATCH_SECONDS}) s.".encode()
            last, _, call = log.read().partition("\t")
        for wrong in output.split("WRONG ")[1:]:
            self.tell(seed, wrong.partition(": ")[0], wrong)
        if status == 0:
            self.called.update(names)
            self.made += int(output.rsplit(" calls, ")[-2].split()[-1])
            return []
        reached = names.index(last) + 1 if last in names else len(names)
        self.called.update(names[:reached])
        report = "\n".join(said.decode(errors="replace").strip().splitlines()[:SHOWN_LINES])
        self.tell(seed, last, f"The process ended with status ({status}) in the call\n  {call}{report}")
        return names[reached:]

    def tell(self, seed: int, name: str, what: str) -> None:
        """Prints what was found in an operator, once."""
        if name in self.failed:
            return
        self.failed.add(name)
        again = f"python scripts/fuzz_operators.py --seed {seed} --calls {self.calls} {name}"
        print(f"FAILED {name}\n{what}\n  again: {again}", flush=True)

    def round(self, seed: int, names: list[str], deadline: float | None) -> None:
        """Calls operators in batches, on all cores; starts no batch after the deadline."""

        def start(batch: list[str]) -> None:
            if deadline is None or time.monotonic() < deadline:
                self.batch(seed, batch)

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(start, [names[i : i + BATCH] for i in range(0, len(names), BATCH)]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("words", nargs="*", help="seconds, or names of operators")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--calls", type=int, default=CALLS, help=f"a round and operator (default {CALLS})")
    parser.add_argument("--rounds", type=int, default=0, help="at most so many, also before the time is up")
    options = parser.parse_args()
    seconds = int(options.words[0]) if options.words and options.words[0].isdigit() else 0
    fuzzer = Fuzzer(options.calls)
    names = fuzzer.operators() if seconds or not options.words else options.words
    deadline = time.monotonic() + seconds
    seed = options.seed
    fuzzer.round(seed, names, None)
    while time.monotonic() < deadline and seed - options.seed + 1 != options.rounds:
        seed += 1
        random.Random(seed).shuffle(names)
        fuzzer.round(seed, names, deadline)
    print(f"({fuzzer.made}) calls, seeds ({options.seed}) to ({seed})")
    print(f"{len(fuzzer.called - fuzzer.failed)} passed, {len(fuzzer.failed)} failed")
    return 1 if fuzzer.failed or not fuzzer.called else 0


if __name__ == "__main__":
    sys.exit(main())
