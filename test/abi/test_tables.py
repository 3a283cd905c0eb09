"""Today's plugins under tables of other sizes: a host that is older than what they
were built against (a shorter table with a poisoned tail), one that is newer (a longer
one), and device tables in which each optional function lacks in turn."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from record import golden

from build import INCLUDE, plugin, python

BUILD = Path(os.environ["MICA_BUILD_DIR"])
TEXT = (INCLUDE / "mica" / "abi.h").read_text()


def functions(struct: str, after: str = "") -> list[str]:
    """The function members of a struct of abi.h, in order, from behind `after` on."""
    [body] = re.findall(rf"typedef struct {struct} {{\n(.*?)\n}} {struct};", TEXT, re.S)
    return re.findall(r"^  \S.*?\(\*(\w+)\)\(", body[body.index(after) :], re.M)


HOST = functions("MicaHost")
FIRST = 24  # bytes before the host's first function
FULL = FIRST + 8 * len(HOST)
LEAST = int(re.search(r"MICA_HOST_SIZE_1_0 (\d+)", TEXT)[1])  # what is behind it may lack
# Those of 1.0: the younger ones stand behind a number, and no golden plugin has them.
_OPTIONAL = functions("MicaDeviceTable", after="/* optional from here on")
OPTIONAL = _OPTIONAL[: _OPTIONAL.index("detach") + 1]

LOAD = """
import json, os, sys, mica
answers = {}
for size in json.loads(sys.argv[2]):
    os.environ["SHIM_SIZE"] = str(size)
    print(size, flush=True)
    try:
        mica.load_plugin(sys.argv[1])
        answers[size] = ""
        mica.disable_plugin("shim")
        break
    except RuntimeError as error:
        answers[size] = str(error)
assert (mica.ones(2) + mica.ones(2)).tolist() == [2.0, 2.0]
print(json.dumps(answers))
"""


def victims() -> dict[str, Path]:
    """The plugins that run under other tables: C++ and C, ours and the tests'."""
    return {
        "cpu": BUILD / "lib" / "mica" / "plugins" / "mica_cpu.so",
        "golden in C++": golden("gcc"),
        "golden in C": golden("c"),
    }


@pytest.mark.parametrize("name", victims())
def test_shorter_host_table_is_refused_and_never_called_beyond(name: str) -> None:
    sizes = [*range(FIRST, LEAST, 8), LEAST - 1]
    result = python(LOAD, str(plugin("shim.c")), json.dumps(sizes), SHIM_PLUGIN=str(victims()[name]))
    assert result.returncode == 0, (result.stdout[-200:], result.stderr)
    answers = json.loads(result.stdout.splitlines()[-1])
    assert len(answers) == len(sizes)
    assert all("failed to start" in answer for answer in answers.values())


@pytest.mark.parametrize("name", [n for n in victims() if n != "cpu"])
@pytest.mark.parametrize("size", [LEAST, FULL, FULL + 8, FULL + 400])
def test_longer_host_table_is_taken(name: str, size: int) -> None:
    program = """
import json, sys, mica
mica.load_plugin(sys.argv[1])
space = getattr(mica.ops, sys.argv[2])
print(space.affine(mica.ones(2), 3.0, 1.0).tolist())
"""
    space = "golden_gcc" if "++" in name else "golden_c"
    shim = plugin("shim.c", f'-DPROVIDES="backend:{space.replace("_", ".")}"')  # what the other registers
    result = python(program, str(shim), space, SHIM_PLUGIN=str(victims()[name]), SHIM_SIZE=str(size))
    assert result.stdout == "[4.0, 4.0]\n", result.stderr


def test_extension_that_lacks_is_no_reason_to_fail() -> None:
    # `extension` answers NULL for what a host does not have; the CPU plugin asks.
    result = python("import mica; print((mica.ones(9) * 2).sum().item())")
    assert result.stdout == "18.0\n", result.stderr


WORK = """
import sys, mica
mica.load_plugin(sys.argv[1])
for device in ("golden.c:0", "golden.c:1"):
    x = mica.arange(6, dtype=mica.float32).to(device)
    assert mica.neg(x).cpu().tolist() == [0, -1, -2, -3, -4, -5]
    y = mica.empty(1000, device=device)
    del y
mica.synchronize("golden.c")
with mica.stream(mica.Stream("golden.c:0")):
    z = mica.neg(mica.ones(8, device="golden.c:0"))
event = mica.Event("golden.c:0")
event.record()
event.synchronize()
assert event.query()
moved = x.to("golden.c:0")
assert moved.cpu().tolist() == [0, 1, 2, 3, 4, 5]
print("done")
"""


@pytest.mark.parametrize("slot", range(len(OPTIONAL)), ids=OPTIONAL)
def test_device_without_one_optional_function(slot: int) -> None:
    result = python(WORK, str(golden("c")), GOLDEN_NULL=str(slot))
    assert result.stdout == "done\n", result.stderr
