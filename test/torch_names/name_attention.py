"""Programs over L (torch or Mica) about flex_attention, for rows of names_services.txt."""

from __future__ import annotations

from typing import Any

_MASK_PARTS = (
    "kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices",
    "q_num_blocks", "q_indices", "full_q_num_blocks", "full_q_indices",
)  # fmt: skip


def block_mask(L: Any, mod: Any, *sizes: Any, **options: Any) -> Any:
    """Everything that a mask of blocks holds, and its dense form."""
    made = L.nn.attention.flex_attention.create_block_mask(mod, *sizes, device="cpu", **options)
    parts = [getattr(made, name) for name in _MASK_PARTS]
    cut = made[-1]
    return [parts, made.shape, made.numel(), made.sparsity(), made.to_dense(), cut.shape, cut.kv_indices]


def attended(L: Any, score_mod: Any = None, mask_mod: Any = None, heads: int = 2, **options: Any) -> Any:
    """Output and log of the sum of exponentials; 5 queries, 6 keys, blocks of 4 x 2."""
    F = L.nn.attention.flex_attention
    q, k, v = (
        (L.arange(float(2 * h * n * 3)).reshape(2, h, n, 3) * s).sin()
        for h, n, s in ((2, 5, 1.3), (heads, 6, 0.7), (heads, 6, 2.1))
    )
    mask = None
    if mask_mod is not None:
        mask = F.create_block_mask(mask_mod, 2, 2, 5, 6, device="cpu", BLOCK_SIZE=(4, 2))
    return list(F.flex_attention(q, k, v, score_mod, mask, return_lse=True, **options))


def document_mask(L: Any) -> Any:
    """Attention within documents, by a tensor that the mask function indexes; the first meets nothing."""
    documents = L.tensor([9, 0, 0, 1, 1, 2])

    def same(b: Any, h: Any, q: Any, kv: Any) -> Any:
        return (documents[q] == documents[kv]) & (q > 0)

    return attended(L, mask_mod=same)


def biased(L: Any) -> Any:
    """Scores with a bias by head, a tensor that the score function indexes."""
    bias = L.tensor([0.5, -1.0])
    return attended(L, lambda s, b, h, q, kv: s * 0.5 + bias[h] * (q - kv).abs())
