"""The memory under tensors: what Tensor.untyped_storage() and Tensor.storage() give, and torch's
old storage classes, one for each dtype (FloatStorage, ...), which make memory of their own."""

from __future__ import annotations

import mica
from mica import _C
from mica._C import Tensor
from mica._devices import methods
from mica._tensor.lazy import memory_of as _memory_of

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


def bytes_of(flat: Tensor) -> Any:
    r"""Returns a flat tensor's bytes, without a copy where it is on the CPU.

    Args:
        flat (Tensor): `(n,)`, contiguous.

    Returns:
        memoryview: The bytes.

    Example:
        >>> bytes(mica.storage.bytes_of(mica.ones(1)))
        b'\x00\x00\x80?'
    """
    if flat.numel() == 0:
        return b""
    host = flat.cpu()
    return memoryview(_C._TensorBuffer(host if host.dtype == mica.uint8 else host.view(mica.uint8))).cast("B")


class _Memory:
    """What both kinds of storages do. They view the memory of `_owner`, or of a part of a file `_fixed`."""

    _own_dtype = "float32"
    is_sparse = is_sparse_csr = False
    filename: str | None = None

    def _view(self, tensor: Tensor, fixed: bool = False) -> None:
        self._owner, self._fixed = _memory_of(tensor), fixed

    @classmethod
    def _over(cls, flat: Tensor) -> Any:
        """Over a flat tensor's elements alone, whatever else its memory has."""
        made = cls.__new__(cls)
        made._view(flat, True)
        return made

    @property
    def _flat(self) -> Tensor:
        """All elements as a flat tensor."""
        if self._fixed:
            return self._owner
        count = self._owner._storage_nbytes() // self._owner.itemsize
        return self._owner.as_strided([count], [1], 0)

    @property
    def device(self) -> Any:
        """The device that the memory is on."""
        return self._owner.device

    @property
    def _cdata(self) -> int:
        return self.data_ptr()

    def get_device(self) -> int | None:
        """The index of the device; None on the CPU."""
        return self._owner.device.index

    def size(self) -> int:
        """The number of elements."""
        return self._flat.numel()

    def nbytes(self) -> int:
        """The number of bytes."""
        return self._flat.numel() * self._owner.itemsize if self._fixed else self._owner._storage_nbytes()

    def element_size(self) -> int:
        """The number of bytes of an element."""
        return self._owner.itemsize

    def data_ptr(self) -> int:
        """The address of the first byte."""
        return self._owner.data_ptr() if self._fixed else self._owner._storage_ptr()

    def tolist(self) -> list[Any]:
        """The elements as Python numbers."""
        return self._flat.tolist()

    def untyped(self) -> UntypedStorage:
        """The same memory as bytes."""
        if self._fixed:
            return UntypedStorage._over(self._owner.view(_C.uint8))
        return UntypedStorage(self._owner)

    def resizable(self) -> bool:
        """Whether resize_() can make it larger: what lies in a file or in shared memory it cannot."""
        return not self._fixed and self._owner._storage_resizable()

    def resize_(self, size: int) -> Any:
        """Gives the storage another number of elements; every tensor over it stays where it stands.

        Args:
            size (int): Elements.

        Returns:
            TypedStorage or UntypedStorage: Itself.

        Raises:
            RuntimeError: The memory is a part of a file.
        """
        if self._fixed:
            raise RuntimeError("The storage is a part of a file and cannot be resized; resize a clone().")
        self._owner._resize_storage(size * self.element_size())
        return self

    def new(self, *args: Any) -> Any:
        """Makes another storage of the kind.

        Args:
            *args (Any): A number of elements, or the elements. Default: no elements.

        Returns:
            TypedStorage or UntypedStorage: New memory on the same device.
        """
        return self._like(_made(*(args or (None,)), self._owner.dtype, self.device))

    def _like(self, flat: Tensor) -> Any:
        made = type(self).__new__(type(self))
        made._view(flat.detach())
        return made

    def clone(self) -> Any:
        """A copy in memory of its own."""
        return self._like(self._flat.clone())

    def fill_(self, value: Any) -> Any:
        """Sets every element.

        Args:
            value (float): The number.

        Returns:
            TypedStorage or UntypedStorage: Itself.
        """
        self._flat.fill_(value)
        return self

    def copy_(self, source: Any, non_blocking: bool | None = None) -> Any:
        """Takes over the elements of another storage of the same size.

        Args:
            source (TypedStorage or UntypedStorage): The other one.
            non_blocking (bool, optional): Ignored. Default: None.

        Returns:
            TypedStorage or UntypedStorage: Itself.
        """
        self._flat.copy_(source._flat)
        return self

    def cpu(self) -> Any:
        """The storage on the CPU: itself if it is there."""
        return self if self.device.type == "cpu" else self._like(self._flat.cpu())

    def to(self, *, device: Any, non_blocking: bool = False) -> Any:
        """Copies the storage to a device.

        Args:
            device (str or device): The device.
            non_blocking (bool): Ignored. Default: False.

        Returns:
            TypedStorage or UntypedStorage: The copy; itself if it is there.
        """
        wanted = mica.device(device)
        return self if wanted == self.device else self._like(self._flat.to(wanted))

    def is_shared(self) -> bool:
        """Whether other processes see the memory."""
        return self._owner.is_shared()

    def share_memory_(self) -> Any:
        """Moves the memory, and with it every tensor over it, to where other processes see it."""
        self._owner.share_memory_()
        return self

    def is_pinned(self, device: Any = None) -> bool:
        """Returns whether the memory is pinned; see `Tensor.pin_memory`.

        Args:
            device (device, optional): Ignored. Default: None.

        Returns:
            bool: Whether it is.
        """
        return self._owner.is_pinned()

    def pin_memory(self, device: Any = None) -> Any:
        """Copies the storage into pinned memory; see `Tensor.pin_memory`.

        Args:
            device (device, optional): Ignored. Default: None.

        Returns:
            TypedStorage or UntypedStorage: The copy.

        Raises:
            NotImplementedError: No device that is loaded has such memory.
        """
        return self._like(self._flat.pin_memory())

    def __len__(self) -> int:
        return self.size()

    def __getitem__(self, place: Any) -> Any:
        if self._flat.is_meta:
            raise NotImplementedError(
                f"Not available for 'meta' device type: element ({place}) of a storage has no value."
            )
        if not isinstance(place, slice):
            return self._flat[place].item()
        if isinstance(self, TypedStorage):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        return type(self)._over(self._flat[place])

    def __setitem__(self, place: Any, value: Any) -> None:
        self._flat[place] = value

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Memory) and self.data_ptr() == other.data_ptr()

    def __hash__(self) -> int:
        return hash(self.data_ptr())

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes()

    def __copy__(self) -> Any:
        return self.clone()

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        from mica.serialization._tensors import clone_storage

        if id(self) not in memo:
            memo[id(self)] = self._like(clone_storage(self._flat, memo))
        return memo[id(self)]

    def __reduce__(self) -> Any:
        return (_loaded, (type(self), self._flat))

    def __repr__(self) -> str:
        values = "..." if self.device.type == "meta" else "\n ".join(map(str, self.tolist()))
        title = ", ".join([*self._details(), f"device={self.device}"])
        kind = "TypedStorage" if isinstance(self, TypedStorage) else "UntypedStorage"
        return f"{'' if values == '...' else ' '}{values}\n[{_C._library_name()}.storage.{kind}({title}) of size {self.size()}]"

    def _details(self) -> list[str]:
        return []

    def _as_data(self, dtype: Any) -> Tensor:
        """What tensor() copies of the storage: its memory as `dtype`."""
        if dtype is None and isinstance(self, UntypedStorage):
            raise TypeError(
                "The bytes of an UntypedStorage have no dtype; give tensor() one, as dtype=mica.uint8."
            )
        return _made(0, self._owner.dtype if dtype is None else dtype, self.device).set_(self)

    @classmethod
    def from_buffer(
        cls,
        buffer: Any,
        byte_order: str = "native",
        count: int = -1,
        offset: int = 0,
        *,
        dtype: Any = None,
        device: Any = None,
    ) -> Any:
        """Copies elements out of a buffer.

        Args:
            buffer (bytes-like): The buffer.
            byte_order (str): Of the buffer: "native", "little" or "big". Default: "native".
            count (int): Elements; -1 for all that are left. Default: -1.
            offset (int): The byte that they begin at. Default: 0.
            dtype (dtype, optional): Of the elements. Default: the class's.
            device (device, optional): Where the storage goes. Default: the CPU.

        Returns:
            TypedStorage or UntypedStorage: New memory.

        Raises:
            ValueError: The byte order is unknown, or the buffer is too short.
        """
        import sys

        dtype = dtype or getattr(_C, cls._own_dtype)
        content = bytes(memoryview(buffer).cast("B"))
        if byte_order not in ("native", "little", "big"):
            raise ValueError(f"invalid byte_order '{byte_order}' (expected 'big', 'little', or 'native')")
        if not 0 <= offset <= len(content):
            raise ValueError(
                f"offset must be non-negative and no greater than buffer length ({len(content)}), but got {offset}"
            )
        if count < 0:
            if (len(content) - offset) % dtype.itemsize:
                raise ValueError(
                    f"buffer size ({len(content)}) minus offset ({offset}) is no multiple of element size "
                    f"({dtype.itemsize})"
                )
            count = (len(content) - offset) // dtype.itemsize
        end = offset + count * dtype.itemsize
        if end > len(content):
            raise ValueError(
                f"buffer has only {len(content) - offset} bytes after offset {offset}, but {count} elements of {dtype.itemsize} bytes were asked for"
            )
        made = cls(_made(content[offset:end], dtype, device).to(device or "cpu"))
        if byte_order not in ("native", sys.byteorder):
            made.untyped().byteswap(dtype)
        return made

    @classmethod
    def from_file(cls, filename: Any, shared: bool = False, size: int = 0) -> Any:
        """Maps elements of a file.

        Args:
            filename (str or path): Path of the file.
            shared (bool): What is written goes to the file, which is made longer if need be. Default: False,
                it is kept private.
            size (int): How many elements are mapped. Default: 0.

        Returns:
            TypedStorage or UntypedStorage: The memory.

        Raises:
            RuntimeError: The file is too short and `shared` is false.
            FileNotFoundError: There is no file.
        """
        import mmap
        import os

        dtype = getattr(_C, cls._own_dtype)
        need = size * dtype.itemsize
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


def _cast(name: str, dtype: str) -> Any:
    def cast(self: Any) -> Any:
        return TypedStorage._of(self._flat.to(getattr(_C, dtype)))

    cast.__name__, cast.__doc__ = name, f"The elements as {dtype}."
    return cast


for _name, _dtype in {
    "float": "float32",
    "double": "float64",
    "half": "float16",
    "bfloat16": "bfloat16",
    "long": "int64",
    "int": "int32",
    "short": "int16",
    "char": "int8",
    "byte": "uint8",
    "bool": "bool",
    "complex_float": "complex64",
    "complex_double": "complex128",
    **{name: name for name in dir(_C) if name.startswith("float8")},
}.items():
    setattr(_Memory, _name, _cast(_name, _dtype))


def _loaded(kind: type, flat: Tensor) -> Any:
    made = kind.__new__(kind)
    made._view(flat)
    return made


methods.follow(_Memory, methods.of_storage, always=("cuda",))


class TypedStorage(_Memory):
    """The memory that a tensor and its views share, as a flat list of elements of one dtype.

    As `torch.TypedStorage`. `Tensor.storage()` gives the tensor's; made of a number or of elements it is new memory.
    Elements are read and written by index.

    Args:
        tensor (Tensor, int or iterable, optional): A tensor, whose memory it is; a number of elements,
            which are undefined; or the elements. Default: None, no elements.
        dtype (dtype, optional): Of the elements. Default: the class's, float32.
        device (device, optional): Of new memory. Default: the default device.
        wrap_storage (UntypedStorage, optional): Bytes to be seen as elements, in place of `tensor`.

    Example:
        >>> x = mica.arange(6.0).reshape(2, 3)
        >>> storage = x[1].storage()
        >>> storage.size(), storage[5]
        (6, 5.0)
        >>> storage[0] = 7.0
        >>> x[0]
        tensor([7., 1., 2.])
    """

    def __init__(
        self, tensor: Any = None, *, dtype: Any = None, device: Any = None, wrap_storage: Any = None
    ) -> None:
        wanted = dtype or getattr(_C, self._own_dtype)
        if wrap_storage is not None:
            flat = wrap_storage._flat
            self._view(
                flat[: flat.numel() // wanted.itemsize * wanted.itemsize].view(wanted), wrap_storage._fixed
            )
            return
        if not isinstance(tensor, Tensor):
            tensor = _made(tensor, wanted, device)
        self._view(tensor.detach())

    @classmethod
    def _of(cls, tensor: Tensor) -> Any:
        made = TypedStorage.__new__(TypedStorage)
        made._view(tensor.detach())
        return made

    @property
    def dtype(self) -> Any:
        """The dtype of the elements."""
        return self._owner.dtype

    @property
    def _untyped_storage(self) -> UntypedStorage:
        return self.untyped()

    def pickle_storage_type(self) -> str:
        """The name of torch's old class for the dtype."""
        name = str(self.dtype).rpartition(".")[2]
        return next(kind for kind, dtype in _TYPES.items() if dtype == name)

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """Names torch's old class of the dtype, or casts.

        Args:
            dtype (str, type or dtype, optional): "torch.LongStorage", such a class, or a dtype: casts to it.
                Default: None.
            non_blocking (bool): Ignored. Default: False.

        Returns:
            str or TypedStorage: "torch.FloatStorage"; with `dtype`, the elements in new memory.
        """
        if dtype is None:
            return f"torch.{self.pickle_storage_type()}"
        if isinstance(dtype, str):
            dtype = globals()[dtype.rpartition(".")[2]]
        if hasattr(dtype, "_own_dtype"):
            dtype = getattr(_C, dtype._own_dtype)
        return TypedStorage._of(self._flat.to(dtype))

    def _details(self) -> list[str]:
        return [f"dtype={self.dtype}"]


def swap_width(dtype: Any) -> int:
    """Returns how many bytes of an element change places when its byte order does: half of it where it is complex.

    Args:
        dtype (dtype or None): The dtype; None for bytes.

    Returns:
        int: Bytes.

    Example:
        >>> mica.storage.swap_width(mica.complex64)
        4
    """
    return 1 if dtype is None else dtype.itemsize // (2 if dtype.is_complex else 1)  # type: ignore[no-any-return]


class _StorageBase(_Memory):
    """The base of storages of bytes."""


class UntypedStorage(_StorageBase):
    """The memory that a tensor and its views share, as bytes.

    As `torch.UntypedStorage`. `Tensor.untyped_storage()` gives the tensor's; made of a number or of bytes it is
    new memory.

    Args:
        tensor (Tensor, int or iterable, optional): A tensor, whose memory it is; a number of bytes, which
            are undefined; or the bytes. Default: None, no bytes.
        device (device, optional): Of new memory. Default: the default device.

    Example:
        >>> row = mica.ones(2, 3)[1]
        >>> row.untyped_storage().nbytes()
        24
        >>> row.untyped_storage().data_ptr() == row.data_ptr() - 12
        True
    """

    _own_dtype = "uint8"

    def __init__(self, tensor: Any = None, *, device: Any = None) -> None:
        if not isinstance(tensor, Tensor):
            tensor = _made(tensor, _C.uint8, device)
        count = tensor._storage_nbytes() // tensor.itemsize
        self._view(_memory_of(tensor).detach().as_strided([count], [1], 0).view(_C.uint8))

    def untyped(self) -> UntypedStorage:
        """The storage itself."""
        return self

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """Names the class, or casts.

        Args:
            dtype (dtype, optional): Makes each byte a number of this dtype. Default: None.
            non_blocking (bool): Ignored. Default: False.

        Returns:
            str or TypedStorage: "torch.storage.UntypedStorage"; with `dtype`, the numbers in new memory.
        """
        return "torch.storage.UntypedStorage" if dtype is None else TypedStorage._of(self._flat.to(dtype))

    def byteswap(self, dtype: Any) -> None:
        """Reverses the bytes of each element, in place: from one byte order to the other.

        Args:
            dtype (dtype): Of the elements; each part of a complex number is reversed by itself.
        """
        width = swap_width(dtype)
        if width > 1:
            rows = self._flat.view(-1, width)
            rows.copy_(rows.flip(1))

    @classmethod
    def from_file(cls, filename: Any, shared: bool = False, nbytes: int = 0, *, size: int = 0) -> Any:
        """Maps bytes of a file.

        Args:
            filename (str or path): Path of the file.
            shared (bool): What is written goes to the file, which is made longer if need be. Default: False,
                it is kept private.
            nbytes (int): How many bytes are mapped. Default: 0.
            size (int): The same by another name. Default: 0.

        Returns:
            UntypedStorage: The memory.

        Raises:
            RuntimeError: The file is too short and `shared` is false.
            FileNotFoundError: There is no file.
        """
        return super().from_file(filename, shared, nbytes or size)

    @classmethod
    def _new_shared(cls, size: int, *, device: Any = "cpu") -> Any:
        """New memory that other processes can see."""
        return cls(mica.empty(size, dtype=_C.uint8, device=device)).share_memory_()

    def _share_fd_cpu_(self) -> tuple[int, int]:
        """Shares the memory; a descriptor of it, which is the caller's, and its size."""
        import os

        from mica._memory import shared as _shared_memory

        handle = _shared_memory.handle_of(self.share_memory_()._owner)
        if handle is None or handle.segment.fd < 0:
            raise RuntimeError("The storage's shared memory has no descriptor.")
        return os.dup(handle.segment.fd), self.nbytes()

    @classmethod
    def _new_shared_fd_cpu(cls, fd: int, size: int) -> Any:
        """The memory that a descriptor stands for."""
        import os

        from mica._memory import shared as memory

        return cls(memory.lease(memory.Handle(memory.Segment(os.dup(fd), size), size)))

    def _write_file(self, f: Any, is_real_file: bool, save_size: bool, element_size: int) -> None:
        """Writes the number of elements if asked, and the bytes."""
        if save_size:
            f.write((self.nbytes() // element_size).to_bytes(8, "little"))
        f.write(bytes_of(self._flat))

    @classmethod
    def _new_with_file(cls, f: Any, element_size: int) -> Any:
        """What _write_file() wrote with its size."""
        count = int.from_bytes(f.read(8), "little")
        content = f.read(count * element_size)
        if len(content) != count * element_size:
            raise RuntimeError(f"The file ends within a storage of {count} elements of {element_size} bytes.")
        return cls(_made(content, _C.uint8))


class _LegacyKind(type):
    """Storages of the dtype are instances, as in torch."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, TypedStorage) and instance.dtype == getattr(_C, cls._own_dtype)  # type: ignore[attr-defined]


def _legacy(name: str, dtype: str) -> type:
    text = f"A `TypedStorage` whose elements are {dtype}: torch's old name of it."
    return _LegacyKind(
        name, (TypedStorage,), {"_own_dtype": dtype, "__doc__": text, "__module__": "mica.storage"}
    )


for _name, _dtype in _TYPES.items():
    globals()[_name] = _legacy(_name, _dtype)
Storage = globals()["FloatStorage"]
