"""Runs the programs of the files named, each in a namespace of its own, and prints what each printed.

Under torch and under `python -m mica.torch`, in one process each: test_surface_torch.py compares.
What a program raises is printed as its kind.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
import traceback
import warnings
from pathlib import Path

import torch


def programs(file: Path) -> dict[str, str]:
    """The programs of a file by name: a line `== name`, then the program."""
    found: dict[str, str] = {}
    for block in ("\n" + file.read_text()).split("\n== ")[1:]:
        name, _, text = block.partition("\n")
        found[f"{file.stem}: {name.strip()}"] = text
    return found


def printed(text: str, name: str) -> str:
    """What the program prints, and the kind of what it raises."""
    out = io.StringIO()
    torch.manual_seed(0)
    with contextlib.redirect_stdout(out), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(compile(text, name, "exec", dont_inherit=True), {"torch": torch, "__name__": "__main__"})
        except Exception as error:
            print("raises", type(error).__name__)
            traceback.print_exc(file=sys.stderr)
    return out.getvalue()


if __name__ == "__main__":
    made = {}
    for file in sys.argv[1:]:
        for name, text in programs(Path(file)).items():
            made[name] = printed(text, name)
    json.dump(made, sys.stdout)
