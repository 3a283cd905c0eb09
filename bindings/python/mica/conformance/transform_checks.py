"""What a device gets from the layers above it and writes no line for: vmap and autocast.

vmap of a sample call over all of its tensors is compared as its values are. Autocast is compared
with the explicit casts of a policy, on the device itself: policies differ between the CPU and
accelerators, and a policy is a matter of dtypes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import mica
from mica.conformance.batches import Mapped
from mica.conformance.operator_checks import CHECKS, Case, Change, Check, described, flat, made
from mica.conformance.operators import Entry, attempt, operator

_EXAMPLES = 2
_CALLS = 2  # of each operator


def _cases(check: str, entry: Entry, dtype: str) -> Iterator[Case]:
    for call in entry.calls()[:_CALLS] if dtype == "float32" else []:
        if described([*call.args, *call.kwargs.values()]):
            yield Case(check, entry, call, dtype)


def _vmap_cases(entry: Entry, dtype: str) -> Iterator[Case]:
    return _cases("vmap", entry, dtype)


def _autocast_cases(entry: Entry, dtype: str) -> Iterator[Case]:
    return _cases("autocast", entry, dtype)


def _run_vmap(case: Case, device: str, change: Change) -> Any:
    mapped = Mapped(case.entry, case.call, case.dtype, examples=_EXAMPLES, device=device, change=change)
    return mica.func.vmap(mapped)(*mapped.batches)


def _seeded(case: Case, device: str, cast: Change) -> list[mica.Tensor]:
    mica.manual_seed(0)
    positional, keyword = made(case, device, cast)
    return flat(operator(case.entry)(*positional, **keyword))


def _equal(a: mica.Tensor, b: mica.Tensor) -> bool:
    a, b = a.cpu(), b.cpu()
    return a.dtype == b.dtype and a.shape == b.shape and bool(((a == b) | ((a != a) & (b != b))).all())


def _run_autocast(case: Case, device: str, _: Change) -> list[mica.Tensor]:
    """No result: the comparison is made here. A call that the CPU refuses without autocast is none."""
    kind = mica.device(device).type
    _, refused = attempt(_seeded, case, "cpu", None)
    if refused is not None and not isinstance(refused, NotImplementedError):
        return []
    mica.manual_seed(0)
    positional, keyword = made(case, device, None)
    with mica.autocast(kind):
        got = flat(operator(case.entry)(*positional, **keyword))
    lower = mica.get_autocast_dtype(kind)
    for dtype in (None, lower, mica.float32):

        def cast(x: Any, dtype: mica.dtype | None = dtype) -> Any:
            is_cast = dtype is not None and isinstance(x, mica.Tensor) and x.dtype == mica.float32
            return x.to(dtype) if is_cast else x

        try:
            explicit = _seeded(case, device, cast)
        except (RuntimeError, TypeError, ValueError):
            continue  # it takes no such dtype, and so is not cast to it
        if len(explicit) == len(got) and all(map(_equal, got, explicit)):
            return []
    if case.entry.op_class == "decompose":
        return []  # each of its parts has a policy of its own
    raise AssertionError(
        f"Under autocast it gives neither what it gives on its arguments as they are, nor on arguments cast to "
        f"{lower} or to float32."
    )


CHECKS["vmap"] = Check("vmap over all tensors of a call", _vmap_cases, _run_vmap)
CHECKS["autocast"] = Check(
    "under autocast, what explicit casts give", _autocast_cases, _run_autocast, compared=False
)
