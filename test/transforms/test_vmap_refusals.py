"""vmap equals the loop, refusals included: every operator on examples of rank 0 to 3.

The calls are the samples of mica.conformance with other shapes for their tensors: what a sample's matrix
is becomes a vector, a number, a batch of matrices. Either each example gives a result, and vmap gives those
results stacked; or each is refused, and vmap refuses the batch with the same sentence. Sizes equal the size
of the batch in one of the two styles, so that the batch could stand in for a dimension that is not there.
"""

from __future__ import annotations

import dataclasses
import itertools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from compare import unlike
from every_operator import SAMPLED, each, excepted, judge

import mica
from mica.conformance.batches import Sample, batch_of
from mica.conformance.operators import ENTRIES, Entry, attempt
from mica.conformance.samples import Call, T
from mica.func import vmap

# (sizes of the examples' dimensions, the last first; examples)
STYLES = [((2, 2, 2), 2), ((4, 3, 2), 3)]
DTYPE = "float64"
COMPARED = [n for n in SAMPLED if not excepted("vmap", n)]


def shaped(described: T, shape: tuple[int, ...]) -> T:
    """The same kind of numbers in another shape, indices in the smallest size."""
    square = len(shape) >= 2 and shape[-1] == shape[-2]
    high = min(described.high, 2) if described.dtype == "int64" else described.high
    return dataclasses.replace(
        described, shape=shape, low=min(described.low, high), high=high, made=described.made if square else ""
    )


def replaced(value: Any, shapes: Iterator[tuple[int, ...] | None]) -> Any:
    if isinstance(value, T):
        shape = next(shapes)
        return value if shape is None else shaped(value, shape)
    if isinstance(value, list):
        return [replaced(v, shapes) for v in value]
    return value


def count(value: Any) -> int:
    if isinstance(value, list):
        return sum(count(v) for v in value)
    return int(isinstance(value, T))


def rank_choices(n: int) -> list[tuple[int | None, ...]]:
    """Ranks of a call's tensors; None keeps the sample's shape."""
    ranks = range(4)
    if n <= 2:
        return list(itertools.product(ranks, repeat=n))
    one = [tuple(r if k == i else None for k in range(n)) for i in range(n) for r in ranks]
    return [*((r,) * n for r in ranks), *one]


def calls(entry: Entry, sizes: tuple[int, ...]) -> Iterator[tuple[str, Call]]:
    for number, call in enumerate(entry.calls()):
        values = [*call.args, *call.kwargs.values()]
        for ranks in rank_choices(sum(map(count, values))):
            shapes = [None if r is None else tuple(reversed(sizes[:r])) for r in ranks]
            given = iter(shapes)
            args = tuple(replaced(a, given) for a in call.args)
            kwargs = {k: replaced(v, given) for k, v in call.kwargs.items()}
            yield f"call {number} shapes {shapes}", Call(args, kwargs)


def results(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (tuple, list)) else [value]


def sentence(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"


def difference(f: Sample, examples: int, subset: tuple[int, ...]) -> str:
    """What vmap over the tensors of the subset does otherwise than a loop, or ""."""
    batches = [batch_of(x, examples) if i in subset else x for i, x in enumerate(f.tensors)]
    each = [[b[e].clone() if i in subset else b for i, b in enumerate(batches)] for e in range(examples)]
    loop = [attempt(f, *tensors) for tensors in each]
    got, error = attempt(vmap(f, tuple(0 if i in subset else None for i in range(len(batches)))), *batches)
    refusals = [e for _, e in loop if e is not None]
    if not refusals:
        if error is not None:
            return f"refuses what the loop does: {sentence(error)}"
        return others(results(got), [results(r) for r, _ in loop])
    if error is None:
        return f"gives {[tuple(r.shape) for r in results(got)]} for {sentence(refusals[0])}"
    if type(error) not in {type(e) for e in refusals}:
        return f"{sentence(error)} for {sentence(refusals[0])}"
    texts = {sentence(e) for e in refusals}
    if len(refusals) == examples and len(texts) == 1 and sentence(error) not in texts:
        return f"says {sentence(error)} for {texts.pop()}"
    return ""


def others(got: list[Any], loop: list[list[Any]]) -> str:
    """Which results are others than those of the loop, where the examples' are of one shape."""
    for k, result in enumerate(got):
        wanted = [r[k] for r in loop]
        if all(isinstance(x, mica.Tensor) and x.shape == wanted[0].shape for x in wanted):
            expected = mica.stack([x.resolve_conj() for x in wanted])
            if wrong := unlike(result, expected, 1e-6, 1e-8):
                return f"result {k}: {wrong}"
    return ""


def subsets(n: int) -> list[tuple[int, ...]]:
    every = tuple(range(n))
    return list(dict.fromkeys([every, *((i,) for i in every)])) if n else []


def differences(name: str, inplace: bool) -> list[str]:
    found = []
    entry = ENTRIES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for sizes, examples in STYLES:
            for where, call in calls(entry, sizes):
                f, error = attempt(Sample, entry, call, DTYPE, inplace=inplace, finish=True)
                if error is not None:
                    continue  # no such numbers
                for subset in subsets(len(f.tensors)):
                    if inplace and 0 not in subset:
                        continue  # what is captured has no place for a batch
                    if wrong := difference(f, examples, subset):
                        found.append(f"{where} tensors {subset}: {wrong}")
    return found


@each("vmap of every rank", COMPARED)
def test_examples_of_every_rank(name: str) -> None:
    judge("vmap of every rank", name, differences(name, False))


@each("vmap of every rank in place", [n for n in COMPARED if "inplace" in ENTRIES[n].forms])
def test_inplace_forms(name: str) -> None:
    # The sentence may be of the part of a composite that refuses.
    found = [d for d in differences(name, True) if ": says " not in d]
    judge("vmap of every rank in place", name, found)


BAD_VIEWS: dict[str, Callable[[mica.Tensor], mica.Tensor]] = {
    "select": lambda x: x.select(1, 2),
    "select of no dimension": lambda x: x.select(2, 0),
    "transpose": lambda x: x.transpose(0, -3),
    "permute": lambda x: x.permute(0, 1, 2),
    "permute twice": lambda x: x.permute(0, 0),
    "squeeze": lambda x: x.squeeze((0, 0)),
    "diagonal": lambda x: x.diagonal(0, 0, 0),
    "unfold": lambda x: x.unfold(0, 9, 1),
    "view": lambda x: x.view(2, 3, 4),
    "view of two unknown sizes": lambda x: x.view(-1, -1),
    "view of tangled strides": lambda x: x.t().view(6),
    "expand": lambda x: x.expand(-1, 3, 2),
    "a number as complex": lambda x: mica.view_as_complex(x[0, 0]),
    "a number as another dtype": lambda x: x[0, 0].view(mica.complex128),
}


@pytest.mark.parametrize("name", BAD_VIEWS)
def test_views_of_a_batch_are_refused_as_those_of_an_example(name: str) -> None:
    """Two examples, which view_as_complex would take for the two parts of one number."""
    batch = mica.arange(12.0, dtype=mica.float64).reshape(2, 3, 2)
    with pytest.raises((RuntimeError, IndexError)) as alone:
        BAD_VIEWS[name](batch[0])
    with pytest.raises(type(alone.value)) as under_vmap:
        vmap(BAD_VIEWS[name])(batch)
    assert str(under_vmap.value) == str(alone.value)
