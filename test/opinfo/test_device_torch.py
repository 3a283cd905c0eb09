"""`--device`: Mica's side of the operator database on devices from outside, with every sample of some operators."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SIMT = Path(os.environ.get("MICA_BUILD_DIR", ROOT / "build" / "release")) / "simt" / "mica_simt.so"


@pytest.mark.parametrize("device", ["late", "simt"])
def test_operators_agree_on_a_device(device: str, request: pytest.FixtureRequest) -> None:
    plugin = SIMT if device == "simt" else request.getfixturevalue("late_device")
    names = ["add", "arange", "cumsum", "gather"]
    options = ["--device", device, "--dtype", "float32", "--processes", "1", "--share", "0.2"]
    run = subprocess.run(
        [sys.executable, str(HERE), *names, *options],
        env={**os.environ, "MICA_PLUGINS": str(plugin)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    lines = [line for line in run.stdout.splitlines() if line.split(":")[0] in names]
    counts = [tuple(map(int, c)) for line in lines for c in re.findall(r"(\d+)/(\d+)", line)]
    assert len(lines) == len(names) and len(counts) > 20
    assert [c for c in counts if c[0] != c[1]] == [], run.stdout


def test_the_cpus_list_is_not_written_from_a_device() -> None:
    run = subprocess.run(
        [sys.executable, str(HERE), "add", "--device", "null", "--suite"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 2 and "--device goes with neither" in run.stderr
