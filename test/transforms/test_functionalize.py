"""functionalize: every operator, in-place form, view and out= form of the data of mica.conformance
against the program itself: results, inputs after it, gradients and errors are the same, and no
input is written before the end. Random programs of views of views and overlapping writes. The
graphs of all of them."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from functionalized import REMOVE, check, copies, flat, recorded_in

import mica
from mica import _C
from mica.conformance.operators import ENTRIES, Entry, arguments, attempt, finished, operator, settled
from mica.conformance.samples import UNSAMPLED, Call

DTYPES = ["float64", "int64", "complex128"]
SAMPLED = [name for name, e in ENTRIES.items() if e.calls() and name not in UNSAMPLED]
INPLACE = [name for name in SAMPLED if operator(ENTRIES[name].inplace()) is not None]
VIEWS = [n for n in SAMPLED if "Tensor(a" in (s := operator(ENTRIES[n]).schema) and "a!" not in s]
OUT = [name for name in SAMPLED if ENTRIES[name].out]
SMALL = 200  # numbers in the inputs of a gradient
# (program, overload) whose gradients are no test of functionalize.
NO_GRADIENTS = {
    ("view", "unfold"): "windows that overlap are written: each element many times, in any order",
    ("inplace", "as_strided"): "reads beyond the view that it is made of, where eager knows no history",
}
# Their results depend on the values of an argument, and so have no graph.
READS = {"narrow.Tensor", "tensor_split.tensor_indices_or_sections"}


class Sample:
    """A sample call as a function of its tensors."""

    def __init__(self, entry: Entry, call: Call, dtype: str) -> None:
        self.entry = entry
        self.positional, self.keyword, tensors = arguments(
            mica, call, dtype, "contiguous", True, finish=False
        )
        small = sum(t.numel() for t in tensors) <= SMALL
        self.tensors = [t if small else t.detach() for t in tensors]
        self.old = tensors

    def given(self, tensors: tuple[mica.Tensor, ...]) -> tuple[list[Any], dict[str, Any]]:
        replaced = {id(old): new for old, new in zip(self.old, tensors)}

        def put(value: Any) -> Any:
            if hasattr(value, "numbers") and hasattr(value, "how"):
                return type(value)(put(value.numbers), value.how)
            if isinstance(value, (list, tuple)):
                return type(value)(put(v) for v in value)
            return replaced.get(id(value), value) if isinstance(value, mica.Tensor) else value

        return [finished(put(p)) for p in self.positional], {
            k: finished(put(v)) for k, v in self.keyword.items()
        }

    def plain(self, *tensors: mica.Tensor) -> list[mica.Tensor]:
        positional, keyword = self.given(tensors)
        return flat(settled(self.entry.overload, operator(self.entry)(*positional, **keyword)))

    def inplace(self, *tensors: mica.Tensor) -> list[mica.Tensor]:
        """The write goes to a view of a view, and its base is read after it."""
        (first, *rest), keyword = self.given(tensors)
        base = mica.stack([first, first]).unsqueeze(0)
        place = base[0].transpose(0, 1)[:, 1] if first.ndim else base[0][1]
        operator(self.entry.inplace())(place, *rest, **keyword)
        return [base, place]

    def view(self, *tensors: mica.Tensor) -> list[mica.Tensor]:
        """Each result is written, and read with the others and the base afterwards."""
        (first, *rest), keyword = self.given(tensors)
        base = [t.clone() for t in first] if isinstance(first, list) else first.clone()
        views = flat(operator(self.entry)(base, *rest, **keyword))
        for k, v in enumerate(views):
            if v.dtype != mica.bool:
                v.mul_(k + 2)
        return [*flat([base]), *views]

    def out(self, *tensors: mica.Tensor) -> list[mica.Tensor]:
        """Outputs that grow, and outputs that are parts of other tensors."""
        positional, keyword = self.given(tensors)
        f = _C._find_operator(self.entry.out)
        names = [name for name, *_ in f._schema_info()[0][len(self.entry.arguments) :]]
        like = flat(operator(self.entry)(*positional, **keyword))
        empty = [mica.empty(0, dtype=t.dtype) for t in like]
        f(*positional, **keyword, **dict(zip(names, empty)))
        bases = [mica.zeros([2, *t.shape], dtype=t.dtype) for t in like]
        f(*positional, **keyword, **dict(zip(names, [b[1] for b in bases])))
        settle = self.entry.overload
        return [*flat(settled(settle, empty)), *flat(settled(settle, bases))]


def sweep(name: str, program: str, remove: str, grad: bool = True) -> list[str]:
    wrong = []
    entry = ENTRIES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for dtype in DTYPES:
            for number, call in enumerate(entry.calls()):
                sample = Sample(entry, call, dtype)
                recorded = grad and (program, name) not in NO_GRADIENTS
                inputs = sample.tensors if recorded else [t.detach() for t in sample.tensors]
                if found := check(getattr(sample, program), inputs, remove):
                    wrong.append(f"{dtype} call {number}: {found}")
    return wrong


@pytest.mark.parametrize("name", SAMPLED)
def test_operators(name: str) -> None:
    assert not sweep(name, "plain", "mutations")


@pytest.mark.parametrize("remove", REMOVE)
@pytest.mark.parametrize("name", INPLACE)
def test_in_place_forms(name: str, remove: str) -> None:
    assert not sweep(name, "inplace", remove)


@pytest.mark.parametrize("remove", REMOVE)
@pytest.mark.parametrize("name", VIEWS)
def test_views(name: str, remove: str) -> None:
    assert not sweep(name, "view", remove)


@pytest.mark.parametrize("name", OUT)
def test_out_forms(name: str) -> None:
    assert not sweep(name, "out", "mutations", grad=False)


class Fuzz:
    """A random program over a base of six dozen numbers: views of views, writes through them that
    overlap one another, reads in between; the same for the same seed."""

    VIEWS: tuple[Callable[[random.Random, mica.Tensor], mica.Tensor], ...] = (
        lambda r, t: t.transpose(r.randrange(t.ndim), r.randrange(t.ndim)),
        lambda r, t: t.permute(r.sample(range(t.ndim), t.ndim)),
        lambda r, t: t.select(d := r.randrange(t.ndim), r.randrange(t.shape[d])) if t.ndim > 1 else t[:],
        lambda r, t: t.narrow(d := r.randrange(t.ndim), k := r.randrange(t.shape[d]), t.shape[d] - k),
        lambda r, t: t[:: r.randint(1, 2)],
        lambda r, t: t.unsqueeze(r.randrange(t.ndim + 1)),
        lambda r, t: t.squeeze(),
        lambda r, t: t.contiguous().view(-1),
        lambda r, t: t.diagonal(r.randint(0, 1), 0, -1) if t.ndim > 1 else t.unfold(0, 1, 1),
        lambda r, t: t.unfold(d := r.randrange(t.ndim), k := r.randint(1, t.shape[d]), k),
        lambda r, t: t if t._is_view() else t.as_strided((2, 2), (3, 1), r.randint(0, 3)),
        lambda r, t: t.expand(1, *t.shape),
        lambda r, t: t.detach(),
        lambda r, t: r.choice(t.tensor_split(t.shape[0])),
        lambda r, t: t.movedim(0, -1),
    )
    WRITES: tuple[Callable[[random.Random, mica.Tensor, mica.Tensor], Any], ...] = (
        lambda r, t, o: t.mul_(r.randint(2, 3)),
        lambda r, t, o: t.add_(o.sum(), alpha=2),
        lambda r, t, o: t.copy_(o.mean()),
        lambda r, t, o: t.fill_(r.randint(-2, 2)),
        lambda r, t, o: t.sigmoid_(),
        lambda r, t, o: t.zero_(),
        lambda r, t, o: t.addcmul_(t.sin(), t),
        lambda r, t, o: t.index_fill_(0, mica.tensor([0]), 3.0),
        lambda r, t, o: t.__setitem__((..., 0), o.reshape(-1)[0]),
        lambda r, t, o: t.masked_fill_(t > 1, 0.5),
        lambda r, t, o: t.clamp_(-3, 3),
        lambda r, t, o: mica.cos(t.clone(), out=t) if not t.requires_grad else t.cos_(),
    )

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def __call__(self, x: mica.Tensor, y: mica.Tensor) -> list[mica.Tensor]:
        r = random.Random(self.seed)
        base = x * 1 if r.random() < 0.7 else x.clone().transpose(0, 2) * 1
        views, read = [base, y * 2], []
        for _ in range(12):
            t, other = r.choice(views), r.choice(views)
            if t.ndim == 0 or r.random() < 0.55:
                t = r.choice(self.VIEWS)(r, t) if t.ndim else t.unsqueeze(0)
                if t.numel():
                    views.append(t)
            elif r.random() < 0.15:
                with mica.no_grad():
                    r.choice(self.WRITES)(r, t, other)
            elif r.random() < 0.1:
                views.append(t.sin())
            else:
                r.choice(self.WRITES)(r, t, other)
            if r.random() < 0.2:
                read.append(t * 1)
        return [*views, *read]


@pytest.mark.parametrize("remove", REMOVE)
@pytest.mark.parametrize("first", range(0, 400, 50))
def test_random_programs(first: int, remove: str) -> None:
    rng = np.random.default_rng(0)
    inputs = [mica.from_numpy(rng.standard_normal((3, 4, 6))).requires_grad_() for _ in range(2)]
    wrong = {seed: check(Fuzz(seed), inputs, remove) for seed in range(first, first + 50)}
    assert not {seed: found for seed, found in wrong.items() if found}


@pytest.mark.parametrize("remove", REMOVE)
@pytest.mark.parametrize("name", sorted({*INPLACE, *VIEWS}))
def test_graphs_have_no_writes(name: str, remove: str) -> None:
    for program in ("inplace", "view"):
        if name not in {"inplace": INPLACE, "view": VIEWS}[program]:
            continue
        for call in ENTRIES[name].calls():
            sample = Sample(ENTRIES[name], call, "float64")
            if attempt(getattr(sample, program), *copies(sample.tensors))[1] is not None:
                continue
            recorded, error = attempt(recorded_in, getattr(sample, program), sample.tensors, remove)
            assert (error is not None) == (name in READS), error
            writes, views = recorded or (set(), set())
            assert not writes
            assert remove == "mutations" or not views


@pytest.mark.parametrize("seed", range(40))
def test_graphs_of_random_programs_have_no_writes(seed: int) -> None:
    rng = np.random.default_rng(0)
    inputs = [mica.from_numpy(rng.standard_normal((3, 4, 6))) for _ in range(2)]
    assert recorded_in(Fuzz(seed), inputs, "mutations")[0] == set()
    assert recorded_in(Fuzz(seed), inputs, "mutations_and_views") == (set(), set())
