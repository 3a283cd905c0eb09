"""Functional forms of layers and losses, with torch.nn.functional's signatures.

Where the operator's signature is torch's already, the generated function itself
stands here; the rest is adapted below.
"""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any

import mica
from mica import _C
from mica._C import Tensor
from mica._functions.grouped_mm import grouped_mm as grouped_mm
from mica._interception.function_modes import install as _install
from mica.nn._attention import (  # noqa: F401
    _canonical_mask,
    _in_projection,
    _in_projection_packed,
    _mha_shape_check,
    _none_or_dtype,
    multi_head_attention_forward,
)
from mica.nn._elementwise_losses import (  # noqa: F401
    huber_loss,
    l1_loss,
    mse_loss,
    smooth_l1_loss,
)
from mica.nn._losses import (  # noqa: F401
    check_probabilities,
    cosine_embedding_loss,
    ctc_loss,
    gaussian_nll_loss,
    hinge_embedding_loss,
    linear_cross_entropy,
    margin_ranking_loss,
    multi_margin_loss,
    multilabel_margin_loss,
    multilabel_soft_margin_loss,
    poisson_nll_loss,
    soft_margin_loss,
    triplet_margin_loss,
    triplet_margin_with_distance_loss,
)
from mica.nn._operators import (
    OPERATORS as _all,
    check_probability,
    checked_padding,
    reduction_number as _reduction,
)
from mica.nn._pooling import (  # noqa: F401
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    adaptive_max_pool1d,
    adaptive_max_pool1d_with_indices,
    adaptive_max_pool2d,
    adaptive_max_pool2d_with_indices,
    adaptive_max_pool3d,
    adaptive_max_pool3d_with_indices,
    fractional_max_pool2d,
    fractional_max_pool2d_with_indices,
    fractional_max_pool3d,
    fractional_max_pool3d_with_indices,
    lp_pool1d,
    lp_pool2d,
    lp_pool3d,
    max_pool1d_with_indices,
    max_pool2d_with_indices,
    max_pool3d,
    max_pool3d_with_indices,
    max_unpool1d,
    max_unpool2d,
    max_unpool3d,
)
from mica.nn._regularisation import (  # noqa: F401
    alpha_dropout,
    dropout1d,
    dropout3d,
    embedding_bag,
    feature_alpha_dropout,
    gumbel_softmax,
    local_response_norm,
    rrelu,
)
from mica.nn._resampling import (  # noqa: F401
    affine_grid,
    grid_sample,
    interpolate,
    upsample,
    upsample_bilinear,
    upsample_nearest,
)
from mica.nn.modules.utils import (  # noqa: F401
    _list_with_default,
    _pair,
    _single,
    _triple,
)

if TYPE_CHECKING:
    from mica._operators import (
        hardshrink as hardshrink,
        one_hot as one_hot,
        prelu as prelu,
        relu_ as relu_,
    )
    from mica.nn._as_they_are import *  # noqa: F403


_AS_THEY_ARE = (
    "linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "adaptive_avg_pool1d",
    "avg_pool1d", "avg_pool2d", "avg_pool3d", "gelu", "softplus", "softshrink", "hardshrink", "softsign", "tanhshrink",
    "glu", "prelu", "pad", "one_hot", "cosine_similarity", "pairwise_distance", "normalize", "pixel_shuffle", "log_sigmoid",
    "scaled_dot_product_attention", "rms_norm", "bilinear",
    "celu_", "elu_", "hardtanh_", "leaky_relu_", "relu_", "rrelu_", "selu_", "threshold_",
    "pixel_unshuffle", "channel_shuffle", "native_channel_shuffle", "pdist", "conv_tbc",
)  # fmt: skip
globals().update({name: _all[name] for name in _AS_THEY_ARE if name in _all})
if "log_sigmoid" in _all:
    logsigmoid = _all["log_sigmoid"]


def _activation(name: str, input: Tensor, inplace: bool, *args: Any) -> Tensor:
    return _all[name + "_" if inplace else name](input, *args)


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(x, 0)."""
    return _activation("relu", input, True) if inplace else input.relu()


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(x, 0), 6)."""
    return _activation("relu6", input, inplace)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """x * sigmoid(x)."""
    return _activation("silu", input, inplace)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """x * tanh(softplus(x))."""
    return _activation("mish", input, inplace)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """The self-normalising exponential linear unit."""
    return _activation("selu", input, inplace)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """relu6(x + 3) / 6."""
    return _activation("hardsigmoid", input, inplace)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """x * relu6(x + 3) / 6."""
    return _activation("hardswish", input, inplace)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """Clamps to [min_val, max_val]."""
    if min_val > max_val:
        raise ValueError(f"Bound `min_val` ({min_val}) is larger than `max_val` ({max_val}).")
    return _activation("hardtanh", input, inplace, min_val, max_val)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x where positive, alpha * (exp(x) - 1) elsewhere."""
    return _activation("elu", input, inplace, alpha)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """The continuously differentiable exponential linear unit."""
    return _activation("celu", input, inplace, alpha)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """x where positive, negative_slope * x elsewhere."""
    return _activation("leaky_relu", input, inplace, negative_slope)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """x where greater than the threshold, `value` elsewhere."""
    return _activation("threshold", input, inplace, threshold, value)


def sigmoid(input: Tensor) -> Tensor:
    """1 / (1 + exp(-x))."""
    return input.sigmoid()


def tanh(input: Tensor) -> Tensor:
    """The hyperbolic tangent."""
    return input.tanh()


def _softmax_dim(name: str, dim: int | None, ndim: int) -> int:
    if dim is not None:
        return dim
    warnings.warn(
        f"{name}() was called without `dim`; it takes dimension 0 or 1 by the rank, as torch does.",
        stacklevel=3,
    )
    return 0 if ndim in (0, 1, 3) else 1


def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """exp(x) over its sum along `dim`."""
    return _C._functions[""]["softmax"](input, _softmax_dim("softmax", dim, input.ndim), dtype)


def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """The logarithm of softmax along `dim`."""
    return _all["log_softmax"](input, _softmax_dim("log_softmax", dim, input.ndim), dtype)


def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """softmax of -x along `dim`."""
    return softmax(-input, dim, dtype=dtype)


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zeroes elements with probability p and scales the rest, while training."""
    check_probability(p)
    return _all["dropout_" if inplace else "dropout"](input, p, training)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zeroes whole channels of (N, C, H, W) with probability p, while training."""
    if input.ndim != 4:
        what = (
            "(N, C, L), as dropout1d() does"
            if input.ndim == 3
            else f"({input.ndim}) dimensions, which dropout() is for"
        )
        warnings.warn(f"dropout2d() was called with a tensor of {what}; expected (N, C, H, W).", stacklevel=2)
    return _all["feature_dropout_" if inplace else "feature_dropout"](input, p, training)


def max_pool2d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The maximum of each window of (N, C, H, W)."""
    stride = [] if stride is None else stride
    name = "max_pool2d_with_indices" if return_indices else "max_pool2d"
    return _all[name](input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool1d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The maximum of each window of (N, C, L)."""
    stride = [] if stride is None else stride
    name = "max_pool1d_with_indices" if return_indices else "max_pool1d"
    return _all[name](input, kernel_size, stride, padding, dilation, ceil_mode)


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
    """Normalises each channel over all other dimensions."""
    if training and input.ndim > 1 and math.prod(input.shape) // max(input.size(1), 1) == 1:
        raise ValueError(
            f"Expected more than 1 value per channel when training, got input size {input.shape}."
        )
    return _all["batch_norm"](input, weight, bias, running_mean, running_var, training, momentum, eps, False)


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
    """Normalises each channel of each sample."""
    if use_input_stats and math.prod(input.shape[2:]) == 1:
        raise ValueError(
            f"Expected more than 1 spatial element when training, got input size {input.shape}: it is its channel's mean."
        )
    return _all["instance_norm"](
        input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, False
    )


def layer_norm(
    input: Tensor,
    normalized_shape: Any,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Normalises over the last dimensions."""
    return _all["layer_norm"](input, normalized_shape, weight, bias, eps)


def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Normalises groups of channels."""
    return _all["group_norm"](input, num_groups, weight, bias, eps)


def _limit_rows(weight: Tensor, rows: Tensor, max_norm: float, norm_type: float) -> None:
    """Scales the rows that are looked up, in place, to a norm of at most max_norm."""
    with mica.no_grad():
        used = rows.reshape(-1).unique()
        values = weight[used]
        norms = mica.linalg_vector_norm(values, norm_type, 1, True)
        factor = mica.where(norms > max_norm, max_norm / (norms + 1e-7), mica.ones_like(norms))
        weight[used] = values * factor


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Rows of `weight`, looked up by index."""
    if max_norm is not None:
        _limit_rows(weight, input, max_norm, norm_type)
    padding = -1 if padding_idx is None else checked_padding(padding_idx, weight.size(0))
    return _all["embedding"](weight, input, padding, scale_grad_by_freq, sparse)


def unfold(input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    """Windows of (N, C, H, W) as columns."""
    return _all["im2col"](input, kernel_size, dilation, padding, stride)


def fold(
    input: Tensor, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Tensor:
    """Columns added back into (N, C, H, W)."""
    return _all["col2im"](input, output_size, kernel_size, dilation, padding, stride)


# -- losses


def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """target * (log target - input)."""
    if (size_average, reduce, reduction) == (None, None, "batchmean"):
        return _all["kl_div"](input, target, 2, log_target=log_target) / input.size(0)
    return _all["kl_div"](input, target, _reduction(reduction, size_average, reduce), log_target=log_target)


def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """Binary cross entropy of probabilities."""
    if input.shape != target.shape:
        raise ValueError(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}) is deprecated. "
            "Please ensure they have the same size."
        )
    check_probabilities(input=input, target=target)
    return _all["binary_cross_entropy"](input, target, weight, _reduction(reduction, size_average, reduce))


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """Binary cross entropy of logits."""
    if input.shape != target.shape:
        raise ValueError(f"Target size ({target.shape}) must be the same as input size ({input.shape}).")
    return _all["binary_cross_entropy_with_logits"](
        input, target, weight, pos_weight, _reduction(reduction, size_average, reduce)
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
    """-log probability of the target class; `input` holds log probabilities."""
    _check_batch(input, target)
    return _all["nll_loss_nd"](
        input, target, weight, _reduction(reduction, size_average, reduce), ignore_index
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
    """Cross entropy of logits against class indices or probabilities."""
    _check_batch(input, target)
    return _all["cross_entropy_loss"](
        input, target, weight, _reduction(reduction, size_average, reduce), ignore_index, label_smoothing
    )


_install(globals())
