"""Slices and parts in fresh memory, with `out=`: a list of tensors, which the operators do not take."""

from __future__ import annotations

from mica import _C
from mica._C import Tensor
from mica._interception.function_modes import install as _install

TYPE_CHECKING = False  # importing typing takes as long as all of mica
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

__all__ = ["split_copy", "split_with_sizes_copy", "unbind_copy"]

_generated = _C._functions[""]


def _copy_each(name: str, parts: Sequence[Tensor], out: Sequence[Tensor]) -> None:
    """Copies each part into its tensor of `out`, which is resized where it has another shape."""
    if len(out) != len(parts):
        raise RuntimeError(
            f"The number ({len(out)}) of tensors in `out` of {name} is not that of its results ({len(parts)})."
        )
    for number, (part, written) in enumerate(zip(parts, out)):
        if not _generated["can_cast"](part.dtype, written.dtype):
            raise RuntimeError(
                f"The result of {name} has the dtype ({part.dtype}), which cannot be cast to the dtype "
                f"({written.dtype}) of `out[{number}]`."
            )
    for part, written in zip(parts, out):
        if written.shape != part.shape:
            written.resize_(part.shape)
        written.copy_(part)


def unbind_copy(input: Tensor, dim: int = 0, *, out: Sequence[Tensor] | None = None) -> Any:
    """The slices along `dim` in fresh memory, or in the tensors of `out`; those are not returned."""
    if out is None:
        return _generated["unbind_copy"](input, dim)
    return _copy_each("unbind_copy", input.unbind(dim), out)


def split_copy(input: Tensor, split_size: int, dim: int = 0, *, out: Sequence[Tensor] | None = None) -> Any:
    """Parts of `split_size` along `dim`, as unbind_copy() gives slices."""
    if out is None:
        return _generated["split_copy"](input, split_size, dim)
    return _copy_each("split_copy", input.split(split_size, dim), out)


def split_with_sizes_copy(
    input: Tensor, split_sizes: Sequence[int], dim: int = 0, *, out: Sequence[Tensor] | None = None
) -> Any:
    """Parts of the given sizes along `dim`, as unbind_copy() gives slices."""
    if out is None:
        return _generated["split_with_sizes_copy"](input, split_sizes, dim)
    return _copy_each("split_with_sizes_copy", input.split(split_sizes, dim), out)


_install(globals())
