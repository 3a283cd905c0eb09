"""Writes docs/reference/gpu.md from the report.json of a run of scripts/gpu/report.py.

gpu_page.py report.json
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "gpu.md"
Rows = dict[str, dict[str, Any]]


def about(report: dict[str, Any]) -> Iterator[str]:
    said = report["about"]
    yield "# On a GPU\n"
    yield (
        "Made by `scripts/gpu_page.py` of one run of `scripts/gpu/report.py` ([how](../concepts/gpu.md)); "
        "libraries that this machine had are run, ROCm never was.\n"
    )
    yield "|  |  |\n|---|---|"
    device = said["device"]
    yield f"| device | {device['name']}, {device['architecture']}, {device['multiprocessors']} multiprocessors |"
    for name in ("date", "nvcc", "Python", "NumPy", "torch"):
        yield f"| {name} | {said[name]} |"


def programs(rows: Rows) -> Iterator[str]:
    yield "\n## Programs\n"
    yield "20 steps from the same weights; the largest relative difference of a loss from the CPU's.\n"
    yield "| program | difference | first loss, last loss | fell back |\n|---|---|---|---|"
    for name, row in rows.items():
        if "largest relative difference" in row:
            first, last = row["first and last loss"]
            back = ", ".join(row["fell back"]) or "nothing"
            yield f"| {name} | {row['largest relative difference']:.1e} | {first:.4f}, {last:.4f} | {back} |"
    accuracy = rows["program"]["accuracy"]
    yield f"\n`examples/digits/train.py --device cuda` reaches an accuracy of {accuracy} in 5 epochs."


def speed(rows: Rows) -> Iterator[str]:
    yield "\n## Speed beside torch\n"
    yield (
        "Both in one process, in turns; medians in microseconds, torch's time over Mica's (above 1: Mica is "
        "faster). Both round float32 to TF32 in convolutions, and not in products, as they do unless told otherwise. "
        "Where no size is said, operands have 256 MB.\n"
    )
    yield "| row | Mica | torch | torch / Mica | |\n|---|---|---|---|---|"
    for name, row in rows.items():
        if row["status"] == "passed" and "torch" in row and isinstance(row["torch"], dict):
            mica, torch = row["mica"], row["torch"]
            rate = next((f"{mica[u]:,.0f} {u}" for u in ("GB/s", "TFLOP/s") if u in mica), "")
            ratio = torch["us median"] / mica["us median"]
            yield f"| {name} | {mica['us median']:,.1f} | {torch['us median']:,.1f} | {ratio:.2f} | {rate} |"


def conformance(rows: Rows) -> Iterator[str]:
    yield "\n## Conformance\n"
    yield "| dtype | rows pass | fail | unsupported | operators pass | partly | fall back to the CPU |"
    yield "|---|---|---|---|---|---|---|"
    for name, row in rows.items():
        if row["status"] != "passed":
            continue
        r, o = row["rows"], row["operators"]
        note = f" ({row['not run']} of {row['tasks']} not run)" if row["not run"] else ""
        yield (
            f"| {name}{note} | {r['passes']} | {r['fails']} | {r['unsupported']} | {o['passed']} "
            f"| {o['partly supported']} | {o['fell back']} |"
        )
    back = ", ".join(f"`{name}`" for name in rows["float32"]["fell back"])
    yield f"\nOperators of float32 that fall back: {back}."


def others(sections: dict[str, Any]) -> Iterator[str]:
    yield "\n## Tests, memory, errors, sanitizer\n"
    yield "| section | rows passed | rows failed | rows not done in their time |\n|---|---|---|---|"
    for name in [n for n in ("hello", "tests", "memory", "errors", "sanitizer") if n in sections]:
        status = [row["status"] for row in sections[name]["rows"].values()]
        passed, failed = status.count("passed"), status.count("failed") + status.count("crashed")
        yield f"| {name} | {passed} | {failed} | {len(status) - passed - failed} |"
    tests = sections.get("tests", {"rows": {}})["rows"].items()
    said = [f"{name} ({row.get('said') or row['error']})" for name, row in tests]
    if said:
        yield "\nThe tests of test/gpu, by file: " + "; ".join(said) + "."
    if "sanitizer" in sections:
        yield (
            "\n`compute-sanitizer --tool memcheck` printed the first 30 errors of each of its two runs: all are "
            "`cuPointerGetAttribute`'s answer for memory of the host, which is how pageable memory is known."
        )


def main() -> None:
    report = json.loads(Path(sys.argv[1]).read_text())
    sections = report["sections"]
    lines = [
        *about(report),
        *programs(sections["digits"]["rows"]),
        *speed(sections["speed"]["rows"]),
        *conformance(sections["conformance"]["rows"]),
        *others(sections),
    ]
    PAGE.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
