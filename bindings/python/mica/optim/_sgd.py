"""Stochastic gradient descent."""

from __future__ import annotations

from typing import Any

from mica.optim._optimizer import Optimizer, check_range, gradients


class SGD(Optimizer):
    """p -= lr * g, with momentum, Nesterov's variant and weight decay."""

    _hints = {"foreach": None, "differentiable": False, "fused": None}

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        **hints: Any,
    ) -> None:
        check_range("lr", lr, 0.0)
        check_range("momentum", momentum, 0.0)
        check_range("weight_decay", weight_decay, 0.0)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov's momentum needs a momentum and zero dampening.")
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
        }
        super().__init__(params, defaults, hints)

    def _update(self, group: dict[str, Any]) -> None:
        lr, momentum = group["lr"], group["momentum"]
        decay, dampening, nesterov = group["weight_decay"], group["dampening"], group["nesterov"]
        for p, grad in gradients(group):
            if decay != 0:
                grad = grad.add(p, alpha=decay)
            if momentum != 0:
                state = self.state[p]
                buffer = state.get("momentum_buffer")
                if buffer is None:
                    buffer = state["momentum_buffer"] = grad.detach().clone()
                else:
                    buffer.mul_(momentum).add_(grad, alpha=1 - dampening)
                grad = grad.add(buffer, alpha=momentum) if nesterov else buffer
            p.add_(grad, alpha=-lr)
