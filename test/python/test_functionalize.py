"""functionalize: every operator, in-place form, view and out= form of the data of mica.conformance
against the program itself: results, inputs after it, gradients and errors are the same, and no
input is written before the end. Random programs of views of views and overlapping writes; what it
refuses; its nestings."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mica
from mica import _C
from mica.conformance.operators import ENTRIES, Entry, arguments, attempt, finished, operator, settled
from mica.conformance.samples import UNSAMPLED, Call
from mica.func import functionalize, grad, hessian, jvp, vjp, vmap

REMOVE = ["mutations", "mutations_and_views"]
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

Program = Callable[..., list[mica.Tensor]]


def _flat(value: Any) -> list[mica.Tensor]:
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in _flat(v)]
    return [value] if isinstance(value, mica.Tensor) else []


def _numbers(t: mica.Tensor) -> np.ndarray:
    return t.detach().resolve_conj().numpy()


def _differs(got: list[mica.Tensor], wanted: list[mica.Tensor]) -> str:
    if len(got) != len(wanted):
        return f"{len(got)} tensors instead of {len(wanted)}"
    for k, (a, b) in enumerate(zip(got, wanted)):
        if a.dtype != b.dtype or a.shape != b.shape:
            return f"tensor {k} is {a.dtype} {tuple(a.shape)} instead of {b.dtype} {tuple(b.shape)}"
        small = b.dtype in (mica.float32, mica.complex64, mica.float16, mica.bfloat16)
        tolerance = {"rtol": 1e-4, "atol": 1e-5} if small else {"rtol": 1e-9, "atol": 1e-10}
        if not np.allclose(_numbers(a), _numbers(b), equal_nan=True, **tolerance):
            return f"tensor {k} has other values"
    return ""


def _gradients(results: list[mica.Tensor], inputs: list[mica.Tensor]) -> list[mica.Tensor]:
    total: Any = 0.0
    for t in results:
        if t.requires_grad:
            total = total + ((t.real.square() + t.imag).sum() if t.is_complex() else (t * t + t).sum())
    wanted = [t for t in inputs if t.requires_grad]
    if not isinstance(total, mica.Tensor) or not wanted:
        return []
    found = mica.autograd.grad(total.real, wanted, allow_unused=True)
    return [mica.zeros_like(t) if g is None else g for g, t in zip(found, wanted)]


def _copies(inputs: list[mica.Tensor]) -> list[mica.Tensor]:
    return [t.detach().clone().requires_grad_(t.requires_grad) for t in inputs]


def _outcome(f: Program, inputs: list[mica.Tensor]) -> tuple[list[list[mica.Tensor]], Exception | None]:
    """Results, inputs after the call, gradients; or the error. What is saved for backward is
    copied, so that later writes, which a functionalized program has not, do it no harm."""
    given = _copies(inputs)
    mica.manual_seed(0)
    with mica.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
        results, error = attempt(f, *given)
    if error is not None:
        return [], error
    gradients, error = attempt(_gradients, results, given)
    return [results, given, gradients or []], error


def check(f: Program, inputs: list[mica.Tensor], remove: str = "mutations") -> str:
    """What functionalize changes of `f`, or ""."""
    wanted, error = _outcome(f, inputs)
    got, found = _outcome(functionalize(f, remove=remove), inputs)
    if error is not None or found is not None:
        same = type(error) is type(found) and str(error).splitlines()[0] == str(found).splitlines()[0]
        return "" if same else f"{found!r:.300} instead of {error!r:.300}"
    for name, a, b in zip(("results", "inputs", "gradients"), got, wanted):
        if wrong := _differs(a, b):
            return f"{name}: {wrong}"
    given = _copies(inputs)
    versions = [t._version for t in given]
    mica.manual_seed(0)
    results, mutations = functionalize(f, remove=remove, return_mutations=True)(*given)
    if [t._version for t in given] != versions or _differs(given, inputs):
        return "an input was written before the end"
    if wrong := _differs(results, wanted[0]):
        return f"results with return_mutations: {wrong}"
    updated = [t if m is None else m for t, m in zip(given, mutations)]
    wrong = _differs(updated, wanted[1])
    return wrong and f"mutations: {wrong}"


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
        return _flat(settled(self.entry.overload, operator(self.entry)(*positional, **keyword)))

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
        views = _flat(operator(self.entry)(base, *rest, **keyword))
        for k, v in enumerate(views):
            if v.dtype != mica.bool:
                v.mul_(k + 2)
        return [*_flat([base]), *views]

    def out(self, *tensors: mica.Tensor) -> list[mica.Tensor]:
        """Outputs that grow, and outputs that are parts of other tensors."""
        positional, keyword = self.given(tensors)
        f = _C._find_operator(self.entry.out)
        names = [name for name, *_ in f._schema_info()[0][len(self.entry.arguments) :]]
        like = _flat(operator(self.entry)(*positional, **keyword))
        empty = [mica.empty(0, dtype=t.dtype) for t in like]
        f(*positional, **keyword, **dict(zip(names, empty)))
        bases = [mica.zeros([2, *t.shape], dtype=t.dtype) for t in like]
        f(*positional, **keyword, **dict(zip(names, [b[1] for b in bases])))
        settle = self.entry.overload
        return [*_flat(settled(settle, empty)), *_flat(settled(settle, bases))]


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
        lambda r, t: t.view(-1) if t.is_contiguous() else t.reshape(-1),
        lambda r, t: t.diagonal(r.randint(0, 1), 0, -1) if t.ndim > 1 else t.unfold(0, 1, 1),
        lambda r, t: t.unfold(d := r.randrange(t.ndim), k := r.randint(1, t.shape[d]), k),
        lambda r, t: t if t._is_view() else t.as_strided((2, 2), (3, 1), r.randint(0, 3)),
        lambda r, t: t.expand(1, *t.shape),
        lambda r, t: t.detach(),
        lambda r, t: r.choice(t.split(1)),
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


def leaf(*shape: int) -> mica.Tensor:
    return mica.ones(shape, requires_grad=True)


def no_grad_view(a: mica.Tensor) -> mica.Tensor:
    with mica.no_grad():
        view = (a * 1)[0]
    return view.mul_(a[1])


@pytest.mark.parametrize(
    "f",
    [
        lambda a: a.add_(1),
        lambda a: a[0].add_(1),
        lambda a: a.view(-1)[1:].mul_(2),
        lambda a: a.copy_(a * 2),
        lambda a: a.uniform_(),
        lambda a: a.t_(),
        lambda a: a.resize_(1),
        lambda a: mica.add(a, a, out=mica.empty(0)),
        lambda a: a.detach().expand(2, 2, 3).add_(1),
        lambda a: (a * 1).view(6).add_(mica.ones(7)),
        lambda a: (a * 1).view(2, 3).as_strided((3, 3), (3, 1)),
        lambda a: (y := (a * 1).detach().view(-1))[1:].add_(y[:-1]),
        lambda a: mica.arange(3).add_(0.5),
        no_grad_view,
    ],
)
def test_refuses_what_eager_refuses(f: Callable[[mica.Tensor], Any]) -> None:
    _, wanted = attempt(f, leaf(2, 3))
    _, found = attempt(functionalize(f), leaf(2, 3))
    assert wanted is not None
    assert (type(found), str(found).splitlines()[0]) == (type(wanted), str(wanted).splitlines()[0])


def test_refuses_writes_that_it_cannot_follow() -> None:
    captured, x = mica.zeros(3), mica.ones(3)
    with pytest.raises(RuntimeError, match="captured from outside"):
        functionalize(lambda a: captured.add_(a))(x)
    with pytest.raises(RuntimeError, match="captured from outside"):
        functionalize(lambda a: captured.add_(1))(x)
    with pytest.raises(NotImplementedError, match="shares memory with another input"):
        functionalize(lambda a, b: a.add_(1))(x, x[1:])
    with pytest.raises(NotImplementedError, match="reaches memory beyond"):
        functionalize(lambda a: a.as_strided((3,), (1,), 0).add_(1))(x[1:])
    with pytest.raises(RuntimeError, match="'mutations' or 'mutations_and_views'"):
        functionalize(lambda a: a, remove="views")
    kept = []
    functionalize(lambda a: kept.append(a * 2))(x)
    with pytest.raises(RuntimeError, match="escaped from that functionalize"):
        kept[0] + 1
    assert captured.tolist() == [0, 0, 0]


def test_inputs_come_back_as_themselves() -> None:
    x, y = mica.zeros(2, 3), mica.ones(3)

    def f(a: mica.Tensor, b: mica.Tensor) -> tuple[mica.Tensor, ...]:
        a.add_(b)
        return a, a[0], b

    result, row, same = functionalize(f)(x, y)
    assert result is x
    assert same is y
    assert row._is_view()
    x.zero_()
    assert row.tolist() == [0, 0, 0]


def test_reads_inside_see_the_writes() -> None:
    def f(a: mica.Tensor) -> list[Any]:
        row = a[0]
        a.mul_(3)
        assert (a[0, 0].item(), row.tolist()) == (3.0, [3.0, 3.0])
        assert mica.tensor([row[0], row[1]]).tolist() == [3.0, 3.0]
        assert a.requires_grad is False
        return [row, bool((row == 3).all())]

    assert functionalize(f)(mica.ones(2, 2))[1] is True


def test_shapes_and_strides_of_inputs_change_too() -> None:
    x = mica.arange(6.0).view(2, 3)
    functionalize(lambda a: a.add_(1).t_())(x)
    assert (x.shape, x.stride(), x[0].tolist()) == ((3, 2), (1, 3), [1, 4])
    y = mica.arange(2.0)
    functionalize(lambda a: a.resize_(4).fill_(7))(y)
    assert y.tolist() == [7, 7, 7, 7]
    _, (update,) = functionalize(lambda a: a.t_(), return_mutations=True)(x)
    assert (update.shape, x.shape) == ((2, 3), (3, 2))


def test_statistics_of_batch_norm() -> None:
    def f(x: mica.Tensor, mean: mica.Tensor, var: mica.Tensor) -> list[mica.Tensor]:
        return [mica.nn.functional.batch_norm(x, mean, var, training=True), mean * 1]

    rng = np.random.default_rng(0)
    x = mica.from_numpy(rng.standard_normal((4, 3, 2))).requires_grad_()
    stats = [mica.zeros(3, dtype=mica.float64), mica.ones(3, dtype=mica.float64)]
    assert not check(f, [x, *stats])
    _, mutations = functionalize(f, return_mutations=True)(x, *stats)
    assert [m is None for m in mutations] == [True, False, False]
    assert stats[0].tolist() == [0, 0, 0]


def written(a: mica.Tensor) -> mica.Tensor:
    """A function of a matrix that is made of writes."""
    b = a * 2
    b[0].mul_(a[1].sin())
    b.t()[1:].add_(a.sum())
    b.diagonal().mul_(3)
    b.view(-1)[::2] = a.mean()
    return (b * b).sum()


TRANSFORMS: dict[str, Callable[[Any], Any]] = {
    "functionalize": functionalize,
    "functionalize without views": lambda f: functionalize(f, remove="mutations_and_views"),
    "grad": lambda f: lambda a: grad(lambda x: f(x).sum())(a),
    "vjp": lambda f: lambda a: vjp(f, a)[1](mica.ones_like(f(a)))[0],
    "jvp": lambda f: lambda a: jvp(f, (a,), (mica.cos(a),))[1],
    "vmap": lambda f: lambda a: vmap(f)(mica.stack([a, a * 2])).sum(0),
}


@pytest.mark.parametrize("seed", range(60))
def test_nests_six_deep(seed: int) -> None:
    """Each functionalize may be left out."""
    r = random.Random(seed)
    names = r.choices(["functionalize", "functionalize without views", "vmap", "jvp", "grad"], k=6)
    while sum(n in ("vmap", "jvp", "grad") for n in names) > 3:
        names[r.randrange(6)] = "functionalize"
    nested, plain = written, written
    for name in names:
        nested = TRANSFORMS[name](nested)
        plain = plain if name.startswith("functionalize") else TRANSFORMS[name](plain)
    a = mica.from_numpy(np.random.default_rng(seed).uniform(0.1, 0.5, (2, 2)))
    assert not _differs([nested(a)], [plain(a)]), names


def test_hessian_of_writes() -> None:
    a = mica.from_numpy(np.random.default_rng(0).uniform(0.1, 0.5, (2, 2)))
    for nested in (hessian(functionalize(written)), functionalize(hessian(written))):
        assert not _differs([nested(a)], [hessian(written)(a)])
