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
    """Copies the slices along a dimension.

    As `torch.unbind_copy`; `Tensor.unbind` gives views.

    Args:
        input (Tensor): The tensor.
        dim (int): The dimension along which it is cut. Default: 0.
        out (sequence of Tensor, optional): Where the slices are written. Default: None.

    Returns:
        tuple of Tensor or None: The slices; None with `out`.

    Raises:
        RuntimeError: `out` has another number of tensors, or a dtype that the slices cannot be cast to.

    Example:
        >>> mica.unbind_copy(mica.arange(4).reshape(2, 2))
        (tensor([0, 1]), tensor([2, 3]))
    """
    if out is None:
        return _generated["unbind_copy"](input, dim)
    return _copy_each("unbind_copy", input.unbind(dim), out)


def split_copy(input: Tensor, split_size: int, dim: int = 0, *, out: Sequence[Tensor] | None = None) -> Any:
    """Copies parts of one size along a dimension.

    As `torch.split_copy`; `mica.split` gives views.

    Args:
        input (Tensor): The tensor.
        split_size (int): The size of every part; the last may be smaller.
        dim (int): The dimension along which it is cut. Default: 0.
        out (sequence of Tensor, optional): Where the parts are written. Default: None.

    Returns:
        tuple of Tensor or None: The parts; None with `out`.

    Raises:
        RuntimeError: `out` has another number of tensors, or a dtype that the parts cannot be cast to.

    Example:
        >>> mica.split_copy(mica.arange(5), 2)
        (tensor([0, 1]), tensor([2, 3]), tensor([4]))
    """
    if out is None:
        return _generated["split_copy"](input, split_size, dim)
    return _copy_each("split_copy", input.split(split_size, dim), out)


def split_with_sizes_copy(
    input: Tensor, split_sizes: Sequence[int], dim: int = 0, *, out: Sequence[Tensor] | None = None
) -> Any:
    """Copies parts of given sizes along a dimension.

    As `torch.split_with_sizes_copy`; `mica.split` gives views.

    Args:
        input (Tensor): The tensor.
        split_sizes (sequence of int): The sizes, which sum to that of the dimension.
        dim (int): The dimension along which it is cut. Default: 0.
        out (sequence of Tensor, optional): Where the parts are written. Default: None.

    Returns:
        tuple of Tensor or None: The parts; None with `out`.

    Raises:
        RuntimeError: The sizes sum to another number; or `out` has another number of tensors, or a dtype
            that the parts cannot be cast to.

    Example:
        >>> mica.split_with_sizes_copy(mica.arange(5), [1, 4])
        (tensor([0]), tensor([1, 2, 3, 4]))
    """
    if out is None:
        return _generated["split_with_sizes_copy"](input, split_sizes, dim)
    return _copy_each("split_with_sizes_copy", input.split(split_sizes, dim), out)


_install(globals())
