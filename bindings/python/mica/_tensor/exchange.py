"""Tensors over the memory of others: arrays, buffers, files, DLPack."""

from __future__ import annotations

from mica import _C, _devices
from mica._C import Tensor
from mica._interception.function_modes import install as _install
from mica._tensor import dlpack

TYPE_CHECKING = False  # importing typing takes as long as all of mica
if TYPE_CHECKING:
    from typing import Any

__all__ = ["asarray", "from_dlpack", "from_file", "frombuffer", "to_dlpack"]


def _sharing(obj: Any, dtype: Any) -> Tensor | None:
    """A tensor over the memory of `obj`; None where it has none to share. A buffer's bytes are read as `dtype`."""
    if isinstance(obj, Tensor):
        return obj
    if type(obj).__name__ == "PyCapsule":
        return _C._from_dlpack(obj, None)
    if _is_numpy(obj):
        return _C.from_numpy(obj) if hasattr(obj, "__setitem__") else None
    if hasattr(obj, "__dlpack__"):
        return from_dlpack(obj)
    try:
        view = memoryview(obj)
    except TypeError:
        return None
    return frombuffer(view, dtype=_C.get_default_dtype() if dtype is None else dtype)


def _is_numpy(obj: Any) -> bool:
    """Whether it is an array or a number of NumPy's."""
    return any(kind.__module__ == "numpy" for kind in type(obj).__mro__)


def _check_alias(shared: Tensor | None, obj: Any, dtype: Any, device: Any) -> None:
    """asarray(copy=False) of what cannot share its memory is refused."""
    if shared is None:
        if _is_numpy(obj):
            raise RuntimeError(
                "can't alias NumPy scalars. Leave copy=False out, or make an array of the number."
            )
        raise ValueError(
            f"can't alias arbitrary sequence into a tensor: an object of type ({type(obj).__name__}) has no memory to share."
        )
    place = shared.device if device is None else _C.device(device)
    if place != shared.device:
        raise ValueError(f"can't alias tensor from device '{shared.device}' to '{place}'.")
    if dtype not in (None, shared.dtype):
        raise ValueError(f"can't alias tensor with dtype '{shared.dtype}' into dtype '{dtype}'.")


def asarray(
    obj: Any, *, dtype: Any = None, device: Any = None, copy: bool | None = None, requires_grad: bool = False
) -> Tensor:
    """Makes a tensor of an object, over the object's memory where it can.

    As `torch.asarray`.

    Args:
        obj (Any): A tensor, a NumPy array, an object with DLPack or the buffer protocol, or numbers in
            lists. The bytes of a buffer are read as elements of `dtype`, or of the default dtype.
        dtype (dtype, optional): Of the result. Default: None, the object's.
        device (str or device, optional): Of the result. Default: None, the object's.
        copy (bool, optional): True copies in any case; False raises where the memory cannot be shared.
            Default: None, shared if it can be.
        requires_grad (bool): Whether gradients are recorded. Default: False.

    Returns:
        Tensor: The tensor.

    Raises:
        ValueError: `copy` is False, and the object has no memory to share or another dtype or device.
        RuntimeError: `copy` is False, and the object is a number of NumPy's.

    Example:
        >>> import array
        >>> numbers = array.array("f", [1.0, 2.0])
        >>> x = mica.asarray(numbers)
        >>> numbers[0] = 5.0
        >>> x
        tensor([5., 2.])
    """
    shared = None if copy and _is_numpy(obj) else _sharing(obj, dtype)
    if copy is False:
        _check_alias(shared, obj, dtype, device)
    if shared is None or copy:
        return _C.tensor(
            obj if shared is None else shared, dtype=dtype, device=device, requires_grad=requires_grad
        )
    result = _C.as_tensor(shared, dtype=dtype, device=device)
    return result.requires_grad_() if requires_grad else result


def frombuffer(
    buffer: Any, *, dtype: Any, count: int = -1, offset: int = 0, requires_grad: bool = False
) -> Tensor:
    """Makes a vector over the memory of an object with the buffer protocol: bytes, an array, a mapped file.

    As `torch.frombuffer`.

    Args:
        buffer (bytes-like): The object; it must not be written to where it is read-only.
        dtype (dtype): As what its bytes are read.
        count (int): Elements; -1 for all that are left. Default: -1.
        offset (int): The byte that they begin at. Default: 0.
        requires_grad (bool): Whether gradients are recorded. Default: False.

    Returns:
        Tensor: `(count,)`.

    Raises:
        ValueError: The object has no buffer, it or `count` is 0 long, the offset is out of range, or
            what is left does not hold `count` elements, or a whole number of them.

    Example:
        >>> mica.frombuffer(bytearray([1, 0, 2, 0]), dtype=mica.int16)
        tensor([1, 2], dtype=mica.int16)
    """
    try:
        view = memoryview(buffer).cast("B")
    except TypeError:
        raise ValueError(
            f"object does not implement Python buffer protocol. It is of type ({type(buffer)})."
        ) from None
    if len(view) == 0 or count == 0:
        raise ValueError(f"both buffer length ({len(view)}) and count ({count}) must not be 0.")
    itemsize = dtype.itemsize
    left = len(view) - offset
    if offset < 0 or left <= 0:
        raise ValueError(
            f"offset ({offset} bytes) must be non-negative and no greater than buffer length ({len(view)} bytes) minus 1."
        )
    if count < 0 and left % itemsize != 0:
        raise ValueError(
            f"buffer length ({left} bytes) after offset ({offset} bytes) must be a multiple of element size "
            f"({itemsize})."
        )
    size = left // itemsize if count < 0 else count
    if size * itemsize > left:
        raise ValueError(
            f"requested buffer length ({count} * {itemsize} bytes) after offset ({offset} bytes) must not be greater "
            f"than actual buffer length ({len(view)} bytes)."
        )
    result = _C._from_buffer(view[offset : offset + size * itemsize]).view(dtype)
    return result.requires_grad_() if requires_grad else result


def from_file(
    filename: str,
    shared: bool | None = None,
    size: int = 0,
    *,
    dtype: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """Maps elements of a file as a vector.

    As `torch.from_file`.

    Args:
        filename (str): Path of the file.
        shared (bool, optional): What is written goes to the file, which is made longer if need be.
            Default: None, it is kept private.
        size (int): How many elements are mapped. Default: 0.
        dtype (dtype, optional): Of the elements. Default: the default dtype.
        device (device, optional): Must be the CPU. Default: None.
        pin_memory (bool): Ignored. Default: False.
        requires_grad (bool): Whether gradients are recorded. Default: False.

    Returns:
        Tensor: `(size,)`.

    Raises:
        RuntimeError: The file is too short and `shared` is not true, or the device is another.
        FileNotFoundError: There is no file.

    Example:
        >>> import tempfile
        >>> with tempfile.NamedTemporaryFile() as file:
        ...     x = mica.from_file(file.name, shared=True, size=2)
        ...     x[1] = 7
        ...     mica.from_file(file.name, size=2)
        tensor([0., 7.])
    """
    import mica
    from mica.storage import UntypedStorage

    if device is not None and _C.device(device).type != "cpu":
        raise RuntimeError(f"A file is mapped into the CPU's memory; the device ({device}) is another.")
    result = mica.empty(0, dtype=dtype)
    held = UntypedStorage.from_file(filename, bool(shared), size * result.itemsize)
    result.set_(held, 0, (size,))  # type: ignore[call-overload]
    return result.requires_grad_() if requires_grad else result


def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """Makes a tensor over the memory of another library's tensor, by DLPack.

    As `torch.from_dlpack`.

    Args:
        ext_tensor (Any): An object with `__dlpack__`, a NumPy array for instance, or a DLPack capsule. One on a
            device is ready for the device's current stream; of a capsule its maker has to see to that.
        device (str or device, optional): Copies to it. Where several backends have the object's type of device,
            says which one is meant. Default: None, the object's.
        copy (bool, optional): Asks the other library to copy (True), or never to (False), so that `device` must be
            where the object is. Default: None, as it likes.

    Returns:
        Tensor: The tensor.

    Raises:
        BufferError: DLPack has no form for the object, an array of texts for instance, or no backend, or more
            than one, has its type of device; or it is on another device than `device` and `copy` is False.

    Example:
        >>> import numpy as np
        >>> array = np.zeros(2)
        >>> x = mica.from_dlpack(array)
        >>> array[0] = 5
        >>> x
        tensor([5., 0.], dtype=mica.float64)
    """
    backend = None if device is None else _C.device(device).type
    if hasattr(ext_tensor, "__dlpack__"):
        result = dlpack.from_object(ext_tensor, backend, copy)
    else:
        result = _C._from_dlpack(ext_tensor, backend)
    if device is None:
        return result
    if copy is False and result.device != (place := _devices._device(device)):
        raise BufferError(
            f"from_dlpack: the object is on the device ({result.device}), and device=({place}) with copy=False asks for "
            "its memory there; leave copy=False out to copy it."
        )
    return result.to(device)


def to_dlpack(tensor: Tensor) -> Any:
    """Makes a DLPack capsule of a tensor, which another library takes once.

    As `torch.to_dlpack`. Better hand the tensor itself to the other library's `from_dlpack`.

    Args:
        tensor (Tensor): The tensor.

    Returns:
        PyCapsule: Over the tensor's memory.

    Raises:
        BufferError: The tensor requires gradients; use `x.detach()`.

    Example:
        >>> capsule = mica.to_dlpack(mica.ones(2))
        >>> mica.from_dlpack(capsule)
        tensor([1., 1.])
    """
    return _C._to_dlpack(tensor, False, False)


_install(globals())
