"""Packed sequences: the steps of sequences of different lengths without padding.

`data` holds step after step the rows of those sequences that are that long, the longest
first; `batch_sizes` says how many each step has.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import mica
from mica._C import Tensor


class _Fields(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The permutation that undoes one."""
    if permutation is None:
        return None
    places = mica.arange(permutation.numel(), device=permutation.device)
    return mica.empty_like(permutation).scatter_(0, permutation, places)


class PackedSequence(_Fields):
    """The rows of all steps, how many each step has, and the order of the sequences."""

    def __new__(
        cls,
        data: Tensor,
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> PackedSequence:
        if batch_sizes is None:
            raise AssertionError("Argument `batch_sizes` is not given.")
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """The same with its data (and its order) elsewhere or of another dtype."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        order = [
            None if x is None else x.to(data.device) for x in (self.sorted_indices, self.unsorted_indices)
        ]
        return type(self)(data, self.batch_sizes, order[0], order[1])

    def cuda(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """The same on a device of the backend "cuda"."""
        return self.to("cuda", *args, **kwargs)

    def cpu(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """The same on the CPU."""
        return self.to("cpu", *args, **kwargs)

    def pin_memory(self) -> PackedSequence:
        """The same with data in pinned memory."""
        return type(self)(self.data.pin_memory(), *self[1:])

    def is_pinned(self) -> bool:
        """Whether the data is in pinned memory."""
        return self.data.is_pinned()

    @property
    def is_cuda(self) -> bool:
        """Whether the data is on a device of the backend "cuda"."""
        return self.data.is_cuda


def _cast(name: str) -> Any:
    def cast(self: PackedSequence) -> PackedSequence:
        return self.to(getattr(mica, name))

    cast.__doc__ = f"The same with data of dtype {name}."
    return cast


for _method, _dtype in {
    "double": "float64",
    "float": "float32",
    "half": "float16",
    "long": "int64",
    "int": "int32",
    "short": "int16",
    "char": "int8",
    "byte": "uint8",
}.items():
    setattr(PackedSequence, _method, _cast(_dtype))


def pack_padded_sequence(
    input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Packs (L, N, *), or (N, L, *) if `batch_first`, of the lengths given."""
    lengths = mica.as_tensor(lengths, dtype=mica.int64, device="cpu")
    order = None
    if not enforce_sorted:
        lengths, order = lengths.sort(descending=True)
        order = order.to(input.device)
        input = input.index_select(0 if batch_first else 1, order)
    counts = lengths.tolist()
    steps = input.transpose(0, 1) if batch_first else input
    if len(counts) != steps.size(1) or not counts:
        raise RuntimeError(f"Number of lengths ({len(counts)}) is not that ({steps.size(1)}) of sequences.")
    if min(counts) <= 0:
        raise RuntimeError(f"Length ({min(counts)}) of a sequence is not positive.")
    if counts != sorted(counts, reverse=True):
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. "
            "Sort the sequences, or pass `enforce_sorted=False`."
        )
    if counts[0] > steps.size(0):
        raise RuntimeError(
            f"Length ({counts[0]}) of a sequence is above the number of steps ({steps.size(0)})."
        )
    sizes = [sum(length > t for length in counts) for t in range(counts[0])]
    data = mica.cat([steps[t, :n] for t, n in enumerate(sizes)])
    return PackedSequence(data, mica.tensor(sizes, dtype=mica.int64), order)


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """The padded sequences and their lengths."""
    sizes = sequence.batch_sizes.tolist()
    length = len(sizes) if total_length is None else total_length
    if length < len(sizes):
        raise ValueError(f"Total length ({length}) is below that ({len(sizes)}) of the longest sequence.")
    lengths = [sum(n > b for n in sizes) for b in range(sizes[0])]
    first = [sum(sizes[:t]) for t in range(len(sizes))]
    rest = sequence.data.shape[1:]
    sequences = []
    for count in lengths:
        at = mica.tensor([first[t] + len(sequences) for t in range(count)], device=sequence.data.device)
        rows = sequence.data.index_select(0, at)
        padding = [0, 0] * len(rest) + [0, length - count]
        sequences.append(mica.constant_pad_nd(rows, padding, padding_value))
    padded = mica.stack(sequences, 0 if batch_first else 1)
    found = mica.tensor(lengths, dtype=mica.int64)
    if sequence.unsorted_indices is not None:
        padded = padded.index_select(0 if batch_first else 1, sequence.unsorted_indices)
        found = found.index_select(0, sequence.unsorted_indices.to("cpu"))
    return padded, found


def pack_sequence(sequences: Any, enforce_sorted: bool = True) -> PackedSequence:
    """Packs a list of sequences of shapes (L_i, *)."""
    items = list(sequences)
    if not items:
        raise RuntimeError("The list of sequences is empty; expected at least one tensor to pack.")
    lengths = [item.size(0) for item in items]
    longest = max(lengths)
    rest = [0, 0] * (items[0].ndim - 1)
    padded = mica.stack([mica.constant_pad_nd(x, [*rest, 0, longest - x.size(0)], 0.0) for x in items], 1)
    return pack_padded_sequence(padded, lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The list of sequences that pack_sequence() took."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return [padded[k, :n] for k, n in enumerate(lengths.tolist())]
