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
from every_operator import SAMPLED, each, judge
from functionalized import REMOVE, check, copies, recorded_in

import mica
from mica import _C
from mica.conformance.batches import Sample, tensors_of
from mica.conformance.operators import ENTRIES, Entry, attempt, operator, settled
from mica.conformance.samples import Call

DTYPES = ["float64", "int64", "complex128"]
INPLACE = [name for name in SAMPLED if operator(ENTRIES[name].inplace()) is not None]
VIEWS = [n for n in SAMPLED if "Tensor(a" in (s := operator(ENTRIES[n]).schema) and "a!" not in s]
OUT = [name for name in SAMPLED if ENTRIES[name].out]
SMALL = 200  # numbers in the inputs of a gradient


class Program(Sample):
    """A sample call as a function of all its tensors; small ones require grad."""

    def __init__(self, entry: Entry, call: Call, dtype: str) -> None:
        super().__init__(entry, call, dtype, grad=True)
        small = sum(t.numel() for t in self.tensors) <= SMALL
        self.values = [t if small else t.detach() for t in self.tensors]

    def plain(self, *tensors: mica.Tensor) -> list[mica.Tensor]:
        positional, keyword = self.given(tensors, self.tensors)
        return tensors_of(settled(self.entry.overload, operator(self.entry)(*positional, **keyword)))

    def inplace(self, *tensors: mica.Tensor) -> list[mica.Tensor]:
        """The write goes to a view of a view, and its base is read after it."""
        (first, *rest), keyword = self.given(tensors, self.tensors)
        base = mica.stack([first, first]).unsqueeze(0)
        place = base[0].transpose(0, 1)[:, 1] if first.ndim else base[0][1]
        operator(self.entry.inplace())(place, *rest, **keyword)
        return [base, place]

    def view(self, *tensors: mica.Tensor) -> list[mica.Tensor]:
        """Each result is written, and read with the others and the base afterwards."""
        (first, *rest), keyword = self.given(tensors, self.tensors)
        base = [t.clone() for t in first] if isinstance(first, list) else first.clone()
        views = tensors_of(operator(self.entry)(base, *rest, **keyword))
        for k, v in enumerate(views):
            if v.dtype != mica.bool:
                v.mul_(k + 2)
        return [*tensors_of([base]), *views]

    def out(self, *tensors: mica.Tensor) -> list[mica.Tensor]:
        """Outputs that grow, and outputs that are parts of other tensors."""
        positional, keyword = self.given(tensors, self.tensors)
        f = _C._find_operator(self.entry.out)
        names = [name for name, *_ in f._schema_info()[0][len(self.entry.arguments) :]]
        like = tensors_of(operator(self.entry)(*positional, **keyword))
        empty = [mica.empty(0, dtype=t.dtype) for t in like]
        f(*positional, **keyword, **dict(zip(names, empty)))
        bases = [mica.zeros([2, *t.shape], dtype=t.dtype) for t in like]
        f(*positional, **keyword, **dict(zip(names, [b[1] for b in bases])))
        settle = self.entry.overload
        return [*tensors_of(settled(settle, empty)), *tensors_of(settled(settle, bases))]


def sweep(name: str, program: str, remove: str, grad: bool = True) -> list[str]:
    wrong = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for dtype in DTYPES:
            for number, call in enumerate(ENTRIES[name].calls()):
                sample = Program(ENTRIES[name], call, dtype)
                inputs = sample.values if grad else [t.detach() for t in sample.values]
                if found := check(getattr(sample, program), inputs, remove):
                    wrong.append(f"{dtype} call {number}: {found}")
    return wrong


@each("functionalize", SAMPLED)
def test_operators(name: str) -> None:
    judge("functionalize", name, sweep(name, "plain", "mutations"))


@pytest.mark.parametrize("remove", REMOVE)
@each("functionalize in place", INPLACE)
def test_in_place_forms(name: str, remove: str) -> None:
    judge("functionalize in place", name, sweep(name, "inplace", remove))


@pytest.mark.parametrize("remove", REMOVE)
@each("functionalize views", VIEWS)
def test_views(name: str, remove: str) -> None:
    judge("functionalize views", name, sweep(name, "view", remove))


@each("functionalize out", OUT)
def test_out_forms(name: str) -> None:
    judge("functionalize out", name, sweep(name, "out", "mutations", grad=False))


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
@each("functionalized graph", sorted({*INPLACE, *VIEWS}))
def test_graphs_have_no_writes(name: str, remove: str) -> None:
    wrong = []
    for program in ("inplace", "view"):
        if name not in {"inplace": INPLACE, "view": VIEWS}[program]:
            continue
        for number, call in enumerate(ENTRIES[name].calls()):
            sample = Program(ENTRIES[name], call, "float64")
            if attempt(getattr(sample, program), *copies(sample.values))[1] is not None:
                continue
            recorded, error = attempt(recorded_in, getattr(sample, program), sample.values, remove)
            writes, views = recorded or (set(), set())
            if error is not None or writes or (views and remove == "mutations_and_views"):
                wrong.append(f"{program} call {number}: {error or writes or views}")
    judge("functionalized graph", name, wrong)


@pytest.mark.parametrize("seed", range(40))
def test_graphs_of_random_programs_have_no_writes(seed: int) -> None:
    rng = np.random.default_rng(0)
    inputs = [mica.from_numpy(rng.standard_normal((3, 4, 6))) for _ in range(2)]
    assert recorded_in(Fuzz(seed), inputs, "mutations")[0] == set()
    assert recorded_in(Fuzz(seed), inputs, "mutations_and_views") == (set(), set())
