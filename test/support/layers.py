"""Tests of layers that lie in other folders than the layers' own: they go with the layers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def needs(*layers: str) -> pytest.MarkDecorator:
    """Skips a test in a tree without one of these folders of keys/. What fails since a layer is not there, and
    says so, is skipped without this (test/conftest.py)."""
    absent = [layer for layer in layers if not (ROOT / "keys" / layer).is_dir()]
    return pytest.mark.skipif(bool(absent), reason=f"keys/ has no {', '.join(absent)}")


def absent_layer(text: str) -> str:
    """The layer that an error says is not there, if no folder of keys/ brings it; "" otherwise."""
    for layer in re.findall(r"No loaded plugin provides \(layer:(\w+)\)", text):
        if not any(f"layer:{layer}" in path.read_text() for path in ROOT.glob("keys/*/*.cc")):
            return str(layer)
    return ""
