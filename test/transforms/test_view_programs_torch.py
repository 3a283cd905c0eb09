"""Random programs of views of views and in-place writes, under everything that records or maps:
vmap and its nestings with grad, nested dual levels, hooks on saved tensors, checkpoints,
copy on write. The expected values are those of plain calls and plain backward, which
test_autograd_programs_torch holds against torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from test_func_torch import live_after, same, tensors, weighed
from view_programs import Step, program

import mica
from mica.autograd import forward_ad, graph
from mica.func import grad, vmap
from mica.utils.checkpoint import checkpoint

SHAPES = ((2, 3), (3,), (2, 2))
EXAMPLES = 3
ARGNUMS = (0, 1, 2)
PROGRAMS = 40


def function(steps: list[Step]) -> Callable[..., mica.Tensor]:
    return lambda *given: weighed(live_after(mica, steps, list(given)))


def batches() -> list[mica.Tensor]:
    scale = mica.linspace(0.6, 1.3, EXAMPLES, dtype=mica.float64)
    return [mica.stack([c * t for c in scale]) for t in tensors(mica, *SHAPES)]


def examples() -> list[list[mica.Tensor]]:
    return [[b[i].clone() for b in batches()] for i in range(EXAMPLES)]


def gradients(
    f: Callable[..., mica.Tensor], given: list[mica.Tensor], create_graph: bool = False
) -> list[Any]:
    found = mica.autograd.grad(f(*given), given, create_graph=create_graph, allow_unused=True)
    return [mica.zeros_like(x) if g is None else g for g, x in zip(found, given)]


def leaves_of(given: list[mica.Tensor]) -> list[mica.Tensor]:
    return [x.clone().requires_grad_() for x in given]


def seeds(block: int) -> range:
    return range(1000 + block * PROGRAMS, 1000 + (block + 1) * PROGRAMS)


def steps_of(seed: int, reshapes: bool) -> list[Step]:
    # Eager refuses writes through views that were made under no_grad; transforms do not see no_grad.
    return [s for s in program(seed, reshapes) if s[0] != "no_grad_view"]


@pytest.mark.parametrize("reshapes", [False, True])
@pytest.mark.parametrize("block", range(4))
def test_under_vmap(block: int, reshapes: bool) -> None:
    compared = 0
    for seed in seeds(block):
        steps = steps_of(seed, reshapes)
        f = function(steps)
        values = mica.stack([f(*given) for given in examples()])
        same(vmap(f)(*batches()), values, seed)
        try:
            expected = [gradients(f, leaves_of(given)) for given in examples()]
        except RuntimeError:
            continue  # a value was overwritten that backward needs
        compared += 1
        stacked = tuple(mica.stack(list(parts)) for parts in zip(*expected))
        same(vmap(grad(f, argnums=ARGNUMS))(*batches()), stacked, seed)
        same(grad(lambda *given: vmap(f)(*given).sum(), argnums=ARGNUMS)(*batches()), stacked, seed)  # noqa: B023
        recorded = leaves_of(batches())
        same(gradients(lambda *given: vmap(f)(*given).sum(), recorded), stacked, seed)  # noqa: B023
        twice = lambda *given: vmap(lambda c: f(*(c * t for t in given)))(mica.ones(2)).sum()  # noqa: B023, E731
        plain = [2 * g for g in expected[0]]
        same(grad(twice, argnums=ARGNUMS)(*examples()[0]), tuple(plain), seed)
    assert compared >= PROGRAMS // 3


@pytest.mark.parametrize("reshapes", [False, True])
@pytest.mark.parametrize("block", range(3))
def test_under_hooks_and_checkpoints(block: int, reshapes: bool) -> None:
    compared = 0
    for seed in seeds(block):
        steps = steps_of(seed, reshapes)
        f = function(steps)
        given = leaves_of(tensors(mica, *SHAPES))
        directions = tensors(mica, *SHAPES)
        # Forward mode reads values when they are there, and so knows no overwritten ones.
        along = mica.func.jvp(f, tuple(x.detach() for x in given), tuple(directions))[1]
        with graph.allow_mutation_on_saved_tensors():
            found = gradients(f, given)
        same(sum((g * d).sum() for g, d in zip(found, directions)), along, seed)
        try:
            first = gradients(f, given, create_graph=True)
            second = total_gradients(first, given)
        except RuntimeError:
            continue
        compared += 1
        same(tuple(found), tuple(first), seed)

        def through_files(t: mica.Tensor) -> np.ndarray:
            return np.array(t.detach().numpy(), copy=True)

        with graph.saved_tensors_hooks(through_files, mica.from_numpy):
            packed = gradients(f, given, create_graph=True)
            same(tuple(packed), tuple(first), seed)
            same(tuple(total_gradients(packed, given)), tuple(second), seed)
        part = lambda *given: checkpoint(f, *given)  # noqa: B023, E731
        again = gradients(part, given, create_graph=True)
        same(tuple(again), tuple(first), seed)
        same(tuple(total_gradients(again, given)), tuple(second), seed)
    assert compared >= PROGRAMS // 3


def total_gradients(first: list[Any], given: list[mica.Tensor]) -> list[Any]:
    total = sum((g * g).sum() for g in first)
    if not total.requires_grad:
        return [mica.zeros_like(x) for x in given]
    found = mica.autograd.grad(total, given, allow_unused=True)
    return [mica.zeros_like(x) if g is None else g for g, x in zip(found, given)]


@pytest.mark.parametrize("block", range(2))
def test_nested_dual_levels(block: int) -> None:
    for seed in seeds(block):
        f = function(steps_of(seed, False))
        given, directions = tensors(mica, *SHAPES), tensors(mica, *SHAPES)
        nested = lambda *given: mica.func.jvp(f, given, tuple(directions))[1]  # noqa: B023, E731
        expected = mica.func.jvp(nested, tuple(given), tuple(directions))
        with forward_ad.dual_level():
            outer = [forward_ad.make_dual(x, t) for x, t in zip(given, directions)]
            with forward_ad.dual_level():
                inner = [forward_ad.make_dual(x, t) for x, t in zip(outer, directions)]
                slope = forward_ad.unpack_dual(f(*inner)).tangent
            if slope is None:
                slope = mica.zeros((), dtype=mica.float64)
            value, curve = forward_ad.unpack_dual(slope)
        same((value, mica.zeros_like(value) if curve is None else curve), expected, seed)
