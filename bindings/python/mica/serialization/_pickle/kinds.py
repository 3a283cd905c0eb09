"""What the arguments of a pickle's calls may be. A kind also pays, in the machine's steps, for what the
call will copy."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable
from typing import Any, NamedTuple

import mica
from mica._C import Tensor
from mica.serialization._pickle.machine import Machine
from mica.storage import _Memory

MOST_DIMENSIONS = 64
ENTRY = 16  # steps for an entry of a dictionary or set that a call copies: some 8 bytes each
INT64 = 1 << 63


class Kind(NamedTuple):
    """A kind of argument: in words, and as a test, which also pays for what the call will copy."""

    words: str
    fits: Callable[[Machine, Any], bool]


def _is_sizes(machine: Machine, value: Any) -> bool:
    if type(value) not in (tuple, list, mica.Size) or len(value) > MOST_DIMENSIONS:
        return False
    machine.spend(len(value))
    return all(type(n) is int and 0 <= n < INT64 for n in value)


def _is_long_size(machine: Machine, value: Any) -> bool:
    if type(value) not in (tuple, list, mica.Size):
        return False
    machine.spend(len(value))
    return all(type(n) is int and -INT64 <= n < INT64 for n in value)


def _is_text(machine: Machine, value: Any) -> bool:
    if type(value) is not str:
        return False
    machine.spend(len(value))
    return True


def _is_bytes(machine: Machine, value: Any) -> bool:
    if type(value) not in (bytes, bytearray):
        return False
    machine.spend(len(value))
    return True


def _are_members(machine: Machine, value: Any) -> bool:
    if type(value) not in (list, tuple, set, frozenset):
        return False
    machine.spend(ENTRY * len(value))
    return True


def _are_items(machine: Machine, value: Any) -> bool:
    if type(value) not in (dict, OrderedDict, list, tuple):
        return False
    machine.spend(ENTRY * len(value))
    return isinstance(value, dict) or all(type(i) in (list, tuple) and len(i) == 2 for i in value)


def is_names(machine: Machine, value: Any) -> bool:
    if value is None:
        return True
    if type(value) not in (dict, OrderedDict):
        return False
    machine.spend(ENTRY * len(value))
    return all(type(name) is str for name in value)


def _is_state(machine: Machine, value: Any) -> bool:
    if type(value) is tuple and len(value) == 2:  # with the values of slots
        return is_names(machine, value[0]) and is_names(machine, value[1])
    return is_names(machine, value)


FACTORIES = (None, OrderedDict, Counter, defaultdict, set, frozenset)
ANYTHING = Kind("anything", lambda machine, value: True)
BYTES = Kind("bytes", _is_bytes)
COUNT = Kind("a number from 0 on", lambda machine, value: type(value) is int and 0 <= value < INT64)
DTYPE = Kind("a dtype", lambda machine, value: isinstance(value, mica.dtype))
FACTORY = Kind("None or a container's class", lambda machine, value: any(value is f for f in FACTORIES))
FLAG = Kind("a bool", lambda machine, value: type(value) is bool or (type(value) is int and value in (0, 1)))
ITEMS = Kind("a dictionary, or a list of pairs", _are_items)
LONG_SIZE = Kind("a tuple of integers", _is_long_size)
MEMBERS = Kind("a list, tuple or set", _are_members)
NAMES = Kind("None or a dictionary by names", is_names)
NUMBER = Kind("a number", lambda machine, value: type(value) in (int, float))
SIZES = Kind(f"a tuple of at most {MOST_DIMENSIONS} sizes or strides, which are numbers from 0 on", _is_sizes)
STATE = Kind("a dictionary of attributes by their names", _is_state)
STORAGE = Kind("a storage", lambda machine, value: isinstance(value, _Memory))
TENSOR = Kind("a tensor", lambda machine, value: isinstance(value, Tensor))
TEXT = Kind("a text", _is_text)
SHORT_TEXT = Kind("a short text", lambda machine, value: type(value) is str and len(value) <= 80)
INDEX = Kind(
    "None or an index", lambda machine, value: value is None or (type(value) is int and 0 <= value < 1 << 15)
)
CONTENT = Kind(
    "bytes or a text (a length would make memory that nothing in the file pays for)",
    lambda machine, value: _is_bytes(machine, value) or _is_text(machine, value),
)
