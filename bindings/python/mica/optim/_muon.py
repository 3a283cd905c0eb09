"""Muon (Jordan, 2024): momentum of matrices, made orthogonal by a Newton-Schulz iteration."""

from __future__ import annotations

import math
from typing import Any

import mica
from mica._C import Tensor
from mica.optim._steps import GroupOptimizer, Rows, check_range, check_rate, scalar


def _zeropower_via_newtonschulz(
    grad: Tensor, ns_coefficients: tuple[float, float, float], ns_steps: int, eps: float
) -> Tensor:
    """The nearest orthogonal matrix, roughly: a quintic iteration on singular values, in bfloat16."""
    if ns_steps >= 100:
        raise ValueError(f"Number of steps ({ns_steps}) must be less than 100.")
    if grad.ndim != 2:
        raise ValueError(f"The gradient of ({grad.ndim}) dimensions must be a matrix.")
    if len(ns_coefficients) != 3:
        raise ValueError(f"The coefficients {ns_coefficients} must be three values.")
    a, b, c = ns_coefficients
    tall = grad.size(0) > grad.size(1)
    x = grad.bfloat16().T if tall else grad.bfloat16()
    x = x / x.norm().clamp(min=eps)
    for _ in range(ns_steps):
        gram = x @ x.T
        update = mica.addmm(gram, gram, gram, beta=b, alpha=c)
        x = mica.addmm(x, update, x, beta=a)
    return x.T if tall else x


class Muon(GroupOptimizer):
    """Momentum made orthogonal, for the weight matrices of hidden layers.

    As `torch.optim.Muon`. Embeddings, biases and other parameters take another optimizer. For a matrix
    `p` of shape `(rows, columns)` with gradient `g`, a step computes::

        b = momentum * b + (1 - momentum) * g
        u = (1 - momentum) * g + momentum * b if nesterov else b
        p = p * (1 - lr * weight_decay)
        p = p - lr * ratio * orthogonal(u)

    `orthogonal` replaces the singular values of a matrix by values near 1, with `ns_steps`
    Newton-Schulz iterations `x = a * x + (b * s + c * s @ s) @ x`, `s = x @ x.T`, in bfloat16.

    Args:
        params (iterable): Matrices to optimize, as `mica.optim.Optimizer` takes them.
        lr (float or Tensor): Learning rate, at least 0. Default: 1e-3.
        weight_decay (float): Share of `p`, times `lr`, that a step takes away. Default: 0.1.
        momentum (float): Decay of the running mean of gradients. Default: 0.95.
        nesterov (bool): Use Nesterov's momentum. Default: True.
        ns_coefficients (tuple of 3 float): `a`, `b`, `c` of the iteration. Default: (3.4445, -4.775,
            2.0315).
        eps (float): Least norm that `u` is divided by before the iteration. Default: 1e-7.
        ns_steps (int): Number of iterations, below 100. Default: 5.
        adjust_lr_fn (str, optional): How `ratio` is chosen: "original" (as None) takes
            `sqrt(max(1, rows / columns))`, "match_rms_adamw" takes `0.2 * sqrt(max(rows, columns))`,
            which suits rates found for AdamW. Default: None.

    Attributes:
        state (dict): For each parameter `momentum_buffer` (`b`).

    Raises:
        ValueError: A parameter is no matrix, a hyperparameter is out of its range, or `params` is
            empty.
        RuntimeError: A parameter is complex (from `step()`).

    Example:
        >>> layer = mica.nn.Linear(3, 2, bias=False)
        >>> optimizer = mica.optim.Muon(layer.parameters(), lr=0.02)
        >>> layer(mica.ones(1, 3)).sum().backward()
        >>> optimizer.step()
        >>> optimizer.state[layer.weight]["momentum_buffer"]
        tensor([[0.0500, 0.0500, 0.0500],
                [0.0500, 0.0500, 0.0500]])
    """

    _columns = ("momentum_buffer",)

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        check_rate(lr)
        check_range("momentum", momentum, 0.0)
        check_range("weight_decay", weight_decay, 0.0)
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueError(
                f"The option adjust_lr_fn ({adjust_lr_fn}) is unknown; expected 'original' or 'match_rms_adamw'."
            )
        defaults = {
            "lr": lr,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "nesterov": nesterov,
            "ns_coefficients": ns_coefficients,
            "eps": eps,
            "ns_steps": ns_steps,
            "adjust_lr_fn": adjust_lr_fn,
        }
        super().__init__(params, defaults)
        for group in self.param_groups:
            for p in group["params"]:
                if p.ndim != 2:
                    raise ValueError(
                        f"Muon supports 2D parameters only; this one has shape {tuple(p.shape)}."
                    )

    def _begin(self, group: dict[str, Any], p: Tensor, own: dict[str, Any]) -> None:
        if p.is_complex():
            raise RuntimeError(f"Muon does not support complex parameters; this one is of ({p.dtype}).")
        own["momentum_buffer"] = mica.zeros_like(p.grad)

    def _update(self, group: dict[str, Any], rows: Rows) -> None:
        lr, momentum = scalar(group["lr"]), group["momentum"]
        buffers = rows.column("momentum_buffer")
        mica._foreach_lerp_(buffers, rows.grads, 1 - momentum)
        updates = mica._foreach_lerp(rows.grads, buffers, momentum) if group["nesterov"] else buffers
        mica._foreach_mul_(rows.params, 1 - lr * group["weight_decay"])
        for p, update in zip(rows.params, updates):
            whole = _zeropower_via_newtonschulz(
                update, group["ns_coefficients"], group["ns_steps"], group["eps"]
            )
            p.add_(whole, alpha=-lr * _ratio(group["adjust_lr_fn"], *p.shape))


def _ratio(adjust_lr_fn: str | None, rows: int, columns: int) -> float:
    """By what the rate grows with the matrix."""
    if adjust_lr_fn == "match_rms_adamw":
        return 0.2 * math.sqrt(max(rows, columns))
    return math.sqrt(max(1, rows / columns))
