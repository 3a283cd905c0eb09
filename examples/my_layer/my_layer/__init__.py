"""The Python face of the plugin: FlopCounter, a context manager, and bounds, a transform."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import mica
from mica import Tensor

# snippet: counter


class FlopCounter:
    """Counts the floating-point operations of this thread while it is entered.

    `count()` gives all of them, `count("contraction")` those of a class of operators, and
    `count("mica::mm")` those of one. A backward that runs within is counted too, and under vmap the
    work of the whole batch.
    """

    def __enter__(self) -> FlopCounter:
        self._marks = [mica.ops.my_layer.flops_mark()]
        self._layer = mica.library.layer("my_layer.flops")
        self._layer.__enter__()
        return self

    def __exit__(self, *raised: Any) -> None:
        self._layer.__exit__(*raised)
        self._marks.append(mica.ops.my_layer.flops_mark())

    def count(self, of: str = "all") -> int:
        end = self._marks[1] if len(self._marks) > 1 else None
        return mica.ops.my_layer.flops(end, of) - mica.ops.my_layer.flops(self._marks[0], of)

    def __del__(self) -> None:
        for mark in getattr(self, "_marks", []):
            mica.ops.my_layer.flops_drop(mark)


# end snippet


class Bounds(NamedTuple):
    """The least and the greatest that a tensor may be, element by element."""

    lower: Tensor
    upper: Tensor


# snippet: bounds
def bounds(function: Callable[..., Any]) -> Callable[..., Any]:
    """`bounds(f)(Bounds(lower, upper), y)` is Bounds of f(x, y) for every x in between.

    Arguments that are no Bounds are what they are. Nests with the transforms of mica.func.
    """

    def bounded(*arguments: Any) -> Any:
        with mica.library.frame("my_layer.interval"):
            inside = [mica.ops.my_layer.interval(*a) if isinstance(a, Bounds) else a for a in arguments]
            return _opened(function(*inside))

    return bounded


def _opened(result: Any) -> Any:
    if isinstance(result, Tensor):
        return Bounds(mica.ops.my_layer.lower(result), mica.ops.my_layer.upper(result))
    if isinstance(result, dict):
        return {key: _opened(value) for key, value in result.items()}
    if isinstance(result, tuple | list):
        return type(result)(_opened(value) for value in result)
    return result


# end snippet
