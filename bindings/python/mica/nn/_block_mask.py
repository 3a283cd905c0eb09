"""BlockMask: which blocks of queries and keys of flex_attention meet, in part or wholly.

For each row of blocks of queries it holds how many blocks of keys meet it and their numbers (those
that meet come first), in part (`kv_*`) and wholly (`full_kv_*`), and the same from the side of
the keys (`q_*`). The mask function says what of a block that meets in part takes part.
"""

from __future__ import annotations

from typing import Any

import mica
from mica._C import Tensor

_DEFAULT_SPARSE_BLOCK_SIZE = 128


def _ordered(blocks: Tensor) -> tuple[Tensor, Tensor]:
    """Counts and numbers of the blocks that are set, along the last dimension; set ones come first."""
    blocks = blocks.to(mica.int32)
    return (
        blocks.sum(-1).to(mica.int32),
        mica.argsort(blocks, dim=-1, descending=True, stable=True).to(mica.int32).contiguous(),
    )


def _dense(counts: Tensor, numbers: Tensor) -> Tensor:
    """The inverse of _ordered: 1 where a block is set."""
    first = mica.arange(numbers.size(-1), device=numbers.device) < counts.unsqueeze(-1)
    blank = mica.zeros(numbers.shape, dtype=mica.int32, device=numbers.device)
    return blank.scatter(-1, numbers.long(), first.to(mica.int32))


class BlockMask:
    """Which blocks of queries and keys of `flex_attention` meet, in part or wholly.

    As `torch.nn.attention.flex_attention.BlockMask`. `create_block_mask` makes it of a mask function,
    `from_kv_blocks` of blocks. `mask[b, h]` is that of some batches and heads, whose dimensions stay. A "row"
    is a block of queries; in `(B, H, ...)` a 1 stands for any.

    Args:
        seq_lengths (tuple of 2 int): Queries and keys.
        kv_num_blocks (Tensor): `(B, H, rows)`, int32: how many blocks of keys each row meets in part.
        kv_indices (Tensor): `(B, H, rows, columns)`, int32: their numbers, first those that meet.
        full_kv_num_blocks (Tensor or None): How many each row meets wholly, where the function is not asked.
        full_kv_indices (Tensor or None): The numbers of these blocks, in the form of `kv_indices`.
        q_num_blocks (Tensor or None): `(B, H, columns)`: how many rows each block of keys meets in part.
        q_indices (Tensor or None): `(B, H, columns, rows)`: their numbers.
        full_q_num_blocks (Tensor or None): How many it meets wholly.
        full_q_indices (Tensor or None): The numbers of these blocks, in the form of `q_indices`.
        BLOCK_SIZE (tuple of 2 int): Queries and keys of a block. Default: (128, 128).
        mask_mod (callable, optional): Of batch, head, query and key: whether they meet within a block that
            meets in part.

    Raises:
        RuntimeError: `kv_indices` has fewer than 2 dimensions.
        AssertionError: Of a number and its indices one is None.

    Example:
        >>> from mica.nn.flex_attention import create_block_mask
        >>> mask = create_block_mask(lambda b, h, q, k: q >= k, None, None, 4, 4, BLOCK_SIZE=2)
        >>> mask.shape, mask.sparsity()
        ((1, 1, 4, 4), 25.0)
        >>> mask.to_dense()[0, 0]
        tensor([[1, 0],
                [1, 1]], dtype=mica.int32)
    """

    _PARTS = (
        "kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices",
        "q_num_blocks", "q_indices", "full_q_num_blocks", "full_q_indices",
    )  # fmt: skip

    def __init__(
        self,
        seq_lengths: tuple[int, int],
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None,
        full_kv_indices: Tensor | None,
        q_num_blocks: Tensor | None,
        q_indices: Tensor | None,
        full_q_num_blocks: Tensor | None,
        full_q_indices: Tensor | None,
        BLOCK_SIZE: tuple[int, int] = (_DEFAULT_SPARSE_BLOCK_SIZE, _DEFAULT_SPARSE_BLOCK_SIZE),
        mask_mod: Any = None,
    ) -> None:
        if kv_indices.dim() < 2:
            raise RuntimeError(f"`kv_indices` must have 2 dimensions or more; it has {kv_indices.dim()}.")
        if (full_kv_num_blocks is None) != (full_kv_indices is None):
            raise AssertionError("`full_kv_num_blocks` and `full_kv_indices` are given both or neither.")
        if (q_num_blocks is None) != (q_indices is None):
            raise AssertionError("`q_num_blocks` and `q_indices` are given both or neither.")
        self.seq_lengths = seq_lengths
        self.kv_num_blocks, self.kv_indices = kv_num_blocks, kv_indices
        self.full_kv_num_blocks, self.full_kv_indices = full_kv_num_blocks, full_kv_indices
        self.q_num_blocks, self.q_indices = q_num_blocks, q_indices
        self.full_q_num_blocks, self.full_q_indices = full_q_num_blocks, full_q_indices
        self.BLOCK_SIZE, self.mask_mod = BLOCK_SIZE, mask_mod

    @classmethod
    def from_kv_blocks(
        cls,
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None = None,
        full_kv_indices: Tensor | None = None,
        BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE,
        mask_mod: Any = None,
        seq_lengths: tuple[int, int] | None = None,
        compute_q_blocks: bool = True,
    ) -> BlockMask:
        """A mask of the blocks of keys that each block of queries meets.

        Args:
            kv_num_blocks (Tensor): `(B, H, rows)`, int32: how many blocks of keys each row meets in part.
            kv_indices (Tensor): `(B, H, rows, columns)`, int32: their numbers, first those that meet.
            full_kv_num_blocks (Tensor, optional): How many each row meets wholly.
            full_kv_indices (Tensor, optional): The numbers of these blocks, in the form of `kv_indices`.
            BLOCK_SIZE (int or tuple of 2 int): Queries and keys of a block. Default: 128.
            mask_mod (callable, optional): For what is inside of a block that meets in part. Default: None,
                all meet.
            seq_lengths (tuple of 2 int, optional): Queries and keys. Default: None, whole blocks.
            compute_q_blocks (bool): Also find the blocks of queries that each block of keys meets. Default:
                True.

        Returns:
            BlockMask: Of these blocks.

        Raises:
            RuntimeError: `kv_indices` has fewer than 2 dimensions.
            AssertionError: Of the two full ones one is None.
        """
        if kv_indices.dim() < 2:
            raise RuntimeError(f"`kv_indices` must have 2 dimensions or more; it has {kv_indices.dim()}.")
        size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
        from_keys: list[Tensor | None] = [None] * 4
        if compute_q_blocks:
            from_keys[:2] = _ordered(_dense(kv_num_blocks, kv_indices).transpose(-2, -1))
            if full_kv_num_blocks is not None and full_kv_indices is not None:
                from_keys[2:] = _ordered(_dense(full_kv_num_blocks, full_kv_indices).transpose(-2, -1))
        lengths = seq_lengths or (kv_indices.size(-2) * size[0], kv_indices.size(-1) * size[1])
        parts = (kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices, *from_keys)
        return cls(lengths, *parts, BLOCK_SIZE=size, mask_mod=_meets_all if mask_mod is None else mask_mod)

    @classmethod
    def _of_mask(cls, mask: Tensor, size: tuple[int, int], mask_mod: Any, separate_full: bool) -> BlockMask:
        """The blocks of a whole mask, B x H x Q x KV."""
        lengths = (mask.size(-2), mask.size(-1))
        rows, columns = (-(-length // block) for length, block in zip(lengths, size))
        room = (0, columns * size[1] - lengths[1], 0, rows * size[0] - lengths[0])
        padded = mica.nn.functional.pad(mask.to(mica.int32), room)
        counts = padded.reshape(*mask.shape[:2], rows, size[0], columns, size[1]).sum((-3, -1))
        full = counts == size[0] * size[1] if separate_full else counts < 0
        partial = (counts > 0) & ~full
        whole = _ordered(full) if separate_full else (None, None)
        return cls.from_kv_blocks(*_ordered(partial), *whole, size, mask_mod, lengths)

    @property
    def shape(self) -> tuple[int, ...]:
        """Batches, heads, queries and keys; 1 stands for any."""
        return (*self.kv_indices.shape[:-2], *self.seq_lengths)

    def numel(self) -> int:
        """The number of pairs: the product of `shape`."""
        count = 1
        for size in self.shape:
            count *= size
        return count

    def sparsity(self) -> float:
        """The percentage of pairs in blocks that do not meet; below 0 where blocks reach over the edge."""
        blocks = int(self.kv_num_blocks.sum())
        if self.full_kv_num_blocks is not None:
            blocks += int(self.full_kv_num_blocks.sum())
        return 100 * (1 - blocks * self.BLOCK_SIZE[0] * self.BLOCK_SIZE[1] / self.numel())

    def to_dense(self) -> Tensor:
        """The blocks as an int32 tensor `(B, H, rows, columns)`: 1 for each that meets, in part or wholly."""
        found = _dense(self.kv_num_blocks, self.kv_indices)
        if self.full_kv_num_blocks is not None and self.full_kv_indices is not None:
            found = found | _dense(self.full_kv_num_blocks, self.full_kv_indices)
        return found

    def _mask(self, batches: int, heads: int, device: Any) -> Tensor:
        """The mask of all pairs: what the function says, within the blocks that meet."""
        from mica.nn.flex_attention import create_mask

        rows, columns = self.seq_lengths
        inside = create_mask(self.mask_mod, batches, heads, rows, columns, device)
        partial = self._spread(_dense(self.kv_num_blocks, self.kv_indices))
        if self.full_kv_num_blocks is None or self.full_kv_indices is None:
            return inside & partial
        return inside & partial | self._spread(_dense(self.full_kv_num_blocks, self.full_kv_indices))

    def _spread(self, blocks: Tensor) -> Tensor:
        spread = blocks.repeat_interleave(self.BLOCK_SIZE[0], -2).repeat_interleave(self.BLOCK_SIZE[1], -1)
        return spread[..., : self.seq_lengths[0], : self.seq_lengths[1]].to(mica.bool)

    def as_tuple(self, flatten: bool = True) -> tuple[Any, ...]:
        """The arguments that make this mask.

        Args:
            flatten (bool): The two lengths and the two block sizes one by one, instead of as two pairs.
                Default: True.

        Returns:
            tuple: Lengths, the eight tensors, block sizes and the function.
        """
        size: tuple[Any, ...] = tuple(self.BLOCK_SIZE) if flatten else (self.BLOCK_SIZE,)
        lengths: tuple[Any, ...] = tuple(self.seq_lengths) if flatten else (self.seq_lengths,)
        return (*lengths, *(getattr(self, name) for name in self._PARTS), *size, self.mask_mod)

    def to(self, device: Any) -> BlockMask:
        """The mask with its tensors on a device.

        Args:
            device (device): Where the mask shall live.

        Returns:
            BlockMask: A new one.
        """
        parts = (getattr(self, name) for name in self._PARTS)
        moved = (part if part is None else part.to(device) for part in parts)
        return type(self)(self.seq_lengths, *moved, BLOCK_SIZE=self.BLOCK_SIZE, mask_mod=self.mask_mod)

    def __getitem__(self, index: Any) -> BlockMask:
        """The mask of some batches and heads; a number keeps its dimension, of size 1."""
        given = index if isinstance(index, tuple) else (index,)
        if len(given) > 2 or not all(isinstance(i, (int, slice)) for i in given):
            raise NotImplementedError(
                f"A BlockMask is indexed by numbers and slices of its batches and heads; this index is ({index})."
            )
        sizes = self.kv_indices.shape[: len(given)]
        ranges = [
            range(size)[i if isinstance(i, slice) else slice(i, i + 1 or None)]
            for i, size in zip(given, sizes)
        ]
        where = tuple(slice(r.start, r.stop, r.step) for r in ranges)

        def cut(part: Tensor | None) -> Tensor | None:
            return None if part is None else part[where]

        starts = [(r.start, r.step) for r in ranges] + [(0, 1)] * (2 - len(ranges))
        (b0, b1), (h0, h1) = starts
        whole, mod = self.kv_indices.shape, self.mask_mod
        if whole[0] == 1:
            b0, b1 = 0, 1
        if whole[1] == 1:
            h0, h1 = 0, 1

        def moved(b: Tensor, h: Tensor, q: Tensor, kv: Tensor) -> Tensor:
            return mod(b * b1 + b0, h * h1 + h0, q, kv)  # type: ignore[no-any-return]

        parts = (cut(getattr(self, name)) for name in self._PARTS)
        return type(self)(self.seq_lengths, *parts, BLOCK_SIZE=self.BLOCK_SIZE, mask_mod=moved)  # type: ignore[arg-type]

    def __repr__(self) -> str:
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%, BLOCK_SIZE={self.BLOCK_SIZE})"


def _meets_all(b: Tensor, h: Tensor, q: Tensor, kv: Tensor) -> Tensor:
    return b.new_ones((), dtype=mica.bool)
