"""torch's functions for attention and encoder layers in evaluation, composed of Mica's operators.

Used by modules/_fast_path.py, and found as torch._native_multi_head_attention and the like. A mask hides
what is True; its type says what it is of: 0 [rows, columns], 1 [batch, columns], 2 all scores,
[batch, heads, rows, columns]. One product makes query, key and value of rows that are one tensor. Where no weights are wanted, a row
that may see nothing takes nothing from attention; with weights it is NaN, as torch has it both times.
"""

from __future__ import annotations

import math

import mica
from mica._C import Tensor
from mica.nn._operators import OPERATORS

_linear, _softmax = OPERATORS["linear"], OPERATORS["softmax"]
_attention, _layer_norm = OPERATORS["scaled_dot_product_attention"], OPERATORS["layer_norm"]


def _hidden_scores(mask: Tensor, mask_type: int | None, scores: tuple[int, ...]) -> Tensor:
    """The mask, so that it goes along with scores of this shape."""
    shape = tuple(mask.shape)
    if shape == scores:
        return mask
    if mask_type not in (0, 1) or len(scores) != 4:
        raise RuntimeError(
            f"Shape {shape} of `mask` with type ({mask_type}) is not that {scores} of the scores."
        )
    wanted = (scores[2 if mask_type == 0 else 0], scores[3])
    if shape != wanted:
        raise RuntimeError(
            f"Shape {shape} of `mask` with type ({mask_type}) is not {wanted}, as the scores {scores} need it."
        )
    return mask if mask_type == 0 else mask[:, None, None]


def _masked_softmax(
    self: Tensor, mask: Tensor, dim: int | None = None, mask_type: int | None = None
) -> Tensor:
    """Softmax over what the mask leaves; NaN where it hides a whole row."""
    if mask.dtype != mica.bool:
        raise RuntimeError(f"Dtype ({mask.dtype}) of `mask` is not bool.")
    hidden = _hidden_scores(mask, mask_type, tuple(self.shape))
    return _softmax(self.masked_fill(hidden, -math.inf), -1 if dim is None else dim)  # type: ignore[no-any-return]


def _of_heads(qkv: Tensor, num_heads: int) -> tuple[Tensor, Tensor, Tensor]:
    """Query, key and value as views [batch, heads, rows, size] of [batch, rows, 3 * width]."""
    batch, rows, width = qkv.shape
    q, k, v = qkv.view(batch, rows, 3, num_heads, width // (3 * num_heads)).permute(2, 0, 3, 1, 4)
    return q, k, v


def _transform_bias_rescale_qkv(
    qkv: Tensor, qkv_bias: Tensor, num_heads: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Query, scaled by the root of its size, key and value of each head, from their one product."""
    if qkv.ndim != 3 or num_heads <= 0 or qkv.size(2) % (3 * num_heads):
        raise RuntimeError(
            f"Shape {tuple(qkv.shape)} of `qkv` is not [batch, rows, 3 * width] with a width that is a multiple of ({num_heads}), the number of heads."
        )
    q, k, v = _of_heads(qkv + qkv_bias, num_heads)
    return (q / math.sqrt(q.size(3))).contiguous(), k.contiguous(), v.contiguous()


def _check_width(x: Tensor, width: int, heads: int) -> None:
    if x.ndim != 3 or x.size(2) != width:
        raise RuntimeError(
            f"Shape {tuple(x.shape)} of the input is not [batch, rows, ({width})], the embedding size."
        )
    if heads <= 0 or width % heads:
        raise RuntimeError(f"Embedding size ({width}) is no multiple of the number of heads ({heads}).")


def _self_attention(qkv: Tensor, num_heads: int, mask: Tensor | None, mask_type: int | None) -> Tensor:
    """Attention over [batch, rows, 3 * width]; [batch * rows, width]."""
    q, k, v = _of_heads(qkv, num_heads)
    batch, rows, width = qkv.shape
    seen = None
    if mask is not None:
        seen = _hidden_scores(mask.bool(), mask_type, (batch, num_heads, rows, rows)).logical_not()
    return _attention(q, k, v, seen).transpose(1, 2).reshape(batch * rows, width // 3)  # type: ignore[no-any-return]


def _native_multi_head_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim: int,
    num_head: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    mask: Tensor | None = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> tuple[Tensor, Tensor | None]:
    """Attention of several heads with one weight for query, key and value, and its weights if wanted."""
    if not query.shape == key.shape == value.shape:
        raise RuntimeError(
            f"Shapes {tuple(query.shape)}, {tuple(key.shape)} and {tuple(value.shape)} of query, key and value differ."
        )
    _check_width(query, embed_dim, num_head)
    if query.numel() == 0:
        return mica.zeros_like(query), None
    batch, rows, width = query.shape
    if query is key and key is value:
        qkv = _linear(query.reshape(-1, width), qkv_weight, qkv_bias)
    else:
        inputs, parts = (query, key, value), (qkv_weight.chunk(3), qkv_bias.chunk(3))
        qkv = mica.cat([_linear(x.reshape(-1, width), w, b) for x, w, b in zip(inputs, *parts)], 1)
    qkv = qkv.view(batch, rows, 3 * width)
    if not need_weights:
        mixed, weights = _self_attention(qkv, num_head, mask, mask_type), None
    else:
        q, k, v = _of_heads(qkv, num_head)
        scores = mica.matmul(q / math.sqrt(q.size(3)), k.transpose(2, 3))
        weights = (
            _softmax(scores, -1) if mask is None else _masked_softmax(scores, mask.bool(), -1, mask_type)
        )
        mixed = mica.matmul(weights, v).transpose(1, 2).reshape(batch * rows, width)
        weights = weights.mean(1) if average_attn_weights else weights
    return _linear(mixed, proj_weight, proj_bias).view(batch, rows, width), weights


def encoder_rows(
    rows: Tensor,
    places: Tensor | None,
    batch: int,
    length: int,
    num_heads: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: Tensor,
    norm_bias_1: Tensor,
    norm_weight_2: Tensor,
    norm_bias_2: Tensor,
    ffn_weight_1: Tensor,
    ffn_bias_1: Tensor,
    ffn_weight_2: Tensor,
    ffn_bias_2: Tensor,
    mask: Tensor | None = None,
    mask_type: int | None = None,
) -> Tensor:
    """An encoder layer over rows that stand at `places` of a [batch, length] grid, or at all of them.

    Attention alone sees the grid.
    """
    shape, activation = [rows.size(1)], OPERATORS["gelu" if use_gelu else "relu_"]
    before = _layer_norm(rows, shape, norm_weight_1, norm_bias_1, eps) if norm_first else rows
    qkv = _linear(before, qkv_weight, qkv_bias)
    if places is not None:
        qkv = qkv.new_zeros(batch * length, qkv.size(1)).index_copy_(0, places, qkv)
    mixed = _self_attention(qkv.view(batch, length, -1), num_heads, mask, mask_type)
    if places is not None:
        mixed = mixed.index_select(0, places)
    x = rows + _linear(mixed, proj_weight, proj_bias)
    if not norm_first:
        x = _layer_norm(x, shape, norm_weight_1, norm_bias_1, eps)
    inner = _layer_norm(x, shape, norm_weight_2, norm_bias_2, eps) if norm_first else x
    y = x + _linear(activation(_linear(inner, ffn_weight_1, ffn_bias_1)), ffn_weight_2, ffn_bias_2)
    return y if norm_first else _layer_norm(y, shape, norm_weight_2, norm_bias_2, eps)


def _transformer_encoder_layer_fwd(
    src: Tensor,
    embed_dim: int,
    num_heads: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: Tensor,
    norm_bias_1: Tensor,
    norm_weight_2: Tensor,
    norm_bias_2: Tensor,
    ffn_weight_1: Tensor,
    ffn_bias_1: Tensor,
    ffn_weight_2: Tensor,
    ffn_bias_2: Tensor,
    mask: Tensor | None = None,
    mask_type: int | None = None,
) -> Tensor:
    """An encoder layer without dropout."""
    _check_width(src, embed_dim, num_heads)
    if src.numel() == 0:
        return mica.zeros_like(src)
    batch, length, width = src.shape
    attention = (qkv_weight, qkv_bias, proj_weight, proj_bias)
    norms = (norm_weight_1, norm_bias_1, norm_weight_2, norm_bias_2)
    network = (ffn_weight_1, ffn_bias_1, ffn_weight_2, ffn_bias_2)
    rows = src.reshape(-1, width)
    done = encoder_rows(
        rows,
        None,
        batch,
        length,
        num_heads,
        *attention,
        use_gelu,
        norm_first,
        eps,
        *norms,
        *network,
        mask,
        mask_type,
    )
    return done.view(batch, length, width)
