"""What a call costs, in instructions, so that noise has no part in it: through the border at most 2 %
more than within the tree, and little beside a direct call of the same kernel."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from build import CXX, plugin

BUILD = Path(os.environ["MICA_BUILD_DIR"])


# What comes on top of the kernel: 460 instructions on x86-64 in November 2026, the outputs given; and what
# `mul` of four floats takes, its result made and freed: 885.
MOST_BESIDE_THE_KERNEL = 500
MOST_FOR_MUL = 900


def instructions(which: str, calls: int, plugins: str | None = "none") -> int:
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    command += [str(BUILD / "bin" / "bench_abi"), which, str(calls)]
    # Runs with neg's kernel must find no other one; memory that is poisoned costs more.
    unset = ("MICA_PLUGINS_ONLY", "MICA_POISON_MEMORY")
    environment = {k: v for k, v in os.environ.items() if k not in unset}
    if plugins is not None:
        environment["MICA_PLUGINS_ONLY"] = plugins
    result = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return int(re.findall(r"Collected : (\d+)", result.stderr)[0])


def per_call(which: str, plugins: str | None = "none", many: int = 5000) -> float:
    few = 1000
    return (instructions(which, many, plugins) - instructions(which, few, plugins)) / (many - few)


def test_call_through_the_border_costs_two_percent_at_most() -> None:
    tree = per_call("tree")
    border = per_call(str(plugin("neg.cc", compiler=CXX)))
    print(f"in the tree {tree:.1f}, through the border {border:.1f} instructions: {border / tree:.4f}")
    assert tree > 100
    assert border <= 1.02 * tree


def test_a_layers_call_of_an_operator_costs_what_the_cores_does() -> None:
    """By the C function of the operator that layers get (<mica/calls.h>), which boxes nothing."""
    core = per_call("tree")
    layers = per_call("function")
    print(f"in the core {core:.1f}, by the operator's C function {layers:.1f} instructions")
    assert core - 25 <= layers <= core + 25


def test_call_costs_little_beside_its_kernel() -> None:
    direct = per_call("direct")
    border = per_call(str(plugin("neg.cc", compiler=CXX)))
    print(f"the kernel {direct:.1f}, the call through the border {border:.1f} instructions")
    assert 10 < direct < border <= direct + MOST_BESIDE_THE_KERNEL


def test_mul_of_four_floats() -> None:
    # The plugin looks at the machine's clock as it starts, which takes some 100,000 instructions more or less.
    mul = per_call("mul", None, 51000)
    print(f"mul of four floats: {mul:.1f} instructions")
    assert 100 < mul <= MOST_FOR_MUL
