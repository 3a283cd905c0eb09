"""List calls (`_foreach_*`, optimizers' steps): one that fails writes no row, wherever it fails."""

from __future__ import annotations

from typing import Any

import pytest

import mica
from mica import ones

# The lists of an in-place sum of which a later row fails.
FAILING: dict[str, Any] = {
    "shape": lambda: ([ones(2), ones(3), ones(2)], [ones(2), ones(3), ones(4)]),
    "two shapes": lambda: ([ones(2), ones(3), ones(2)], [ones(2), ones(2), ones(4)]),
    "broadcast": lambda: ([ones(2), ones(1)], [ones(2), ones(3)]),
    "dtype": lambda: ([ones(2), ones(3, dtype=mica.int64)], [0.5, 0.5]),
    "number": lambda: ([ones(2, dtype=mica.int64), ones(3, dtype=mica.int64)], [1, 0.5]),
    "places that are one": lambda: ([ones(2), ones(1).expand(3)], [ones(2), ones(3)]),
    "leaf": lambda: ([ones(2), ones(3).requires_grad_()], [ones(2), ones(3)]),
    "device": lambda: ([ones(2), ones(3)], [ones(2), ones(3, device="meta")]),
    "one for all": lambda: ([ones(2), ones(3)], ones(2)),
}


@pytest.mark.parametrize("name", FAILING)
def test_no_row_is_written(name: str) -> None:
    rows, others = FAILING[name]()
    with pytest.raises(RuntimeError):
        mica._foreach_add_(rows, others)
    assert all((row == 1).all() for row in rows)


def test_rows_that_differ_run() -> None:
    rows = [ones(2), ones(3, 2), ones(2, dtype=mica.float64), ones(())]
    mica._foreach_add_(rows, [ones(2), ones(2), 2 * ones(2), ones(())])
    assert [row.flatten()[0].item() for row in rows] == [2, 2, 3, 2]


@pytest.mark.parametrize("name", ["Adam", "SGD", "NAdam", "Adagrad"])
def test_a_step_that_fails_leaves_all(name: str) -> None:
    params = [mica.nn.Parameter(ones(2)), mica.nn.Parameter(ones(3))]
    for p in params:
        p.grad = ones(p.numel())
    optimizer = getattr(mica.optim, name)(params, lr=0.1, **({"momentum": 0.9} if name == "SGD" else {}))
    optimizer.step()
    optimizer.state[params[1]] = {
        k: v if v.ndim == 0 else ones(4) for k, v in optimizer.state[params[1]].items()
    }
    tensors = [*params, *(v for own in optimizer.state.values() for v in own.values())]
    before = [t.detach().clone() for t in tensors]
    with pytest.raises(RuntimeError):
        optimizer.step()
    assert all(mica.equal(t, old) for t, old in zip(tensors, before))
