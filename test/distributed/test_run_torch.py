"""Ranks of mica.distributed.run find in their environment what torchrun's find."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

PROGRAM = """
import json, os, sys
names = ("RANK", "LOCAL_RANK", "GROUP_RANK", "ROLE_", "WORLD_SIZE", "LOCAL_WORLD", "GROUP_WORLD", "MASTER_ADDR",
         "TORCHELASTIC_RESTART", "TORCHELASTIC_MAX", "TORCHELASTIC_USE", "OMP_NUM")
own = {k: v for k, v in os.environ.items() if k.startswith(names)}
sys.stdout.write(json.dumps([own, sys.argv[1:]]) + "\\n")  # one write: the ranks share their stdout
sys.exit(int(sys.argv[1]))
"""


def found(library: str, program: Path, status: str) -> tuple[int, list[Any]]:
    command = [sys.executable, "-m", f"{library}.distributed.run", "--nproc-per-node=2"]
    done = subprocess.run([*command, str(program), status], capture_output=True, text=True, timeout=100)
    lines = [line for line in done.stdout.splitlines() if line.startswith("[")]
    return done.returncode, [json.loads(line) for line in lines]


def test_environment_and_exit_status_are_torchruns(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    key = lambda found: found[0]["RANK"]  # noqa: E731
    (ours, mine), (theirs, expected) = (found(library, program, "0") for library in ("mica", "torch"))
    assert ours == theirs == 0
    assert sorted(mine, key=key) == sorted(expected, key=key)
    assert found("mica", program, "5")[0] == found("torch", program, "5")[0] == 1
