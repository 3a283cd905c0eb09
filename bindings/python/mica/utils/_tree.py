"""Mapping a function over the tensors in nested containers."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from mica._C import Tensor


def map_tensors(obj: Any, function: Callable[[Tensor], Any]) -> Any:
    """`obj` with every tensor in its lists, tuples and dictionaries replaced."""
    if isinstance(obj, Tensor):
        return function(obj)
    if isinstance(obj, dict):
        items = {k: map_tensors(v, function) for k, v in obj.items()}
        if type(obj) is dict:
            return items
        made = copy.copy(obj)  # with a default dictionary's factory, and attributes
        made.update(items)
        return made
    if isinstance(obj, tuple) and hasattr(obj, "_fields"):
        return type(obj)(*(map_tensors(v, function) for v in obj))
    if isinstance(obj, (list, tuple)):
        return type(obj)(map_tensors(v, function) for v in obj)
    return obj
