"""Runs other people's packages on Mica, and writes docs/reference/torch_users.md.

The packages of scripts/requirements/users.txt are installed into .venv-users with --no-deps, so that no
torch comes along. There run, under `python -m mica.torch`: programs over them (test/users/programs.py),
their own tests (users_suites.py), and transformers' architectures with torch's weights beside torch's
results (test/users/logits.py; .venv-oracle makes these). `--check` runs a share of the tests and fails
where something fails that test/users/known.txt does not name; without it all run and the page is
written. The last line printed counts.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import users_suites
from users_suites import HOME, ROOT, SUITES, Outcome

REQUIREMENTS = ROOT / "scripts" / "requirements" / "users.txt"
USERS = ROOT / "test" / "users"
ORACLE = ROOT / ".venv-oracle" / "bin" / "python"
PAGE = ROOT / "docs" / "reference" / "torch_users.md"
PACKAGES = [
    "einops",
    "safetensors",
    "tensorboard",
    "torchmetrics",
    "torchinfo",
    "pytorch-ignite",
    "torchdiffeq",
    "timm",
    "x-transformers",
    "accelerate",
    "torchvision",
    "transformers",
]
QUIET = {"TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1"}


def environment() -> Path:
    """The environment's Python, made and filled where it is not."""
    python = HOME / "bin" / "python"
    mark = HOME / "installed.txt"
    if not mark.exists() or mark.read_text() != REQUIREMENTS.read_text():
        subprocess.run([sys.executable, "-m", "venv", str(HOME)], check=True)
        install = [str(python), "-m", "pip", "install", "-q", "--no-deps", "-r", str(REQUIREMENTS)]
        subprocess.run(install, check=True)
        mark.write_text(REQUIREMENTS.read_text())
    users_suites.sources(python)
    return python


def lines(words: list[str]) -> list[tuple[str, str, str]]:
    """(program, what failed or "", what it said) of each line "ok NAME ..." or "failed NAME: why"."""
    done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, **QUIET}, timeout=1000)
    found = []
    for line in done.stdout.splitlines():
        match = re.match(r"(ok|failed) (\w+):? ?(.*)$", line)
        if match:
            name, said = match.group(2), match.group(3)
            found.append((name, said or "no reason", "") if match.group(1) == "failed" else (name, "", said))
    if not found:
        found = [("(the run)", " ".join(done.stderr.split())[-300:], "")]
    return found


def programs(python: Path) -> list[tuple[str, str, str]]:
    """The programs under the shim."""
    return lines([str(python), "-W", "ignore", "-m", "mica.torch", str(USERS / "programs.py")])


def logits(python: Path) -> list[tuple[str, str, str]]:
    """transformers' architectures in torch and in Mica, with the same weights."""
    site = next((HOME / "lib").glob("python*/site-packages"))
    with tempfile.TemporaryDirectory() as folder:
        save = [str(ORACLE), "-W", "ignore", str(USERS / "logits.py"), "save", folder]
        there = {**os.environ, **QUIET, "PYTHONPATH": str(site)}
        subprocess.run(save, check=True, capture_output=True, env=there, timeout=1000)
        return lines(
            [str(python), "-W", "ignore", "-m", "mica.torch", str(USERS / "logits.py"), "check", folder]
        )


def table(rows: list[list[str]]) -> str:
    """Rows of a Markdown table."""
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in row)} |" for row in rows)


def page(ran: list[tuple[str, str, str]], outcomes: list[Outcome], equal: list[tuple[str, str, str]]) -> str:
    """What runs, what does not and why."""
    pins = dict(re.findall(r"^([\w.-]+)==(\S+)$", REQUIREMENTS.read_text(), re.M))
    versions = ", ".join(f"{name} {pins.get(name, '')}" for name in PACKAGES)
    reasons = users_suites.known()
    suites = [
        [o.package, str(o.passed), str(len(o.failed)), str(o.skipped)]
        + [", ".join(f"{count}: {what}" for what, count in sorted(o.elsewhere.items())) or "0"]
        for o in outcomes
    ]
    counts: dict[str, int] = {}
    for o in outcomes:
        for test, why in o.failed.items():
            reason = reasons.get(users_suites.pattern_of(test, why, reasons) or "", f"`{test}`: {why}")
            counts[reason] = counts.get(reason, 0) + 1
    failures = [[str(count), reason] for reason, count in sorted(counts.items(), key=lambda row: -row[1])]
    return f"""\
# Packages written for PyTorch, on Mica

`python scripts/torch_users.py` wrote this page. The packages come from PyPI, unchanged and without torch,
and run under `python -m mica.torch`: {versions}. Binaries for torch are not loaded; torchvision's
operators come from Mica's plugin.

## Their own tests

The examples in torchmetrics' documentation count as its tests; the others' come with their wheels and
source distributions. timm's tests of all its models, and tests whose files are not shipped, are left out.
What cannot run here for want of a package, a download or a file is counted apart.

| package | passed | failed | skipped by themselves | cannot run here |
|---|---|---|---|---|
{table(suites)}

| tests that fail | why |
|---|---|
{table(failures)}

## Architectures beside torch

`test/users/logits.py`: transformers' tiny, randomly initialised configurations, torch's weights loaded into
Mica from torch's checkpoint. Logits agree within 1e-4, gradients of one backward within 1e-3 of their
largest element, and greedy `generate` gives the same tokens. {sum(not why for _, why, _ in equal)} of {len(equal)} do.

| architecture | largest differences |
|---|---|
{table([[name, why or said] for name, why, said in equal])}

## Programs

`test/users/programs.py`: programs over these packages, each of which asserts what it computed.
{sum(not why for _, why, _ in ran)} of {len(ran)} pass.

| program | result |
|---|---|
{table([[f"`{name}`", why or "passes"] for name, why, _ in ran])}
"""


def main() -> int:
    """Runs everything; writes the page unless --check is given."""
    check = "--check" in sys.argv
    start = time.perf_counter()
    python = environment()
    ran = programs(python)
    equal = logits(python) if ORACLE.exists() else []
    outcomes = [users_suites.run(suite, python, quick=check) for suite in SUITES]
    failed = [(name, why) for name, why, _ in ran + equal if why]
    reasons = users_suites.known()
    matched = {
        (test, why): users_suites.pattern_of(test, why, reasons)
        for o in outcomes
        for test, why in o.failed.items()
    }
    failed += [found for found, pattern in matched.items() if pattern is None]
    for pattern in reasons.keys() - set(matched.values()) if not check else ():
        print(f"nothing matches this line of known.txt: {pattern}")
    for name, why in failed:
        print(f"{name}: {why}")
    passed = sum(not why for _, why, _ in ran + equal) + sum(o.passed for o in outcomes)
    if not check:
        PAGE.write_text(page(ran, outcomes, equal))
    print(f"{passed} passed, {len(failed)} failed ({time.perf_counter() - start:.0f} s)")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
