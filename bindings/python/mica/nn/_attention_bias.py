"""nn.attention.bias: causal masks for scaled_dot_product_attention, of either corner.

A CausalBias is the mask itself, True where a query may look, with the names that torch's has; so
whatever takes a mask takes it, and the results are the same.
"""

from __future__ import annotations

import enum
from typing import Any

import mica
from mica import _C
from mica._C import Tensor


class CausalVariant(enum.IntEnum):
    """Which corner of the scores the diagonal starts from, where their sides differ."""

    UPPER_LEFT = 1
    LOWER_RIGHT = 2


class CausalBias(Tensor):
    """A mask (queries, keys) that lets a query see its own key and those before it."""

    __torch_function__ = _C._disabled_torch_function_impl  # results are plain tensors
    variant: CausalVariant
    seq_len_q: int
    seq_len_kv: int

    def __new__(cls, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> CausalBias:
        if not isinstance(variant, CausalVariant):
            raise AssertionError(f"The variant ({variant!r}) is no CausalVariant.")
        shift = seq_len_kv - seq_len_q if variant is CausalVariant.LOWER_RIGHT else 0
        made: Any = Tensor._make_subclass(cls, mica.ones(seq_len_q, seq_len_kv, dtype=mica.bool).tril(shift))
        made.variant, made.seq_len_q, made.seq_len_kv = variant, seq_len_q, seq_len_kv
        return made  # type: ignore[no-any-return]

    def _materialize(self, device: Any = None) -> Tensor:
        """The mask as a plain tensor."""
        return self.detach().to(device or self.device)

    def __repr__(self) -> str:
        return repr(self._materialize())


def _check(sizes: tuple[int, ...]) -> tuple[int, int]:
    if len(sizes) != 2:
        raise AssertionError(
            f"A causal bias has two sizes, those of queries and of keys, not ({len(sizes)})."
        )
    return sizes[0], sizes[1]


def causal_upper_left(*size: int) -> CausalBias:
    """The mask whose diagonal starts in the upper left corner, as is_causal=True has it."""
    return CausalBias(CausalVariant.UPPER_LEFT, *_check(size))


def causal_lower_right(*size: int) -> CausalBias:
    """The mask whose diagonal ends in the lower right corner: the last query sees all keys."""
    return CausalBias(CausalVariant.LOWER_RIGHT, *_check(size))
