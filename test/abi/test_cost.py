"""What a call costs, in instructions, so that noise has no part in it: through the border at most 2 %
more than within the tree, and little beside a direct call of the same kernel; in layers that see the SDK
alone, what it cost when they were part of the core."""

from __future__ import annotations

import os
import re
import subprocess
import sys
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


# What the calls of layers_cost.py cost with Python's share, which is below what they cost when vmap and functionalize
# were part of the core (5,598, 5,021, 8,978, 21,318, 19,282 and 5,031): instructions on x86-64 with AVX2, CPython 3.11,
# November 2026. `x @ w`, `sum(0)` and `x + y` are within 1 % of that, which is what folders and machines make them
# differ by: their bounds are 1 % above it.
MOST_IN_LAYERS = {
    "vmap reshape": 5_100,
    "vmap select": 4_550,
    "vmap x @ w": 9_090,
    "vmap sum(0)": 21_550,
    "functionalize view, mul_": 19_300,
    "functionalize x + y": 5_100,
}


def test_layers_cost_what_they_did_in_the_core(tmp_path: Path) -> None:
    command = ["valgrind", "--tool=callgrind", "--dump-before=getppid"]
    command += [f"--callgrind-out-file={tmp_path / 'counts'}"]
    command += [sys.executable, str(Path(__file__).with_name("layers_cost.py"))]
    unset = ("MICA_PLUGINS_ONLY", "MICA_POISON_MEMORY")
    environment = {k: v for k, v in os.environ.items() if k not in unset}
    environment |= {"PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1"}
    result = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert result.returncode == 0, result.stderr
    names = result.stdout.split("\n")
    # The first dump is of the start; of each call follow those of 200 times, of 200 again and of 1,200.
    dumps = [(tmp_path / f"counts.{i + 2}").read_text() for i in range(3 * len(MOST_IN_LAYERS))]
    counts = [int(re.findall(r"^totals: (\d+)", d, re.MULTILINE)[0]) for d in dumps]
    costs = {name: (counts[3 * i + 2] - counts[3 * i + 1]) / 1000 for i, name in enumerate(names[:-1])}
    print(costs)
    assert costs.keys() == MOST_IN_LAYERS.keys()
    assert all(4_000 < costs[name] <= most for name, most in MOST_IN_LAYERS.items()), costs
