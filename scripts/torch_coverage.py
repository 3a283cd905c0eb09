"""Writes docs/reference/torch_coverage.md: every name of torch that programs use, and what it is on Mica.

The names and how often each is used are test/data/torch_api_usage.tsv. What a name is says the shim's own
table (mica.torch.describe). A name counts as tested only when a test calls it in torch and in Mica and
compares: it has a row in test/torch_names/names*.txt (test_names_torch.py evaluates it in both, and again with the
name taken away from Mica, where the row must fail), is a module of modules.txt, or is an operator that
the conformance page ran. `--check` fails where the page is out of date; the last line printed counts.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections import Counter
from pathlib import Path

from mica.torch import describe

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reference" / "torch_coverage.md"
USAGE = ROOT / "test" / "data" / "torch_api_usage.tsv"
NOT_TORCHS = ROOT / "test" / "data" / "torch_api_foreign.txt"
NAMES = ROOT / "test" / "torch_names"
MODULES = ROOT / "test" / "nn" / "modules.txt"
# Left out of the figures, as the aim says: not dense tensors of one process.
ASIDE = re.compile(
    r"sparse|quant|\.jit|distributed|_c10d|coo|csr|csc|bsr|\.ao\.|coalesce|_indices|qint|to_local|full_tensor|nested"
    r"|DistributedDataParallel"
)
FOREIGN = "not a name of torch 2.13"

_HEAD = """\
# torch's names on Mica

`python scripts/torch_coverage.py` wrote this page. The names, and how often each is written, come
from public programs ({names} names, `test/data/torch_api_usage.tsv`).

- *Present*: Mica's own, and it acts.
- *Tested*: a test calls the name in torch 2.13 and in Mica and compares what comes of it: a row of
  `test/torch_names/names*.txt` (which must fail when the name is taken away), a module of
  `test/nn/modules.txt`, or an operator that the [conformance page](conformance.md) ran as a function
  or in place. A name that stands only in the text of a test does not count.
- *Inert*: there so that programs can import it; it raises when it would have to act.
- *Answers*: an inert name that only asks, marks or is a setting, and a row shows that it answers as
  torch's build without a GPU does. Counted apart from both.

Names of sparse, quantized, distributed and scripted programs are left aside, and so are names that
torch 2.13's CPU build has not. Shares are of the names that are not left aside; the second table
leaves out the inert ones too, as names that no program can call.

"""
_TABLE = "| | names | share | uses | share |\n|---|---|---|---|---|\n"


def _tested() -> set[str]:
    """Names that a test calls beside torch: rows of names*.txt, modules of modules.txt, conforming operators."""
    named = set()
    for file in sorted(NAMES.glob("names*.txt")):
        named |= {line.split("\t")[0] for line in file.read_text().splitlines() if not line.startswith("#")}
    modules = MODULES.read_text()
    named |= {f"torch.nn.{name}" for name in re.findall(r"^(\w+)\(", modules, re.M)}
    page = (ROOT / "docs" / "reference" / "conformance.md").read_text()
    for line in re.findall(r"^\| `.*", page, re.M):
        name = re.split(r"[:` ]", line[3:])[0]
        method = (
            f"Tensor.{name}" if name.startswith("__") or name in ("H", "T", "mH", "mT") else f"torch.{name}"
        )
        named |= {method, f"Tensor.{name}_"} if line.split("|")[7].strip() else {method}
    return named


def table() -> list[tuple[str, int, str, str]]:
    """(name, uses, kind, note) of every name, most used first."""
    tested = _tested()
    foreign = set(NOT_TORCHS.read_text().splitlines())
    rows = []
    for line in USAGE.read_text().splitlines():
        name, count = line.split("\t")
        kind, detail = describe(name)
        if name in foreign or kind == "absent" and detail == FOREIGN:
            kind, detail = "foreign", ""
        elif kind == "present" and name in tested:
            kind = "tested"
        elif kind == "inert" and name in tested:
            kind = "answers"
        elif kind == "absent":
            detail = "" if "has no" in detail or "no attribute" in detail else detail
        rows.append((name, int(count), kind, detail))
    return rows


def _figures(rows: list[tuple[str, int, str, str]]) -> tuple[list[str], Counter[str]]:
    uses: Counter[str] = Counter()
    names: Counter[str] = Counter()
    for name, count, kind, _ in rows:
        key = kind if kind == "foreign" else f"aside {kind}" if ASIDE.search(name) else kind
        uses[key] += count
        names[key] += 1
    every = ("tested", "present", "answers", "inert", "absent")
    acting = ("tested", "present", "absent")
    lines = []

    def row(title: str, keys: tuple[str, ...], of: tuple[str, ...]) -> None:
        n, u = sum(names[k] for k in keys), sum(uses[k] for k in keys)
        all_names, all_uses = sum(names[k] for k in of), sum(uses[k] for k in of)
        shares = (f"{100 * n / all_names:.2f} %", f"{100 * u / all_uses:.2f} %") if of else ("", "")
        lines.append(f"| {title} | {n} | {shares[0]} | {u} | {shares[1]} |")

    row("present and tested", ("tested",), every)
    row("the same, and inert names that answer as torch's", ("tested", "answers"), every)
    row("present", ("tested", "present"), every)
    row("present or inert", ("tested", "present", "answers", "inert"), every)
    row("inert", ("answers", "inert"), every)
    row("absent", ("absent",), every)
    row("left aside: present", ("aside tested", "aside present"), ())
    row("left aside: inert", ("aside inert", "aside answers"), ())
    row("left aside: absent", ("aside absent",), ())
    row("not names of torch 2.13", ("foreign",), ())
    lines.append("\nWithout the inert names:\n\n" + _TABLE.rstrip())
    row("present and tested", ("tested",), acting)
    row("present", ("tested", "present"), acting)
    return lines, names


def page() -> tuple[str, Counter[str]]:
    """The page, and how many names are of each kind."""
    rows = table()
    lines, names = _figures(rows)
    text = _HEAD.format(names=len(rows)) + _TABLE + "\n".join(lines) + "\n"
    for kind, title in (
        ("absent", "Absent"),
        ("inert", "Inert"),
        ("answers", "Inert, answering as torch's CPU build"),
        ("present", "Present, not tested beside torch"),
        ("tested", "Present and tested"),
    ):
        found = [r for r in rows if r[2] == kind]
        text += f"\n## {title}\n\n"
        text += (
            ", ".join(f"`{n}` {c}" + (f" ({d})" if d and kind == "absent" else "") for n, c, _, d in found)
            + "\n"
        )
    return text, names


def main() -> int:
    """Writes the page, or with --check says whether it is up to date."""
    warnings.simplefilter("ignore")
    text, names = page()
    if "--check" in sys.argv:
        if not PAGE.exists() or PAGE.read_text() != text:
            print(f"{PAGE.relative_to(ROOT)} is out of date; run scripts/torch_coverage.py")
            return 1
    else:
        PAGE.write_text(text)
    print("\n".join(line for line in text.splitlines() if line.startswith("|")))
    print(f"{sum(names.values())} passed, 0 failed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
