"""Writes docs/reference/torch_coverage.md: every name of torch that programs use, and what it is on Mica.

The names and how often each is used are test/data/torch_api_usage.tsv. What a name is says the shim's own
table (mica.torch.describe). A present name counts as tested when a test calls it beside torch: as a row of
test/oracle/names.txt or modules.txt, in a program of another oracle test, or as an operator of the
conformance page. `--check` fails where the page is out of date; the last line printed counts.
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
ORACLE = ROOT / "test" / "oracle"
# Left out of the figures, as the aim says: not dense tensors of one process.
ASIDE = re.compile(
    r"sparse|quant|\.jit|distributed|_c10d|coo|csr|csc|bsr|\.ao\.|coalesce|_indices|qint|to_local|full_tensor|nested"
)
FOREIGN = "not a name of torch 2.13"

_HEAD = """\
# torch's names on Mica

`python scripts/torch_coverage.py` wrote this page. The names, and how often each is written, come
from public programs ({names} names, `test/data/torch_api_usage.tsv`). *Present*: Mica's own.
*Tested*: present, and a test calls it and compares with torch 2.13. *Inert*: there so that programs
can import it; it answers that its service is absent, or raises when it would have to act. Names of
sparse, quantized, distributed and scripted programs are counted apart, and so are names that torch
2.13 has not.

| | names | share | uses | share |
|---|---|---|---|---|
"""


def _tested() -> tuple[set[str], set[str], set[str]]:
    """Names in the tables and programs, operators of the conformance page, and modules of modules.txt."""
    rows = (ORACLE / "names.txt").read_text().splitlines()
    named = {line.split("\t")[0] for line in rows if "\t" in line and not line.startswith("#")}
    text = "\n".join(f.read_text() for f in sorted([*ORACLE.glob("*.py"), ORACLE / "names.txt"]))
    named |= {f"torch.{m.rstrip('.')}" for m in re.findall(r"\b(?:L|torch|mica)\.([A-Za-z_][\w.]*)", text)}
    for alias, path in (("D", "distributions"), ("P", "nn.utils.prune"), ("S", "optim.swa_utils")):
        named |= {f"torch.{path}.{m}" for m in re.findall(rf"\b{alias}\.([A-Za-z_]\w*)", text)}
    families = re.findall(r'^    "(\w+)(?: \w+)?": \(', (ORACLE / "test_distributions.py").read_text(), re.M)
    named |= {f"torch.distributions.{m}" for m in families}
    named |= {f"torch.optim.{m}" for m in re.findall(r'^    "(\w+)": "lr=', text, re.M)}
    named |= {
        f"torch.optim.lr_scheduler.{m}" for m in re.findall(r'^    "(\w+(?:LR|WarmRestarts))": "', text, re.M)
    }
    page = (ROOT / "docs" / "reference" / "conformance.md").read_text()
    operators = set(re.findall(r"^\| `([\w.]+)", page, re.M))
    modules = set(re.findall(r"^(\w+)\(", (ORACLE / "modules.txt").read_text(), re.M))
    return named, operators, modules


def _is_tested(name: str, tested: tuple[set[str], set[str], set[str]]) -> bool:
    named, operators, modules = tested
    if name in named or name.startswith("torch.nn.") and name.removeprefix("torch.nn.") in modules:
        return True
    if any(n.startswith(name + ".") for n in named):
        return True
    short = name.removeprefix("torch.").removeprefix("Tensor.")
    stem = short if short.startswith("__") else short.rstrip("_")
    last = stem.rpartition(".")[2]
    in_family = stem.startswith(("nn.functional.", "linalg.", "fft.", "special."))
    return stem in operators or short in operators or (in_family and last in operators)


def table() -> list[tuple[str, int, str, str]]:
    """(name, uses, kind, note) of every name, most used first."""
    tested = _tested()
    rows = []
    for line in USAGE.read_text().splitlines():
        name, count = line.split("\t")
        kind, detail = describe(name)
        if kind == "absent" and detail == FOREIGN:
            kind, detail = "foreign", ""
        elif kind == "present":
            kind = "tested" if _is_tested(name, tested) else "present"
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
    kinds = ("tested", "present", "inert", "absent")
    all_uses, all_names = sum(uses[k] for k in kinds), sum(names[k] for k in kinds)
    lines = []

    def row(title: str, keys: tuple[str, ...]) -> None:
        n, u = sum(names[k] for k in keys), sum(uses[k] for k in keys)
        lines.append(f"| {title} | {n} | {100 * n / all_names:.2f} % | {u} | {100 * u / all_uses:.2f} % |")

    row("present and tested", ("tested",))
    row("present", ("tested", "present"))
    row("present or inert", ("tested", "present", "inert"))
    row("absent", ("absent",))
    for title, key in (
        ("left aside: present", "present"),
        ("left aside: inert", "inert"),
        ("left aside: absent", "absent"),
    ):
        keys = ("aside tested", "aside present") if key == "present" else (f"aside {key}",)
        lines.append(f"| {title} | {sum(names[k] for k in keys)} | | {sum(uses[k] for k in keys)} | |")
    lines.append(f"| not names of torch 2.13 | {names['foreign']} | | {uses['foreign']} | |")
    return lines, names


def page() -> tuple[str, Counter[str]]:
    """The page, and how many names are of each kind."""
    rows = table()
    lines, names = _figures(rows)
    text = _HEAD.format(names=len(rows)) + "\n".join(lines) + "\n"
    for kind, title in (
        ("absent", "Absent"),
        ("inert", "Inert"),
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
    print("\n".join(line for line in text.splitlines()[12:24] if line.startswith("|")))
    print(f"{sum(names.values())} passed, 0 failed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
