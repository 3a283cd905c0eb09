"""Every differentiable operator under mica.func, from the data of mica.conformance: vjp against
plain backward, the second derivative through two levels against create_graph, and jvp of
the gradient (forward over reverse) against both, in-place forms too."""

from __future__ import annotations

from typing import Any

import pytest
from every_operator import DEVIATIONS, SAMPLED

import mica
from mica import _C
from mica.conformance.operators import ENTRIES, Entry, Made, arguments, attempt, finished, operator, settled
from mica.conformance.samples import Call

SMALL = 60  # numbers in the inputs; nestings of larger calls take long


class Case:
    """A call as a function of its inputs that require grad, and those inputs."""

    def __init__(self, entry: Entry, f: Any, call: Call, dtype: str, inplace: bool) -> None:
        self.entry, self.f, self.inplace = entry, f, inplace
        self.positional, self.keyword, tensors = arguments(
            mica, call, dtype, "contiguous", True, finish=False
        )
        self.inputs = [t for t in tensors if t.requires_grad]
        self.values = [t.detach() for t in self.inputs]
        self.kept: list[int] = []

    def run(self, *given: Any) -> list[Any]:
        replaced = {id(old): new for old, new in zip(self.inputs, given)}

        def put(value: Any) -> Any:
            if isinstance(value, Made):
                return Made(put(value.numbers), value.how)
            if isinstance(value, (list, tuple)):
                return type(value)(put(v) for v in value)
            return replaced.get(id(value), value) if isinstance(value, mica.Tensor) else value

        mica.manual_seed(0)
        first, *rest = (finished(put(p)) for p in self.positional)
        named = {k: finished(put(v)) for k, v in self.keyword.items()}
        result = self.f(first.clone() if self.inplace else first, *rest, **named)
        result = settled(self.entry.overload, result)
        items = result if isinstance(result, (tuple, list)) else [result]
        return [t for t in items if isinstance(t, mica.Tensor)]

    def number(self, *given: Any) -> Any:
        """A number made of the differentiable results, not linear in them."""
        results = self.run(*given)
        total = 0.0
        for k in self.kept:
            t = results[k]
            total = total + ((t.real.square() + t.imag).sum() if t.is_complex() else (t * t + t).sum())
        return total


def cases(entry: Entry, inplace: bool) -> Any:
    f = operator(entry.inplace() if inplace else entry)
    for number, call in enumerate(entry.calls()):
        if (entry.overload, number) in DEVIATIONS:
            continue
        for dtype in ("float64", "complex128"):
            case = Case(entry, f, call, dtype, inplace)
            if not case.inputs or sum(t.numel() for t in case.inputs) > SMALL:
                continue
            result, error = attempt(case.run, *case.inputs)
            if error is not None:
                continue
            case.kept = [k for k, t in enumerate(result) if t.requires_grad and entry.differentiable]
            if case.kept:
                yield f"{dtype} call {number}", case


def same(a: Any, b: Any) -> bool:
    return all(bool(mica.allclose(x, y, rtol=1e-7, atol=1e-9, equal_nan=True)) for x, y in zip(a, b))


def wrong(case: Case) -> str:
    recorded = [v.clone().requires_grad_() for v in case.values]
    numbers = tuple(range(len(recorded)))
    out = case.number(*recorded)
    first = mica.autograd.grad(out, recorded, create_graph=True, allow_unused=True, materialize_grads=True)
    gradient = mica.func.grad(case.number, argnums=numbers)
    if not same(gradient(*case.values), [g.detach() for g in first]):
        return "grad differs from plain backward"
    weighed = lambda *given: sum((g.abs().square() + g.real).sum() for g in gradient(*given))  # noqa: E731
    total = sum((g.abs().square() + g.real).sum() for g in first)
    expected, error = attempt(
        mica.autograd.grad, total, recorded, allow_unused=True, materialize_grads=True
    ) if total.requires_grad else ([mica.zeros_like(v) for v in case.values], None)  # fmt: skip
    if error is not None:
        return ""  # the gradient's own gradient is refused, which test_gradients looks at
    if not same(mica.func.grad(weighed, argnums=numbers)(*case.values), expected):
        return "grad of grad differs from plain backward of backward"
    along = tuple(mica.ones_like(v) for v in case.values)
    slope = sum((e.real if e.is_complex() else e).sum() for e in expected)
    if not same([mica.func.jvp(weighed, tuple(case.values), along)[1]], [slope]):
        return "jvp of grad differs from plain backward of backward"
    assert _C._frame_depth() == 0
    return ""


@pytest.mark.parametrize("name", SAMPLED)
def test_operator(name: str) -> None:
    entry = ENTRIES[name]
    found = []
    for inplace in (False, True) if "inplace" in entry.forms else (False,):
        for where, case in cases(entry, inplace):
            what, error = attempt(wrong, case)
            if error is not None:
                what = f"{type(error).__name__}: {str(error).splitlines()[0]:.300}"
            if what:
                found.append(f"{where}{' in place' * inplace}: {what}")
    assert not found, "\n".join(found[:12])
