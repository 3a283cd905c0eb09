"""bench/sweep measures every cell that was asked for once, also when it is stopped, or a cell's process dies."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SWEEP = ROOT / "bench" / "sweep"


def sweep(folder: Path, *options: str) -> tuple[str, list[dict[str, object]]]:
    """What a run of `neg` prints, and the rows that it leaves."""
    command = [sys.executable, str(SWEEP), "--ops", "neg", "--dtype", "float32", "--size", "small", "512x512"]
    command += ["--threads", "one", "--layout", "contiguous", "number", "channels_last", *options]
    run = subprocess.run([*command, "--out", str(folder)], capture_output=True, text=True, check=True)
    return run.stdout, [json.loads(line) for line in (folder / "sweep.jsonl").read_text().splitlines()]


def test_every_cell_is_there_once_and_resuming_adds_none(tmp_path: Path) -> None:
    text, rows = sweep(tmp_path)
    names = [row["cell"] for row in rows]
    # forward, in place, out and three gradients by three layouts and two sizes
    assert len(set(names)) == len(names) == 6 * 3 * 2
    kinds = {row["cell"]: next(iter(set(row) - {"cell"} & {"left_out", "ratios"}), "") for row in rows}
    assert kinds["neg float32 contiguous forward small one"] == "ratios"
    assert kinds["neg float32 number in_place 512x512 one"] == "left_out"  # torch refuses to write one number
    assert "failed: " not in text and " 0 failed" in text
    file = tmp_path / "sweep.jsonl"
    file.write_bytes(file.read_bytes()[:-5])  # as a run that is killed leaves it
    resumed = sweep(tmp_path, "--resume")[1]
    assert resumed[:-1] == rows[:-1] and resumed[-1]["cell"] == rows[-1]["cell"]


def printed(program: str) -> str:
    """What a program prints that imports the sweep, in a process of its own: torch's database changes torch's settings."""
    start = f"import sys\nsys.path += [{str(SWEEP)!r}, {str(ROOT / 'test' / 'opinfo')!r}]\n"
    return subprocess.run(
        [sys.executable, "-c", start + program], capture_output=True, text=True, check=True
    ).stdout


def test_a_grown_sample_has_about_the_elements_that_its_cell_says() -> None:
    program = """
import operands, scope
from cells import Cell
for name in ("softmax", "flip", "nn.functional.conv2d"):
    cell = Cell(name, "float32", "contiguous", "forward", "512x512", "one")
    first = operands.Operands(scope.entries([name])[0]).of(cell)[0][0]
    print(first.ndim, first.numel())
"""
    found = [tuple(map(int, line.split())) for line in printed(program).splitlines()]
    for (ndim, numel), wanted in zip(found, (2, 2, 4), strict=True):
        assert ndim >= wanted and abs(numel / (1 << 18) - 1) < 0.1


def test_a_process_that_dies_costs_its_cell_alone() -> None:
    program = """
import os, types, workers
from cells import Cell
def measure(_, cell):
    if cell.layout == "rows":
        os._exit(7)
    return {"left_out": cell.layout}
workers.measure = measure
cells = [Cell("neg", "float32", layout, "forward", "small", "one") for layout in ("number", "rows", "offset")]
for _, row in workers.run([(types.SimpleNamespace(), cells)], {}, float("inf")):
    print(row)
"""
    assert printed(program).splitlines() == [
        "{'left_out': 'number'}",
        "{'failed': 'the process ended with 7'}",
        "{'left_out': 'offset'}",
    ]
