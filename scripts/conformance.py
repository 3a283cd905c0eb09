"""Runs the conformance kit on every device of this repository, as the suite `conformance`.

A device is run when test/conformance/<device>.txt lists what it does not support; a row
that fails, or that surprises that list either way, fails. Out-of-tree devices are built
against the installed SDK first. Pages and JSON go to build/conformance. `--write` renews
the lists instead: look at the difference before you keep it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = Path(os.environ.get("MICA_BUILD_DIR", ROOT / "build" / "release"))
INSTALL = ROOT / "build" / "install"  # this and build/examples are shared with scripts/out_of_tree.py
PAGES = ROOT / "build" / "conformance"
LISTS = ROOT / "test" / "conformance"
# Where a device that is not Mica's own comes from: a folder of examples.
EXAMPLES = {"null": "null_device", "opencl": "opencl_device"}
# PoCL compiles a kernel for each expression and dtype: all dtypes would take six minutes.
OPTIONS = {"opencl": ["--dtypes", "float32"]}


def run(*command: str) -> None:
    """Runs a command, and shows its output when it fails."""
    result = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, cwd=ROOT
    )
    if result.returncode != 0:
        print(result.stdout[-6000:])
        sys.exit("0 passed, 1 failed")


def plugin(example: str) -> str:
    """Builds an out-of-tree device and returns its plugin's path."""
    run("cmake", "--install", str(BUILD), "--prefix", str(INSTALL))
    build = ROOT / "build" / "examples" / example
    options = ["-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", f"-DPython_EXECUTABLE={sys.executable}"]
    source = ROOT / "examples" / example
    run("cmake", "-S", str(source), "-B", str(build), f"-DCMAKE_PREFIX_PATH={INSTALL}", *options)
    run("cmake", "--build", str(build))
    return str(next(build.rglob(f"mica_{example.removesuffix('_device')}.so")))


def conform(device: str, write: bool) -> tuple[int, int]:
    """Passed and failed rows of one device."""
    listed, results = LISTS / f"{device}.txt", PAGES / f"{device}.json"
    command = [sys.executable, "-m", "mica", "conformance", "--device", device]
    command += ["--report", str(PAGES / f"{device}.html"), "--json", str(results)]
    command += ["--write-expected" if write else "--expected", str(listed)]
    command += OPTIONS.get(device, [])
    if device in EXAMPLES:
        command += ["--plugin", plugin(EXAMPLES[device])]
    results.unlink(missing_ok=True)
    subprocess.run(command, cwd=ROOT, check=False)
    if not results.exists():
        return 0, 1
    found = json.loads(results.read_text())
    failed = found["counts"]["fails"] + len(found["surprises"])
    return max(len(found["rows"]) - failed, 0), failed


def main() -> int:
    PAGES.mkdir(parents=True, exist_ok=True)
    words = sys.argv[1:]
    write = "--write" in words
    devices = [w for w in words if w != "--write"] or sorted(path.stem for path in LISTS.glob("*.txt"))
    passed = failed = 0
    for device in devices:
        good, bad = conform(device, write)
        passed, failed = passed + good, failed + bad
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
