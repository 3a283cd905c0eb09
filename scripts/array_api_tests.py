"""Runs the array API consortium's own tests on `mica.array_api`, as the suite `array-api`.

test/array_api/ holds them as an archive: github.com/data-apis/array-api-tests at 55fcc60 with
the parts it reads of github.com/data-apis/array-api at 5f847a3 (MIT licences inside; neither is
on PyPI). They are unpacked into build/array_api. Two lists say what does not pass: skips.txt,
each with the sentence of the standard that permits it, and differs.txt, where a tensor's own
meaning is torch's and an example that shows it may be drawn. Another failure fails, and so does
a share of passes under 99 %; what fails of differs.txt counts against it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HOME = ROOT / "test" / "array_api"
WORK = ROOT / "build" / "array_api"
LEAST = 0.99


def main() -> int:
    with tarfile.open(next(HOME.glob("*.tar.xz"))) as archive:
        archive.extractall(WORK, filter="data")
    examples = sys.argv[1] if len(sys.argv) > 1 else "50"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "ignore", "--tb=line"]
    command += ["-c", "pytest.ini", "--rootdir", ".", "--disable-deadline", "--hypothesis-derandomize"]
    command += ["--max-examples", examples, "--skips-file", str(HOME / "skips.txt")]
    command += ["--xfails-file", str(HOME / "differs.txt"), "array_api_tests"]
    environment = {**os.environ, "ARRAY_API_TESTS_MODULE": "mica.array_api"}
    result = subprocess.run(
        command, cwd=WORK / "array-api-tests", env=environment, capture_output=True, text=True, check=False
    )
    summary = next((line for line in reversed(result.stdout.splitlines()) if " passed" in line), "")
    counts = {
        word: int(n)
        for n, word in re.findall(r"(\d+) (passed|failed|xfailed|xpassed|skipped|error)", summary)
    }
    passed = counts.get("passed", 0) + counts.get("xpassed", 0)
    wrong = counts.get("failed", 0) + counts.get("error", 0)
    run = passed + wrong + counts.get("xfailed", 0)
    share = passed / run if run else 0.0
    if wrong or share < LEAST or result.returncode not in (0, 1):
        print(result.stdout[-12000:], result.stderr[-2000:])
    print(summary)
    print(f"{share:.2%} of {run} pass; {counts.get('skipped', 0)} are skipped, as the standard permits")
    failed = wrong if share >= LEAST else max(wrong, 1)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or result.returncode != 0 else 0


if __name__ == "__main__":
    sys.exit(main())
