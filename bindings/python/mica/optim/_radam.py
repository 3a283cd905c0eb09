"""RAdam (Liu and others, 2020): Adam whose scaling waits until the variance can be told."""

from __future__ import annotations

from typing import Any

from mica._C import Tensor
from mica.optim._moments import _MomentOptimizer
from mica.optim._steps import Rows, run, scalar


class RAdam(_MomentOptimizer):
    """Adam that steps by momentum alone until the variance of its second moment is small enough.

    As `torch.optim.RAdam`. At its step `t` (from 1), a parameter `p` with gradient `g` becomes, with
    `n_max = 2 / (1 - beta2) - 1` and `n = n_max - 2 * t * beta2**t / (1 - beta2**t)`::

        g = g + weight_decay * p                    (unless decoupled_weight_decay)
        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g**2
        m_hat = m / (1 - beta1**t)
        r = sqrt((n - 4) * (n - 2) * n_max / ((n_max - 4) * (n_max - 2) * n))
        p = p - lr * m_hat * r * sqrt(1 - beta2**t) / (sqrt(v) + eps)      (if n > 5)
        p = p - lr * m_hat                                                 (if n <= 5)

    Args:
        params (iterable): Parameters to optimize, as `mica.optim.Optimizer` takes them.
        lr (float or Tensor): Learning rate, at least 0. Default: 1e-3.
        betas (tuple of 2 float): Decay of the means of `g` and of `g**2`, in [0, 1). Default: (0.9,
            0.999).
        eps (float): Added to the denominator, against division by zero. Default: 1e-8.
        weight_decay (float): Strength of the L2 penalty, at least 0. Default: 0.
        decoupled_weight_decay (bool): Decay by `p = p * (1 - lr * weight_decay)`, as `AdamW` does.
            Default: False.
        foreach (bool, optional): No effect: a step always runs over lists of tensors. Default: None.
        maximize (bool): Climb the gradient instead of descending it. Default: False.
        capturable (bool): Must be False: the step reads values, which no graph records.
            Default: False.
        differentiable (bool): Record the step for autograd, so that gradients flow through it.
            Default: False.

    Attributes:
        state (dict): For each parameter `step` (`t`), `exp_avg` (`m`) and `exp_avg_sq` (`v`).

    Raises:
        ValueError: A hyperparameter is out of its range, or `params` is empty.

    Example:
        >>> w = mica.tensor([1.0, -2.0], requires_grad=True)
        >>> optimizer = mica.optim.RAdam([w], lr=0.1)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w
        tensor([ 0.8000, -1.6000], requires_grad=True)
    """

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
        steps = self._advance(group, rows)
        for operator, numbers, chosen in (
            ("_adam_step", rectified, [length(step) > 5.0 for step in steps]),
            ("_moments_step", plain, [length(step) <= 5.0 for step in steps]),
        ):
            if True in chosen:
                keys = [step for step, use in zip(steps, chosen) if use]
                run(operator, group, rows.where(chosen), self._slots, keys, numbers)
