"""RMSprop."""

from __future__ import annotations

from typing import Any

import mica
from mica.optim._optimizer import Optimizer, check_range, gradients


class RMSprop(Optimizer):
    """p -= lr * g / (sqrt(v) + eps) with v a running mean of g^2, centered and with momentum if asked."""

    _hints = {"foreach": None, "differentiable": False, "capturable": False}

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        *,
        maximize: bool = False,
        **hints: Any,
    ) -> None:
        for name, value in (("lr", lr), ("alpha", alpha), ("eps", eps), ("momentum", momentum)):
            check_range(name, value, 0.0)
        check_range("weight_decay", weight_decay, 0.0)
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "alpha": alpha,
            "eps": eps,
            "centered": centered,
            "weight_decay": weight_decay,
            "maximize": maximize,
        }
        super().__init__(params, defaults, hints)

    def _update(self, group: dict[str, Any]) -> None:
        lr, alpha, eps = group["lr"], group["alpha"], group["eps"]
        for p, grad in gradients(group):
            if group["weight_decay"] != 0:
                grad = grad.add(p, alpha=group["weight_decay"])
            state = self.state[p]
            if not state:
                state["step"] = mica.tensor(0.0)
                state["square_avg"] = mica.zeros_like(p)
                if group["momentum"] > 0:
                    state["momentum_buffer"] = mica.zeros_like(p)
                if group["centered"]:
                    state["grad_avg"] = mica.zeros_like(p)
            state["step"] += 1
            square = state["square_avg"].mul_(alpha).addcmul_(grad, grad, value=1 - alpha)
            if group["centered"]:
                mean = state["grad_avg"].lerp_(grad, 1 - alpha)
                square = square.addcmul(mean, mean, value=-1)
            step = grad / (square.sqrt() + eps)
            if group["momentum"] > 0:
                step = state["momentum_buffer"].mul_(group["momentum"]).add_(step)
            p.add_(step, alpha=-lr)
