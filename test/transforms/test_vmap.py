"""vmap: every operator over each subset of its tensors against a loop, from the data of
mica.conformance; nestings with the other transforms; what it refuses, and how it says so.

An excepted operator cannot be mapped over in some of its samples. None runs once an example; an
operator of somebody else's, without a rule, does, with a warning.
"""

from __future__ import annotations

import itertools
import warnings
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from compare import unlike
from every_operator import INPLACE, SAMPLED, each, excepted, judge

import mica
from mica.conformance.batches import Mapped
from mica.conformance.operators import ENTRIES, attempt
from mica.func import grad, hessian, jacfwd, jacrev, jvp, vjp, vmap

EXAMPLES = 3
DTYPES = ["float64", "int64", "complex128"]
# By the precision of the result: integers give float32.
TOLERANCE = {4: (1e-5, 1e-6), 8: (1e-8, 1e-9)}


def _subsets(n: int) -> list[tuple[int, ...]]:
    every = range(n)
    if n > 3:
        return [tuple(every), *((i,) for i in every)]
    return [s for k in range(1, n + 1) for s in itertools.combinations(every, k)]


def _results(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (tuple, list)) else [value]


def _difference(got: mica.Tensor, wanted: list[mica.Tensor]) -> str:
    expected = mica.stack([x.resolve_conj() for x in wanted])
    single = expected.dtype in (mica.float32, mica.complex64)
    return unlike(got, expected, *TOLERANCE[4 if single else 8])


class _Mapped(Mapped):
    def against_the_loop(self, subset: tuple[int, ...]) -> str:
        """What is wrong when the tensors of the subset are mapped over, or ""."""
        pairs = list(enumerate(zip(self.tensors, self.batches)))
        examples = [[b[e].clone() if i in subset else x for i, (x, b) in pairs] for e in range(EXAMPLES)]
        loop = [attempt(self, *tensors) for tensors in examples]
        if any(error is not None for _, error in loop):
            return ""
        in_dims = tuple(0 if i in subset else None for i, _ in pairs)
        got, error = attempt(vmap(self, in_dims), *(b if i in subset else x for i, (x, b) in pairs))
        if error is not None:
            return f"{type(error).__name__}: {str(error).splitlines()[0]:.200}"
        for k, result in enumerate(_results(got)):
            wrong = _difference(result, [_results(r)[k] for r, _ in loop])
            if wrong:
                return f"result {k}: {wrong}"
        return ""


def _swept(name: str, inplace: bool) -> list[str]:
    """What is wrong of values, and what is refused ("Error: ")."""
    found = []
    entry = ENTRIES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for dtype in DTYPES:
            for number, call in enumerate(entry.calls()):
                mapped = _Mapped(entry, call, dtype, inplace=inplace, examples=EXAMPLES)
                for subset in _subsets(len(mapped.tensors)):
                    if wrong := mapped.against_the_loop(subset):
                        found.append(f"{dtype} call {number} tensors {subset}: {wrong}")
    return found


@each("vmap", SAMPLED)
def test_operators(name: str) -> None:
    judge("vmap", name, _swept(name, False))


@each("vmap in place", INPLACE)
def test_inplace_forms(name: str) -> None:
    judge("vmap in place", name, _swept(name, True))


def test_no_operator_loops() -> None:
    """Every operator of the core has a rule, decomposes or is refused; four fifths need no rule by hand."""
    rules = Counter(mica._C._vmap_rule(f"mica::{name}") for name in ENTRIES)
    assert rules["loop"] == 0
    assert rules["class"] + rules["decomposition"] >= 0.8 * len(ENTRIES)
    assert rules["refused"] <= 0.03 * len(ENTRIES)


# ---- with gradients: the same for every differentiable operator
def _loss(mapped: _Mapped) -> Any:
    def f(*tensors: mica.Tensor) -> mica.Tensor:
        total = mica.zeros((), dtype=mica.float64)
        for result in _results(mapped(*tensors)):
            if isinstance(result, mica.Tensor) and result.is_floating_point():
                total = total + (result * result.detach().cos()).sum()
        return total

    return f


def _gradient_cases(name: str) -> Iterator[tuple[str, Any, list[mica.Tensor], tuple[int, ...]]]:
    entry = ENTRIES[name]
    for number, call in enumerate(entry.calls()):
        mapped = _Mapped(entry, call, "float64", examples=EXAMPLES)
        wanted = tuple(i for i, x in enumerate(mapped.tensors) if x.is_floating_point())
        if wanted:
            yield f"call {number}", _loss(mapped), mapped.batches, wanted


@pytest.mark.parametrize(
    "name", [n for n in SAMPLED if not excepted("vmap", n) and ENTRIES[n].differentiable]
)
def test_gradients(name: str) -> None:
    """vmap of grad, and grad of vmap, against a loop of grad."""
    for where, f, batches, wanted in _gradient_cases(name):
        g = grad(f, argnums=wanted)
        loop = [attempt(g, *(b[e].clone() for b in batches)) for e in range(EXAMPLES)]
        if any(error is not None for _, error in loop):
            continue
        inner = vmap(g)(*batches)
        outer = grad(lambda *b: vmap(f)(*b).sum(), argnums=wanted)(*batches)  # noqa: B023
        for k in range(len(wanted)):
            expected = [r[k] for r, _ in loop]
            assert not _difference(inner[k], expected), f"{where}, vmap of grad, argument {wanted[k]}"
            assert not _difference(outer[k], expected), f"{where}, grad of vmap, argument {wanted[k]}"


def _along(f: Any, wanted: tuple[int, ...], tensors: tuple[mica.Tensor, ...]) -> mica.Tensor:
    """The derivative of a loss along its own arguments, those of `wanted`."""

    def of_wanted(*some: mica.Tensor) -> mica.Tensor:
        given = list(tensors)
        for i, x in zip(wanted, some):
            given[i] = x
        return f(*given)

    moved = tuple(tensors[i] for i in wanted)
    return mica.func.jvp(of_wanted, moved, tuple(x.cos() for x in moved))[1]


@pytest.mark.parametrize(
    "name", [n for n in SAMPLED if not excepted("vmap", n) and ENTRIES[n].differentiable]
)
def test_tangents(name: str) -> None:
    """vmap of jvp, and jvp of vmap, against a loop of jvp."""
    for where, f, batches, wanted in _gradient_cases(name):
        loop = [attempt(_along, f, wanted, tuple(b[e].clone() for b in batches)) for e in range(EXAMPLES)]
        if any(error is not None for _, error in loop):
            continue
        expected = [r for r, _ in loop]
        inner = vmap(lambda *b: _along(f, wanted, b))(*batches)  # noqa: B023
        assert not _difference(inner, expected), f"{where}, vmap of jvp"
        outer = _along(lambda *b: vmap(f)(*b), wanted, tuple(batches))  # noqa: B023
        assert not _difference(outer, expected), f"{where}, jvp of vmap"


# ---- vmap itself
X = mica.arange(12, dtype=mica.float64).reshape(3, 4)


def test_dimensions() -> None:
    y = mica.arange(6, dtype=mica.float64).reshape(2, 3)
    assert vmap(lambda a, b: a @ b, (1, None))(y, mica.ones(2, dtype=mica.float64)).tolist() == [3, 5, 7]
    assert vmap(lambda a: a * 2, in_dims=-1, out_dims=1)(y).tolist() == (y * 2).tolist()
    assert vmap(lambda a: (a, a.sum()), out_dims=(1, 0))(y)[0].shape == (3, 2)
    assert vmap(lambda a, b: b, (0, None), out_dims=None)(y, X).shape == X.shape
    assert vmap(lambda a: mica.ones(2))(y).shape == (2, 2)


def test_trees() -> None:
    tree = {"a": X, "b": [X + 1, mica.ones(4, dtype=mica.float64)]}
    out = vmap(lambda t: {"sum": t["a"] + t["b"][0] * t["b"][1]}, in_dims=({"a": 0, "b": [0, None]},))(tree)
    assert out["sum"].tolist() == (X + X + 1).tolist()
    assert vmap(lambda a, *, scale: a * scale)(X, scale=mica.ones(3)).shape == X.shape


def test_nesting() -> None:
    outer = vmap(vmap(lambda a, b: a - b, (None, 0)), (0, None))(X[0], X[1])
    assert outer.tolist() == (X[0][:, None] - X[1][None, :]).tolist()
    f = lambda a: a + 1  # noqa: E731
    for _ in range(6):
        f = vmap(f)
    assert f(mica.zeros(1, 2, 1, 2, 1, 2)).sum().item() == 8


@pytest.mark.parametrize("chunk", [1, 2, 3, 5])
def test_chunks(chunk: int) -> None:
    f = lambda a: (a.sum(), a * 2)  # noqa: E731
    for got, expected in zip(vmap(f, out_dims=(0, 1), chunk_size=chunk)(X), vmap(f, out_dims=(0, 1))(X)):
        assert got.tolist() == expected.tolist()


def test_randomness() -> None:
    draw = lambda a: mica.rand(3) + 0 * a[0]  # noqa: E731
    same, different = vmap(draw, randomness="same")(X), vmap(draw, randomness="different")(X)
    assert (same[0] == same[1]).all() and (different[0] != different[1]).all()
    dropped = vmap(lambda a: mica.nn.functional.dropout(a, 0.5), randomness="same")(mica.ones(4, 64))
    assert (dropped[0] == dropped[3]).all() and 0 < dropped[0].count_nonzero() < 64
    normal = vmap(lambda std: mica.normal(mica.zeros(2), std), randomness="different")
    assert normal(mica.ones(3, 2)).shape == (3, 2)
    with pytest.raises(RuntimeError, match="all elements of std >= 0.0"):  # of any example
        normal(mica.tensor([[1.0, 1], [1, -1]]))
    with pytest.raises(RuntimeError, match="randomness='different'"):
        vmap(draw)(X)


def test_tensors_made_inside_get_a_batch_when_written() -> None:
    def f(a: mica.Tensor) -> tuple[mica.Tensor, mica.Tensor]:
        z = mica.zeros(4, dtype=mica.float64)
        view = z[1:3]
        z[0] = a[1]
        view.add_(a[:2])
        return z, view

    z, view = vmap(f)(X)
    assert z.tolist() == [[1, 0, 1, 0], [5, 4, 5, 0], [9, 8, 9, 0]] and view.tolist() == z[:, 1:3].tolist()


def test_writes_reach_the_batch() -> None:
    x = X.clone()
    vmap(lambda a: a[1:].mul_(2))(x)
    assert x[:, 1:].tolist() == (X[:, 1:] * 2).tolist() and x[:, 0].tolist() == X[:, 0].tolist()


def test_with_the_other_transforms() -> None:
    f = lambda a: (a.sin() * a).sum()  # noqa: E731
    diagonal = lambda a: a.sin() * a  # noqa: E731
    x = X[0]
    assert mica.allclose(jacrev(diagonal)(x), mica.diag(grad(f)(x)))
    assert mica.allclose(jacfwd(diagonal)(x), mica.diag(grad(f)(x)))
    assert mica.allclose(hessian(f)(x), mica.diag(2 * x.cos() - x * x.sin()))
    assert mica.allclose(vmap(hessian(f))(X)[1], hessian(f)(X[1]))
    _, tangent = jvp(vmap(f), (X,), (mica.ones_like(X),))
    assert mica.allclose(tangent, vmap(grad(f))(X).sum(1))
    value, pull = vjp(vmap(f), X)
    assert mica.allclose(pull(mica.ones_like(value))[0], vmap(grad(f))(X))
    w = X.clone().requires_grad_()
    vmap(f)(w).sum().backward()
    assert mica.allclose(w.grad, vmap(grad(f))(X))
    assert mica.allclose(jacrev(diagonal, chunk_size=2)(x), jacrev(diagonal)(x))


def test_per_sample_gradients() -> None:
    layer = mica.nn.Sequential(mica.nn.Linear(4, 5), mica.nn.Tanh(), mica.nn.Linear(5, 3))
    state = {k: v.detach() for k, v in layer.named_parameters()}
    x, target = mica.randn(6, 4), mica.randint(0, 3, (6,))

    def loss(state: Any, x: mica.Tensor, target: mica.Tensor) -> mica.Tensor:
        return mica.nn.functional.cross_entropy(
            mica.func.functional_call(layer, state, (x[None],)), target[None]
        )

    got = vmap(grad(loss), (None, 0, 0))(state, x, target)
    for i in range(6):
        for name, expected in grad(loss)(state, x[i], target[i]).items():
            assert mica.allclose(got[name][i], expected, atol=1e-6), name


def test_ensembles() -> None:
    models = [mica.nn.Linear(4, 2) for _ in range(3)]
    state, _ = mica.func.stack_module_state(models)
    x = mica.randn(5, 4)
    got = vmap(lambda s: mica.func.functional_call(models[0], s, (x,)))(state)
    for i, model in enumerate(models):
        assert mica.allclose(got[i], model(x), atol=1e-6)


# ---- what it refuses
CAPTURED = mica.zeros(4, dtype=mica.float64)
BAD: dict[str, tuple[Any, str]] = {
    "write": (lambda a: CAPTURED.add_(a), r"captured from outside.*x\.new_zeros"),
    "write through a view": (lambda a: CAPTURED[:2].copy_(a[:2]), r"captured from outside.*x\.new_zeros"),
    "item": (lambda a: a.sum().item(), r"item\(\).*mica\.where"),
    "if": (lambda a: a if a.sum() > 0 else -a, r"mica\.where"),
    "tolist": (lambda a: a.tolist(), r"tolist\(\)"),
    "a tensor of it": (lambda a: mica.tensor([a.sum(), 1.0]), r"mica\.where"),
    "shape by values": (lambda a: a.nonzero(), "shape that depends on the values"),
    "random": (lambda a: mica.randn(2), "randomness='same'"),
    "no tensor": (lambda a: 3, "must return Tensors"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_functions(what: str) -> None:
    f, words = BAD[what]
    with pytest.raises((RuntimeError, ValueError), match=words) as caught:
        vmap(f)(X)
    assert len(str(caught.value).splitlines()[0]) < 420
    assert mica._C._frame_depth() == 0


@pytest.mark.parametrize(
    ("in_dims", "args", "words"),
    [
        (0, (X, mica.ones(2)), "differ in size"),
        (2, (X,), "expected a dimension from -2 to 1"),
        ((0, 0), (X,), "does not fit the structure"),
        (None, (X,), "maps over no argument"),
        (0, (3.0,), "type float"),
        (0, (mica.tensor(1.0),), "0-d tensor"),
        (0, (), "without arguments"),
    ],
)
def test_bad_dimensions(in_dims: Any, args: tuple[Any, ...], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        vmap(lambda *a: a[0], in_dims)(*args)


def test_escaped_tensors() -> None:
    kept: list[mica.Tensor] = []
    vmap(lambda a: kept.append(a) or a)(X)
    with pytest.raises(RuntimeError, match="escaped from that vmap"):
        kept[0] + 1


def test_batch_in_its_text() -> None:
    seen: list[str] = []
    vmap(lambda a: seen.append(repr(a)) or a)(X)
    assert seen == ["tensor(..., float64[4] on cpu, one example of a batch)"]


def test_loops_warn_once() -> None:
    code = "linalg_matrix_exp"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        vmap(mica.linalg.matrix_exp)(mica.eye(2).expand(3, 2, 2).clone())
        vmap(mica.linalg.matrix_exp)(mica.eye(2).expand(3, 2, 2).clone())
    assert len([w for w in caught if code in str(w.message)]) <= 1


def test_a_mapped_number_indexes_a_tensor() -> None:
    table = mica.arange(12.0).reshape(4, 3)
    rows, columns = mica.tensor([3, 0, 1]), mica.tensor([2, 2, 0])
    found = mica.vmap(lambda i, j: (table[i], table[i, j], table[i, 1:]))(rows, columns)
    for ours, expected in zip(found, (table[rows], table[rows, columns], table[rows, 1:])):
        assert ours.equal(expected)
