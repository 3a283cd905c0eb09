"""The fused steps by torch's names: `_fused_adam_(params, grads, exp_avgs, ...)`.

All take lists and write them; the counts of steps are advanced by the caller. With
`grad_scale` the gradients are divided by it first; where `found_inf` is not zero nothing
is written.
"""

from __future__ import annotations

from typing import Any

import mica
from mica._C import Tensor
from mica.optim._steps import apply, number_columns, scalar

Tensors = list[Tensor]


def _prepared(
    grads: Tensors, params: Tensors, decay: float, maximize: bool, grad_scale: Any, found_inf: Any
) -> Tensors | None:
    """The gradients of a step; None where there is none."""
    if found_inf is not None and float(found_inf) != 0:
        return None
    if grad_scale is not None:
        mica._foreach_div_(grads, grad_scale)  # in place, as torch leaves them
    if maximize:
        grads = mica._foreach_neg(grads)
    return mica._foreach_add(grads, params, alpha=decay) if decay != 0 else list(grads)


def _adam(
    self: Tensors,
    grads: Tensors,
    exp_avgs: Tensors,
    exp_avg_sqs: Tensors,
    max_exp_avg_sqs: Tensors,
    state_steps: Tensors,
    *,
    lr: Any,
    beta1: float,
    beta2: float,
    weight_decay: float,
    eps: float,
    amsgrad: bool,
    maximize: bool,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    decoupled: bool,
) -> None:
    params, lr = list(self), float(scalar(lr))
    coupled = 0.0 if decoupled else weight_decay
    prepared = _prepared(grads, params, coupled, maximize, grad_scale, found_inf)
    if prepared is None:
        return
    kept = 1 - lr * weight_decay if decoupled else 1.0

    def numbers(step: float) -> tuple[Any, ...]:
        root = (1 - beta2**step) ** 0.5
        return 1 - beta1, beta2, 1 - beta2, root, eps, lr / (1 - beta1**step), kept

    state = [list(exp_avgs), list(exp_avg_sqs), *([list(max_exp_avg_sqs)] if amsgrad else [])]
    others = number_columns([s.item() for s in state_steps], numbers)
    operator = "_amsgrad_step" if amsgrad else "_adam_step"
    apply(operator, [params, prepared, *state], [params, *state], others, False)


def _fused_adam_(*args: Any, **options: Any) -> None:
    """Adam's step over lists, the decay added to the gradients."""
    with mica.no_grad():
        _adam(*args, **options, decoupled=False)


def _fused_adamw_(*args: Any, **options: Any) -> None:
    """AdamW's step over lists."""
    with mica.no_grad():
        _adam(*args, **options, decoupled=True)


def _fused_sgd_(
    self: Tensors,
    grads: Tensors,
    momentum_buffer_list: Tensors,
    *,
    weight_decay: float,
    momentum: float,
    lr: Any,
    dampening: float,
    nesterov: bool,
    maximize: bool,
    is_first_step: bool,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
) -> None:
    """SGD's step over lists; in the first one the gradients become the running sums."""
    with mica.no_grad():
        params, lr = list(self), float(scalar(lr))
        within = weight_decay if momentum != 0 else 0.0  # what the step's own operator adds
        prepared = _prepared(grads, params, weight_decay - within, maximize, grad_scale, found_inf)
        if prepared is None:
            return
        if momentum == 0:
            mica._foreach_add_(params, prepared, alpha=-lr)
            return
        buffers = list(momentum_buffer_list)
        if is_first_step:
            mica._foreach_zero_(buffers)
        numbers = (momentum, 1.0 if is_first_step else 1 - dampening, within, lr)
        operator = "_sgd_nesterov_step" if nesterov else "_sgd_step"
        apply(operator, [params, prepared, buffers], [params, buffers], numbers, False)


def _fused_adagrad_(
    self: Tensors,
    grads: Tensors,
    state_sums: Tensors,
    state_steps: Tensors,
    *,
    lr: Any,
    lr_decay: float,
    weight_decay: float,
    eps: float,
    maximize: bool,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
) -> None:
    """Adagrad's step over lists."""
    with mica.no_grad():
        params, sums, lr = list(self), list(state_sums), float(scalar(lr))
        prepared = _prepared(grads, params, weight_decay, maximize, grad_scale, found_inf)
        if prepared is None:
            return
        steps = [s.item() for s in state_steps]
        others = number_columns(steps, lambda step: (eps, lr / (1 + (step - 1) * lr_decay)))
        apply("_adagrad_step", [params, prepared, sums], [params, sums], others, False)
