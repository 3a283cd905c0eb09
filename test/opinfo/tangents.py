"""Forward mode of one operator on one sample: the results' tangents for fixed tangents of the inputs.

Torch's dual numbers are compared with Mica's. What torch has no forward mode for is left out.
A tangent J v is a contraction, whose scale is the sum of its terms' magnitudes; the largest of
J v over some signs of v's elements comes near it from below.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator
from typing import Any

import torch
from agree import Rules, flatten
from checks import (
    Found,
    Operator,
    attempt,
    copied,
    differentiable_inputs,
    judge,
    normal_like,
    nothing,
    say,
    seeded,
    widened,
)
from translate import function, to_mica

import mica

_FLIPS = 16


def replaced(value: Any, library: Any, new: dict[int, Any]) -> Any:
    """Nested arguments with dual numbers in the places of some tensors."""
    if isinstance(value, dict):
        return {k: replaced(v, library, new) for k, v in value.items()}
    if isinstance(value, (tuple, list)) and type(value) in (tuple, list):
        return type(value)(replaced(v, library, new) for v in value)
    return new.get(id(value), value) if isinstance(value, library.Tensor) else value


def _dual_call(
    library: Any, operator: Any, wrapper: Any, process: Any, along: Callable[[list[Any]], list[Any]]
) -> Callable[..., Any]:
    """A call that gives the tangents of the results; None where one is zero."""
    duals = library.autograd.forward_ad

    def run(*args: Any, **kwargs: Any) -> Any:
        inputs = list({id(x): x for x in differentiable_inputs((args, kwargs), library)}.values())
        with duals.dual_level():
            new = {id(x): duals.make_dual(x.detach(), v) for x, v in zip(inputs, along(inputs))}
            a, k = replaced((args, kwargs), library, new)
            results = process(wrapper(operator, *a, **k) if wrapper else operator(*a, **k))
            every = [y for y in flatten(results) if isinstance(y, library.Tensor)]
            found = [duals.unpack_dual(y).tangent for y in every]
        return [None if t is None else t.detach() for t in found]

    return run


def _scale(flips: list[Callable[..., Any]], args: Any, kwargs: Any) -> Any:
    """The largest tangents for inputs' tangents with other signs."""
    found = [seeded(torch, call, *widened((args, kwargs)))[0] or [] for call in flips]
    return [
        torch.stack([t.abs() for t in group]).amax(0) if all(t is not None for t in group) else None
        for group in zip(*found)
    ]


def tangents(o: Operator, sample: Any) -> Iterator[Found]:
    """The results' tangents where every input that has a gradient has a tangent."""
    args, kwargs = (sample.input, *sample.args), sample.kwargs
    fixed: list[torch.Tensor] = []

    def along(inputs: list[torch.Tensor]) -> list[torch.Tensor]:
        if not fixed:
            fixed.extend(normal_like(inputs, seed=6))
        return [v.to(x.dtype) for v, x in zip(fixed, inputs)]

    def flipped(seed: int) -> Callable[[list[torch.Tensor]], list[torch.Tensor]]:
        generator = torch.Generator().manual_seed(seed)

        def change(inputs: list[torch.Tensor]) -> list[torch.Tensor]:
            return [torch.where(torch.rand(v.shape, generator=generator) < 0.5, v, -v) for v in along(inputs)]

        return change

    process = sample.output_process_fn_grad
    theirs = _dual_call(torch, o.theirs, o.their_gradcheck, process, along)
    expected = seeded(torch, theirs, *copied((args, kwargs)))
    if expected[1] is not None or not expected[0]:
        return
    our_process, absent = attempt(function, process)
    if absent is not None:
        yield "tangents", say(absent), False
        return
    ours = _dual_call(mica, o.ours, o.our_gradcheck, our_process, lambda _: [to_mica(v) for v in fixed])
    got = seeded(mica, ours, *to_mica((args, kwargs)))
    if got[1] is None and len(got[0]) == len(expected[0]):
        none = [nothing(m) and nothing(t) for m, t in zip(got[0], expected[0])]
        got = ([None if n else m for m, n in zip(got[0], none)], None)
        expected = ([None if n else t for t, n in zip(expected[0], none)], None)
    references = o.references(theirs, args, kwargs, along=lambda: fixed)
    flips = [_dual_call(torch, o.theirs, o.their_gradcheck, process, flipped(k)) for k in range(_FLIPS)]
    scale = functools.cache(lambda: _scale(flips, args, kwargs))
    found, _ = judge(got, expected, Rules(), dataclasses.replace(references, scale=scale))
    yield "tangents", found, False
