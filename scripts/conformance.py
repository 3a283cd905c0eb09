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
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from mica.conformance import expectations, kit, operator_checks
from mica.conformance.results import Row, row_from_json

ROOT = Path(__file__).resolve().parent.parent
BUILD = Path(os.environ.get("MICA_BUILD_DIR", ROOT / "build" / "release"))
INSTALL = ROOT / "build" / "install"  # this and build/examples are shared with scripts/out_of_tree.py
PAGES = ROOT / "build" / "conformance"
LISTS = ROOT / "test" / "conformance"
# Where a device that is not Mica's own comes from: a folder of examples.
EXAMPLES = {"null": "null_device", "opencl": "opencl_device"}
# Or a plugin of the build that is not installed.
PLUGINS = {"simt": BUILD / "simt" / "mica_simt.so"}
# A device's runs, by the options that narrow them; without a row here, one run of everything.
# PoCL compiles a kernel for each expression and dtype, a tenth of a second each: one dtype goes
# through everything, and one operator of each way to compute through the others.
_EACH_WAY = (
    "add.Tensor,div.Tensor,eq.Tensor,where.self,clamp_min,exp,sum.dim_IntList,amax,argmax,cumsum,_softmax,mm,"
    "gather,cat,flip,constant_pad_nd,tril,_to_copy,arange.start_step"
)
RUNS = {
    "opencl": [
        ["--dtypes", "float32"],
        ["--dtypes", "int64,bool,float16,bfloat16", "--ops", _EACH_WAY, "--checks", "value"],
    ],
    # Of each kernel's first run two thirds are the compiler's: HALVES stands for two runs, of every other
    # operator each.
    "simt": [
        ["--dtypes", "float32", "--checks", "value,gradient", "--ops", "HALVES"],
        ["--dtypes", "int64,bool,float16,bfloat16", "--ops", _EACH_WAY, "--checks", "value"],
        ["--checks", "runtime"],
    ],
}
# Runs of a device that go side by side.
ABREAST = {"simt": 2}


def runs_of(device: str) -> list[list[str]]:
    """The options of each run of a device."""
    runs = []
    for options in RUNS.get(device, [[]]):
        if "HALVES" not in options:
            runs.append(options)
            continue
        kit.load_checks()
        names = [entry.overload for entry in operator_checks.chosen([])]
        runs += [
            [",".join(half) if o == "HALVES" else o for o in options] for half in (names[::2], names[1::2])
        ]
    return runs


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
    """Passed and failed rows of one device, over all its runs."""
    file = plugin(EXAMPLES[device]) if device in EXAMPLES else PLUGINS.get(device)
    opened = ["--plugin", str(file)] if file else []

    def conform_once(number: int, options: list[str]) -> dict[str, Any]:
        page = PAGES / f"{device}{f'-{number + 1}' if number else ''}"
        results = page.with_suffix(".json")
        command = [sys.executable, "-m", "mica", "conformance", "--device", device, *opened, *options]
        command += ["--report", str(page.with_suffix(".html")), "--json", str(results)]
        command += [] if write else ["--expected", str(LISTS / f"{device}.txt")]
        results.unlink(missing_ok=True)
        subprocess.run(command, cwd=ROOT, check=False)
        return json.loads(results.read_text()) if results.exists() else {}

    passed = failed = 0
    rows: list[Row] = []
    runs = runs_of(device)
    with ThreadPoolExecutor(ABREAST.get(device, 1)) as pool:
        ended = list(pool.map(conform_once, range(len(runs)), runs))
    failed += ended.count({})
    for found in filter(None, ended):
        rows += map(row_from_json, found["rows"])
        wrong = found["counts"]["fails"] + len(found["surprises"])
        passed, failed = passed + max(len(found["rows"]) - wrong, 0), failed + wrong
    if write and all(ended):  # of all runs together: a narrow one knows dtypes that the others lack
        (LISTS / f"{device}.txt").write_text(expectations.write(rows, device))
    return passed, failed


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
