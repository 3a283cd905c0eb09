"""Losses of margins, distances and distributions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mica
from mica._C import Tensor
from mica.nn._operators import OPERATORS, named_reduction, reduction_number


def check_probabilities(**tensors: Tensor) -> None:
    """Raises where a tensor has an element outside [0, 1], as far as values can be asked for at once: on the
    CPU, and not within vmap or a trace."""
    for name, t in tensors.items():
        plain = type(t) in (Tensor, mica.nn.Parameter) and t.device.type == "cpu" and t.numel() > 0
        if plain and mica._C._vmap_text(t) is None and mica._C._trace_text(t) is None:
            low, high = (bound.item() for bound in t.detach().aminmax())
            if not (low >= 0 and high <= 1):
                raise RuntimeError(
                    f"all elements of {name} should be between 0 and 1, and they are from ({low}) to ({high})."
                )


def _reduced(loss: Tensor, reduction: str) -> Tensor:
    return {"none": lambda: loss, "mean": loss.mean, "sum": loss.sum}[reduction]()


def _checked(reduction: str) -> str:
    reduction_number(reduction)
    return reduction


def soft_margin_loss(
    input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
) -> Tensor:
    """log(1 + exp(-target * input)), the targets being 1 or -1."""
    kind = reduction_number(named_reduction(reduction, size_average, reduce))
    return OPERATORS["soft_margin_loss"](input, target, kind)


def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """The input where the target is 1, max(0, margin - input) where it is -1."""
    kind = reduction_number(named_reduction(reduction, size_average, reduce))
    return OPERATORS["hinge_embedding_loss"](input, target, margin, kind)


def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """max(0, -target * (input1 - input2) + margin)."""
    kind = reduction_number(named_reduction(reduction, size_average, reduce))
    return OPERATORS["margin_ranking_loss"](input1, input2, target, margin, kind)


def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """1 - cosine where the target is 1, max(0, cosine - margin) where it is -1."""
    kind = reduction_number(named_reduction(reduction, size_average, reduce))
    return OPERATORS["cosine_embedding_loss"](input1, input2, target, margin, kind)


def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """Mean over the other classes of max(0, margin - input[target] + input[class])^p."""
    kind = reduction_number(named_reduction(reduction, size_average, reduce))
    if p not in (1, 2):
        raise ValueError(f"The power `p` ({p}) is neither 1 nor 2.")
    if weight is not None and weight.ndim != 1:
        raise ValueError(f"Number of dimensions ({weight.ndim}) of `weight` is not 1.")
    return OPERATORS["multi_margin_loss"](input, target, p, margin, weight, kind)


def multilabel_margin_loss(
    input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
) -> Tensor:
    """Mean over targets and other classes of max(0, 1 - input[target] + input[class])."""
    kind = reduction_number(named_reduction(reduction, size_average, reduce))
    return OPERATORS["multilabel_margin_loss"](input, target, kind)


def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """Mean over the classes of the binary cross entropy of logits."""
    kind = _checked(named_reduction(reduction, size_average, reduce))
    log_sigmoid = OPERATORS["log_sigmoid"]
    loss = -(target * log_sigmoid(input) + (1 - target) * log_sigmoid(-input))
    loss = loss if weight is None else loss * weight
    return _reduced(loss.sum(-1) / input.size(-1), kind)


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """max(0, distance to positive - distance to negative + margin)."""
    kind = reduction_number(named_reduction(reduction, size_average, reduce))
    if margin <= 0:
        raise ValueError(f"Argument `margin` ({margin}) is not positive.")
    return OPERATORS["triplet_margin_loss"](anchor, positive, negative, margin, p, eps, swap, kind)


def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """triplet_margin_loss of any distance."""
    _checked(reduction)
    if margin <= 0:
        raise ValueError(f"Argument `margin` ({margin}) is not positive.")
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise RuntimeError(
            f"Numbers of dimensions ({anchor.ndim}), ({positive.ndim}) and ({negative.ndim}) of anchor, "
            "positive and negative differ."
        )
    distance = distance_function or OPERATORS["pairwise_distance"]
    far = distance(anchor, negative)
    if swap:
        far = mica.minimum(far, distance(positive, negative))
    return _reduced((margin + distance(anchor, positive) - far).clamp_min(0), reduction)


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
    """Negative log likelihood of counts under Poisson rates, or their logarithms."""
    kind = reduction_number(named_reduction(reduction, size_average, reduce))
    return OPERATORS["poisson_nll_loss"](input, target, log_input, full, eps, kind)


def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor | float,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """Negative log likelihood of `target` under Gaussians of mean `input` and variance `var`."""
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
    _checked(reduction)
    var = var.clone()
    with mica.no_grad():
        var.clamp_(min=eps)
    loss = 0.5 * (var.log() + (input - target) ** 2 / var)
    return _reduced(loss + 0.5 * math.log(2 * math.pi) if full else loss, reduction)


def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: Any = None,
) -> Tensor:
    """cross_entropy(linear(input, linear_weight, linear_bias), target); `options` ask for sums in float32."""
    if input.ndim not in (1, 2):
        raise RuntimeError(f"Number of dimensions ({input.ndim}) of `input` is not 1 or 2.")
    if linear_weight.ndim < 2 or linear_weight.size(-1) != input.size(-1):
        raise RuntimeError(
            f"Shape {tuple(linear_weight.shape)} of `linear_weight` does not end in the number of features ({input.size(-1)})."
        )
    rows = tuple(linear_weight.shape[:-1])
    if linear_bias is not None and tuple(linear_bias.shape) != rows:
        raise RuntimeError(f"Shape {tuple(linear_bias.shape)} of `linear_bias` is not {rows}.")
    if len(rows) > 1 and input.ndim == 1:
        raise RuntimeError(f"`linear_weight` of shape {tuple(linear_weight.shape)} needs a batch of inputs.")
    shape = (*input.shape[:-1], *rows)
    if tuple(target.shape) == shape and ignore_index is not None:
        raise RuntimeError(
            f"Argument `ignore_index` ({ignore_index}) has no meaning where `target` holds probabilities."
        )
    dtype = input.dtype
    if options is not None and dtype in (
        mica.float16,
        mica.bfloat16,
    ):  # where it splits, torch adds in float32
        given = (input, linear_weight, target, linear_bias, weight)
        input, linear_weight, target, linear_bias, weight = (
            t.float() if t is not None and t.dtype == dtype else t for t in given
        )
    flat_bias = None if linear_bias is None else linear_bias.reshape(-1)
    logits = OPERATORS["linear"](
        input, linear_weight.reshape(math.prod(rows), input.size(-1)), flat_bias
    ).reshape(shape)
    skipped = -100 if ignore_index is None else ignore_index
    kind = reduction_number(reduction)
    return OPERATORS["cross_entropy_loss"](logits, target, weight, kind, skipped, label_smoothing).to(dtype)


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Connectionist temporal classification: -log of the sum over all alignments (Graves et al., 2006)."""
    return OPERATORS["ctc_loss"](
        log_probs, targets, input_lengths, target_lengths, blank, reduction_number(reduction), zero_infinity
    )
