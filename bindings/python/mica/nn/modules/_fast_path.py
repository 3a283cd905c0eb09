"""When attention and encoder layers compute by one function: torch's fast path, and its switch.

The conditions are torch's: evaluation, no gradient wanted, `batch_first`, a batch, one weight for
query, key and value, an even number of heads, no hooks, no autocast. Where torch's function would
compute something else than the layer says, the layer's own steps run instead: masks of numbers
(torch takes each but 0 for a hidden place), the tanh form of gelu, and layers whose parts have a
`forward` of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mica
from mica._C import Tensor
from mica.nn import functional as F
from mica.nn._operators import internal
from mica.nn.modules.activation import GELU, ReLU
from mica.nn.modules.linear import Linear
from mica.nn.modules.normalization import LayerNorm
from mica.overrides import has_torch_function

if TYPE_CHECKING:
    from mica.nn.modules.attention import MultiheadAttention
    from mica.nn.modules.module import Module

_enabled = True


def get_fastpath_enabled() -> bool:
    """Whether layers may take the fast path."""
    return _enabled


def set_fastpath_enabled(value: bool) -> None:
    """Lets layers take the fast path, or none."""
    global _enabled
    _enabled = value


def _casts() -> bool:
    return mica.is_autocast_enabled("cpu") or mica.is_autocast_enabled("cuda")


def _is_plain(module: Module, kind: type[Module]) -> bool:
    """Whether the module computes what its class does."""
    return type(module).forward is kind.forward and "forward" not in vars(module)


def _without_gradients(tensors: tuple[Any, ...]) -> bool:
    """Whether all are plain tensors with data that no gradient is wanted of."""
    if any(x is None or x.device.type == "meta" for x in tensors):
        return False
    wanted = mica.is_grad_enabled() and any(x.requires_grad for x in tensors)
    return not wanted and not has_torch_function(tensors)


def _attention_fits(attention: MultiheadAttention, masks: tuple[Tensor | None, ...]) -> bool:
    """What module and masks must be, whatever the input."""
    return (
        _enabled
        and not attention.training
        and attention.batch_first
        and attention.num_heads % 2 == 0
        and attention._qkv_same_embed_dim
        and attention.in_proj_bias is not None
        and all(mask is None or mask.dtype == mica.bool for mask in masks)
        and _is_plain(attention.out_proj, Linear)
        and not _casts()
    )


def attention(
    module: MultiheadAttention,
    inputs: tuple[Tensor, Tensor, Tensor],
    padding: Tensor | None,
    mask: Tensor | None,
    need_weights: bool,
    average: bool,
) -> tuple[Tensor, Tensor | None] | None:
    """MultiheadAttention by one function; None where it must go step by step."""
    query, key, value = inputs
    if (
        query is not key
        or key is not value
        or query.ndim != 3
        or not _attention_fits(module, (padding, mask))
    ):
        return None
    if module.bias_k is not None or module.bias_v is not None or module.add_zero_attn:
        return None
    weights = (module.in_proj_weight, module.in_proj_bias, module.out_proj.weight, module.out_proj.bias)
    if not _without_gradients((query, *weights)) or not query.dtype == weights[0].dtype == weights[1].dtype:
        return None
    merged = _merged(module, mask, padding, query)
    found: tuple[Tensor, Tensor | None] = internal("_native_multi_head_attention")(
        query,
        key,
        value,
        module.embed_dim,
        module.num_heads,
        *weights,
        merged[0],
        need_weights,
        average,
        merged[1],
    )
    return found


def _merged(
    module: MultiheadAttention, mask: Tensor | None, padding: Tensor | None, query: Tensor
) -> tuple[Tensor | None, int | None]:
    """merge_masks, but a mask of all batches and heads alone stays one."""
    if mask is not None and padding is None and mask.ndim == 2:
        return mask, 0
    return module.merge_masks(mask, padding, query)


def _weights(layer: Any) -> tuple[Tensor | None, ...]:
    """What an encoder layer's functions take: of attention, of the norms, of the network."""
    attention, norms = layer.self_attn, (layer.norm1, layer.norm2)
    out, first, second = attention.out_proj, layer.linear1, layer.linear2
    return (
        *(attention.in_proj_weight, attention.in_proj_bias, out.weight, out.bias),
        *(tensor for norm in norms for tensor in (norm.weight, norm.bias)),
        *(first.weight, first.bias, second.weight, second.bias),
    )


def leaves_out_padding(layer: Any, src: Tensor) -> bool:
    """Whether an encoder that begins with this layer may compute the places that are not padded alone."""
    return _enabled and not layer.training and not _casts() and _without_gradients((src, *_weights(layer)))


def operands(layer: Any, src: Tensor, masks: tuple[Tensor | None, ...] = ()) -> tuple[Any, ...] | None:
    """What the functions for encoder layers take of a layer after `num_heads`; None if it goes step by step."""
    attention, norms, activation = layer.self_attn, (layer.norm1, layer.norm2), layer.activation
    if src.ndim != 3 or layer.training or not _attention_fits(attention, masks):
        return None
    use_gelu = activation is F.gelu or (isinstance(activation, GELU) and activation.approximate == "none")
    if not (use_gelu or activation is F.relu or isinstance(activation, ReLU)):
        return None
    plain = (_is_plain(x, Linear) for x in (layer.linear1, layer.linear2))
    if norms[0].eps != norms[1].eps or not all(plain) or not all(_is_plain(x, LayerNorm) for x in norms):
        return None
    if any(m._forward_hooks or m._forward_pre_hooks for m in layer.modules()):
        return None
    weights = _weights(layer)
    if not _without_gradients((src, *weights)):
        return None
    return (*weights[:4], use_gelu, layer.norm_first, norms[0].eps, *weights[4:])


def encoder_layer(layer: Any, src: Tensor, mask: Tensor | None, padding: Tensor | None) -> Tensor | None:
    """TransformerEncoderLayer by one function; None where it must go step by step."""
    given = operands(layer, src, (mask, padding))
    if given is None:
        return None
    attention = layer.self_attn
    merged = _merged(attention, mask, padding, src)
    result: Tensor = internal("_transformer_encoder_layer_fwd")(
        src, attention.embed_dim, attention.num_heads, *given, *merged
    )
    return result


def kept_places(padding: Tensor) -> Tensor | None:
    """Where the padding mask hides nothing, if it hides only ends of rows; None otherwise."""
    kept = padding.logical_not()
    if padding.is_floating_point() and not bool((kept | (padding == float("-inf"))).all()):
        return None
    aligned = bool((kept[:, 1:] <= kept[:, :-1]).all())
    return kept if aligned and padding.numel() else None


def padded_encoder(layers: Any, src: Tensor, kept: Tensor) -> Tensor:
    """Encoder layers over rows of several lengths; 0 behind their ends, as torch's nested tensors give.

    Only the rows' own places are computed where the layers fuse; attention alone sees a grid.
    """
    batch, length, width = src.shape
    if tuple(kept.shape) != (batch, length):
        raise RuntimeError(
            f"Shape {tuple(kept.shape)} of `src_key_padding_mask` is not {(batch, length)}, that of the rows of `src`."
        )
    given = [operands(layer, src) for layer in layers]
    if None in given:
        for layer in layers:
            src = layer(src, src_key_padding_mask=kept.logical_not())
        return src.masked_fill(kept.logical_not().unsqueeze(-1), 0.0)
    longest = int(kept.sum(1).max())
    if longest == 0:
        raise RuntimeError("The mask `src_key_padding_mask` hides every place of every row of `src`.")
    seen = kept[:, :longest]
    whole, places = (x.reshape(-1).nonzero().squeeze(1) for x in (kept, seen))
    rows = src.reshape(-1, width).index_select(0, whole)
    ragged = places.numel() < seen.numel()
    grid = (seen.logical_not(), 1) if ragged else (None, None)
    encoder_rows = internal("_transformer_encoder_rows")
    for layer, one in zip(layers, given):
        heads = layer.self_attn.num_heads
        rows = encoder_rows(rows, places if ragged else None, batch, longest, heads, *one, *grid)
    return src.new_zeros(batch * length, width).index_copy_(0, whole, rows).reshape(batch, length, width)
