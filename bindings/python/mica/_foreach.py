"""The operators of lists that optimizers call: `_foreach_add(tensors, other)` and so on.

Each applies an operator to every tensor of a list; an argument that is a list goes
with it element by element, any other is the same for all. In-place forms end in `_`
and return None. They are loops, so that every layer sees the operators themselves.
"""

from __future__ import annotations

from mica import _C
from mica._C import Tensor

TYPE_CHECKING = False  # importing typing takes as long as all of mica
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_UNARY = [
    "abs",
    "acos",
    "asin",
    "atan",
    "ceil",
    "cos",
    "cosh",
    "erf",
    "erfc",
    "exp",
    "expm1",
    "floor",
    "frac",
    "lgamma",
    "log",
    "log10",
    "log1p",
    "log2",
    "neg",
    "reciprocal",
    "round",
    "rsqrt",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
    "trunc",
]
_BINARY = ["add", "sub", "mul", "div", "clamp_max", "clamp_min", "pow", "lerp"]
_TERNARY = ("addcmul", "addcdiv")  # their last argument is `value`


def _rows(name: str, tensors: Any, arguments: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """The arguments of each call."""
    items = list(tensors)
    if not items:
        raise RuntimeError(f"List of tensors of {name} is empty; expected at least one.")
    columns: list[Any] = [items]
    for argument in arguments:
        column = list(argument) if isinstance(argument, (list, tuple)) else [argument] * len(items)
        if len(column) != len(items):
            raise RuntimeError(
                f"Length ({len(column)}) of a list given to {name} differs from that ({len(items)}) of the tensors."
            )
        columns.append(column)
    return list(zip(*columns))


def _make(name: str, operator: Callable[..., Any], inplace: bool) -> Callable[..., Any]:
    full = f"_foreach_{name}"
    ternary = name.rstrip("_") in _TERNARY

    def function(tensors: Any, *arguments: Any, scalars: Any = None, **options: Any) -> Any:
        value = options.pop("value", scalars)
        if ternary and len(arguments) == 3:
            arguments, value = arguments[:2], arguments[2]
        if value is None:
            found = [operator(*row, **options) for row in _rows(full, tensors, arguments)]
        elif ternary:
            values = value.tolist() if isinstance(value, Tensor) and value.ndim == 1 else value
            found = [operator(*row, value=v) for *row, v in _rows(full, tensors, (*arguments, values))]
        else:
            found = [operator(*row, **options) for row in _rows(full, tensors, (*arguments, value))]
        return None if inplace else found

    function.__name__ = function.__qualname__ = full
    function.__doc__ = f"`{name}` of every tensor of a list."
    return function


def _all() -> dict[str, Callable[..., Any]]:
    made = {}
    generated = _C._functions[""]
    for name in (*_UNARY, *_BINARY, *_TERNARY, "maximum", "minimum"):
        made[f"_foreach_{name}"] = _make(name, generated[name], False)
        method = getattr(Tensor, f"{name}_", None)
        if method is None:  # maximum and minimum have an out= form alone

            def method(self: Tensor, *rest: Any, _operator: Any = generated[name]) -> Tensor:
                return self.copy_(_operator(self, *rest))

        made[f"_foreach_{name}_"] = _make(f"{name}_", method, True)
    made["_foreach_zero_"] = _make("zero_", Tensor.zero_, True)
    made["_foreach_copy_"] = _make("copy_", Tensor.copy_, True)
    norm = generated["linalg_vector_norm"]
    made["_foreach_norm"] = _make("norm", lambda x, order=2, dtype=None: norm(x, order, dtype=dtype), False)
    return made


globals().update(_all())
__all__ = [name for name in globals() if name.startswith("_foreach_")]
