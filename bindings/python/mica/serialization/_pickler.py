"""The pickler of checkpoints: writes names of Mica as torch's, and tensors as places in storages.

Tensors are calls of torch._utils._rebuild_tensor_v2 over storages named by number, so that both libraries
read what either writes. The storages themselves are written beside the pickle, by _zip_writer.py or
_legacy_writer.py.
"""

from __future__ import annotations

import contextlib
import pickle
from collections import OrderedDict
from types import FunctionType
from typing import Any

import mica
from mica._C import Tensor
from mica._torch_names import homes, table
from mica.storage import _TYPES, TypedStorage, UntypedStorage, _Memory

STORAGE_OF = {dtype: name for name, dtype in _TYPES.items()}


class _Name:
    """A global that is written by its name in torch."""

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name

    def __call__(self) -> None:
        """Never called: pickle asks that what makes an object can be."""


def dtype_name(dtype: Any) -> str:
    """float32 for mica.float32."""
    return repr(dtype).rpartition(".")[2]


class Pickler(pickle._Pickler):  # type: ignore[name-defined,misc]
    """Collects the storages that it meets, by number."""

    def __init__(self, file: Any, protocol: int, legacy: bool = False) -> None:
        super().__init__(file, protocol)
        self._more = (None,) if legacy else ()  # the old format says of what a storage is a view
        self.storages: dict[Any, tuple[str, Tensor, str]] = {}

    def persistent_id(self, obj: Any) -> Any:
        if isinstance(obj, _Memory):
            kind = None if isinstance(obj, UntypedStorage) else STORAGE_OF.get(dtype_name(obj.dtype))
            flat = obj._flat if kind else obj._flat.view(mica.uint8)
            obj = self.storage(flat, kind or "UntypedStorage")
        return obj.id if isinstance(obj, _Storage) else None

    def storage(self, flat: Tensor, kind: str) -> _Storage:
        """The reference of a storage, by its address; `flat` views all of it."""
        address: Any = flat._storage_ptr() or id(flat)
        if flat.numel() == 0:  # no data that could be of two types
            address = address, kind
        key, _, first = self.storages.setdefault(address, (str(len(self.storages)), flat, kind))
        if first != kind:
            raise RuntimeError(
                "Cannot save multiple tensors or storages that view the same data as different types "
                f"({first} and {kind}); save a clone() of one of them."
            )
        location = str(flat.device) if flat.device.type != "cpu" else "cpu"
        if kind == "UntypedStorage" and self._more:
            kind = "ByteStorage"  # readers of the old format ask the class for its dtype
        home = "torch.storage" if kind == "UntypedStorage" else "torch"
        return _Storage(("storage", _Name(home, kind), key, location, flat.numel(), *self._more))

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, Tensor):
            own = mica._C._is_wrapper(obj) and type(obj).__reduce_ex__ is not Tensor.__reduce_ex__
            return NotImplemented if own else self._tensor(obj)
        if isinstance(obj, mica.Size):
            return (_Name("torch", "Size"), (tuple(obj),))
        if isinstance(obj, mica.device):
            index = () if obj.index is None else (obj.index,)
            return (_Name("torch", "device"), (obj.type, *index))
        if isinstance(obj, mica.layout):
            return (_Name("torch.serialization", "_get_layout"), (f"torch.{dtype_name(obj)}",))
        return NotImplemented

    def _tensor(self, t: Tensor) -> Any:
        if type(t) is mica.nn.Parameter:
            plain = _Plain(t)
            state = dict(t.__dict__)
            if state:
                args = (plain, t.requires_grad, OrderedDict(), state)
                return (_Name("torch._utils", "_rebuild_parameter_with_state"), args)
            return (_Name("torch._utils", "_rebuild_parameter"), (plain, t.requires_grad, OrderedDict()))
        if type(t) is not Tensor or t.__dict__:
            args = (
                _Name("torch._utils", "_rebuild_tensor_v2"),
                type(t),
                _PlainArguments(t),
                dict(t.__dict__),
            )
            return (_Name("torch._tensor", "_rebuild_from_type_v2"), args)
        return self._plain(t)

    def _plain(self, t: Tensor) -> Any:
        size, stride, grad = tuple(t.shape), t.stride(), t.requires_grad
        if t.device.type == "meta":
            return (_Name("torch._utils", "_rebuild_meta_tensor_no_storage"), (t.dtype, size, stride, grad))
        name = dtype_name(t.dtype)
        kind = STORAGE_OF.get(name)
        place: tuple[Any, ...] = (t.storage_offset(), size, stride, grad, OrderedDict())
        lazy = [{"conj": t.is_conj(), "neg": t.is_neg()}] if t.is_conj() or t.is_neg() else []
        if kind is not None:
            return (
                _Name("torch._utils", "_rebuild_tensor_v2"),
                (self.storage(TypedStorage(t)._flat, kind), *place, *lazy),
            )
        flat = UntypedStorage(t)._flat
        reference = self.storage(flat, "UntypedStorage")
        return (_Name("torch._utils", "_rebuild_tensor_v3"), (reference, *place, t.dtype, *lazy))

    def save_global(self, obj: Any, name: str | None = None) -> None:
        written = _torch_name(obj)
        if written is None:
            super().save_global(obj, name)
            return
        module, name = written
        self.write(pickle.GLOBAL + f"{module}\n{name}\n".encode())
        self.memoize(obj)

    def _save_name(self, obj: _Name) -> None:
        key = (obj.module, obj.name)
        known = self._names.get(key)
        if known is not None:
            self.write(self.get(self.memo[id(known)][0]))
            return
        self._names[key] = obj
        self.write(pickle.GLOBAL + f"{obj.module}\n{obj.name}\n".encode())
        self.memoize(obj)

    def _save_plain(self, obj: _Plain) -> None:
        self.save_reduce(*self._plain(obj.tensor))

    def _save_plain_arguments(self, obj: _PlainArguments) -> None:
        self.save(self._plain(obj.tensor)[1])

    @property
    def _names(self) -> dict[Any, _Name]:
        return self.__dict__.setdefault("names", {})  # type: ignore[no-any-return]

    dispatch = {
        **pickle._Pickler.dispatch,  # type: ignore[attr-defined]
        FunctionType: save_global,
        _Name: _save_name,
        mica.dtype: lambda self, obj: self._save_name(_Name("torch", dtype_name(obj))),
    }


class _Storage:
    def __init__(self, id: tuple[Any, ...]) -> None:
        self.id = id


class _Plain:
    """The tensor inside a Parameter."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor


class _PlainArguments(_Plain):
    """What the tensor inside a subclass is rebuilt of."""


Pickler.dispatch[_Plain] = Pickler._save_plain
Pickler.dispatch[_PlainArguments] = Pickler._save_plain_arguments


def _torch_name(obj: Any) -> tuple[str, str] | None:
    """The module and name in torch of a class or function of Mica, as torch itself would write them;
    None for any other."""
    module = getattr(obj, "__module__", None) or ""
    if module.split(".")[0] not in ("mica", "torch"):
        return None
    name = obj.__qualname__
    for spelled in ("torch.nn", "torch.optim", "torch", module.replace("mica", "torch", 1)):
        with contextlib.suppress(Exception):
            if table.resolve(f"{spelled}.{name}") is obj:
                return homes.home(spelled, name) or spelled, name
    return None
