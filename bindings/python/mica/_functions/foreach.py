"""The operators of lists that optimizers call: `_foreach_add(tensors, other)` and so on.

Each applies an operator to every tensor of a list; an argument that is a list goes
with it element by element, any other is the same for all. In-place forms end in `_`
and return None. A list is one call from Python, run row by row in C++ (`_rows`), and
every layer sees the operators themselves. Where a function mode or a tensor's type
wants calls of functions, the rows are calls of the functions.
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
_SAME = {"maximum": "clamp_min", "minimum": "clamp_max"}  # which have in-place forms and take numbers
_METHODS = ("zero_", "copy_")
# By the last argument, a tensor or a number: which overloads may take it, the nearest first.
_OVERLOADS = {True: ("Tensor", "Tensor_Tensor", ""), False: ("Tensor_Scalar", "Scalar", "", "Tensor")}


def _operator(name: str, with_tensor: bool) -> Any:
    for overload in _OVERLOADS[with_tensor]:
        found = _C._find_operator(f"mica::{name}.{overload}" if overload else f"mica::{name}")
        if found is not None:
            return found
    return None


def _is_tensor(argument: Any) -> bool:
    return isinstance(argument[0] if isinstance(argument, list) and argument else argument, Tensor)


def _checked(name: str, tensors: Any, arguments: tuple[Any, ...]) -> list[Any]:
    """The columns of a call, with the lengths checked."""
    items = list(tensors)
    if not items:
        raise RuntimeError(f"List of tensors of {name} is empty; expected at least one.")
    columns: list[Any] = [items]
    for argument in arguments:
        if isinstance(argument, (list, tuple)):
            if len(argument) != len(items):
                raise RuntimeError(
                    f"Length ({len(argument)}) of a list given to {name} differs from that ({len(items)}) of the tensors."
                )
            argument = list(argument)
        columns.append(argument)
    return columns


def _loop(function: Callable[..., Any], columns: list[Any], options: dict[str, Any]) -> list[Any]:
    """Row by row in Python: what `_rows` does, where calls of functions are wanted."""

    def at(value: Any, i: int) -> Any:
        return value[i] if isinstance(value, list) else value

    rows = range(len(columns[0]))
    return [function(*(at(c, i) for c in columns), **{k: at(v, i) for k, v in options.items()}) for i in rows]


def _make(name: str, function: Callable[..., Any], same: str | None = None) -> Callable[..., Any]:
    full, inplace, ternary = f"_foreach_{name}", name.endswith("_"), name.rstrip("_") in _TERNARY
    known: dict[bool, Any] = {}

    def foreach(
        tensors: Any, *arguments: Any, scalars: Any = None, scalar: Any = None, **options: Any
    ) -> Any:
        if ternary:
            value = arguments[2] if len(arguments) == 3 else options.pop("value", scalars)
            arguments = arguments[:2]
            if isinstance(value, Tensor) and value.ndim == 1:
                value = value.tolist()
            if value is not None:
                options["value"] = list(value) if isinstance(value, tuple) else value
        elif scalars is not None or scalar is not None:
            arguments = (*arguments, scalar if scalars is None else scalars)
        columns = _checked(full, tensors, arguments)
        kind = len(columns) > 1 and _is_tensor(columns[-1])
        if kind not in known:
            known[kind] = _operator(same or name, kind)
        found = known[kind]._rows(*columns, **options)
        if found is NotImplemented:
            found = _loop(function, columns, options)
        return None if inplace else found

    foreach.__name__ = foreach.__qualname__ = full
    foreach.__doc__ = f"`{name}` of every tensor of a list."
    return foreach


def _norm(tensors: Any, ord: Any = 2, dtype: Any = None) -> list[Tensor]:
    """`linalg_vector_norm` of every tensor of a list."""
    columns = _checked("_foreach_norm", tensors, (ord,))
    found = _C._find_operator("mica::linalg_vector_norm")._rows(*columns, dtype=dtype)
    if found is NotImplemented:
        return _loop(_C._functions[""]["linalg_vector_norm"], columns, {"dtype": dtype})
    return found


def _all() -> dict[str, Callable[..., Any]]:
    made = {}
    generated = _C._functions[""]
    for name in (*_UNARY, *_BINARY, *_TERNARY, *_SAME):
        same = _SAME.get(name, name)
        made[f"_foreach_{name}"] = _make(name, generated[name], same)
        made[f"_foreach_{name}_"] = _make(f"{name}_", getattr(Tensor, f"{same}_"), f"{same}_")
    for name in _METHODS:
        made[f"_foreach_{name}"] = _make(name, getattr(Tensor, name))
    made["_foreach_norm"] = _norm
    return made


globals().update(_all())
__all__ = [name for name in globals() if name.startswith("_foreach_")]
