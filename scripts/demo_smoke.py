"""Runs the demo program as a newcomer would and checks what it promises.

Each promise is one test: it ends well, its last line is a test accuracy of at
least 0.98, it says how long it trained, the picture it names exists, and the
explanation names Autograd and cpu with the plugins they came from.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "examples" / "digits" / "train.py"


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        result = subprocess.run(
            [sys.executable, str(PROGRAM), "--out", folder], capture_output=True, text=True, check=False
        )
        picture = re.search(r"^picture of .*: (.*)$", result.stdout, re.M)
        has_picture = picture is not None and Path(picture[1]).stat().st_size > 1000
    output = result.stdout
    lines = output.strip().splitlines() or [""]
    accuracy = re.fullmatch(r"test accuracy (\d\.\d+)", lines[-1])
    seconds = re.search(r"^trained for ([\d.]+) s$", output, re.M)
    promises = {
        "it ends well": result.returncode == 0,
        "its last line is a test accuracy of at least 0.98": accuracy is not None
        and float(accuracy[1]) >= 0.98,
        "it says how long it trained": seconds is not None,
        "the picture exists": has_picture,
        "the explanation names both plugins": "mica_autograd.so" in output and "mica_cpu.so" in output,
    }
    for promise, held in promises.items():
        if not held:
            print(f"not so: {promise}")
    if not all(promises.values()):
        print(output[-3000:], result.stderr[-3000:])
    held_count = sum(promises.values())
    print(f"{held_count} passed, {len(promises) - held_count} failed")
    return 0 if all(promises.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
