"""A call through the border costs at most 2 % more instructions than the same kernel
called within the tree. Instructions are counted, so noise has no part in it."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from build import CXX, plugin

BUILD = Path(os.environ["MICA_BUILD_DIR"])


def instructions(which: str, calls: int) -> int:
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    command += [str(BUILD / "bin" / "bench_abi"), which, str(calls)]
    # The in-tree run must find no other kernel for neg.
    environment = {**os.environ, "MICA_PLUGINS_ONLY": "none"}
    result = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return int(re.findall(r"Collected : (\d+)", result.stderr)[0])


def per_call(which: str) -> float:
    few, many = 1000, 5000
    return (instructions(which, many) - instructions(which, few)) / (many - few)


def test_call_through_the_border_costs_two_percent_at_most() -> None:
    tree = per_call("tree")
    border = per_call(str(plugin("neg.cc", compiler=CXX)))
    print(f"in the tree {tree:.1f}, through the border {border:.1f} instructions: {border / tree:.4f}")
    assert tree > 100
    assert border <= 1.02 * tree
