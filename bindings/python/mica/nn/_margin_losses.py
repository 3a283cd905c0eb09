"""Losses of margins: scores, similarities and distances that are to differ by so much."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mica
from mica._C import Tensor
from mica.nn._operators import OPERATORS, reduced, reduction_number


def soft_margin_loss(
    input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
) -> Tensor:
    """Logistic loss of two classes: the mean of `log(1 + exp(-target * input))`.

    As `torch.nn.functional.soft_margin_loss`.

    Args:
        input (Tensor): Scores, of any shape.
        target (Tensor): 1 or -1 for each; broadcasts with `input`.
        size_average (bool, optional): Deprecated form of `reduction`: False asks for the sum. Default: None.
        reduce (bool, optional): Deprecated form of `reduction`: False asks for none. Default: None.
        reduction (str): `"mean"`, `"sum"`, or `"none"` for the loss of each element. Default: `"mean"`.

    Returns:
        Tensor: A scalar, or the loss of each element for `"none"`.

    Raises:
        ValueError: The reduction is unknown.
        RuntimeError: The shapes do not broadcast.

    Example:
        >>> mica.nn.functional.soft_margin_loss(mica.tensor([2.0, -1.0]), mica.tensor([1.0, -1.0]))
        tensor(0.2201)
    """
    kind = reduction_number(reduction, size_average, reduce)
    return OPERATORS["soft_margin_loss"](input, target, kind)


def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """Loss of distances that are to be small for pairs that are alike, large for others.

    It is `input` where the target is 1, and `max(0, margin - input)` where it is -1. As
    `torch.nn.functional.hinge_embedding_loss`.

    Args:
        input (Tensor): Distances, of any shape.
        target (Tensor): 1 for pairs that are alike, -1 for others; broadcasts with `input`.
        margin (float): Distance at which pairs that are not alike cost nothing. Default: 1.
        size_average (bool, optional): Deprecated form of `reduction`: False asks for the sum. Default: None.
        reduce (bool, optional): Deprecated form of `reduction`: False asks for none. Default: None.
        reduction (str): `"mean"`, `"sum"`, or `"none"` for the loss of each element. Default: `"mean"`.

    Returns:
        Tensor: A scalar, or the loss of each element for `"none"`.

    Raises:
        ValueError: The reduction is unknown.
        RuntimeError: The shapes do not broadcast.

    Example:
        >>> distances = mica.tensor([0.3, 0.3])
        >>> mica.nn.functional.hinge_embedding_loss(distances, mica.tensor([1.0, -1.0]), reduction="none")
        tensor([0.3000, 0.7000])
    """
    kind = reduction_number(reduction, size_average, reduce)
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
    """Loss of pairs in the wrong order: the mean of `max(0, -target * (input1 - input2) + margin)`.

    As `torch.nn.functional.margin_ranking_loss`.

    Args:
        input1 (Tensor): Scores, of any shape.
        input2 (Tensor): Scores to compare them with, of the same number of dimensions.
        target (Tensor): 1 where `input1` is to be larger, -1 where `input2` is, of that number too.
        margin (float): By how much the right one is to be larger. Default: 0.
        size_average (bool, optional): Deprecated form of `reduction`: False asks for the sum. Default: None.
        reduce (bool, optional): Deprecated form of `reduction`: False asks for none. Default: None.
        reduction (str): `"mean"`, `"sum"`, or `"none"` for the loss of each pair. Default: `"mean"`.

    Returns:
        Tensor: A scalar, or the loss of each pair for `"none"`.

    Raises:
        ValueError: The reduction is unknown.
        RuntimeError: The numbers of dimensions differ, or the shapes do not broadcast.

    Example:
        >>> a, b = mica.tensor([1.0, 3.0]), mica.tensor([2.0, 1.0])
        >>> mica.nn.functional.margin_ranking_loss(a, b, mica.ones(2), margin=0.5, reduction="none")
        tensor([1.5000, 0.0000])
    """
    kind = reduction_number(reduction, size_average, reduce)
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
    """Loss of angles: `1 - cosine` where the target is 1, `max(0, cosine - margin)` where it is -1.

    As `torch.nn.functional.cosine_embedding_loss`.

    Args:
        input1 (Tensor): Vectors, `(N, E)` or `(E)`.
        input2 (Tensor): Vectors to compare them with, of the same shape.
        target (Tensor): 1 for pairs that are alike, -1 for others: `(N)` or `()`.
        margin (float): Cosine up to which pairs that are not alike cost nothing, in [-1, 1]. Default: 0.
        size_average (bool, optional): Deprecated form of `reduction`: False asks for the sum. Default: None.
        reduce (bool, optional): Deprecated form of `reduction`: False asks for none. Default: None.
        reduction (str): `"mean"`, `"sum"`, or `"none"` for the loss of each pair. Default: `"mean"`.

    Returns:
        Tensor: A scalar, or `(N)` for `"none"`.

    Raises:
        ValueError: The reduction is unknown.
        RuntimeError: The shapes do not fit.

    Example:
        >>> a, b = mica.tensor([[1.0, 0.0], [1.0, 0.0]]), mica.tensor([[0.0, 1.0], [1.0, 1.0]])
        >>> mica.nn.functional.cosine_embedding_loss(a, b, mica.tensor([1, -1]), reduction="none")
        tensor([1.0000, 0.7071])
    """
    kind = reduction_number(reduction, size_average, reduce)
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
    """Hinge loss of one class among many.

    It is `sum(max(0, margin - input[target] + input[i]) ** p) / C` over the other classes `i`. As
    `torch.nn.functional.multi_margin_loss`.

    Args:
        input (Tensor): Scores of the classes, `(N, C)` or `(C)`.
        target (Tensor): Classes in [0, C), int64: `(N)` or `()`.
        p (int): Power, 1 or 2. Default: 1.
        margin (float): By how much the right class is to be above each other one. Default: 1.
        weight (Tensor, optional): `(C)`. Factor of the samples of each class. Default: 1.
        size_average (bool, optional): Deprecated form of `reduction`: False asks for the sum. Default: None.
        reduce (bool, optional): Deprecated form of `reduction`: False asks for none. Default: None.
        reduction (str): `"mean"`, `"sum"`, or `"none"` for the loss of each sample. Default: `"mean"`.

    Returns:
        Tensor: A scalar, or `(N)` for `"none"`.

    Raises:
        ValueError: `p` is neither 1 nor 2, `weight` is no vector, or the reduction is unknown.
        RuntimeError: A target is no class, or the shapes do not fit.

    Example:
        >>> mica.nn.functional.multi_margin_loss(mica.tensor([[0.1, 0.2, 0.9]]), mica.tensor([2]))
        tensor(0.1667)
    """
    kind = reduction_number(reduction, size_average, reduce)
    if p not in (1, 2):
        raise ValueError(f"The power `p` ({p}) is neither 1 nor 2.")
    if weight is not None and weight.ndim != 1:
        raise ValueError(f"Number of dimensions ({weight.ndim}) of `weight` is not 1.")
    return OPERATORS["multi_margin_loss"](input, target, p, margin, weight, kind)


def multilabel_margin_loss(
    input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
) -> Tensor:
    """Hinge loss of several classes.

    It is `sum(max(0, 1 - input[t] + input[i])) / C` over targets `t` and other classes `i`. As
    `torch.nn.functional.multilabel_margin_loss`.

    Args:
        input (Tensor): Scores of the classes, `(N, C)` or `(C)`.
        target (Tensor): Classes of each sample, int64, of the same shape; -1 ends them.
        size_average (bool, optional): Deprecated form of `reduction`: False asks for the sum. Default: None.
        reduce (bool, optional): Deprecated form of `reduction`: False asks for none. Default: None.
        reduction (str): `"mean"`, `"sum"`, or `"none"` for the loss of each sample. Default: `"mean"`.

    Returns:
        Tensor: A scalar, or `(N)` for `"none"`.

    Raises:
        ValueError: The reduction is unknown.
        RuntimeError: The shapes differ, or a target is no class.

    Example:
        >>> scores = mica.tensor([[0.1, 0.2, 0.4, 0.8]])
        >>> mica.nn.functional.multilabel_margin_loss(scores, mica.tensor([[3, 0, -1, 1]]))
        tensor(0.8500)
    """
    kind = reduction_number(reduction, size_average, reduce)
    return OPERATORS["multilabel_margin_loss"](input, target, kind)


def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """Binary cross entropy of several classes: its mean over the classes, from scores.

    As `torch.nn.functional.multilabel_soft_margin_loss`.

    Args:
        input (Tensor): Logits of the classes, `(N, C)` or `(C)`.
        target (Tensor): 1 for the classes that a sample has, 0 for others; of the same shape.
        weight (Tensor, optional): `(C)`. Factor of each class. Default: 1.
        size_average (bool, optional): Deprecated form of `reduction`: False asks for the sum. Default: None.
        reduce (bool, optional): Deprecated form of `reduction`: False asks for none. Default: None.
        reduction (str): `"mean"`, `"sum"`, or `"none"` for the loss of each sample. Default: `"mean"`.

    Returns:
        Tensor: A scalar, or `(N)` for `"none"`.

    Raises:
        ValueError: The reduction is unknown.
        RuntimeError: The shapes do not broadcast.

    Example:
        >>> scores = mica.tensor([[2.0, -1.0, 0.0]])
        >>> mica.nn.functional.multilabel_soft_margin_loss(scores, mica.tensor([[1.0, 0.0, 0.0]]))
        tensor(0.3778)
    """
    kind = reduction_number(reduction, size_average, reduce)
    log_sigmoid = OPERATORS["log_sigmoid"]
    loss = -(target * log_sigmoid(input) + (1 - target) * log_sigmoid(-input))
    loss = loss if weight is None else loss * weight
    return reduced(loss.sum(-1) / input.size(-1), kind)


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
    """Wants the positive nearer to the anchor than the negative, by a margin.

    It is `max(0, d(anchor, positive) - d(anchor, negative) + margin)`, where `d` is `pairwise_distance`
    of order `p`. As `torch.nn.functional.triplet_margin_loss`.

    Args:
        anchor (Tensor): Vectors, `(N, E)` or `(E)`.
        positive (Tensor): Vectors like the anchors, of the same shape.
        negative (Tensor): Vectors unlike them, of the same shape.
        margin (float): By how much the negative is to be further away, above 0. Default: 1.
        p (float): Order of the norm of the distance. Default: 2.
        eps (float): Added to each difference. Default: 1e-6.
        swap (bool): Take the distance of positive and negative where it is smaller than that of anchor
            and negative. Default: False.
        size_average (bool, optional): Deprecated form of `reduction`: False asks for the sum. Default: None.
        reduce (bool, optional): Deprecated form of `reduction`: False asks for none. Default: None.
        reduction (str): `"mean"`, `"sum"`, or `"none"` for the loss of each triplet. Default: `"mean"`.

    Returns:
        Tensor: A scalar, or `(N)` for `"none"`.

    Raises:
        ValueError: `margin` is not positive, or the reduction is unknown.
        RuntimeError: The numbers of dimensions differ, or the shapes do not broadcast.

    Example:
        >>> anchor, near, far = mica.zeros(1, 2), mica.ones(1, 2), mica.tensor([[1.5, 0.0]])
        >>> mica.nn.functional.triplet_margin_loss(anchor, near, far)
        tensor(0.9142)
    """
    kind = reduction_number(reduction, size_average, reduce)
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
    """triplet_margin_loss with a distance of your own.

    As `torch.nn.functional.triplet_margin_with_distance_loss`.

    Args:
        anchor (Tensor): `(N, ...)`, of whatever shape the distance takes.
        positive (Tensor): Samples like the anchors, with the same number of dimensions.
        negative (Tensor): Samples unlike them, with the same number of dimensions.
        distance_function (callable, optional): Takes two of these tensors and returns a distance for each
            pair. Default: `pairwise_distance`.
        margin (float): By how much the negative is to be further away, above 0. Default: 1.
        swap (bool): Take the distance of positive and negative where it is smaller than that of anchor
            and negative. Default: False.
        reduction (str): `"mean"`, `"sum"`, or `"none"` for the loss of each triplet. Default: `"mean"`.

    Returns:
        Tensor: A scalar, or what the distance returns, in shape, for `"none"`.

    Raises:
        ValueError: `margin` is not positive, or the reduction is unknown.
        RuntimeError: The numbers of dimensions differ.

    Example:
        >>> anchor, near, far = mica.zeros(1, 2), mica.ones(1, 2), mica.tensor([[1.5, 0.0]])
        >>> def city(a, b):
        ...     return (a - b).abs().sum(-1)
        >>> mica.nn.functional.triplet_margin_with_distance_loss(anchor, near, far, distance_function=city)
        tensor(1.5000)
    """
    kind = reduction_number(reduction)
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
    return reduced((margin + distance(anchor, positive) - far).clamp_min(0), kind)
