"""Adamax (Kingma and Ba, 2015): Adam by the infinity norm."""

from __future__ import annotations

from typing import Any

from mica._C import Tensor
from mica.optim._moments import _MomentOptimizer
from mica.optim._steps import Rows, run, scalar


class Adamax(_MomentOptimizer):
    """Adam with a running maximum of |g| for its running mean square."""

    _slots = ("exp_avg", "exp_inf")
    _columns = ("exp_avg", "exp_inf", "step")

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _update(self, group: dict[str, Any], rows: Rows) -> None:
        (beta1, beta2), eps, lr = group["betas"], group["eps"], scalar(group["lr"])
        self._kept(group, rows)
        steps = self._advance(rows)

        def numbers(step: float) -> tuple[Any, ...]:
            return 1 - beta1, beta2, eps, lr / (1 - beta1**step)

        run("_adamax_step", group, rows, self._slots, steps, numbers)
