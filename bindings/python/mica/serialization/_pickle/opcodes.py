"""The rule of each opcode of pickles: what it does to the machine's stack and memo.

See Note [Pickles of strangers]. Only these opcodes exist; what makes objects asks the machine.
"""

from __future__ import annotations

import codecs
import pickle
import re
import struct
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable
from typing import Any

from mica.serialization._pickle.machine import ABSENT, WAY_OUT, Machine, shown

_U4 = struct.Struct("<I").unpack_from
LONGEST_NAME = 1000  # characters of a global
_ESCAPES = re.compile(rb"\\(?:[\\'\"nrt]|x[0-9a-fA-F]{2})")  # those that Python writes
_DICTS = (dict, OrderedDict, Counter, defaultdict)
OPCODES: dict[str, Callable[[Machine], None]] = {}


def _opcode(*names: str) -> Any:
    def add(rule: Any) -> Any:
        OPCODES.update(dict.fromkeys(names, rule))
        return rule

    return add


def _push(name: str, value: Callable[[Machine], Any]) -> None:
    def rule(machine: Machine) -> None:
        made = value(machine)  # which may change the stack
        machine.stack.append(made)

    OPCODES[name] = rule


def _constant(name: str, value: Any) -> None:
    def rule(machine: Machine) -> None:
        machine.stack.append(value)

    OPCODES[name] = rule


for _name, _value in {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": ()}.items():
    _constant(_name, _value)
_push("EMPTY_LIST", lambda m: [])
_push("EMPTY_DICT", lambda m: {})
_push("EMPTY_SET", lambda m: set())
_push("BININT", lambda m: int.from_bytes(m.take(4), "little", signed=True))
_push("BININT2", lambda m: int.from_bytes(m.take(2), "little"))
_push("LONG1", lambda m: int.from_bytes(m.counted(1), "little", signed=True))
_push("LONG4", lambda m: int.from_bytes(m.counted(4), "little", signed=True))
_push("BINFLOAT", lambda m: struct.unpack(">d", m.take(8))[0])
_push("SHORT_BINUNICODE", lambda m: str(m.counted(1), "utf-8", "surrogatepass"))
_push("BINUNICODE8", lambda m: str(m.counted(8), "utf-8", "surrogatepass"))
_push("UNICODE", lambda m: str(m.line(), "raw-unicode-escape"))
_push("SHORT_BINBYTES", lambda m: m.counted(1))
_push("BINBYTES", lambda m: m.counted(4))
_push("BINBYTES8", lambda m: m.counted(8))
_push("BYTEARRAY8", lambda m: bytearray(m.counted(8)))
_push("SHORT_BINSTRING", lambda m: m.text(m.counted(1)))
_push("BINSTRING", lambda m: m.text(m.counted(4)))
_push("LIST", lambda m: m.marked())
_push("DUP", lambda m: m.stack[-1])
_push("GET", lambda m: m.recalled(m.number()))
_push("BINPERSID", lambda m: m.persistent(m.stack.pop()))


# What a checkpoint has most of, written out: a third of a file's time is in these.
@_opcode("BININT1")
def _binint1(m: Machine) -> None:
    at = m.at
    m.stack.append(m.content[at])
    m.at = at + 1


@_opcode("BINGET")
def _binget(m: Machine) -> None:
    at = m.at
    number, memo = m.content[at], m.memo
    if number >= len(memo) or (value := memo[number]) is ABSENT:
        raise KeyError(number)
    m.stack.append(value)
    m.at = at + 1


@_opcode("BINPUT")
def _binput(m: Machine) -> None:
    at = m.at
    number, memo = m.content[at], m.memo
    if number == len(memo):
        memo.append(m.stack[-1])
    else:
        m.remember(number)
    m.at = at + 1


@_opcode("LONG_BINGET")
def _long_binget(m: Machine) -> None:
    at = m.at
    number, memo = _U4(m.content, at)[0], m.memo
    if number >= len(memo) or (value := memo[number]) is ABSENT:
        raise KeyError(number)
    m.stack.append(value)
    m.at = at + 4


@_opcode("LONG_BINPUT")
def _long_binput(m: Machine) -> None:
    at = m.at
    number, memo = _U4(m.content, at)[0], m.memo
    if number == len(memo):
        memo.append(m.stack[-1])
    else:
        m.remember(number)
    m.at = at + 4


@_opcode("BINUNICODE")
def _binunicode(m: Machine) -> None:
    begin = m.at + 4
    m.at = end = begin + _U4(m.content, begin - 4)[0]
    if end > len(m.content):
        m.cut()
    m.stack.append(str(m.content[begin:end], "utf-8", "surrogatepass"))


@_opcode("TUPLE")
def _tuple(m: Machine) -> None:
    items = m.stack
    m.stack = stack = m.below.pop()
    stack.append(tuple(items))


@_opcode("PROTO")
def _proto(m: Machine) -> None:
    if (version := m.take(1)[0]) > pickle.HIGHEST_PROTOCOL:
        m.refuse(
            f"the pickle has the protocol ({version}); the highest known is ({pickle.HIGHEST_PROTOCOL})."
        )


@_opcode("FRAME")
def _frame(m: Machine) -> None:
    m.take(8)


@_opcode("MARK")
def _mark(m: Machine) -> None:
    m.below.append(m.stack)
    m.stack = []


@_opcode("POP")
def _pop(m: Machine) -> None:
    if m.stack:
        m.stack.pop()
    else:
        m.marked()


@_opcode("POP_MARK")
def _pop_mark(m: Machine) -> None:
    m.marked()


@_opcode("INT")
def _int(m: Machine) -> None:
    text = m.digits()
    m.stack.append(text == b"01" if text in (b"00", b"01") else int(text, 0))


@_opcode("LONG")
def _long(m: Machine) -> None:
    m.stack.append(int(m.digits(b"L"), 0))


@_opcode("FLOAT")
def _float(m: Machine) -> None:
    m.stack.append(float(m.digits()))


@_opcode("STRING")
def _string(m: Machine) -> None:
    text = m.line().strip()
    if len(text) < 2 or text[:1] != text[-1:] or text[:1] not in (b"'", b'"'):
        m.refuse("a text has no quotes around it.")
    if b"\\" in _ESCAPES.sub(b"", text):
        m.refuse("a text has an escape that Python does not write.")
    m.stack.append(m.text(codecs.escape_decode(text[1:-1])[0]))  # type: ignore[attr-defined]


@_opcode("TUPLE1")
def _tuple1(m: Machine) -> None:
    stack = m.stack
    stack[-1] = (stack[-1],)


@_opcode("TUPLE2")
def _tuple2(m: Machine) -> None:
    stack = m.stack
    last = stack.pop()
    stack[-1] = (stack[-1], last)


@_opcode("TUPLE3")
def _tuple3(m: Machine) -> None:
    stack = m.stack
    last, middle = stack.pop(), stack.pop()
    stack[-1] = (stack[-1], middle, last)


@_opcode("PUT")
def _put(m: Machine) -> None:
    m.remember(m.number())


@_opcode("MEMOIZE")
def _memoize(m: Machine) -> None:
    m.remember(len(m.memo) - m.holes)


def _items(m: Machine, made: Any, items: list[Any]) -> None:
    """Puts keys and values, one after the other, into a dictionary."""
    if not m.container(made, _DICTS):
        m.refuse(
            "Can only SETITEM or SETITEMS for dict, collections.OrderedDict, collections.Counter and "
            f"collections.defaultdict, but got {shown(made)}.",
            WAY_OUT,
        )
    if len(items) % 2:
        m.refuse("a key has no value.")
    plain = type(made) is not defaultdict
    for i in range(0, len(items), 2):
        key = items[i]
        if plain and type(key) is str and len(key) <= 64:
            made[key] = items[i + 1]
        else:
            m.put(made, key, items[i + 1])


@_opcode("SETITEM")
def _setitem(m: Machine) -> None:
    value, key = m.stack.pop(), m.stack.pop()
    _items(m, m.stack[-1], [key, value])


@_opcode("SETITEMS")
def _setitems(m: Machine) -> None:
    items = m.marked()
    _items(m, m.stack[-1], items)


@_opcode("DICT")
def _dict(m: Machine) -> None:
    made: dict[Any, Any] = {}
    _items(m, made, m.marked())
    m.stack.append(made)


def _append_all(m: Machine, made: Any, items: list[Any]) -> None:
    if not m.container(made, (list,)):
        m.refuse(f"Can only append to lists, but got {shown(made)}.", WAY_OUT)
    made.extend(items)


@_opcode("APPEND")
def _append(m: Machine) -> None:
    item = m.stack.pop()
    _append_all(m, m.stack[-1], [item])


@_opcode("APPENDS")
def _appends(m: Machine) -> None:
    items = m.marked()
    _append_all(m, m.stack[-1], items)


@_opcode("ADDITEMS")
def _additems(m: Machine) -> None:
    items = m.marked()
    made = m.stack[-1]
    if not m.container(made, (set,)):
        m.refuse(f"Can only add items to sets, but got {shown(made)}.", WAY_OUT)
    for item in items:
        m.check_key(item, made)
        made.add(item)


@_opcode("FROZENSET")
def _frozenset(m: Machine) -> None:
    items = m.marked()
    m.members(items)
    m.stack.append(frozenset(items))


def _find(m: Machine, module: str, name: str) -> None:
    if len(module) + len(name) > LONGEST_NAME:
        m.refuse(f"a global has a name of ({len(module) + len(name)}) characters.")
    m.stack.append(m.find_global(f"{module}.{name}"))


@_opcode("GLOBAL")
def _global(m: Machine) -> None:
    module = str(m.line(), "utf-8")
    _find(m, module, str(m.line(), "utf-8"))


@_opcode("STACK_GLOBAL")
def _stack_global(m: Machine) -> None:
    name, module = m.stack.pop(), m.stack.pop()
    if type(name) is not str or type(module) is not str:
        m.refuse(f"a global is named by {shown(module)} and {shown(name)}.")
    _find(m, module, name)


def _arguments(m: Machine, value: Any) -> tuple[Any, ...]:
    if type(value) is not tuple:
        m.refuse(f"the arguments of a call are {shown(value)}, not a tuple.")
    return value


@_opcode("REDUCE")
def _reduce(m: Machine) -> None:
    arguments = _arguments(m, m.stack.pop())
    m.stack.append(m.call(m.stack.pop(), arguments))


@_opcode("NEWOBJ")
def _newobj(m: Machine) -> None:
    arguments = _arguments(m, m.stack.pop())
    m.stack.append(m.new(m.stack.pop(), arguments, {}))


@_opcode("NEWOBJ_EX")
def _newobj_ex(m: Machine) -> None:
    keywords = m.stack.pop()
    if type(keywords) is not dict or not all(type(k) is str for k in keywords):
        m.refuse(f"the keyword arguments of a call are {shown(keywords)}.")
    m.spend(len(keywords))
    arguments = _arguments(m, m.stack.pop())
    m.stack.append(m.new(m.stack.pop(), arguments, keywords))


@_opcode("BUILD")
def _build(m: Machine) -> None:
    state = m.stack.pop()
    m.build(m.stack[-1], state)


def unknown(m: Machine) -> None:
    """The rule of a byte that is no opcode of checkpoints."""
    m.refuse("Unsupported operand: it is none of those that checkpoints are made of.", WAY_OUT)
