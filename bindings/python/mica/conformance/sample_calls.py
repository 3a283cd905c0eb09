"""How sample inputs are described: calls of operators, and tensors that are told, not made."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True)
class T:
    """A tensor of the run's dtype, uniform in [low, high); `dtype` fixes another."""

    shape: tuple[int, ...]
    low: float = -2
    high: float = 2
    dtype: str | None = None
    grad: bool = True  # takes part in comparisons of gradients
    made: str = ""  # what a matrix of such numbers is made into: operators.MADE

    def __repr__(self) -> str:
        given = [
            f"{f.name}={getattr(self, f.name)!r}"
            for f in fields(self)[1:]
            if getattr(self, f.name) != f.default
        ]
        return f"T({', '.join([repr(self.shape), *given])})"


@dataclass(frozen=True)
class Call:
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def t(*shape: int, low: float = -2, high: float = 2, dtype: str | None = None, grad: bool = True) -> T:
    return T(shape, low, high, dtype, grad)


def i(*shape: int, high: int, low: int = 0) -> T:
    return T(shape, low, high, "int64", False)


def b(*shape: int) -> T:
    return T(shape, 0, 2, "bool", False)


def pos(*shape: int) -> T:
    return T(shape, 0.2, 2)


def args(*a: Any, **k: Any) -> Call:
    return Call(a, k)


X = t(3, 4)
V = t(4)
S0 = t()
CUBE = t(2, 3, 4)
NONE = t(0, 3)
