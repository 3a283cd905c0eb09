"""The conformance kit itself: what it lets through and what it finds."""

from __future__ import annotations

import pytest

import mica
from mica.conformance import T, args, show
from mica.conformance.operator_checks import CHECKS, check_operator, chosen
from mica.conformance.operators import DTYPES, ENTRIES, LAYOUTS, make
from mica.conformance.reference import baseline, difference, magnitudes, widened

SOME = [
    "add.Tensor",
    "sub.Tensor",
    "sum.dim_IntList",
    "softmax.int",
    "transpose.int",
    "mm",
    "gather",
    "cumsum",
]


@pytest.mark.parametrize("name", SOME)
def test_cpu_passes(name: str) -> None:
    rows = check_operator(ENTRIES[name], "cpu", DTYPES, list(CHECKS))
    assert {row.check for row in rows} >= {"value", "gradient"}
    assert [(r.check, r.dtype, r.failures, r.reason) for r in rows if r.verdict != "passes"] == []


def test_the_cpu_is_compared_with_portable_kernels() -> None:
    x = mica.ones(3)
    assert "plugin cpu" in mica.explain("neg", x)
    with baseline("cpu"):
        assert "the portable kernel" in mica.explain("neg", x)
        assert (-x).tolist() == [-1, -1, -1]
    assert "plugin cpu" in mica.explain("neg", x)


def close(got: list[float], base: list[float], wide: list[float], **options: object) -> str:
    return difference(
        mica.tensor(got, dtype=mica.float32),
        mica.tensor(base, dtype=mica.float32),
        wide=mica.tensor(wide, dtype=mica.float64),
        **options,
    )


def test_floats_are_near_the_wide_computation() -> None:
    step = 2.0**-23
    assert close([1 + 16 * step], [1], [1]) == ""
    assert "value at [0]" in close([1 + 17 * step], [1], [1])
    # As exact as four times what is compared with, when that is itself to be trusted.
    assert close([1 + 79 * step], [1 + 20 * step], [1]) == ""
    assert close([1 + 300 * step], [1 + 100 * step], [1]) != ""
    # Terms that cancel: the scale is theirs.
    assert close([100 * step], [0], [0]) != ""
    assert close([100 * step], [0], [0], magnitude=mica.tensor([10.0])) == ""


def test_special_values_and_forms_are_equal() -> None:
    inf, nan = float("inf"), float("nan")
    assert close([nan, inf], [nan, inf], [nan, inf]) == ""
    assert close([inf], [-inf], [-inf]) != ""
    assert close([1.0], [nan], [nan]) != ""
    assert "2 results" in difference((mica.ones(1),), (mica.ones(1), mica.ones(1)))
    assert "dtype" in difference(mica.ones(1), mica.ones(1, dtype=mica.float64))
    assert "shape" in difference(mica.ones(1, 2), mica.ones(2))
    assert "strides" in difference(mica.ones(2, 3), mica.ones(3, 2).t(), strides=True)
    assert "value" in difference(mica.tensor([1, 2]), mica.tensor([1, 3]))
    assert difference(3, 3) == "" and difference(3, 3.0) != ""


def test_wide_and_magnitudes() -> None:
    x = mica.tensor([-1.5, 2.0])
    assert widened(x).dtype == mica.float64 and widened(mica.tensor([1])).dtype == mica.int64
    assert magnitudes(x).tolist() == [1.5, 2.0]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_hold_the_same_values(layout: str) -> None:
    x = make(mica, T((3, 4)), "float32", layout, 5)
    assert tuple(x.shape) == (3, 4)
    if layout != "contiguous":
        assert not x.is_contiguous() or x.storage_offset() > 0


def test_show_and_chosen(capsys: pytest.CaptureFixture[str]) -> None:
    show("cpu", "add.Tensor", args(T((3, 4)), T((4,)), alpha=2), dtype="float32", layout="transposed")
    assert "verdict: passes" in capsys.readouterr().out
    assert {e.base for e in chosen(["add"])} == {"add"} and len(chosen(["add"])) >= 2
    with pytest.raises(ValueError, match=r"\(nonsense\)"):
        chosen(["nonsense"])
