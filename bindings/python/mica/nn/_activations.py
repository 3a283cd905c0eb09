"""Activations of mica.nn.functional: functions element by element, and the softmax family."""

from __future__ import annotations

import warnings
from typing import Any

import mica
from mica._C import Tensor
from mica.nn._operators import OPERATORS


def _activation(name: str, input: Tensor, inplace: bool, *args: Any) -> Tensor:
    return OPERATORS[name + "_" if inplace else name](input, *args)


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """Sets negative elements to zero: `max(x, 0)`.

    As `torch.nn.functional.relu`.

    Args:
        input (Tensor): Real numbers, integers too, of any shape.
        inplace (bool): Overwrite `input` with the result. Default: False.

    Returns:
        Tensor: Of the shape and dtype of `input`; `input` itself if `inplace`.

    Raises:
        NotImplementedError: `input` is bool or complex.
        RuntimeError: `inplace` on a leaf that requires grad.

    Example:
        >>> mica.nn.functional.relu(mica.tensor([-2.0, 0.0, 3.0]))
        tensor([0., 0., 3.])
    """
    return _activation("relu", input, True) if inplace else input.relu()


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """Clamps elements to the range from 0 to 6: `min(max(x, 0), 6)`.

    As `torch.nn.functional.relu6`.

    Args:
        input (Tensor): Real numbers, integers too, of any shape.
        inplace (bool): Overwrite `input` with the result. Default: False.

    Returns:
        Tensor: Of the shape and dtype of `input`; `input` itself if `inplace`.

    Example:
        >>> mica.nn.functional.relu6(mica.tensor([-2.0, 3.0, 8.0]))
        tensor([0., 3., 6.])
    """
    return _activation("relu6", input, inplace)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """The sigmoid linear unit, also called swish: `x * sigmoid(x)`.

    As `torch.nn.functional.silu`.

    Args:
        input (Tensor): Floating or complex, of any shape.
        inplace (bool): Overwrite `input` with the result. Default: False.

    Returns:
        Tensor: Of the shape and dtype of `input`; `input` itself if `inplace`.

    Raises:
        NotImplementedError: `input` holds integers.

    Example:
        >>> mica.nn.functional.silu(mica.tensor([-1.0, 0.0, 1.0]))
        tensor([-0.2689,  0.0000,  0.7311])
    """
    return _activation("silu", input, inplace)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """A smooth ReLU that dips below zero: `x * tanh(log(1 + exp(x)))`.

    As `torch.nn.functional.mish`.

    Args:
        input (Tensor): Floating, of any shape.
        inplace (bool): Overwrite `input` with the result. Default: False.

    Returns:
        Tensor: Of the shape and dtype of `input`; `input` itself if `inplace`.

    Raises:
        NotImplementedError: `input` is not floating.

    Example:
        >>> mica.nn.functional.mish(mica.tensor([-1.0, 0.0, 1.0]))
        tensor([-0.3034,  0.0000,  0.8651])
    """
    return _activation("mish", input, inplace)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """ELU scaled so that layers keep mean 0 and variance 1: `1.0507 * elu(x, alpha=1.6733)`.

    As `torch.nn.functional.selu`; the constants are those of Klambauer et al., 2017. Its dropout is
    `alpha_dropout`.

    Args:
        input (Tensor): Floating, of any shape.
        inplace (bool): Overwrite `input` with the result. Default: False.

    Returns:
        Tensor: Of the shape and dtype of `input`; `input` itself if `inplace`.

    Raises:
        RuntimeError: `input` holds integers.

    Example:
        >>> mica.nn.functional.selu(mica.tensor([-1.0, 0.0, 1.0]))
        tensor([-1.1113,  0.0000,  1.0507])
    """
    return _activation("selu", input, inplace)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """The sigmoid in three straight pieces: `min(max(x + 3, 0), 6) / 6`.

    As `torch.nn.functional.hardsigmoid`.

    Args:
        input (Tensor): Floating, of any shape.
        inplace (bool): Overwrite `input` with the result. Default: False.

    Returns:
        Tensor: Between 0 and 1, of the shape and dtype of `input`; `input` itself if `inplace`.

    Raises:
        NotImplementedError: `input` is not floating.

    Example:
        >>> mica.nn.functional.hardsigmoid(mica.tensor([-4.0, 0.0, 1.5, 4.0]))
        tensor([0.0000, 0.5000, 0.7500, 1.0000])
    """
    return _activation("hardsigmoid", input, inplace)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """silu with the sigmoid in straight pieces: `x * min(max(x + 3, 0), 6) / 6`.

    As `torch.nn.functional.hardswish`.

    Args:
        input (Tensor): Floating, of any shape.
        inplace (bool): Overwrite `input` with the result. Default: False.

    Returns:
        Tensor: Of the shape and dtype of `input`; `input` itself if `inplace`.

    Raises:
        NotImplementedError: `input` is not floating.

    Example:
        >>> mica.nn.functional.hardswish(mica.tensor([-4.0, -1.5, 0.0, 4.0]))
        tensor([-0.0000, -0.3750,  0.0000,  4.0000])
    """
    return _activation("hardswish", input, inplace)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """Clamps elements to a range: `min(max(x, min_val), max_val)`.

    As `torch.nn.functional.hardtanh`.

    Args:
        input (Tensor): Real numbers, integers too, of any shape.
        min_val (float): Smallest element of the result. Default: -1.
        max_val (float): Largest element of the result. Default: 1.
        inplace (bool): Overwrite `input` with the result. Default: False.

    Returns:
        Tensor: Of the shape and dtype of `input`; `input` itself if `inplace`.

    Raises:
        ValueError: `min_val` is larger than `max_val`.

    Example:
        >>> mica.nn.functional.hardtanh(mica.tensor([-3.0, 0.5, 3.0]), min_val=-2.0)
        tensor([-2.0000,  0.5000,  1.0000])
    """
    if min_val > max_val:
        raise ValueError(f"Bound `min_val` ({min_val}) is larger than `max_val` ({max_val}).")
    return _activation("hardtanh", input, inplace, min_val, max_val)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """The exponential linear unit: `x` where positive, `alpha * (exp(x) - 1)` elsewhere.

    As `torch.nn.functional.elu`.

    Args:
        input (Tensor): Floating, of any shape.
        alpha (float): The result tends to `-alpha` for very negative elements. Default: 1.
        inplace (bool): Overwrite `input` with the result. Default: False.

    Returns:
        Tensor: Of the shape and dtype of `input`; `input` itself if `inplace`.

    Raises:
        RuntimeError: `input` holds integers and `alpha` is a float.

    Example:
        >>> mica.nn.functional.elu(mica.tensor([-1.0, 0.0, 1.0]))
        tensor([-0.6321,  0.0000,  1.0000])
    """
    return _activation("elu", input, inplace, alpha)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """ELU whose slope is continuous for every alpha: `max(x, 0) + min(0, alpha * (exp(x / alpha) - 1))`.

    As `torch.nn.functional.celu`.

    Args:
        input (Tensor): Floating, of any shape.
        alpha (float): The result tends to `-alpha` for very negative elements. Not 0. Default: 1.
        inplace (bool): Overwrite `input` with the result. Default: False.

    Returns:
        Tensor: Of the shape and dtype of `input`; `input` itself if `inplace`.

    Raises:
        RuntimeError: `alpha` is 0.

    Example:
        >>> mica.nn.functional.celu(mica.tensor([-1.0, 0.0, 1.0]), alpha=2.0)
        tensor([-0.7869,  0.0000,  1.0000])
    """
    return _activation("celu", input, inplace, alpha)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """ReLU with a small slope below zero: `x` where positive, `negative_slope * x` elsewhere.

    As `torch.nn.functional.leaky_relu`.

    Args:
        input (Tensor): Floating, of any shape.
        negative_slope (float): Factor of negative elements. Default: 0.01.
        inplace (bool): Overwrite `input` with the result. Default: False.

    Returns:
        Tensor: Of the shape and dtype of `input`; `input` itself if `inplace`.

    Raises:
        NotImplementedError: `input` is not floating.

    Example:
        >>> mica.nn.functional.leaky_relu(mica.tensor([-2.0, 0.0, 3.0]), 0.1)
        tensor([-0.2000,  0.0000,  3.0000])
    """
    return _activation("leaky_relu", input, inplace, negative_slope)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """Replaces small elements by a constant: `x` where `x > threshold`, `value` elsewhere.

    As `torch.nn.functional.threshold`.

    Args:
        input (Tensor): Real numbers, integers too, of any shape.
        threshold (float): What an element must exceed in order to stay.
        value (float): What stands in the place of the others.
        inplace (bool): Overwrite `input` with the result. Default: False.

    Returns:
        Tensor: Of the shape and dtype of `input`; `input` itself if `inplace`.

    Example:
        >>> mica.nn.functional.threshold(mica.tensor([0.5, 1.0, 2.0]), 1.0, -1.0)
        tensor([-1., -1.,  2.])
    """
    return _activation("threshold", input, inplace, threshold, value)


def sigmoid(input: Tensor) -> Tensor:
    """The logistic function: `1 / (1 + exp(-x))`.

    As `torch.nn.functional.sigmoid`, and the same as `mica.sigmoid`.

    Args:
        input (Tensor): Numbers of any shape; integers become the default dtype.

    Returns:
        Tensor: Of the shape of `input`; between 0 and 1 for real numbers.

    Example:
        >>> mica.nn.functional.sigmoid(mica.tensor([-1.0, 0.0, 1.0]))
        tensor([0.2689, 0.5000, 0.7311])
    """
    return input.sigmoid()


def tanh(input: Tensor) -> Tensor:
    """The hyperbolic tangent: `(exp(x) - exp(-x)) / (exp(x) + exp(-x))`.

    As `torch.nn.functional.tanh`, and the same as `mica.tanh`.

    Args:
        input (Tensor): Numbers of any shape; integers become the default dtype.

    Returns:
        Tensor: Of the shape of `input`; between -1 and 1 for real numbers.

    Example:
        >>> mica.nn.functional.tanh(mica.tensor([-1.0, 0.0, 1.0]))
        tensor([-0.7616,  0.0000,  0.7616])
    """
    return input.tanh()


def rrelu(
    input: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Tensor:
    """ReLU with a random slope below zero: `x` where positive, `slope * x` elsewhere.

    As `torch.nn.functional.rrelu`.

    Args:
        input (Tensor): Floating, of any shape.
        lower (float): Smallest slope. Default: 1/8.
        upper (float): Largest slope. Default: 1/3.
        training (bool): Draw a slope for every element, uniformly from `lower` to `upper`, with the
            default generator; otherwise the slope is `(lower + upper) / 2`. Default: False.
        inplace (bool): Overwrite `input` with the result. Default: False.

    Returns:
        Tensor: Of the shape and dtype of `input`; `input` itself if `inplace`.

    Raises:
        RuntimeError: `lower` is above `upper`.

    Example:
        >>> mica.nn.functional.rrelu(mica.tensor([-2.0, 3.0]), 0.1, 0.3)
        tensor([-0.4000,  3.0000])
    """
    return OPERATORS["rrelu_" if inplace else "rrelu"](input, lower, upper, training)


def _softmax_dim(name: str, dim: int | None, ndim: int) -> int:
    if dim is not None:
        return dim
    warnings.warn(
        f"{name}() was called without `dim`; it takes dimension 0 or 1 by the rank, as torch does.",
        stacklevel=3,
    )
    return 0 if ndim in (0, 1, 3) else 1


def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """Probabilities from scores: `exp(x)` divided by its sum along a dimension.

    As `torch.nn.functional.softmax`.

    Args:
        input (Tensor): Floating scores of any shape; of integers if `dtype` is given.
        dim (int, optional): Dimension along which the results sum to 1. Name it: without it the
            dimension is 0 for 0, 1 and 3 dimensions and 1 for others, with a warning. Default: None.
        dtype (dtype, optional): Convert `input` to it first. Default: the dtype of `input`.

    Returns:
        Tensor: Probabilities in [0, 1], of the shape of `input`.

    Raises:
        IndexError: `input` has no dimension `dim`.
        NotImplementedError: `input` is not floating and no `dtype` is given.

    Example:
        >>> mica.nn.functional.softmax(mica.tensor([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]]), dim=1)
        tensor([[0.0900, 0.2447, 0.6652],
                [0.3333, 0.3333, 0.3333]])
    """
    return OPERATORS["softmax"](input, _softmax_dim("softmax", dim, input.ndim), dtype)


def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """Log probabilities from scores: `x - log(sum(exp(x)))` along a dimension.

    As `torch.nn.functional.log_softmax`. More exact than the logarithm of `softmax`; `nll_loss` takes it.

    Args:
        input (Tensor): Floating scores of any shape; of integers if `dtype` is given.
        dim (int, optional): Dimension along which the probabilities sum to 1. Name it: without it the
            dimension is 0 for 0, 1 and 3 dimensions and 1 for others, with a warning. Default: None.
        dtype (dtype, optional): Convert `input` to it first. Default: the dtype of `input`.

    Returns:
        Tensor: Logarithms, at most 0, of the shape of `input`.

    Raises:
        IndexError: `input` has no dimension `dim`.
        NotImplementedError: `input` is not floating and no `dtype` is given.

    Example:
        >>> mica.nn.functional.log_softmax(mica.tensor([1.0, 2.0, 3.0]), dim=0)
        tensor([-2.4076, -1.4076, -0.4076])
    """
    return OPERATORS["log_softmax"](input, _softmax_dim("log_softmax", dim, input.ndim), dtype)


def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """Probabilities that favour small elements: the softmax of `-x` along a dimension.

    As `torch.nn.functional.softmin`.

    Args:
        input (Tensor): Floating numbers of any shape; integers if `dtype` is given.
        dim (int, optional): Dimension along which the results sum to 1. Name it: without it the
            dimension is 0 for 0, 1 and 3 dimensions and 1 for others, with a warning. Default: None.
        dtype (dtype, optional): Convert `-input` to it first. Default: the dtype of `input`.

    Returns:
        Tensor: Probabilities in [0, 1], of the shape of `input`.

    Raises:
        IndexError: `input` has no dimension `dim`.
        NotImplementedError: `input` is not floating and no `dtype` is given.

    Example:
        >>> mica.nn.functional.softmin(mica.tensor([1.0, 2.0, 3.0]), dim=0)
        tensor([0.6652, 0.2447, 0.0900])
    """
    return softmax(-input, dim, dtype=dtype)


def gumbel_softmax(
    logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Tensor:
    """Draws nearly one-hot vectors that have a gradient: `softmax((logits + Gumbel noise) / tau)`.

    As `torch.nn.functional.gumbel_softmax` (Jang et al., 2017). The default generator makes the noise.

    Args:
        logits (Tensor): Floating log probabilities of the classes, up to a constant, of any shape.
        tau (float): Temperature: the smaller, the closer to one-hot. Default: 1.
        hard (bool): Return exact one-hot vectors, with the gradient of the soft ones. Default: False.
        eps (float): Not used. Default: 1e-10.
        dim (int): Dimension of the classes. Default: -1.

    Returns:
        Tensor: Of the shape of `logits`, with sum 1 along `dim`.

    Raises:
        IndexError: `logits` has no dimension `dim`.
        NotImplementedError: `logits` is not floating.

    Example:
        >>> _ = mica.manual_seed(0)
        >>> mica.nn.functional.gumbel_softmax(mica.zeros(2, 3), hard=True).sum(-1)
        tensor([1., 1.])
    """
    noise = -mica.empty_like(logits, memory_format=mica.contiguous_format).exponential_().log()
    soft = OPERATORS["softmax"]((logits + noise) / tau, dim)
    if not hard:
        return soft
    best = soft.max(dim, keepdim=True)[1]
    return mica.zeros_like(logits).scatter_(dim, best, 1.0) - soft.detach() + soft
