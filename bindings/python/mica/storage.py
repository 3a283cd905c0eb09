"""The memory under tensors: what Tensor.untyped_storage() and Tensor.storage() give, and torch's
old storage classes, one for each dtype (FloatStorage, ...), which make memory of their own."""

from __future__ import annotations

import mica
from mica import _C
from mica._C import Tensor

TYPE_CHECKING = False  # importing typing takes as long as all of mica
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_TYPES = {
    "FloatStorage": "float32",
    "DoubleStorage": "float64",
    "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16",
    "LongStorage": "int64",
    "IntStorage": "int32",
    "ShortStorage": "int16",
    "CharStorage": "int8",
    "ByteStorage": "uint8",
    "BoolStorage": "bool",
    "ComplexFloatStorage": "complex64",
    "ComplexDoubleStorage": "complex128",
}


def _made(data: Any, dtype: Any, device: Any = None) -> Tensor:
    """A flat tensor: undefined of a size, or of the elements given."""
    if data is None or isinstance(data, int):
        return _C._functions[""]["empty"]((data or 0,), dtype=dtype, device=device)
    if isinstance(data, (bytes, bytearray, memoryview)):
        return mica.frombuffer(bytearray(data), dtype=dtype) if len(data) else _made(0, dtype, device)
    return _C.tensor(list(data), dtype=dtype, device=device)


class TypedStorage:
    """All elements of the memory that a tensor and its views share, in order.

    Made of a tensor it is that tensor's memory; of a number or of elements, new memory.
    """

    _own_dtype = "float32"

    def __init__(
        self, tensor: Any = None, *, dtype: Any = None, device: Any = None, wrap_storage: Any = None
    ) -> None:
        if wrap_storage is not None:
            tensor = wrap_storage._flat.view(dtype or getattr(_C, self._own_dtype))
        if not isinstance(tensor, Tensor):
            tensor = _made(tensor, dtype or getattr(_C, self._own_dtype), device)
        count = tensor._storage_nbytes() // tensor.itemsize
        self._flat = tensor.detach().as_strided([count], [1], 0)
        self._owner = tensor

    @property
    def dtype(self) -> Any:
        return self._flat.dtype

    @property
    def device(self) -> Any:
        return self._flat.device

    @property
    def is_cuda(self) -> bool:
        return self._flat.device.type == "cuda"

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

    def untyped(self) -> UntypedStorage:
        """The same memory as bytes."""
        return UntypedStorage(self._owner)

    @property
    def _untyped_storage(self) -> UntypedStorage:
        return UntypedStorage(self._owner)

    def clone(self) -> Any:
        """A copy in memory of its own."""
        return type(self)(self._flat.clone())

    def fill_(self, value: Any) -> Any:
        """Sets every element."""
        self._flat.fill_(value)
        return self

    def copy_(self, source: Any, non_blocking: bool = False) -> Any:
        """Takes over the elements of another storage of the same size."""
        self._flat.copy_(source._flat)
        return self

    def cpu(self) -> Any:
        """The storage on the CPU: itself if it is there."""
        return self if self.device.type == "cpu" else type(self)(self._flat.cpu())

    def is_shared(self) -> bool:
        """Whether other processes see the memory: none does."""
        return False

    def is_pinned(self, device: Any = None) -> bool:
        """Whether the memory is pinned."""
        return self._owner.is_pinned()

    def __len__(self) -> int:
        return self.size()

    def __getitem__(self, place: Any) -> Any:
        found = self._flat[place]
        return type(self)(found.clone()) if isinstance(place, slice) else found.item()

    def __setitem__(self, place: Any, value: Any) -> None:
        self._flat[place] = value

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypedStorage) and self.data_ptr() == other.data_ptr()

    def __hash__(self) -> int:
        return hash(self.data_ptr())

    def __repr__(self) -> str:
        lines = "".join(f" {v}\n" for v in self.tolist())
        return (
            f"{lines}[{type(self).__name__}(dtype={self.dtype}, device={self.device}) of size {self.size()}]"
        )

    @classmethod
    def from_buffer(cls, buffer: Any, byte_order: str = "native", *, dtype: Any = None, **_: Any) -> Any:
        """A copy of a buffer's bytes, in this machine's order."""
        import sys

        if byte_order not in ("native", sys.byteorder):
            raise NotImplementedError(
                f"The byte order ({byte_order}) is not this machine's ({sys.byteorder})."
            )
        return cls(_made(bytes(buffer), dtype or getattr(_C, cls._own_dtype)))

    @classmethod
    def from_file(cls, filename: Any, shared: bool = False, size: int = 0) -> Any:
        """`size` elements of a file, mapped: written back to it if `shared`, else kept private."""
        import mmap
        import os

        dtype = getattr(_C, cls._own_dtype)
        item = _C._functions[""]["empty"]((0,), dtype=dtype).itemsize
        need = size * item
        with open(filename, "r+b" if shared else "rb") as file:
            if os.fstat(file.fileno()).st_size < need:
                if not shared:
                    raise RuntimeError(f"The file ({filename}) is shorter than {need} bytes.")
                file.truncate(need)
            if need == 0:
                return cls(0)
            access = mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY
            mapped = mmap.mmap(file.fileno(), need, access=access)
        made = cls(mica.frombuffer(mapped, dtype=dtype))
        made.filename = str(filename)
        return made


class UntypedStorage(TypedStorage):
    """All bytes of the memory that a tensor and its views share."""

    _own_dtype = "uint8"
    filename: str | None = None

    def __init__(self, tensor: Any = None, *, device: Any = None) -> None:
        super().__init__(tensor, device=device)
        self._flat = self._flat.view(_C.uint8)

    def untyped(self) -> UntypedStorage:
        return self

    @classmethod
    def from_file(cls, filename: Any, shared: bool = False, nbytes: int = 0, *, size: int = 0) -> Any:
        """`nbytes` of a file, mapped: written back to it if `shared`, else kept private."""
        return super().from_file(filename, shared, nbytes or size)

    def __repr__(self) -> str:
        lines = "".join(f" {v}\n" for v in self.tolist())
        return f"{lines}[{type(self).__name__}(device={self.device}) of size {self.size()}]"


def _legacy(name: str, dtype: str) -> type:
    text = f"A storage of {dtype}."
    return type(name, (TypedStorage,), {"_own_dtype": dtype, "__doc__": text, "__module__": "mica.storage"})


for _name, _dtype in _TYPES.items():
    globals()[_name] = _legacy(_name, _dtype)
Storage = globals()["FloatStorage"]


def set_(
    self: Tensor, source: Any = None, storage_offset: int = 0, size: Any = None, stride: Any = None
) -> Tensor:
    """Makes the tensor a view of a storage, or of another tensor's; of nothing, empty."""
    if source is None:
        self.data = _made(0, self.dtype, self.device)
        return self
    if isinstance(source, Tensor) and size is None:
        self.data = source
        return self
    flat = TypedStorage(source)._flat if isinstance(source, Tensor) else source._flat.view(self.dtype)
    shape = [flat.numel() - storage_offset] if size is None else list(size)
    if stride is None:
        stride, step = [], 1
        for extent in reversed(shape):
            stride.insert(0, step)
            step *= max(extent, 1)
    self.data = flat.as_strided(shape, list(stride), storage_offset)
    return self
