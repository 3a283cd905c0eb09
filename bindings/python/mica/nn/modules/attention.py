"""Attention with several heads as a module."""

from __future__ import annotations

from typing import Any

import mica
from mica._C import Tensor
from mica.nn import functional as F, init
from mica.nn._attention import agreeing_masks
from mica.nn.modules import _fast_path
from mica.nn.modules.linear import NonDynamicallyQuantizableLinear
from mica.nn.modules.module import Module
from mica.nn.parameter import Parameter


class MultiheadAttention(Module):
    """Attention of (L, N, E), or (N, L, E) if `batch_first`, in `num_heads` parts of E."""

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                f"Embedding size ({embed_dim}) and number of heads ({num_heads}) must be positive."
            )
        if embed_dim % num_heads:
            raise AssertionError(
                f"embed_dim must be divisible by num_heads, but got {embed_dim} and {num_heads}."
            )
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        self.add_zero_attn = add_zero_attn
        options = {"device": device, "dtype": dtype}

        def parameter(wanted: bool, *sizes: int) -> Parameter | None:
            return Parameter(mica.empty(sizes, **options)) if wanted else None

        packed = self._qkv_same_embed_dim
        self.register_parameter("in_proj_weight", parameter(packed, 3 * embed_dim, embed_dim))
        self.register_parameter("q_proj_weight", parameter(not packed, embed_dim, embed_dim))
        self.register_parameter("k_proj_weight", parameter(not packed, embed_dim, self.kdim))
        self.register_parameter("v_proj_weight", parameter(not packed, embed_dim, self.vdim))
        self.register_parameter("in_proj_bias", parameter(bias, 3 * embed_dim))
        self.out_proj = NonDynamicallyQuantizableLinear(
            embed_dim, embed_dim, bias=bias, device=device, dtype=dtype
        )
        self.bias_k, self.bias_v = (parameter(add_bias_kv, 1, 1, embed_dim) for _ in range(2))
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for weight in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if weight is not None:
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.constant_(self.in_proj_bias, 0.0)
            init.constant_(self.out_proj.bias, 0.0)
        for bias in (self.bias_k, self.bias_v):
            if bias is not None:
                init.xavier_normal_(bias)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        key_padding_mask, attn_mask = agreeing_masks(
            key_padding_mask, attn_mask, "key_padding_mask", "attn_mask", query.dtype
        )
        inputs = query, key, value
        fused = _fast_path.attention(
            self, inputs, key_padding_mask, attn_mask, need_weights, average_attn_weights
        )
        if fused is not None:
            return fused
        turn = self.batch_first and query.ndim == 3
        if turn:
            same = (key is query, value is key)
            query = query.transpose(0, 1)
            key = query if same[0] else key.transpose(0, 1)
            value = key if same[1] else value.transpose(0, 1)
        result, weights = F.multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            training=self.training,
            key_padding_mask=key_padding_mask,
            need_weights=need_weights,
            attn_mask=attn_mask,
            use_separate_proj_weight=not self._qkv_same_embed_dim,
            q_proj_weight=self.q_proj_weight,
            k_proj_weight=self.k_proj_weight,
            v_proj_weight=self.v_proj_weight,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
        )
        return (result.transpose(0, 1) if turn else result), weights

    def __setstate__(self, state: dict[str, Any]) -> None:
        state.setdefault("_qkv_same_embed_dim", True)
        super().__setstate__(state)

    def merge_masks(
        self, attn_mask: Tensor | None, key_padding_mask: Tensor | None, query: Tensor
    ) -> tuple[Tensor | None, int | None]:
        """One mask of both, and which it is: 0 for attention, 1 for padding, 2 for both, None for none."""
        if attn_mask is None:
            return key_padding_mask, None if key_padding_mask is None else 1
        batch, length = query.size(0), query.size(1)
        full = attn_mask if attn_mask.dim() == 3 else attn_mask.view(1, 1, length, -1)
        full = full.view(batch, -1, length, length) if attn_mask.dim() == 3 else full
        full = full.expand(batch, self.num_heads, -1, -1)
        if key_padding_mask is not None:
            full = full + key_padding_mask.view(batch, 1, 1, length)
        return full, 2
