"""What report.py writes for people: rows on one line, tables, and the whole report in Markdown."""

from __future__ import annotations

import json
import math
from typing import Any


def brief(row: dict[str, Any]) -> str:
    """A row on one line."""
    if row["status"] != "passed":
        return f"{row['status']}: {' '.join(str(row.get('error', '')).split())[:230]}"
    if "mica" in row and isinstance(row["mica"], dict):
        sides = [f"{side} {row[side]['us median']} us" for side in ("mica", "torch") if side in row]
        rate = next((f", {row['mica'][u]} {u}" for u in ("GB/s", "TFLOP/s") if u in row["mica"]), "")
        lacking = f", fell back: {', '.join(row['fell back'])}" if row.get("fell back") else ""
        return f"{', '.join(sides)}, ratio {row.get('ratio')}{rate}{lacking}"
    if "operators" in row:
        return f"{row['operators']} rows {row['rows']} not run {row['not run']} in {row['took']} s"
    text = {k: v for k, v in row.items() if k not in ("status", "seconds", "plugins", "traceback")}
    return f"passed {json.dumps(text, default=str)[:230] if text else ''}"


def table(header: list[str], lines: list[list[Any]]) -> str:
    text = [" | ".join(header), " | ".join(["---"] * len(header))]
    text += [" | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in line) for line in lines]
    return "\n".join(f"| {line} |" for line in text) + "\n"


def speed_table(rows: dict[str, Any]) -> str:
    """The numbers of `speed`, the geometric mean of the ratios, and what loses."""
    measured = {name: row for name, row in rows.items() if isinstance(row.get("mica"), dict)}
    lines, ratios, losing = [], [], []
    for name, row in measured.items():
        rate = [
            row[side].get("GB/s", row[side].get("TFLOP/s", "")) if side in row else ""
            for side in ("mica", "torch")
        ]
        apart = row.get("apart")
        lacking = ", ".join(row.get("fell back", {}))
        cells = [row[side]["us median"] if side in row else "" for side in ("mica", "torch")]
        lines.append([name, *cells, row.get("ratio", ""), row.get("ratio of minima", ""), *rate, "" if apart is None else f"{apart:.1e}", lacking])  # fmt: skip
        if row.get("ratio"):
            ratios.append(math.log(row["ratio"]))
            if row["ratio"] > 1.05:
                losing.append((row["ratio"], name))
    text = table(["row", "Mica, µs", "torch, µs", "ratio", "of minima", "Mica, GB/s or TFLOP/s", "torch", "apart", "fell back"], lines)  # fmt: skip
    if ratios:
        text += f"\nGeometric mean of Mica's time / torch's: {math.exp(sum(ratios) / len(ratios)):.3f} over {len(ratios)} rows.\n"
        text += "\nSlower than torch by more than 5 %: " + "; ".join(f"{name} {r:.2f}" for r, name in sorted(losing, reverse=True)) + "\n"  # fmt: skip
    return text


def conformance_text(rows: dict[str, Any]) -> str:
    lines = [
        [name, *(row["operators"].values()), *(row["rows"].values()), row["not run"], row["took"]]
        for name, row in rows.items()
        if "operators" in row
    ]
    header = ["dtype", "operators pass", "fail", "partly supported", "fall back", "rows pass", "fail", "unsupported", "not run", "s"]  # fmt: skip
    text = table(header, lines)
    for name, row in rows.items():
        if "operators" not in row:
            continue
        text += f"\n### {name}\n\nFell back: {', '.join(row['fell back'])}\n\nPartly supported: {', '.join(row['partly supported'])}\n\n"  # fmt: skip
        if row["failures"]:
            text += f"Kinds of failures: {row['kinds of failures']}\n\n"
            text += table(["row", "cases", "detail", "line"], [[f["row"], f["cases"], f["detail"][:200], f"`{f['line'][:220]}`"] for f in row["failures"][:80]])  # fmt: skip
    return text


def markdown(report: dict[str, Any]) -> str:
    """The report for people."""
    text = ["# Mica on a device\n"]
    text.append(table(["", ""], [[k, json.dumps(v) if isinstance(v, (dict, list)) else v] for k, v in report["about"].items()]))  # fmt: skip
    counts = []
    for name, part in report["sections"].items():
        statuses = [row["status"] for row in part["rows"].values()]
        said = ", ".join(f"{statuses.count(s)} {s}" for s in dict.fromkeys(statuses))
        counts.append([name, said, part.get("seconds", ""), part.get("error", "")[:300]])
    text.append(table(["section", "rows", "s", "error"], counts))
    for name, part in report["sections"].items():
        rows = part["rows"]
        text.append(f"\n## {name}\n")
        more = {k: v for k, v in part.items() if k not in ("rows", "seconds", "error")}
        if more:
            text.append(json.dumps(more) + "\n")
        if part.get("error"):
            text.append(f"```\n{part['error']}\n```\n")
        bad = {n: r for n, r in rows.items() if r["status"] not in ("passed", "skipped")}
        for row_name, row in bad.items():
            trace = "\n".join(row.get("traceback", []))
            text.append(f"- **{row_name}**: {row['status']}\n\n```\n{row.get('error', '')}\n{trace}\n```\n")
        if name == "speed":
            text.append(speed_table(rows))
            rows = {n: r for n, r in rows.items() if not isinstance(r.get("mica"), dict)}
        if name == "conformance":
            text.append(conformance_text(rows))
            rows = {n: r for n, r in rows.items() if "operators" not in r}
        fine = [[n, brief(r)] for n, r in rows.items() if n not in bad]
        if fine:
            text.append(table(["row", "result"], fine))
    return "\n".join(text)
