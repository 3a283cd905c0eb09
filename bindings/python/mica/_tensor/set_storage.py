"""Tensor.set_: a tensor over the memory of a storage, or of another tensor."""

from __future__ import annotations

from mica import _C
from mica._C import Tensor
from mica.storage import TypedStorage, _made, _Memory

TYPE_CHECKING = False  # importing typing takes as long as all of mica
if TYPE_CHECKING:
    from typing import Any

_NOTHING = object()


def set_(
    self: Tensor, source: Any = _NOTHING, storage_offset: int = 0, size: Any = None, stride: Any = None
) -> Tensor:
    """Makes the tensor a view of a storage, or of another tensor's; of nothing, empty."""
    if source is _NOTHING:
        source = _made(0, self.dtype, self.device)
    _check_source(self, source)
    if isinstance(source, Tensor) and size is None:
        self.data = source
        return self
    if isinstance(source, Tensor):
        source = TypedStorage(source)
    flat = source._flat[: source.nbytes() // self.itemsize * self.itemsize // source.element_size()]
    if flat.dtype != self.dtype:
        flat = flat.view(self.dtype)
    shape = [flat.numel() - storage_offset] if size is None else list(size)
    if stride is None:
        stride, step = [], 1
        for extent in reversed(shape):
            stride.insert(0, step)
            step *= max(extent, 1)
    # A part of a storage, as s[8:24] gives it, begins within its memory.
    self.data = flat.as_strided(shape, list(stride), flat.storage_offset() + storage_offset)
    return self


def _check_source(self: Tensor, source: Any) -> None:
    """Refuses what set_() cannot take: memory of another device, or of elements of another dtype."""
    if not isinstance(source, (Tensor, _Memory)):
        raise TypeError(
            f"set_() takes a tensor or a storage; the source is of type ({type(source).__name__})."
        )
    if self.requires_grad and self.is_leaf and _C.is_grad_enabled():
        raise RuntimeError(
            "set_() writes a leaf that requires grad, which autograd cannot follow: a leaf Variable that requires "
            "grad is being used in an in-place operation. Use x.data, or no_grad()."
        )
    if source.device != self.device:
        raise RuntimeError(
            f"The source is on the device ({source.device}) and the tensor on ({self.device}); set_() needs one."
        )
    if isinstance(source, Tensor) and source.dtype != self.dtype:
        raise RuntimeError(
            f"Could not set tensor of type {source.dtype} to a tensor of type {self.dtype}: the elements would be "
            "read as another dtype; use view(dtype) for that."
        )
    if isinstance(source, TypedStorage) and source.dtype != self.dtype:
        raise RuntimeError(
            f"Expected a Storage of type ({self.dtype}), which is the tensor's, or an UntypedStorage, but got one of "
            f"dtype ({source.dtype})."
        )


def tensor_of(storage: Any, dtype: Any) -> Tensor:
    """The memory of a storage as a vector of `dtype`."""
    return set_(_made(0, dtype, storage.device), storage)
