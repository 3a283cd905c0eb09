"""The sizes at which kernels change their way, read from the sources of plugins/cpu and kernels.

Every integer constant there counts, and every number that a grain, a block or the like is computed from,
so that a new one is tested at its edges without being listed anywhere; lint refuses one that is written in
a way that is not read here. What is derived from them (a cascade of blocks, the shares of threads, the lanes
of a vector) falls on a product or a power of two, which are here too.
"""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("plugins/cpu", "kernels")
LARGEST = 1 << 18
_ELEMENT_SIZES = (1, 2, 4, 8, 16)

# `constexpr int64_t kBlock = 1024;`, and several in a line.
_DEFINITION = re.compile(
    r"\bconstexpr\s+(?:u?int(?:8|16|32|64)_t|int|size_t|double|auto)\s+(k[A-Z]\w*\s*=[^;]*);"
)
_NEXT = re.compile(r",\s*(?=k[A-Z]\w*\s*=)")
# What a size of this kind is called, and what is shared out among threads.
WORDS = "block|cascade|chunk|grain|panel|piece|stretch|tile"
_COMPUTED = (
    re.compile(rf"\b(?:{WORDS})s?\s*=\s*([^;]*);"),
    re.compile(r"\bParallel(?:For|Steps)\(([^;{\[]*)\["),
)
_NUMBER = re.compile(r"(?<![\w.<])(\d+)(?:\s*<<\s*(\d+))?(?![\w.])")
_LEAST = 16  # of a number in an expression: smaller ones count vectors and bytes

_CXX_TO_PYTHON = (
    (re.compile(r"\bsizeof\([^()]*\)"), "_size"),
    (re.compile(r"\bu?int\d+_t\{([^{}]*)\}|\bstatic_cast<[^<>]*>\(([^()]*)\)"), r"(\1\2)"),
    (re.compile(r"(?<=\d)'(?=\d)"), ""),
    (re.compile(r"/"), "//"),
    (re.compile(r"^(.*)\?(.*):(.*)$"), r"(\2) if (\1) else (\3)"),
)
_OPERATIONS = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.LShift: lambda a, b: a << b,
}


def _values(node: ast.expr, known: dict[str, tuple[int, ...]]) -> tuple[int, ...]:
    """What an expression may be: of both sides of a choice, of elements of every size; none if it is unknown."""
    match node:
        case ast.Constant(value=int(value)):
            return (value,)
        case ast.Name(id=name):
            return known.get(name, ())
        case ast.IfExp(body=body, orelse=other):
            return _values(body, known) + _values(other, known)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATIONS:
            pairs = [(a, b) for a in _values(left, known) for b in _values(right, known)]
            computed = (
                _OPERATIONS[type(op)](a, b) for a, b in pairs if b or not isinstance(op, ast.FloorDiv)
            )
            return tuple(dict.fromkeys(computed))
    return ()


def defined(text: str) -> dict[str, tuple[int, ...]]:
    """name -> values, of every integer constant of a source: 1024, 1 << 18, kRows * 8, 256 / sizeof(T)."""
    found: dict[str, tuple[int, ...]] = {"_size": _ELEMENT_SIZES}
    for definition in _DEFINITION.finditer(re.sub(r"//.*", "", text)):
        for one in _NEXT.split(definition[1]):
            name, _, expression = one.partition("=")
            for pattern, python in _CXX_TO_PYTHON:
                expression = pattern.sub(python, expression)
            try:
                values = _values(ast.parse(expression.strip(), mode="eval").body, found)
            except SyntaxError:
                values = ()
            if values:
                found[name.strip()] = found.get(name.strip(), ()) + values
    del found["_size"]
    return found


def numbers(expression: str) -> set[int]:
    """The numbers of an expression that can be sizes."""
    return {
        n for m in _NUMBER.finditer(expression) if (n := int(m[1]) << int(m[2] or 0)) >= _LEAST
    }  # fmt: skip


def read(text: str) -> set[int]:
    """The sizes of one source."""
    found = {n for values in defined(text).values() for n in values}
    for pattern in _COMPUTED:
        for expression in pattern.finditer(re.sub(r"//.*", "", text)):
            found |= numbers(expression[1])
    return found


@functools.cache
def sizes() -> tuple[int, ...]:
    """Each size, one less and one more, in order."""
    found = {1 << k for k in range(1, 12)}
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".h", ".cc") and "third_party" not in path.parts:
                found |= read(path.read_text())
    around = {n + step for n in found if n <= LARGEST for step in (-1, 0, 1)}
    return tuple(sorted(n for n in around if n > 1))
