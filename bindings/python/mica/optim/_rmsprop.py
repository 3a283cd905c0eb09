"""RMSprop."""

from __future__ import annotations

from typing import Any

import mica
from mica._C import Tensor
from mica.optim._sgd import descend
from mica.optim._steps import GroupOptimizer, Rows, apply, check_range, check_rate


class RMSprop(GroupOptimizer):
    """p -= lr * g / (sqrt(v) + eps) with v a running mean of g^2, centered and with momentum if asked."""

    _slots = ("square_avg",)
    _columns = ("square_avg", "momentum_buffer", "grad_avg", "step")

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_rate(lr)
        for name, value in (("eps", eps), ("momentum", momentum), ("alpha", alpha)):
            check_range(name, value, 0.0)
        check_range("weight_decay", weight_decay, 0.0)
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "alpha": alpha,
            "eps": eps,
            "centered": centered,
            "weight_decay": weight_decay,
            "capturable": capturable,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _begin(self, group: dict[str, Any], p: Tensor, own: dict[str, Any]) -> None:
        super()._begin(group, p, own)
        if group["momentum"] > 0:
            own["momentum_buffer"] = mica.zeros_like(p)
        if group["centered"]:
            own["grad_avg"] = mica.zeros_like(p)

    def _update(self, group: dict[str, Any], rows: Rows) -> None:
        alpha, eps = group["alpha"], group["eps"]
        rows.counts = [own["step"] for own in rows.states]
        rows.prepare(group, group["weight_decay"])
        scaled = [mica.empty_like(g) for g in rows.grads]
        state = [rows.column(name) for name in ("square_avg", *(["grad_avg"] if group["centered"] else []))]
        operator = "_rmsprop_scale_centered" if group["centered"] else "_rmsprop_scale"
        numbers = (alpha, 1 - alpha, eps)
        apply(operator, [rows.grads, *state], [scaled, *state], numbers, group["differentiable"])
        rows.grads = scaled
        descend(group, rows, 1.0)
