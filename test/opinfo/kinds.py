"""What kind of tensor a result is, against torch's: how it lies in memory and what it belongs to.

Strides, the place in the storage, whether it is a view, which argument or earlier result it
is or shares memory with, whether it requires grad and is a leaf. Sample by sample in another
layout, with gradients asked for in every other one. What is free here is data in otherwise.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from agree import flatten
from checks import Found, Operator, copied, seeded
from layouts import map_tensors, relaid
from translate import AbsentError, is_mica_absence, to_mica

import mica

# In this order; None is the sample as it is.
_LAYOUTS = (None, "transposed", "stepped", "channels_last", "expanded", "offset", None)


def _leaves(value: Any, library: Any) -> list[Any]:
    """The tensors in arguments or results, in order."""
    if isinstance(value, dict):
        value = list(value.values())
    return [x for x in flatten(value) if isinstance(x, library.Tensor)]


def _arguments(args: Any, kwargs: Any, library: Any) -> list[Any]:
    return _leaves([*args, *kwargs.values()], library)


def _shared(x: Any, others: list[Any], word: str) -> str:
    """Which of the others `x` is, or lies in the memory of."""
    for k, other in enumerate(others):
        if x is other:
            return f"is {word} {k}"
    place = x.untyped_storage().data_ptr() if x.numel() else 0
    for k, other in enumerate(others):
        if place and other.numel() and other.untyped_storage().data_ptr() == place:
            return f"in {word} {k}"
    return "its own"


def _kinds(arguments: list[Any], results: list[Any]) -> list[dict[str, Any]]:
    """What is compared of each result."""
    return [
        {
            "strides": [d for s, d in zip(x.shape, x.stride()) if s > 1] if x.numel() > 1 else [],
            "offset": x.storage_offset() if x.numel() else 0,
            "view": x._is_view(),
            "conjugated": x.is_conj() and x.numel() > 0,
            "negated": x.is_neg() and x.numel() > 0,
            "memory": _shared(x, arguments, "argument")
            if (own := _shared(x, results[:k], "result")) == "its own"
            else own,
            "requires_grad": x.requires_grad,
            "leaf": x.is_leaf,
        }
        for k, x in enumerate(results)
    ]


def _unlike(mine: dict[str, Any], theirs: dict[str, Any]) -> Iterator[str]:
    """What differs. A view of memory that nobody else has is as good as a tensor of its own."""
    for what, m in mine.items():
        t = theirs[what]
        if m != t and not (what == "view" and t and theirs["memory"] == "its own"):
            yield f"{what} {m}, torch {t}"


def kind(o: Operator, args: Any, kwargs: Any, number: int) -> Iterator[Found]:
    """The kinds of all results of one call."""
    layout = _LAYOUTS[number % len(_LAYOUTS)]
    if layout:
        args, kwargs = relaid((args, kwargs), layout)

    def recorded(x: torch.Tensor) -> torch.Tensor:
        return x.detach().requires_grad_(number % 2 == 1 and (x.is_floating_point() or x.is_complex()))

    args, kwargs = map_tensors((args, kwargs), recorded)
    my_args, my_kwargs = to_mica((args, kwargs))
    their_args, their_kwargs = copied((args, kwargs))
    expected, their_error = seeded(torch, o.theirs, their_args, their_kwargs)
    got, my_error = seeded(mica, o.ours, my_args, my_kwargs)
    if my_error is not None and is_mica_absence(my_error):
        raise AbsentError(str(my_error))
    my_results, their_results = _leaves([got], mica), _leaves([expected], torch)
    if their_error is not None or my_error is not None or len(my_results) != len(their_results):
        return  # `layouts` and `forward` tell
    mine = _kinds(_arguments(my_args, my_kwargs, mica), my_results)
    theirs = _kinds(_arguments(their_args, their_kwargs, torch), their_results)
    for k, (m, t) in enumerate(zip(mine, theirs)):
        found = [f"{layout or 'plain'}: result {k} {tuple(my_results[k].shape)}: {u}" for u in _unlike(m, t)]
        if found:
            yield from (("kind", f, False) for f in found)
            return
    yield "kind", "", False
