"""mica.nn.flex_attention: attention with scores and masks given as functions, as torch.nn.attention.flex_attention.

A mask function says of one (batch, head, query, key) whether they meet, a score function changes one
score; both are written for numbers and mapped over all of them by vmap, so that they may index
tensors and take part in gradients. A BlockMask also says which blocks of queries and keys meet at
all. The scores of all pairs are held at once: memory grows by queries times keys.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import mica
from mica._C import Tensor
from mica.nn._block_mask import _DEFAULT_SPARSE_BLOCK_SIZE as _DEFAULT_SPARSE_BLOCK_SIZE, BlockMask

__all__ = [
    "AuxOutput", "AuxRequest", "BlockMask", "FlexKernelOptions", "and_masks", "create_block_mask", "create_mask",
    "flex_attention", "noop_mask", "or_masks",
]  # fmt: skip

_score_mod_signature = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]
_mask_mod_signature = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
FlexKernelOptions = dict[str, Any]  # wishes for kernels of GPUs, which change no result


class AuxRequest(NamedTuple):
    """What `flex_attention` shall return beside the output.

    As `torch.nn.attention.flex_attention.AuxRequest`.

    Args:
        lse (bool): The logarithm of the sum of the exponentials of each query's scores. Default: False.
        max_scores (bool): The largest score of each query. Default: False.

    Example:
        >>> from mica.nn.flex_attention import AuxRequest
        >>> AuxRequest(lse=True)
        AuxRequest(lse=True, max_scores=False)
    """

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """What `flex_attention` returned beside the output: what an `AuxRequest` asked for, None for the rest.

    As `torch.nn.attention.flex_attention.AuxOutput`.

    Args:
        lse (Tensor, optional): `(B, Hq, L)`. Default: None.
        max_scores (Tensor, optional): `(B, Hq, L)`. Default: None.

    Example:
        >>> from mica.nn.flex_attention import AuxRequest, flex_attention
        >>> x = mica.zeros(1, 1, 4, 2)
        >>> output, aux = flex_attention(x, x, x, return_aux=AuxRequest(lse=True))
        >>> aux.lse, aux.max_scores
        (tensor([[[1.3863, 1.3863, 1.3863, 1.3863]]]), None)
    """

    lse: Tensor | None = None
    max_scores: Tensor | None = None


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """The mask function that lets every query see every key.

    As `torch.nn.attention.flex_attention.noop_mask`.

    Args:
        batch (Tensor): Number of the batch, `()`.
        head (Tensor): Number of the head, `()`.
        token_q (Tensor): Number of the query, `()`.
        token_kv (Tensor): Number of the key, `()`.

    Returns:
        Tensor: True, `()`.

    Example:
        >>> from mica.nn.flex_attention import create_mask, noop_mask
        >>> create_mask(noop_mask, None, None, 1, 2)
        tensor([[[[True, True]]]])
    """
    return batch.new_ones(size=(), dtype=mica.bool)


def _all_callable(mask_mods: tuple[Any, ...]) -> None:
    for mod in mask_mods:
        if not callable(mod):
            raise RuntimeError(f"Each mask must be a function; one is of type ({type(mod).__name__}).")


def and_masks(*mask_mods: _mask_mod_signature) -> _mask_mod_signature:
    """The mask function of the pairs that all of several mask functions let meet.

    As `torch.nn.attention.flex_attention.and_masks`.

    Args:
        *mask_mods (callable): Of batch, head, query and key, as `create_block_mask` takes them.

    Returns:
        callable: A function of the same four.

    Raises:
        RuntimeError: One cannot be called.

    Example:
        >>> from mica.nn.flex_attention import and_masks, create_mask
        >>> near = and_masks(lambda b, h, q, k: q >= k, lambda b, h, q, k: q - k < 2)
        >>> create_mask(near, None, None, 3, 3).int().squeeze()
        tensor([[1, 0, 0],
                [1, 1, 0],
                [0, 1, 1]], dtype=mica.int32)
    """
    _all_callable(mask_mods)

    def and_mask(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        result = b.new_ones((), dtype=mica.bool)
        for mod in mask_mods:
            result = result & mod(b, h, q_idx, kv_idx)
        return result

    return and_mask


def or_masks(*mask_mods: _mask_mod_signature) -> _mask_mod_signature:
    """The mask function of the pairs that at least one of several mask functions lets meet.

    As `torch.nn.attention.flex_attention.or_masks`.

    Args:
        *mask_mods (callable): Of batch, head, query and key, as `create_block_mask` takes them.

    Returns:
        callable: A function of the same four.

    Raises:
        RuntimeError: One cannot be called.

    Example:
        >>> from mica.nn.flex_attention import create_mask, or_masks
        >>> prefix = or_masks(lambda b, h, q, k: q >= k, lambda b, h, q, k: k < 2)
        >>> create_mask(prefix, None, None, 3, 3).int().squeeze()
        tensor([[1, 1, 0],
                [1, 1, 0],
                [1, 1, 1]], dtype=mica.int32)
    """
    _all_callable(mask_mods)

    def or_mask(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        result = b.new_zeros((), dtype=mica.bool)
        for mod in mask_mods:
            result = result | mod(b, h, q_idx, kv_idx)
        return result

    return or_mask


def _mapped(mod: Any, scores: Tensor | None, sizes: tuple[int, ...], device: Any) -> Tensor:
    """mod over all batches, heads, queries and keys."""
    first = () if scores is None else (0,)
    for axes in ((None, None, None, 0), (None, None, 0, None), (None, 0, None, None), (0, None, None, None)):
        mod = mica.vmap(mod, in_dims=(*first, *axes))
    numbers = [mica.arange(size, device=device) for size in sizes]
    return mod(*(() if scores is None else (scores,)), *numbers)  # type: ignore[no-any-return]


def create_mask(
    mod_fn: Any, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = None
) -> Tensor:
    """The tensor of a mask function: its value for every batch, head, query and key.

    As `torch.nn.attention.flex_attention.create_mask`. A function of five arguments is taken as a score
    function, whose scores are zeros.

    Args:
        mod_fn (callable): Of batch, head, query and key, each `()`, int64; it is mapped by `vmap`.
        B (int or None): Batches; None for one.
        H (int or None): Heads; None for one.
        Q_LEN (int): Number of queries.
        KV_LEN (int): Number of keys.
        device (device, optional): Of the result. Default: the default device.

    Returns:
        Tensor: `(B, H, Q_LEN, KV_LEN)`.

    Raises:
        TypeError: The function takes another number of arguments.
        ValueError: The function gives no Tensor.

    Example:
        >>> from mica.nn.flex_attention import create_mask
        >>> create_mask(lambda b, h, q, k: q >= k, None, None, 2, 3)
        tensor([[[[ True, False, False],
                  [ True,  True, False]]]])
    """
    sizes = (1 if B is None else B, 1 if H is None else H, Q_LEN, KV_LEN)
    code = getattr(mod_fn, "__code__", None)
    positional = code.co_argcount if code is not None else 4
    scores = mica.zeros(sizes, device=device) if positional == 5 else None
    return _mapped(mod_fn, scores, sizes, device).expand(sizes)


def create_block_mask(
    mask_mod: _mask_mod_signature,
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Any = None,
    BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE,
    _compile: bool = False,
    separate_full_blocks: bool = True,
    compute_dq_write_order: bool = False,
    dq_kv_order: bool = True,
) -> BlockMask:
    """The `BlockMask` of a mask function: which blocks of queries and keys meet in part, and which wholly.

    As `torch.nn.attention.flex_attention.create_block_mask`. It computes the whole mask once, so it is made
    once for many calls.

    Args:
        mask_mod (callable): Of batch, head, query and key, each `()`, int64; gives a bool: whether this query
            sees this key. It is mapped by `vmap`, and may index tensors.
        B (int or None): Batches; None if the mask is the same for all.
        H (int or None): Heads of the query; None if the mask is the same for all.
        Q_LEN (int): Number of queries.
        KV_LEN (int): Number of keys.
        device (device, optional): Of the mask. Default: the default device.
        BLOCK_SIZE (int or tuple of 2 int): Queries and keys of a block. Default: 128.
        separate_full_blocks (bool): Tell blocks that meet wholly from those that meet in part. Default: True.
        compute_dq_write_order (bool): Only False. Default: False.
        dq_kv_order (bool): Without effect. Default: True.

    Returns:
        BlockMask: For `flex_attention`.

    Raises:
        NotImplementedError: `compute_dq_write_order` is True.

    Example:
        >>> from mica.nn.flex_attention import create_block_mask
        >>> create_block_mask(lambda b, h, q, k: q >= k, None, None, 256, 256)
        BlockMask(shape=(1, 1, 256, 256), sparsity=25.00%, BLOCK_SIZE=(128, 128))
    """
    if compute_dq_write_order:
        raise NotImplementedError(
            "create_block_mask() computes no order of writes for kernels of GPUs; leave out compute_dq_write_order."
        )
    size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
    mask = create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device)
    return BlockMask._of_mask(mask, size, mask_mod, separate_full_blocks)


def _checked(query: Tensor, key: Tensor, value: Tensor, enable_gqa: bool) -> None:
    for name, tensor in (("query", query), ("key", key), ("value", value)):
        if tensor.dim() != 4:
            raise NotImplementedError(
                f"`{name}` of flex_attention must have 4 dimensions; it has {tensor.dim()}."
            )
    if query.size(-1) != key.size(-1):
        raise ValueError(
            f"The last size of `query` ({query.size(-1)}) and of `key` ({key.size(-1)}) must be equal."
        )
    if key.size(1) != value.size(1) or key.size(2) != value.size(2):
        raise RuntimeError(
            f"`key` ({tuple(key.shape)}) and `value` ({tuple(value.shape)}) must agree in heads and length."
        )
    if query.size(1) != key.size(1) and not enable_gqa:
        raise ValueError(
            f"`query` has ({query.size(1)}) heads and `key` ({key.size(1)}); "
            "enable_gqa=True lets several heads of the query share one of the key."
        )
    if query.size(1) % key.size(1):
        raise ValueError(
            f"The heads of `query` ({query.size(1)}) are no multiple of those of `key` ({key.size(1)})."
        )
    if key.size(0) not in (1, query.size(0)):
        raise ValueError(
            f"The batch of `key` ({key.size(0)}) must be that of `query` ({query.size(0)}) or 1."
        )


def _fits(mask: BlockMask, scores: Tensor) -> None:
    for size, of_mask, what in zip(scores.shape[:2], mask.shape, ("batches", "heads")):
        if of_mask not in (1, size):
            raise ValueError(f"`block_mask` is for ({of_mask}) {what}, the attention has ({size}).")
    if tuple(mask.seq_lengths) != tuple(scores.shape[2:]):
        raise ValueError(
            f"`block_mask` is for ({mask.seq_lengths[0]}) queries and ({mask.seq_lengths[1]}) keys, the attention "
            f"has ({scores.size(2)}) and ({scores.size(3)}); create a mask for these lengths."
        )


def flex_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: _score_mod_signature | None = None,
    block_mask: BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: FlexKernelOptions | None = None,
    *,
    return_aux: AuxRequest | None = None,
) -> Any:
    """Attention with scores and masks given as functions of the pairs of queries and keys.

    As `torch.nn.attention.flex_attention.flex_attention`: `softmax(score_mod(q @ k.T * scale)) @ v`, where
    the mask lets pairs meet. It holds the scores of all pairs at once, as float32 (float64 for float64
    inputs): memory grows by queries times keys. A query that meets no key gives zeros.

    Args:
        query (Tensor): `(B, Hq, L, E)`.
        key (Tensor): `(B or 1, Hkv, S, E)`.
        value (Tensor): `(B or 1, Hkv, S, Ev)`.
        score_mod (callable, optional): Of a score and the numbers of batch, head, query and key, each `()`;
            gives the new score. It is mapped by `vmap`, and may index tensors, which get gradients.
        block_mask (BlockMask, optional): Which pairs meet, as `create_block_mask` makes it. Default: None,
            all do.
        scale (float, optional): Factor of the scores. Default: `1 / sqrt(E)`.
        enable_gqa (bool): Let `Hq / Hkv` heads of the query share each of the key. Default: False.
        return_lse (bool): Also return the logarithm of the sum of exponentials of each query's scores.
            Default: False.
        kernel_options (dict, optional): Without effect: wishes for kernels of GPUs.
        return_aux (AuxRequest, optional): What else to return.

    Returns:
        Tensor or tuple: `(B, Hq, L, Ev)`, of the dtype of `query`; with `return_lse` a pair of it and a
        Tensor `(B, Hq, L)`, with `return_aux` a pair of it and an `AuxOutput`.

    Raises:
        NotImplementedError: A tensor has not 4 dimensions.
        ValueError: Heads, batches or the sizes `E` do not agree, the mask is for other sizes, or both
            `return_lse` and `return_aux` are given.
        RuntimeError: `key` and `value` differ in heads or length.

    Example:
        >>> from mica.nn.flex_attention import create_block_mask, flex_attention
        >>> x = mica.arange(4.).view(1, 1, 4, 1)
        >>> mask = create_block_mask(lambda b, h, q, k: q == k, None, None, 4, 4)
        >>> flex_attention(x, x, x, block_mask=mask).flatten()
        tensor([0., 1., 2., 3.])
        >>> flex_attention(x, x, x, score_mod=lambda score, b, h, q, k: score * 0).flatten()
        tensor([1.5000, 1.5000, 1.5000, 1.5000])
    """
    _checked(query, key, value, enable_gqa)
    working = mica.float64 if query.dtype == mica.float64 else mica.float32
    groups = query.size(1) // key.size(1)
    if groups > 1:
        key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
    factor = query.size(-1) ** -0.5 if scale is None else scale
    scores = query.to(working) @ key.to(working).transpose(-2, -1) * factor
    if score_mod is not None:
        scores = _mapped(score_mod, scores, tuple(scores.shape), query.device).to(working)
    if block_mask is not None:
        _fits(block_mask, scores)
        meets = block_mask._mask(scores.shape[0], scores.shape[1], query.device)
        scores = scores.masked_fill(~meets, -mica.inf)
    alone = (scores == -mica.inf).all(-1, keepdim=True)
    weights = mica.softmax(scores.masked_fill(alone, 0.0), -1).masked_fill(alone, 0.0)
    output = (weights @ value.to(working)).to(query.dtype)
    if return_aux is not None:
        if return_lse:
            raise ValueError(
                "return_lse and return_aux exclude each other; ask by return_aux=AuxRequest(lse=True)."
            )
        return output, AuxOutput(
            scores.logsumexp(-1) if return_aux.lse else None,
            scores.amax(-1) if return_aux.max_scores else None,
        )
    return (output, scores.logsumexp(-1)) if return_lse else output
