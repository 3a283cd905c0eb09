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
    """Puts sequences of different lengths into one tensor, with padding.

    As `torch.nn.utils.rnn.pad_sequence`.

    Args:
        sequences (iterable of Tensor): Each `(L_i, *)`, with one `*`.
        batch_first (bool): The layout of the output. Default: False.
        padding_value (float): What is put where sequences are shorter. Default: 0.
        padding_side (str): `right` puts it behind the ends, `left` before the starts. Default: `right`.

    Returns:
        Tensor: `(L, N, *)`, or `(N, L, *)` if `batch_first`, with `L` the longest length.

    Raises:
        RuntimeError: There are no sequences, they differ in more than the length, or the side is unknown.

    Example:
        >>> sequences = [mica.tensor([1, 2, 3]), mica.tensor([4])]
        >>> mica.nn.utils.rnn.pad_sequence(sequences, batch_first=True)
        tensor([[1, 2, 3],
                [4, 0, 0]])
    """
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
    """The list of sequences that `pad_sequence` put into one tensor (with the padding on the right).

    As `torch.nn.utils.rnn.unpad_sequence`.

    Args:
        padded_sequences (Tensor): `(L, N, *)`, or `(N, L, *)` if `batch_first`.
        lengths (Tensor): `(N,)`: of the sequences.
        batch_first (bool): The layout of `padded_sequences`. Default: False.

    Returns:
        list of Tensor: `N` views, `(L_i, *)`.

    Example:
        >>> padded = mica.tensor([[1, 2, 3], [4, 0, 0]])
        >>> mica.nn.utils.rnn.unpad_sequence(padded, mica.tensor([3, 1]), batch_first=True)
        [tensor([1, 2, 3]), tensor([4])]
    """
    batch = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [sequence[: int(n)] for sequence, n in zip(batch, lengths.tolist())]
