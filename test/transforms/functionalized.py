"""A program against itself under functionalize: what both suites of it compare."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from compare import unlike

import mica
from mica.conformance.operators import attempt
from mica.func import functionalize
from mica.fx import make_fx

REMOVE = ["mutations", "mutations_and_views"]

Program = Callable[..., list[mica.Tensor]]


def differs(got: list[mica.Tensor], wanted: list[mica.Tensor]) -> str:
    if len(got) != len(wanted):
        return f"{len(got)} tensors instead of {len(wanted)}"
    for k, (a, b) in enumerate(zip(got, wanted)):
        small = b.dtype in (mica.float32, mica.complex64, mica.float16, mica.bfloat16)
        if wrong := unlike(a, b, *((1e-4, 1e-5) if small else (1e-9, 1e-10))):
            return f"tensor {k}: {wrong}"
    return ""


def _gradients(results: list[mica.Tensor], inputs: list[mica.Tensor]) -> list[mica.Tensor]:
    total: Any = 0.0
    for t in results:
        if t.requires_grad:
            total = total + ((t.real.square() + t.imag).sum() if t.is_complex() else (t * t + t).sum())
    wanted = [t for t in inputs if t.requires_grad]
    if not isinstance(total, mica.Tensor) or not wanted:
        return []
    found = mica.autograd.grad(total.real, wanted, allow_unused=True)
    return [mica.zeros_like(t) if g is None else g for g, t in zip(found, wanted)]


def _said(error: Exception) -> Any:
    """The sentence; of a result that `self` cannot hold its values alone, since a composed operator
    in place leaves it to its last part to say so."""
    sentence = str(error).splitlines()[0]
    refused = "which cannot be cast to the dtype" in sentence or "cannot hold; expected a `self`" in sentence
    return sorted(re.findall(r"\((\w+)\)", sentence)) if refused else sentence


def copies(inputs: list[mica.Tensor]) -> list[mica.Tensor]:
    return [t.detach().clone().requires_grad_(t.requires_grad) for t in inputs]


def outcome(f: Program, inputs: list[mica.Tensor]) -> tuple[list[list[mica.Tensor]], Exception | None]:
    """Results, inputs after the call, gradients; or the error. What is saved for backward is
    copied, so that later writes, which a functionalized program has not, do it no harm."""
    given = copies(inputs)
    mica.manual_seed(0)
    with mica.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
        results, error = attempt(f, *given)
    if error is not None:
        return [], error
    gradients, error = attempt(_gradients, results, given)
    return [results, given, gradients or []], error


def check(f: Program, inputs: list[mica.Tensor], remove: str = "mutations") -> str:
    """What functionalize changes of `f`, or ""."""
    wanted, error = outcome(f, inputs)
    got, found = outcome(functionalize(f, remove=remove), inputs)
    if error is not None or found is not None:
        same = type(error) is type(found) and _said(error) == _said(found)
        return "" if same else f"{found!r:.300} instead of {error!r:.300}"
    for name, a, b in zip(("results", "inputs", "gradients"), got, wanted):
        if wrong := differs(a, b):
            return f"{name}: {wrong}"
    given = copies(inputs)
    versions = [t._version for t in given]
    mica.manual_seed(0)
    results, mutations = functionalize(f, remove=remove, return_mutations=True)(*given)
    if [t._version for t in given] != versions or differs(given, inputs):
        return "an input was written before the end"
    if wrong := differs(results, wanted[0]):
        return f"results with return_mutations: {wrong}"
    updated = [t if m is None else m for t, m in zip(given, mutations)]
    wrong = differs(updated, wanted[1])
    return wrong and f"mutations: {wrong}"


def recorded_in(f: Program, inputs: list[mica.Tensor], remove: str) -> tuple[set[str], set[str]]:
    """What writes and what views in the graph of the functionalized program; writes of fresh clones
    are none."""
    changed = functionalize(f, remove=remove, return_mutations=True)
    graph = make_fx(changed)(*(t.detach().clone() for t in inputs)).graph
    writes, views = set(), set()
    for node in graph.nodes:
        schema = getattr(node.target, "schema", "")
        if "!" in schema and "clone" not in str(getattr(node.args[0], "target", "")):
            writes.add(str(node.target))
        elif "Tensor(a" in schema:
            views.add(str(node.target))
    return writes, views
