"""Runs several commands side by side, one argument each, and shows what each printed.

    python scripts/beside.py "python scripts/fuzz_operators.py 300" "python scripts/fuzz_checkpoints.py 300"

Each command ends with a line "N passed, M failed"; the last line printed is their sum. A
command that ends with another status than 0 and counts no failure counts as one.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import time


def main() -> int:
    commands = sys.argv[1:]
    started = [
        subprocess.Popen(
            shlex.split(c), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
        )
        for c in commands
    ]
    begin = time.monotonic()
    passed = failed = 0
    for command, process in zip(commands, started):
        output, _ = process.communicate()
        counts = re.findall(r"(\d+) passed, (\d+) failed", output)
        wrong = int(counts[-1][1]) if counts else 0
        passed += int(counts[-1][0]) if counts else 0
        failed += max(wrong, int(process.returncode != 0))
        print(
            f"$ {command} (status {process.returncode}, after {time.monotonic() - begin:.0f} s)\n{output}",
            flush=True,
        )
    print(f"{passed} passed, {failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
