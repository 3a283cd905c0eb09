"""Every differentiable operator under mica.func, from the data of mica.conformance: vjp against
plain backward, the second derivative through two levels against create_graph, and jvp of
the gradient (forward over reverse) against both, in-place forms too."""

from __future__ import annotations

from typing import Any

from compare import same
from every_operator import SAMPLED, each, judge

import mica
from mica import _C
from mica.conformance.batches import Sample, tensors_of
from mica.conformance.operators import ENTRIES, Entry, attempt

SMALL = 60  # numbers in the inputs; nestings of larger calls take long
CLOSE = 1e-7, 1e-9


class Case(Sample):
    """A call as a function of its inputs that require grad."""

    kept: list[int]  # the results that require grad

    def run(self, *given: Any) -> list[Any]:
        mica.manual_seed(0)
        return tensors_of(self(*given))

    def number(self, *given: Any) -> Any:
        """A number made of the differentiable results, not linear in them."""
        results = self.run(*given)
        total = 0.0
        for k in self.kept:
            t = results[k]
            total = total + ((t.real.square() + t.imag).sum() if t.is_complex() else (t * t + t).sum())
        return total


def cases(entry: Entry, inplace: bool) -> Any:
    for number, call in enumerate(entry.calls()):
        for dtype in ("float64", "complex128"):
            case = Case(entry, call, dtype, inplace=inplace, grad=True)
            if not case.inputs or sum(t.numel() for t in case.inputs) > SMALL:
                continue
            result, error = attempt(case.run, *case.inputs)
            if error is not None:
                continue
            case.kept = [k for k, t in enumerate(result) if t.requires_grad and entry.differentiable]
            if case.kept:
                yield f"{dtype} call {number}", case


def wrong(case: Case) -> str:
    values = [t.detach() for t in case.inputs]
    recorded = [v.clone().requires_grad_() for v in values]
    numbers = tuple(range(len(recorded)))
    out = case.number(*recorded)
    first = mica.autograd.grad(out, recorded, create_graph=True, allow_unused=True, materialize_grads=True)
    gradient = mica.func.grad(case.number, argnums=numbers)
    if not same(gradient(*values), tuple(g.detach() for g in first), *CLOSE):
        return "grad differs from plain backward"
    weighed = lambda *given: sum((g.abs().square() + g.real).sum() for g in gradient(*given))  # noqa: E731
    total = sum((g.abs().square() + g.real).sum() for g in first)
    expected, error = attempt(
        mica.autograd.grad, total, recorded, allow_unused=True, materialize_grads=True
    ) if total.requires_grad else ([mica.zeros_like(v) for v in values], None)  # fmt: skip
    if error is not None:
        return ""  # the gradient's own gradient is refused, which test_gradients looks at
    if not same(mica.func.grad(weighed, argnums=numbers)(*values), expected, *CLOSE):
        return "grad of grad differs from plain backward of backward"
    along = tuple(mica.ones_like(v) for v in values)
    slope = sum((e.real if e.is_complex() else e).sum() for e in expected)
    if not same([mica.func.jvp(weighed, tuple(values), along)[1]], [slope], *CLOSE):
        return "jvp of grad differs from plain backward of backward"
    assert _C._frame_depth() == 0
    return ""


@each("func", SAMPLED)
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
    judge("func", name, found)
