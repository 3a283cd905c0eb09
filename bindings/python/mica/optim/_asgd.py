"""Averaged stochastic gradient descent (Polyak and Juditsky, 1992)."""

from __future__ import annotations

from typing import Any

import mica
from mica._C import Tensor
from mica.optim._steps import GroupOptimizer, Rows, check_range, check_rate, fill, run, scalar


class ASGD(GroupOptimizer):
    """Gradient descent with a decaying rate, and the mean of its late iterates in the state `ax`."""

    _columns = ("mu", "ax", "eta", "step")

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_rate(lr)
        check_range("weight_decay", weight_decay, 0.0)
        defaults = {
            "lr": lr,
            "lambd": lambd,
            "alpha": alpha,
            "t0": t0,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _begin(self, group: dict[str, Any], p: Tensor, own: dict[str, Any]) -> None:
        super()._begin(group, p, own)
        own["eta"] = mica.full_like(own["step"], float(group["lr"]))
        own["mu"] = mica.ones_like(own["step"])
        own["ax"] = mica.zeros_like(p)

    def _update(self, group: dict[str, Any], rows: Rows) -> None:
        lr, lambd, alpha, t0 = scalar(group["lr"]), group["lambd"], group["alpha"], group["t0"]
        rows.prepare(group, group["weight_decay"])
        steps = self._advance(rows)
        etas = [state["eta"] for state in rows.states]
        mus = [state["mu"] for state in rows.states]
        keys = [(eta.item(), mu.item()) for eta, mu in zip(etas, mus)]
        run("_asgd_step", group, rows, ("ax",), keys, lambda key: (1 - lambd * key[0], *key))
        fill(etas, [float(lr) / (1 + lambd * float(lr) * step) ** alpha for step in steps])
        fill(mus, [1 / max(1, step - t0) for step in steps])
