"""Losses of one prediction and one target element by element, with or without a weight for each."""

from __future__ import annotations

import warnings

import mica
from mica._C import Tensor
from mica.nn._operators import OPERATORS, named_reduction, reduction_number


def _broadcast(input: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    if input.shape == target.shape:
        return input, target
    warnings.warn(
        f"Using a target size ({target.shape}) that is different to the input size ({input.shape}). "
        "This will likely lead to incorrect results due to broadcasting. Please ensure they have the same size.",
        stacklevel=4,
    )
    return mica.broadcast_tensors(input, target)  # type: ignore[return-value]


def _loss(
    name: str, input: Tensor, target: Tensor, reduction: str, weight: Tensor | None, *more: float
) -> Tensor:
    """The operator's loss; with a weight, the products reduced: their mean is over the number of elements."""
    pair = _broadcast(input, target)
    if weight is None:
        return OPERATORS[name](*pair, reduction_number(reduction), *more)
    if weight.shape != input.shape:
        raise ValueError(
            f"Shape {tuple(weight.shape)} of `weight` is not that of `input`, {tuple(input.shape)}."
        )
    weighted = OPERATORS[name](*pair, 0, *more) * weight
    number = reduction_number(reduction)
    return weighted if number == 0 else weighted.mean() if number == 1 else weighted.sum()


def _by_weight(name: str, input: Tensor, target: Tensor, reduction: str, weight: Tensor | None) -> Tensor:
    """_loss() whose weighted mean is over the sum of the weights."""
    if weight is None or reduction != "mean":
        return _loss(name, input, target, reduction, weight)
    return _loss(name, input, target, "sum", weight) / weight.sum()


def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """(input - target) ** 2."""
    return _by_weight("mse_loss", input, target, named_reduction(reduction, size_average, reduce), weight)


def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """|input - target|."""
    return _by_weight("l1_loss", input, target, named_reduction(reduction, size_average, reduce), weight)


def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """Squared below beta, absolute above."""
    name = named_reduction(reduction, size_average, reduce)
    return _loss("smooth_l1_loss", input, target, name, None, beta)


def huber_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Tensor | None = None,
) -> Tensor:
    """Squared below delta, linear above."""
    return _loss("huber_loss", input, target, reduction, weight, delta)
