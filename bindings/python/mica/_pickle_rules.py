"""What the names of a checkpoint's pickle stand for, and what may be done with each.

TABLE has every name that any checkpoint may refer to. A name that can be called is a Rule, with the
kind of each argument; a class of Python's containers is itself, and CALLS has its rule. Builder is the
machine (Note [Pickles of strangers]) that works by them: it calls what has a rule and what the user
allowed by add_safe_globals(), and changes only objects that this pickle made, never a class, a function
or what a name stood for.
"""

from __future__ import annotations

import enum
import math
import re
import types
from collections import Counter, OrderedDict, defaultdict
from typing import Any

import mica
from mica import _C, _pickle_kinds as kinds
from mica._C import Tensor
from mica._pickle_kinds import (
    ANYTHING,
    BYTES,
    CONTENT,
    COUNT,
    DTYPE,
    FACTORY,
    FLAG,
    INDEX,
    ITEMS,
    LONG_SIZE,
    MEMBERS,
    NAMES,
    NUMBER,
    SHORT_TEXT,
    SIZES,
    STATE,
    STORAGE,
    TENSOR,
    TEXT,
    Kind,
)
from mica._pickle_machine import WAY_OUT, Foreign, Machine, Refused, shown
from mica.storage import _TYPES, TypedStorage, _Memory

_FAILURES = (RuntimeError, TypeError, ValueError, OverflowError, IndexError)


class NoPlace(RuntimeError):
    """No plugin provides the device of a storage."""


class Rule:
    """A function that a pickle may call, and the kinds of its arguments; the last few may be left out.

    `pays` says that the function takes the machine before them, and spends there what its work costs.
    """

    __slots__ = ("function", "kinds", "least", "path", "pays")

    def __init__(self, path: str, function: Any, *kinds: Kind, optional: int = 0, pays: bool = False) -> None:
        self.path, self.function, self.kinds = path, function, kinds
        self.least, self.pays = len(kinds) - optional, pays

    def checked(self, machine: Machine, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments, or a refusal."""
        if not self.least <= len(arguments) <= len(self.kinds):
            machine.refuse(
                f"{self.path}() takes ({self.least}) to ({len(self.kinds)}) arguments, but got ({len(arguments)})."
            )
        for place, (kind, value) in enumerate(zip(self.kinds, arguments), 1):
            if not kind.fits(machine, value):
                machine.refuse(f"argument ({place}) of {self.path}() is {shown(value)}, not {kind.words}.")
        return arguments

    def run(self, machine: Machine | None, arguments: tuple[Any, ...]) -> Any:
        """What the call gives for arguments that are checked."""
        return self.function(machine, *arguments) if self.pays else self.function(*arguments)

    def __call__(self, *arguments: Any) -> Any:
        """Called by Python's own unpickler, of a file that is trusted."""
        return self.run(None, arguments)


class StorageKind:
    """A storage class in a pickle: a dtype, or None for bytes."""

    __slots__ = ("dtype",)

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype


# ---- what the rules build
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


def _turned(machine: Any, flat: Tensor, metadata: Any) -> Tensor:
    """A storage's elements as torch says of a tensor beside its place: lazily conjugated or negated.

    Those of the storage and once, not those of the tensor, which may be expanded to any size.
    """
    conj, neg = (bool(metadata) and metadata.get(name) is True for name in ("conj", "neg"))
    if not conj and not neg:
        return flat
    known = machine.turned.setdefault(flat._storage_ptr(), {}) if machine else {}
    place = (flat.dtype, flat.numel(), conj, neg)
    if place not in known:
        if known:  # the first is as large as the storage, whose bytes the file has
            machine.spend(flat.numel() * flat.itemsize // kinds.ENTRY)
        found = flat.conj() if conj else flat
        known[place] = -found if neg else found
    return known[place]


def _typed_tensor(
    machine: Any,
    storage: Any,
    offset: Any,
    size: Any,
    stride: Any,
    grad: Any = False,
    hooks: Any = None,
    metadata: Any = None,
) -> Tensor:
    if not isinstance(storage, TypedStorage):
        raise Refused(f"a tensor is built on {shown(storage)}, not on a storage of a dtype.")
    made = shaped(_turned(machine, storage._flat, metadata), offset, size, stride)
    return made.requires_grad_() if grad else made


def _untyped_tensor(
    machine: Any,
    storage: Any,
    offset: Any,
    size: Any,
    stride: Any,
    grad: Any,
    hooks: Any,
    dtype: Any,
    metadata: Any = None,
) -> Tensor:
    if not isinstance(dtype, mica.dtype) or not isinstance(storage, _Memory):
        raise Refused("a tensor is built without a dtype or without a storage.")
    flat = storage._flat.view(mica.uint8)
    whole = flat[: flat.numel() // dtype.itemsize * dtype.itemsize].view(dtype)
    made = shaped(_turned(machine, whole, metadata), offset, size, stride)
    return made.requires_grad_() if grad else made


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


def _parameter(data: Any, grad: Any, hooks: Any, state: Any = None) -> Tensor:
    return with_state(mica.nn.Parameter(data, bool(grad)), state)


def _new_parameter(data: Any = None, grad: Any = True) -> Tensor:
    return mica.nn.Parameter(data, bool(grad))


def _from_type(machine: Any, function: Any, cls: Any, arguments: Any, state: Any) -> Any:
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
        if any(name in vars(base) for base in bases):
            raise Refused(f"an attribute of the name {shown(name)} would hide what every tensor has.")
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


def _layout(name: Any) -> Any:
    found = {f"torch.{n}": v for n, v in vars(_C).items() if isinstance(v, mica.layout)}.get(name)
    if found is None:
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


def _encoded(text: Any, encoding: Any = "latin1") -> bytes:
    if encoding not in ("latin1", "latin-1", "utf-8", "ascii"):
        raise Refused(f"a text is encoded as ({shown(encoding)}).")
    return text.encode(encoding)  # type: ignore[no-any-return]


def _bytearray(content: Any = b"", encoding: Any = None) -> bytearray:
    return bytearray(_encoded(content, encoding) if isinstance(content, str) else content)


def _filled(cls: Any, most: int = 1) -> Any:
    """Makes a dictionary, whose keys are put in one by one: their collisions are paid for."""

    def fill(machine: Machine, *arguments: Any) -> Any:
        *first, items = arguments if len(arguments) == most else (*arguments, ())
        made = cls(*first)
        for key, value in items.items() if isinstance(items, dict) else items:
            machine.put(made, key, value)
        return made

    return fill


def _set(machine: Machine, members: Any = ()) -> set[Any]:
    return machine.members(members)


def _frozenset(machine: Machine, members: Any = ()) -> frozenset[Any]:
    machine.members(members)
    return frozenset(list(members))  # in the order that was paid for


class _FromType(Rule):
    """A tensor of a subclass: a call within the call, which has a rule of its own."""

    __slots__ = ()

    def checked(self, machine: Machine, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        function, cls, inner, state = super().checked(machine, arguments)
        if not any(function is rule for rule in _TENSOR_RULES) or type(inner) is not tuple:
            machine.refuse(f"{self.path}() calls {shown(function)} with {shown(inner)}.")
        if not any(cls is known for known in (Tensor, mica.nn.Parameter, mica.nn.Buffer)):
            allowed = isinstance(machine, Builder) and machine.is_users(cls)
            if not (allowed and isinstance(cls, type) and issubclass(cls, Tensor)):
                machine.refuse(f"{self.path}() makes a tensor of {shown(cls)}.", WAY_OUT)
        return function, cls, function.checked(machine, inner), state


_PLACE = (STORAGE, COUNT, SIZES, SIZES)
_V2, _V3 = (*_PLACE, FLAG, ANYTHING, NAMES), (*_PLACE, FLAG, ANYTHING, DTYPE, NAMES)
_TENSOR_RULES = [
    Rule("torch._utils._rebuild_tensor", _typed_tensor, *_PLACE, pays=True),
    Rule("torch._utils._rebuild_tensor_v2", _typed_tensor, *_V2, optional=1, pays=True),
    Rule("torch._utils._rebuild_tensor_v3", _untyped_tensor, *_V3, optional=1, pays=True),
    Rule("torch._utils._rebuild_meta_tensor_no_storage", meta_tensor, DTYPE, SIZES, SIZES, FLAG),
]
_RULES = [
    *_TENSOR_RULES,
    Rule("torch._utils._rebuild_parameter", _parameter, TENSOR, FLAG, ANYTHING),
    Rule("torch._utils._rebuild_parameter_with_state", _parameter, TENSOR, FLAG, ANYTHING, STATE),
    _FromType(
        "torch._tensor._rebuild_from_type_v2", _from_type, ANYTHING, ANYTHING, ANYTHING, STATE, pays=True
    ),
    Rule("torch.device", device, SHORT_TEXT, INDEX, optional=1),
    Rule("torch.serialization._get_layout", _layout, SHORT_TEXT),
    Rule("_codecs.encode", _encoded, TEXT, SHORT_TEXT, optional=1),
]
# Names that are classes of Python or Mica: a value of the file may be the class itself.
_CLASSES = {
    OrderedDict: Rule("collections.OrderedDict", _filled(OrderedDict), ITEMS, optional=1, pays=True),
    Counter: Rule("collections.Counter", _filled(Counter), ITEMS, optional=1, pays=True),
    defaultdict: Rule(
        "collections.defaultdict", _filled(defaultdict, 2), FACTORY, ITEMS, optional=2, pays=True
    ),
    set: Rule("builtins.set", _set, MEMBERS, optional=1, pays=True),
    frozenset: Rule("builtins.frozenset", _frozenset, MEMBERS, optional=1, pays=True),
    complex: Rule("builtins.complex", complex, NUMBER, NUMBER, optional=2),
    mica.Size: Rule("torch.Size", mica.Size, LONG_SIZE, optional=1),
}
_PYTHON = [
    Rule("builtins.bytearray", _bytearray, CONTENT, SHORT_TEXT, optional=2),
    Rule("builtins.bytes", bytes, BYTES, optional=1),
]
# What torch's files may name and Mica has nothing for.
_LACKED = re.compile(
    r"torch\._utils\._rebuild_\w+|torch\.(q?u?int\d+\w*|float\d\w*|complex\d+|bits\w+|per_\w+)"
)
DEVICES = frozenset("cpu meta cuda mps xpu hpu xla ipu mtia privateuseone vulkan maia".split())  # noqa: SIM905


def _table() -> dict[str, Any]:
    found: dict[str, Any] = {rule.path: rule for rule in [*_RULES, *_PYTHON]}
    found |= {rule.path: cls for cls, rule in _CLASSES.items()}
    found |= {p.replace("builtins", "__builtin__"): v for p, v in found.items() if p.startswith("builtins.")}
    found |= {"torch.Tensor": Tensor}
    found |= {f"torch.{n}": v for n, v in vars(_C).items() if isinstance(v, mica.dtype)}
    for home in ("torch", "torch.storage", "torch.cuda"):
        found |= {f"{home}.{name}": StorageKind(getattr(_C, dtype)) for name, dtype in _TYPES.items()}
        found |= {f"{home}.{name}": StorageKind(None) for name in ("UntypedStorage", "TypedStorage")}
    return found


TABLE = _table()
CALLS = {id(TABLE[rule.path]): rule for rule in [*_RULES, *_PYTHON, *_CLASSES.values()]}
_PARAMETER = Rule("torch.nn.parameter.Parameter", _new_parameter, TENSOR, FLAG, optional=2)
_BY_NAME = {"torch.nn.parameter.Parameter": "Parameter", "torch.nn.parameter.Buffer": "Buffer"}


def known(path: str) -> Any:
    """What a name that any checkpoint may have stands for; None for another name."""
    if path in _BY_NAME:  # mica.nn is imported when it is needed
        return getattr(mica.nn, _BY_NAME[path])
    return TABLE.get(path)


class Builder(Machine):
    """The machine by the rules of this file, and with what the user allowed: names and their objects."""

    table: dict[str, Any] = {}  # names beside those of TABLE
    rules: dict[int, Rule] = {}

    def __init__(self, content: bytes, name: str, users: Any, **options: Any) -> None:
        super().__init__(content, name, **options)
        self._users = users
        self._users_ids = {id(value) for value in users.values()}
        self._named: set[int] = set()  # what names stood for: shared with the process
        self.turned: dict[Any, dict[Any, Tensor]] = {}  # by storage: its elements conjugated or negated

    def is_users(self, value: Any) -> bool:
        """Whether the user allowed an object, or its class for its instances."""
        return id(value) in self._users_ids

    def find_global(self, path: str) -> Any:
        found = self.table.get(path)
        if found is None:
            found = known(path)
        if found is None:
            found = self._users.find(path)
        if found is None:
            self._unallowed(path)
        self._named.add(id(found))
        return found

    def _unallowed(self, path: str) -> Any:
        from mica._tensor import LIBRARY

        path = path if len(path) < 200 else f"{path[:200]}..."
        if _LACKED.fullmatch(path):
            self.refuse(f"The file refers to {path}, a dtype or a kind of tensor that Mica lacks.")
        module, short = path.partition(".")[0], path.removeprefix("builtins.")
        if module in ("sys", "os", "posix", "nt"):
            self.refuse(f"Trying to load unsupported GLOBAL {path} whose module {module} is blocked.")
        self.refuse(
            f"Unsupported global: GLOBAL {short} was not an allowed global by default. Please use "
            f"`{LIBRARY}.serialization.add_safe_globals([{short}])` or the "
            f"`{LIBRARY}.serialization.safe_globals([{short}])` context manager to allowlist this global if you trust "
            f"this class/function. The file refers to {path}, which weights_only=True does not build.",
            WAY_OUT,
        )

    def call(self, function: Any, arguments: tuple[Any, ...]) -> Any:
        rule = self.rules.get(id(function)) or CALLS.get(id(function))
        if rule is not None:
            return self._by_rule(rule, arguments)
        if not self.is_users(function):
            self.refuse(f"Trying to call reduce for unrecognized function {shown(function)}.", WAY_OUT)
        return self._by_user(function, arguments)

    def _by_rule(self, rule: Rule, arguments: tuple[Any, ...]) -> Any:
        checked = rule.checked(self, arguments)
        try:
            return rule.run(self, checked)
        except (NoPlace, RecursionError):
            raise
        except Refused as error:
            self.refuse(str(error))
        except _FAILURES as error:
            self.refuse(f"{rule.path}() fails: {error}")

    def _by_user(self, function: Any, arguments: Any, keywords: Any = types.MappingProxyType({})) -> Any:
        try:
            return function(*arguments, **keywords)
        except Exception as error:
            raise Foreign(error) from error

    def new(self, cls: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        rule = _PARAMETER if cls is mica.nn.Parameter else CALLS.get(id(cls))
        if rule is not None and isinstance(cls, type) and not keywords:
            return self._by_rule(rule, arguments)
        if not self.is_users(cls) or not isinstance(cls, type):
            self.refuse(
                "Can only create new object for nn.Parameter or classes allowlisted via `add_safe_globals` but got "
                f"{shown(cls)}.",
                WAY_OUT,
            )
        return self._by_user(cls.__new__, (cls, *arguments), keywords)

    def build(self, made: Any, state: Any) -> None:
        kind = type(made)
        if kind in (OrderedDict, Counter) and id(made) not in self._named:
            self._set_names(made, state)
        elif self.is_users(kind) and self._is_own(made):
            self._by_user(_set_state, (self, made, state))
        else:
            self.refuse(
                "Can only build Tensor, Parameter, OrderedDict or types allowlisted via `add_safe_globals`, but got "
                f"{shown(made)}.",
                WAY_OUT,
            )

    def _set_names(self, made: Any, state: Any) -> None:
        """Attributes of a dictionary, as torch's state dictionaries have them; not over its methods."""
        if not kinds.is_names(self, state):
            self.refuse(
                f"BUILD gives {shown(made)} the state {shown(state)}, not a dictionary of attributes."
            )
        for name in state or ():
            if hasattr(type(made), name):
                self.refuse(
                    f"an attribute of the name {shown(name)} would hide what every {type(made).__name__} has."
                )
        made.__dict__.update(state or {})

    def _is_own(self, made: Any) -> bool:
        """Whether an object belongs to this pickle alone."""
        shared = (type, types.FunctionType, types.BuiltinFunctionType, types.ModuleType, enum.Enum)
        return id(made) not in self._named and not isinstance(made, shared)

    def container(self, made: Any, kinds: tuple[type, ...]) -> bool:
        if id(made) in self._named:
            return False
        return type(made) in kinds or (self.is_users(type(made)) and isinstance(made, kinds))

    def is_size(self, value: Any) -> bool:
        return type(value) is mica.Size

    def is_key(self, value: Any) -> bool:
        kind = type(value)
        return (
            kind in (mica.dtype, mica.device, mica.layout, Tensor, mica.nn.Parameter, mica.nn.Buffer)
            or id(value) in self._named
            or self.is_users(kind)
        )


def _set_state(machine: Machine, made: Any, state: Any) -> None:
    """What pickle does to an object of the user's class."""
    if hasattr(made, "__setstate__"):
        made.__setstate__(state)
        return
    named, slots = state if isinstance(state, tuple) and len(state) == 2 else (state, None)
    if not kinds.is_names(machine, named) or not kinds.is_names(machine, slots):
        machine.refuse(f"BUILD gives {shown(made)} the state {shown(state)}.")
    if named:
        made.__dict__.update(named)
    for name, value in (slots or {}).items():
        if name.startswith("__"):
            machine.refuse(f"BUILD sets the attribute {shown(name)} of {shown(made)}.")
        setattr(made, name, value)
