"""`./dev bench [ops | train | data]`: Mica beside NumPy and torch in one process, interleaved.

Without a name, the budgets of docs/design.md; `ops`, operators by size, dtype and layout
against torch, with the peak bytes of both, the geometric mean of each size and the rows that lose;
`train`, a training step of each program of examples/pytorch; `data`, loaders with worker processes
and checkpoints. Prints a table, and writes a JSON and a picture to build/bench. Options: --only TEXT
(rows whose group or name contains it), --out FOLDER.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import os
import re
import statistics
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

# NumPy's OpenBLAS reads this when it loads; its rows are of one thread.
os.environ["OPENBLAS_NUM_THREADS"] = "1"
sys.path.insert(0, str(Path(__file__).parent))
ROOT = Path(__file__).resolve().parent.parent
BUILD = Path(os.environ.get("MICA_BUILD_DIR", ROOT / "build" / "release"))


def dispatch_costs() -> dict[str, Any]:
    """Nanoseconds and, with valgrind, instructions of one call, by number of layers."""
    program = BUILD / "bin" / "bench_dispatch"
    times = json.loads(subprocess.run([program], check=True, capture_output=True, text=True).stdout)
    costs = {layers: {"ns": ns, "instructions": None} for layers, ns in times.items()}

    def instructions(calls: int, layers: str) -> int:
        command = [
            "valgrind",
            "--tool=callgrind",
            "--callgrind-out-file=/dev/null",
            program,
            str(calls),
            layers,
        ]
        text = subprocess.run(command, check=True, capture_output=True, text=True).stderr
        found = re.search(r"Collected : (\d+)", text)
        if not found:
            raise RuntimeError(f"valgrind printed no instruction count: {text}")
        return int(found[1])

    try:
        for layers, cost in costs.items():
            cost["instructions"] = (instructions(30000, layers) - instructions(10000, layers)) / 20000
    except FileNotFoundError:
        print("valgrind is not installed: no instruction counts")
    return costs


def import_costs() -> dict[str, float]:
    """Milliseconds and MB that `import mica` adds to Python's own, medians of 7."""
    script = (
        "import time; r = lambda: int(open('/proc/self/statm').read().split()[1]) / 256;"
        "m = r(); t = time.perf_counter(); import {}; print((time.perf_counter() - t) * 1e3, r() - m)"
    )
    out = {}
    for name in ("mica", "torch"):
        runs = []
        for _ in range(7 if name == "mica" else 3):
            text = subprocess.run(
                [sys.executable, "-c", script.format(name)], check=True, capture_output=True, text=True
            )
            runs.append([float(v) for v in text.stdout.split()])
        out[f"{name}_ms"] = statistics.median(r[0] for r in runs)
        out[f"{name}_mb"] = statistics.median(r[1] for r in runs)
    return out


def draw_bytes(axis: Any, results: list[dict[str, Any]]) -> None:
    """Peak bytes of each row, Mica's as bars and the peer's as lines."""
    places = range(len(results))
    axis.barh(places, [max(r.get("mica_bytes") or 0, 1) for r in results], color="tab:blue")
    for i, r in enumerate(results):
        if r.get("peer_bytes"):
            axis.plot([r["peer_bytes"]] * 2, [i - 0.4, i + 0.4], color="black", linewidth=1)
    axis.set(xlabel="Peak bytes of Mica (black: the peer's)", xscale="log", yticks=[])
    axis.set_ylim(len(results) - 0.4, -0.6)


def draw(results: list[dict[str, Any]], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    names = [f"{r['name']}  vs {r['peer']}" for r in results]
    ratios = [r["ratio"] for r in results]
    errors = [[r["ratio"] - r["low"] for r in results], [r["high"] - r["ratio"] for r in results]]
    colors = ["tab:gray" if r["met"] is None else "tab:green" if r["met"] else "tab:red" for r in results]
    with_bytes = [r for r in results if r.get("peer_bytes")]
    size = (13 if with_bytes else 9, 0.32 * len(names) + 1.5)
    figure, axes = plt.subplots(1, 2 if with_bytes else 1, figsize=size, layout="constrained", squeeze=False)
    axis = axes[0][0]
    if with_bytes:
        draw_bytes(axes[0][1], results)
    axis.barh(names, ratios, xerr=errors, color=colors)
    for i, r in enumerate(results):
        if r["goal"]:
            axis.plot([r["goal"], r["goal"]], [i - 0.4, i + 0.4], color="black", linewidth=1)
    axis.axvline(1, color="gray", linestyle=":", linewidth=1)
    axis.set_ylim(len(names) - 0.4, -0.6)
    axis.set(xlabel="Mica's time / peer's time (black: the goal)", xscale="log")
    figure.savefig(path, dpi=120)


def run_rows(rows: Iterable[Any], only: str, with_bytes: bool = False) -> list[dict[str, Any]]:
    """Measures and prints the rows whose group or name contains `only`; `with_bytes`, their peaks too."""
    import memory
    import torch
    from measure import compare

    import mica

    results = []
    print(
        f"{'row':56} {'peer':18} {'mica us':>10} {'peer us':>10} {'ratio':>7} {'quartiles':>15} {'goal':>6}"
        + (f" {'mica peak':>10} {'peer peak':>10}" if with_bytes else "")
    )
    for row in rows:
        if only not in row.group and only not in row.name:
            continue
        mica.set_num_threads(row.threads)
        torch.set_num_threads(row.threads)
        r = compare(row.name, row.mica, row.peer, row.peer_name, row.goal, row.pairs, row.seconds)
        mark = "" if r.met is None else "  met" if r.met else "  MISSED"
        goal = "" if r.goal is None else f"{r.goal:.2f}"
        peaks: dict[str, int] = {}
        if with_bytes and row.group != "noise":
            peaks = {"mica_bytes": memory.mica_peak(row.mica), "peer_bytes": memory.torch_peak(row.peer)}
            mark = "".join(f" {memory.text(p):>10}" for p in peaks.values()) + mark
        print(f"{r.name:56} {r.peer:18} {r.mica_us:10.2f} {r.peer_us:10.2f} {r.ratio:7.3f} {r.low:7.3f}-{r.high:7.3f} {goal:>6}{mark}", flush=True)  # fmt: skip
        results.append(r.as_dict() | peaks | {"group": row.group, "threads": row.threads})
    return results


def operator_rows() -> Iterator[Any]:
    """bench/operator_rows.py as rows; the inputs of a row are made when it is reached."""
    import operator_rows as table
    import torch
    from rows import Row

    import mica

    yield Row("noise", "torch x + y, 4K, against itself (A/A)", *2 * [table.rows()[32].call(torch)], "torch")
    for row in table.rows():
        yield Row(
            row.size, row.name, row.call(mica), row.call(torch), "torch", 1.0, row.threads, pairs=15
        )  # fmt: skip


def summarize(results: list[dict[str, Any]]) -> dict[str, Any]:
    """Geometric means of the ratios by size, and the rows whose lower quartile is above 1.03."""
    means: dict[str, float] = {}
    for group in dict.fromkeys(r["group"] for r in results):
        ratios = [math.log(r["ratio"]) for r in results if r["group"] == group]
        means[group] = math.exp(sum(ratios) / len(ratios))
        print(f"{group:6} {len(ratios):4} rows, torch's time is {1 / means[group]:.2f} times Mica's")
    losing = [r["name"] for r in results if r["low"] > 1.03]
    print(f"{len(losing)} rows lose by more than the noise:", *losing, sep="\n  ")
    more = [r["name"] for r in results if r.get("mica_bytes", 0) > 1.1 * r.get("peer_bytes", 0) + (1 << 16)]
    print(f"{len(more)} rows take more memory than torch, by a tenth and 64 KB:", *more, sep="\n  ")
    return {"geometric_means": means, "losing": losing, "more_memory": more}


def turns_report(table: str, only: str) -> dict[str, Any]:
    """Rows of processes that take turns: of program_rows (train) or data_rows (data)."""
    rows = importlib.import_module({"train": "program_rows", "data": "data_rows"}[table])
    found = []
    for r in rows.results(only):
        print(f"{r.name:50} mica {r.mica_us / 1e3:9.2f} ms  torch {r.peer_us / 1e3:9.2f} ms  ratio {r.ratio:.3f}, {r.low:.3f}-{r.high:.3f}", flush=True)  # fmt: skip
        found.append(r.as_dict())
    mean = math.exp(sum(math.log(r["ratio"]) for r in found) / len(found))
    print(f"geometric mean: torch's time is {1 / mean:.2f} times Mica's")
    return {"rows": found, "geometric_mean": mean}


def write(report: dict[str, Any], path: Path) -> None:
    """The JSON and the picture of a report."""
    path.with_suffix(".json").write_text(json.dumps(report, indent=1))
    draw(report["rows"], path.with_suffix(".png"))
    print(f"written: {path.with_suffix('.json')}, {path.with_suffix('.png')}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", nargs="?", choices=["budgets", "ops", "train", "data"], default="budgets")
    parser.add_argument("--only", default="")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "bench")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)

    if args.table == "ops":
        results = run_rows(operator_rows(), args.only, with_bytes=True)
        report: dict[str, Any] = {"rows": results} | summarize(results)
        write(report, args.out / "operators")
        return

    if args.table in ("train", "data"):
        write(turns_report(args.table, args.only), args.out / args.table)
        return

    from rows import all_rows

    results = run_rows(all_rows(), args.only)
    report = {"rows": results}
    if not args.only:
        report["dispatch"] = dispatch_costs()
        for layers, cost in report["dispatch"].items():
            count = "" if cost["instructions"] is None else f", {cost['instructions']:.0f} instructions"
            print(f"C++ dispatch to an empty kernel, layers: {layers}: {cost['ns']:.2f} ns{count}")
        report["import"] = import_costs()
        print(
            "import: mica {mica_ms:.0f} ms, {mica_mb:.0f} MB; torch {torch_ms:.0f} ms, {torch_mb:.0f} MB".format(
                **report["import"]
            )
        )
    write(report, args.out / "bench")


if __name__ == "__main__":
    main()
