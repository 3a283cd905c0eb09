"""Adam and AdamW (Kingma and Ba, 2015; Loshchilov and Hutter, 2019)."""

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
    logarithm,
    one_kernel,
    run,
    run_capturable,
    scalar,
)


class Adam(GroupOptimizer):
    """Steps by running means of the gradient and of its square, each element at a rate of its own.

    As `torch.optim.Adam`. At its step `t` (from 1), a parameter `p` with gradient `g` becomes::

        g = g + weight_decay * p                    (unless decoupled_weight_decay)
        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g**2
        m_hat, v_hat = m / (1 - beta1**t), v / (1 - beta2**t)
        p = p - lr * m_hat / (sqrt(v_hat) + eps)

    Args:
        params (iterable): Parameters to optimize, as `mica.optim.Optimizer` takes them.
        lr (float or Tensor): Learning rate, about the length of a step. Default: 1e-3.
        betas (tuple of 2 float or of 2 Tensor): Decay of the means of `g` and of `g**2`, in [0, 1).
            Default: (0.9, 0.999).
        eps (float): Added to the denominator, against division by zero. Default: 1e-8.
        weight_decay (float): Strength of the L2 penalty, at least 0. Default: 0.
        amsgrad (bool): Divide by the largest `v` so far instead of the last. Default: False.
        foreach (bool, optional): No effect: a step always runs over lists of tensors. Default: None.
        maximize (bool): Climb the gradient instead of descending it. Default: False.
        capturable (bool): `step()` can be recorded into a graph (`mica.cuda.graph`).
            Default: False.
        differentiable (bool): Record the step for autograd, so that gradients flow through it.
            Default: False.
        fused (bool, optional): No effect but that True needs floating-point parameters. Default: None.
        decoupled_weight_decay (bool): Decay `p` itself, as `AdamW` does. Default: False.

    Attributes:
        state (dict): For each parameter `step` (`t`), `exp_avg` (`m`), `exp_avg_sq` (`v`) and, with
            amsgrad, `max_exp_avg_sq`.

    Raises:
        ValueError: A hyperparameter is out of its range, or `params` is empty.

    Example:
        >>> w = mica.tensor([1.0, -2.0], requires_grad=True)
        >>> optimizer = mica.optim.Adam([w], lr=0.1)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w
        tensor([ 0.9000, -1.9000], requires_grad=True)
    """

    _slots = ("exp_avg", "exp_avg_sq")
    _capturable = True
    _columns = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq", "step")

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        check_rate(lr, foreach, capturable)
        check_range("eps", eps, 0.0)
        check_betas(betas)
        check_range("weight_decay", weight_decay, 0.0)
        if isinstance(betas[0], Tensor) != isinstance(betas[1], Tensor) or isinstance(betas[0], int):
            raise ValueError(f"The option betas {tuple(betas)} must be either both floats or both Tensors.")
        if isinstance(betas[0], Tensor) and foreach and not capturable:
            raise ValueError("betas as Tensors are not supported for capturable=False and foreach=True.")
        defaults = {
            "lr": lr,
            "betas": tuple(map(scalar, betas)),
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults)

    def _begin(self, group: dict[str, Any], p: Tensor, own: dict[str, Any]) -> None:
        super()._begin(group, p, own)
        if group["amsgrad"]:
            own["max_exp_avg_sq"] = mica.zeros_like(p)

    def _update(self, group: dict[str, Any], rows: Rows) -> None:
        lr, eps, decay = scalar(group["lr"], group), group["eps"], scalar(group["weight_decay"], group)
        beta1, beta2 = group["betas"]
        lost = 0.0  # times lr: what the parameter loses
        if group["decoupled_weight_decay"]:
            lost, decay = decay, 0

        def numbers(step: float) -> tuple[Any, ...]:
            root = (1 - beta2**step) ** 0.5
            return 1 - beta1, beta2, 1 - beta2, root, eps, lr / (1 - beta1**step), 1 - lr * lost

        rows.prepare(group, decay)
        steps = self._advance(group, rows)
        kind, slots = "adam", self._slots
        if group["amsgrad"]:
            kind, slots = "amsgrad", (*slots, "max_exp_avg_sq")
        if not one_kernel(group):
            run(f"_{kind}_step", group, rows, slots, steps, numbers)
            return
        if isinstance(lost, Tensor):
            mica._foreach_mul_(rows.params, 1 - lr * lost)
            lost = 0.0
        constants = (1 - beta1, beta2, 1 - beta2, eps, lost)
        logarithms = (logarithm(beta1), logarithm(beta2))
        run_capturable(f"_{kind}_capturable_step", rows, slots, lr, (*logarithms, *constants))


class AdamW(Adam):
    """Adam whose weight decay shrinks the parameters and stays out of the gradient's means.

    As `torch.optim.AdamW`. A step first computes `p = p * (1 - lr * weight_decay)` and then does
    what `Adam` does without decay.

    Args:
        params (iterable): Parameters to optimize, as `mica.optim.Optimizer` takes them.
        lr (float or Tensor): Learning rate, about the length of a step. Default: 1e-3.
        betas (tuple of 2 float or of 2 Tensor): Decay of the means of `g` and of `g**2`, in [0, 1).
            Default: (0.9, 0.999).
        eps (float): Added to the denominator, against division by zero. Default: 1e-8.
        weight_decay (float): Share of `p`, times `lr`, that a step takes away. Default: 1e-2.
        amsgrad (bool): Divide by the largest `v` so far instead of the last. Default: False.
        maximize (bool): Climb the gradient instead of descending it. Default: False.
        foreach (bool, optional): No effect: a step always runs over lists of tensors. Default: None.
        capturable (bool): `step()` can be recorded into a graph (`mica.cuda.graph`).
            Default: False.
        differentiable (bool): Record the step for autograd, so that gradients flow through it.
            Default: False.
        fused (bool, optional): No effect but that True needs floating-point parameters. Default: None.

    Attributes:
        state (dict): As `Adam` has it.

    Raises:
        ValueError: A hyperparameter is out of its range, or `params` is empty.

    Example:
        >>> w = mica.tensor([1.0, -2.0], requires_grad=True)
        >>> optimizer = mica.optim.AdamW([w], lr=0.1)
        >>> w.sum().backward()
        >>> optimizer.step()
        >>> w
        tensor([ 0.8990, -2.0980], requires_grad=True)
    """

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )
