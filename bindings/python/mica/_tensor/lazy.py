"""Tensors whose memory holds the conjugates or the negatives of their elements: x.conj(), and its .imag."""

from __future__ import annotations

from mica import _C
from mica._C import Tensor

_conj_operator, _neg_operator = (_C._find_operator(f"mica::{name}") for name in ("_conj", "_neg_view"))


def conj_view(self: Tensor) -> Tensor:
    """The same memory, read as its conjugates."""
    return _conj_operator(self)


def neg_view(self: Tensor) -> Tensor:
    """The same memory, read as its negatives."""
    return _neg_operator(self)


def read_as(t: Tensor, conj: bool, neg: bool) -> Tensor:
    """A view that is conjugated, or negated, or neither."""
    t = conj_view(t) if conj else t
    return neg_view(t) if neg else t


def memory_of(t: Tensor) -> Tensor:
    """The memory of such a tensor as it is; another tensor itself."""
    return read_as(t, t.is_conj(), t.is_neg())
