"""What the names of a checkpoint's pickle stand for, and what may be done with each.

TABLE has every name that any checkpoint may refer to. A name that can be called is a Rule, with the
kind of each argument; a class of Python's containers is itself, and CALLS has its rule. Builder is the
machine (Note [Pickles of strangers]) that works by them: it calls what has a rule and what the user
allowed by add_safe_globals(), and changes only objects that this pickle made, never a class, a function
or what a name stood for.
"""

from __future__ import annotations

import enum
import re
import types
from collections import Counter, OrderedDict, defaultdict
from typing import Any

import mica
from mica import _C
from mica._C import Tensor
from mica.serialization._pickle import kinds, makers as making
from mica.serialization._pickle.kinds import (
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
from mica.serialization._pickle.machine import WAY_OUT, Foreign, Machine, Refused, shown
from mica.storage import _TYPES

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
    Rule("torch._utils._rebuild_tensor", making.typed_tensor, *_PLACE),
    Rule("torch._utils._rebuild_tensor_v2", making.typed_tensor, *_V2, optional=1),
    Rule("torch._utils._rebuild_tensor_v3", making.untyped_tensor, *_V3, optional=1),
    Rule("torch._utils._rebuild_meta_tensor_no_storage", making.meta_tensor, DTYPE, SIZES, SIZES, FLAG),
]
_RULES = [
    *_TENSOR_RULES,
    Rule("torch._utils._rebuild_parameter", making.parameter, TENSOR, FLAG, ANYTHING),
    Rule("torch._utils._rebuild_parameter_with_state", making.parameter, TENSOR, FLAG, ANYTHING, STATE),
    _FromType(
        "torch._tensor._rebuild_from_type_v2",
        making.from_type,
        ANYTHING,
        ANYTHING,
        ANYTHING,
        STATE,
        pays=True,
    ),
    Rule("torch.device", making.device, SHORT_TEXT, INDEX, optional=1),
    Rule("torch.serialization._get_layout", making.layout, SHORT_TEXT),
    Rule("_codecs.encode", making.encoded, TEXT, SHORT_TEXT, optional=1),
]
# Names that are classes of Python or Mica: a value of the file may be the class itself.
_CLASSES = {
    OrderedDict: Rule("collections.OrderedDict", making.filled(OrderedDict), ITEMS, optional=1, pays=True),
    Counter: Rule("collections.Counter", making.filled(Counter), ITEMS, optional=1, pays=True),
    defaultdict: Rule(
        "collections.defaultdict", making.filled(defaultdict, 2), FACTORY, ITEMS, optional=2, pays=True
    ),
    set: Rule("builtins.set", making.set_of, MEMBERS, optional=1, pays=True),
    frozenset: Rule("builtins.frozenset", making.frozenset_of, MEMBERS, optional=1, pays=True),
    complex: Rule("builtins.complex", complex, NUMBER, NUMBER, optional=2),
    mica.Size: Rule("torch.Size", mica.Size, LONG_SIZE, optional=1),
}
_PYTHON = [
    Rule("builtins.bytearray", making.bytearray_of, CONTENT, SHORT_TEXT, optional=2),
    Rule("builtins.bytes", bytes, BYTES, optional=1),
]
# What torch's files may name and Mica has nothing for.
_LACKED = re.compile(
    r"torch\._utils\._rebuild_\w+|torch\.(q?u?int\d+\w*|float\d\w*|complex\d+|bits\w+|per_\w+)"
)
# Attributes by which NumPy and others read any place in memory, whatever object has them.
_POINTERS = frozenset(["__array_interface__", "__array_struct__", "__cuda_array_interface__"])


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
_PARAMETER = Rule("torch.nn.parameter.Parameter", making.new_parameter, TENSOR, FLAG, optional=2)
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
        path = path if len(path) < 200 else f"{path[:200]}..."
        if _LACKED.fullmatch(path):
            self.refuse(f"The file refers to {path}, a dtype or a kind of tensor that Mica lacks.")
        module, short = path.partition(".")[0], path.removeprefix("builtins.")
        if module in ("sys", "os", "posix", "nt"):
            self.refuse(f"Trying to load unsupported GLOBAL {path} whose module {module} is blocked.")
        self.refuse(
            f"Unsupported global: GLOBAL {short} was not an allowed global by default. Please use "
            f"`{_C._library_name()}.serialization.add_safe_globals([{short}])` or the "
            f"`{_C._library_name()}.serialization.safe_globals([{short}])` context manager to allowlist this global if you trust "
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
            if name.startswith("__") or hasattr(type(made), name):
                self.refuse(
                    f"an attribute of the name {shown(name)} would hide what every {type(made).__name__} has or is."
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
    for name in _POINTERS & (named or {}).keys():
        machine.refuse(f"BUILD sets the attribute {shown(name)} of {shown(made)}: a place in memory.")
    if named:
        made.__dict__.update(named)
    for name, value in (slots or {}).items():
        if name.startswith("__"):
            machine.refuse(f"BUILD sets the attribute {shown(name)} of {shown(made)}.")
        setattr(made, name, value)
