"""Every operator traced by mica.fx.make_fx, from the data of mica.conformance: the graph run again
against eager, in real and in fake mode, in-place and out forms and the backward too."""

from __future__ import annotations

from typing import Any

import pytest

import mica
from mica.conformance.operators import ENTRIES, Entry, arguments, attempt, operator
from mica.fx import make_fx

# Operators whose result is no tensor or whose shape depends on values have no fake trace.
VALUES_DECIDE = ("depends on values", "has no values", "depends on the values")
# Memory that nobody wrote yet differs from run to run.
UNWRITTEN = ("empty", "new_empty", "_empty")


def tensors_of(value: Any) -> list[Any]:
    if isinstance(value, mica.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in tensors_of(v)]
    return []


class Traced:
    """A sample call as a function of its tensors."""

    def __init__(self, f: Any, call: Any, dtype: str, copy_first: bool) -> None:
        self.f, self.copy_first = f, copy_first
        self.positional, self.keyword, _ = arguments(mica, call, dtype, "contiguous")
        self.inputs = tensors_of([*self.positional, *self.keyword.values()])

    def __call__(self, *given: Any) -> Any:
        replaced = {id(old): new for old, new in zip(self.inputs, given)}

        def put(value: Any) -> Any:
            if isinstance(value, (list, tuple)):
                return type(value)(put(v) for v in value)
            return replaced.get(id(value), value) if isinstance(value, mica.Tensor) else value

        first, *rest = [put(p) for p in self.positional] or [None]
        named = {k: put(v) for k, v in self.keyword.items()}
        if not self.positional:
            return self.f(**named)
        return self.f(first.clone() if self.copy_first else first, *rest, **named)

    def run(self, f: Any) -> tuple[Any, Exception | None]:
        mica.manual_seed(0)
        return attempt(f, *[t.clone() for t in self.inputs])


def same(a: Any, b: Any, tolerance: float = 0) -> bool:
    """The same shapes, dtypes and values; with a tolerance, values close to each other."""
    first, second = tensors_of(a), tensors_of(b)
    return len(first) == len(second) and all(
        x.shape == y.shape and x.dtype == y.dtype and bool(_equal(x, y, tolerance).all())
        for x, y in zip(first, second)
    )


def _equal(x: Any, y: Any, tolerance: float) -> Any:
    if tolerance and x.is_floating_point():
        return mica.isclose(x, y, rtol=tolerance, atol=tolerance, equal_nan=True)
    return (x == y) | ((x != x) & (y != y))


def cases(entry: Entry) -> Any:
    forms = [(operator(entry), False)]
    if "inplace" in entry.forms:
        forms.append((operator(entry.inplace()), True))
    for call in entry.calls():
        for dtype in ("complex128",) if entry.overload in COMPLEX else ("float64", "int64"):
            for f, inplace in forms:
                yield Traced(f, call, dtype, inplace)


# Operators of complex numbers alone.
COMPLEX = ("_angle", "_conj_physical", "istft")
# Operators whose checks, or whose pieces, depend on values, and whose gradient is that of their parts.
READ_VALUES = {
    "cov",
    "histogram.bin_ct",
    "linalg_eig",
    "linalg_eigvals",
    "linalg_lstsq",
    "nanquantile",
    "nanquantile.scalar",
    "narrow.Tensor",
    "quantile",
    "quantile.scalar",
    "tensor_split.tensor_indices_or_sections",
}

NAMES = sorted(name for name, e in ENTRIES.items() if e.calls() and not name.startswith(UNWRITTEN))


@pytest.mark.parametrize("overload", NAMES)
def test_replay_equals_eager(overload: str) -> None:
    traced = 0
    for case in cases(ENTRIES[overload]):
        expected, error = case.run(case)
        if error is not None:
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


@pytest.mark.parametrize("overload", [n for n in NAMES if ENTRIES[n].differentiable])
def test_backward_is_traced(overload: str) -> None:
    for call in ENTRIES[overload].calls():
        case = Traced(operator(ENTRIES[overload]), call, "float64", False)
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
        if overload in READ_VALUES and failure is not None:
            assert "number or truth value of the values" in str(failure), overload
            continue
        assert failure is None, f"{overload}: {failure}"
        found, failure = case.run(graph)
        assert failure is None, f"{overload}: {failure}\n{graph.code}"
        # A kernel may sum in another order where its operands stand elsewhere.
        assert same(expected, found, 1e-12), f"{overload}\n{graph.code}"
