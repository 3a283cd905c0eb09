"""Attention with several heads over projections of query, key and value."""

from __future__ import annotations

import math
import warnings
from typing import Any

import mica
from mica._C import Tensor
from mica.nn._operators import OPERATORS, check_probability


def _expect(condition: bool, sentence: str) -> None:
    if not condition:
        raise AssertionError(sentence)


def _mha_shape_check(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    key_padding_mask: Tensor | None,
    attn_mask: Tensor | None,
    num_heads: int,
) -> bool:
    """Whether the inputs are a batch; AssertionError if their numbers of dimensions do not fit."""
    _expect(query.ndim in (2, 3), f"Number of dimensions ({query.ndim}) of `query` is not 2 or 3.")
    same = query.ndim == key.ndim == value.ndim
    _expect(
        same,
        f"Numbers of dimensions ({query.ndim}), ({key.ndim}) and ({value.ndim}) of query, key and value differ.",
    )
    if key_padding_mask is not None:
        _expect(
            key_padding_mask.ndim == query.ndim - 1,
            f"Number of dimensions ({key_padding_mask.ndim}) of `key_padding_mask` is not ({query.ndim - 1}).",
        )
    if attn_mask is not None:
        _expect(
            attn_mask.ndim in (2, 3), f"Number of dimensions ({attn_mask.ndim}) of `attn_mask` is not 2 or 3."
        )
        if query.ndim == 2 and attn_mask.ndim == 3:
            wanted = (num_heads, query.size(0), key.size(0))
            _expect(
                tuple(attn_mask.shape) == wanted,
                f"Shape {tuple(attn_mask.shape)} of `attn_mask` is not {wanted}.",
            )
    return query.ndim == 3


def _none_or_dtype(input: Tensor | None) -> Any:
    """The dtype of a tensor, None of None."""
    if input is None:
        return None
    if isinstance(input, Tensor):
        return input.dtype
    raise RuntimeError(f"Input ({type(input).__name__}) of _none_or_dtype is neither None nor a Tensor.")


def _canonical_mask(
    mask: Tensor | None,
    mask_name: str,
    other_type: Any,
    other_name: str,
    target_type: Any,
    check_other: bool = True,
) -> Tensor | None:
    """A mask as numbers to add: minus infinity where a bool one is True."""
    if mask is None:
        return None
    floating = mask.is_floating_point()
    _expect(
        floating or mask.dtype == mica.bool,
        f"Dtype ({mask.dtype}) of `{mask_name}` is neither bool nor floating.",
    )
    if check_other and other_type is not None and mask.dtype != other_type:
        warnings.warn(
            f"Support for mismatched {mask_name} and {other_name} is deprecated. Use same type for both instead.",
            stacklevel=2,
        )
    if floating:
        return mask
    return mica.zeros_like(mask, dtype=target_type).masked_fill(mask, -math.inf)


def agreeing_masks(
    padding: Tensor | None, mask: Tensor | None, padding_name: str, mask_name: str, dtype: Any
) -> tuple[Tensor | None, Tensor | None]:
    """Both masks as they are, or as numbers to add if one is bool and the other is not, which warns."""
    kinds = {None if x is None else x.dtype for x in (padding, mask)} - {None, mica.bool}
    if not kinds:
        return padding, mask
    padding = _canonical_mask(padding, padding_name, _none_or_dtype(mask), mask_name, dtype)
    return padding, _canonical_mask(mask, mask_name, None, "", dtype, check_other=False)


def _in_projection_packed(
    q: Tensor, k: Tensor, v: Tensor, w: Tensor, b: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """The three projections by one packed weight; inputs that are one tensor take one product."""
    linear = OPERATORS["linear"]
    size = q.size(-1)
    if q is k and k is v:
        first, second, third = linear(q, w, b).chunk(3, -1)
        return first, second, third
    weights = w.split(size)
    biases = (None, None, None) if b is None else b.split(size)
    if k is v:
        rest = None if b is None else b[size:]
        second, third = linear(k, w[size:], rest).chunk(2, -1)
        return linear(q, weights[0], biases[0]), second, third
    first, second, third = (linear(*given) for given in zip((q, k, v), weights, biases))
    return first, second, third


def _in_projection(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    w_q: Tensor,
    w_k: Tensor,
    w_v: Tensor,
    b_q: Tensor | None = None,
    b_k: Tensor | None = None,
    b_v: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """The three projections by a weight each, whose shapes must fit: AssertionError."""
    width = q.size(-1)
    for name, x, weight, bias in (("q", q, w_q, b_q), ("k", k, w_k, b_k), ("v", v, w_v, b_v)):
        wanted = (width, x.size(-1))
        _expect(tuple(weight.shape) == wanted, f"Shape {tuple(weight.shape)} of `w_{name}` is not {wanted}.")
        _expect(
            bias is None or tuple(bias.shape) == (width,),
            f"Shape {None if bias is None else tuple(bias.shape)} of `b_{name}` is not {(width,)}.",
        )
    linear = OPERATORS["linear"]
    return linear(q, w_q, b_q), linear(k, w_k, b_k), linear(v, w_v, b_v)


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
    """Attention with several heads and its weights as arguments, which MultiheadAttention calls.

    As `torch.nn.functional.multi_head_attention_forward`. Each head computes
    `softmax(q @ k.T / sqrt(E / num_heads)) @ v` of its part of the projections.

    Args:
        query (Tensor): `(L, N, E)` or `(L, E)`.
        key (Tensor): `(S, N, E_k)` or `(S, E_k)`; `E_k` is `E` unless `use_separate_proj_weight`.
        value (Tensor): `(S, N, E_v)` or `(S, E_v)`; `E_v` is `E` unless `use_separate_proj_weight`.
        embed_dim_to_check (int): What `E` must be.
        num_heads (int): Heads, which divide `E`.
        in_proj_weight (Tensor, optional): `(3 * E, E)`: projections of query, key and value.
        in_proj_bias (Tensor, optional): `(3 * E)`.
        bias_k (Tensor, optional): `(1, 1, E)`, one more key; together with `bias_v`.
        bias_v (Tensor, optional): `(1, 1, E)`, its value.
        add_zero_attn (bool): Append a key and a value of zeros.
        dropout_p (float): Probability with which an attention weight is dropped in training, in [0, 1].
        out_proj_weight (Tensor): `(E, E)`: projection of the joined heads.
        out_proj_bias (Tensor, optional): `(E)`.
        training (bool): Whether dropout zeroes attention weights. Default: True.
        key_padding_mask (Tensor, optional): `(N, S)` or `(S)`: bool, True for keys to ignore, or floating,
            to add to the scores. Default: None.
        need_weights (bool): Return the attention weights too, which is slower. Default: True.
        attn_mask (Tensor, optional): `(L, S)` or `(N * num_heads, L, S)`: bool, True for pairs to ignore,
            or floating, to add to the scores. Default: None.
        use_separate_proj_weight (bool): Take the three weights that follow, not `in_proj_weight`.
            Default: False.
        q_proj_weight (Tensor, optional): `(E, E)`. Default: None.
        k_proj_weight (Tensor, optional): `(E, E_k)`. Default: None.
        v_proj_weight (Tensor, optional): `(E, E_v)`. Default: None.
        static_k (Tensor, optional): `(N * num_heads, S, E / num_heads)` instead of projected keys.
            Default: None.
        static_v (Tensor, optional): The same for values. Default: None.
        average_attn_weights (bool): Return the mean of the weights over the heads. Default: True.
        is_causal (bool): `attn_mask`, which must be given, is the causal one, and may be left out of the
            computation. Default: False.

    Returns:
        tuple of Tensor and (Tensor or None): The result, `(L, N, E)` or `(L, E)`; and the weights,
        `(N, L, S)`, or `(N, num_heads, L, S)` if not averaged, without `N` if the inputs have none; None
        without `need_weights`.

    Raises:
        AssertionError: Shapes of inputs, weights or padding mask do not fit, or a mask is neither bool
            nor floating.
        RuntimeError: The shape of `attn_mask` does not fit, or `is_causal` is given without it.

    Example:
        >>> x, w = mica.eye(2).unsqueeze(1), mica.eye(2).repeat(3, 1)
        >>> result, weights = mica.nn.functional.multi_head_attention_forward(
        ...     x, x, x, 2, 1, w, None, None, None, False, 0.0, mica.eye(2), None
        ... )
        >>> weights
        tensor([[[0.6698, 0.3302],
                 [0.3302, 0.6698]]])
    """
    batched = _mha_shape_check(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        one = query.unsqueeze(1)
        same_key, same_value = key is query, value is key
        key = one if same_key else key.unsqueeze(1)
        value = key if same_value else value.unsqueeze(1)
        query = one
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    length, batch, width = query.shape
    padding = _canonical_mask(
        key_padding_mask, "key_padding_mask", _none_or_dtype(attn_mask), "attn_mask", query.dtype
    )
    if is_causal and attn_mask is None:
        raise RuntimeError("Argument `is_causal` is a hint about `attn_mask`, which is not given.")
    causal = is_causal and padding is None and not need_weights
    mask = (
        None if causal else _canonical_mask(attn_mask, "attn_mask", None, "", query.dtype, check_other=False)
    )
    _expect(
        width == embed_dim_to_check,
        f"The layer was expecting embedding dimension of {embed_dim_to_check}, but got {width}.",
    )
    head = width // num_heads
    _expect(
        head * num_heads == width,
        f"embed_dim {width} not divisible by num_heads {num_heads}.",
    )
    if use_separate_proj_weight:
        _expect(key.shape[:2] == value.shape[:2], "Lengths or batches of `key` and `value` differ.")
        given = (q_proj_weight, k_proj_weight, v_proj_weight)
        _expect(None not in given, "Separate projections are wanted, but not all of their weights are given.")
        biases = (None, None, None) if in_proj_bias is None else in_proj_bias.chunk(3)
        q, k, v = _in_projection(query, key, value, *given, *biases)  # type: ignore[arg-type]
    else:
        _expect(
            key.shape == value.shape,
            f"Shapes {tuple(key.shape)} and {tuple(value.shape)} of key and value differ.",
        )
        _expect(in_proj_weight is not None, "Weight `in_proj_weight` is not given.")
        q, k, v = _in_projection_packed(query, key, value, in_proj_weight, in_proj_bias)  # type: ignore[arg-type]
    if mask is not None:
        wanted = (length, key.size(0)) if mask.ndim == 2 else (batch * num_heads, length, key.size(0))
        if tuple(mask.shape) != wanted:
            raise RuntimeError(f"Shape {tuple(mask.shape)} of `attn_mask` is not {wanted}.")
        mask = mask if mask.ndim == 3 else mask.unsqueeze(0)
    _expect((bias_k is None) == (bias_v is None), "One of `bias_k` and `bias_v` is given without the other.")
    k, v = _with_extra(k, bias_k), _with_extra(v, bias_v)
    more = int(bias_k is not None) + int(add_zero_attn)
    q = q.reshape(length, batch * num_heads, head).transpose(0, 1)
    k = static_k if static_k is not None else k.reshape(k.size(0), batch * num_heads, head).transpose(0, 1)
    v = static_v if static_v is not None else v.reshape(v.size(0), batch * num_heads, head).transpose(0, 1)
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
    check_probability(p)
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
            mask = mask.unsqueeze(0) if whole else mask.reshape(batch, num_heads, mask.size(1), source)
        heads = [x.reshape(batch, num_heads, x.size(1), head) for x in (q, k, v)]
        if k.numel() and q.numel():
            found = OPERATORS["scaled_dot_product_attention"](*heads, mask, p, causal)
        else:  # of nothing, nothing
            found = mica.matmul(mica.matmul(heads[0], heads[1].transpose(2, 3)), heads[2])
        result = found.permute(2, 0, 1, 3).reshape(length * batch, width)
    result = OPERATORS["linear"](result, out_proj_weight, out_proj_bias)
    result = result.reshape(length, batch, result.size(1))
    if not batched:
        return result.squeeze(1), None if weights is None else weights.squeeze(0)
    return result, weights
