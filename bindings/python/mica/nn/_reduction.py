"""Numbers and names of reductions, as torch.nn._reduction has them for losses written elsewhere."""

from __future__ import annotations

import warnings

from mica.nn._operators import REDUCTIONS, named_reduction


def get_enum(reduction: str) -> int:
    """The operators' number of a reduction."""
    if reduction == "elementwise_mean":
        warnings.warn(
            "reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead.", stacklevel=2
        )
        reduction = "mean"
    if reduction not in REDUCTIONS:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return REDUCTIONS[reduction]


def legacy_get_string(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> str:
    """The reduction that the old arguments ask for."""
    found = named_reduction("mean", size_average, True if reduce is None else reduce)
    if emit_warning:
        text = "size_average and reduce args will be deprecated, please use reduction='{}' instead."
        warnings.warn(text.format(found), stacklevel=2)
    return found


def legacy_get_enum(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> int:
    """The number of the reduction that the old arguments ask for."""
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))
