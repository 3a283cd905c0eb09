"""Stochastic gradient descent."""

from __future__ import annotations

from typing import Any

import mica
from mica._C import Tensor
from mica.optim._steps import (
    GroupOptimizer,
    Rows,
    check_first_step,
    check_fused,
    check_range,
    check_rate,
    run,
    scalar,
)


class SGD(GroupOptimizer):
    """Stochastic gradient descent: `p -= lr * g`, with momentum and weight decay if asked.

    As `torch.optim.SGD`. For a parameter `p` with gradient `g`, a step computes::

        g = g + weight_decay * p
        b = momentum * b + (1 - dampening) * g      (b = g at the first step)
        d = g + momentum * b if nesterov else b     (d = g where momentum is 0)
        p = p - lr * d

    Args:
        params (iterable): Parameters to optimize, as `mica.optim.Optimizer` takes them.
        lr (float or Tensor): Learning rate, at least 0. Default: 1e-3.
        momentum (float): Share of the last direction that is kept, at least 0. Default: 0.
        dampening (float): Share of the gradient that does not enter the momentum. Default: 0.
        weight_decay (float or Tensor): Strength of the L2 penalty, at least 0. Default: 0.
        nesterov (bool): Use Nesterov's momentum, which needs `momentum > 0` and `dampening == 0`.
            Default: False.
        maximize (bool): Climb the gradient instead of descending it. Default: False.
        foreach (bool, optional): No effect: a step always runs over lists of tensors. Default: None.
        differentiable (bool): Record the step for autograd, so that gradients flow through it.
            Default: False.
        fused (bool, optional): No effect but that True needs floating-point parameters. Default: None.

    Attributes:
        state (dict): For each parameter `momentum_buffer` (`b`), once it has had a step with momentum.

    Raises:
        ValueError: A hyperparameter is out of its range, or `params` is empty.

    Example:
        >>> w = mica.tensor([1.0, -2.0], requires_grad=True)
        >>> optimizer = mica.optim.SGD([w], lr=0.1, momentum=0.9)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w
        tensor([ 0.8000, -1.6000], requires_grad=True)
    """

    _columns = ("momentum_buffer?",)

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float | Tensor = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_rate(lr)
        check_range("momentum", momentum, 0.0)
        check_range("weight_decay", weight_decay, 0.0)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError(
                f"Nesterov momentum requires a momentum and zero dampening, but got {momentum} and {dampening}."
            )
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            "foreach": foreach,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)

    def _keeps_state(self, group: dict[str, Any]) -> bool:
        return bool(group["momentum"] != 0)

    def _begin(self, group: dict[str, Any], p: Tensor, own: dict[str, Any]) -> None:
        if group["fused"]:
            check_fused(p)

    def _kinds(self, rows: Rows) -> Any:
        return False  # no gradient is sparse

    def _update(self, group: dict[str, Any], rows: Rows) -> None:
        decay = scalar(group["weight_decay"], group)
        # A number is added within the step's own operator.
        within = 0.0 if isinstance(decay, Tensor) or group["momentum"] == 0 else decay
        rows.prepare(group, decay if within == 0 else 0.0)
        descend(group, rows, 1 - group["dampening"], within)


def descend(group: dict[str, Any], rows: Rows, rate: float, decay: float = 0.0) -> None:
    """Takes lr times the gradients, or their running sums, from the parameters. With momentum, `decay` times the
    parameters is added to the gradients first."""
    lr, momentum = scalar(group["lr"], group), group["momentum"]
    if momentum == 0:
        if isinstance(lr, Tensor):
            mica._foreach_sub_(rows.params, mica._foreach_mul(rows.grads, lr))
        else:
            mica._foreach_add_(rows.params, rows.grads, alpha=-lr)
        return
    rates = []  # the first gradient is the first sum
    for p, state in zip(rows.given, rows.states):
        first = state.get("momentum_buffer") is None
        if first:
            check_first_step(group, p)
            state["momentum_buffer"] = mica.zeros_like(p)
        rates.append(1.0 if first else rate)
    operator = "_sgd_nesterov_step" if group.get("nesterov") else "_sgd_step"
    run(operator, group, rows, ("momentum_buffer",), rates, lambda r: (momentum, r, decay, lr))
