"""Makes what the rules of serialization/_pickle/rules.py allow: tensors, their attributes, devices, containers.

Arguments are of the kinds that the rules ask for; what depends on several of them is checked here. Those
that take a machine pay there for work beyond the file's own bytes; it is None for a trusted file.
"""

from __future__ import annotations

import math
import types
from typing import Any

import mica
from mica import _C
from mica._C import Tensor
from mica._tensor.lazy import read_as
from mica.serialization._pickle import kinds
from mica.serialization._pickle.machine import Machine, Refused, shown
from mica.storage import TypedStorage, _Memory

DEVICES = frozenset("cpu meta cuda mps xpu hpu xla ipu mtia privateuseone vulkan maia".split())  # noqa: SIM905


def shaped(flat: Tensor, offset: Any, size: Any, stride: Any) -> Tensor:
    """A view of a storage, checked before it is made."""
    size, stride = tuple(size), tuple(stride)
    if not all(type(n) is int and 0 <= n < kinds.INT64 for n in (offset, *size, *stride)) or len(size) != len(
        stride
    ):
        raise Refused(
            f"a tensor has the size ({shown(size)}), the stride ({shown(stride)}) and the offset ({shown(offset)})."
        )
    if math.prod(n or 1 for n in size) >= kinds.INT64:
        raise Refused(f"a tensor of the size ({shown(size)}) has more elements than 64 bits count.")
    if 0 in size:
        return flat.new_empty(size)
    last = offset + sum((n - 1) * s for n, s in zip(size, stride))
    if last >= flat.numel():
        raise Refused(
            f"a tensor of size ({shown(size)}) and stride ({shown(stride)}) at offset ({offset}) needs {last + 1} "
            f"elements; its storage has {flat.numel()}."
        )
    return flat.as_strided(size, stride, offset).detach()


def typed_tensor(
    storage: Any,
    offset: Any,
    size: Any,
    stride: Any,
    grad: Any = False,
    hooks: Any = None,
    metadata: Any = None,
) -> Tensor:
    """A tensor over a storage of a dtype."""
    if not isinstance(storage, TypedStorage):
        raise Refused(f"a tensor is built on {shown(storage)}, not on a storage of a dtype.")
    flat = storage._flat
    conj, neg = (bool(metadata) and metadata.get(name) is True for name in ("conj", "neg"))
    if (conj and not flat.is_complex()) or (neg and flat.dtype == mica.bool):
        raise Refused(f"elements of the dtype ({flat.dtype}) are {'conjugated' if conj else 'negated'}.")
    made = read_as(shaped(flat, offset, size, stride), conj, neg)
    return made.requires_grad_() if grad else made


def untyped_tensor(
    storage: Any,
    offset: Any,
    size: Any,
    stride: Any,
    grad: Any,
    hooks: Any,
    dtype: Any,
    metadata: Any = None,
) -> Tensor:
    """A tensor over a storage's bytes."""
    if not isinstance(dtype, mica.dtype) or not isinstance(storage, _Memory):
        raise Refused("a tensor is built without a dtype or without a storage.")
    flat = storage._flat.view(mica.uint8)
    whole = flat[: flat.numel() // dtype.itemsize * dtype.itemsize].view(dtype)
    return typed_tensor(TypedStorage._over(whole), offset, size, stride, grad, hooks, metadata)


def meta_tensor(dtype: Any, size: Any, stride: Any, grad: Any) -> Tensor:
    """A tensor without memory."""
    extent = 1 + sum((n - 1) * s for n, s in zip(size, stride))
    if (
        len(size) != len(stride)
        or max(math.prod(n or 1 for n in size), extent) * dtype.itemsize >= kinds.INT64
    ):
        raise Refused(f"a meta tensor has the size ({shown(size)}) and the stride ({shown(stride)}).")
    made = mica.empty_strided(tuple(size), tuple(stride), dtype=dtype, device="meta")
    return made.requires_grad_() if grad else made


def parameter(data: Any, grad: Any, hooks: Any, state: Any = None) -> Tensor:
    """A Parameter, with the attributes of a state."""
    return with_state(mica.nn.Parameter(data, bool(grad)), state)


def new_parameter(data: Any = None, grad: Any = True) -> Tensor:
    """A Parameter as its class is called."""
    return mica.nn.Parameter(data, bool(grad))


def from_type(machine: Any, function: Any, cls: Any, arguments: Any, state: Any) -> Any:
    """A tensor of a subclass: a call within the call."""
    made = function(*arguments) if machine is None else function.run(machine, arguments)
    return with_state(of_type(cls, made), state)


def of_type(cls: Any, made: Tensor) -> Tensor:
    """A tensor as one of a subclass."""
    if isinstance(cls, type) and issubclass(cls, Tensor) and cls is not Tensor:
        return Tensor._make_subclass(cls, made, made.requires_grad)
    return made


def with_state(made: Any, state: Any) -> Any:
    """Gives a tensor the attributes of a state: a dictionary, or one and that of slots.

    An attribute may not hide what a tensor is or does; a slot must be one of its class.
    """
    named, slots = state if isinstance(state, tuple) else (state, None)
    bases = _library_bases(type(made)) if named else []
    for name, value in (named or {}).items():
        if name.startswith("__") or any(name in vars(base) for base in bases):
            raise Refused(f"an attribute of the name {shown(name)} would hide what every tensor has or is.")
        made.__dict__[name] = value
    for name, value in (slots or {}).items():
        place = next((vars(base)[name] for base in type(made).__mro__ if name in vars(base)), None)
        if not isinstance(place, types.MemberDescriptorType):
            raise Refused(f"{type(made).__name__} has no slot of the name {shown(name)}.")
        place.__set__(made, value)
    return made


def _library_bases(cls: type) -> list[type]:
    return [
        base
        for base in cls.__mro__
        if base is object or base.__module__.partition(".")[0] in ("mica", "torch")
    ]


def layout(name: Any) -> Any:
    """A layout by its name in torch."""
    found = vars(_C).get(name.removeprefix("torch.")) if name.startswith("torch.") else None
    if not isinstance(found, mica.layout):
        raise Refused(f"the file refers to the layout ({shown(name)}), which Mica lacks.")
    return found


def device(name: Any, index: Any = None) -> Any:
    """A device by its name, also where no plugin provides it: nothing is put there."""
    text = name if index is None else f"{name}:{index}"
    try:
        return mica.device(text)
    except RuntimeError as error:
        from mica import _devices

        kind, _, number = text.partition(":")
        if kind not in DEVICES or not (number or "0").isdecimal():
            raise Refused(f"the file refers to the device ({shown(text)}): {error}") from error
        _devices.reserve(kind)
        return mica.device(text)


def encoded(text: Any, encoding: Any = "latin1") -> bytes:
    """The bytes of a text, as pickles before protocol 3 write them."""
    if encoding not in ("latin1", "latin-1", "utf-8", "ascii"):
        raise Refused(f"a text is encoded as ({shown(encoding)}).")
    return text.encode(encoding)  # type: ignore[no-any-return]


def bytearray_of(content: Any = b"", encoding: Any = None) -> bytearray:
    """A bytearray of bytes, or of a text."""
    return bytearray(encoded(content, encoding) if isinstance(content, str) else content)


def filled(cls: Any, most: int = 1) -> Any:
    """Makes a dictionary, whose keys are put in one by one: their collisions are paid for."""

    def fill(machine: Machine, *arguments: Any) -> Any:
        *first, items = arguments if len(arguments) == most else (*arguments, ())
        made = cls(*first)
        for key, value in items.items() if isinstance(items, dict) else items:
            machine.put(made, key, value)
        return made

    return fill


def set_of(machine: Machine, members: Any = ()) -> set[Any]:
    """A set whose members are paid for."""
    return machine.members(members)


def frozenset_of(machine: Machine, members: Any = ()) -> frozenset[Any]:
    """A frozenset whose members are paid for."""
    machine.spend(kinds.ENTRY * len(members))  # a set beside it is filled first
    machine.members(members)
    return frozenset(list(members))  # in the order that was paid for
