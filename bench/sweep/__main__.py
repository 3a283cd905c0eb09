"""`./dev bench sweep`: every operator beside torch, by layout, dtype, direction, size and threads.

Without options a fixed part of the grid, some 6,000 cells at 512 x 512 on one thread; `--all` runs the whole
of it, seven hundred thousand. `--ops softmax 'linalg.*'`, `--layout`, `--dtype`, `--direction`, `--size` and `--threads`
choose words of one axis each, and all cells of them. Each cell's result is written down at once, so that
`--resume` goes on where a run stopped, and `--seconds` stops one. Prints what is slow, and writes
a table beside them in build/bench; `--write` also the page of the reference. `--report` runs nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path += [str(Path(__file__).parent), str(ROOT / "test" / "opinfo")]

import cells  # noqa: E402
import report  # noqa: E402
from workers import run  # noqa: E402

PAGE = ROOT / "docs" / "reference" / "speed.md"
# Of the cells at 512 x 512 on one thread.
_SHARE = 0.05


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="./dev bench sweep", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ops", nargs="+", default=[], help="patterns of OpInfo names")
    parser.add_argument("--dtype", nargs="+", default=[], choices=cells.DTYPES)
    parser.add_argument("--layout", nargs="+", default=[], choices=cells.LAYOUTS)
    parser.add_argument("--direction", nargs="+", default=[], choices=cells.DIRECTIONS)
    parser.add_argument("--size", nargs="+", default=[], choices=list(cells.SIZES))
    parser.add_argument("--threads", nargs="+", default=[], choices=cells.THREADS)
    parser.add_argument("--all", action="store_true", help="the whole grid, or all of what is chosen")
    parser.add_argument("--share", type=float, help="of the cells, drawn by their names")
    parser.add_argument("--resume", action="store_true", help="keep what was measured, and go on")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so many")
    parser.add_argument("--report", action="store_true", help="only write the table anew")
    parser.add_argument(
        "--out", type=Path, default=ROOT / "build" / "bench", help="the folder that it writes"
    )
    parser.add_argument("--write", action="store_true", help="write the reference's page, too")
    parser.add_argument(
        "--note", default="", help="a sentence for the table about the run, as the machine's load"
    )
    return parser.parse_args()


def wanted(options: argparse.Namespace) -> cells.Wanted:
    axes = (options.ops, options.dtype, options.layout, options.direction, options.size, options.threads)
    if options.all or any(axes):
        return cells.Wanted(*map(tuple, axes), share=options.share or 1.0)
    return cells.Wanted(sizes=("512x512",), threads=("one",), share=options.share or _SHARE)


def measured(results: Path) -> dict[str, report.Row]:
    """What the file's whole lines hold, by the cells' names."""
    lines = results.read_text().splitlines(keepends=True) if results.exists() else []
    rows = [json.loads(line) for line in lines if line.strip() and line.endswith("\n")]
    return {row["cell"]: row for row in rows}


def _drop_cut_line(results: Path) -> None:
    """A run that was killed may have left half a line, which would spoil the next one."""
    if results.exists():
        os.truncate(results, results.read_bytes().rfind(b"\n") + 1)


def main() -> int:
    options = arguments()
    options.out.mkdir(parents=True, exist_ok=True)
    results, table = options.out / "sweep.jsonl", options.out / "sweep.md"
    if not options.report:
        if not options.resume:
            results.unlink(missing_ok=True)
        _drop_cut_line(results)
        known = measured(results)
        end = time.monotonic() + options.seconds
        with results.open("a") as file:
            for cell, row in run(cells.cells(wanted(options)), known, end):
                file.write(json.dumps({"cell": cell.name, **row}) + "\n")
                file.flush()
    rows = list(measured(results).values())
    if not rows:
        print("No cell was measured: no operator of the database has what was chosen.")
        return 1
    text = report.page(rows, options.note)
    table.write_text(text)
    if options.write:
        PAGE.write_text(text)
    print(report.summary(rows))
    print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
