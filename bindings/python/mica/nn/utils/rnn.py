"""Batches of sequences of different lengths."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import mica
from mica._C import Tensor
from mica.nn._packed import (
    PackedSequence as PackedSequence,
    invert_permutation as invert_permutation,
    pack_padded_sequence as pack_padded_sequence,
    pack_sequence as pack_sequence,
    pad_packed_sequence as pad_packed_sequence,
    unpack_sequence as unpack_sequence,
)


def pad_sequence(
    sequences: Tensor | Sequence[Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Sequences of shapes (L_i, *) in one tensor (L, N, *), or (N, L, *), L the longest."""
    if not isinstance(sequences, Iterable):
        raise RuntimeError(
            f"pad_sequence() takes an iterable of tensors, not a ({type(sequences).__name__})."
        )
    items = list(sequences)
    if not items:
        raise RuntimeError("The list of sequences is empty; expected at least one tensor to pad.")
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"The padding side ({padding_side}) is unknown; expected 'left' or 'right'.")
    rest = items[0].shape[1:]
    for i, item in enumerate(items):
        if item.ndim == 0 or item.shape[1:] != rest:
            raise RuntimeError(
                f"Sequence ({i}) has the shape {list(item.shape)}; expected [length, {', '.join(map(str, rest))}], "
                "the dimensions but the first being those of sequence (0)."
            )
    longest = max(item.shape[0] for item in items)
    padded = []
    for item in items:
        missing = longest - item.shape[0]
        sides = [0, missing] if padding_side == "right" else [missing, 0]
        padded.append(mica.constant_pad_nd(item, [0, 0] * len(rest) + sides, padding_value))
    return mica.stack(padded, 0 if batch_first else 1)


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """The sequences that pad_sequence() joined, by their lengths."""
    batch = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [sequence[: int(n)] for sequence, n in zip(batch, lengths.tolist())]
