"""Random programs of views and in-place writes: Mica's gradients against torch's.

A program is a list of steps over a growing list of tensors, made from a seed;
both libraries run the same steps. Where torch refuses a step or the backward,
Mica refuses it too. Left out, since the two differ by design: a write
beside one of several views (Mica knows its gradient), writing a tensor whose
elements share memory (torch's fill_ does it), writes between tensors that overlap in part (Mica reads
the source whole first, torch refuses).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from view_programs import RESHAPES, VIEWS, WRITES, Step, program, pure, reshape, view, write

import mica


def run(library: Any, steps: list[Step], complex_: bool) -> tuple[list[str], list[Any]]:
    """Which steps were refused, and the gradients of the leaves."""
    rng = np.random.default_rng(len(steps))

    def make(*shape: int) -> Any:
        values = rng.uniform(0.5, 1.5, shape) + (1j * rng.uniform(-1, 1, shape) if complex_ else 0)
        return library.tensor(values.tolist(), dtype=library.complex128 if complex_ else library.float64)

    leaves = [make(2, 3).requires_grad_(), make(3).requires_grad_(), make(2, 2).requires_grad_()]
    live = [*leaves, leaves[0] * 1, make(2, 3), make(4)]
    log = []
    for name, a, b, c in steps:
        x, y = live[int(a * len(live))], live[int(b * len(live))]
        try:
            if name in VIEWS:
                live.append(view(library, name, x, c))
            elif name in WRITES:
                write(
                    name,
                    x,
                    y,
                    library.tensor([True, False, True])[: x.shape[-1]]
                    if x.dim() and x.shape[-1] <= 3
                    else library.tensor(True),
                )
            elif name in RESHAPES:
                reshape(name, x, c)
            else:
                live.append(pure(library, name, x, y))
            log.append("ok")
        except RuntimeError:
            log.append("refused")
    log.append(" ".join(str(t.requires_grad)[0] for t in live))
    total = sum(
        (t.real if t.is_complex() else t).sum() * (k + 1) for k, t in enumerate(live) if t.requires_grad
    )
    try:
        first = library.autograd.grad(total, leaves, create_graph=True, allow_unused=True)
        more = [(g.real if g.is_complex() else g).sum() for g in first if g is not None and g.requires_grad]
        second = library.autograd.grad(sum(more), leaves, allow_unused=True) if more else [None] * 3
    except RuntimeError as error:
        # torch gives a view that was reshaped in place the gradient of its former shape
        return [*log, "wrong" if "an invalid gradient" in str(error) else "backward refused"], []
    return log, [None if g is None else g.detach().resolve_conj().numpy() for g in (*first, *second)]


def differs(a: Any, b: Any) -> bool:
    zero = lambda g: g is None or not np.any(g)  # noqa: E731 - None and zeros say the same
    return not (zero(a) and zero(b)) and (
        a is None or b is None or a.shape != b.shape or not np.allclose(a, b, rtol=1e-9, equal_nan=True)
    )


@pytest.mark.parametrize("reshapes", [False, True])
@pytest.mark.parametrize("complex_", [False, True])
@pytest.mark.parametrize("block", range(8))
def test_programs(block: int, complex_: bool, reshapes: bool) -> None:
    for seed in range(block * 100, block * 100 + 100):
        if seed == 88:  # torch says "leaf" of a view whose base got a history after it was made
            continue
        steps = program(seed, reshapes)
        try:
            expected_log, expected = run(torch, steps, complex_)
        except RuntimeError as error:  # torch refuses to look at such a view; Mica has no history for it
            assert "created in no_grad mode" in str(error)
            continue
        if expected_log[-1] == "wrong":
            continue
        log, ours = run(mica, steps, complex_)
        assert log == expected_log, (seed, steps)
        for k, (a, b) in enumerate(zip(ours, expected)):
            assert not differs(a, b), (seed, k, a, b, steps)


RESHAPED = {
    "unsqueeze_": lambda x: x.unsqueeze_(1),
    "squeeze_": lambda x: x.unsqueeze_(0).squeeze_(),
    "squeeze_.dim": lambda x: x.unsqueeze_(0).squeeze_(0),
    "transpose_": lambda x: x.transpose_(0, 1),
    "swapaxes_": lambda x: x.swapaxes_(0, 1),
    "swapdims_": lambda x: x.swapdims_(0, -1),
    "t_": lambda x: x.t_(),
    "as_strided_": lambda x: x.as_strided_((2, 3), (4, 1), 1),
}


@pytest.mark.parametrize("name", RESHAPED)
def test_another_shape_in_place(name: str) -> None:
    """The tensor itself changes shape, and its history goes on; a leaf refuses."""
    found = []
    for library in (mica, torch):
        leaf = library.arange(12.0).reshape(3, 4).requires_grad_()
        middle = leaf * leaf
        changed = RESHAPED[name](middle)
        assert changed is middle
        weights = library.arange(float(changed.numel())).reshape(changed.shape)
        (changed * weights).sum().backward()
        found.append((list(changed.shape), list(changed.stride()), changed.tolist(), leaf.grad.tolist()))
        with pytest.raises(RuntimeError):
            RESHAPED[name](leaf)
    assert found[0] == found[1]
