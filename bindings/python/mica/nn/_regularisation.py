"""Dropout's kin, random slopes, bags of embeddings, local response normalisation."""

from __future__ import annotations

import warnings

import mica
from mica._C import Tensor
from mica.nn._operators import OPERATORS, check_probability


def _dropout(name: str, input: Tensor, p: float, training: bool, inplace: bool) -> Tensor:
    check_probability(p)
    return OPERATORS[name + "_" if inplace else name](input, p, training)


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Dropout that keeps mean and variance of what selu gives."""
    return _dropout("alpha_dropout", input, p, training, inplace)


def feature_alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """alpha_dropout of whole channels."""
    return _dropout("feature_alpha_dropout", input, p, training, inplace)


def _channel_dropout(input: Tensor, dims: int, p: float, training: bool, inplace: bool) -> Tensor:
    if input.ndim not in (dims + 1, dims + 2):
        text = f"Number of dimensions ({input.ndim}) of `input` is not ({dims + 1}) or ({dims + 2})."
        if dims == 1:
            raise RuntimeError(text)
        warnings.warn(f"{text} The first counts as that of the channels.", stacklevel=4)
    if input.ndim == dims + 2:
        return _dropout("feature_dropout", input, p, training, inplace)
    return _dropout("feature_dropout", input.unsqueeze(0), p, training, inplace).squeeze(0)


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zeroes whole channels of (N, C, L), while training."""
    return _channel_dropout(input, 1, p, training, inplace)


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zeroes whole channels of (N, C, D, H, W), while training."""
    return _channel_dropout(input, 3, p, training, inplace)


def rrelu(
    input: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Tensor:
    """Negative elements times a slope drawn between the two; their mean outside training."""
    return OPERATORS["rrelu_" if inplace else "rrelu"](input, lower, upper, training)


def gumbel_softmax(
    logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Tensor:
    """A sample of the Gumbel-softmax distribution; `hard` ones have the soft one's gradient."""
    noise = -mica.empty_like(logits, memory_format=mica.contiguous_format).exponential_().log()
    soft = OPERATORS["softmax"]((logits + noise) / tau, dim)
    if not hard:
        return soft
    best = soft.max(dim, keepdim=True)[1]
    return mica.zeros_like(logits).scatter_(dim, best, 1.0) - soft.detach() + soft


def local_response_norm(
    input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    """x / (k + alpha * mean of squares over `size` neighbouring channels)^beta."""
    if input.ndim < 3:
        raise ValueError(f"Number of dimensions ({input.ndim}) of `input` is below 3.")
    if input.numel() == 0:
        return input
    planes = input.square().reshape(input.size(0), 1, input.size(1), -1)
    padded = OPERATORS["pad"](planes, [0, 0, size // 2, (size - 1) // 2])
    mean = OPERATORS["avg_pool2d"](padded, [size, 1], [1, 1]).reshape(input.shape)
    return input / (mean * alpha + k).pow(beta)


_BAG_MODES = {"sum": 0, "mean": 1, "max": 2}


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """Sum, mean or maximum of the rows of `weight` that each bag of indices names."""
    if mode not in _BAG_MODES:
        raise ValueError(f"The mode ({mode}) is unknown; expected sum, mean or max.")
    if per_sample_weights is not None and per_sample_weights.shape != input.shape:
        raise ValueError(
            f"Shape {tuple(per_sample_weights.shape)} of `per_sample_weights` differs from that {tuple(input.shape)} of `input`."
        )
    if weight.ndim != 2:
        raise ValueError(f"Number of dimensions ({weight.ndim}) of `weight` is not 2.")
    if mode == "max" and (scale_grad_by_freq or sparse):
        raise ValueError("Mode (max) has neither gradients scaled by frequency nor sparse ones.")
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(f"Weights of samples for mode ({mode}) do not exist; use mode sum.")
    if input.ndim == 2:
        if offsets is not None:
            raise ValueError(
                "Argument `offsets` has no meaning for a matrix of indices, whose rows are bags."
            )
        offsets = mica.arange(0, input.numel(), max(input.size(1), 1), dtype=input.dtype, device=input.device)
        input = input.reshape(-1)
        include_last_offset = False
        per_sample_weights = None if per_sample_weights is None else per_sample_weights.reshape(-1)
    elif input.ndim != 1:
        raise ValueError(f"Number of dimensions ({input.ndim}) of `input` is not 1 or 2.")
    elif offsets is None or offsets.ndim != 1:
        raise ValueError("A vector of indices needs a vector `offsets`: where each bag begins.")
    if max_norm is not None:
        from mica.nn.functional import _limit_rows

        _limit_rows(weight, input, max_norm, norm_type)
    return OPERATORS["embedding_bag"](
        weight,
        input,
        offsets,
        scale_grad_by_freq,
        _BAG_MODES[mode],
        sparse,
        per_sample_weights,
        include_last_offset,
        padding_idx,
    )[0]
