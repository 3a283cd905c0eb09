"""SymInt: a size in a symbolic trace. It knows what it is in this run (its hint) and where it
comes from, so that the graph can compute it again.

Arithmetic gives SymInts. A comparison gives a bool, and the trace keeps a guard: the graph
holds for sizes of the same answer. Whatever needs a plain int (range, a list's index, a
Python loop) fixes the size: a guard that it equals the hint."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from mica import _C


@dataclass(frozen=True)
class Size:
    """The size of a traced value's dimension."""

    number: int
    dim: int


@dataclass(frozen=True)
class Computed:
    """A function of sizes and numbers."""

    function: Callable[..., Any]
    args: tuple[Any, ...]


Expression = Any  # Size, Computed, or a number


def sizes_in(e: Expression) -> list[Size]:
    """The sizes that an expression reads."""
    if isinstance(e, Size):
        return [e]
    return [s for a in e.args for s in sizes_in(a)] if isinstance(e, Computed) else []


@dataclass(frozen=True)
class Guard:
    """What a trace assumed: that `function` of the expressions is `truth`."""

    function: Callable[..., Any]
    args: tuple[Expression, ...]
    truth: bool
    hints: tuple[Any, ...]


class Diverged(Exception):
    """A run with other sizes takes another way through the Python code."""


@dataclass
class Session:
    """The SymInts and guards of one run. With `expected` guards, the run must keep them."""

    expected: list[Guard] | None = None
    name: Callable[[Size], str] | None = None  # of sizes, in messages
    guards: list[Guard] = field(default_factory=list)
    made: list[tuple[Expression, Any]] = field(default_factory=list)  # what was computed, and its hint

    def size(self, number: int, dim: int, hint: int) -> Any:
        """What Python reads as a size."""
        return SymInt(self, Size(number, dim), hint)

    def decide(self, function: Callable[..., Any], args: tuple[Any, ...]) -> bool:
        """The answer to a comparison, as a guard."""
        hints = tuple(a.hint if isinstance(a, SymNumber) else a for a in args)
        truth = bool(function(*hints))
        guard = Guard(function, tuple(_expression(a) for a in args), truth, hints)
        if self.expected is not None:
            place = len(self.guards)
            if place >= len(self.expected):
                raise Diverged("it compares more sizes")
            known = self.expected[place]
            if (known.function, known.args, known.truth) != (function, guard.args, truth):
                raise Diverged(describe(known, self.name))
        self.guards.append(guard)
        return truth

    def fix(self, number: SymNumber) -> Any:
        """The hint, which every run must have."""
        hint = number.hint
        if self.expected is not None and len(self.guards) < len(self.expected):
            known = self.expected[len(self.guards)]
            if known.args[0] == number.expression and known.hints[1] != hint:
                raise Diverged(describe(known, self.name))
        self.decide(operator.eq, (number, hint))
        return hint


_SIGNS = {
    operator.eq: ("==", "!="),
    operator.ne: ("!=", "=="),
    operator.lt: ("<", ">="),
    operator.le: ("<=", ">"),
    operator.gt: (">", "<="),
    operator.ge: (">=", "<"),
}


def describe(guard: Guard, name: Callable[[Size], str] | None = None) -> str:
    """The guard as text: "size 0 of x_1 > 4"."""

    def text(e: Expression) -> str:
        if isinstance(e, Size):
            return name(e) if name else f"size {e.dim} of value {e.number}"
        if isinstance(e, Computed):
            word = getattr(e.function, "__name__", "f")
            return f"{word}({', '.join(map(text, e.args))})"
        return repr(e)

    if guard.function in _SIGNS:
        sign = _SIGNS[guard.function][0 if guard.truth else 1]
        return f"{text(guard.args[0])} {sign} {text(guard.args[1])}"
    return f"{text(Computed(guard.function, guard.args))} is {guard.truth}"


def _expression(a: Any) -> Expression:
    return a.expression if isinstance(a, SymNumber) else a


class SymNumber:
    """A number that a symbolic trace computed of sizes."""

    __slots__ = ("expression", "hint", "session")

    def __init__(self, session: Session, expression: Expression, hint: Any) -> None:
        self.session = session
        self.expression = expression
        self.hint = hint

    def _compute(self, function: Callable[..., Any], *args: Any) -> Any:
        if not all(isinstance(a, (int, float, SymNumber)) for a in args):
            return NotImplemented
        hint = function(*(a.hint if isinstance(a, SymNumber) else a for a in args))
        expression = Computed(function, tuple(_expression(a) for a in args))
        self.session.made.append((expression, hint))
        kind = SymInt if isinstance(hint, int) else SymFloat
        return kind(self.session, expression, hint)

    def _compare(self, function: Callable[..., Any], other: Any) -> Any:
        if not isinstance(other, (int, float, SymNumber)):
            return NotImplemented
        return self.session.decide(function, (self, other))

    def __bool__(self) -> bool:
        return self.session.decide(operator.ne, (self, 0))

    def __hash__(self) -> int:
        return hash(self.session.fix(self))

    def __float__(self) -> float:
        return float(self.session.fix(self))

    def __int__(self) -> int:
        return int(self.session.fix(self))

    def __eq__(self, other: object) -> bool:
        return self._compare(operator.eq, other)

    def __ne__(self, other: object) -> bool:
        return self._compare(operator.ne, other)

    def __lt__(self, other: Any) -> bool:
        return self._compare(operator.lt, other)

    def __le__(self, other: Any) -> bool:
        return self._compare(operator.le, other)

    def __gt__(self, other: Any) -> bool:
        return self._compare(operator.gt, other)

    def __ge__(self, other: Any) -> bool:
        return self._compare(operator.ge, other)

    def __repr__(self) -> str:
        return str(self.hint)


def _binary(function: Callable[..., Any]) -> Callable[[SymNumber, Any], Any]:
    return lambda self, other: self._compute(function, self, other)


def _reflected(function: Callable[..., Any]) -> Callable[[SymNumber, Any], Any]:
    return lambda self, other: self._compute(function, other, self)


def _unary(function: Callable[..., Any]) -> Callable[[SymNumber], Any]:
    return lambda self: self._compute(function, self)


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow"):
    setattr(SymNumber, f"__{_name}__", _binary(getattr(operator, _name)))
    setattr(SymNumber, f"__r{_name}__", _reflected(getattr(operator, _name)))
for _name in ("neg", "pos", "abs"):
    setattr(SymNumber, f"__{_name}__", _unary(getattr(operator, _name)))


class SymInt(SymNumber):
    """A size in a symbolic trace, which behaves as an int and remembers what it was computed of.

    As `torch.SymInt`. Arithmetic gives SymInts. A comparison gives a bool and becomes a guard of the
    graph. Whatever needs a plain int, such as `range`, fixes the size to its present value. The trace
    makes it.

    Args:
        session (object): The trace.
        expression (object): What it is computed of.
        hint (int): Its value in this run.

    Example:
        >>> def double_rows(x):
        ...     assert isinstance(x.shape[0], mica.fx.SymInt)
        ...     return x.new_zeros(2 * x.shape[0])
        >>> traced = mica.fx.make_fx(double_rows, tracing_mode="symbolic")(mica.ones(3))
        >>> traced(mica.ones(5)).shape
        mica.Size([10])
    """

    __slots__ = ()

    def __index__(self) -> int:
        return int(self.session.fix(self))


class SymFloat(SymNumber):
    """A number with a fraction, computed of sizes."""

    __slots__ = ()


_C._set_symbolic_type(SymNumber)
