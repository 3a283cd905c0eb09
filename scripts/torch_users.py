"""Runs other people's packages on Mica, and writes docs/reference/torch_users.md.

The packages of scripts/requirements/users.txt are installed into .venv-users with --no-deps, so that no
torch comes along, and test/users/programs.py runs under `python -m mica.torch` there. `--check` fails
where a program fails; without it the page is written. The last line printed counts.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HOME = ROOT / ".venv-users"
REQUIREMENTS = ROOT / "scripts" / "requirements" / "users.txt"
PROGRAMS = ROOT / "test" / "users" / "programs.py"
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


def environment() -> Path:
    """The environment's Python, made and filled where it is not."""
    python = HOME / "bin" / "python"
    mark = HOME / "installed.txt"
    if not mark.exists() or mark.read_text() != REQUIREMENTS.read_text():
        subprocess.run([sys.executable, "-m", "venv", str(HOME)], check=True)
        install = [str(python), "-m", "pip", "install", "-q", "--no-deps", "-r", str(REQUIREMENTS)]
        subprocess.run(install, check=True)
        mark.write_text(REQUIREMENTS.read_text())
    return python


def run(python: Path) -> tuple[list[tuple[str, str]], float]:
    """(program, what failed or "") of each, and the seconds that all took."""
    start = time.perf_counter()
    quiet = {"TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1"}
    words = [str(python), "-W", "ignore", "-m", "mica.torch", str(PROGRAMS)]
    done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, **quiet}, timeout=1000)
    found = []
    for line in done.stdout.splitlines():
        match = re.match(r"(ok|failed) (\w+)(?:: (.*))?$", line)
        if match:
            found.append((match.group(2), match.group(3) or ("" if match.group(1) == "ok" else "no reason")))
    if not found:
        print(done.stderr[-3000:], file=sys.stderr)
    return found, time.perf_counter() - start


def page(found: list[tuple[str, str]]) -> str:
    """The table of what runs."""
    pins = dict(re.findall(r"^([\w.-]+)==(\S+)$", REQUIREMENTS.read_text(), re.M))
    versions = ", ".join(f"{name} {pins.get(name, '')}" for name in PACKAGES)
    passed = sum(not why for _, why in found)
    rows = "\n".join(f"| `{name}` | {why or 'passes'} |" for name, why in found)
    return f"""\
# Packages written for PyTorch, on Mica

`python scripts/torch_users.py` wrote this page: programs of `test/users/programs.py` over packages
from PyPI, unchanged and without torch, under `python -m mica.torch`. Each asserts what it computed.
torchvision's and timm's binaries for torch are not loaded; `transformers` runs randomly initialised
tiny configurations forward, backward and, where they are causal, `generate`.

{versions}.

{passed} of {len(found)} pass.

| program | result |
|---|---|
{rows}
"""


def main() -> int:
    """Runs the programs; writes the page unless --check is given."""
    found, seconds = run(environment())
    failed = [(name, why) for name, why in found if why]
    for name, why in failed:
        print(f"{name}: {why}")
    if "--check" not in sys.argv:
        PAGE.write_text(page(found))
    print(f"{len(found) - len(failed)} passed, {len(failed) + (not found)} failed ({seconds:.0f} s)")
    return 1 if failed or not found else 0


if __name__ == "__main__":
    sys.exit(main())
