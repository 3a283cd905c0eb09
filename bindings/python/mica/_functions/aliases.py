"""Further names of operators, as torch has them: `arccos` for `acos` and so on."""

from __future__ import annotations

from mica import _C
from mica._C import Tensor

TYPE_CHECKING = False  # importing typing takes as long as all of mica
if TYPE_CHECKING:
    from typing import Any

# alias: operator. Given as a function and as a method where the operator is one;
# in-place forms follow.
_ALIASES = {
    "absolute": "abs",
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctan2": "atan2",
    "arctanh": "atanh",
    "clip": "clamp",
    "concat": "cat",
    "concatenate": "cat",
    "divide": "div",
    "fix": "trunc",
    "greater": "gt",
    "greater_equal": "ge",
    "less": "lt",
    "less_equal": "le",
    "multiply": "mul",
    "negative": "neg",
    "not_equal": "ne",
    "special_erf": "erf",
    "special_expit": "sigmoid",
    "subtract": "sub",
    "true_divide": "div",
}


def install(namespace: dict[str, Any]) -> None:
    methods: dict[str, Any] = {}
    for alias, name in _ALIASES.items():
        for suffix in ("", "_"):
            function = namespace.get(name + suffix)
            if function is not None:
                namespace.setdefault(alias + suffix, function)
            method = getattr(Tensor, name + suffix, None)
            if method is not None and not hasattr(Tensor, alias + suffix):
                methods[alias + suffix] = method
    _C._add_tensor_attributes(methods)
