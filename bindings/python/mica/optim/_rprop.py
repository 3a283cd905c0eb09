"""Rprop (Riedmiller and Braun, 1993): resilient steps by the gradient's sign."""

from __future__ import annotations

from typing import Any

import mica
from mica._C import Tensor
from mica.optim._steps import GroupOptimizer, Rows, check_rate, run


class Rprop(GroupOptimizer):
    """Steps by the sign of the gradient, of a size that grows while the sign stays."""

    _slots = ("prev",)
    _columns = ("prev", "step_size", "step")

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_rate(lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"The option etas ({etas}) must have one value in (0, 1) and then one above 1.")
        defaults = {
            "lr": lr,
            "etas": etas,
            "step_sizes": step_sizes,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _begin(self, group: dict[str, Any], p: Tensor, own: dict[str, Any]) -> None:
        super()._begin(group, p, own)
        lr = float(group["lr"])
        own["step_size"] = mica.full_like(p.grad, complex(lr, lr) if p.is_complex() else lr).detach()

    def _update(self, group: dict[str, Any], rows: Rows) -> None:
        rows.prepare(group, 0)
        steps = self._advance(rows)
        numbers = (*group["etas"], *group["step_sizes"])
        run("_rprop_step", group, rows, ("prev", "step_size"), steps[:1], lambda _: numbers)
