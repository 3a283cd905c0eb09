"""What the checks of every operator share (test/support): verdicts, the table of exceptions, comparison."""

import every_operator
import pytest
from compare import unlike
from every_operator import each, excepted, judge
from exceptions import Row

import mica

ROWS = [
    Row("a check", "add.Tensor mul.Tensor", "a reason", "refuses"),
    Row("a check", "sub.Tensor", "a reason", calls=(1, 12)),
]


@pytest.fixture(autouse=True)
def table(monkeypatch):
    monkeypatch.setattr(every_operator, "TABLE", every_operator._table(ROWS))


@pytest.mark.parametrize(
    ("name", "found", "says"),
    [
        ("neg", [], ""),
        ("neg", ["call 0: other values"], "1 found"),
        ("add.Tensor", ["call 0: it refuses"], ""),
        ("add.Tensor", ["call 0: it refuses", "call 1: other values"], "1 found:\n  call 1: other values"),
        ("add.Tensor", [], "take its row off"),
        ("sub.Tensor", ["float64 call 1: x", "int64 call 12: y"], ""),
        ("sub.Tensor", ["float64 call 1: x"], r"passes the check \(a check, \\bcall 12"),
        ("sub.Tensor", ["call 1: x", "call 12: y", "call 2: z"], "1 found:\n  call 2: z"),
    ],
)
def test_verdicts(name, found, says):
    if not says:
        judge("a check", name, found)
        return
    with pytest.raises(pytest.fail.Exception, match=says):
        judge("a check", name, found)


def test_rows():
    assert excepted("a check", "mul.Tensor") and excepted("a check", "sub.Tensor", 12)
    assert not excepted("a check", "sub.Tensor", 2) and not excepted("another check", "mul.Tensor")
    with pytest.raises(AssertionError, match="does not run: mul.Tensor"):
        each("a check", ["add.Tensor", "sub.Tensor"])
    with pytest.raises(AssertionError, match=r"two rows of add.Tensor for the check \(a check\)"):
        every_operator._table([*ROWS, ROWS[0]])


NAN, NUMBERS = float("nan"), mica.tensor([1.0, 2.0])


@pytest.mark.parametrize(
    ("got", "expected", "says"),
    [
        (mica.tensor([1.0, NAN]), mica.tensor([1 + 1e-6, NAN]), ""),
        (mica.tensor([1.0, NAN]), mica.tensor([1.0, 2.0]), "nan) instead of"),
        (NUMBERS, NUMBERS.double(), "mica.float32(2,) instead of mica.float64(2,)"),
        (NUMBERS, NUMBERS.unsqueeze(0), "(2,) instead of mica.float32(1, 2)"),
        (NUMBERS.bfloat16(), NUMBERS.bfloat16() + 1, "instead of"),
        (mica.tensor([1, 2]), mica.tensor([1, 3]), "at [1]"),
        (mica.tensor(True), mica.tensor(False), "at []"),
        (mica.zeros(0), mica.zeros(0), ""),
        ((NUMBERS, 3), [NUMBERS, 3], ""),
        ((NUMBERS, 3), [NUMBERS, 4], "result 1: 3 instead of 4"),
        ((NUMBERS,), [NUMBERS, 4], "instead of 2 results"),
        (1, True, "1 instead of True"),
        (NUMBERS, None, "instead of None"),
        (NAN, NAN, ""),
    ],
)
def test_what_is_unlike(got, expected, says):
    wrong = unlike(got, expected)
    assert says in wrong and bool(says) == bool(wrong), wrong


def test_tolerances():
    near = NUMBERS.double() + mica.tensor([0, 1e-10])
    assert unlike(near, NUMBERS.double()) and not unlike(near, NUMBERS.double(), 1e-9)
    assert not unlike(near, NUMBERS.double(), 0, 1e-9) and unlike(near, NUMBERS.double(), 0)
