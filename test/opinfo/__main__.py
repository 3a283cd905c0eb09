"""`./dev conformance [names...]`: Mica against torch's own operator database.

Without names: every operator, and with `--write` the page docs/reference/conformance.md. Names are
patterns of OpInfo names ("linalg.*", "nn.functional.pad:reflect"). `--device simt` runs Mica's side on
another backend, with every sample. `--check sizes` grows the samples to
the kernels' own sizes, which takes an hour for all. `--suite` runs a fifth of
the samples (all for `kind`), some of them grown, and compares with test/opinfo/expected_failures.txt; `--suite --write` renews that
list, or its lines of the operators named.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"  # before torch and Mica start their threads
os.environ.setdefault("MICA_POISON_MEMORY", "255")  # what a kernel forgets to write is NaN
# With AMX torch rounds sums of bfloat16 in another way.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")

import scope  # noqa: E402
import table  # noqa: E402
from run import CHECKS, Options, Report, run  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reference" / "conformance.md"
LIST = Path(__file__).parent / "expected_failures.txt"
RESULTS = ROOT / "build" / "opinfo" / "results.json"
SUITE_SHARE = 0.2


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev conformance", description=__doc__)
    parser.add_argument("names", nargs="*", help="patterns of OpInfo names; none: all")
    parser.add_argument("--dtype", nargs="+", default=[], choices=scope.DTYPES)
    parser.add_argument("--check", nargs="+", default=[], choices=CHECKS)
    parser.add_argument("--share", type=float, help="of the samples (1; the suite 0.2); at least one is run")
    parser.add_argument("--failures", type=int, default=12, help="shown of each named operator")
    parser.add_argument(
        "--device", default="cpu", help="the backend that Mica's side runs on; MICA_PLUGINS opens it"
    )
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--write", action="store_true", help="write the page and the expected failures")
    parser.add_argument("--suite", action="store_true", help="the suite: compare with the expected failures")
    options = parser.parse_args()
    if options.device != "cpu" and (options.suite or options.write):
        parser.error("the page and the list of expected failures are the CPU's: --device goes with neither")
    return options


def show(report: Report, limit: int) -> None:
    """One operator's line, and its first failures."""
    if report.absent:
        print(f"{report.key}: absent ({report.absent})", flush=True)
        return
    counts = [(c, *report.count(c)) for c in CHECKS]
    cells = "  ".join(f"{c} {a}/{n}" for c, a, n in counts if n)
    print(f"{report.key}: {cells}  ({report.seconds:.1f} s)", flush=True)
    for check, dtype, number, found in report.failures[:limit]:
        print(f"    {check} {dtype} sample {number}: {found}")


def main() -> int:
    options = arguments()
    share = options.share or (SUITE_SHARE if options.suite else 1.0)
    reports: list[Report] = []
    limit = options.failures if options.names else 0

    def done(report: Report) -> None:
        reports.append(report)
        RESULTS.write_text(table.as_json(reports))
        if options.names or any(report.failed.values()) and not options.suite:
            show(report, limit)

    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    chosen = scope.entries(options.names)
    run(
        chosen,
        Options(options.dtype, options.check, share, options.suite, options.device),
        options.processes,
        done,
    )
    reports.sort(key=lambda r: r.key)
    for what, agree, total in table.totals(reports):
        print(f"{what:<36}{agree:>8} of{total:>8}  {table.percent(agree, total)}")
    print(f"{time.monotonic() - start:.0f} s; {RESULTS.relative_to(ROOT)}")
    if options.suite:
        return against_list(reports, options.names, options.write)
    if options.write:
        PAGE.parent.mkdir(parents=True, exist_ok=True)
        PAGE.write_text(table.page(reports))
    return 0


def against_list(reports: list[Report], names: list[str], write: bool) -> int:
    """The suite's verdict: its tally counts operators and checks. With names, theirs alone."""
    found, listed = table.expectations(reports), table.read_list(LIST)
    ran = {r.key for r in reports}
    others = {line: dtypes for line, dtypes in listed.items() if line.rpartition(" ")[0] not in ran}
    if write:
        listed = {**(others if names else {}), **found}
        table.write_list(LIST, listed)
    surprises = table.surprises(found, {k: v for k, v in listed.items() if not names or k not in others})
    print("\n".join(surprises))
    run_checks = sum(1 for r in reports for c in CHECKS if r.count(c)[1])
    print(f"{max(run_checks - len(surprises), 0)} passed, {len(surprises)} failed")
    return 1 if surprises else 0


if __name__ == "__main__":
    sys.exit(main())
