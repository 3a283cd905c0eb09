"""The command `mica conformance`: its options, what it prints, and its exit status."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

import mica
from mica.conformance import expectations
from mica.conformance.kit import GROUPS, conform
from mica.conformance.results import FAILS, PASSES, UNSUPPORTED, Report

_SHOWN = 20  # failures on the terminal; the report has them all


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options."""
    words = {"type": lambda text: [w for w in text.split(",") if w]}
    parser.add_argument("--device", required=True, help='the device: "acme.npu" or "acme.npu:1"')
    parser.add_argument(
        "--plugin", action="append", default=[], metavar="PATH", help="open this plugin first"
    )
    parser.add_argument("--ops", **words, help="only these operators: add,mul.Tensor")
    parser.add_argument("--dtypes", **words, help="only these dtypes: float32,int64")
    parser.add_argument("--checks", **words, help=f"only these of {','.join(GROUPS)}")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="so many operators at once")
    parser.add_argument("--report", metavar="HTML", help="write a page with everything")
    parser.add_argument("--json", metavar="JSON", help="write everything as JSON")
    parser.add_argument(
        "--expected", metavar="FILE", help="the list of what is unsupported; a surprise fails"
    )
    parser.add_argument("--write-expected", metavar="FILE", help="write that list")


def _progress(done: int, total: int) -> None:
    if sys.stderr.isatty():
        end = "\r" if done + 1 < total else "\r\033[K"
        print(f"\r{done + 1} of {total} operators", end=end, file=sys.stderr, flush=True)


def _print(report: Report) -> None:
    for row in report.rows:
        for failure in row.failures[:1]:
            print(f"fails: {' '.join(filter(None, (row.check, row.name, row.dtype)))}: {failure.detail}")
            print(f"    {failure.line}")
    for sentence in report.surprises[:_SHOWN]:
        print(f"surprise: {sentence}")
    if len(report.surprises) > _SHOWN:
        print(f"and {len(report.surprises) - _SHOWN} surprises more")
    for m in report.measurements:
        print(f"{m.name:<34}{m.nanoseconds / 1000:>12.2f} µs  {m.note}")
    cases = sum(row.cases for row in report.rows)
    counts = ", ".join(
        f"{report.count(v)} {w}" for v, w in ((PASSES, "pass"), (FAILS, "fail"), (UNSUPPORTED, "unsupported"))
    )
    print(f"{report.device}: {len(report.rows)} rows ({cases} cases): {counts}")


def run(arguments: argparse.Namespace) -> int:
    """Runs the kit; 1 when a row fails or surprises."""
    for word in arguments.checks or []:
        if word not in GROUPS:
            raise SystemExit(f"The check ({word}) is unknown; there are: {', '.join(GROUPS)}.")
    for path in arguments.plugin:
        mica._C.load_plugin(path)
    # For the processes that checks start.
    named = [os.environ.get("MICA_PLUGINS", ""), *map(os.path.abspath, arguments.plugin)]
    os.environ["MICA_PLUGINS"] = ":".join(filter(None, named))
    try:
        report = conform(
            arguments.device,
            operators=arguments.ops,
            dtypes=arguments.dtypes,
            groups=arguments.checks,
            jobs=max(1, arguments.jobs),
            progress=_progress,
        )
    except (RuntimeError, ValueError) as error:
        raise SystemExit(f"mica conformance: {error}") from None
    if arguments.expected:
        whole = not (arguments.ops or arguments.dtypes or arguments.checks)
        listed = expectations.read(Path(arguments.expected).read_text())
        report.surprises = expectations.surprises(report.rows, listed, whole)
    if arguments.write_expected:
        Path(arguments.write_expected).write_text(expectations.write(report.rows, arguments.device))
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(report.as_json(), indent=1))
    if arguments.report:
        from mica.conformance.page import page

        Path(arguments.report).write_text(page(report))
    _print(report)
    return 1 if report.failed else 0
