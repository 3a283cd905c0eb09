"""Makes a program that shows a difference as small as it gets while it shows the same kind of difference.

Statements are dropped, first many at once; then the syntax tree of each is simplified: sizes
and numbers become smaller, dtypes float64, calls their first operand, names of later values
names of earlier ones. A step is kept when the last statement still differs in the same way.
"""

from __future__ import annotations

import ast
import copy
import re
import time
from collections.abc import Callable, Iterator

Program = list[str]


def shrunk(program: Program, fails: Callable[[Program], bool], seconds: float = 60) -> Program:
    """The smallest program found in the time given."""
    deadline = time.monotonic() + seconds
    program = list(program)
    while time.monotonic() < deadline:
        smaller = renamed(program, fails)
        smaller = dropped(smaller, fails, deadline)
        smaller = simplified(smaller, fails, deadline)
        if smaller == program:
            break
        program = smaller
    return program


def dropped(program: Program, fails: Callable[[Program], bool], deadline: float) -> Program:
    """Without the statements that the difference does not need; the last one stays."""
    size = max(1, (len(program) - 1) // 2)
    while True:
        at = len(program) - 1 - size
        while at > -size and time.monotonic() < deadline:
            first = max(at, 0)
            tried = program[:first] + program[at + size :]
            if len(tried) < len(program) and fails(tried):
                program = tried
            at -= size
        if size == 1:
            return program
        size //= 2


def renamed(program: Program, fails: Callable[[Program], bool]) -> Program:
    """Without the statements that only give a value another name."""
    for index in range(len(program) - 2, -1, -1):
        alias = re.fullmatch(r"(\w+) = (\w+)", program[index])
        if alias is not None and not alias[2].isdigit():
            later = [re.sub(rf"\b{alias[1]}\b", alias[2], statement) for statement in program[index + 1 :]]
            if fails(program[:index] + later):
                program = program[:index] + later
    return program


def simplified(program: Program, fails: Callable[[Program], bool], deadline: float) -> Program:
    """With simpler statements, one after another."""
    for index in range(len(program) - 1, -1, -1):
        again = True
        while again:
            again = False
            for statement in simpler(program[index]):
                if time.monotonic() > deadline:
                    return program
                tried = [*program[:index], statement, *program[index + 1 :]]
                if fails(tried):
                    program, again = tried, True
                    break
    return program


def simpler(statement: str) -> Iterator[str]:
    """Statements with one part made simpler, the boldest first."""
    tree = ast.parse(statement)
    seen = {ast.unparse(tree)}
    places = list(ast.walk(tree))
    for number, node in enumerate(places):
        for change in changes(node):
            tried = copy.deepcopy(tree)
            other = list(ast.walk(tried))[number]
            change(other, tried)
            try:
                text = ast.unparse(ast.fix_missing_locations(tried))
                ast.parse(text)
            except (SyntaxError, ValueError, AttributeError):
                continue
            if text and text not in seen:
                seen.add(text)
                yield text


Change = Callable[[ast.AST, ast.AST], None]


def replace(make: Callable[[ast.AST], ast.AST]) -> Change:
    """Puts another node in a node's place."""

    def change(node: ast.AST, tree: ast.AST) -> None:
        new = make(node)

        class Exchange(ast.NodeTransformer):
            def visit(self, at: ast.AST) -> ast.AST:
                return new if at is node else self.generic_visit(at)

        Exchange().visit(tree)

    return change


def assign(field: str, value: object) -> Change:
    return lambda node, tree: setattr(node, field, value)


def without(field: str, index: int) -> Change:
    return lambda node, tree: getattr(node, field).pop(index)


def changes(node: ast.AST) -> Iterator[Change]:
    """Ways to make one node simpler; none makes it larger, so that shrinking ends."""
    if isinstance(node, ast.Constant):
        yield from constants(node.value)
    elif isinstance(node, ast.Call):
        yield from calls(node)
    elif isinstance(node, ast.BinOp):
        yield replace(lambda n: n.left)
        yield replace(lambda n: n.right)
    elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        yield replace(lambda n: n.value)
    elif isinstance(node, ast.Slice):
        for field in ("lower", "upper", "step"):
            if getattr(node, field) is not None:
                yield assign(field, None)
    elif isinstance(node, ast.Attribute) and node.attr in DTYPE_NAMES:
        for dtype in SIMPLER.get(node.attr, ["float64", "float32", "int64"]):
            yield assign("attr", dtype)
    elif isinstance(node, (ast.Tuple, ast.List)) and isinstance(node.ctx, ast.Load):
        for index in range(len(node.elts)):
            yield without("elts", index)
    elif isinstance(node, ast.Module) and len(node.body) > 1:
        for index in range(len(node.body)):
            yield without("body", index)
    elif isinstance(node, ast.With):
        yield unwrap


DTYPE_NAMES = frozenset(
    ("float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool")
    + ("complex64", "complex128")
)
SIMPLER = {"float64": [], "float32": ["float64"], "int64": ["float64"], "bool": ["int64"]}


def unwrap(node: ast.AST, tree: ast.AST) -> None:
    """A block's statements without the block."""
    for holder in ast.walk(tree):
        body = getattr(holder, "body", None)
        if isinstance(body, list) and node in body:
            at = body.index(node)
            body[at : at + 1] = node.body
            return


def constants(value: object) -> Iterator[Change]:
    if value is True:
        yield assign("value", False)
    elif isinstance(value, int) and not isinstance(value, bool) and value > 1:
        for smaller in sorted({1, 2, 3, value // 2, value - 1}):
            if smaller < value:
                yield assign("value", smaller)
    elif isinstance(value, float) and value not in (0.5, 1.0, 2.0):
        yield assign("value", 2.0)


def calls(node: ast.Call) -> Iterator[Change]:
    if isinstance(node.func, ast.Attribute) and not in_library(node.func) and not unset(node.func.value):
        yield replace(lambda n: n.func.value)
    for index, argument in enumerate(node.args):
        if isinstance(argument, (ast.Name, ast.Call, ast.BinOp, ast.Subscript)):
            yield replace(lambda n, index=index: n.args[index])
    for index in range(len(node.keywords)):
        yield without("keywords", index)
    if len(node.args) > 1:
        yield without("args", len(node.args) - 1)


def unset(node: ast.AST) -> bool:
    """Whether a node makes a tensor that has no values yet."""
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "torch.empty"


def in_library(node: ast.AST) -> bool:
    """Whether a dotted name starts at the library's."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and node.id == "torch"
