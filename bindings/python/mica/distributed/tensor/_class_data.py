"""What an operator's entry says that sharding rules follow from: its class with its arguments, and its program.

class_arguments(mica.ops.mica.cumsum.default)     {"dim": "dim"}
reduction_of(mica.ops.mica.amax.default)          "max"
is_linear(mica.ops.mica.add.Tensor, {0, 1})       True: add(sum of a, sum of b) is the sum of add(a, b)
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Iterable
from typing import Any

from mica.ops import OpOverload, Program, overload

_ADDING = {"ADD", "SUB"}
# What a linear step makes of a value that is linear in the tensors, beside constant ones.
_SCALING = {"NEG", "STORE", "STORE_STATE"}


def class_arguments(func: OpOverload) -> dict[str, str]:
    """What stands in the parentheses of the entry's `class:`; a bare argument is under ""."""
    text = func._operator._policy("class")
    if text is None:
        return {}
    found: dict[str, str] = {}
    for item in text[text.index("(") + 1 : -1].split(","):
        key, equals, value = item.partition("=")
        found[key.strip() if equals else ""] = value.strip() if equals else key.strip()
    return found


def functional(func: OpOverload) -> OpOverload:
    """The functional form of the entry, whose program it is; itself where there is none."""
    name = func._operator.functional
    return func if name is None else overload(name)


def named_rule(func: OpOverload) -> str | None:
    """The entry's `batch_rule:`: what distinguishes the operator from others of its class."""
    word: str | None = func._operator._policy("batch_rule")
    return word


def program_of(func: OpOverload) -> Program | None:
    """The entry's program for floating dtypes, or None."""
    return functional(func).program


# A register's dependence on the tensors that are partial: of none of them, linear, or neither. A constant 0 is
# linear too.
_CONSTANT, _ZERO, _LINEAR, _OTHER = range(4)


def _joined(kinds: Iterable[int]) -> int:
    """Of what is added or chosen from."""
    found = {k for k in kinds if k != _ZERO}
    if not found:
        return _ZERO
    return found.pop() if len(found) == 1 else _OTHER


def _product(kinds: list[int]) -> int:
    if _OTHER in kinds or kinds.count(_LINEAR) > 1:
        return _OTHER
    if _ZERO in kinds:
        return _ZERO
    return _LINEAR if _LINEAR in kinds else _CONSTANT


def _step(name: str, read: list[int]) -> int:
    if name in _ADDING:
        return _joined(read)
    if name == "MUL":
        return _product(read)
    if name == "FMA":
        return _joined([_product(read[:2]), read[2]])
    if name == "DIV":
        return _OTHER if read[1] != _CONSTANT else read[0]
    if name in _SCALING:
        return read[0]
    if name == "SELECT":
        return _OTHER if read[0] not in (_CONSTANT, _ZERO) else _joined(read[1:])
    return _CONSTANT if all(k in (_CONSTANT, _ZERO) for k in read) else _OTHER


def _runs_linear(
    program: Program, code: str, load: Callable[[int], int], states: Callable[[int], int]
) -> bool:
    """Whether all that a code stores is linear, of what `load` and `states` say of inputs and states."""
    registers: dict[int, int] = {}
    stored: list[int] = []
    for name, into, read, aux in program.codes[code]:
        if name == "LOAD":
            kind = load(program.inputs[aux])
        elif name == "ELEMENT":
            kind = load(program.inputs[0])
        elif name == "STATE":
            kind = states(aux)
        elif name == "CONST":
            kind = _ZERO if program.constants[aux] == 0 else _CONSTANT
        else:
            kind = _step(name, [registers[r] for r in read])
        registers[into] = kind
        if name.startswith("STORE"):
            stored.append(kind)
    return bool(stored) and all(k in (_LINEAR, _ZERO) for k in stored)


@functools.cache
def is_linear(func: OpOverload, partial: frozenset[int]) -> bool:
    """Whether a program is linear in the tensors at these arguments, taken together: op(sum) is the sum of op."""
    program = program_of(func)
    if program is None or not program.codes["main"] or not partial <= set(program.inputs):
        return False

    def load(argument: int) -> int:
        return _LINEAR if argument in partial else _CONSTANT

    if not program.codes["combine"]:
        return _runs_linear(program, "main", load, lambda _: _OTHER)
    # A reduction begins with the constants of its states: only sums that begin at 0 are linear.
    codes = [code for code in ("main", "combine", "finish") if program.codes[code]]
    starts_at_zero = all(c == 0 for c in program.constants[:1])
    return starts_at_zero and all(_runs_linear(program, code, load, lambda _: _LINEAR) for code in codes)


_MEANINGS: dict[str, Callable[[float, float], float]] = {
    "sum": operator.add,
    "product": operator.mul,
    "max": max,
    "min": min,
}
_UNARY: dict[str, Callable[[Any], Any]] = {
    "TO_MASK": bool,
    "STORE": float,
    "STORE_STATE": float,
    "NEG": operator.neg,
    "MASK_NOT": operator.not_,
}
_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "ADD": operator.add,
    "MUL": operator.mul,
    "MAX": max,
    "MIN": min,
    "MASK_AND": lambda a, b: a and b,
    "MASK_OR": lambda a, b: a or b,
}


class _Unknown(Exception):
    pass


def _run(program: Program, code: str, states: tuple[float, ...], element: float) -> float:
    """What a code of one state stores."""
    registers: dict[int, Any] = {}
    stored = None
    for name, into, read, aux in program.codes[code]:
        values = [registers[r] for r in read]
        if name == "STATE" and aux < len(states):
            found: Any = states[aux]
        elif name == "ELEMENT":
            found = element
        elif name == "CONST":
            found = program.constants[aux]
        elif name == "SELECT":
            found = values[1] if values[0] else values[2]
        elif name in _UNARY:
            found = _UNARY[name](values[0])
        elif name in _BINARY:
            found = _BINARY[name](*values)
        else:
            raise _Unknown(name)
        registers[into] = found
        if name.startswith("STORE"):
            if stored is not None:
                raise _Unknown("several states")
            stored = float(found)
    if stored is None:
        raise _Unknown("nothing stored")
    return stored


_NUMBERS = (-3.0, -1.0, -0.5, 0.0, 0.25, 1.0, 2.0)
_BITS = (0.0, 1.0)


def _reduces_as(
    program: Program, meaning: Callable[[float, float], float], numbers: tuple[float, ...]
) -> bool:
    """Whether joining results of parts, and elements, is `meaning`, and what is joined is the result."""
    return all(
        _run(program, "combine", (a, b), 0.0) == meaning(a, b)
        and _run(program, "main", (a,), b) == meaning(a, b)
        and _run(program, "finish", (a,), 0.0) == a
        for a, b in itertools.product(numbers, numbers)
    )


@functools.cache
def reduction_of(func: OpOverload, bits: bool = False) -> str | None:
    """The reduction whose Partial a reduction's results of parts are: "sum", "product", "max", "min"; else None.

    `bits`: it gives bools, which are 0 and 1.
    """
    program = program_of(func)
    if program is None or not program.codes["combine"]:
        return None
    for name, meaning in _MEANINGS.items():
        if bits and name in ("sum", "product"):
            continue
        try:
            if _reduces_as(program, meaning, _BITS if bits else _NUMBERS):
                return name
        except _Unknown:
            return None
    return None


@functools.cache
def is_mean(func: OpOverload) -> bool:
    """Whether a reduction is the sum divided by the number of elements."""
    program = program_of(func)
    if program is None:
        return False
    finish = [step[0] for step in program.codes["finish"]]
    return finish == ["STATE", "COUNT", "DIV", "STORE"] and is_linear(func, frozenset(program.inputs))
