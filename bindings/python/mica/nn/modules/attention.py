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
    """Attention in several heads: each query gets a mean of the values, weighted by how its key fits.

    Queries, keys and values are projected to `embed_dim` features and split into `num_heads` heads; each
    head computes `softmax(q @ k.T / sqrt(head_dim)) @ v`, and a last projection joins them (Vaswani et
    al., 2017). As `torch.nn.MultiheadAttention`.

    Args:
        embed_dim (int): Features of a query and of the result, E.
        num_heads (int): Number of heads; divides `embed_dim`.
        dropout (float): Probability, in [0, 1], that a weight is zeroed while training. Default: 0.
        bias (bool): Whether the projections have biases. Default: True.
        add_bias_kv (bool): Whether a learned key and value follow the given ones. Default: False.
        add_zero_attn (bool): Whether a key and value of zeros follow the given ones. Default: False.
        kdim (int, optional): Features of a key. Default: `embed_dim`.
        vdim (int, optional): Features of a value. Default: `embed_dim`.
        batch_first (bool): Whether the batch comes first in inputs and output. Default: False.
        device (device, optional): Where the parameters live. Default: the default device.
        dtype (dtype, optional): Of the parameters. Default: the default dtype.

    Attributes:
        in_proj_weight (Parameter): All three projections, `(3 * embed_dim, embed_dim)`. With another `kdim`
            or `vdim`, `q_proj_weight`, `k_proj_weight` and `v_proj_weight` take its place.
        in_proj_bias (Parameter): `(3 * embed_dim,)`, or None.
        out_proj (Linear): The last projection.

    Shape:
        - query: `(L, N, E)`, `(N, L, E)` with `batch_first`, or `(L, E)`.
        - key, value: `(S, N, kdim)` and `(S, N, vdim)`, with `batch_first` and unbatched likewise.
        - Output: the result, in the query's shape, and the weights, `(N, L, S)` or `(L, S)`.

    Raises:
        ValueError: `embed_dim` or `num_heads` is not positive.
        AssertionError: `num_heads` does not divide `embed_dim`, or shapes of a call do not fit.

    Example:
        >>> layer = mica.nn.MultiheadAttention(embed_dim=8, num_heads=2, batch_first=True)
        >>> query, memory = mica.randn(4, 3, 8), mica.randn(4, 5, 8)
        >>> result, weights = layer(query, memory, memory)
        >>> result.shape, weights.shape
        (mica.Size([4, 3, 8]), mica.Size([4, 3, 5]))
    """

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
        """Attends from `query` to `key` and `value`.

        A boolean mask is True where attention is not allowed; a floating one is added to the scores. A query
        that no key is left for gives nan.

        Args:
            query (Tensor): `(L, N, E)`, or as the class says.
            key (Tensor): `(S, N, kdim)`.
            value (Tensor): `(S, N, vdim)`.
            key_padding_mask (Tensor, optional): Keys to leave out, `(N, S)` or `(S,)`. Default: None.
            need_weights (bool): Whether the weights are returned; False lets a fused kernel run. Default: True.
            attn_mask (Tensor, optional): Pairs to leave out, `(L, S)` or `(N * num_heads, L, S)`. Default: None.
            average_attn_weights (bool): Whether the weights are means over the heads. Default: True.
            is_causal (bool): Promises that `attn_mask` is causal, so that a faster kernel may be taken; needs
                `attn_mask`. Default: False.

        Returns:
            tuple of Tensor and (Tensor or None): The result, in the query's shape, and the weights: `(N, L, S)`,
            without averaging `(N, num_heads, L, S)`, unbatched without `N`; None unless `need_weights`.

        Raises:
            AssertionError: Dimensions, features or the padding mask's shape do not fit, or a mask is integral.
            RuntimeError: The shape of `attn_mask` does not fit, or `is_causal` is given without it.
            ValueError: `dropout` is not in [0, 1].
        """
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
        """Joins the two masks of a call in one, as fused kernels take it.

        Args:
            attn_mask (Tensor, optional): `(L, L)` or `(N * num_heads, L, L)`.
            key_padding_mask (Tensor, optional): `(N, L)`.
            query (Tensor): `(N, L, E)`.

        Returns:
            tuple of (Tensor or None) and (int or None): The mask, `(N, num_heads, L, L)`, or `(N, L)` where
            only `key_padding_mask` is given; and its kind: 1 for padding alone, 2 for `attn_mask` with or
            without padding. None and None where there is no mask.
        """
        if attn_mask is None:
            return key_padding_mask, None if key_padding_mask is None else 1
        batch, length = query.size(0), query.size(1)
        full = attn_mask if attn_mask.dim() == 3 else attn_mask.view(1, 1, length, -1)
        full = full.view(batch, -1, length, length) if attn_mask.dim() == 3 else full
        full = full.expand(batch, self.num_heads, -1, -1)
        if key_padding_mask is not None:
            full = full + key_padding_mask.view(batch, 1, 1, length)
        return full, 2
