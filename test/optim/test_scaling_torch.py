"""Gradients clipped and scaled beside torch's: nn.utils.clip_grad_*, amp.GradScaler on the CPU."""

from __future__ import annotations

import copy
import math
import pickle
import warnings
from typing import Any

import pytest
import torch
from test_optimizers_torch import close, leaf

import mica

VALUES = [[0.5, -2.0, 3.0], [4.0], [[1.0, -1.0], [0.25, 8.0]]]


def with_gradients(L: Any, dtype: str = "float32", special: float | None = None) -> list[Any]:
    found = []
    for n, values in enumerate(VALUES):
        grad = L.tensor(values).to(getattr(L, dtype))
        if special is not None and n == 1:
            grad.fill_(special)
        p = L.nn.Parameter(L.zeros_like(grad))
        p.grad = grad
        found.append(p)
    return [*found, leaf(L)]  # one without


def outcome(call: Any) -> Any:
    try:
        return call()
    except Exception as error:
        return type(error).__name__


@pytest.mark.parametrize("special", [None, 0.0, math.inf, math.nan])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "complex64"])
@pytest.mark.parametrize("norm", [2.0, 1, 0.5, math.inf, "inf"])
def test_clip_grad_norm(norm: Any, dtype: str, special: float | None) -> None:
    found = []
    for L in (mica, torch):
        u, seen = L.nn.utils, []
        for most in (1.0, 100, 0):
            params = with_gradients(L, dtype, special)
            total = u.clip_grad_norm_(params, most, norm)
            seen += [total, *[p.grad for p in params[:3]]]
            params = with_gradients(L, dtype, special)
            seen.append(outcome(lambda p=params, m=most, u=u: u.clip_grad_norm_(p, m, norm, True)))
        found.append(seen)
    close(found[0], found[1], 2e-2 if dtype == "bfloat16" else 1e-5)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
def test_the_other_clippings(dtype: str) -> None:
    found = []
    for L in (mica, torch):
        u, params = L.nn.utils, with_gradients(L, dtype)
        u.clip_grad_value_(params, 2)
        seen = [p.grad for p in params[:3]]
        one = with_gradients(L, dtype)[0]
        u.clip_grad_value_(one, 0.75)
        seen += [one.grad, u.clip_grad_norm_(one, 0.5), u.get_total_norm([p.grad for p in params[:3]])]
        u.clip_grads_with_norm_(iter(params), 1.0, L.tensor(10.0))
        seen += [p.grad for p in params[:3]]
        seen += [u.clip_grad_norm_([], 1.0), u.get_total_norm([]), u.clip_grad_norm_([leaf(L)], 1.0)]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            u.clip_grad_norm_((p for p in []), 1.0)
        found.append([*seen, len(caught)])
    close(found[0], found[1], 2e-2 if dtype == "bfloat16" else 1e-5)


def scaled_training(L: Any, optimizer: str = "SGD", **options: Any) -> Any:
    """Steps of which some meet an infinity or NaN; what each leaves."""
    p, q = leaf(L), L.nn.Parameter(L.ones(1, 3, dtype=L.bfloat16))
    unused = leaf(L)
    o = getattr(L.optim, optimizer)([p, q, unused], lr=0.1, **options)
    scaler = L.amp.GradScaler(
        "cpu", init_scale=8.0, growth_interval=2, growth_factor=4.0, backoff_factor=0.25
    )
    found: list[Any] = [scaler.get_scale(), scaler._get_growth_tracker()]
    for factor in (1.0, 2.0, math.inf, 1.0, math.nan, 1.0, 1.0, 1.0, 1.0):
        o.zero_grad()
        loss = (p * p).sum() * factor + (q.float() * 0.5).sum()
        scaler.scale(loss).backward()
        result = scaler.step(o)
        scaler.update()
        found += [p, q, scaler.get_scale(), scaler._get_growth_tracker(), result]
    return [*found, scaler.state_dict()]


def unscaled_and_clipped(L: Any) -> Any:
    p = leaf(L)
    o = L.optim.SGD([p], lr=0.1)
    scaler = L.amp.GradScaler("cpu", init_scale=1024.0)
    scaler.scale((p * 3).sum()).backward()
    scaler.unscale_(o)
    found = [p.grad.clone(), L.nn.utils.clip_grad_norm_([p], 1.0)]
    scaler.step(o)
    found += [p, list(scaler._found_inf_per_device(o).values())]
    scaler.update()
    return found


def two_optimizers(L: Any) -> Any:
    p, q = leaf(L), leaf(L)
    a, b = L.optim.SGD([p], lr=0.1), L.optim.Adam([q], lr=0.1)
    scaler = L.amp.GradScaler("cpu", init_scale=4.0, growth_interval=1)
    found: list[Any] = []
    for factor in (1.0, math.inf, 1.0):
        a.zero_grad()
        b.zero_grad()
        outputs = scaler.scale([p.sum(), (q.sum() * factor,)])
        (outputs[0] + outputs[1][0]).backward()
        scaler.step(a)
        scaler.step(b)
        scaler.update()
        found += [p, q, scaler.get_scale(), type(outputs).__name__, type(outputs[1]).__name__]
    return found


def set_and_stored(L: Any) -> Any:
    p = leaf(L)
    o = L.optim.SGD([p], lr=0.1)
    scaler = L.amp.GradScaler("cpu", init_scale=4.0, growth_interval=2)
    scaler.scale(p.sum()).backward()
    scaler.step(o)
    scaler.update(32.0)
    found = [scaler.get_scale()]
    scaler.step(o)
    scaler.update(L.tensor(16.0))
    found.append(scaler.get_scale())
    scaler.step(o)
    scaler.update()
    again = L.amp.GradScaler("cpu")
    again.load_state_dict(scaler.state_dict())
    copied, unpickled = copy.deepcopy(scaler), pickle.loads(pickle.dumps(scaler))
    for other in (scaler, again, copied, unpickled):
        p.grad = None
        other.scale(p.sum()).backward()
        other.step(o)
        other.update()
        found += [other.get_scale(), other._get_growth_tracker(), p]
    scaler.set_growth_factor(3.0)
    scaler.set_backoff_factor(0.1)
    scaler.set_growth_interval(7)
    return [*found, scaler.state_dict(), L.amp.GradScaler("cpu", enabled=False).state_dict()]


def largest_scale(L: Any) -> Any:
    """A scale that would overflow stays."""
    p = leaf(L)
    o = L.optim.SGD([p], lr=0.1)
    scaler = L.amp.GradScaler("cpu", init_scale=2.0**127, growth_interval=1)
    p.grad = L.zeros(2)
    scaler.scale(L.zeros(()))
    scaler.step(o)
    scaler.update()
    return [scaler.get_scale()]


def disabled(L: Any) -> Any:
    p = leaf(L)
    o = L.optim.SGD([p], lr=0.1)
    found = []
    for scaler in (L.amp.GradScaler("cpu", enabled=False), L.amp.GradScaler("cuda")):
        p.grad = None
        (scaler.scale(p.sum())).backward()
        scaler.unscale_(o)
        found += [scaler.step(o, closure=lambda: 5), scaler.is_enabled(), scaler.get_scale(), p]
        scaler.update()
        scaler.load_state_dict({})
    return found


PROGRAMS = {
    "training": scaled_training,
    "training with Adam": lambda L: scaled_training(L, "Adam"),
    "unscaled and clipped": unscaled_and_clipped,
    "two optimizers": two_optimizers,
    "set and stored": set_and_stored,
    "largest scale": largest_scale,
    "disabled": disabled,
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("program", PROGRAMS)
def test_scaler(program: str) -> None:
    close(PROGRAMS[program](mica), PROGRAMS[program](torch), 1e-5, program)


def began(L: Any) -> tuple[Any, Any]:
    p = leaf(L)
    scaler = L.amp.GradScaler("cpu", init_scale=4.0)
    scaler.scale(p.sum()).backward()
    return scaler, L.optim.SGD([p], lr=0.1)


def twice(L: Any, *names: str) -> None:
    scaler, o = began(L)
    for name in names:
        getattr(scaler, name)(o)


BAD: dict[str, Any] = {
    "growth": lambda L: L.amp.GradScaler("cpu", growth_factor=1.0),
    "backoff": lambda L: L.amp.GradScaler("cpu", backoff_factor=1.0),
    "step before scale": lambda L: L.amp.GradScaler("cpu").step(L.optim.SGD([leaf(L)], 0.1)),
    "unscale before scale": lambda L: L.amp.GradScaler("cpu").unscale_(L.optim.SGD([leaf(L)], 0.1)),
    "update before scale": lambda L: L.amp.GradScaler("cpu").update(),
    "update before step": lambda L: began(L)[0].update(),
    "closure": lambda L: (lambda s, o: s.step(o, closure=lambda: 1))(*began(L)),
    "two unscales": lambda L: twice(L, "unscale_", "unscale_"),
    "unscale after step": lambda L: twice(L, "step", "unscale_"),
    "two steps": lambda L: twice(L, "step", "step"),
    "no gradients": lambda L: began(L)[0].step(L.optim.SGD([leaf(L)], 0.1)),
    "outputs": lambda L: L.amp.GradScaler("cpu").scale(3),
    "half gradients": lambda L: half(L),
    "long scale": lambda L: began(L)[0].update(L.ones(2)),
    "scale with gradient": lambda L: began(L)[0].update(L.ones(1, requires_grad=True)),
    "empty state": lambda L: L.amp.GradScaler("cpu").load_state_dict({}),
    "pickled under way": lambda L: (lambda s, o: (s.unscale_(o), pickle.dumps(s)))(*began(L)),
    "not finite": lambda L: L.nn.utils.clip_grad_norm_(
        with_gradients(L, special=math.nan), 1.0, error_if_nonfinite=True
    ),
    "norm text": lambda L: L.nn.utils.clip_grad_norm_(with_gradients(L), 1.0, "two"),
    "value text": lambda L: L.nn.utils.clip_grad_value_(with_gradients(L), "two"),
}


def half(L: Any) -> None:
    scaler, _ = began(L)
    p = L.nn.Parameter(L.ones(2, dtype=L.float16))
    p.grad = L.ones(2, dtype=L.float16)
    scaler.unscale_(L.optim.SGD([p], 0.1))


@pytest.mark.parametrize("row", BAD)
def test_bad_input(row: str) -> None:
    with pytest.raises(Exception) as theirs:
        BAD[row](torch)
    with pytest.raises(type(theirs.value)) as ours:
        BAD[row](mica)
    assert len(str(ours.value)) > 15
