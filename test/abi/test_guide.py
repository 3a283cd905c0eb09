"""docs/guides/when-it-does-not-load.md says what Mica says: each heading is held to the
message of the lie that stands below it."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from build import CXX, ROOT, plugin, python

GUIDE = (ROOT / "docs" / "guides" / "when-it-does-not-load.md").read_text()
SECTIONS = dict(re.findall(r"^### (.+)\n\n<!-- (.+) -->$", GUIDE, re.M))

FAIL = """
import sys, mica
for path in sys.argv[1:]:
    try:
        mica.load_plugin(path)
    except RuntimeError as error:
        print(error)
"""


def paths(marker: str, folder: Path) -> list[Path]:
    """The files that a section's marker asks for."""
    kind, _, value = marker.partition(": ")
    if kind == "file":
        (folder / "plugin.so").write_text(value)
        return [folder / "plugin.so"]
    if kind == "twice":
        return [plugin("liar.c"), plugin("liar.c", "-DLIE_WAITING")]
    if kind == "throws":
        return [plugin("thrower.cc", "-DLIE_INIT", compiler=CXX)]
    assert kind == "lie"
    return [plugin("liar.c", *shlex.split(value, posix=False))]


def test_every_heading_has_its_message() -> None:
    assert len(SECTIONS) == GUIDE.count("\n### ") >= 12


@pytest.mark.parametrize("heading", SECTIONS)
def test_message_is_the_heading(heading: str, tmp_path: Path) -> None:
    result = python(FAIL, *map(str, paths(SECTIONS[heading], tmp_path)))
    assert result.returncode == 0, result.stderr
    pattern = ".*".join(re.escape(part) for part in heading.split("…"))
    assert re.search(pattern, result.stdout, re.S), result.stdout
