"""Optimisers that scale each element by its gradients' history: Adagrad (Duchi and
others, 2011), Adadelta (Zeiler, 2012), Adamax (Kingma and Ba, 2015), NAdam (Dozat,
2016), RAdam (Liu and others, 2020)."""

from __future__ import annotations

from typing import Any

import mica
from mica._C import Tensor
from mica.optim._steps import (
    GroupOptimizer,
    Rows,
    check_betas,
    check_range,
    check_rate,
    run,
    scalar,
    step_dtype,
)


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


class Adadelta(GroupOptimizer):
    """Steps by the ratio of running root mean squares of steps and of gradients."""

    _slots = ("square_avg", "acc_delta")
    _columns = ("square_avg", "acc_delta", "step")

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_rate(lr)
        check_range("rho", rho, 0.0, 1.0, last=True)
        check_range("eps", eps, 0.0)
        check_range("weight_decay", weight_decay, 0.0)
        defaults = {
            "lr": lr,
            "rho": rho,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "capturable": capturable,
            "foreach": foreach,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _update(self, group: dict[str, Any], rows: Rows) -> None:
        rho, eps, lr = group["rho"], group["eps"], scalar(group["lr"])
        rows.prepare(group, group["weight_decay"])
        steps = self._advance(rows)
        run("_adadelta_step", group, rows, self._slots, steps[:1], lambda _: (rho, 1 - rho, eps, lr))


class _MomentOptimizer(GroupOptimizer):
    """Those with betas, eps and decay, whose state begins with a running mean."""

    _slots = ("exp_avg", "exp_avg_sq")
    _columns = ("exp_avg", "exp_avg_sq", "step")

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        check_rate(defaults["lr"])
        check_range("eps", defaults["eps"], 0.0)
        check_betas(defaults["betas"])
        check_range("weight_decay", defaults["weight_decay"], 0.0)
        super().__init__(params, defaults)

    def _kept(self, group: dict[str, Any], rows: Rows) -> Any:
        """What the decay leaves of the parameter; where it is coupled it is added to the gradient."""
        decay = group["weight_decay"]
        if group.get("decoupled_weight_decay"):
            rows.prepare(group, 0)
            return 1 - scalar(group["lr"]) * decay
        rows.prepare(group, decay)
        return 1.0


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


class NAdam(_MomentOptimizer):
    """Adam with Nesterov's momentum."""

    _columns = ("exp_avg", "exp_avg_sq", "mu_product", "step")

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_range("momentum_decay", momentum_decay, 0.0)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _begin(self, group: dict[str, Any], p: Tensor, own: dict[str, Any]) -> None:
        own.update(step=None, mu_product=mica.tensor(1.0, dtype=step_dtype()))  # in torch's order
        super()._begin(group, p, own)

    def _update(self, group: dict[str, Any], rows: Rows) -> None:
        (beta1, beta2), eps, lr = group["betas"], group["eps"], scalar(group["lr"])
        slowness = group["momentum_decay"]
        kept = self._kept(group, rows)
        steps = self._advance(rows)
        products = [state["mu_product"] for state in rows.states]

        def mu(step: float) -> float:
            return float(beta1 * (1.0 - 0.5 * 0.96 ** (step * slowness)))

        def numbers(key: tuple[float, float]) -> tuple[Any, ...]:
            step, product = key
            following = mu(step + 1)
            rates = lr * (1.0 - mu(step)) / (1.0 - product), lr * following / (1.0 - product * following)
            return 1 - beta1, beta2, 1 - beta2, 1 - beta2**step, eps, *rates, kept

        found = mica._foreach_mul(products, [mu(step) for step in steps])
        keys = list(zip(steps, [product.item() for product in found]))
        run("_nadam_step", group, rows, self._slots, keys, numbers)
        mica._foreach_copy_(products, found)


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
