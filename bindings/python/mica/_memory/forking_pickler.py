"""How tensors go from process to process: where their memory is, not what stands in it.

Importing this lets the pickler of multiprocessing (queues, pipes, arguments of processes) send
tensors, parameters and storages so. A tensor that is not in shared memory yet is moved there, and
every view of it too, so that both processes see what either writes.
"""

from __future__ import annotations

from multiprocessing.reduction import ForkingPickler
from typing import Any

import mica
from mica import _C
from mica._C import Tensor
from mica._memory import shared as memory
from mica._tensor.lazy import read_as
from mica.serialization._tensors import _rebuild_subclass, reduce_tensor as _by_value
from mica.storage import TypedStorage, UntypedStorage, _loaded, _Memory


class StorageWeakRef:
    """A storage that it does not keep alive: two of one storage are equal, also when it is gone."""

    __slots__ = ("cdata",)

    def __init__(self, storage: _Memory) -> None:
        self.cdata = storage._owner._storage_number()

    @classmethod
    def from_weakref(cls, cdata: int) -> StorageWeakRef:
        made = cls.__new__(cls)
        made.cdata = cdata
        return made

    def expired(self) -> bool:
        """Whether no tensor holds the storage any more."""
        return not _C._storage_lives(self.cdata)

    def __hash__(self) -> int:
        return self.cdata

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StorageWeakRef) and self.cdata == other.cdata


def rebuild_tensor(
    flat: Tensor,
    dtype: Any,
    offset: int,
    size: tuple[int, ...],
    stride: tuple[int, ...],
    requires_grad: bool,
    conj: bool,
    neg: bool,
) -> Tensor:
    """The tensor that a process sent, over the bytes that it opened."""
    whole = flat[: flat.numel() // dtype.itemsize * dtype.itemsize]
    made = read_as(whole.view(dtype).as_strided(size, stride, offset).detach(), conj, neg)
    return made.requires_grad_() if requires_grad else made


def check_leaf(t: Tensor) -> None:
    """Refuses a tensor with history."""
    if t.requires_grad and not t.is_leaf:
        raise RuntimeError(
            "A tensor with a history cannot be sent to another process, for autograd does not go across processes; "
            "send x.detach() for its values."
        )


def placed(t: Tensor, handle: Any) -> Any:
    """The reduction of a tensor over the memory that `handle` tells of."""
    place = (
        t.dtype,
        t.storage_offset(),
        tuple(t.shape),
        t.stride(),
        t.requires_grad,
        t.is_conj(),
        t.is_neg(),
    )
    return (rebuild_tensor, (handle, *place))


def reduce_tensor(t: Tensor) -> Any:
    """What multiprocessing's pickler writes for a tensor."""
    check_leaf(t)
    if type(t) is not Tensor:
        return (_rebuild_subclass, (type(t), t.detach(), t.requires_grad, dict(t.__dict__)))
    if t.device.type != "cpu" or mica._C._is_wrapper(t) or not t._storage_nbytes():
        return _by_value(t)
    memory.share(t)
    return placed(t, memory.handle_of(t))


def reduce_storage(storage: _Memory) -> Any:
    """What multiprocessing's pickler writes for a storage."""
    return (_loaded, (type(storage), storage._flat))


def init_reductions() -> None:
    """Makes Python's processes, queues and pipes send tensors by their memory.

    As `torch.multiprocessing.reductions.init_reductions`. Importing `mica.multiprocessing` has done it.

    Example:
        >>> mica.multiprocessing.init_reductions()
    """
    for kind in (Tensor, mica.nn.Parameter, mica.nn.Buffer):
        ForkingPickler.register(kind, reduce_tensor)
    for kind in (UntypedStorage, TypedStorage, *TypedStorage.__subclasses__()):
        ForkingPickler.register(kind, reduce_storage)


init_reductions()
