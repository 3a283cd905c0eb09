"""Runs the examples in a package's documentation strings, as its own test suite does.

`python -m mica.torch test/users/doctests.py PACKAGE FILE` writes a JUnit file of one case for each
documented object. torchmetrics seeds torch, NumPy and random with 42 before each.
"""

from __future__ import annotations

import doctest
import importlib
import os
import pkgutil
import random
import sys
import warnings
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import torch

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def cases(package: str) -> list[tuple[str, Any]]:
    """(name, doctest) of each documented object; a module that does not import is skipped."""
    root = importlib.import_module(package)
    found = []
    for info in pkgutil.walk_packages(root.__path__, f"{package}."):
        try:
            module = importlib.import_module(info.name)
        except ImportError:
            continue
        tests = doctest.DocTestFinder(exclude_empty=True).find(module, info.name)
        found += [(test.name, test) for test in tests if test.examples]
    return found


def run(test: Any) -> str:
    """What failed, or ""."""
    torch.manual_seed(42)
    np.random.seed(42)
    random.seed(42)
    said: list[str] = []
    failed = doctest.DocTestRunner(optionflags=FLAGS, verbose=False).run(test, out=said.append).failed
    return "".join(said) if failed else ""


def main(package: str, file: str) -> None:
    """Runs every example and writes the file."""
    os.environ.setdefault("MPLBACKEND", "agg")
    warnings.simplefilter("ignore")
    suite = ElementTree.Element("testsuite")
    for name, test in cases(package):
        case = ElementTree.SubElement(suite, "testcase", classname=package, name=name)
        text = run(test)
        if text:
            printable = "".join(c for c in text if c.isprintable() or c == "\n")
            ElementTree.SubElement(case, "failure", message=printable[:200]).text = printable
    Path(file).write_bytes(ElementTree.tostring(suite))


if __name__ == "__main__":
    main(*sys.argv[1:])
