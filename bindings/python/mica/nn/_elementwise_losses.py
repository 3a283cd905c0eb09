"""Losses of one prediction and one target element by element, with or without a weight for each."""

from __future__ import annotations

import warnings

import mica
from mica._C import Tensor
from mica.nn._operators import OPERATORS, named_reduction, reduced, reduction_number


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
    """The operator's loss, or with a weight the products reduced. Their mean is over the number of elements for
    huber_loss, over the sum of the weights for the others."""
    pair = _broadcast(input, target)
    number = reduction_number(reduction)
    if weight is None:
        return OPERATORS[name](*pair, number, *more)
    if weight.shape != input.shape:
        raise ValueError(
            f"Shape {tuple(weight.shape)} of `weight` is not that of `input`, {tuple(input.shape)}."
        )
    weighted = OPERATORS[name](*pair, 0, *more) * weight
    if number == 1 and name != "huber_loss":
        return weighted.sum() / weight.sum()
    return reduced(weighted, number)


def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """Mean squared error: the mean of `(input - target) ** 2`.

    As `torch.nn.functional.mse_loss`.

    Args:
        input (Tensor): Predictions, of any shape.
        target (Tensor): What they should be, of the same shape; another that broadcasts warns.
        size_average (bool, optional): Deprecated form of `reduction`: False asks for the sum. Default: None.
        reduce (bool, optional): Deprecated form of `reduction`: False asks for none. Default: None.
        reduction (str): `"mean"`, `"sum"`, or `"none"` for the loss of each element. Default: `"mean"`.
        weight (Tensor, optional): Factor of each element, of the shape of `input`; the mean is divided
            by the sum of the weights. Default: 1.

    Returns:
        Tensor: A scalar, or of the shape of `input` for `"none"`.

    Raises:
        ValueError: The reduction is unknown, or `weight` has another shape than `input`.
        RuntimeError: The shapes do not broadcast.

    Example:
        >>> mica.nn.functional.mse_loss(mica.tensor([1.0, 2.0]), mica.tensor([1.0, 4.0]))
        tensor(2.)
    """
    return _loss("mse_loss", input, target, named_reduction(reduction, size_average, reduce), weight)


def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """Mean absolute error: the mean of `abs(input - target)`.

    As `torch.nn.functional.l1_loss`.

    Args:
        input (Tensor): Predictions, of any shape.
        target (Tensor): What they should be, of the same shape; another that broadcasts warns.
        size_average (bool, optional): Deprecated form of `reduction`: False asks for the sum. Default: None.
        reduce (bool, optional): Deprecated form of `reduction`: False asks for none. Default: None.
        reduction (str): `"mean"`, `"sum"`, or `"none"` for the loss of each element. Default: `"mean"`.
        weight (Tensor, optional): Factor of each element, of the shape of `input`; the mean is divided
            by the sum of the weights. Default: 1.

    Returns:
        Tensor: A scalar, or of the shape of `input` for `"none"`.

    Raises:
        ValueError: The reduction is unknown, or `weight` has another shape than `input`.
        RuntimeError: The shapes do not broadcast.

    Example:
        >>> mica.nn.functional.l1_loss(mica.tensor([1.0, 2.0]), mica.tensor([1.0, 4.0]))
        tensor(1.)
    """
    return _loss("l1_loss", input, target, named_reduction(reduction, size_average, reduce), weight)


def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """Squared error near zero, absolute error beyond.

    With `d = input - target`, the loss is `0.5 * d ** 2 / beta` where `abs(d) < beta`, and
    `abs(d) - 0.5 * beta` elsewhere. As `torch.nn.functional.smooth_l1_loss`.

    Args:
        input (Tensor): Predictions, of any shape.
        target (Tensor): What they should be, of the same shape; another that broadcasts warns.
        size_average (bool, optional): Deprecated form of `reduction`: False asks for the sum. Default: None.
        reduce (bool, optional): Deprecated form of `reduction`: False asks for none. Default: None.
        reduction (str): `"mean"`, `"sum"`, or `"none"` for the loss of each element. Default: `"mean"`.
        beta (float): Where the two pieces meet; 0 is `l1_loss`. Default: 1.

    Returns:
        Tensor: A scalar, or of the shape of `input` for `"none"`.

    Raises:
        ValueError: The reduction is unknown.
        RuntimeError: `beta` is negative, or the shapes do not broadcast.

    Example:
        >>> mica.nn.functional.smooth_l1_loss(mica.tensor([0.5, 3.0]), mica.zeros(2), reduction="none")
        tensor([0.1250, 2.5000])
    """
    name = named_reduction(reduction, size_average, reduce)
    return _loss("smooth_l1_loss", input, target, name, None, beta)


def huber_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Tensor | None = None,
) -> Tensor:
    """Squared error near zero, linear beyond: `delta` times `smooth_l1_loss` of `beta=delta`.

    With `d = input - target`, the loss is `0.5 * d ** 2` where `abs(d) < delta`, and
    `delta * (abs(d) - 0.5 * delta)` elsewhere. As `torch.nn.functional.huber_loss`.

    Args:
        input (Tensor): Predictions, of any shape.
        target (Tensor): What they should be, of the same shape; another that broadcasts warns.
        reduction (str): `"mean"`, `"sum"`, or `"none"` for the loss of each element. Default: `"mean"`.
        delta (float): Where the two pieces meet, above 0. Default: 1.
        weight (Tensor, optional): Factor of each element, of the shape of `input`; the mean is divided
            by the number of elements all the same. Default: 1.

    Returns:
        Tensor: A scalar, or of the shape of `input` for `"none"`.

    Raises:
        ValueError: The reduction is unknown, or `weight` has another shape than `input`.
        RuntimeError: `delta` is not positive, or the shapes do not broadcast.

    Example:
        >>> mica.nn.functional.huber_loss(mica.tensor([0.5, 3.0]), mica.zeros(2), reduction="none", delta=2.0)
        tensor([0.1250, 4.0000])
    """
    return _loss("huber_loss", input, target, reduction, weight, delta)
