"""RMSprop."""

from __future__ import annotations

from typing import Any

import mica
from mica._C import Tensor
from mica.optim._sgd import descend
from mica.optim._steps import GroupOptimizer, Rows, apply, by_operators, check_counts, check_range, check_rate


class RMSprop(GroupOptimizer):
    """Divides each element's step by the root of a running mean of its squared gradients.

    As `torch.optim.RMSprop`. For a parameter `p` with gradient `g`, a step computes::

        g = g + weight_decay * p
        v = alpha * v + (1 - alpha) * g**2
        a = alpha * a + (1 - alpha) * g             (centered only, else a = 0)
        d = g / (sqrt(v - a**2) + eps)
        b = momentum * b + d                        (where momentum is above 0, else b = d)
        p = p - lr * b

    Args:
        params (iterable): Parameters to optimize, as `mica.optim.Optimizer` takes them.
        lr (float or Tensor): Learning rate, at least 0. Default: 1e-2.
        alpha (float): Decay of the running means, at least 0. Default: 0.99.
        eps (float): Added to the denominator, against division by zero. Default: 1e-8.
        weight_decay (float): Strength of the L2 penalty, at least 0. Default: 0.
        momentum (float): Share of the last direction that is kept, at least 0. Default: 0.
        centered (bool): Divide by the running standard deviation instead. Default: False.
        capturable (bool): `step()` can be recorded into a graph (`mica.cuda.graph`).
            Default: False.
        foreach (bool, optional): No effect: a step always runs over lists of tensors. Default: None.
        maximize (bool): Climb the gradient instead of descending it. Default: False.
        differentiable (bool): Record the step for autograd, so that gradients flow through it.
            Default: False.

    Attributes:
        state (dict): For each parameter `step` (how many it had), `square_avg` (`v`) and, where asked,
            `momentum_buffer` (`b`) and `grad_avg` (`a`).

    Raises:
        ValueError: A hyperparameter is out of its range, or `params` is empty.

    Example:
        >>> w = mica.tensor([1.0, -2.0], requires_grad=True)
        >>> optimizer = mica.optim.RMSprop([w], lr=0.01)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w
        tensor([ 0.9000, -1.9000], requires_grad=True)
    """

    _slots = ("square_avg",)
    _capturable = True
    _columns = ("square_avg", "momentum_buffer", "grad_avg", "step")

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_rate(lr)
        for name, value in (("eps", eps), ("momentum", momentum), ("alpha", alpha)):
            check_range(name, value, 0.0)
        check_range("weight_decay", weight_decay, 0.0)
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "alpha": alpha,
            "eps": eps,
            "centered": centered,
            "weight_decay": weight_decay,
            "capturable": capturable,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _begin(self, group: dict[str, Any], p: Tensor, own: dict[str, Any]) -> None:
        super()._begin(group, p, own)
        if group["momentum"] > 0:
            own["momentum_buffer"] = mica.zeros_like(p)
        if group["centered"]:
            own["grad_avg"] = mica.zeros_like(p)

    def _update(self, group: dict[str, Any], rows: Rows) -> None:
        alpha, eps = group["alpha"], group["eps"]
        rows.counts = [own["step"] for own in rows.states]
        if group["capturable"]:
            check_counts(rows.given, rows.counts)
        rows.prepare(group, group["weight_decay"])
        scaled = [mica.empty_like(g) for g in rows.grads]
        state = [rows.column(name) for name in ("square_avg", *(["grad_avg"] if group["centered"] else []))]
        operator = "_rmsprop_scale_centered" if group["centered"] else "_rmsprop_scale"
        numbers = (alpha, 1 - alpha, eps)
        apply(operator, [rows.grads, *state], [scaled, *state], numbers, by_operators(group, numbers))
        rows.grads = scaled
        descend(group, rows, 1.0)
