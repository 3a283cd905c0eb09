"""Tensors over the memory of others: arrays, buffers, files, DLPack."""

from __future__ import annotations

from mica import _C
from mica._C import Tensor
from mica._interception.function_modes import install as _install

TYPE_CHECKING = False  # importing typing takes as long as all of mica
if TYPE_CHECKING:
    from typing import Any

__all__ = ["asarray", "from_dlpack", "from_file", "frombuffer", "to_dlpack"]


def _sharing(obj: Any, dtype: Any) -> Tensor | None:
    """A tensor over the memory of `obj`; None where it has none to share. A buffer's bytes are read as `dtype`."""
    if isinstance(obj, Tensor):
        return obj
    if type(obj).__name__ == "PyCapsule":
        return _C._from_dlpack(obj)
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
    """A tensor of `obj`; shares its memory where it can, unless copy=True, and must with copy=False.

    The bytes of an object with the buffer protocol that is no array are read as elements of `dtype`, or of
    the default dtype.
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
    """A 1-d tensor that shares the memory of an object with the buffer protocol."""
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
    """The first `size` elements of a file, mapped: written back to it if `shared`, else kept private."""
    import mica
    from mica.storage import UntypedStorage

    if device is not None and _C.device(device).type != "cpu":
        raise RuntimeError(f"A file is mapped into the CPU's memory; the device ({device}) is another.")
    result = mica.empty(0, dtype=dtype)
    held = UntypedStorage.from_file(filename, bool(shared), size * result.itemsize)
    result.set_(held, 0, (size,))  # type: ignore[call-overload]
    return result.requires_grad_() if requires_grad else result


def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor that shares the memory of an object with __dlpack__, or of a capsule."""
    if not hasattr(ext_tensor, "__dlpack__"):
        return _C._from_dlpack(ext_tensor)
    kwargs: dict[str, Any] = {"max_version": (1, 0)}
    if copy is not None:
        kwargs["copy"] = copy
    try:
        capsule = ext_tensor.__dlpack__(**kwargs)
    except TypeError:
        capsule = ext_tensor.__dlpack__()
    result = _C._from_dlpack(capsule)
    return result if device is None else result.to(device)


def to_dlpack(tensor: Tensor) -> Any:
    """A DLPack capsule of a tensor."""
    return _C._to_dlpack(tensor, False, False)


_install(globals())
