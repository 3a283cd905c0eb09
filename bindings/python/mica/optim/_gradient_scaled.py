"""Optimisers that scale each element by its gradients' history: Adagrad (Duchi and
others, 2011), Adadelta (Zeiler, 2012), Adamax (Kingma and Ba, 2015), NAdam (Dozat,
2016), RAdam (Liu and others, 2020)."""

from __future__ import annotations

import math
from typing import Any

import mica
from mica.optim._optimizer import Optimizer, check_range, gradients


class Adagrad(Optimizer):
    """p -= lr * g / (sqrt(sum of all g^2) + eps), with a rate that decays."""

    _hints = {"foreach": None, "differentiable": False, "fused": None}

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        **hints: Any,
    ) -> None:
        for name, value in (("lr", lr), ("lr_decay", lr_decay), ("weight_decay", weight_decay), ("eps", eps)):
            check_range(name, value, 0.0)
        check_range("initial_accumulator_value", initial_accumulator_value, 0.0)
        defaults = {
            "lr": lr,
            "lr_decay": lr_decay,
            "eps": eps,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
            "maximize": maximize,
        }
        super().__init__(params, defaults, {"foreach": foreach, **hints})
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p] = {
                    "step": mica.tensor(0.0),
                    "sum": mica.full_like(p, initial_accumulator_value).detach(),
                }

    def _update(self, group: dict[str, Any]) -> None:
        for p, grad in gradients(group, decay=True):
            state = self.state[p]
            state["step"] += 1
            rate = group["lr"] / (1 + (state["step"].item() - 1) * group["lr_decay"])
            total = state["sum"].addcmul_(grad, grad)
            p.addcdiv_(grad, total.sqrt().add_(group["eps"]), value=-rate)


class Adadelta(Optimizer):
    """Steps by the ratio of running root mean squares of steps and of gradients."""

    _hints = {"foreach": None, "differentiable": False, "capturable": False}

    def __init__(
        self,
        params: Any,
        lr: float = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        **hints: Any,
    ) -> None:
        check_range("lr", lr, 0.0)
        check_range("rho", rho, 0.0, 1.0 + 1e-12)
        check_range("eps", eps, 0.0)
        check_range("weight_decay", weight_decay, 0.0)
        defaults = {"lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize}
        super().__init__(params, defaults, {"foreach": foreach, **hints})

    def _update(self, group: dict[str, Any]) -> None:
        rho, eps = group["rho"], group["eps"]
        for p, grad in gradients(group, decay=True):
            state = self.state[p]
            if not state:
                state["step"] = mica.tensor(0.0)
                state["square_avg"] = mica.zeros_like(p)
                state["acc_delta"] = mica.zeros_like(p)
            state["step"] += 1
            square = state["square_avg"].mul_(rho).addcmul_(grad, grad, value=1 - rho)
            steps = state["acc_delta"]
            step = steps.add(eps).sqrt_().div_(square.add(eps).sqrt_()).mul_(grad)
            steps.mul_(rho).addcmul_(step, step, value=1 - rho)
            p.add_(step, alpha=-group["lr"])


class _MomentOptimizer(Optimizer):
    """Those with betas, eps and decay, whose state begins with a running mean."""

    _hints = {"foreach": None, "differentiable": False, "capturable": False}
    _second = "exp_avg_sq"

    def __init__(
        self, params: Any, options: dict[str, Any], decoupled: bool | None, hints: dict[str, Any]
    ) -> None:
        for name in ("lr", "eps", "weight_decay"):
            check_range(name, options[name], 0.0)
        for i, beta in enumerate(options["betas"]):
            check_range(f"betas[{i}]", beta, 0.0, 1.0)
        if decoupled is not None:
            options["decoupled_weight_decay"] = decoupled
        super().__init__(params, options, hints)

    def _start(self, p: Any) -> dict[str, Any]:
        state = self.state[p]
        if not state:
            state["step"] = mica.tensor(0.0)
            state["exp_avg"] = mica.zeros_like(p)
            state[self._second] = mica.zeros_like(p)
        state["step"] += 1
        return state

    def _decayed(self, group: dict[str, Any], p: Any, grad: Any) -> Any:
        decay = group["weight_decay"]
        if decay == 0:
            return grad
        if not group.get("decoupled_weight_decay"):
            return grad.add(p, alpha=decay)
        p.mul_(1 - group["lr"] * decay)
        return grad


class Adamax(_MomentOptimizer):
    """Adam with a running maximum of |g| for its running mean square."""

    _second = "exp_inf"

    def __init__(
        self,
        params: Any,
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        **hints: Any,
    ) -> None:
        options = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "maximize": maximize}
        super().__init__(params, options, None, {"foreach": foreach, **hints})

    def _update(self, group: dict[str, Any]) -> None:
        beta1, beta2 = group["betas"]
        for p, grad in gradients(group):
            state = self._start(p)
            grad = self._decayed(group, p, grad)
            mean = state["exp_avg"].lerp_(grad, 1 - beta1)
            largest = mica.maximum(state["exp_inf"].mul_(beta2), grad.abs().add_(group["eps"]))
            state["exp_inf"].copy_(largest)
            p.addcdiv_(mean, largest, value=-group["lr"] / (1 - beta1 ** state["step"].item()))


class NAdam(_MomentOptimizer):
    """Adam with Nesterov's momentum."""

    def __init__(
        self,
        params: Any,
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        maximize: bool = False,
        **hints: Any,
    ) -> None:
        check_range("momentum_decay", momentum_decay, 0.0)
        options = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum_decay": momentum_decay,
            "maximize": maximize,
        }
        super().__init__(params, options, decoupled_weight_decay, hints)

    def _update(self, group: dict[str, Any]) -> None:
        beta1, beta2 = group["betas"]
        lr, decay = group["lr"], group["momentum_decay"]
        for p, grad in gradients(group):
            fresh = not self.state[p]
            state = self._start(p)
            if fresh:
                state["mu_product"] = mica.tensor(1.0)
            step = state["step"].item()
            grad = self._decayed(group, p, grad)
            mu = beta1 * (1.0 - 0.5 * 0.96 ** (step * decay))
            mu_next = beta1 * (1.0 - 0.5 * 0.96 ** ((step + 1) * decay))
            product = state["mu_product"].mul_(mu).item()
            mean = state["exp_avg"].lerp_(grad, 1 - beta1)
            square = state["exp_avg_sq"].mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
            root = square.div(1 - beta2**step).sqrt_().add_(group["eps"])
            p.addcdiv_(grad, root, value=-lr * (1.0 - mu) / (1.0 - product))
            p.addcdiv_(mean, root, value=-lr * mu_next / (1.0 - product * mu_next))


class RAdam(_MomentOptimizer):
    """Adam whose scaling by squares begins when their variance can be told."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        maximize: bool = False,
        **hints: Any,
    ) -> None:
        options = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "maximize": maximize}
        super().__init__(params, options, decoupled_weight_decay, hints)

    def _update(self, group: dict[str, Any]) -> None:
        beta1, beta2 = group["betas"]
        longest = 2 / (1 - beta2) - 1
        for p, grad in gradients(group):
            state = self._start(p)
            step = state["step"].item()
            grad = self._decayed(group, p, grad)
            mean = state["exp_avg"].lerp_(grad, 1 - beta1)
            square = state["exp_avg_sq"].mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
            left = 1 - beta2**step
            length = longest - 2 * step * beta2**step / left
            update = mean / (1 - beta1**step)
            if length > 5.0:
                rectified = (length - 4) * (length - 2) * longest
                rectified /= (longest - 4) * (longest - 2) * length
                update = update.mul_(math.sqrt(rectified * left)).div_(square.sqrt().add_(group["eps"]))
            p.add_(update, alpha=-group["lr"])
