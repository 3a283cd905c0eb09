"""Every operator traced by mica.fx.make_fx, from the data of mica.conformance: the graph run again
against eager, in real and in fake mode, in-place and out forms and the backward too."""

from __future__ import annotations

from typing import Any

import pytest
from compare import unlike
from every_operator import each, judge
from layers import absent_layer

import mica
from mica.conformance.batches import Sample, tensors_of
from mica.conformance.operators import ENTRIES, Entry, attempt, operator
from mica.fx import make_fx

# Operators whose result is no tensor or whose shape depends on values have no fake trace.
VALUES_DECIDE = ("depends on values", "has no values", "depends on the values")


class Traced(Sample):
    """A sample call as a function of its tensors, for one trace."""

    def __init__(self, entry: Entry, call: Any, dtype: str, inplace: bool = False) -> None:
        super().__init__(entry, call, dtype, inplace=inplace, finish=True)

    def run(self, f: Any) -> tuple[Any, Exception | None]:
        mica.manual_seed(0)
        return attempt(f, *[t.clone() for t in self.inputs])


def same(a: Any, b: Any, tolerance: float = 0) -> bool:
    """The same shapes, dtypes and values; with a tolerance, values close to each other."""
    return not unlike(tensors_of(a), tensors_of(b), tolerance)


def cases(entry: Entry) -> Any:
    forms = (False, True) if "inplace" in entry.forms else (False,)
    for call in entry.calls():
        for dtype in ("float64", "int64", "complex128"):
            for inplace in forms:
                yield Traced(entry, call, dtype, inplace)


NAMES = sorted(name for name, e in ENTRIES.items() if e.calls())


@pytest.mark.parametrize("overload", NAMES)
def test_replay_equals_eager(overload: str) -> None:
    traced = 0
    for case in cases(ENTRIES[overload]):
        expected, error = case.run(case)
        if error is not None:
            assert not absent_layer(str(error)), str(error)
            continue
        if not tensors_of(expected):
            continue
        graph, failure = case.run(make_fx(case))
        assert failure is None, f"{overload}: {failure}"
        found, failure = case.run(graph)
        assert failure is None, f"{overload}: {failure}\n{graph.code}"
        assert same(expected, found), f"{overload}\n{graph.code}"
        assert any(n.op == "call_function" for n in graph.graph.nodes), overload
        traced += 1
        imagined, failure = case.run(make_fx(case, tracing_mode="fake"))
        if failure is not None:
            assert any(s in str(failure) for s in VALUES_DECIDE), f"{overload}: {failure}"
            continue
        assert imagined.code == graph.code, overload
        check_fake(imagined, expected, overload)
    assert bool(traced) != (overload in NO_TENSORS), overload


NO_TENSORS = {
    name
    for name in NAMES
    if "-> Tensor" not in operator(ENTRIES[name]).schema
    and "Tensor" not in operator(ENTRIES[name]).schema.split("->")[1]
}


def check_fake(graph: Any, expected: Any, overload: str) -> None:
    """What the fake trace says of the results is what eager gives."""
    returned = tensors_of(expected)
    nodes: list[Any] = []
    mica.fx.map_arg(graph.graph.output_node().args, nodes.append)
    assert len(nodes) == len(returned), overload
    for node, t in zip(nodes, returned):
        meta = node.meta["tensor_meta"]
        assert (tuple(meta.shape), meta.dtype, meta.device) == (tuple(t.shape), t.dtype, t.device), overload
        assert meta.stride == tuple(t.stride()), overload


@each("trace of the backward", [n for n in NAMES if ENTRIES[n].differentiable])
def test_backward_is_traced(name: str) -> None:
    wrong = []
    for number, call in enumerate(ENTRIES[name].calls()):
        case = Traced(ENTRIES[name], call, "float64")
        inputs = [t for t in case.inputs if t.is_floating_point()]
        if not inputs or sum(t.numel() for t in inputs) > 200:
            continue

        def step(*given: Any, case: Traced = case) -> Any:
            leaves = [t.detach().requires_grad_() if t.is_floating_point() else t for t in given]
            results = [t for t in tensors_of(case(*leaves)) if t.requires_grad]
            wanted = [t for t in leaves if t.requires_grad]
            if not results:
                return []
            seeds = [mica.ones_like(t) for t in results]
            found = mica.autograd.grad(results, wanted, seeds, allow_unused=True)
            return [t for t in found if t is not None]

        expected, error = case.run(step)
        if error is not None or not expected:
            continue
        graph, failure = case.run(make_fx(step))
        found = None
        if failure is None:
            found, failure = case.run(graph)
        if failure is not None:
            wrong.append(f"call {number}: {failure}")
        # A kernel may sum in another order where its operands stand elsewhere.
        elif differs := unlike(tensors_of(found), tensors_of(expected), 1e-12):
            wrong.append(f"call {number}: {differs}\n{graph.code}")
    judge("trace of the backward", name, wrong)
