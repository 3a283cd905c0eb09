"""The sweep's table: geometric means by each axis, and the slow cells, worst first."""

from __future__ import annotations

import math
import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import date
from pathlib import Path
from typing import Any

import torch
from measuring import SLOW

import mica

Row = dict[str, Any]
_AXES = ("operator", "dtype", "layout", "direction", "size", "threads")
_SHOWN = 200  # of the slow cells
_SETS = {"AMX": "amx_tile", "AVX-512 with bf16": "avx512_bf16", "AVX-512": "avx512f", "AVX2": "avx2"}


def machine() -> str:
    """The processor's name, its widest instruction set, and how many cores there are."""
    text = Path("/proc/cpuinfo").read_text()
    names = re.findall(r"^model name\s*: (.*)$", text, re.M)
    flags = set("".join(re.findall(r"^flags\s*: (.*)$", text, re.M)[:1]).split())
    instructions = next(
        (name for name, flag in _SETS.items() if flag in flags), "no known vector instructions"
    )
    return f"{names[0] if names else 'an unnamed processor'} ({instructions}), {os.cpu_count()} cores"


def ratio(row: Row) -> float:
    """Mica's time over torch's: the least of the runs, since a slow cell is measured three times."""
    return min(row["ratios"])


def _words(row: Row) -> dict[str, str]:
    return dict(zip(_AXES, row["cell"].rsplit(" ", 5), strict=True))


def _speed(rows: Iterable[Row]) -> float:
    """The geometric mean of Mica's speed over torch's."""
    logs = [-math.log(ratio(r)) for r in rows]
    return math.exp(sum(logs) / len(logs))


def _share(rows: list[Row], times: float) -> str:
    count = sum(ratio(r) > times for r in rows)
    return f"{count} ({100 * count / len(rows):.1f} %)"


def summary(rows: list[Row]) -> str:
    """A few lines."""
    timed = [r for r in rows if "ratios" in r]
    failed = [r for r in rows if "failed" in r]
    lines = [
        f"{len(timed)} cells timed, {len(failed)} failed, {len(rows) - len(timed) - len(failed)} without a meaning."
    ]
    if timed:
        lines.append(
            f"Geometric mean {_speed(timed):.2f} times torch's speed; slower than {SLOW} times torch's time: "
            f"{_share(timed, SLOW)}; than twice: {_share(timed, 2)}."
        )
    worst = sorted(timed, key=ratio, reverse=True)[:10]
    lines += [f"  {ratio(r):8.2f} x  {r['cell']}" for r in worst if ratio(r) > SLOW]
    return "\n".join(lines + [f"  failed: {r['cell']}: {r['failed']}" for r in failed[:10]])


def _by_axis(timed: list[Row], axis: str) -> list[str]:
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in timed:
        groups[_words(row)[axis]].append(row)
    lines = [
        f"| {axis} | cells | times torch's speed | slower than {SLOW} | than 2 |",
        "|---|---|---|---|---|",
    ]
    for word, rows in sorted(groups.items(), key=lambda g: _speed(g[1])):
        lines.append(
            f"| {word} | {len(rows)} | {_speed(rows):.2f} | {_share(rows, SLOW)} | {_share(rows, 2)} |"
        )
    return [*lines, ""]


def page(rows: list[Row], note: str = "") -> str:
    """The whole table, in Markdown; `note` is a sentence about the run."""
    timed = [r for r in rows if "ratios" in r]
    lines = [
        "# Speed beside torch",
        "",
        "Written by `./dev bench sweep --write`. A cell is one operator in one dtype, layout, direction and size; "
        "both libraries run it in one process, in turns, and of each the least time over five rounds counts. A "
        f"cell that is slower than {SLOW} times torch's time is measured three times, and its best ratio stands here.",
        "",
        f"{machine()}; Mica {mica.__version__} beside torch {torch.__version__}; {date.today().isoformat()}."
        + f" {note}".rstrip(),
        "",
        *(line.strip() for line in summary(rows).splitlines()[:2]),
        "",
    ]
    for axis in ("layout", "dtype", "direction", "size", "threads"):
        if len({_words(r)[axis] for r in timed}) > 1:
            lines += _by_axis(timed, axis)
    slow = sorted((r for r in timed if ratio(r) > SLOW), key=ratio, reverse=True)
    lines += [
        "## Slower than torch",
        "",
        "| times torch's time | cell | Mica, us | torch, us |",
        "|---|---|---|---|",
    ]
    for r in slow[:_SHOWN]:
        lines.append(f"| {ratio(r):.2f} | {r['cell']} | {r['mica_us']:.1f} | {r['torch_us']:.1f} |")
    if len(slow) > _SHOWN:
        lines.append(f"\n... and {len(slow) - _SHOWN} more.")
    failed = [r for r in rows if "failed" in r]
    if failed:
        lines += ["", "## Failed", "", *(f"- {r['cell']}: {r['failed']}" for r in failed[:_SHOWN])]
    reasons = Counter(r["left_out"] for r in rows if "left_out" in r)
    lines += ["", "## Cells without a meaning", "", *(f"- {n}: {why}" for why, n in reasons.most_common())]
    return "\n".join(lines) + "\n"
