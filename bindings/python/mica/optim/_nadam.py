"""NAdam (Dozat, 2016): Adam with Nesterov's momentum."""

from __future__ import annotations

from typing import Any

import mica
from mica._C import Tensor
from mica.optim._moments import _MomentOptimizer
from mica.optim._steps import Rows, check_range, run, scalar, step_dtype


class NAdam(_MomentOptimizer):
    """Adam with Nesterov's momentum.

    As `torch.optim.NAdam`. At its step `t` (from 1), a parameter `p` with gradient `g` becomes, with
    `mu(t) = beta1 * (1 - 0.5 * 0.96**(t * momentum_decay))` and `M(t) = mu(1) * ... * mu(t)`::

        g = g + weight_decay * p                    (unless decoupled_weight_decay)
        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g**2
        n = mu(t + 1) * m / (1 - M(t + 1)) + (1 - mu(t)) * g / (1 - M(t))
        p = p - lr * n / (sqrt(v / (1 - beta2**t)) + eps)

    Args:
        params (iterable): Parameters to optimize, as `mica.optim.Optimizer` takes them.
        lr (float or Tensor): Learning rate, about the length of a step. Default: 2e-3.
        betas (tuple of 2 float): Decay of the means of `g` and of `g**2`, in [0, 1). Default: (0.9,
            0.999).
        eps (float): Added to the denominator, against division by zero. Default: 1e-8.
        weight_decay (float): Strength of the L2 penalty, at least 0. Default: 0.
        momentum_decay (float): How fast `mu` approaches `beta1`, at least 0. Default: 4e-3.
        decoupled_weight_decay (bool): Decay by `p = p * (1 - lr * weight_decay)`, as `AdamW` does.
            Default: False.
        foreach (bool, optional): No effect: a step always runs over lists of tensors. Default: None.
        maximize (bool): Climb the gradient instead of descending it. Default: False.
        capturable (bool): Must be False: the step reads values, which no graph records.
            Default: False.
        differentiable (bool): Record the step for autograd, so that gradients flow through it.
            Default: False.

    Attributes:
        state (dict): For each parameter `step` (`t`), `mu_product` (`M`), `exp_avg` (`m`) and
            `exp_avg_sq` (`v`).

    Raises:
        ValueError: A hyperparameter is out of its range, or `params` is empty.

    Example:
        >>> w = mica.tensor([1.0, -2.0], requires_grad=True)
        >>> optimizer = mica.optim.NAdam([w], lr=0.1)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w
        tensor([ 0.8944, -1.8944], requires_grad=True)
    """

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
        steps = self._advance(group, rows)
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
