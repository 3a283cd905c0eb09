"""Adadelta (Zeiler, 2012): steps by the ratio of running mean squares of steps and gradients."""

from __future__ import annotations

from typing import Any

from mica._C import Tensor
from mica.optim._steps import GroupOptimizer, Rows, check_range, check_rate, run, scalar


class Adadelta(GroupOptimizer):
    """Steps by the ratio of running root mean squares of steps and of gradients."""

    _slots = ("square_avg", "acc_delta")
    _columns = ("square_avg", "acc_delta", "step")

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_rate(lr)
        check_range("rho", rho, 0.0, 1.0, last=True)
        check_range("eps", eps, 0.0)
        check_range("weight_decay", weight_decay, 0.0)
        defaults = {
            "lr": lr,
            "rho": rho,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "capturable": capturable,
            "foreach": foreach,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _update(self, group: dict[str, Any], rows: Rows) -> None:
        rho, eps, lr = group["rho"], group["eps"], scalar(group["lr"])
        rows.prepare(group, group["weight_decay"])
        steps = self._advance(rows)
        run("_adadelta_step", group, rows, self._slots, steps[:1], lambda _: (rho, 1 - rho, eps, lr))
