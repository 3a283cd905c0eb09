"""Rprop (Riedmiller and Braun, 1993): resilient steps by the gradient's sign."""

from __future__ import annotations

from typing import Any

import mica
from mica._C import Tensor
from mica.optim._steps import GroupOptimizer, Rows, check_rate, run


class Rprop(GroupOptimizer):
    """Steps by the sign of the gradient alone, each element by a length that adapts; for full batches.

    As `torch.optim.Rprop`. For an element `p` with gradient `g` and a length `s`, `lr` at first::

        s = s * etas[1] where g * g_before > 0      (the sign stays)
        s = s * etas[0] where g * g_before < 0, and then g = 0     (it turns)
        s = min(max(s, step_sizes[0]), step_sizes[1])
        p = p - sign(g) * s

    Args:
        params (iterable): Parameters to optimize, as `mica.optim.Optimizer` takes them.
        lr (float or Tensor): Length of the first step. Default: 1e-2.
        etas (tuple of 2 float): By what `s` shrinks, in (0, 1), and grows, above 1. Default: (0.5,
            1.2).
        step_sizes (tuple of 2 float): Least and greatest length of a step. Default: (1e-6, 50).
        capturable (bool): `step()` can be recorded into a graph (`mica.cuda.graph`).
            Default: False.
        foreach (bool, optional): No effect: a step always runs over lists of tensors. Default: None.
        maximize (bool): Climb the gradient instead of descending it. Default: False.
        differentiable (bool): Record the step for autograd, so that gradients flow through it.
            Default: False.

    Attributes:
        state (dict): For each parameter `step` (how many it had), `prev` (the last gradient) and
            `step_size` (`s`).

    Raises:
        ValueError: `lr` is negative, `etas` are out of their ranges, or `params` is empty.

    Example:
        >>> w = mica.tensor([1.0, -2.0], requires_grad=True)
        >>> optimizer = mica.optim.Rprop([w], lr=0.1)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w
        tensor([ 0.9000, -1.9000], requires_grad=True)
    """

    _slots = ("prev",)
    _capturable = True
    _columns = ("prev", "step_size", "step")

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_rate(lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"The option etas ({etas}) must have one value in (0, 1) and then one above 1.")
        defaults = {
            "lr": lr,
            "etas": etas,
            "step_sizes": step_sizes,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _begin(self, group: dict[str, Any], p: Tensor, own: dict[str, Any]) -> None:
        super()._begin(group, p, own)
        lr = float(group["lr"])
        own["step_size"] = mica.full_like(p.grad, complex(lr, lr) if p.is_complex() else lr).detach()

    def _update(self, group: dict[str, Any], rows: Rows) -> None:
        rows.prepare(group, 0)
        steps = self._advance(group, rows)
        numbers = (*group["etas"], *group["step_sizes"])
        run("_rprop_step", group, rows, ("prev", "step_size"), steps[:1], lambda _: numbers)
