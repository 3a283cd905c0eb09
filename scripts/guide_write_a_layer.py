"""Runs docs/guides/write-a-layer.md, from an empty folder to a layer and a transform."""

from __future__ import annotations

import sys

from read_guide import run

if __name__ == "__main__":
    sys.exit(run("write-a-layer.md", "guide-layer"))
