"""Adagrad (Duchi and others, 2011): each element is scaled by the sum of its squared gradients."""

from __future__ import annotations

from typing import Any

import mica
from mica._C import Tensor
from mica.optim._steps import GroupOptimizer, Rows, check_range, check_rate, run, scalar


class Adagrad(GroupOptimizer):
    """p -= lr * g / (sqrt(sum of all g^2) + eps), with a rate that decays."""

    _columns = ("sum", "step")

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_rate(lr)
        for name, value in (("lr_decay", lr_decay), ("weight_decay", weight_decay), ("eps", eps)):
            check_range(name, value, 0.0)
        check_range("initial_accumulator_value", initial_accumulator_value, 0.0)
        defaults = {
            "lr": lr,
            "lr_decay": lr_decay,
            "eps": eps,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)
        for group in self.param_groups:
            for p in group["params"]:
                self._begin(group, p, self.state[p])

    def _begin(self, group: dict[str, Any], p: Tensor, own: dict[str, Any]) -> None:
        super()._begin(group, p, own)
        first = self.defaults["initial_accumulator_value"]
        own["sum"] = mica.full_like(p, complex(first, first) if p.is_complex() else first).detach()

    def _kinds(self, rows: Rows) -> Any:
        return False, rows.any_complex  # no gradient is sparse

    def share_memory(self) -> None:
        """Moves the sums to memory that processes share."""
        for own in self.state.values():
            own["sum"].share_memory_()

    def _update(self, group: dict[str, Any], rows: Rows) -> None:
        lr, decay, eps = scalar(group["lr"]), group["lr_decay"], group["eps"]
        rows.prepare(group, group["weight_decay"])
        steps = self._advance(rows)
        run("_adagrad_step", group, rows, ("sum",), steps, lambda step: (eps, lr / (1 + (step - 1) * decay)))
