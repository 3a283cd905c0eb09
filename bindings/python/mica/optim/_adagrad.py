"""Adagrad (Duchi and others, 2011): each element is scaled by the sum of its squared gradients."""

from __future__ import annotations

from typing import Any

import mica
from mica._C import Tensor
from mica.optim._steps import GroupOptimizer, Rows, check_range, check_rate, run, scalar


class Adagrad(GroupOptimizer):
    """Divides each element's step by the root of the sum of its squared gradients so far.

    As `torch.optim.Adagrad`. At its step `t` (from 1), a parameter `p` with gradient `g` becomes::

        g = g + weight_decay * p
        s = s + g**2
        p = p - lr / (1 + (t - 1) * lr_decay) * g / (sqrt(s) + eps)

    Args:
        params (iterable): Parameters to optimize, as `mica.optim.Optimizer` takes them.
        lr (float or Tensor): Learning rate, the length of the first step. Default: 1e-2.
        lr_decay (float): How fast the rate falls with `t`, at least 0. Default: 0.
        weight_decay (float): Strength of the L2 penalty, at least 0. Default: 0.
        initial_accumulator_value (float): What `s` begins with, at least 0. Default: 0.
        eps (float): Added to the denominator, against division by zero. Default: 1e-10.
        foreach (bool, optional): No effect: a step always runs over lists of tensors. Default: None.
        maximize (bool): Climb the gradient instead of descending it. Default: False.
        differentiable (bool): Record the step for autograd, so that gradients flow through it.
            Default: False.
        fused (bool, optional): No effect but that True needs floating-point parameters. Default: None.

    Attributes:
        state (dict): For each parameter `step` (`t`) and `sum` (`s`), both from the beginning.

    Raises:
        ValueError: A hyperparameter is out of its range, or `params` is empty.

    Example:
        >>> w = mica.tensor([1.0, -2.0], requires_grad=True)
        >>> optimizer = mica.optim.Adagrad([w], lr=0.1)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w
        tensor([ 0.9000, -1.9000], requires_grad=True)
    """

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
        """Moves the sums `s` to memory that several processes share."""
        for own in self.state.values():
            own["sum"].share_memory_()

    def _update(self, group: dict[str, Any], rows: Rows) -> None:
        lr, decay, eps = scalar(group["lr"]), group["lr_decay"], group["eps"]
        rows.prepare(group, group["weight_decay"])
        steps = self._advance(group, rows)
        run("_adagrad_step", group, rows, ("sum",), steps, lambda step: (eps, lr / (1 + (step - 1) * decay)))
