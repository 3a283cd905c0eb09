"""The distribution "torch" that importlib.metadata finds while the shim is installed."""

from __future__ import annotations

import importlib.metadata
from typing import Any

from mica._torch_names.version import VERSION

_TEXTS = {
    "METADATA": f"Metadata-Version: 2.1\nName: torch\nVersion: {VERSION}\nSummary: Mica under torch's name\n",
    "top_level.txt": "torch\n",
    "INSTALLER": "mica\n",
}


class Distribution(importlib.metadata.Distribution):
    """Has a name and a version, and no files."""

    def read_text(self, filename: str) -> str | None:
        return _TEXTS.get(filename)

    def locate_file(self, path: Any) -> Any:
        from pathlib import Path

        return Path(__file__).parent / path
