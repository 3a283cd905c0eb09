"""What a device gets from the layers above it and writes no line for: vmap, autocast and functionalize.

vmap of a sample call over all of its tensors is compared as its values are. Autocast is compared
with the explicit casts of a policy, on the device itself: policies differ between the CPU and
accelerators, and a policy is a matter of dtypes. functionalize is compared with the program itself,
on the device too: an in-place form on a view of a view, or a write to what a view operator returns.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import mica
from mica.conformance.batches import Mapped
from mica.conformance.operator_checks import CHECKS, Case, Change, Check, described, flat, made
from mica.conformance.operators import Entry, attempt, operator
from mica.func import functionalize

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


def _alike(a: Any, b: Any) -> bool:
    """Equal, or, on a device other than the CPU, as near as sums in any order are: atomics have none."""
    if _equal(a, b):
        return True
    tensors = isinstance(a, mica.Tensor) and isinstance(b, mica.Tensor)
    if not tensors or a.device.type == "cpu" or a.dtype != b.dtype or not a.dtype.is_floating_point:
        return False
    near = 16 * mica.finfo(a.dtype).eps
    return a.shape == b.shape and mica.allclose(
        a.cpu().double(), b.cpu().double(), rtol=near, atol=near, equal_nan=True
    )


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
        if len(explicit) == len(got) and all(map(_alike, got, explicit)):
            return []
    if case.entry.op_class == "decompose":
        return []  # each of its parts has a policy of its own
    raise AssertionError(
        f"Under autocast it gives neither what it gives on its arguments as they are, nor on arguments cast to "
        f"{lower} or to float32."
    )


def _functionalize_cases(entry: Entry, dtype: str) -> Iterator[Case]:
    if "inplace" in entry.forms or entry.op_class == "view":
        yield from _cases("functionalize", entry, dtype)


def _overlaps(case: Case, first: mica.Tensor, rest: list[Any], keyword: dict[str, Any]) -> bool:
    """Whether the operator's result shows an element of memory several times."""
    view, _ = attempt(operator(case.entry), first, *rest, **keyword)
    if not isinstance(view, mica.Tensor):
        return False
    extent = 1 + sum((size - 1) * stride for size, stride in zip(view.shape, view.stride()))
    return view.numel() > extent


def _run_functionalize(case: Case, device: str, _: Change) -> list[mica.Tensor]:
    """No result: the comparison is made here."""
    (first, *rest), keyword = made(case, device, None)
    if device != "cpu" and "inplace" not in case.entry.forms and _overlaps(case, first, rest, keyword):
        return []  # what a write through such a view leaves depends on the order of its elements

    def program(x: mica.Tensor) -> list[mica.Tensor]:
        mica.manual_seed(0)
        x = x.clone()
        if "inplace" in case.entry.forms:
            place = x.unsqueeze(0).squeeze(0)
            operator(case.entry.inplace())(place, *rest, **keyword)
        else:
            place = operator(case.entry)(x, *rest, **keyword)
            place.mul_(2)
        return [x, place]

    expected, refused = attempt(program, first)
    if isinstance(refused, NotImplementedError):
        raise refused
    got, error = attempt(functionalize(program), first)
    if refused is None and error is not None:
        raise error
    if type(refused) is not type(error):
        raise AssertionError(f"It gives a result where the program itself raises {type(refused).__name__}.")
    if refused is None and not all(map(_alike, got, expected)):
        raise AssertionError("The functionalized program gives other values than the program itself.")
    return []


CHECKS["vmap"] = Check("vmap over all tensors of a call", _vmap_cases, _run_vmap)
CHECKS["autocast"] = Check(
    "under autocast, what explicit casts give", _autocast_cases, _run_autocast, compared=False
)
CHECKS["functionalize"] = Check(
    "functionalize of writes and views", _functionalize_cases, _run_functionalize, compared=False
)
