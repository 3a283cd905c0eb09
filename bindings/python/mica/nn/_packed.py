"""Packed sequences: the steps of sequences of different lengths without padding.

`data` holds step after step the rows of those sequences that are that long, the longest
first; `batch_sizes` says how many each step has.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import mica
from mica._C import Tensor
from mica._devices import methods


class _Fields(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The permutation that undoes another.

    As `torch.nn.utils.rnn.invert_permutation`.

    Args:
        permutation (Tensor or None): `(n,)`, int64: each of 0 to n - 1 once.

    Returns:
        Tensor or None: `(n,)`; None for None.

    Example:
        >>> mica.nn.utils.rnn.invert_permutation(mica.tensor([2, 0, 1]))
        tensor([1, 2, 0])
    """
    if permutation is None:
        return None
    places = mica.arange(permutation.numel(), device=permutation.device)
    return mica.empty_like(permutation).scatter_(0, permutation, places)


class PackedSequence(_Fields):
    """Sequences of different lengths without padding: the rows of all steps, one step after another.

    As `torch.nn.utils.rnn.PackedSequence`, which `RNN`, `GRU` and `LSTM` take and give. `pack_sequence` and
    `pack_padded_sequence` make it, `unpack_sequence` and `pad_packed_sequence` read it. A named tuple of its
    arguments; sequences are ordered by length, the longest first. Methods such as `double()` cast the data.

    Args:
        data (Tensor): `(sum of lengths, *)`: the first elements of all sequences, then the second ones, and
            so on.
        batch_sizes (Tensor): `(longest length,)`, int64 on the CPU: how many sequences have each step.
        sorted_indices (Tensor, optional): `(N,)`, int64: the places that sequences had before they were
            ordered. Default: None, where they have been in order.
        unsorted_indices (Tensor, optional): `(N,)`, int64, its inverse. Default: None, which computes it.

    Raises:
        AssertionError: `batch_sizes` is not given.

    Example:
        >>> packed = mica.nn.utils.rnn.pack_sequence([mica.tensor([1, 2, 3]), mica.tensor([4])])
        >>> packed.data, packed.batch_sizes
        (tensor([1, 4, 2, 3]), tensor([2, 1, 1]))
    """

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
        """The same with its data, and its order, on another device or with data of another dtype.

        Args:
            *args: As `Tensor.to` takes them.
            **kwargs: As `Tensor.to` takes them.

        Returns:
            PackedSequence: Itself where nothing changes.
        """
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        order = [
            None if x is None else x.to(data.device) for x in (self.sorted_indices, self.unsorted_indices)
        ]
        return type(self)(data, self.batch_sizes, order[0], order[1])

    def cpu(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """The same on the CPU.

        Args:
            *args: As `Tensor.to` takes them after a device.
            **kwargs: As `Tensor.to` takes them.

        Returns:
            PackedSequence: Itself where it is there already.
        """
        return self.to("cpu", *args, **kwargs)

    def pin_memory(self) -> PackedSequence:
        """The same with data in pinned memory."""
        return type(self)(self.data.pin_memory(), *self[1:])

    def is_pinned(self) -> bool:
        """Whether the data is in pinned memory."""
        return self.data.is_pinned()


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
    """Packs padded sequences: takes the padding out.

    As `torch.nn.utils.rnn.pack_padded_sequence`. The inverse is `pad_packed_sequence`.

    Args:
        input (Tensor): `(L, N, *)`, or `(N, L, *)` if `batch_first`; sequences begin at 0.
        lengths (Tensor or list of int): Of the `N` sequences, each 1 to `L`.
        batch_first (bool): The layout of `input`. Default: False.
        enforce_sorted (bool): Sequences have to come in order of length, the longest first; else they are
            ordered here, and unpacked in their old order. Default: True.

    Returns:
        PackedSequence: Without the padding.

    Raises:
        RuntimeError: A length is not 1 to `L`, there are not `N`, or they are not in order though that is
            enforced.

    Example:
        >>> padded = mica.tensor([[1, 2, 3], [4, 0, 0]])
        >>> mica.nn.utils.rnn.pack_padded_sequence(padded, [3, 1], batch_first=True).data
        tensor([1, 4, 2, 3])
    """
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
    """Pads packed sequences to one length: the inverse of `pack_padded_sequence`.

    As `torch.nn.utils.rnn.pad_packed_sequence`.

    Args:
        sequence (PackedSequence): Of `N` sequences.
        batch_first (bool): The layout of the output. Default: False.
        padding_value (float): What is put behind the ends. Default: 0.
        total_length (int, optional): The length `L` of the output, in steps. Default: None, that of the
            longest sequence.

    Returns:
        tuple of 2 Tensor: The sequences, `(L, N, *)`, or `(N, L, *)` if `batch_first`, and their lengths,
        `(N,)` on the CPU, both in the order before packing.

    Raises:
        ValueError: `total_length` is below the length of a sequence.

    Example:
        >>> packed = mica.nn.utils.rnn.pack_sequence([mica.tensor([1, 2, 3]), mica.tensor([4])])
        >>> mica.nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)
        (tensor([[1, 2, 3],
                [4, 0, 0]]), tensor([3, 1]))
    """
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
    """Packs a list of sequences.

    As `torch.nn.utils.rnn.pack_sequence`.

    Args:
        sequences (iterable of Tensor): Each `(L_i, *)`, `L_i` at least 1, all with the same dimensions after the
            first.
        enforce_sorted (bool): Sequences have to come in order of length, the longest first; else they are
            ordered here, and unpacked in their old order. Default: True.

    Returns:
        PackedSequence: Of these sequences.

    Raises:
        RuntimeError: The list is empty or not in order though that is enforced, a sequence is empty, or their
            other dimensions differ.

    Example:
        >>> rnn = mica.nn.GRU(2, 3)
        >>> packed = mica.nn.utils.rnn.pack_sequence([mica.ones(4, 2), mica.ones(1, 2)])
        >>> output, last = rnn(packed)
        >>> output.data.shape, last.shape
        (mica.Size([5, 3]), mica.Size([1, 2, 3]))
    """
    items = list(sequences)
    if not items:
        raise RuntimeError("The list of sequences is empty; expected at least one tensor to pack.")
    lengths = [item.size(0) for item in items]
    longest = max(lengths)
    rest = [0, 0] * (items[0].ndim - 1)
    padded = mica.stack([mica.constant_pad_nd(x, [*rest, 0, longest - x.size(0)], 0.0) for x in items], 1)
    return pack_padded_sequence(padded, lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The list of sequences of a packed one: the inverse of `pack_sequence`.

    As `torch.nn.utils.rnn.unpack_sequence`.

    Args:
        packed_sequences (PackedSequence): Of `N` sequences.

    Returns:
        list of Tensor: `N` sequences, `(L_i, *)`, in the order before packing.

    Example:
        >>> packed = mica.nn.utils.rnn.pack_sequence([mica.tensor([1, 2, 3]), mica.tensor([4])])
        >>> mica.nn.utils.rnn.unpack_sequence(packed)
        [tensor([1, 2, 3]), tensor([4])]
    """
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return [padded[k, :n] for k, n in enumerate(lengths.tolist())]


methods.follow(PackedSequence, methods.of_packed, always=("cuda",))
