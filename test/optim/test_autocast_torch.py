"""Autocast against torch 2.13 on the CPU: the dtype of every operator's result, the values
against the policy's explicit casts, training, the scaler.

The data are the operators' samples; torch's lists decide (native_functions.yaml,
`autocast:`), so an operator whose policy differs from torch's fails here.
"""

from __future__ import annotations

from typing import Any

import both
import numpy as np
import pytest
import torch
from both import dtype_name, function
from every_operator import each, judge

import mica
from mica.conformance.operators import ENTRIES, arguments, attempt


def dtypes(result: Any) -> Any:
    """The floating dtypes among the results, by name."""
    if isinstance(result, (list, tuple)):
        return [dtypes(r) for r in result]
    return dtype_name(result.dtype) if hasattr(result, "dtype") and result.is_floating_point() else None


def results(entry: Any, call: Any, dtype: str, enabled: bool) -> list[Any]:
    """torch's result dtypes and Mica's; empty where one of them refuses the call."""
    found = []
    for library in (torch, mica):
        args, kwargs, _ = arguments(library, call, dtype, "contiguous")
        with library.autocast("cpu", enabled=enabled):
            result, refused = attempt(function(library, entry), *args, **kwargs)
        if refused:
            return []  # which dtypes an operator takes is test_operators_torch's matter
        found.append(dtypes(result))
    return found


@each("torch autocast", both.sampled())
def test_result_dtypes_are_torchs(name: str) -> None:
    wrong, ran = [], 0
    for dtype in ("float32", "bfloat16"):
        for number, call in enumerate(ENTRIES[name].calls()[:3]):
            found = results(ENTRIES[name], call, dtype, True)
            ran += bool(found)
            if not found or found[0] == found[1]:
                continue
            theirs, ours = results(ENTRIES[name], call, dtype, False)
            if theirs == ours:  # else they differ without autocast, too
                wrong.append(f"{dtype} call {number}: {found[1]}, torch {found[0]}")
    judge("torch autocast", name, wrong)
    if not ran:
        pytest.skip("no sample runs in both libraries in these dtypes")


def model(library: Any) -> Any:
    library.manual_seed(3)
    nn = library.nn
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(),
        nn.Linear(256, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 10),
    )  # fmt: skip


def train(library: Any, autocast: bool) -> list[float]:
    net = model(library)
    optimizer = library.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    scaler = library.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=2)
    draw = np.random.default_rng(3)
    x = library.from_numpy(draw.standard_normal((12, 1, 8, 8)).astype(np.float32))
    y = library.from_numpy(draw.integers(0, 10, 12))
    losses = []
    for _ in range(6):
        optimizer.zero_grad()
        with library.autocast("cpu", enabled=autocast):
            loss = library.nn.functional.cross_entropy(net(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    assert scaler.get_scale() == 8192.0
    return losses


def test_training_follows_torch() -> None:
    ours, theirs, exact = train(mica, True), train(torch, True), train(torch, False)
    # bfloat16 has three digits: Mica is as near to torch as torch is to its own float32.
    limit = max(abs(a - b) for a, b in zip(theirs, exact)) + 0.02
    np.testing.assert_allclose(ours, theirs, atol=limit, rtol=0)
    assert ours != train(mica, False)


def scaled_steps(library: Any) -> list[Any]:
    """Scales and weights of a scaler that meets an infinity in its third step."""
    weight = library.nn.Parameter(library.ones(3))
    optimizer = library.optim.SGD([weight], lr=0.5)
    scaler = library.amp.GradScaler(
        "cpu", init_scale=4.0, growth_factor=3.0, backoff_factor=0.25, growth_interval=2
    )
    seen = []
    for step in range(6):
        optimizer.zero_grad()
        factor = float("inf") if step == 2 else 0.125
        scaler.scale((weight * factor).sum()).backward()
        scaler.unscale_(optimizer)
        seen.append(weight.grad.tolist())
        scaler.step(optimizer)
        scaler.update()
        seen += [scaler.get_scale(), weight.tolist(), scaler.state_dict()]
    return seen


def test_scaler_is_torchs() -> None:
    assert scaled_steps(mica) == scaled_steps(torch)


def misuse(library: Any) -> list[str]:
    weight = library.nn.Parameter(library.ones(1))
    optimizer = library.optim.SGD([weight], lr=0.1)
    scaler = library.amp.GradScaler("cpu")
    kinds = []

    def note(call: Any) -> None:
        _, error = attempt(call)
        kinds.append(type(error).__name__)

    note(scaler.update)
    scaler.scale(weight.sum()).backward()
    scaler.unscale_(optimizer)
    note(lambda: scaler.unscale_(optimizer))
    scaler.step(optimizer)
    note(lambda: scaler.step(optimizer))
    note(lambda: scaler.unscale_(optimizer))
    return kinds


def test_the_wrong_order_raises() -> None:
    assert misuse(mica) == misuse(torch)
