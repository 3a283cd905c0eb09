"""Averaged stochastic gradient descent (Polyak and Juditsky, 1992)."""

from __future__ import annotations

from typing import Any

import mica
from mica._C import Tensor
from mica.optim._steps import GroupOptimizer, Rows, check_range, check_rate, fill, run, scalar


class ASGD(GroupOptimizer):
    """Gradient descent at a falling rate, which also keeps the mean of its late iterates.

    As `torch.optim.ASGD`. At its step `t` (from 1), a parameter `p` with gradient `g` becomes, with
    `eta = lr` and `mu = 1` at first::

        g = g + weight_decay * p
        p = p * (1 - lambd * eta) - eta * g
        ax = ax + mu * (p - ax)
        eta = lr / (1 + lambd * lr * t)**alpha
        mu = 1 / max(1, t - t0)

    Args:
        params (iterable): Parameters to optimize, as `mica.optim.Optimizer` takes them.
        lr (float or Tensor): Learning rate of the first step. Default: 1e-2.
        lambd (float): Decay of `p` in each step, and how fast `eta` falls. Default: 1e-4.
        alpha (float): Exponent of the fall of `eta`. Default: 0.75.
        t0 (float): Step from which on `ax` is a mean; until then it equals `p`. Default: 1e6.
        weight_decay (float): Strength of the L2 penalty, at least 0. Default: 0.
        foreach (bool, optional): No effect: a step always runs over lists of tensors. Default: None.
        maximize (bool): Climb the gradient instead of descending it. Default: False.
        differentiable (bool): Record the step for autograd, so that gradients flow through it.
            Default: False.
        capturable (bool): Must be False: the step reads values, which no graph records.
            Default: False.

    Attributes:
        state (dict): For each parameter `step` (`t`), `eta`, `mu` and the averaged parameter `ax`.

    Raises:
        ValueError: `lr` or `weight_decay` is negative, or `params` is empty.

    Example:
        >>> w = mica.tensor([1.0, -2.0], requires_grad=True)
        >>> optimizer = mica.optim.ASGD([w], lr=0.1, t0=0)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w, optimizer.state[w]["ax"]
        (tensor([ 0.8000, -1.6000], requires_grad=True), tensor([ 0.8000, -1.6000]))
    """

    _columns = ("mu", "ax", "eta", "step")

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_rate(lr)
        check_range("weight_decay", weight_decay, 0.0)
        defaults = {
            "lr": lr,
            "lambd": lambd,
            "alpha": alpha,
            "t0": t0,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _begin(self, group: dict[str, Any], p: Tensor, own: dict[str, Any]) -> None:
        super()._begin(group, p, own)
        own["eta"] = mica.full_like(own["step"], float(group["lr"]))
        own["mu"] = mica.ones_like(own["step"])
        own["ax"] = mica.zeros_like(p)

    def _update(self, group: dict[str, Any], rows: Rows) -> None:
        lr, lambd, alpha, t0 = scalar(group["lr"]), group["lambd"], group["alpha"], group["t0"]
        rows.prepare(group, group["weight_decay"])
        steps = self._advance(group, rows)
        etas = [state["eta"] for state in rows.states]
        mus = [state["mu"] for state in rows.states]
        keys = [(eta.item(), mu.item()) for eta, mu in zip(etas, mus)]
        run("_asgd_step", group, rows, ("ax",), keys, lambda key: (1 - lambd * key[0], *key))
        fill(etas, [float(lr) / (1 + lambd * float(lr) * step) ** alpha for step in steps])
        fill(mus, [1 / max(1, step - t0) for step in steps])
