"""Transformers: encoder, decoder and both (Vaswani et al., 2017)."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any

import mica
from mica._C import Tensor
from mica.nn import functional as F, init
from mica.nn._attention import _canonical_mask, agreeing_masks
from mica.nn.modules import _fast_path
from mica.nn.modules.activation import GELU, ReLU
from mica.nn.modules.attention import MultiheadAttention
from mica.nn.modules.container import ModuleList
from mica.nn.modules.dropout import Dropout
from mica.nn.modules.linear import Linear
from mica.nn.modules.module import Module
from mica.nn.modules.normalization import LayerNorm

_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": F.relu, "gelu": F.gelu}  # type: ignore[attr-defined]


def _get_activation_fn(activation: str) -> Callable[[Tensor], Tensor]:
    if activation not in _ACTIVATIONS:
        raise RuntimeError(f"The activation ({activation}) is unknown; expected relu or gelu.")
    return _ACTIVATIONS[activation]


def _generate_square_subsequent_mask(size: int, device: Any = None, dtype: Any = None) -> Tensor:
    """Minus infinity above the diagonal, 0 on and below it."""
    full = mica.full((size, size), float("-inf"), dtype=dtype, device=device)
    return mica.triu(full, diagonal=1)


def _detect_is_causal_mask(mask: Tensor | None, is_causal: bool | None, size: int) -> bool:
    """The hint, or whether the mask is a square one that hides what is above the diagonal."""
    if is_causal is not None or mask is None:
        return bool(is_causal)
    if tuple(mask.shape) != (size, size):
        return False
    return bool((mask == _generate_square_subsequent_mask(size, mask.device, mask.dtype)).all())


class _Layer(Module):
    """What the layers share: blocks that are added to their input, normalised before or after."""

    norm_first: bool
    _last: str  # the dropout after the network

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if not hasattr(self, "activation"):  # of files as old as torch 1.4's
            self.activation = F.relu  # type: ignore[attr-defined]

    def _around(self, x: Tensor, norm: Module, block: Callable[[Tensor], Tensor]) -> Tensor:
        return x + block(norm(x)) if self.norm_first else norm(x + block(x))

    def _ff_block(self, x: Tensor) -> Tensor:
        last: Module = getattr(self, self._last)
        return last(self.linear2(self.dropout(self.activation(self.linear1(x)))))

    def _sa_block(
        self, x: Tensor, attn_mask: Tensor | None, key_padding_mask: Tensor | None, is_causal: bool = False
    ) -> Tensor:
        found, _ = self.self_attn(
            x,
            x,
            x,
            attn_mask=attn_mask,
            key_padding_mask=key_padding_mask,
            need_weights=False,
            is_causal=is_causal,
        )
        return self.dropout1(found)


class TransformerEncoderLayer(_Layer):
    """Self-attention and a network of two linear layers, each added to its input and normalised.

    As `torch.nn.TransformerEncoderLayer` (Vaswani et al., 2017): `x = norm1(x + attention(x))`, then
    `norm2(x + linear2(activation(linear1(x))))`; with `norm_first` each block is `x + block(norm(x))`. In
    evaluation without gradients, with `batch_first`, it runs as one fused function.

    Args:
        d_model (int): Features of each place, a multiple of `nhead`.
        nhead (int): Heads of attention.
        dim_feedforward (int): Features between the two linear layers. Default: 2048.
        dropout (float): Probability, in [0, 1], of zeroing an element after each block, within the network
            and of the attention weights, in training. Default: 0.1.
        activation (str or callable): Between the linear layers: `relu`, `gelu` or a function of one tensor.
            Default: relu.
        layer_norm_eps (float): Added to the variance in the layer norms. Default: 1e-5.
        batch_first (bool): Inputs are `(N, L, d_model)` instead of `(L, N, d_model)`. Default: False.
        norm_first (bool): Normalise before each block instead of after its sum. Default: False.
        bias (bool): Learn biases in linear layers and norms. Default: True.
        device (device, optional): Where the parameters live. Default: the default device.
        dtype (dtype, optional): Of the parameters. Default: the default dtype.

    Shape:
        - Input: `(L, N, d_model)`, `(N, L, d_model)` if `batch_first`, or `(L, d_model)` without a batch.
        - Output: the input's shape.

    Raises:
        AssertionError: `nhead` does not divide `d_model`; or at the call the input has other dimensions or
            features, or the padding mask the wrong shape.
        RuntimeError: The name of the activation is unknown; or at the call the mask has the wrong shape, or
            `is_causal` is True without one.

    Example:
        >>> layer = mica.nn.TransformerEncoderLayer(d_model=8, nhead=2, batch_first=True)
        >>> causal = mica.ones(5, 5, dtype=mica.bool).triu(1)
        >>> layer(mica.ones(3, 5, 8), src_mask=causal, is_causal=True).shape
        mica.Size([3, 5, 8])
    """

    _last = "dropout2"

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        options = {"bias": bias, "device": device, "dtype": dtype}
        self.self_attn = MultiheadAttention(
            d_model, nhead, dropout=dropout, batch_first=batch_first, **options
        )
        self.linear1 = Linear(d_model, dim_feedforward, **options)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, **options)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, eps=layer_norm_eps, **options)
        self.norm2 = LayerNorm(d_model, eps=layer_norm_eps, **options)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        chosen = _get_activation_fn(activation) if isinstance(activation, str) else activation
        is_relu = chosen is F.relu or isinstance(chosen, ReLU)
        is_gelu = chosen is F.gelu or isinstance(chosen, GELU)  # type: ignore[attr-defined]
        self.activation_relu_or_gelu = 1 if is_relu else 2 if is_gelu else 0
        self.activation = chosen

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """Encodes a batch of sequences.

        Args:
            src (Tensor): `(L, N, d_model)`, `(N, L, d_model)` if `batch_first`, or `(L, d_model)`.
            src_mask (Tensor, optional): `(L, L)` or `(N * nhead, L, L)`: a bool one is True where a query
                must not look, one of numbers is added to the scores.
            src_key_padding_mask (Tensor, optional): `(N, L)`, or `(L,)` without a batch: True (or minus
                infinity) where a key is padding.
            is_causal (bool): Promise that `src_mask` is the causal one. Default: False.

        Returns:
            Tensor: Of the shape of `src`.
        """
        src_key_padding_mask, src_mask = agreeing_masks(
            src_key_padding_mask, src_mask, "src_key_padding_mask", "src_mask", src.dtype
        )
        fused = _fast_path.encoder_layer(self, src, src_mask, src_key_padding_mask)
        if fused is not None:
            return fused
        padding, mask = (
            _canonical_mask(x, name, None, "", src.dtype)
            for x, name in ((src_key_padding_mask, "src_key_padding_mask"), (src_mask, "src_mask"))
        )

        def attend(x: Tensor) -> Tensor:
            return self._sa_block(x, mask, padding, is_causal=is_causal)

        x = self._around(src, self.norm1, attend)
        return self._around(x, self.norm2, self._ff_block)


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to a memory and a network of two linear layers, in a row.

    As `torch.nn.TransformerDecoderLayer` (Vaswani et al., 2017). Each of the three blocks is added to its
    input and normalised.

    Args:
        d_model (int): Features of each place, a multiple of `nhead`.
        nhead (int): Heads of attention.
        dim_feedforward (int): Features between the two linear layers. Default: 2048.
        dropout (float): Probability, in [0, 1], of zeroing an element after each block, within the network
            and of the attention weights, in training. Default: 0.1.
        activation (str or callable): Between the linear layers: `relu`, `gelu` or a function of one tensor.
            Default: relu.
        layer_norm_eps (float): Added to the variance in the layer norms. Default: 1e-5.
        batch_first (bool): Inputs are `(N, L, d_model)` instead of `(L, N, d_model)`. Default: False.
        norm_first (bool): Normalise before each block instead of after its sum. Default: False.
        bias (bool): Learn biases in linear layers and norms. Default: True.
        device (device, optional): Where the parameters live. Default: the default device.
        dtype (dtype, optional): Of the parameters. Default: the default dtype.

    Shape:
        - Input: `tgt` `(T, N, d_model)` and `memory` `(S, N, d_model)`; `N` first if `batch_first`; or both
          without `N`.
        - Output: the shape of `tgt`.

    Raises:
        AssertionError: `nhead` does not divide `d_model`; or at the call an input has other dimensions or
            features, or a padding mask the wrong shape.
        RuntimeError: The name of the activation is unknown; or at the call a mask has the wrong shape, or the
            batches differ.

    Example:
        >>> layer = mica.nn.TransformerDecoderLayer(d_model=8, nhead=2)
        >>> layer(mica.ones(5, 3, 8), memory=mica.ones(7, 3, 8)).shape
        mica.Size([5, 3, 8])
    """

    _last = "dropout3"

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        options = {"bias": bias, "device": device, "dtype": dtype}
        attention = {"dropout": dropout, "batch_first": batch_first, **options}
        self.self_attn = MultiheadAttention(d_model, nhead, **attention)
        self.multihead_attn = MultiheadAttention(d_model, nhead, **attention)
        self.linear1 = Linear(d_model, dim_feedforward, **options)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, **options)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, eps=layer_norm_eps, **options)
        self.norm2 = LayerNorm(d_model, eps=layer_norm_eps, **options)
        self.norm3 = LayerNorm(d_model, eps=layer_norm_eps, **options)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.dropout3 = Dropout(dropout)
        self.activation = _get_activation_fn(activation) if isinstance(activation, str) else activation

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Decodes a batch of sequences, with what an encoder found of others.

        Args:
            tgt (Tensor): `(T, N, d_model)`, `(N, T, d_model)` if `batch_first`, or `(T, d_model)`.
            memory (Tensor): The encoder's output, `(S, N, d_model)` or as `tgt`.
            tgt_mask (Tensor, optional): `(T, T)` or `(N * nhead, T, T)`: a bool one is True where a query
                must not look, one of numbers is added to the scores.
            memory_mask (Tensor, optional): `(T, S)` or `(N * nhead, T, S)`, likewise.
            tgt_key_padding_mask (Tensor, optional): `(N, T)`, or `(T,)` without a batch: True (or minus
                infinity) where a key is padding.
            memory_key_padding_mask (Tensor, optional): `(N, S)`, or `(S,)`, likewise.
            tgt_is_causal (bool): Promise that `tgt_mask` is the causal one. Default: False.
            memory_is_causal (bool): Promise that `memory_mask` is the causal one. Default: False.

        Returns:
            Tensor: Of the shape of `tgt`.
        """

        def attend(x: Tensor) -> Tensor:
            return self._sa_block(x, tgt_mask, tgt_key_padding_mask, tgt_is_causal)

        def look_up(x: Tensor) -> Tensor:
            return self._mha_block(x, memory, memory_mask, memory_key_padding_mask, memory_is_causal)

        x = self._around(tgt, self.norm1, attend)
        x = self._around(x, self.norm2, look_up)
        return self._around(x, self.norm3, self._ff_block)

    def _mha_block(
        self,
        x: Tensor,
        mem: Tensor,
        attn_mask: Tensor | None,
        key_padding_mask: Tensor | None,
        is_causal: bool = False,
    ) -> Tensor:
        found, _ = self.multihead_attn(
            x,
            mem,
            mem,
            attn_mask=attn_mask,
            key_padding_mask=key_padding_mask,
            need_weights=False,
            is_causal=is_causal,
        )
        return self.dropout2(found)


def _get_clones(module: Module, N: int) -> ModuleList:  # noqa: N803 - torch's name
    """Copies of a module."""
    return ModuleList([copy.deepcopy(module) for _ in range(N)])


def _why_not_nested(layer: Any) -> str:
    """torch's reason for computing the padded places too; empty where it leaves them out."""
    if not isinstance(layer, TransformerEncoderLayer):
        return "encoder_layer was not TransformerEncoderLayer"
    attention = layer.self_attn
    reasons = (
        (layer.norm_first, ".norm_first was True"),
        (
            not attention.batch_first,
            ".self_attn.batch_first was not True(use batch_first for better inference performance)",
        ),
        (not attention._qkv_same_embed_dim, ".self_attn._qkv_same_embed_dim was not True"),
        (attention.in_proj_bias is None, ".self_attn was passed bias=False"),
        (not layer.activation_relu_or_gelu, ".activation_relu_or_gelu was not True"),
        (layer.norm1.eps != layer.norm2.eps, ".norm1.eps was not equal to encoder_layer.norm2.eps"),
        (attention.num_heads % 2 == 1, ".self_attn.num_heads is odd"),
    )
    return next((f"encoder_layer{text}" for found, text in reasons if found), "")


class TransformerEncoder(Module):
    """Several encoder layers, copies of one, in a row.

    As `torch.nn.TransformerEncoder`. In evaluation without gradients, with layers of `batch_first` and
    without a mask, places that are padded at the ends of rows are not computed, and are 0 in the output, if
    `enable_nested_tensor`. All copies start with the same weights.

    Args:
        encoder_layer (Module): A `TransformerEncoderLayer`, or a module called as it is; it is copied.
        num_layers (int): How many copies of the layer follow each other.
        norm (Module, optional): Applied to the last layer's output.
        enable_nested_tensor (bool): Leave padded places out where that is possible. Default: True.
        mask_check (bool): Kept as an attribute: a padding mask is always checked for whether it pads ends.
            Default: True.

    Attributes:
        layers (ModuleList): The copies.

    Shape:
        - Input: `(L, N, d_model)`, `(N, L, d_model)` if the layer is `batch_first`, or `(L, d_model)`.
        - Output: the input's shape.

    Warns:
        UserWarning: `enable_nested_tensor` is True and the layer does not allow it, with the reason.

    Example:
        >>> layer = mica.nn.TransformerEncoderLayer(d_model=8, nhead=2, batch_first=True)
        >>> encoder = mica.nn.TransformerEncoder(layer, num_layers=2)
        >>> encoder(mica.ones(3, 5, 8)).shape
        mica.Size([3, 5, 8])
    """

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = _get_clones(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        self.use_nested_tensor = enable_nested_tensor
        self.mask_check = mask_check
        reason = _why_not_nested(encoder_layer)
        if enable_nested_tensor and reason:
            warnings.warn(
                f"enable_nested_tensor is True, but self.use_nested_tensor is False because {reason}",
                stacklevel=2,
            )
            self.use_nested_tensor = False

    def _kept(self, src: Tensor, mask: Tensor | None, padding: Tensor | None) -> Tensor | None:
        """The places to compute, if the padded ones can be left out."""
        wanted = getattr(self, "use_nested_tensor", False) and padding is not None and mask is None
        if not wanted or src.ndim != 3 or not _fast_path.leaves_out_padding(self.layers[0], src):
            return None
        return _fast_path.kept_places(padding)

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        """Encodes a batch of sequences.

        Args:
            src (Tensor): `(L, N, d_model)`, `(N, L, d_model)` if the layer is `batch_first`, or
                `(L, d_model)`.
            mask (Tensor, optional): `(L, L)` or `(N * nhead, L, L)`: a bool one is True where a query must
                not look, one of numbers is added to the scores.
            src_key_padding_mask (Tensor, optional): `(N, L)`, or `(L,)` without a batch: True (or minus
                infinity) where a key is padding.
            is_causal (bool, optional): Promise that `mask` is the causal one. Default: None, which looks
                whether it is.

        Returns:
            Tensor: Of the shape of `src`.
        """
        src_key_padding_mask, mask = agreeing_masks(
            src_key_padding_mask, mask, "src_key_padding_mask", "mask", src.dtype
        )
        kept = self._kept(src, mask, src_key_padding_mask)
        if kept is not None:
            x = _fast_path.padded_encoder(self.layers, src, kept)
        else:
            batch_first = self.layers[0].self_attn.batch_first
            causal = _detect_is_causal_mask(
                mask, is_causal, src.size(1 if batch_first and src.ndim == 3 else 0)
            )
            x = src
            for layer in self.layers:
                x = layer(x, src_mask=mask, is_causal=causal, src_key_padding_mask=src_key_padding_mask)
        return x if self.norm is None else self.norm(x)


class TransformerDecoder(Module):
    """Several decoder layers, copies of one, in a row.

    As `torch.nn.TransformerDecoder`. All copies start with the same weights.

    Args:
        decoder_layer (Module): A `TransformerDecoderLayer`, or a module called as it is; it is copied.
        num_layers (int): How many copies of the layer follow each other.
        norm (Module, optional): Applied to the last layer's output.

    Attributes:
        layers (ModuleList): The copies.

    Shape:
        - Input: `tgt` `(T, N, d_model)` and `memory` `(S, N, d_model)`; `N` first if the layer is
          `batch_first`; or both without `N`.
        - Output: the shape of `tgt`.

    Example:
        >>> layer = mica.nn.TransformerDecoderLayer(d_model=8, nhead=2)
        >>> decoder = mica.nn.TransformerDecoder(layer, num_layers=2)
        >>> decoder(mica.ones(5, 3, 8), memory=mica.ones(7, 3, 8)).shape
        mica.Size([5, 3, 8])
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = _get_clones(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Decodes a batch of sequences, with what an encoder found of others.

        Args:
            tgt (Tensor): `(T, N, d_model)`, `(N, T, d_model)` if the layer is `batch_first`, or
                `(T, d_model)`.
            memory (Tensor): The encoder's output, `(S, N, d_model)` or as `tgt`.
            tgt_mask (Tensor, optional): `(T, T)` or `(N * nhead, T, T)`: a bool one is True where a query
                must not look, one of numbers is added to the scores.
            memory_mask (Tensor, optional): `(T, S)` or `(N * nhead, T, S)`, likewise.
            tgt_key_padding_mask (Tensor, optional): `(N, T)`, or `(T,)` without a batch: True (or minus
                infinity) where a key is padding.
            memory_key_padding_mask (Tensor, optional): `(N, S)`, or `(S,)`, likewise.
            tgt_is_causal (bool, optional): Promise that `tgt_mask` is the causal one. Default: None, which
                looks whether it is.
            memory_is_causal (bool): Promise that `memory_mask` is the causal one. Default: False.

        Returns:
            Tensor: Of the shape of `tgt`.
        """
        first = self.layers[0].self_attn
        causal = _detect_is_causal_mask(
            tgt_mask, tgt_is_causal, tgt.size(1 if first.batch_first and tgt.ndim == 3 else 0)
        )
        x = tgt
        for layer in self.layers:
            x = layer(
                x,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=causal,
                memory_is_causal=memory_is_causal,
            )
        return x if self.norm is None else self.norm(x)


class Transformer(Module):
    """An encoder, and a decoder that attends to its output (Vaswani et al., 2017).

    As `torch.nn.Transformer`. It takes features: embeddings, positions and the last linear layer are the
    user's. Matrices are drawn by `mica.nn.init.xavier_uniform_`.

    Args:
        d_model (int): Features of each place, a multiple of `nhead`. Default: 512.
        nhead (int): Heads of attention. Default: 8.
        num_encoder_layers (int): Layers of the encoder. Default: 6.
        num_decoder_layers (int): Layers of the decoder. Default: 6.
        dim_feedforward (int): Features between the two linear layers. Default: 2048.
        dropout (float): Probability, in [0, 1], of zeroing an element after each block, within the network
            and of the attention weights, in training. Default: 0.1.
        activation (str or callable): Between the linear layers: `relu`, `gelu` or a function of one tensor.
            Default: relu.
        custom_encoder (Module, optional): In the place of the encoder.
        custom_decoder (Module, optional): In the place of the decoder.
        layer_norm_eps (float): Added to the variance in the layer norms. Default: 1e-5.
        batch_first (bool): Inputs are `(N, L, d_model)` instead of `(L, N, d_model)`. Default: False.
        norm_first (bool): Normalise before each block instead of after its sum. Default: False.
        bias (bool): Learn biases in linear layers and norms. Default: True.
        device (device, optional): Where the parameters live. Default: the default device.
        dtype (dtype, optional): Of the parameters. Default: the default dtype.

    Attributes:
        encoder (Module): A `TransformerEncoder` with a last layer norm, or the custom one.
        decoder (Module): A `TransformerDecoder` with a last layer norm, or the custom one.

    Shape:
        - Input: `src` `(S, N, d_model)` and `tgt` `(T, N, d_model)`; `N` first if `batch_first`; or both
          without `N`.
        - Output: the shape of `tgt`.

    Raises:
        AssertionError: `nhead` does not divide `d_model`; or at the call a padding mask has the wrong shape.
        RuntimeError: The name of the activation is unknown; or at the call the batches of `src` and `tgt`
            differ, their features are not `d_model`, a mask has the wrong shape, or is promised to be causal
            and missing.

    Warns:
        UserWarning: The encoder cannot leave out padded places, as when `batch_first` is False, with the
            reason.

    Example:
        >>> model = mica.nn.Transformer(8, 2, 1, 1, dim_feedforward=16, batch_first=True)
        >>> mask = model.generate_square_subsequent_mask(4)
        >>> model(mica.ones(3, 5, 8), mica.ones(3, 4, 8), tgt_mask=mask).shape
        mica.Size([3, 4, 8])
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = F.relu,
        custom_encoder: Any = None,
        custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        layer = (
            d_model,
            nhead,
            dim_feedforward,
            dropout,
            activation,
            layer_norm_eps,
            batch_first,
            norm_first,
        )
        options = {"bias": bias, "device": device, "dtype": dtype}

        def norm() -> LayerNorm:
            return LayerNorm(d_model, eps=layer_norm_eps, **options)

        if custom_encoder is None:
            one = TransformerEncoderLayer(*layer, **options)
            custom_encoder = TransformerEncoder(one, num_encoder_layers, norm())
        self.encoder = custom_encoder
        if custom_decoder is None:
            other = TransformerDecoderLayer(*layer, **options)
            custom_decoder = TransformerDecoder(other, num_decoder_layers, norm())
        self.decoder = custom_decoder
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for parameter in self.parameters():
            if parameter.ndim > 1:
                init.xavier_uniform_(parameter)

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Encodes `src` and decodes `tgt` with what was found.

        Args:
            src (Tensor): `(S, N, d_model)`, `(N, S, d_model)` if `batch_first`, or `(S, d_model)`.
            tgt (Tensor): `(T, N, d_model)` or as `src`.
            src_mask (Tensor, optional): `(S, S)` or `(N * nhead, S, S)`: a bool one is True where a query
                must not look, one of numbers is added to the scores.
            tgt_mask (Tensor, optional): `(T, T)` or `(N * nhead, T, T)`, likewise.
            memory_mask (Tensor, optional): `(T, S)` or `(N * nhead, T, S)`, likewise.
            src_key_padding_mask (Tensor, optional): `(N, S)`, or `(S,)` without a batch: True (or minus
                infinity) where a key is padding.
            tgt_key_padding_mask (Tensor, optional): `(N, T)`, or `(T,)`, likewise.
            memory_key_padding_mask (Tensor, optional): `(N, S)`, or `(S,)`, likewise.
            src_is_causal (bool, optional): Promise that `src_mask` is the causal one. Default: None, which
                looks whether it is.
            tgt_is_causal (bool, optional): Promise that `tgt_mask` is the causal one. Default: None, which
                looks whether it is.
            memory_is_causal (bool): Promise that `memory_mask` is the causal one. Default: False.

        Returns:
            Tensor: Of the shape of `tgt`.
        """
        batch = 0 if self.batch_first else 1
        if src.ndim == 3 and src.size(batch) != tgt.size(batch):
            raise RuntimeError(
                f"The batch number of src and tgt must be equal, but got {src.size(batch)} and {tgt.size(batch)}."
            )
        if src.size(-1) != self.d_model or tgt.size(-1) != self.d_model:
            raise RuntimeError(
                f"Sizes ({src.size(-1)}) and ({tgt.size(-1)}) of the last dimension of `src` and `tgt` are not ({self.d_model})."
            )
        memory = self.encoder(src, src_mask, src_key_padding_mask, src_is_causal)
        return self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """The causal mask of numbers: minus infinity above the diagonal, else 0.

        Args:
            sz (int): Length of the sequence, in positions.
            device (device, optional): Of the mask. Default: the default device.
            dtype (dtype, optional): Of the mask. Default: the default dtype.

        Returns:
            Tensor: `(sz, sz)`, as `src_mask` and `tgt_mask` take it.

        Example:
            >>> mica.nn.Transformer.generate_square_subsequent_mask(3)
            tensor([[0., -inf, -inf],
                    [0., 0., -inf],
                    [0., 0., 0.]])
        """
        return _generate_square_subsequent_mask(sz, device, dtype)
