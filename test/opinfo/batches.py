"""vmap of one operator on one sample, against a loop over the examples: within Mica, on torch's samples.

The examples of a float tensor are halves of each other, so that matrices keep their kind; integers and
masks are the same in all. Every other sample maps over all tensors, the others over one of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from agree import Rules, flatten
from checks import Found, Operator, attempt, copied, say, seeded
from rules import any_index, is_random
from tangents import replaced
from translate import to_mica

import mica

_EXAMPLES = 3


def _example(x: mica.Tensor, e: int) -> mica.Tensor:
    return x.detach() * 0.5**e if x.is_floating_point() or x.is_complex() else x


def _unlike(got: Any, loop: list[Any], rules: Rules, free_indices: bool) -> str:
    wanted = mica.stack([x.detach().resolve_conj().resolve_neg() for x in loop])
    if got.dtype != wanted.dtype or got.shape != wanted.shape:
        return f"{got.dtype} {tuple(got.shape)} instead of {wanted.dtype} {tuple(wanted.shape)}"
    if not rules.values or (free_indices and wanted.dtype == mica.int64):
        return ""
    if not (wanted.is_floating_point() or wanted.is_complex()):
        return "" if mica.equal(got, wanted) else "other values than a loop's"
    wide = mica.complex128 if wanted.is_complex() else mica.float64
    a, b = (x.detach().resolve_conj().resolve_neg().to(wide).numpy() for x in (got, wanted))
    scale = np.max(np.abs(b[np.isfinite(b)]), initial=0)
    rtol = 32 * mica.finfo(wanted.dtype).eps
    close = np.allclose(a, b, rtol, rtol * scale, equal_nan=True)
    return "" if close else "other values than a loop's"


def vmap(o: Operator, args: Any, kwargs: Any, number: int) -> Iterator[Found]:
    """The results of all examples at once."""
    my_args, my_kwargs = to_mica(copied((args, kwargs)))
    leaves = flatten([*my_args, *my_kwargs.values()])
    tensors = list({id(x): x for x in leaves if isinstance(x, mica.Tensor)}.values())
    if not tensors or is_random(o.op):
        return
    chosen = tensors if number % 2 == 0 else [tensors[number // 2 % len(tensors)]]
    loop = []
    for e in range(_EXAMPLES):
        example = replaced((my_args, my_kwargs), mica, {id(x): _example(x, e).clone() for x in chosen})
        result, refused = seeded(mica, o.ours, *example)
        if refused is not None:
            return
        loop.append(flatten(result))
    if any(
        [getattr(x, "shape", None) for x in r] != [getattr(x, "shape", None) for x in loop[0]] for r in loop
    ):
        return  # shapes depend on the values
    batch = [mica.stack([_example(x, e) for e in range(_EXAMPLES)]) for x in chosen]

    def of_chosen(*values: mica.Tensor) -> list[Any]:
        new = {id(x): y for x, y in zip(chosen, values)}
        a, k = replaced((my_args, my_kwargs), mica, new)
        return flatten(o.ours(*a, **k))

    got, error = attempt(mica.func.vmap(of_chosen), *batch)
    if error is not None:
        if "which was not told what it shall draw" not in str(error):  # as dropout with some arguments
            yield "vmap", say(error), False
        return
    wrong = (_unlike(g, [r[k] for r in loop], o.rules, any_index(o.op)) for k, g in enumerate(got))
    yield "vmap", next(filter(None, wrong), ""), False
