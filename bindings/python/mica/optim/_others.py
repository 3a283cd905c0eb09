"""Rprop (Riedmiller and Braun, 1993) and averaged stochastic gradient descent
(Polyak and Juditsky, 1992)."""

from __future__ import annotations

from typing import Any

import mica
from mica.optim._optimizer import Optimizer, check_range, gradients


class Rprop(Optimizer):
    """Steps by the sign of the gradient, of a size that grows while the sign stays."""

    _hints = {"foreach": None, "differentiable": False, "capturable": False}

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        maximize: bool = False,
        **hints: Any,
    ) -> None:
        check_range("lr", lr, 0.0)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"The option etas ({etas}) must have one value in (0, 1) and then one above 1.")
        defaults = {"lr": lr, "etas": etas, "step_sizes": step_sizes, "maximize": maximize}
        super().__init__(params, defaults, hints)

    def _update(self, group: dict[str, Any]) -> None:
        down, up = group["etas"]
        smallest, largest = group["step_sizes"]
        for p, grad in gradients(group):
            state = self.state[p]
            if not state:
                state["step"] = mica.tensor(0.0)
                state["prev"] = mica.zeros_like(p)
                state["step_size"] = mica.full_like(grad, group["lr"])
            state["step"] += 1
            turn = grad * state["prev"]
            factor = mica.where(turn > 0, up, mica.where(turn < 0, down, mica.ones_like(turn)))
            size = state["step_size"].mul_(factor).clamp_(smallest, largest)
            grad = grad.masked_fill(turn < 0, 0)  # after a turn one step is left out
            p.addcmul_(grad.sign(), size, value=-1)
            state["prev"].copy_(grad)


class ASGD(Optimizer):
    """Gradient descent with a decaying rate, and the mean of its late iterates in the state `ax`."""

    _hints = {"foreach": None, "differentiable": False, "capturable": False}

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        **hints: Any,
    ) -> None:
        check_range("lr", lr, 0.0)
        check_range("weight_decay", weight_decay, 0.0)
        defaults = {
            "lr": lr,
            "lambd": lambd,
            "alpha": alpha,
            "t0": t0,
            "weight_decay": weight_decay,
            "maximize": maximize,
        }
        super().__init__(params, defaults, {"foreach": foreach, **hints})

    def _update(self, group: dict[str, Any]) -> None:
        lr, lambd = group["lr"], group["lambd"]
        for p, grad in gradients(group, decay=True):
            state = self.state[p]
            if not state:
                state["step"] = mica.tensor(0.0)
                state["eta"] = mica.tensor(float(lr))
                state["mu"] = mica.tensor(1.0)
                state["ax"] = mica.zeros_like(p)
            state["step"] += 1
            eta, mu, step = state["eta"].item(), state["mu"].item(), state["step"].item()
            p.mul_(1 - lambd * eta).add_(grad, alpha=-eta)
            if mu == 1:
                state["ax"].copy_(p)
            else:
                state["ax"].add_((p - state["ax"]).mul_(mu))
            state["eta"].fill_(lr / (1 + lambd * lr * step) ** group["alpha"])
            state["mu"].fill_(1 / max(1, step - group["t0"]))
