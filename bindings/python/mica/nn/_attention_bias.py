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
    """Where the diagonal of a causal mask starts, if queries and keys differ in number.

    As `torch.nn.attention.bias.CausalVariant`: UPPER_LEFT (the first query sees the first key) or LOWER_RIGHT
    (the last query sees the last key).

    Example:
        >>> from mica.nn._attention_bias import CausalVariant
        >>> int(CausalVariant.LOWER_RIGHT)
        2
    """

    UPPER_LEFT = 1
    LOWER_RIGHT = 2


class CausalBias(Tensor):
    """A causal mask for `scaled_dot_product_attention`: True where a query may look at a key.

    As `torch.nn.attention.bias.CausalBias`; `causal_upper_left` and `causal_lower_right` make it. It is a
    Tensor `(seq_len_q, seq_len_kv)` of bool, which whatever takes a mask takes.

    Args:
        variant (CausalVariant): Where the diagonal starts.
        seq_len_q (int): Queries.
        seq_len_kv (int): Keys.

    Raises:
        AssertionError: `variant` is no CausalVariant.

    Example:
        >>> from mica.nn._attention_bias import CausalBias, CausalVariant
        >>> CausalBias(CausalVariant.UPPER_LEFT, 2, 3)
        tensor([[ True, False, False],
                [ True,  True, False]])
    """

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
    """The causal mask whose diagonal starts in the upper left corner, as `is_causal=True` has it.

    As `torch.nn.attention.bias.causal_upper_left`.

    Args:
        *size (int): Two: queries and keys.

    Returns:
        CausalBias: Query `i` sees keys 0 to `i`.

    Raises:
        AssertionError: There are not two sizes.

    Example:
        >>> from mica.nn._attention_bias import causal_upper_left
        >>> causal_upper_left(2, 3)
        tensor([[ True, False, False],
                [ True,  True, False]])
    """
    return CausalBias(CausalVariant.UPPER_LEFT, *_check(size))


def causal_lower_right(*size: int) -> CausalBias:
    """The causal mask whose diagonal ends in the lower right corner: the last query sees all keys.

    As `torch.nn.attention.bias.causal_lower_right`: for queries that are the last places of a sequence whose
    earlier keys are kept.

    Args:
        *size (int): Two: queries and keys.

    Returns:
        CausalBias: Query `i` sees keys 0 to `i + keys - queries`.

    Raises:
        AssertionError: There are not two sizes.

    Example:
        >>> from mica.nn._attention_bias import causal_lower_right
        >>> mask = causal_lower_right(2, 3)
        >>> mask
        tensor([[ True,  True, False],
                [ True,  True,  True]])
        >>> x = mica.ones(1, 1, 3, 4)
        >>> mica.nn.functional.scaled_dot_product_attention(x[:, :, 1:], x, x, attn_mask=mask).shape
        mica.Size([1, 1, 2, 4])
    """
    return CausalBias(CausalVariant.LOWER_RIGHT, *_check(size))
