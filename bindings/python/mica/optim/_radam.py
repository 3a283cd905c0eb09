"""RAdam (Liu and others, 2020): Adam whose scaling waits until the variance can be told."""

from __future__ import annotations

from typing import Any

from mica._C import Tensor
from mica.optim._moments import _MomentOptimizer
from mica.optim._steps import Rows, run, scalar


class RAdam(_MomentOptimizer):
    """Adam whose scaling by squares begins when their variance can be told."""

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "decoupled_weight_decay": decoupled_weight_decay,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _update(self, group: dict[str, Any], rows: Rows) -> None:
        (beta1, beta2), eps, lr = group["betas"], group["eps"], scalar(group["lr"])
        longest = 2 / (1 - beta2) - 1

        def length(step: float) -> float:
            return float(longest - 2 * step * beta2**step / (1 - beta2**step))

        def rectified(step: float) -> tuple[Any, ...]:
            n = length(step)
            ratio = (n - 4) * (n - 2) * longest / ((longest - 4) * (longest - 2) * n)
            rate = lr / (1 - beta1**step) * (ratio * (1 - beta2**step)) ** 0.5
            return 1 - beta1, beta2, 1 - beta2, 1.0, eps, rate, kept

        def plain(step: float) -> tuple[Any, ...]:
            return 1 - beta1, beta2, 1 - beta2, lr / (1 - beta1**step), kept

        kept = self._kept(group, rows)
        steps = self._advance(rows)
        for operator, numbers, chosen in (
            ("_adam_step", rectified, [length(step) > 5.0 for step in steps]),
            ("_moments_step", plain, [length(step) <= 5.0 for step in steps]),
        ):
            if True in chosen:
                keys = [step for step, use in zip(steps, chosen) if use]
                run(operator, group, rows.where(chosen), self._slots, keys, numbers)
