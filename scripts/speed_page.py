"""Puts six rows of `./dev bench` into the README, as a table and as docs/pictures/speed.svg.

    python scripts/speed_page.py --from build/bench/bench.json    # takes the numbers of that run
    python scripts/speed_page.py                                  # writes the table and the picture anew
    python scripts/speed_page.py --check                          # fails where one of them is out of date

docs/reference/speed.json holds the numbers with the machine and the date; table and picture are made
from it, and nobody types a number.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from datetime import date
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
NUMBERS = ROOT / "docs" / "reference" / "speed.json"
PICTURE = ROOT / "docs" / "pictures" / "speed.svg"
README = ROOT / "README.md"
# A row of the benchmark whose peer is torch: what the README calls it.
SHOWN = {
    "x + y, 4 floats": "`x + y`, 4 floats",
    "(x * y).sum().backward()": "`(x * y).sum().backward()`, 4 floats",
    "Adam step, 20 of 16 x 16": "`Adam.step()`, 20 parameters of 16 x 16",
    "ten Linear, batch 1, AdamW step": "training step of ten small `Linear`",
    "softmax": "`softmax`, 64 MB",
    "conv2d 3x3, 64 channels": "`conv2d` 3 x 3, 64 channels",
}
PLACE = re.compile(r"(?<=<!-- speed -->\n).*?(?=<!-- end speed -->)", re.S)


def machine() -> str:
    """The processor's name and how many of its cores there are."""
    names = re.findall(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.M)
    return f"{names[0] if names else 'an unnamed processor'}, {os.cpu_count()} cores"


def taken(report: dict[str, Any]) -> dict[str, Any]:
    """What is kept of a run; raises SystemExit where a row was not run."""
    rows = {row["name"]: row for row in report["rows"] if row["peer"] == "torch"}
    if missing := [name for name in SHOWN if name not in rows]:
        raise SystemExit(f"The run has no row named {missing}; run ./dev bench without --only.")
    kept = ("mica_us", "peer_us", "ratio", "low", "high", "threads")
    return {
        "machine": machine(),
        "date": date.today().isoformat(),
        "rows": [{"name": name} | {key: rows[name][key] for key in kept} for name in SHOWN],
    }


def time_text(microseconds: float) -> str:
    """As 0.42 µs, 57 µs or 12.3 ms."""
    value, unit = (microseconds / 1e3, "ms") if microseconds >= 1e3 else (microseconds, "µs")
    return f"{value:.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"


def table(numbers: dict[str, Any]) -> str:
    """The README's table."""
    lines = ["| | Mica | torch | Mica's share of torch's time |", "|---|---|---|---|"]
    for row in numbers["rows"]:
        times = f"{time_text(row['mica_us'])} | {time_text(row['peer_us'])}"
        lines.append(f"| {SHOWN[row['name']]} | {times} | {row['ratio']:.2f} |")
    said = f"Medians, interleaved in one process, on {numbers['machine']}, {numbers['date']} (`./dev bench`)."
    return "\n".join(lines) + f"\n\n{said}\n"


def picture(numbers: dict[str, Any]) -> str:
    """A bar for each row, as long as Mica's share of torch's time; lines for the quartiles."""
    left, scale, step = 300, 400, 26
    height = step * len(numbers["rows"]) + 44
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="760" height="{height}" viewBox="0 0 760 {height}" '
        'font-family="sans-serif" font-size="13">',
        "  <!-- written by scripts/speed_page.py -->",
        f'  <text x="{left}" y="16">Mica\'s time as a share of torch\'s; the line is torch</text>',
    ]
    for i, row in enumerate(numbers["rows"]):
        y = 28 + i * step
        bar = round(min(row["ratio"], 1.1) * scale, 1)
        low, high = (round(left + min(row[k], 1.1) * scale, 1) for k in ("low", "high"))
        name = SHOWN[row["name"]].replace("`", "")
        lines += [
            f'  <text x="{left - 8}" y="{y + 14}" text-anchor="end">{name}</text>',
            f'  <rect x="{left}" y="{y}" width="{bar}" height="{step - 8}" fill="#3a78b5"/>',
            f'  <path d="M{low} {y + 9}H{high}" stroke="#123" stroke-width="2"/>',
            f'  <text x="{max(high, left + bar) + 6}" y="{y + 14}">{row["ratio"]:.2f}</text>',
        ]
    lines.append(f'  <path d="M{left + scale} 24V{height - 16}" stroke="#a33" stroke-width="2"/>')
    return "\n".join([*lines, "</svg>\n"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--from", dest="run", type=Path, help="the JSON of a run of ./dev bench")
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    if args.run:
        NUMBERS.write_text(json.dumps(taken(json.loads(args.run.read_text())), indent=1) + "\n")
    numbers = json.loads(NUMBERS.read_text())
    page = README.read_text()
    new = {README: PLACE.sub(lambda _: table(numbers), page), PICTURE: picture(numbers)}
    if not args.check:
        for path, text in new.items():
            path.write_text(text)
        return 0
    stale = [str(p.relative_to(ROOT)) for p, text in new.items() if not p.exists() or p.read_text() != text]
    if not PLACE.search(page):
        stale.append("README.md, which has no place for the table")
    if stale:
        print(f"{', '.join(stale)}: out of date; run scripts/speed_page.py")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
