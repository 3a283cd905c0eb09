"""Normalisation of mica.nn.functional: to mean 0 and variance 1, or by neighbouring channels."""

from __future__ import annotations

import math
from typing import Any

from mica._C import Tensor
from mica.nn._operators import OPERATORS


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalises each channel over batch and space: `(x - mean) / sqrt(var + eps) * weight + bias`.

    As `torch.nn.functional.batch_norm`.

    Args:
        input (Tensor): `(N, C, ...)`, floating.
        running_mean (Tensor, optional): `(C)`. The mean outside training; in training it is updated
            in place.
        running_var (Tensor, optional): `(C)`. The variance outside training; in training it is updated
            in place, with the unbiased variance.
        weight (Tensor, optional): `(C)`. Factor of each channel. Default: 1.
        bias (Tensor, optional): `(C)`. Summand of each channel. Default: 0.
        training (bool): Take mean and (biased) variance from `input`. Default: False.
        momentum (float): Share of the new value in the running ones, in [0, 1]. Default: 0.1.
        eps (float): Added to the variance. Default: 1e-5.

    Returns:
        Tensor: Of the shape and dtype of `input`.

    Raises:
        ValueError: In training, there is only one value for each channel.
        RuntimeError: Outside training, a running tensor is None; or a tensor is not of shape `(C)`.

    Example:
        >>> x = mica.tensor([[1.0, 10.0], [3.0, 30.0]])
        >>> mica.nn.functional.batch_norm(x, None, None, training=True)
        tensor([[-1.0000, -1.0000],
                [ 1.0000,  1.0000]])
    """
    if training and input.ndim > 1 and math.prod(input.shape) // max(input.size(1), 1) == 1:
        raise ValueError(
            f"Expected more than 1 value per channel when training, got input size {input.shape}."
        )
    return OPERATORS["batch_norm"](
        input, weight, bias, running_mean, running_var, training, momentum, eps, False
    )


def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalises each channel of each sample over space: `(x - mean) / sqrt(var + eps) * weight + bias`.

    As `torch.nn.functional.instance_norm`.

    Args:
        input (Tensor): `(N, C, L...)`, floating.
        running_mean (Tensor, optional): `(C)`. The mean where `use_input_stats` is False; else it is
            updated in place, with the mean over the samples. Default: None.
        running_var (Tensor, optional): `(C)`. The variance, likewise; it is updated with the unbiased one.
            Default: None.
        weight (Tensor, optional): `(C)`. Factor of each channel. Default: 1.
        bias (Tensor, optional): `(C)`. Summand of each channel. Default: 0.
        use_input_stats (bool): Take mean and (biased) variance from `input`. Default: True.
        momentum (float): Share of the new value in the running ones, in [0, 1]. Default: 0.1.
        eps (float): Added to the variance. Default: 1e-5.

    Returns:
        Tensor: Of the shape and dtype of `input`.

    Raises:
        ValueError: `use_input_stats`, and a channel of a sample has only one element.
        RuntimeError: Only one running tensor is given, `use_input_stats` is False without both, or a `(C)` does
            not fit.

    Example:
        >>> mica.nn.functional.instance_norm(mica.tensor([[[1.0, 3.0], [10.0, 30.0]]]))
        tensor([[[-1.0000,  1.0000],
                 [-1.0000,  1.0000]]])
    """
    if use_input_stats and math.prod(input.shape[2:]) == 1:
        raise ValueError(
            f"Expected more than 1 spatial element when training, got input size {input.shape}: it is its channel's mean."
        )
    return OPERATORS["instance_norm"](
        input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, False
    )


def layer_norm(
    input: Tensor,
    normalized_shape: Any,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Normalises over the last dimensions: `(x - mean) / sqrt(var + eps) * weight + bias`.

    As `torch.nn.functional.layer_norm`.

    Args:
        input (Tensor): `(*, *normalized_shape)`, floating.
        normalized_shape (sequence of int): Sizes of the last dimensions, which share a mean and a
            (biased) variance.
        weight (Tensor, optional): Factors, of shape `normalized_shape`. Default: 1.
        bias (Tensor, optional): Summands, of shape `normalized_shape`. Default: 0.
        eps (float): Added to the variance. Default: 1e-5.

    Returns:
        Tensor: Of the shape and dtype of `input`.

    Raises:
        TypeError: `normalized_shape` is an int.
        RuntimeError: The shape of `input` does not end in `normalized_shape`.

    Example:
        >>> mica.nn.functional.layer_norm(mica.tensor([[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]]), (3,))
        tensor([[-1.2247,  0.0000,  1.2247],
                [-1.2247,  0.0000,  1.2247]])
    """
    return OPERATORS["layer_norm"](input, normalized_shape, weight, bias, eps)


def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Normalises groups of channels of each sample: `(x - mean) / sqrt(var + eps) * weight + bias`.

    As `torch.nn.functional.group_norm`.

    Args:
        input (Tensor): `(N, C, ...)`, floating.
        num_groups (int): Groups of neighbouring channels, each with one mean and (biased) variance.
        weight (Tensor, optional): `(C)`. Factor of each channel. Default: 1.
        bias (Tensor, optional): `(C)`. Summand of each channel. Default: 0.
        eps (float): Added to the variance. Default: 1e-5.

    Returns:
        Tensor: Of the shape and dtype of `input`.

    Raises:
        RuntimeError: `C` is no multiple of `num_groups`, or `input` has fewer than 2 dimensions.

    Example:
        >>> mica.nn.functional.group_norm(mica.tensor([[1.0, 3.0, 10.0, 30.0]]), 2)
        tensor([[-1.0000,  1.0000, -1.0000,  1.0000]])
    """
    return OPERATORS["group_norm"](input, num_groups, weight, bias, eps)


def local_response_norm(
    input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    """Divides by the energy of the neighbouring channels: `x / (k + alpha * mean(x ** 2)) ** beta`.

    As `torch.nn.functional.local_response_norm`. Channels beyond the border count as zeros in the mean.

    Args:
        input (Tensor): `(N, C, L...)`, floating.
        size (int): Channels in the mean, the one that is normalised in their middle.
        alpha (float): Factor of the mean. Default: 1e-4.
        beta (float): Exponent of the divisor. Default: 0.75.
        k (float): Added to the mean, in the divisor. Default: 1.

    Returns:
        Tensor: Of the shape and dtype of `input`.

    Raises:
        ValueError: `input` has fewer than 3 dimensions.
        RuntimeError: `size` is not positive.

    Example:
        >>> mica.nn.functional.local_response_norm(mica.ones(1, 4, 1), size=3, alpha=1.0).flatten()
        tensor([0.6817, 0.5946, 0.5946, 0.6817])
    """
    if input.ndim < 3:
        raise ValueError(f"Number of dimensions ({input.ndim}) of `input` is below 3.")
    if input.numel() == 0:
        return input
    planes = input.square().reshape(input.size(0), 1, input.size(1), -1)
    padded = OPERATORS["pad"](planes, [0, 0, size // 2, (size - 1) // 2])
    mean = OPERATORS["avg_pool2d"](padded, [size, 1], [1, 1]).reshape(input.shape)
    return input / (mean * alpha + k).pow(beta)
