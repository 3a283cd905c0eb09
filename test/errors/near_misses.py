"""Sample calls of the operators with one argument spoilt; bad_input.py makes them.

The calls are those of mica.conformance.samples, so that all arguments but one fit each
other: a kernel that trusts a shape, a dtype, an index or a layout that nobody checked
meets it here. Each argument is a text, an expression over `mica` and `near`.
"""

from __future__ import annotations

import math
import random
from typing import Any

import mica
from mica import _C
from mica.conformance.operators import DTYPE_NAMES, ENTRIES, Made, finished, make
from mica.conformance.samples import Call, T

DTYPES = ["float32"] * 6 + ["float64", "int64", "complex64", "bfloat16", "float16", "bool", "uint8"]
LAYOUTS = ["contiguous"] * 4 + ["transposed", "sliced", "expanded", "offset"]
SPOILS = ["size", "size", "size", "drop", "add", "empty", "swap", "dtype", "values", "layout", "none"]


def near(
    shape: tuple[int, ...],
    low: float = -2,
    high: float = 2,
    dtype: str = "float32",
    layout: str = "contiguous",
    made: str = "",
    grad: bool = False,
) -> Any:
    """A tensor as samples describe them."""
    x = make(mica, T(shape, low, high), dtype, layout, 1)
    square = len(shape) >= 2 and shape[-1] == shape[-2]
    number = x.is_floating_point() or x.is_complex()
    if made and square and number:
        x = finished(Made(x, made))
    return x.requires_grad_() if grad and number else x


def calls_of(name: str) -> list[Call]:
    """The sample calls of an operator's functional form; none where it has no samples."""
    found = _C._find_operator(name)
    entry = ENTRIES.get((found.functional or name).removeprefix("mica::"))
    return entry.calls() if entry else []


class NearMisses:
    """Draws calls near the samples."""

    def __init__(self, rng: random.Random) -> None:
        self.random = rng

    def tensor(self, t: T, run: str, spoil: str) -> str:
        """The text of a described tensor, whole where `spoil` is empty."""
        shape, low, high, dtype = list(t.shape), t.low, t.high, t.dtype or run
        d = self.random.randrange(len(shape)) if shape else None
        layout = self.random.choice(LAYOUTS)
        if spoil == "none":
            return "None"
        if spoil == "size" and d is not None:
            shape[d] = max(0, shape[d] + self.random.choice([-2, -1, 1, 2, 3, 40]))
        elif spoil == "drop" and d is not None:
            del shape[d]
        elif spoil == "empty" and d is not None:
            shape[d] = 0
        elif spoil == "swap":
            self.random.shuffle(shape)
        elif spoil == "add":
            shape.insert(self.random.randrange(len(shape) + 1), self.random.choice([1, 2, 3]))
        elif spoil == "dtype":
            dtype = self.random.choice(DTYPES)
        elif spoil == "values":
            low, high = self.random.choice([(-9, 9), (-1, 0), (100, 1000), (-(2**62), 2**62), (0, 1)])
        if "2" in dtype and "int" not in dtype:  # numbers that every floating dtype has
            low, high = max(low, -1000), min(high, 1000)
        if dtype == "uint8":
            low, high = max(low, 0), max(min(high, 255), 1)
        grad = t.grad and self.random.random() < 0.3
        return f"near({tuple(shape)}, {low}, {high}, {dtype!r}, {layout!r}, {t.made!r}, {grad})"

    def text(self, value: Any, run: str, spoil: str) -> str:
        """The text of an argument of a sample."""
        if isinstance(value, T):
            return self.tensor(value, run, spoil)
        if isinstance(value, (list, tuple)):
            spoilt = self.random.randrange(len(value)) if spoil and value else -1
            return (
                f"[{', '.join(self.text(v, run, spoil if k == spoilt else '') for k, v in enumerate(value))}]"
            )
        if isinstance(value, str) and value in DTYPE_NAMES:
            return f"mica.{value}"
        if isinstance(value, float) and not math.isfinite(value):
            return f"float('{value}')"
        return repr(value)

    def call(self, call: Call, draw: Any) -> tuple[list[str], dict[str, str]]:
        """A sample's arguments, one of them spoilt; `draw` gives a text for the argument of a place or name."""
        run = self.random.choice(DTYPES)
        places = [*range(len(call.args)), *call.kwargs]
        chosen = self.random.choice(places) if places and self.random.random() < 0.9 else None

        def text(place: int | str, value: Any) -> str:
            if place != chosen:
                return self.text(value, run, "")
            tensors = isinstance(value, T) or (
                isinstance(value, list) and any(isinstance(v, T) for v in value)
            )
            if tensors and self.random.random() < 0.95:
                return self.text(value, run, self.random.choice(SPOILS))
            return draw(place)

        texts = [text(k, v) for k, v in enumerate(call.args)]
        return texts, {k: text(k, v) for k, v in call.kwargs.items()}
