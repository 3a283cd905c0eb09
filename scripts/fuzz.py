"""Runs every fuzz target of the fuzz preset for a minute (or `fuzz.py <seconds>`), side by side.

Programs are build/fuzz/bin/*_fuzz; a dictionary test/fuzz/<name>.dict is used when
there is one. What a run finds interesting stays in build/fuzz/corpus/<name>, where
the next one starts. An input that crashes is left in build/fuzz/crashes and named.
The last line printed counts the targets.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "fuzz"
FEWEST_RUNS = 1000


def fuzz(program: Path, seconds: int) -> bool:
    """True if the target ran its time and found nothing."""
    corpus = BUILD / "corpus" / program.name
    crashes = BUILD / "crashes"
    corpus.mkdir(parents=True, exist_ok=True)
    crashes.mkdir(exist_ok=True)
    dictionary = ROOT / "test" / "fuzz" / f"{program.name.removesuffix('_fuzz')}.dict"
    options = [f"-max_total_time={seconds}", "-max_len=1024", "-timeout=10", "-print_final_stats=1"]
    options += [f"-artifact_prefix={crashes}/{program.name}-"]
    options += [f"-dict={dictionary}"] if dictionary.is_file() else []
    result = subprocess.run(
        [str(program), *options, str(corpus)], capture_output=True, text=True, errors="replace", check=False
    )
    executed = re.search(r"number_of_executed_units:\s*(\d+)", result.stderr)
    runs = int(executed[1]) if executed else 0
    print(f"{program.name}: ({runs}) inputs in ({seconds}) s, exit status ({result.returncode})")
    if result.returncode != 0:
        print("\n".join(result.stderr.splitlines()[-40:]))
    return result.returncode == 0 and runs >= FEWEST_RUNS


def main() -> int:
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    programs = sorted((BUILD / "bin").glob("*_fuzz"))
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        results = list(threads.map(lambda program: fuzz(program, seconds), programs))
    print(f"{results.count(True)} passed, {results.count(False)} failed")
    return 0 if results and all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
