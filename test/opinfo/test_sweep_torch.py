"""bench/sweep measures every cell that was asked for once, also when it is stopped, or a cell's process dies."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).resolve().parents[2]
SWEEP = ROOT / "bench" / "sweep"
sys.path.append(str(SWEEP))


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


def test_a_grown_sample_has_about_the_elements_that_its_cell_says() -> None:
    import operands
    import scope
    from cells import Cell

    for name, wanted in (("softmax", 2), ("flip", 2), ("nn.functional.conv2d", 4)):
        arguments = operands.Operands(scope.entries([name])[0]).of(
            Cell(name, "float32", "contiguous", "forward", "512x512", "one")
        )
        first = arguments[0][0]
        assert first.ndim >= wanted and abs(first.numel() / (1 << 18) - 1) < 0.1


def test_a_process_that_dies_costs_its_cell_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    import workers
    from cells import Cell

    def measure(_: object, cell: Cell) -> dict[str, str]:
        if cell.layout == "rows":
            os._exit(7)
        return {"left_out": cell.layout}

    monkeypatch.setattr(workers, "measure", measure)
    cells = [
        Cell("neg", "float32", layout, "forward", "small", "one") for layout in ("number", "rows", "offset")
    ]
    found = list(workers.run([(SimpleNamespace(), cells)], {}, float("inf")))
    assert [row for _, row in found] == [
        {"left_out": "number"},
        {"failed": "the process ended with 7"},
        {"left_out": "offset"},
    ]
