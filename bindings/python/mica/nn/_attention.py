"""Attention with several heads over projections of query, key and value."""

from __future__ import annotations

import math

import mica
from mica._C import Tensor
from mica.nn._operators import OPERATORS


def _expect(condition: bool, sentence: str) -> None:
    if not condition:
        raise AssertionError(sentence)


def _check_shapes(
    query: Tensor, key: Tensor, value: Tensor, padding: Tensor | None, mask: Tensor | None, heads: int
) -> bool:
    """Whether the inputs are a batch."""
    _expect(query.ndim in (2, 3), f"Number of dimensions ({query.ndim}) of `query` is not 2 or 3.")
    same = query.ndim == key.ndim == value.ndim
    _expect(
        same,
        f"Numbers of dimensions ({query.ndim}), ({key.ndim}) and ({value.ndim}) of query, key and value differ.",
    )
    if padding is not None:
        _expect(
            padding.ndim == query.ndim - 1,
            f"Number of dimensions ({padding.ndim}) of `key_padding_mask` is not ({query.ndim - 1}).",
        )
    if mask is not None:
        _expect(mask.ndim in (2, 3), f"Number of dimensions ({mask.ndim}) of `attn_mask` is not 2 or 3.")
        if query.ndim == 2 and mask.ndim == 3:
            wanted = (heads, query.size(0), key.size(0))
            _expect(tuple(mask.shape) == wanted, f"Shape {tuple(mask.shape)} of `attn_mask` is not {wanted}.")
    return query.ndim == 3


def _additive(mask: Tensor | None, name: str, like: Tensor) -> Tensor | None:
    """A mask as numbers to add: minus infinity where a bool one is True."""
    if mask is None or mask.is_floating_point():
        return mask
    _expect(mask.dtype == mica.bool, f"Dtype ({mask.dtype}) of `{name}` is neither bool nor floating.")
    zeros = mica.zeros(mask.shape, dtype=like.dtype, device=mask.device)
    return zeros.masked_fill(mask, -math.inf)


def _project(
    inputs: tuple[Tensor, Tensor, Tensor], weight: Tensor, bias: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """The three projections by one packed weight; inputs that are one tensor take one product."""
    linear = OPERATORS["linear"]
    query, key, value = inputs
    size = query.size(-1)
    if query is key and key is value:
        q, k, v = linear(query, weight, bias).chunk(3, -1)
        return q, k, v
    weights = weight.split(size)
    biases = (None, None, None) if bias is None else bias.split(size)
    if key is value:
        rest = None if bias is None else bias[size:]
        k, v = linear(key, weight[size:], rest).chunk(2, -1)
        return linear(query, weights[0], biases[0]), k, v
    q, k, v = (linear(x, w, b) for x, w, b in zip(inputs, weights, biases))
    return q, k, v


def _with_extra(x: Tensor, extra: Tensor | None) -> Tensor:
    """One more key (value), from (1, 1, E), at the end of (S, N, E)."""
    return x if extra is None else mica.cat([x, extra.repeat(1, x.size(1), 1)])


def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Attention of (L, N, E) over keys and values of (S, N, ..), and its weights if wanted."""
    batched = _check_shapes(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        one = query.unsqueeze(1)
        same_key, same_value = key is query, value is key
        key = one if same_key else key.unsqueeze(1)
        value = key if same_value else value.unsqueeze(1)
        query = one
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    length, batch, width = query.shape
    padding = _additive(key_padding_mask, "key_padding_mask", query)
    if is_causal and attn_mask is None:
        raise RuntimeError("Argument `is_causal` is a hint about `attn_mask`, which is not given.")
    causal = is_causal and padding is None and not need_weights
    mask = None if causal else _additive(attn_mask, "attn_mask", query)
    _expect(width == embed_dim_to_check, f"Embedding size ({width}) is not ({embed_dim_to_check}).")
    head = width // num_heads
    _expect(
        head * num_heads == width,
        f"Embedding size ({width}) is no multiple of the number of heads ({num_heads}).",
    )
    if use_separate_proj_weight:
        _expect(key.shape[:2] == value.shape[:2], "Lengths or batches of `key` and `value` differ.")
        given = (q_proj_weight, k_proj_weight, v_proj_weight)
        _expect(None not in given, "Separate projections are wanted, but not all of their weights are given.")
        biases = (None, None, None) if in_proj_bias is None else in_proj_bias.chunk(3)
        q, k, v = (OPERATORS["linear"](x, w, b) for x, w, b in zip((query, key, value), given, biases))
    else:
        _expect(
            key.shape == value.shape,
            f"Shapes {tuple(key.shape)} and {tuple(value.shape)} of key and value differ.",
        )
        _expect(in_proj_weight is not None, "Weight `in_proj_weight` is not given.")
        q, k, v = _project((query, key, value), in_proj_weight, in_proj_bias)  # type: ignore[arg-type]
    if mask is not None:
        wanted = (length, key.size(0)) if mask.ndim == 2 else (batch * num_heads, length, key.size(0))
        if tuple(mask.shape) != wanted:
            raise RuntimeError(f"Shape {tuple(mask.shape)} of `attn_mask` is not {wanted}.")
        mask = mask if mask.ndim == 3 else mask.unsqueeze(0)
    _expect((bias_k is None) == (bias_v is None), "One of `bias_k` and `bias_v` is given without the other.")
    k, v = _with_extra(k, bias_k), _with_extra(v, bias_v)
    more = int(bias_k is not None) + int(add_zero_attn)
    q = q.reshape(length, batch * num_heads, head).transpose(0, 1)
    k = static_k if static_k is not None else k.reshape(-1, batch * num_heads, head).transpose(0, 1)
    v = static_v if static_v is not None else v.reshape(-1, batch * num_heads, head).transpose(0, 1)
    if add_zero_attn:
        zeros = mica.zeros(batch * num_heads, 1, head, dtype=k.dtype, device=k.device)
        k, v = mica.cat([k, zeros], 1), mica.cat([v, zeros], 1)
    if more:
        mask = None if mask is None else OPERATORS["pad"](mask, [0, more])
        padding = None if padding is None else OPERATORS["pad"](padding, [0, more])
    source = k.size(1)
    if padding is not None:
        _expect(
            tuple(padding.shape) == (batch, source),
            f"Shape {tuple(padding.shape)} of `key_padding_mask` is not {(batch, source)}.",
        )
        spread = padding.reshape(batch, 1, 1, source).expand(-1, num_heads, -1, -1)
        spread = spread.reshape(batch * num_heads, 1, source)
        mask = spread if mask is None else mask + spread
    p = dropout_p if training else 0.0
    weights = None
    if need_weights:
        scaled = q * math.sqrt(1.0 / head)
        keys = k.transpose(1, 2)
        scores = mica.bmm(scaled, keys) if mask is None else mica.baddbmm(mask, scaled, keys)
        shares = OPERATORS["dropout"](OPERATORS["softmax"](scores, -1), p, True)
        result = mica.bmm(shares, v).transpose(0, 1).reshape(length * batch, width)
        weights = shares.reshape(batch, num_heads, length, source)
        weights = weights.mean(1) if average_attn_weights else weights
    else:
        if mask is not None:
            whole = mask.size(0) == 1
            mask = mask.unsqueeze(0) if whole else mask.reshape(batch, num_heads, -1, source)
        heads = [x.reshape(batch, num_heads, -1, head) for x in (q, k, v)]
        found = OPERATORS["scaled_dot_product_attention"](*heads, mask, p, causal)
        result = found.permute(2, 0, 1, 3).reshape(length * batch, width)
    result = OPERATORS["linear"](result, out_proj_weight, out_proj_bias)
    result = result.reshape(length, batch, result.size(1))
    if not batched:
        return result.squeeze(1), None if weights is None else weights.squeeze(0)
    return result, weights
