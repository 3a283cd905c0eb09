"""What a program can see of torch's types: each program of surface/*.txt prints the same on torch and on
Mica under torch's name, and every public class and function says that it lives where torch's does.

Both run in one process each, in an environment where torch is installed: the shim wins over it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import homes
import pytest

HERE = Path(__file__).resolve().parent / "surface"
FILES = sorted(HERE.glob("*.txt"))
NAMES = [
    f"{file.stem}: {line[3:].strip()}"
    for file in FILES
    for line in file.read_text().splitlines()
    if line.startswith("== ")
]


@pytest.fixture(scope="module")
def printed() -> dict[str, dict[str, str]]:
    """What every program prints, by library."""
    found = {}
    for library, words in (("torch", []), ("mica", ["-m", "mica.torch"])):
        done = subprocess.run(
            [sys.executable, *words, str(HERE / "run.py"), *map(str, FILES)],
            capture_output=True,
            text=True,
            timeout=300,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        assert done.returncode == 0, done.stderr
        found[library] = json.loads(done.stdout)
        print(done.stderr)
    return found


@pytest.mark.parametrize("name", NAMES)
def test_program_prints_the_same(printed: dict[str, dict[str, str]], name: str) -> None:
    assert not printed["torch"][name].startswith("raises"), "a program that torch refuses shows nothing"
    assert printed["mica"][name] == printed["torch"][name]


@pytest.mark.filterwarnings("ignore")
def test_classes_and_functions_live_where_torch_defines_them() -> None:
    from mica._torch_names.homes import home

    assert homes.text() == homes.FILE.read_text(), "run test/torch_names/homes.py --write"
    found = homes.homes()
    assert len(found) > 1000
    shown = {(m, n): h for (m, n), h in found.items() if m == "torch" or h == m or h.startswith(m + ".")}
    assert {item: h for item, h in shown.items() if home(*item) != h} == {}
