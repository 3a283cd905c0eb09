"""What a run found, as a page for docs/reference, a list of expected failures, and totals."""

from __future__ import annotations

import json
from pathlib import Path

from run import CHECKS, Report
from scope import OUT_OF_SCOPE

_TITLES = {"forward": "forward", "gradients": "gradients", "tangents": "forward mode", "layouts": "layouts",
           "kind": "kind", "out": "out=", "inplace": "in place", "meta": "meta", "vmap": "vmap", "errors": "errors",
           "sizes": "sizes"}  # fmt: skip


def totals(reports: list[Report]) -> list[tuple[str, int, int]]:
    """(what, agree, all) for the operators and for each check."""
    there = [r for r in reports if not r.absent]
    rows = [
        ("operators present", len(there), len(reports)),
        ("present with 90 % of their samples", sum(map(_mostly, there)), len(reports)),
    ]
    for check in CHECKS:
        counts = [r.count(check) for r in there]
        rows.append((_TITLES[check], sum(a for a, _ in counts), sum(n for _, n in counts)))
    return rows


def _mostly(report: Report) -> bool:
    agree, total = report.count("forward")
    return agree >= 0.9 * total


def percent(agree: int, total: int) -> str:
    return f"{100 * agree / total:.2f} %" if total else "none"


_OPENING = """\
# Conformance with torch's operator database

`./dev conformance` wrote this page: every entry of torch 2.13's own OpInfo database that is in
scope, in each dtype that torch supports on the CPU and Mica has, on torch's sample inputs.
How a result is judged stands in `test/opinfo/agree.py`; what an operator is free to do
in `test/opinfo/rules.py`, what Mica does otherwise, with its reason, in `test/opinfo/otherwise.py`. In a cell: samples that agree / samples. *layouts*: three in ten
samples again with non-contiguous, offset, expanded or empty inputs. *forward mode*: tangents of the
results for fixed tangents of the inputs, in float32, float64 and complex128. *free strides*: results
whose strides differ from torch's where they may. *meta*: samples and torch's error inputs on the
meta device, which promises the same shapes, strides and dtypes and makes the same refusals.
*errors*: torch's error inputs; the exception is of torch's kind, and its sentence names an argument
and as many of the call's values as torch's does, up to two (`test/opinfo/sentences.py`).
"""


def page(reports: list[Report]) -> str:
    """The reference page."""
    lines = [_OPENING, "| what | agree | of | share |", "|---|---|---|---|"]
    lines += [f"| {what} | {a} | {n} | {percent(a, n)} |" for what, a, n in totals(reports)]
    lines += ["", "Left out: " + "; ".join(f"`{p}` ({why})" for p, why in OUT_OF_SCOPE.items()) + "."]
    lines += ["", "## Operators", ""]
    lines += ["| operator | " + " | ".join(_TITLES[c] for c in CHECKS) + " | free strides |"]
    lines += ["|---" * (len(CHECKS) + 2) + "|"]
    lines += [_row(r) for r in reports if not r.absent]
    lines += ["", "## Where Mica does otherwise", "", "Counted as agreeing:", ""]
    lines += [f"- `{r.key}`, {n} samples: {why}." for r in reports for why, n in r.excused.items()]
    lines += ["", "## What does not agree", "", _OF_FAILURES]
    lines += [f"- `{r.key}` {c} {d} {n}: {_cell(found)}" for r in reports for c, d, n, found in r.failures]
    lines += ["", "## Absent", "", ", ".join(f"`{r.key}`" for r in reports if r.absent) or "none", ""]
    return "\n".join(lines)


_OF_FAILURES = """\
Every sample above that is not counted as agreeing: the check, the dtype, the sample's number, and what
differs. *Allowed* is four times torch's own error (its largest, in a result that adds), or two units in the
last place.
"""


def _cell(found: str) -> str:
    return found.replace("|", "\\|").replace("<", "\\<")


def _row(report: Report) -> str:
    cells = []
    for check in CHECKS:
        agree, total = report.count(check)
        cells.append(f"{agree}/{total}" if total else "")
    return f"| `{report.key}` | " + " | ".join(cells) + f" | {report.strides or ''} |"


def expectations(reports: list[Report]) -> dict[str, str]:
    """What fails: "operator check" to the dtypes in which some sample does; absence too."""
    found: dict[str, str] = {}
    for r in reports:
        if r.absent:
            found[f"{r.key} absent"] = ""
        for check in CHECKS:
            dtypes = sorted({d for (c, d), n in r.failed.items() if c == check and n})
            if dtypes:
                found[f"{r.key} {check}"] = " ".join(d for d in dtypes if d)
    return found


_LIST_OPENING = """\
# What does not agree with torch's OpInfo database, as `./dev conformance --suite --write` lists it:
# operator, check, and the dtypes in which a sample differs. Both a line too many and one too few fail.
"""


def write_list(path: Path, found: dict[str, str]) -> None:
    path.write_text(_LIST_OPENING + "".join(f"{k}: {v}".rstrip() + "\n" for k, v in sorted(found.items())))


def read_list(path: Path) -> dict[str, str]:
    lines = [line for line in path.read_text().splitlines() if line and not line.startswith("#")]
    pairs = (line.rpartition(":") for line in lines)
    return {key: dtypes.strip() for key, _, dtypes in pairs}


def surprises(found: dict[str, str], expected: dict[str, str]) -> list[str]:
    """What the list does not say, and what it says in vain."""
    worse = [f"{k} fails: {v}, expected: {expected.get(k, 'nothing')}"
             for k, v in found.items() if expected.get(k) != v]  # fmt: skip
    better = [f"{k} is listed, and passes" for k in expected if k not in found]
    return worse + better


def as_json(reports: list[Report]) -> str:
    """Everything, for programs."""
    rows = [
        {
            "operator": r.key,
            "absent": r.absent,
            "seconds": round(r.seconds, 2),
            "strides": r.strides,
            "counts": {c: r.count(c) for c in CHECKS},
            "failures": r.failures,
        }
        for r in reports
    ]
    return json.dumps(rows, indent=1)
