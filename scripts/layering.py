"""Holds what the compiler read to the arrows of scripts/lint.py, generated code included.

Lint reads the includes that are written; this reads ninja's record of every file that an object was made
from (`ninja -t deps`), through any number of headers and whoever wrote the source. The last line printed
counts the objects.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import lint

ROOT = Path(__file__).resolve().parent.parent
BUILD = Path(os.environ.get("MICA_BUILD_DIR", ROOT / "build" / "release"))


def module_of(file: str) -> str | None:
    """The module that a file of the repository or of the build belongs to; None of foreign files."""
    path = Path(os.path.normpath(BUILD / file))
    if path.is_relative_to(BUILD / "generated"):
        return None if path.name == "fingerprint.h" else "generated"
    base = BUILD if path.is_relative_to(BUILD) else ROOT
    if not path.is_relative_to(base) or path.is_relative_to(ROOT / ".venv"):
        return None
    module = lint.module_of_path(str(path.relative_to(base)))
    return module if module.split("/")[0] in lint.ARROWS else None


def objects() -> Iterator[tuple[str, list[str]]]:
    """Every object of the build, and the files that it was made from."""
    deps = subprocess.run(["ninja", "-C", BUILD, "-t", "deps"], capture_output=True, text=True, check=True)
    for entry in deps.stdout.split("\n\n"):
        name, *files = entry.splitlines() or [""]
        if ": #deps" in name:
            yield name.partition(": #deps")[0], [file.strip() for file in files]


def main() -> int:
    passed = failed = 0
    for name, files in objects():
        module = module_of(name)
        allowed = None if module is None else lint.seen_by(module)
        if allowed is None:
            continue
        beyond = [file for file in files if module_of(file) not in (None, *allowed)]
        if beyond:
            failed += 1
            print(
                f"FAILED {name}: {module} may not see {', '.join(beyond[:5])}; it sees {', '.join(allowed)}."
            )
        else:
            passed += 1
    print(f"{passed} passed, {failed} failed")
    return int(failed > 0 or passed == 0)


if __name__ == "__main__":
    sys.exit(main())
