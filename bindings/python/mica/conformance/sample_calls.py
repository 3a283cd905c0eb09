"""How sample inputs are described: calls of operators, and tensors that are told, not made."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True)
class T:
    """A tensor that a sample call describes, made in each run with the run's dtype: uniform numbers.

    Args:
        shape (tuple of int): Its shape.
        low (float): The least number. Default: -2.
        high (float): The number that all are below. Default: 2.
        dtype (str, optional): Another dtype than the run's: "int64". Default: None.
        grad (bool): Gradients with respect to it are compared. Default: True.
        made (str): What a matrix of such numbers is made into: "positive" (definite), "hermitian",
            "regular", "lower" or "upper". Default: "", nothing.

    Example:
        >>> from mica.conformance import T
        >>> T((3, 4), low=0)
        T((3, 4), low=0)
    """

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
    """Describes a call: the arguments of an operator, tensors as `T`.

    Args:
        *a (Any): Arguments by place.
        **k (Any): Arguments by name.

    Returns:
        Call: The call.

    Example:
        >>> from mica.conformance import T, args
        >>> args(T((3,)), 2, alpha=1)
        Call(args=(T((3,)), 2), kwargs={'alpha': 1})
    """
    return Call(a, k)


X = t(3, 4)
V = t(4)
S0 = t()
CUBE = t(2, 3, 4)
NONE = t(0, 3)
