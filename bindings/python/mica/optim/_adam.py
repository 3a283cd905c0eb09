"""Adam and AdamW (Kingma and Ba, 2015; Loshchilov and Hutter, 2019)."""

from __future__ import annotations

import math
from typing import Any

import mica
from mica.optim._optimizer import Optimizer, check_range, gradients


class Adam(Optimizer):
    """Steps by running means of the gradient and of its square."""

    _hints = {"foreach": None, "differentiable": False, "capturable": False, "fused": None}

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        decoupled_weight_decay: bool = False,
        **hints: Any,
    ) -> None:
        check_range("lr", lr, 0.0)
        check_range("eps", eps, 0.0)
        check_range("betas[0]", betas[0], 0.0, 1.0)
        check_range("betas[1]", betas[1], 0.0, 1.0)
        check_range("weight_decay", weight_decay, 0.0)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults, hints)

    def _update(self, group: dict[str, Any]) -> None:
        lr, eps, decay = group["lr"], group["eps"], group["weight_decay"]
        beta1, beta2 = group["betas"]
        for p, grad in gradients(group):
            state = self.state[p]
            if not state:
                state["step"] = mica.tensor(0.0)
                state["exp_avg"] = mica.zeros_like(p)
                state["exp_avg_sq"] = mica.zeros_like(p)
                if group["amsgrad"]:
                    state["max_exp_avg_sq"] = mica.zeros_like(p)
            state["step"].add_(1)
            step = state["step"].item()
            if decay != 0:
                if group["decoupled_weight_decay"]:
                    p.mul_(1 - lr * decay)
                else:
                    grad = grad.add(p, alpha=decay)
            mean, square = state["exp_avg"], state["exp_avg_sq"]
            mean.lerp_(grad, 1 - beta1)
            square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
            if group["amsgrad"]:
                mica.maximum(state["max_exp_avg_sq"], square, out=state["max_exp_avg_sq"])
                square = state["max_exp_avg_sq"]
            root = math.sqrt(1 - beta2**step)
            denominator = square.sqrt().div_(root).add_(eps)
            p.addcdiv_(mean, denominator, value=-lr / (1 - beta1**step))


class AdamW(Adam):
    """Adam with weight decay apart from the gradient."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        **hints: Any,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            maximize=maximize,
            decoupled_weight_decay=True,
            **hints,
        )
