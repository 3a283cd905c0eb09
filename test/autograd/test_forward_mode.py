"""Forward mode of every operator, from the data of mica.conformance.

Each overload runs on all its samples in float64 (two layouts) and complex128, its
in-place form too, with a random tangent for every input. The results' tangents are held
against central differences along the same direction, and against the gradient:
<u, J v> = <J^T u, v>. For a sample of each overload with a gradient, forward mode goes
over reverse mode and the other way about, against central differences of the gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from every_operator import INPLACE, SAMPLED, each, excepted, judge
from test_gradients import FILLS, VARIANTS

import mica
from mica.autograd import forward_ad
from mica.conformance.batches import Sample, tensors_of
from mica.conformance.operators import ENTRIES, Entry, attempt
from mica.conformance.samples import Call
from mica.func import grad, jvp

STEP, ATOL, RTOL = 1e-6, 1e-5, 1e-3  # of central differences, as gradcheck's

Function = Callable[..., tuple[Any, ...]]


def _function(entry: Entry, call: Call, dtype: str, layout: str, inplace: bool) -> tuple[Function, list[Any]]:
    """The call as a function of its inputs, which gives its floating results; and the inputs."""
    sample = Sample(entry, call, dtype, layout, inplace=inplace, grad=True)

    def run(*given: Any) -> tuple[Any, ...]:
        return tuple(t for t in tensors_of(sample(*given)) if t.is_floating_point() or t.is_complex())

    return run, [t.detach() for t in sample.inputs]


def _direction(x: Any, seed: int) -> Any:
    generator = mica.Generator().manual_seed(seed)
    return mica.rand(x.shape, dtype=x.dtype, generator=generator) + 0.5


def _jvp(run: Function, inputs: list[Any], along: list[Any]) -> list[Any]:
    """The results' tangents; None where one is zero."""
    with forward_ad.dual_level():
        results = run(*(forward_ad.make_dual(x, v) for x, v in zip(inputs, along)))
        return [forward_ad.unpack_dual(y).tangent for y in results]


def _difference(run: Function, inputs: list[Any], along: list[Any]) -> list[Any]:
    above = run(*(x + STEP * v for x, v in zip(inputs, along)))
    below = run(*(x - STEP * v for x, v in zip(inputs, along)))
    return [(a - b) / (2 * STEP) for a, b in zip(above, below)]


def _inner(a: Any, b: Any) -> float:
    return float((a.conj() * b).sum().real.item())


def _close(a: Any, b: Any, atol: float, rtol: float) -> bool:
    return bool(mica.allclose(a, b.to(a.dtype), atol=atol, rtol=rtol, equal_nan=True))


def _check_tangents(run: Function, inputs: list[Any], along: list[Any]) -> str:
    results = run(*(x.clone().requires_grad_() for x in inputs))
    tangents = _jvp(run, inputs, along)
    for i, (y, t, d) in enumerate(zip(results, tangents, _difference(run, inputs, along))):
        if t is None:
            if not y.requires_grad:  # as reverse mode has it
                continue
            t = mica.zeros_like(y)
        if t.shape != y.shape or t.dtype != y.dtype:
            return f"tangent {i} is {t.dtype} {tuple(t.shape)}; expected {y.dtype} {tuple(y.shape)}"
        if not _close(t, d, ATOL * max(1.0, _size(along)), RTOL):
            return f"tangent {i} is {t.flatten()[:4].tolist()}; differences give {d.flatten()[:4].tolist()}"
    return ""


def _size(along: list[Any]) -> float:
    return max((float(v.abs().sum().item()) for v in along if v.numel()), default=1.0)


def _check_transpose(run: Function, inputs: list[Any], along: list[Any]) -> str:
    """<u, J v> = <J^T u, v>."""
    leaves = [x.clone().requires_grad_() for x in inputs]
    results = run(*leaves)
    tangents = _jvp(run, inputs, along)
    recorded = [(y, t) for y, t in zip(results, tangents) if y.requires_grad]
    if not recorded:
        return ""
    seeds = [_direction(y.detach(), 7 + i) for i, (y, _) in enumerate(recorded)]
    gradients = mica.autograd.grad([y for y, _ in recorded], leaves, seeds, allow_unused=True)
    forward = sum(_inner(u, t) for u, (_, t) in zip(seeds, recorded) if t is not None)
    backward = sum(_inner(g, v) for g, v in zip(gradients, along) if g is not None)
    scale = sum(float((u * t).abs().sum().item()) for u, (_, t) in zip(seeds, recorded) if t is not None)
    if abs(forward - backward) > 1e-8 * max(1.0, scale) and forward == forward:
        return f"<u, J v> is {forward}, <J^T u, v> is {backward}"
    return ""


def _check(run: Function, inputs: list[Any]) -> str:
    """What is wrong, or ""."""
    along = [_direction(x, n) for n, x in enumerate(inputs)]
    for check in (_check_tangents, _check_transpose):
        wrong, error = attempt(check, run, inputs, along)
        if error is not None:
            wrong = f"{type(error).__name__}: {str(error).splitlines()[0]:.300}"
        if wrong:
            return wrong
    return ""


def _run_all(entry: Entry, inplace: bool) -> list[str]:
    found = []
    for number, call in enumerate(entry.calls()):
        for dtype, layout in VARIANTS:
            run, inputs = _function(entry, call, dtype, layout, inplace)
            results, error = attempt(run, *inputs)
            if not entry.differentiable and error is None:  # nor are results whose gradient is refused
                recorded, _ = attempt(run, *(x.clone().requires_grad_() for x in inputs))
                results = None if any(t.requires_grad for t in recorded or ()) else results
            if error is None and inputs and results:
                wrong = _check(run, inputs)
                if wrong:
                    found.append(f"{dtype} {layout} call {number}: {wrong}")
    return found


@each("tangents", SAMPLED)
def test_tangents(name: str) -> None:
    judge("tangents", name, _run_all(ENTRIES[name], inplace=False))


@each("tangents in place", INPLACE)
def test_inplace_tangents(name: str) -> None:
    judge("tangents in place", name, _run_all(ENTRIES[name], inplace=True))


@pytest.mark.parametrize("name", FILLS)
def test_fills_have_no_tangent(name: str) -> None:
    with forward_ad.dual_level():
        x = forward_ad.make_dual(mica.ones(3, dtype=mica.float64), mica.ones(3, dtype=mica.float64))
        tangent = forward_ad.unpack_dual(FILLS[name](x * 2)).tangent
    assert tangent is None or not bool(tangent.any())


def _check_second(run: Function, inputs: list[Any]) -> str:
    """The gradient's change along a direction: forward over reverse, reverse over forward, differences."""
    along = tuple(_direction(x, n) for n, x in enumerate(inputs))
    results = run(*(x.clone().requires_grad_() for x in inputs))
    which = [i for i, y in enumerate(results) if y.requires_grad]
    seeds = {i: _direction(results[i].detach(), 7 + i) for i in which}
    numbers = tuple(range(len(inputs)))

    def scalar(*given: Any) -> Any:
        made = run(*given)
        return sum((made[i] * u).sum() for i, u in seeds.items())

    def slope(*given: Any) -> Any:
        return jvp(scalar, given, along)[1]

    gradient = grad(scalar, argnums=numbers)
    forward = jvp(gradient, tuple(inputs), along)[1]
    reverse = grad(slope, argnums=numbers)(*inputs)
    above = gradient(*(x + STEP * v for x, v in zip(inputs, along)))
    below = gradient(*(x - STEP * v for x, v in zip(inputs, along)))
    for name, found in (("forward over reverse", forward), ("reverse over forward", reverse)):
        for n, (h, a, b) in enumerate(zip(found, above, below)):
            d = (a - b) / (2 * STEP)
            if not _close(h, d, 10 * ATOL * max(1.0, _size(list(along))), RTOL):
                return f"{name}, input {n}: {h.flatten()[:4].tolist()}; differences give {d.flatten()[:4].tolist()}"
    return ""


def _first_call(entry: Entry, inplace: bool) -> tuple[Function, list[Any]] | None:
    """The first call whose results have gradients, all real."""
    for number, call in enumerate(entry.calls()):
        if excepted("tangents", entry.overload, number):
            continue
        run, inputs = _function(entry, call, "float64", "contiguous", inplace)
        results, error = attempt(run, *(x.clone().requires_grad_() for x in inputs))
        real = error is None and not any(t.is_complex() for t in results)
        if inputs and real and any(t.requires_grad for t in results):
            return run, inputs
    return None


def _second_order(name: str, inplace: bool) -> list[str]:
    found = _first_call(ENTRIES[name], inplace)
    if found is None:
        pytest.skip("no sample has real results with gradients")
    wrong, error = attempt(_check_second, *found)
    wrong = wrong or (f"{type(error).__name__}: {str(error).splitlines()[0]:.300}" if error else "")
    return [wrong] if wrong else []


DIFFERENTIABLE = [n for n in SAMPLED if ENTRIES[n].differentiable]


@each("second derivatives", DIFFERENTIABLE)
def test_second_order(name: str) -> None:
    judge("second derivatives", name, _second_order(name, inplace=False))


@each("second derivatives in place", [n for n in INPLACE if ENTRIES[n].differentiable])
def test_inplace_second_order(name: str) -> None:
    judge("second derivatives in place", name, _second_order(name, inplace=True))


@pytest.mark.parametrize("network", ["RNN", "GRU", "LSTM"])
def test_recurrent_networks(network: str) -> None:
    """Tangents, gradients and second derivatives of two layers in both directions."""
    mica.manual_seed(3)
    module = getattr(mica.nn, network)(3, 4, num_layers=2, bidirectional=True).double()
    x, v = (_direction(mica.zeros(5, 2, 3, dtype=mica.float64), n) for n in range(2))

    def run(x: Any) -> tuple[Any, ...]:
        output, state = module(x)
        return output, *(state if network == "LSTM" else (state,))

    assert not (_check(run, [x]) or _check_second(run, [x]))
