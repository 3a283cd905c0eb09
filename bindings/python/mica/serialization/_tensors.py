"""Pickling and deep copies of tensors.

A tensor is pickled as its storage's bytes and its place in it, so tensors that
share a storage share it again after loading when they lie in one pickle. Loading
calls _rebuild_tensor and nothing else.
"""

from __future__ import annotations

from typing import Any

import mica
from mica import _C
from mica._C import Tensor
from mica._tensor.lazy import memory_of, read_as

_pickled: dict[int, Any] = {}


def _storage_tensor(t: Tensor) -> Tensor:
    """The whole storage as a flat tensor of the dtype."""
    count = t._storage_nbytes() // t.itemsize
    return memory_of(t).detach().as_strided((count,), (1,), 0)


class _SharedBytes(bytearray):
    """A storage's bytes. Pickle's memo keeps it once, and the cache can forget it."""

    __slots__ = ("__weakref__",)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return (_SharedBytes, (bytes(self),))


def _storage_bytes(t: Tensor) -> _SharedBytes:
    import weakref

    key = t._storage_ptr()
    cached = _pickled.get(key)
    held = cached() if cached is not None else None
    flat = _storage_tensor(t).cpu()
    content = bytes(memoryview(_C._TensorBuffer(_view_bytes(flat))).cast("B")) if flat.numel() else b""
    if held is not None and held == content:
        return held
    shared = _SharedBytes(content)
    _pickled[key] = weakref.ref(shared, lambda _: _pickled.pop(key, None))
    return shared


def _view_bytes(flat: Tensor) -> Tensor:
    return flat.view(mica.uint8) if flat.dtype != mica.uint8 else flat


def _rebuild_tensor(
    storage: bytes,
    dtype: Any,
    offset: int,
    size: tuple[int, ...],
    stride: tuple[int, ...],
    device: str,
    requires_grad: bool,
    conj: bool = False,
    neg: bool = False,
) -> Tensor:
    key = id(storage)
    flat = _loaded.get(key)
    if flat is None or flat[0] is not storage:
        source = mica.frombuffer(storage, dtype=dtype) if len(storage) else mica.empty(0, dtype=dtype)
        flat = (storage, source)
        _remember(key, flat)
    base = flat[1].view(dtype) if flat[1].dtype != dtype else flat[1]
    result = read_as(base.as_strided(size, stride, offset), conj, neg)
    if device != "cpu":
        result = result.to(device)
    result = result.detach()
    if requires_grad:
        result.requires_grad_()
    return result


_loaded: dict[int, tuple[Any, Tensor]] = {}


def _remember(key: int, flat: tuple[Any, Tensor]) -> None:
    _loaded[key] = flat
    while len(_loaded) > 8:
        _loaded.pop(next(iter(_loaded)))


def _rebuild_subclass(cls: type[Tensor], data: Tensor, requires_grad: bool, state: dict[str, Any]) -> Tensor:
    result = Tensor._make_subclass(cls, data, requires_grad)
    result.__dict__.update(state)
    return result


def _rebuild_meta(dtype: Any, size: tuple[int, ...], stride: tuple[int, ...], requires_grad: bool) -> Tensor:
    result = mica.empty_strided(size, stride, dtype=dtype, device="meta")
    return result.requires_grad_() if requires_grad else result


def _rebuild_wrapper(
    cls: Any,
    size: tuple[int, ...],
    stride: tuple[int, ...],
    offset: int,
    dtype: Any,
    device: str,
    requires_grad: bool,
    state: dict[str, Any],
) -> Tensor:
    result = Tensor._make_wrapper_subclass(
        cls, size, stride, offset, dtype=dtype, device=device, requires_grad=requires_grad
    )
    result.__dict__.update(state)
    return result


def reduce_tensor(self: Tensor) -> Any:
    """What Tensor.__reduce_ex__ returns. An interior tensor comes back as a leaf that requires grad."""
    if self.device.type == "meta":
        return (_rebuild_meta, (self.dtype, tuple(self.shape), self.stride(), self.requires_grad))
    if mica._C._is_wrapper(self):
        layout = (tuple(self.shape), self.stride(), self.storage_offset(), self.dtype, str(self.device))
        return (_rebuild_wrapper, (type(self), *layout, self.requires_grad, dict(self.__dict__)))
    arguments = (
        _storage_bytes(self),
        self.dtype,
        self.storage_offset(),
        tuple(self.shape),
        self.stride(),
        str(self.device),
        self.requires_grad and type(self) is Tensor and not self.__dict__,
    )
    if self.is_conj() or self.is_neg():
        arguments += (self.is_conj(), self.is_neg())
    if type(self) is Tensor and not self.__dict__:
        return (_rebuild_tensor, arguments)
    return (_rebuild_subclass, (type(self), _Rebuilt(arguments), self.requires_grad, dict(self.__dict__)))


class _Rebuilt:
    """Pickles as the plain tensor inside a subclass's state."""

    def __init__(self, arguments: tuple[Any, ...]) -> None:
        self.arguments = arguments

    def __reduce__(self) -> Any:
        return (_rebuild_tensor, self.arguments)


def clone_storage(t: Tensor, memo: dict[int, Any]) -> Tensor:
    """A deep copy that shares storages with other copies of the same memo."""
    if t.device.type == "meta":
        return mica.empty_strided(t.shape, t.stride(), dtype=t.dtype, device="meta")
    key = ("storage", t._storage_ptr())
    flat = memo.get(key)  # type: ignore[call-overload]
    if flat is None:
        flat = _storage_tensor(t).clone()
        memo[key] = flat  # type: ignore[index]
    base = flat if flat.dtype == t.dtype else flat.view(t.dtype)
    copy = base.as_strided(t.shape, t.stride(), t.storage_offset()).detach()
    return read_as(copy, t.is_conj(), t.is_neg())
