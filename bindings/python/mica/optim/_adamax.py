"""Adamax (Kingma and Ba, 2015): Adam by the infinity norm."""

from __future__ import annotations

from typing import Any

from mica._C import Tensor
from mica.optim._moments import _MomentOptimizer
from mica.optim._steps import Rows, logarithm, one_kernel, run, run_capturable, scalar


class Adamax(_MomentOptimizer):
    """Adam with a running maximum of `abs(g)` in the place of the root mean square.

    As `torch.optim.Adamax`. At its step `t` (from 1), a parameter `p` with gradient `g` becomes::

        g = g + weight_decay * p
        m = beta1 * m + (1 - beta1) * g
        u = max(beta2 * u, abs(g) + eps)
        p = p - lr / (1 - beta1**t) * m / u

    Args:
        params (iterable): Parameters to optimize, as `mica.optim.Optimizer` takes them.
        lr (float or Tensor): Learning rate, about the length of a step. Default: 2e-3.
        betas (tuple of 2 float): Decay of the mean `m` and of the maximum `u`, in [0, 1).
            Default: (0.9, 0.999).
        eps (float): Added to `abs(g)`, against division by zero. Default: 1e-8.
        weight_decay (float): Strength of the L2 penalty, at least 0. Default: 0.
        foreach (bool, optional): No effect: a step always runs over lists of tensors. Default: None.
        maximize (bool): Climb the gradient instead of descending it. Default: False.
        differentiable (bool): Record the step for autograd, so that gradients flow through it.
            Default: False.
        capturable (bool): `step()` can be recorded into a graph (`mica.cuda.graph`).
            Default: False.

    Attributes:
        state (dict): For each parameter `step` (`t`), `exp_avg` (`m`) and `exp_inf` (`u`).

    Raises:
        ValueError: A hyperparameter is out of its range, or `params` is empty.

    Example:
        >>> w = mica.tensor([1.0, -2.0], requires_grad=True)
        >>> optimizer = mica.optim.Adamax([w], lr=0.1)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w
        tensor([ 0.9000, -1.9000], requires_grad=True)
    """

    _slots = ("exp_avg", "exp_inf")
    _capturable = True
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
        (beta1, beta2), eps, lr = group["betas"], group["eps"], scalar(group["lr"], group)
        self._kept(group, rows)
        steps = self._advance(group, rows)

        def numbers(step: float) -> tuple[Any, ...]:
            return 1 - beta1, beta2, eps, lr / (1 - beta1**step)

        if one_kernel(group):
            constants = (logarithm(beta1), 1 - beta1, beta2, eps)
            run_capturable("_adamax_capturable_step", rows, self._slots, lr, constants)
        else:
            run("_adamax_step", group, rows, self._slots, steps, numbers)
