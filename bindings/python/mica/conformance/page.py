"""The report as one HTML page that stands alone: no script, no font, no link to fetch.

A vendor attaches it to a release: the summary first, then what fails with the line that
shows it again, then every operator in every dtype. Colours follow the reader's theme and
every verdict has a sign besides its colour.
"""

from __future__ import annotations

import math
from collections import defaultdict
from html import escape

from mica.conformance import runtime
from mica.conformance.operator_checks import ALL_DTYPES, CHECKS
from mica.conformance.operators import ENTRIES
from mica.conformance.results import FAILS, PASSES, UNSUPPORTED, Report, Row, of_check

_SIGNS = {PASSES: "✓", FAILS: "✗", UNSUPPORTED: "–"}
_SHORT = {"bfloat16": "bf16", "complex64": "c64", "complex128": "c128"}
# Checks that run in one dtype have a column of their own; the others share their dtype's.
_OWN_COLUMN = {"gradient": "gradient", "error": "refusals"}

_SHOWN = 30  # failures that stand open

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2330; --soft: #5c6675; --paper: #fff; --line: #dfe3ea;
  --band: #f5f7fa; --passes: #13773f; --fails: #b3261e; --unsupported: #8a6d00; --tint: #e9f5ee;
  --bad: #fdecea; --pale: #fbf5e0; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e8ee; --soft: #9aa5b4; --paper: #14181f;
  --line: #2c333e; --band: #1b2029; --passes: #5fd08f; --fails: #ff8b80; --unsupported: #e0c35a;
  --tint: #16291f; --bad: #361b1a; --pale: #2d2815; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2.5rem 1.5rem 5rem; max-width: 76rem; background: var(--paper);
  color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .3rem; }
h2 { font-size: 1.15rem; margin: 2.4rem 0 .7rem; }
p { max-width: 46rem; margin: .4rem 0; } .soft { color: var(--soft); }
.tiles { display: flex; flex-wrap: wrap; gap: .8rem; margin: 1.4rem 0; }
.tile { border: 1px solid var(--line); border-radius: 8px; padding: .7rem 1.1rem; min-width: 9.5rem; }
.tile b { display: block; font-size: 1.6rem; line-height: 1.2; font-variant-numeric: tabular-nums; }
.passes { color: var(--passes); } .fails { color: var(--fails); } .unsupported { color: var(--unsupported); }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .28rem .6rem; border-bottom: 1px solid var(--line); vertical-align: top; }
th { font-weight: 600; color: var(--soft); font-size: .82rem; }
td.number, th.number { text-align: right; white-space: nowrap; }
code { font: .86em/1.45 ui-monospace, monospace; overflow-wrap: anywhere; }
.failure { background: var(--bad); border-radius: 8px; padding: .6rem .9rem; margin: .6rem 0; }
details .failure { margin: .6rem .9rem; } .failure code { display: block; margin-top: .35rem; }
details { border: 1px solid var(--line); border-radius: 8px; margin: .6rem 0; overflow-x: auto; }
summary { padding: .55rem .9rem; cursor: pointer; background: var(--band); }
summary b { margin-right: .8rem; } summary span { margin-right: .8rem; white-space: nowrap; }
.matrix td, .matrix th { padding: .16rem .35rem; text-align: center; }
.matrix td:first-child, .matrix th:first-child { text-align: left; padding-left: .9rem; white-space: nowrap; }
.matrix .passes { background: var(--tint); } .matrix .fails { background: var(--bad); font-weight: 700; }
.matrix .unsupported { background: var(--pale); }
.matrix { table-layout: fixed; min-width: 62rem; } .matrix th:first-child { width: 17rem; }
.narrow { max-width: 46rem; } .narrow th { white-space: nowrap; width: 12rem; }
@media print { details > summary { list-style: none; } body { max-width: none; } }
"""


def _worst(rows: list[Row]) -> str:
    verdicts = {row.verdict for row in rows}
    return next(v for v in (FAILS, UNSUPPORTED, PASSES) if v in verdicts)


def _counted(rows: list[Row]) -> str:
    parts = []
    for verdict, word in ((PASSES, "pass"), (FAILS, "fail"), (UNSUPPORTED, "unsupported")):
        if count := sum(row.verdict == verdict for row in rows):
            parts.append(f'<span class="{verdict}">{_SIGNS[verdict]} {count} {word}</span>')
    return "".join(parts)


def _hint(rows: list[Row]) -> str:
    lines = []
    for row in rows:
        text = row.failures[0].detail if row.failures else row.reason
        lines.append(f"{row.check}: {row.passed} of {row.cases} cases pass{'; ' + text if text else ''}")
    return escape("\n".join(lines), quote=True)


def _cell(rows: list[Row]) -> str:
    if not rows:
        return "<td></td>"
    verdict = _worst(rows)
    return f'<td class="{verdict}" title="{_hint(rows)}">{_SIGNS[verdict]}</td>'


def _head(report: Report) -> str:
    verdict = FAILS if report.failed else PASSES
    cases = sum(row.cases for row in report.rows)
    tiles = "".join(
        f'<div class="tile"><b class="{v}">{_SIGNS[v]} {report.count(v):,}</b>{word}</div>'
        for v, word in ((PASSES, "rows pass"), (FAILS, "rows fail"), (UNSUPPORTED, "rows are unsupported"))
    )
    about = "".join(f"<tr><th>{escape(k)}</th><td>{escape(v)}</td></tr>" for k, v in report.about.items())
    sentence = "fails" if verdict == FAILS else "conforms in all that it supports"
    return f"""<h1>Mica conformance: {escape(report.device)}</h1>
<p>This device <b class="{verdict}">{sentence}</b>: {cases:,} cases in {len(report.rows):,} rows.</p>
<div class="tiles">{tiles}</div>
<table class="narrow">{about}</table>"""


def _failures(report: Report) -> str:
    blocks = []
    for row in report.rows:
        if row.failures:
            first = row.failures[0]
            place = " · ".join(filter(None, (row.name, row.check, row.dtype)))
            more = (
                f" <span class=soft>({len(row.failures)} of {row.cases} cases)</span>"
                if row.cases > 1
                else ""
            )
            blocks.append(
                f'<div class="failure"><b>{escape(place)}</b>{more}<br>{escape(first.detail)}'
                f"<code>{escape(first.line)}</code></div>"
            )
    blocks += [f'<div class="failure">{escape(s)}</div>' for s in report.surprises]
    if not blocks:
        return ""
    if len(blocks) > _SHOWN:
        rest = "".join(blocks[_SHOWN:])
        more = f"<b>{len(blocks) - _SHOWN} more</b>"
        blocks = [*blocks[:_SHOWN], f"<details><summary>{more}</summary>{rest}</details>"]
    hint = "<p class=soft>Each line shows its failure again, after <code>from mica.conformance import *</code>.</p>"
    return f"<h2>What fails</h2>{hint}{''.join(blocks)}"


def _device_checks(report: Report) -> str:
    rows = of_check(report.rows, "runtime")
    if not rows:
        return ""
    about: dict[str, str] = defaultdict(str, {c.name: c.about for c in runtime.CHECKS})
    lines = "".join(
        f'<tr><td class="{row.verdict}">{_SIGNS[row.verdict]}&nbsp;{row.verdict}</td><td>{escape(row.name)}</td>'
        f'<td class="soft">{escape(row.failures[0].detail if row.failures else row.reason or about[row.name])}</td>'
        f'<td class="number">{row.seconds:.2f} s</td></tr>'
        for row in rows
    )
    return f"<h2>The device</h2><table>{lines}</table>"


def _measurements(report: Report) -> str:
    if not report.measurements:
        return ""
    lines = "".join(
        f'<tr><td>{escape(m.name)}</td><td class="number">{_time(m.nanoseconds)}</td>'
        f'<td class="soft">{escape(m.note)}</td></tr>'
        for m in report.measurements
    )
    return f'<h2>The speed of the border</h2><p class="soft">Called from Python.</p><table class="narrow">{lines}</table>'


def _time(nanoseconds: float) -> str:
    if math.isnan(nanoseconds):
        return ""
    return f"{nanoseconds / 1e6:.2f} ms" if nanoseconds >= 1e6 else f"{nanoseconds / 1e3:.2f} µs"


def _matrix(report: Report) -> str:
    cells: dict[str, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    classes: dict[str, list[str]] = defaultdict(list)
    for row in report.rows:
        if row.check in CHECKS:
            if row.name not in cells:
                classes[ENTRIES[row.name].op_class].append(row.name)
            cells[row.name][_OWN_COLUMN.get(row.check, row.dtype)].append(row)
    if not cells:
        return ""
    columns = [d for d in ALL_DTYPES if any(d in c for c in cells.values())]
    columns += [c for c in _OWN_COLUMN.values() if any(c in found for found in cells.values())]
    names = "".join(
        f"<th>{_SHORT.get(c, c.replace('float', 'f').replace('uint', 'u').replace('int', 'i'))}</th>"
        for c in columns
    )
    blocks = []
    for op_class in sorted(classes):
        rows = [r for name in classes[op_class] for found in cells[name].values() for r in found]
        lines = "".join(
            f"<tr><td><code>{escape(name)}</code></td>{''.join(_cell(cells[name][c]) for c in columns)}</tr>"
            for name in classes[op_class]
        )
        opened = " open" if _worst(rows) == FAILS else ""
        blocks.append(
            f"<details{opened}><summary><b>{escape(op_class)}</b>{_counted(rows)}</summary>"
            f'<table class="matrix"><tr><th>operator</th>{names}</tr>{lines}</table></details>'
        )
    legend = "".join(f'<span class="{v}">{_SIGNS[v]} {v}</span> · ' for v in _SIGNS).removesuffix(" · ")
    meaning = "; ".join(f"{name}: {c.about}" for name, c in CHECKS.items())
    return (
        f"<h2>Operators</h2><p>{legend}. A cell holds the checks of its dtype (value, inplace, out) over all "
        f"layouts; resting on it says more.</p><p class=soft>{escape(meaning)}.</p>{''.join(blocks)}"
    )


def _reasons(report: Report) -> str:
    found: dict[str, list[str]] = defaultdict(list)
    for row in report.rows:
        if row.verdict == UNSUPPORTED and row.name not in found[row.reason]:
            found[row.reason].append(row.name)
    lines = "".join(
        f"<tr><td>{', '.join(f'<code>{escape(n)}</code>' for n in names)}</td><td>{escape(reason)}</td></tr>"
        for reason, names in sorted(found.items(), key=lambda item: -len(item[1]))
        if names
    )
    if not lines:
        return ""
    return f"<h2>Why rows are unsupported</h2><details><summary><b>What the backend said</b></summary><table>{lines}</table></details>"


def page(report: Report) -> str:
    """The whole page."""
    parts = (_head, _failures, _device_checks, _measurements, _matrix, _reasons)
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Mica conformance: {escape(report.device)}</title><style>{_STYLE}</style></head>
<body>{"".join(part(report) for part in parts)}</body></html>
"""
