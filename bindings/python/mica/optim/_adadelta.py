"""Adadelta (Zeiler, 2012): steps by the ratio of running mean squares of steps and gradients."""

from __future__ import annotations

from typing import Any

from mica._C import Tensor
from mica.optim._steps import GroupOptimizer, Rows, check_range, check_rate, run, scalar


class Adadelta(GroupOptimizer):
    """Steps by the ratio of running root mean squares of past steps and of gradients.

    As `torch.optim.Adadelta`. For a parameter `p` with gradient `g`, a step computes::

        g = g + weight_decay * p
        v = rho * v + (1 - rho) * g**2
        d = sqrt(u + eps) / sqrt(v + eps) * g
        u = rho * u + (1 - rho) * d**2
        p = p - lr * d

    Args:
        params (iterable): Parameters to optimize, as `mica.optim.Optimizer` takes them.
        lr (float or Tensor): What the step is multiplied by, at least 0. Default: 1.0.
        rho (float): Decay of both means, in [0, 1]. Default: 0.9.
        eps (float): Added under both roots; large values make the first steps longer. Default: 1e-6.
        weight_decay (float): Strength of the L2 penalty, at least 0. Default: 0.
        foreach (bool, optional): No effect: a step always runs over lists of tensors. Default: None.
        capturable (bool): `step()` can be recorded into a graph (`mica.cuda.graph`).
            Default: False.
        maximize (bool): Climb the gradient instead of descending it. Default: False.
        differentiable (bool): Record the step for autograd, so that gradients flow through it.
            Default: False.

    Attributes:
        state (dict): For each parameter `step` (how many it had), `square_avg` (`v`) and `acc_delta`
            (`u`).

    Raises:
        ValueError: A hyperparameter is out of its range, or `params` is empty.

    Example:
        >>> w = mica.tensor([1.0, -2.0], requires_grad=True)
        >>> optimizer = mica.optim.Adadelta([w], eps=1e-2)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w
        tensor([ 0.6877, -1.6848], requires_grad=True)
    """

    _slots = ("square_avg", "acc_delta")
    _capturable = True
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
        rho, eps, lr = group["rho"], group["eps"], scalar(group["lr"], group)
        rows.prepare(group, group["weight_decay"])
        steps = self._advance(group, rows)
        run("_adadelta_step", group, rows, self._slots, steps[:1], lambda _: (rho, 1 - rho, eps, lr))
