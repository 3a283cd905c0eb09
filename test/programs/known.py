"""The differences that are known: test/programs/known.txt.

An entry is a paragraph: lines `# reason`, a line `match KIND: PATTERN` (regular expressions; the second is
searched for in the differing statement and what was found; with `match KIND anywhere:` in all of the program and
what was found), and a program that shows it. A match is counted as known; an entry whose program no longer
differs is reported, so that it is taken off.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path

from session import Difference, run

FILE = Path(__file__).parent / "known.txt"


@dataclass(frozen=True)
class Entry:
    reason: str
    kind: str
    pattern: str
    program: list[str]
    anywhere: bool = False

    def matches(self, program: list[str], difference: Difference) -> bool:
        shown = "\n".join([*(program if self.anywhere else program[-1:]), difference.text])
        return (
            re.fullmatch(self.kind, difference.kind) is not None
            and re.search(self.pattern, shown) is not None
        )

    def shows(self) -> bool:
        """Whether the program still differs, and in the way that the entry says."""
        found = run(self.program)
        return found is not None and self.matches(self.program[: found[0] + 1], found[1])


def statements(text: str) -> list[str]:
    """A program's statements."""
    return [ast.unparse(node) for node in ast.parse(text).body if not isinstance(node, ast.Import)]


def entries(text: str) -> list[Entry]:
    found = []
    for paragraph in text.split("\n\n"):
        lines = paragraph.strip().splitlines()
        head = next((k for k, line in enumerate(lines) if line.startswith("match ")), None)
        if head is not None:
            kind, _, pattern = lines[head].removeprefix("match ").partition(": ")
            anywhere = kind.endswith(" anywhere")
            kind = kind.removesuffix(" anywhere")
            reason = " ".join(line.removeprefix("# ") for line in lines[:head])
            program = statements("\n".join(lines[head + 1 :]))
            found.append(Entry(reason, kind, pattern, program, anywhere))
    return found


class Known:
    """The entries of the file."""

    def __init__(self, text: str | None = None) -> None:
        self.entries = entries(FILE.read_text() if text is None else text)

    def has(self, program: list[str], difference: Difference) -> bool:
        return any(entry.matches(program, difference) for entry in self.entries)

    def mended(self) -> list[Entry]:
        """Those whose program shows their difference no more."""
        return [entry for entry in self.here() if not entry.shows()]

    def here(self) -> list[Entry]:
        """Those that this machine can show."""
        wide = "avx512f" in Path("/proc/cpuinfo").read_text()
        return [entry for entry in self.entries if wide or "(with AVX-512)" not in entry.reason]
