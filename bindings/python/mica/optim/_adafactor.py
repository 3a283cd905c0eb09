"""Adafactor (Shazeer and Stern, 2018): second moments of matrices kept as rows and columns."""

from __future__ import annotations

from typing import Any

import mica
from mica.optim._optimizer import Optimizer, check_range, gradients


class Adafactor(Optimizer):
    """Adaptive steps in sublinear memory."""

    _hints = {"foreach": None, "maximize": False}

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        **hints: Any,
    ) -> None:
        check_range("lr", lr, 0.0)
        if beta2_decay > 0:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        if d < 1:
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
        check_range("weight_decay", weight_decay, 0.0)
        values = {"lr": lr, "beta2_decay": beta2_decay, "eps": eps, "d": d, "weight_decay": weight_decay}
        super().__init__(params, values, hints)

    def _update(self, group: dict[str, Any]) -> None:
        eps1, eps2 = group["eps"]
        for p, grad in gradients(group):
            state = self.state[p]
            if not state:
                state["step"] = mica.tensor(0.0)
                if p.dim() > 1:
                    state["row_var"] = p.new_zeros((*p.shape[:-1], 1))
                    state["col_var"] = p.new_zeros((*p.shape[:-2], 1, p.shape[-1]))
                else:
                    state["variance"] = mica.zeros_like(p)
            state["step"] += 1
            step = float(state["step"])
            small = mica.finfo(p.dtype).eps if eps1 is None else eps1
            one_minus_beta2 = step ** group["beta2_decay"]
            rho = min(group["lr"], 1 / step**0.5)
            alpha = max(eps2, float(p.norm(2)) / p.numel() ** 0.5) * rho
            if group["weight_decay"] != 0:
                p.mul_(1 - group["lr"] * group["weight_decay"])
            if p.dim() > 1:
                rows = grad.norm(dim=-1, keepdim=True).square_().div_(grad.size(-1))
                state["row_var"].lerp_(rows, one_minus_beta2)
                columns = grad.norm(dim=-2, keepdim=True).square_().div_(grad.size(-2))
                state["col_var"].lerp_(columns, one_minus_beta2)
                variance = state["row_var"] @ state["col_var"]
                variance.div_(state["row_var"].mean(dim=-2, keepdim=True).clamp_(min=small))
            else:
                state["variance"].lerp_(grad.square(), one_minus_beta2)
                variance = state["variance"].clone()
            update = variance.clamp_(min=small * small).rsqrt_().mul_(grad)
            clip = max(1.0, float(update.norm(2)) / (update.numel() ** 0.5 * group["d"]))
            p.add_(update, alpha=-alpha / clip)
