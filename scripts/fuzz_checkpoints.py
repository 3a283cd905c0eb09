"""Loads hostile checkpoints for some seconds: `fuzz_checkpoints.py 300` (or --release, --seed 7 --count 1).

test/serialization/hostile_checkpoints.py makes and loads them, in the package of preset asan, in processes
of some thousands each. An input that crashes its process is told with the seed that makes it again.
The last line printed counts the processes.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import fuzz_operators

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "test" / "serialization" / "hostile_checkpoints.py"
SLICE_SECONDS = 30


def environment(release: bool) -> dict[str, str]:
    if not release:
        return fuzz_operators.environment()
    build = ROOT / "build" / "release"
    return {
        **os.environ,
        "MICA_BUILD_DIR": str(build),
        "PYTHONPATH": str(build / "python"),
        "OMP_NUM_THREADS": "1",
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("seconds", nargs="?", type=float, default=60)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**9))
    parser.add_argument("--count", type=int, default=0, help="so many inputs of this seed, and no more")
    parser.add_argument("--release", action="store_true", help="in the package of preset release")
    options = parser.parse_args()
    end = time.monotonic() + options.seconds
    passed = failed = made = 0
    seed = options.seed
    while time.monotonic() < end and (not options.count or made == 0):
        with tempfile.NamedTemporaryFile("r") as log:
            left = min(SLICE_SECONDS, end - time.monotonic())
            command = [sys.executable, str(PROGRAM), str(seed), str(left), log.name]
            command += [str(options.count)] if options.count else []
            try:
                run = subprocess.run(
                    command,
                    env=environment(options.release),
                    capture_output=True,
                    text=True,
                    timeout=left + 120,
                )
                status, output, said = run.returncode, run.stdout, run.stderr
            except subprocess.TimeoutExpired:
                status, output, said = -9, "", "The process hung."
            number = log.read().strip() or str(seed)
        made += int(output.rsplit(" inputs", 1)[0].split()[-1]) if " inputs" in output else 1
        if status == 0:
            passed += 1
        else:
            failed += 1
            print(
                f"FAILED, status ({status}), last input: --seed {number} --count 1\n{output}\n{said[-3000:]}",
                flush=True,
            )
        seed += 10**6
    print(f"({made}) inputs from seed ({options.seed}) on")
    print(f"{passed} passed, {failed} failed")
    return int(failed > 0 or not passed)


if __name__ == "__main__":
    sys.exit(main())
