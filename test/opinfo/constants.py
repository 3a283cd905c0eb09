"""The sizes at which kernels change their way, read from the sources of plugins/cpu and kernels.

Every integer constant there that is written as a number counts, so that a new block, tile or grain is
tested at its edges without being listed anywhere. What is derived from them (a cascade of blocks, bytes
over an element's size, the lanes of a vector) falls on a product or a power of two, which are here too.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("plugins/cpu", "kernels")
LARGEST = 1 << 18

# `constexpr int64_t kBlock = 1024;`, and several in a line.
_DEFINITION = re.compile(r"\bconstexpr\s+(?:u?int(?:8|16|32|64)_t|int|size_t)\s+(k[A-Z]\w*\s*=[^;]*);")
_ONE = re.compile(r"(k[A-Z]\w*)\s*=\s*([^,]+)(?:,|$)")
_PLAIN = re.compile(r"(?:int64_t\{(\d+)\}|(\d+))(?:\s*<<\s*(\d+))?$")


def defined(text: str) -> dict[str, int]:
    """name -> number, of every integer constant of a source: 1024, 1 << 18, int64_t{1} << 34."""
    found: dict[str, int] = {}
    for definition in _DEFINITION.finditer(text):
        for name, expression in _ONE.findall(definition[1]):
            plain = _PLAIN.match(expression.strip())
            if plain:
                found.setdefault(name, int(plain[1] or plain[2]) << int(plain[3] or 0))
    return found


@functools.cache
def sizes() -> tuple[int, ...]:
    """Each size, one less and one more, in order."""
    found = {1 << k for k in range(1, 12)}
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".h", ".cc") and "third_party" not in path.parts:
                found |= set(defined(path.read_text()).values())
    around = {n + step for n in found if n <= LARGEST for step in (-1, 0, 1)}
    return tuple(sorted(n for n in around if n > 1))
