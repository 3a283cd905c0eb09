"""Runs docs/guides/write-a-backend.md, from the copied template to the digits."""

from __future__ import annotations

import sys

from read_guide import run

if __name__ == "__main__":
    sys.exit(run("write-a-backend.md", "guide-backend"))
