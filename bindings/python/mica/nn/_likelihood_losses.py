"""Losses of distributions: divergence from one, and likelihood under Poisson's and Gauss's."""

from __future__ import annotations

import math
from typing import Any

import mica
from mica._C import Tensor
from mica.nn._operators import OPERATORS, reduced, reduction_number


def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """Divergence of Kullback and Leibler from log probabilities: `target * (log(target) - input)`.

    As `torch.nn.functional.kl_div`: the first argument is the model, as logarithms; the second the truth.

    Args:
        input (Tensor): Log probabilities, as `log_softmax` gives them, of any shape.
        target (Tensor): Probabilities, or their logarithms if `log_target`; broadcasts with `input`.
        size_average (bool, optional): Deprecated form of `reduction`: False asks for the sum. Default: None.
        reduce (bool, optional): Deprecated form of `reduction`: False asks for none. Default: None.
        reduction (str): `"batchmean"` for the sum divided by the size of dimension 0, which is the
            divergence of a batch; `"mean"` divides by the number of elements; `"sum"`; or `"none"`.
            Default: `"mean"`.
        log_target (bool): `target` holds log probabilities. Default: False.

    Returns:
        Tensor: A scalar, or the loss of each element for `"none"`.

    Raises:
        ValueError: The reduction is unknown.
        RuntimeError: The shapes do not broadcast.

    Example:
        >>> model = mica.tensor([[0.5, 0.5]]).log()
        >>> mica.nn.functional.kl_div(model, mica.tensor([[0.9, 0.1]]), reduction="batchmean")
        tensor(0.3681)
    """
    if (size_average, reduce, reduction) == (None, None, "batchmean"):
        return OPERATORS["kl_div"](input, target, 2, log_target=log_target) / input.size(0)
    return OPERATORS["kl_div"](
        input, target, reduction_number(reduction, size_average, reduce), log_target=log_target
    )


def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: Any = None,
    eps: float = 1e-8,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """Negative log likelihood of counts under Poisson distributions: `exp(input) - target * input`.

    As `torch.nn.functional.poisson_nll_loss`.

    Args:
        input (Tensor): Logarithms of the rates, or the rates themselves without `log_input`.
        target (Tensor): Counts that were seen; broadcasts with `input`.
        log_input (bool): False takes rates: `input - target * log(input + eps)`. Default: True.
        full (bool): Add an approximation (Stirling's) of `log(target!)` where `target > 1`. Default: False.
        size_average (bool, optional): Deprecated form of `reduction`: False asks for the sum. Default: None.
        eps (float): Keeps the logarithm finite where `log_input` is False. Default: 1e-8.
        reduce (bool, optional): Deprecated form of `reduction`: False asks for none. Default: None.
        reduction (str): `"mean"`, `"sum"`, or `"none"` for the loss of each element. Default: `"mean"`.

    Returns:
        Tensor: A scalar, or the loss of each element for `"none"`.

    Raises:
        ValueError: The reduction is unknown.
        RuntimeError: The shapes do not broadcast.

    Example:
        >>> log_rates = mica.tensor([0.0, 1.0])
        >>> mica.nn.functional.poisson_nll_loss(log_rates, mica.tensor([1.0, 3.0]))
        tensor(0.3591)
    """
    kind = reduction_number(reduction, size_average, reduce)
    return OPERATORS["poisson_nll_loss"](input, target, log_input, full, eps, kind)


def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor | float,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """Negative log likelihood under Gaussians: `0.5 * (log(var) + (input - target) ** 2 / var)`.

    As `torch.nn.functional.gaussian_nll_loss`.

    Args:
        input (Tensor): Means, of any shape.
        target (Tensor): What was seen, of the same shape, or one that broadcasts.
        var (Tensor or float): Variances, at least 0: of the shape of `input`, with one of its sizes
            1, or without its last dimension.
        full (bool): Add the constant `0.5 * log(2 * pi)`. Default: False.
        eps (float): Smallest variance: smaller ones are raised to it, outside the graph of gradients.
            Default: 1e-6.
        reduction (str): `"mean"`, `"sum"`, or `"none"` for the loss of each element. Default: `"mean"`.

    Returns:
        Tensor: A scalar, or the loss of each element for `"none"`.

    Raises:
        ValueError: A variance is negative, the shape of `var` does not fit, or the reduction is unknown.

    Example:
        >>> mean, seen = mica.tensor([0.0, 1.0]), mica.tensor([1.0, 1.0])
        >>> mica.nn.functional.gaussian_nll_loss(mean, seen, var=mica.tensor([1.0, 0.25]))
        tensor(-0.0966)
    """
    if isinstance(var, Tensor):
        if not var.device.type == "meta" and bool((var < 0).any()):
            raise ValueError("Variance `var` has a negative element.")
    else:
        if var < 0:
            raise ValueError(f"Variance `var` ({var}) is negative.")
        var = var * mica.ones_like(input)
    if var.shape != input.shape:
        unequal = [y for x, y in zip(input.shape, var.shape) if x != y]
        if tuple(input.shape[:-1]) == tuple(var.shape):
            var = var.unsqueeze(-1)
        elif input.ndim != var.ndim or sum(unequal) != 1:
            raise ValueError(
                f"var is of incorrect size: shape {tuple(var.shape)} is neither that of `input`, {tuple(input.shape)}, nor "
                "that with one size 1 or without the last dimension."
            )
    kind = reduction_number(reduction)
    var = var.clone()
    with mica.no_grad():
        var.clamp_(min=eps)
    loss = 0.5 * (var.log() + (input - target) ** 2 / var)
    return reduced(loss + 0.5 * math.log(2 * math.pi) if full else loss, kind)
