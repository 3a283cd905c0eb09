"""An operator that has grown: a kernel built for its earlier schema still serves it, in
the calls that leave the new argument at its default; and every schema that was
published with ABI 1.0 is known today."""

from __future__ import annotations

import json

import pytest
from record import schemas

from build import plugin, python

PROGRAM = """
import json, sys, mica
for path in sys.argv[1:]:
    mica.load_plugin(path)
x = mica.tensor([1.0, 2.0])
scale = mica.ops.grown.scale
print(json.dumps([scale(x).tolist(), scale(x, factor=2).tolist(), scale(x, factor=3).tolist(),
                  str(mica.explain("grown::scale", x))]))
"""


@pytest.mark.parametrize("operator_first", [True, False])
def test_kernel_of_an_earlier_schema_serves_the_calls_it_knows(operator_first: bool) -> None:
    order = [plugin("grown.c"), plugin("grown.c", "-DLONG_AGO")]
    paths = map(str, order if operator_first else reversed(order))
    result = python(PROGRAM, *paths)
    assert result.returncode == 0, result.stderr
    default, given, other, explanation = json.loads(result.stdout)
    assert default == given == [70.0, 140.0]
    assert other == [3.0, 6.0]
    assert "earlier schema grown::scale(Tensor self) -> Tensor" in explanation
    assert "default of `factor`" in explanation
    assert "left out" not in result.stderr


def test_call_of_an_earlier_schema_is_filled_up() -> None:
    """A plugin that was built when the operator had one argument calls it with one: the new one has its default."""
    program = """
import json, sys, mica
for path in sys.argv[1:]:
    mica.load_plugin(path)
print(json.dumps([mica.ops.caller.scaled(mica.tensor([1.0, 2.0])).tolist() for _ in range(3)]))
"""
    result = python(program, str(plugin("grown.c")), str(plugin("grown.c", "-DCALLER=1")))
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout) == [[2.0, 4.0]] * 3


@pytest.mark.parametrize("count", [0, 3])
@pytest.mark.parametrize("operator", [(), ("-DSHORT",)], ids=["grown", "with no earlier schema"])
def test_call_that_fits_no_schema_is_refused(operator: tuple[str, ...], count: int) -> None:
    program = """
import sys, mica
for path in sys.argv[1:]:
    mica.load_plugin(path)
try:
    mica.ops.caller.scaled(mica.ones(2))
except TypeError as error:
    print(error)
"""
    result = python(program, str(plugin("grown.c", *operator)), str(plugin("grown.c", f"-DCALLER={count}")))
    assert result.returncode == 0, result.stderr
    assert (
        f"grown::scale takes (2) boxed arguments, defaults included, and a plugin passes ({count})"
        in result.stdout
    )


@pytest.mark.parametrize(
    ("operator", "kernel"),
    [("-DGROWN", "-DLONG_AGO=12345"), ("-DSHORT", "-DLONG_AGO")],
    ids=["a schema that never was", "an operator that names no earlier schema"],
)
def test_kernel_of_an_unknown_schema_is_left_out(operator: str, kernel: str) -> None:
    result = python(PROGRAM, str(plugin("grown.c", operator)), str(plugin("grown.c", kernel)))
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)[:3] == [[2.0, 4.0], [2.0, 4.0], [3.0, 6.0]]
    assert "(grown::scale) at (cpu) was built for another schema" in result.stderr


def test_earlier_schema_that_cannot_be_adapted_is_refused() -> None:
    program = """
import sys, mica
try:
    mica.load_plugin(sys.argv[1])
except RuntimeError as error:
    print(error)
"""
    result = python(program, str(plugin("grown.c", "-DWRONG")))
    assert "The earlier schema of grown::scale has the argument `times`, which is gone" in result.stdout


def test_every_published_schema_is_known() -> None:
    now = schemas()
    lost = [line for line in recorded() if line not in now]
    assert len(recorded()) > 500
    assert lost == [], "add what these operators had to `earlier:` of their entries, or take the change back"


def recorded() -> list[str]:
    from record import BASELINE

    return (BASELINE / "schemas.txt").read_text().splitlines()
