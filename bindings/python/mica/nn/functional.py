"""Functional forms of layers and losses, with torch.nn.functional's signatures.

Where an operator's signature is torch's already, the generated function itself stands here. The
others are adapted in private modules of mica.nn, one for each kind of layer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mica._functions.grouped_mm import grouped_mm as grouped_mm
from mica._interception.function_modes import install as _install
from mica.nn._activations import (
    celu as celu,
    elu as elu,
    gumbel_softmax as gumbel_softmax,
    hardsigmoid as hardsigmoid,
    hardswish as hardswish,
    hardtanh as hardtanh,
    leaky_relu as leaky_relu,
    log_softmax as log_softmax,
    mish as mish,
    relu as relu,
    relu6 as relu6,
    rrelu as rrelu,
    selu as selu,
    sigmoid as sigmoid,
    silu as silu,
    softmax as softmax,
    softmin as softmin,
    tanh as tanh,
    threshold as threshold,
)
from mica.nn._adaptive_pooling import (
    adaptive_avg_pool2d as adaptive_avg_pool2d,
    adaptive_avg_pool3d as adaptive_avg_pool3d,
    adaptive_max_pool1d as adaptive_max_pool1d,
    adaptive_max_pool1d_with_indices as adaptive_max_pool1d_with_indices,
    adaptive_max_pool2d as adaptive_max_pool2d,
    adaptive_max_pool2d_with_indices as adaptive_max_pool2d_with_indices,
    adaptive_max_pool3d as adaptive_max_pool3d,
    adaptive_max_pool3d_with_indices as adaptive_max_pool3d_with_indices,
)
from mica.nn._attention import (
    _canonical_mask as _canonical_mask,
    _in_projection as _in_projection,
    _in_projection_packed as _in_projection_packed,
    _mha_shape_check as _mha_shape_check,
    _none_or_dtype as _none_or_dtype,
    multi_head_attention_forward as multi_head_attention_forward,
)
from mica.nn._classification_losses import (
    binary_cross_entropy as binary_cross_entropy,
    binary_cross_entropy_with_logits as binary_cross_entropy_with_logits,
    cross_entropy as cross_entropy,
    ctc_loss as ctc_loss,
    linear_cross_entropy as linear_cross_entropy,
    nll_loss as nll_loss,
)
from mica.nn._dropout import (
    alpha_dropout as alpha_dropout,
    dropout as dropout,
    dropout1d as dropout1d,
    dropout2d as dropout2d,
    dropout3d as dropout3d,
    feature_alpha_dropout as feature_alpha_dropout,
)
from mica.nn._elementwise_losses import (
    huber_loss as huber_loss,
    l1_loss as l1_loss,
    mse_loss as mse_loss,
    smooth_l1_loss as smooth_l1_loss,
)
from mica.nn._embedding import (
    embedding as embedding,
    embedding_bag as embedding_bag,
)
from mica.nn._folding import (
    fold as fold,
    unfold as unfold,
)
from mica.nn._fractional_pooling import (
    fractional_max_pool2d as fractional_max_pool2d,
    fractional_max_pool2d_with_indices as fractional_max_pool2d_with_indices,
    fractional_max_pool3d as fractional_max_pool3d,
    fractional_max_pool3d_with_indices as fractional_max_pool3d_with_indices,
)
from mica.nn._likelihood_losses import (
    gaussian_nll_loss as gaussian_nll_loss,
    kl_div as kl_div,
    poisson_nll_loss as poisson_nll_loss,
)
from mica.nn._margin_losses import (
    cosine_embedding_loss as cosine_embedding_loss,
    hinge_embedding_loss as hinge_embedding_loss,
    margin_ranking_loss as margin_ranking_loss,
    multi_margin_loss as multi_margin_loss,
    multilabel_margin_loss as multilabel_margin_loss,
    multilabel_soft_margin_loss as multilabel_soft_margin_loss,
    soft_margin_loss as soft_margin_loss,
    triplet_margin_loss as triplet_margin_loss,
    triplet_margin_with_distance_loss as triplet_margin_with_distance_loss,
)
from mica.nn._normalisation import (
    batch_norm as batch_norm,
    group_norm as group_norm,
    instance_norm as instance_norm,
    layer_norm as layer_norm,
    local_response_norm as local_response_norm,
)
from mica.nn._operators import OPERATORS as _all
from mica.nn._pooling import (
    lp_pool1d as lp_pool1d,
    lp_pool2d as lp_pool2d,
    lp_pool3d as lp_pool3d,
    max_pool1d as max_pool1d,
    max_pool1d_with_indices as max_pool1d_with_indices,
    max_pool2d as max_pool2d,
    max_pool2d_with_indices as max_pool2d_with_indices,
    max_pool3d as max_pool3d,
    max_pool3d_with_indices as max_pool3d_with_indices,
)
from mica.nn._resampling import (
    affine_grid as affine_grid,
    grid_sample as grid_sample,
    interpolate as interpolate,
    upsample as upsample,
    upsample_bilinear as upsample_bilinear,
    upsample_nearest as upsample_nearest,
)
from mica.nn._unpooling import (
    max_unpool1d as max_unpool1d,
    max_unpool2d as max_unpool2d,
    max_unpool3d as max_unpool3d,
)
from mica.nn.modules.utils import (
    _list_with_default as _list_with_default,
    _pair as _pair,
    _single as _single,
    _triple as _triple,
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

_install(globals())
