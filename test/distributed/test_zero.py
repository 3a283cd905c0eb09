"""An optimizer whose state is cut among ranks: what is refused, and parameters of every kind."""

from __future__ import annotations

import pytest
from ranks import on_all

import mica
from mica.distributed.optim import ZeroRedundancyOptimizer


def test_an_optimizer_in_the_place_of_its_class_is_refused() -> None:
    def f(r: int) -> None:
        w = mica.ones(2, requires_grad=True)
        with pytest.raises(TypeError, match=r"an object of SGD; give the class.*\(params, SGD, lr=...\)"):
            ZeroRedundancyOptimizer([w], mica.optim.SGD([w], lr=0.1), lr=0.1)  # type: ignore[arg-type]

    on_all(1, f)


def test_parameters_of_other_dtypes_layouts_and_sizes_come_from_their_owners() -> None:
    made = [mica.randn(1031, 977).t(), mica.randn(3, dtype=mica.float64), mica.zeros(0), mica.randn(14)]

    def leaves() -> list[mica.Tensor]:
        return [(t.clone()[::2] if t.ndim == 1 else t.clone()).requires_grad_() for t in made]

    def f(r: int) -> None:
        params, plain = leaves(), leaves()
        assert not params[0].is_contiguous() and params[3].stride() == (2,)
        zero, one = ZeroRedundancyOptimizer(params, mica.optim.AdamW, lr=0.1), mica.optim.AdamW(plain, lr=0.1)
        for p, q in zip(params, plain):
            p.grad, q.grad = mica.ones_like(p), mica.ones_like(q)
        zero.step(), one.step()
        assert all(mica.equal(p.detach(), q.detach()) for p, q in zip(params, plain))

    on_all(3, f)
