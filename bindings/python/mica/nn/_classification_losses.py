"""Losses of classes: cross entropies of probabilities, logits and sequences of labels."""

from __future__ import annotations

import math
from typing import Any

import mica
from mica._C import Tensor
from mica.nn._operators import OPERATORS, reduction_number, values_known


def _check_probabilities(**tensors: Tensor) -> None:
    """Raises where a tensor has an element outside [0, 1]."""
    for name, t in tensors.items():
        if values_known(t):
            low, high = (bound.item() for bound in t.detach().aminmax())
            if not (low >= 0 and high <= 1):
                raise RuntimeError(
                    f"all elements of {name} should be between 0 and 1, and they are from ({low}) to ({high})."
                )


def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """Cross entropy of two classes: `-(target * log(input) + (1 - target) * log(1 - input))`.

    As `torch.nn.functional.binary_cross_entropy`. Logarithms are at least -100, so the loss is finite. From
    scores, `binary_cross_entropy_with_logits` is more exact.

    Args:
        input (Tensor): Probabilities in [0, 1], of any shape.
        target (Tensor): Probabilities in [0, 1] of the same shape; 0 and 1 for labels.
        weight (Tensor, optional): Factor of each element; broadcasts with `input`. Default: 1.
        size_average (bool, optional): Deprecated form of `reduction`: False asks for the sum. Default: None.
        reduce (bool, optional): Deprecated form of `reduction`: False asks for none. Default: None.
        reduction (str): `"mean"`, `"sum"`, or `"none"` for the loss of each element. Default: `"mean"`.

    Returns:
        Tensor: A scalar, or of the shape of `input` for `"none"`.

    Raises:
        ValueError: The shapes differ, or the reduction is unknown.
        RuntimeError: A probability is outside [0, 1] (asked for on the CPU alone, outside vmap and traces).

    Example:
        >>> shares = mica.tensor([0.9, 0.2])
        >>> mica.nn.functional.binary_cross_entropy(shares, mica.tensor([1.0, 0.0]))
        tensor(0.1643)
    """
    if input.shape != target.shape:
        raise ValueError(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}) is deprecated. "
            "Please ensure they have the same size."
        )
    _check_probabilities(input=input, target=target)
    return OPERATORS["binary_cross_entropy"](
        input, target, weight, reduction_number(reduction, size_average, reduce)
    )


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """Cross entropy of two classes from scores: that of `sigmoid(input)`, without overflow.

    As `torch.nn.functional.binary_cross_entropy_with_logits`.

    Args:
        input (Tensor): Logits, of any shape.
        target (Tensor): Probabilities in [0, 1] of the same shape; 0 and 1 for labels.
        weight (Tensor, optional): Factor of each element; broadcasts with `input`. Default: 1.
        size_average (bool, optional): Deprecated form of `reduction`: False asks for the sum. Default: None.
        reduce (bool, optional): Deprecated form of `reduction`: False asks for none. Default: None.
        reduction (str): `"mean"`, `"sum"`, or `"none"` for the loss of each element. Default: `"mean"`.
        pos_weight (Tensor, optional): Factor of the term of class 1; broadcasts with `target`. Above 1 it
            raises recall, below 1 precision. Default: 1.

    Returns:
        Tensor: A scalar, or of the shape of `input` for `"none"`.

    Raises:
        ValueError: The shapes differ, or the reduction is unknown.
        RuntimeError: `weight` or `pos_weight` does not broadcast.

    Example:
        >>> scores = mica.tensor([2.0, -1.0])
        >>> mica.nn.functional.binary_cross_entropy_with_logits(scores, mica.tensor([1.0, 0.0]))
        tensor(0.2201)
    """
    if input.shape != target.shape:
        raise ValueError(f"Target size ({target.shape}) must be the same as input size ({input.shape}).")
    return OPERATORS["binary_cross_entropy_with_logits"](
        input, target, weight, pos_weight, reduction_number(reduction, size_average, reduce)
    )


def _check_batch(input: Tensor, target: Tensor) -> None:
    if input.ndim > 1 and target.ndim > 0 and input.size(0) != target.size(0):
        raise ValueError(
            f"Expected input batch_size ({input.size(0)}) to match target batch_size ({target.size(0)})."
        )


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """Negative log likelihood of classes: `-weight[target] * input[target]` for each sample.

    As `torch.nn.functional.nll_loss`. `cross_entropy` is this after `log_softmax`.

    Args:
        input (Tensor): Log probabilities, `(N, C)`, `(C)` or `(N, C, d1, ...)`.
        target (Tensor): Classes in [0, C), int64 or uint8, `(N)`, `()` or `(N, d1, ...)`.
        weight (Tensor, optional): `(C)`. Factor of each class; the mean is divided by the sum of the
            factors of the targets. Default: 1.
        size_average (bool, optional): Deprecated form of `reduction`: False asks for the sum. Default: None.
        ignore_index (int): Class whose samples have no loss and do not count in the mean. Default: -100.
        reduce (bool, optional): Deprecated form of `reduction`: False asks for none. Default: None.
        reduction (str): `"mean"`, `"sum"`, or `"none"` for the loss of each sample. Default: `"mean"`.

    Returns:
        Tensor: A scalar, or of the shape of `target` for `"none"`; nan for the mean of no sample.

    Raises:
        IndexError: A target is no class.
        ValueError: The batches differ, or the reduction is unknown.
        RuntimeError: `target` is of another dtype, or `weight` of another shape.

    Example:
        >>> log_probs = mica.tensor([[0.5, 0.25, 0.25], [0.1, 0.8, 0.1]]).log()
        >>> mica.nn.functional.nll_loss(log_probs, mica.tensor([0, 1]))
        tensor(0.4581)
    """
    _check_batch(input, target)
    return OPERATORS["nll_loss_nd"](
        input, target, weight, reduction_number(reduction, size_average, reduce), ignore_index
    )


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Cross entropy of classes from scores: `-sum(target * log_softmax(input))` for each sample.

    As `torch.nn.functional.cross_entropy`.

    Args:
        input (Tensor): Logits, `(N, C)`, `(C)` or `(N, C, d1, ...)`.
        target (Tensor): Classes in [0, C), int64 or uint8, `(N)`, `()` or `(N, d1, ...)`; or probabilities,
            floating, of the shape of `input`.
        weight (Tensor, optional): `(C)`. Factor of each class; the mean over classes is divided by the
            sum of the factors of the targets. Default: 1.
        size_average (bool, optional): Deprecated form of `reduction`: False asks for the sum. Default: None.
        ignore_index (int): Class whose samples have no loss and do not count in the mean. Default: -100.
        reduce (bool, optional): Deprecated form of `reduction`: False asks for none. Default: None.
        reduction (str): `"mean"`, `"sum"`, or `"none"` for the loss of each sample. Default: `"mean"`.
        label_smoothing (float): Share in [0, 1] of each target that is spread over all classes evenly.
            Default: 0.

    Returns:
        Tensor: A scalar, or `(N)`, `()` or `(N, d1, ...)` for `"none"`; nan for the mean of no sample.

    Raises:
        IndexError: A target is no class.
        ValueError: The batches differ, or the reduction is unknown.
        RuntimeError: Shape or dtype of `target` does not fit, `label_smoothing` is outside [0, 1], or
            `ignore_index` is given with probabilities.

    Example:
        >>> scores = mica.tensor([[2.0, 0.0, 0.0], [0.0, 3.0, 0.0]])
        >>> mica.nn.functional.cross_entropy(scores, mica.tensor([0, 1]))
        tensor(0.1672)
    """
    _check_batch(input, target)
    return OPERATORS["cross_entropy_loss"](
        input,
        target,
        weight,
        reduction_number(reduction, size_average, reduce),
        ignore_index,
        label_smoothing,
    )


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
    """Cross entropy of a linear layer's scores: `cross_entropy(input @ linear_weight.T + linear_bias, target)`.

    As `torch.nn.functional.linear_cross_entropy`, but the scores are computed at once, not in chunks.

    Args:
        input (Tensor): `(N, F)` or `(F)`.
        linear_weight (Tensor): `(C, F)`, or `(C, d1, ..., F)` for `d1 * ...` losses for each sample.
        target (Tensor): Classes, `(N)`, `()` or `(N, d1, ...)`; or probabilities of the shape of the scores.
        linear_bias (Tensor, optional): Of the shape of `linear_weight` without the last. Default: 0.
        weight (Tensor, optional): `(C)`. Factor of each class. Default: 1.
        reduction (str): `"mean"`, `"sum"`, or `"none"` for the loss of each sample. Default: `"mean"`.
        ignore_index (int, optional): Class whose samples have no loss. Default: -100, for classes.
        label_smoothing (float): Share in [0, 1] of each target that is spread over all classes.
            Default: 0.
        options (object, optional): If given, float16 and bfloat16 are computed in float32. Default: None.

    Returns:
        Tensor: A scalar, or the loss of each sample for `"none"`; of the dtype of `input`.

    Raises:
        RuntimeError: Shapes do not fit, or `ignore_index` is given with probabilities.
        ValueError: The reduction is unknown.

    Example:
        >>> x, w = mica.ones(2, 3), mica.eye(4, 3)
        >>> mica.nn.functional.linear_cross_entropy(x, w, mica.tensor([0, 3]), reduction="none")
        tensor([1.2143, 2.2143])
    """
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
    """Loss of a sequence of labels whose places are unknown: `-log` of the sum over all alignments.

    As `torch.nn.functional.ctc_loss` (Graves et al., 2006, connectionist temporal classification).

    Args:
        log_probs (Tensor): Log probabilities of the classes at each of `T` steps, `(T, N, C)` or `(T, C)`.
        targets (Tensor): Labels without blanks, int64 or int32, `(N, S)`, `(S)` for one sample, or all joined
            into one vector.
        input_lengths (Tensor or tuple of int): Steps of each sample, at most `T`: `(N)`; without `N`, one
            length.
        target_lengths (Tensor or tuple of int): Labels of each sample: `(N)`; without `N`, one length.
        blank (int): Class that stands for no label. Default: 0.
        reduction (str): `"mean"` divides each loss by its number of labels (at least 1), then averages over
            the samples; `"sum"`; `"none"`. Default: `"mean"`.
        zero_infinity (bool): Losses of targets too long for their steps are 0, with gradient 0, instead
            of infinite. Default: False.

    Returns:
        Tensor: A scalar, or `(N)` for `"none"` if there is `N`.

    Raises:
        RuntimeError: A length, a label or `blank` is out of range, or there are not `N` lengths.
        ValueError: The reduction is unknown.

    Example:
        >>> log_probs = mica.full((5, 1, 3), 1 / 3).log()
        >>> mica.nn.functional.ctc_loss(log_probs, mica.tensor([[1, 2]]), (5,), (2,))
        tensor(0.9689)
    """
    return OPERATORS["ctc_loss"](
        log_probs, targets, input_lengths, target_lengths, blank, reduction_number(reduction), zero_infinity
    )
