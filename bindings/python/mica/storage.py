"""The memory under tensors: what Tensor.untyped_storage() and Tensor.storage() give."""

from __future__ import annotations

from mica import _C
from mica._C import Tensor

TYPE_CHECKING = False  # importing typing takes as long as all of mica
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


class TypedStorage:
    """All elements of the memory that a tensor and its views share, in order."""

    def __init__(self, tensor: Tensor) -> None:
        count = tensor._storage_nbytes() // tensor.itemsize
        self._flat = tensor.detach().as_strided([count], [1], 0)
        self._owner = tensor

    @property
    def dtype(self) -> Any:
        return self._flat.dtype

    @property
    def device(self) -> Any:
        return self._flat.device

    def size(self) -> int:
        """The number of elements."""
        return self._flat.numel()

    def nbytes(self) -> int:
        """The number of bytes."""
        return self._owner._storage_nbytes()

    def element_size(self) -> int:
        return self._flat.itemsize

    def data_ptr(self) -> int:
        """The address of the first byte."""
        return self._owner._storage_ptr()

    def tolist(self) -> list[Any]:
        return self._flat.tolist()

    def __len__(self) -> int:
        return self.size()

    def __getitem__(self, place: int) -> Any:
        return self._flat[place].item()

    def __setitem__(self, place: Any, value: Any) -> None:
        self._flat[place] = value

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypedStorage) and self.data_ptr() == other.data_ptr()

    def __hash__(self) -> int:
        return hash(self.data_ptr())


class UntypedStorage(TypedStorage):
    """All bytes of the memory that a tensor and its views share."""

    def __init__(self, tensor: Tensor) -> None:
        super().__init__(tensor)
        self._flat = self._flat.view(_C.uint8)

    @property
    def filename(self) -> None:
        return None

    def is_shared(self) -> bool:
        return False

    def is_pinned(self) -> bool:
        return False
