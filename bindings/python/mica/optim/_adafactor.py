"""Adafactor (Shazeer and Stern, 2018): second moments of matrices kept as rows and columns."""

from __future__ import annotations

from typing import Any

import mica
from mica._C import Tensor
from mica.optim._steps import GroupOptimizer, Rows, check_range, check_rate, scalar


class Adafactor(GroupOptimizer):
    """Adaptive steps in little memory: of a matrix's second moments only row and column means are kept.

    As `torch.optim.Adafactor`. At its step `t` (from 1), a parameter `p` with gradient `g` becomes,
    with `rms(x) = norm(x) / sqrt(numel(x))` and `w = t**beta2_decay`::

        rate = max(eps[1], rms(p)) * min(lr, 1 / sqrt(t))
        p = p * (1 - lr * weight_decay)
        r = r + w * (mean(g**2, -1) - r)            (c likewise over dimension -2)
        v = r * c / mean(r)                         (vectors: v = v + w * (g**2 - v))
        u = g / sqrt(max(v, eps[0]**2))
        p = p - rate * u / max(1, rms(u) / d)

    Args:
        params (iterable): Parameters to optimize, as `mica.optim.Optimizer` takes them; real ones only.
        lr (float or Tensor): Upper bound of the relative step, at least 0. Default: 1e-2.
        beta2_decay (float): Exponent, at most 0, that says how slowly `v` forgets as `t` grows.
            Default: -0.8.
        eps (tuple of 2 float): Least root of `v` (None: the dtype's epsilon) and least scale of `p`.
            Default: (None, 1e-3).
        d (float): Root mean square above which an update is clipped, at least 1. Default: 1.0.
        weight_decay (float): Share of `p`, times `lr`, that a step takes away. Default: 0.0.
        foreach (bool, optional): No effect. Default: None.
        maximize (bool): Climb the gradient instead of descending it. Default: False.

    Attributes:
        state (dict): For each parameter `step` (`t`) and, with two or more dimensions, `row_var` (`r`)
            and `col_var` (`c`), else `variance` (`v`).

    Raises:
        ValueError: A hyperparameter is out of its range, or `params` is empty.
        RuntimeError: A parameter is complex (from `step()`).

    Example:
        >>> w = mica.ones(2, 3, requires_grad=True)
        >>> optimizer = mica.optim.Adafactor([w], lr=0.1)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w[0], optimizer.state[w]["row_var"].shape
        (tensor([0.9000, 0.9000, 0.9000], grad_fn=<SelectBackward0>), mica.Size([2, 1]))
    """

    _columns = ("row_var?", "col_var?", "variance?", "step")

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        check_rate(lr)
        if not beta2_decay <= 0.0:
            raise ValueError(f"The option beta2_decay should be <= 0 but is: {beta2_decay}.")
        if eps[0] is not None:
            check_range("eps[0]", eps[0], 0.0)
        check_range("eps[1]", eps[1], 0.0)
        if not d >= 1.0:
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}.")
        check_range("weight_decay", weight_decay, 0.0)
        defaults = {
            "lr": lr,
            "beta2_decay": beta2_decay,
            "eps": eps,
            "d": d,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def _begin(self, group: dict[str, Any], p: Tensor, own: dict[str, Any]) -> None:
        if p.is_complex():
            raise RuntimeError(f"Adafactor does not support complex parameters; this one is of ({p.dtype}).")
        super()._begin(group, p, own)
        if p.ndim > 1:
            own["row_var"] = p.grad.new_zeros((*p.shape[:-1], 1))
            own["col_var"] = p.grad.new_zeros((*p.shape[:-2], 1, p.shape[-1]))
        else:
            own["variance"] = mica.zeros_like(p.grad)

    def _update(self, group: dict[str, Any], rows: Rows) -> None:
        lr, decay = scalar(group["lr"]), group["weight_decay"]
        rows.prepare(group, 0)
        steps = self._advance(group, rows)
        for p, grad, state, step in zip(rows.params, rows.grads, rows.states, steps):
            small, least = group["eps"]
            small = mica.finfo(p.dtype).eps if small is None else small
            alpha = max(least, p.norm(2).item() / p.numel() ** 0.5) * min(lr, 1 / step**0.5)
            if decay != 0:
                p.mul_(1 - lr * decay)
            update = _variance(grad, state, step ** group["beta2_decay"], small)
            update = update.clamp_(min=small * small).rsqrt_().mul_(grad)
            clip = max(1.0, update.norm(2).item() / (update.numel() ** 0.5 * group["d"]))
            p.add_(update, alpha=-alpha / clip)


def _variance(grad: Tensor, state: dict[str, Any], weight: float, small: float) -> Tensor:
    """The estimate of grad's second moment, after `state` has taken grad in."""
    if grad.ndim <= 1:
        return state["variance"].lerp_(grad * grad, weight).clone()
    for name, dim in (("row_var", -1), ("col_var", -2)):
        mean = grad.norm(dim=dim, keepdim=True).square_().div_(grad.size(dim))
        state[name].lerp_(mean, weight)
    found = state["row_var"] @ state["col_var"]
    return found.div_(state["row_var"].mean(dim=-2, keepdim=True).clamp_(min=small))
