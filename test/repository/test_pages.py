"""The pictures and the numbers of the pages are what their scripts make now."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
import references
import speed_page

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("script", ["layers_picture.py", "speed_page.py"])
def test_picture_is_up_to_date(script: str) -> None:
    # Without plugins of others, whose layers would be in the picture.
    environment = {name: value for name, value in os.environ.items() if name != "MICA_PLUGINS"}
    command = [sys.executable, str(ROOT / "scripts" / script), "--check"]
    result = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert result.returncode == 0, result.stdout + result.stderr


def test_numbers_are_taken_from_a_run() -> None:
    rows = [
        {
            "name": name,
            "peer": peer,
            "mica_us": 1.0,
            "peer_us": 2.0,
            "ratio": 0.5,
            "low": 0.4,
            "high": 0.6,
            "threads": 1,
        }
        for name in speed_page.SHOWN
        for peer in ("torch", "numpy")
    ]
    numbers = json.loads(json.dumps(speed_page.taken({"rows": rows})))
    assert [row["name"] for row in numbers["rows"]] == list(speed_page.SHOWN)
    assert speed_page.table(numbers).count("| 1 µs | 2 µs | 0.50 |") == len(speed_page.SHOWN)
    with pytest.raises(SystemExit, match="no row named"):
        speed_page.taken({"rows": rows[:4]})


def links(page: Path) -> set[Path]:
    """The pages that a page links to, each for itself or by their folder."""
    targets = [(page.parent / target).resolve() for target in references.LINK.findall(page.read_text())]
    return {file for target in targets for file in (target.glob("*.md") if target.is_dir() else [target])}


def test_every_page_is_two_clicks_from_the_readme() -> None:
    first = links(ROOT / "README.md")
    reached = first.union(*(links(page) for page in first))
    assert set((ROOT / "docs").rglob("*.md")) <= reached
