"""Runs a page of docs/guides/ that goes from nothing to a plugin that works.

Blocks marked `<!-- guide: ... -->` are done in order, in a folder of the build: `sh` and
`python` are run, with an installed Mica in $MICA_PREFIX; `file NAME` is written; `quote FILE`
must stand in that file; `insert FILE before|after "line"` is put there. Exported variables and
the folder stay for the blocks that follow.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = Path(os.environ.get("MICA_BUILD_DIR", ROOT / "build" / "release"))
BLOCK = re.compile(r"<!-- guide: (.*?) -->\n```\w*\n(.*?)^```$", re.M | re.S)


class Reader:
    """Does what the guide says, block by block."""

    def __init__(self, base: Path) -> None:
        self.base, self.folder = base, base / "work"
        path = f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}"
        prefix = str(base / "install")
        self.environment = {**os.environ, "PATH": path, "MICA_SOURCE": str(ROOT), "MICA_PREFIX": prefix}

    def do(self, words: str, text: str) -> str:
        """What is wrong with the block, or ""."""
        kind, _, rest = words.partition(" ")
        if kind == "sh":
            return self._shell(text)
        if kind == "python":
            (self.folder / "block.py").write_text(text)
            return self._shell("python block.py")
        file = self.folder / rest.split()[0]
        if kind == "file":
            file.write_text(text)
            return ""
        source = file.read_text()
        if kind == "quote":
            return "" if text in source else f"{file.name} does not hold the quoted lines."
        _, where, line = rest.split(" ", 2)
        line = line[1:-1] + "\n"
        if kind != "insert" or source.count(line) != 1:
            return f"{file.name} has not one line ({line.strip()})."
        file.write_text(source.replace(line, text + line if where == "before" else line + text))
        return ""

    def _shell(self, text: str) -> str:
        state = self.base / "state"
        script = f"set -euo pipefail\n{text}\nenv -0 > {state}\npwd >> {state}"
        result = subprocess.run(
            ["bash", "-c", script], cwd=self.folder, env=self.environment, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        if result.returncode != 0:
            return f"exit status {result.returncode}:\n{result.stdout[-4000:]}"
        *variables, folder = state.read_text().split("\0")
        self.environment = dict(v.split("=", 1) for v in variables)
        self.folder = Path(folder.strip())
        return ""


def run(page: str, folder: str) -> int:
    """Does the page docs/guides/<page> in build/<folder>; prints the tally."""
    base = ROOT / "build" / folder
    shutil.rmtree(base, ignore_errors=True)
    (base / "work").mkdir(parents=True)
    install = ["cmake", "--install", str(BUILD), "--prefix", str(base / "install")]
    subprocess.run(install, check=True, stdout=subprocess.DEVNULL)
    reader = Reader(base)
    blocks = BLOCK.findall((ROOT / "docs" / "guides" / page).read_text())
    for number, (words, text) in enumerate(blocks):
        if wrong := reader.do(words, text):
            print(f"Block {number + 1} ({words}):\n{text}\n{wrong}\n{number} passed, 1 failed")
            return 1
    print(f"{len(blocks)} passed, 0 failed")
    return 0 if blocks else 1
