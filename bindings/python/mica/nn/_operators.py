"""The generated functions by name: what the functional forms call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mica
from mica import _C
from mica._C import Tensor

OPERATORS: dict[str, Any] = {**_C._functions[""], **_C._functions.get("nn.functional", {})}


def internal(name: str) -> Any:
    """An operator whose name begins with `_`, which the main module does not show."""
    return getattr(mica.ops.mica, name)


REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}


def reduction_number(name: str, size_average: bool | None = None, reduce: bool | None = None) -> int:
    """The operators' number of a reduction, or of the one that torch's old arguments ask for."""
    name = named_reduction(name, size_average, reduce)
    if name not in REDUCTIONS:
        raise ValueError(f"The reduction ({name}) is unknown; expected 'none', 'mean' or 'sum'.")
    return REDUCTIONS[name]


def named_reduction(reduction: str, size_average: bool | None, reduce: bool | None) -> str:
    """The reduction, or what torch's old arguments `size_average` and `reduce` ask for."""
    if size_average is None and reduce is None:
        return reduction
    if reduce is False:
        return "none"
    return "sum" if size_average is False else "mean"


def reduced(loss: Tensor, number: int) -> Tensor:
    """The elements of a loss by the reduction of this number."""
    return loss if number == 0 else loss.mean() if number == 1 else loss.sum()


def values_known(t: Tensor) -> bool:
    """Whether a check of elements can read them at once: on the CPU, and not within vmap or a trace."""
    plain = type(t) in (Tensor, mica.nn.Parameter) and t.device.type == "cpu" and t.numel() > 0
    return plain and _C._vmap_text(t) is None and _C._trace_text(t) is None


def sides(value: Any, count: int) -> list[Any]:
    """One value for each dimension."""
    return list(value) if isinstance(value, Sequence) else [value] * count


def checked_padding(index: int | None, rows: int) -> int | None:
    """The index of the row that pads, counted from the first; AssertionError, as in torch, outside the table."""
    if index is None:
        return None
    if not -rows <= index < rows:
        raise AssertionError(f"Padding_idx must be within num_embeddings, but got {index} and {rows}.")
    return index % rows


def check_probability(p: float) -> None:
    """Raises where a share of elements to drop is none."""
    if p < 0.0 or p > 1.0:
        raise ValueError(f"The dropout probability has to be between 0 and 1, but got {p}.")
