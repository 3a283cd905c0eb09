"""nn.functional.grouped_mm and associative_scan, against loops."""

import pytest

import mica
from mica._functions.associative_scan import associative_scan
from mica.nn.functional import grouped_mm


def numbers(*shape):
    return mica.rand(*shape, dtype=mica.float64)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 13])
def test_scan(size):
    x, keep = numbers(3, size).requires_grad_(), numbers(3, size)
    mica.testing.assert_close(associative_scan(mica.add, x, 1), x.cumsum(1))
    mica.testing.assert_close(associative_scan(mica.add, x, -1, reverse=True), x.flip(1).cumsum(1).flip(1))
    found = associative_scan(
        lambda p, q: {"k": p["k"] * q["k"], "x": q["k"] * p["x"] + q["x"]}, {"k": keep, "x": x}, 1
    )
    state = mica.zeros(3, dtype=mica.float64)
    for i in range(size):
        state = keep[:, i] * state + x[:, i]
        mica.testing.assert_close(found["x"][:, i], state)
    assert mica.autograd.gradcheck(lambda t: associative_scan(mica.mul, t, 1), [x])


def test_products_by_group():
    ends = mica.tensor([2, 2, 4], dtype=mica.int32)
    rows, weights = numbers(5, 4).requires_grad_(), numbers(3, 4, 2).requires_grad_()
    found = grouped_mm(rows, weights, offs=ends)
    mica.testing.assert_close(found[:2], rows[:2] @ weights[0])
    mica.testing.assert_close(found[2:4], rows[2:4] @ weights[2])
    assert (found[4:] == 0).all()
    assert mica.autograd.gradcheck(lambda a, b: grouped_mm(a, b, offs=ends), [rows, weights])
    other = numbers(5, 3)
    summed = grouped_mm(rows.t(), other, offs=ends)
    mica.testing.assert_close(summed[2], rows[2:4].t() @ other[2:4])
    assert (summed[1] == 0).all()
    columns = grouped_mm(weights.transpose(1, 2), rows.t(), offs=ends)
    mica.testing.assert_close(columns[:, 2:4], weights[2].t() @ rows[2:4].t())
    mica.testing.assert_close(grouped_mm(weights, weights.transpose(1, 2)), weights @ weights.transpose(1, 2))


def test_bad_input():
    with pytest.raises(RuntimeError, match="do not rise"):
        grouped_mm(numbers(5, 4), numbers(2, 4, 2), offs=mica.tensor([3, 9]))
    with pytest.raises(RuntimeError, match="differs from that of groups"):
        grouped_mm(numbers(5, 4), numbers(2, 4, 2), offs=mica.tensor([3]))
    with pytest.raises(RuntimeError, match="needs `offs`"):
        grouped_mm(numbers(5, 4), numbers(2, 4, 2))
    with pytest.raises(RuntimeError, match="expected one size"):
        associative_scan(mica.add, [numbers(2), numbers(3)], 0)
