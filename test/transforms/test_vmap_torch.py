"""vmap's meaning against torch.func: a table of programs that both libraries run, and of calls that both
refuse. Values of every operator are held against a loop elsewhere (test_vmap.py, the opinfo suite)."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import mica

Pair = namedtuple("Pair", "first second")


def tensor(lib: Any, *shape: int) -> Any:
    count = int(np.prod(shape))
    return (lib.arange(count, dtype=lib.float64) * 0.37 + 0.2).sin().reshape(shape)


def leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [type(value).__name__, *value, *(x for v in value.values() for x in leaves(v))]
    if isinstance(value, (tuple, list)):
        return [type(value).__name__, *(x for v in value for x in leaves(v))]
    if hasattr(value, "detach"):
        return [(str(value.dtype).split(".")[-1], tuple(value.shape)), value.detach().numpy()]
    return [value]


def same(ours: Any, theirs: Any) -> None:
    a, b = leaves(ours), leaves(theirs)
    assert len(a) == len(b)
    for x, y in zip(a, b):
        if isinstance(y, np.ndarray):
            np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-11)
        else:
            assert x == y


# in_dims and out_dims: (shapes, in_dims, out_dims, function)
DIMS: dict[str, tuple[Any, Any, Any, Callable[..., Any]]] = {
    "one": (((3, 4),), 0, 0, lambda x: x.sum()),
    "last": (((3, 4),), -1, 0, lambda x: x * 2),
    "middle to last": (((2, 3, 4),), 1, -1, lambda x: x.t() + 1),
    "two": (((3, 4), (4, 3)), (0, 1), 0, lambda x, y: x @ y),
    "none": (((3, 4), (4,)), (0, None), 0, lambda x, y: x - y),
    "none last": (((4,), (3, 4)), (None, 0), 1, lambda x, y: x * y),
    "many out": (((3, 4),), 0, (0, 1), lambda x: (x.sum(), x * 2)),
    "one for many": (((3, 4),), 0, 1, lambda x: (x * 3, x * 2)),
    "out none": (((3, 4), (2,)), (0, None), (0, None), lambda x, y: (x, y * 1)),
    "constant": (((3, 4), (2,)), (0, None), 0, lambda x, y: y * 2),
    "constant and 0-d": (((3, 4),), 0, 0, lambda x: (x[0], x.new_ones(()))),
    "tuple of one": (((3, 4),), (0,), (0,), lambda x: x.exp()),
    "empty example": (((3, 0),), 0, 0, lambda x: x.sum()),
    "negative out": (((3, 4, 5),), 0, -2, lambda x: x * 1),
    "nested list result": (((3, 4),), 0, 0, lambda x: [x, (x * 2, x.sum())]),
    "dictionary result": (((3, 4),), 0, 0, lambda x: {"b": x, "a": [x.sum()]}),
    "dictionary dims": (((3, 4),), 0, {"a": 1, "b": 0}, lambda x: {"a": x, "b": x}),
    "same tensor": (((3, 3),), 0, 1, lambda x: x),
}


@pytest.mark.parametrize("name", DIMS)
def test_dimensions(name: str) -> None:
    shapes, in_dims, out_dims, f = DIMS[name]
    found = [
        lib.func.vmap(f, in_dims=in_dims, out_dims=out_dims)(*(tensor(lib, *s) for s in shapes))
        for lib in (mica, torch)
    ]
    same(*found)
    for chunk in (1, 2, 7):
        if "none" not in name or out_dims == 0:
            chunked = mica.func.vmap(f, in_dims, out_dims, chunk_size=chunk)
            same(chunked(*(tensor(mica, *s) for s in shapes)), found[1])


TREES: dict[str, tuple[Callable[[Any], Any], Any, Callable[..., Any]]] = {
    "dictionary": (lambda lib: {"w": tensor(lib, 3, 2), "b": tensor(lib, 3)}, 0, lambda d: d["w"] * d["b"]),
    "dictionary, some": (
        lambda lib: {"w": tensor(lib, 3, 2), "b": tensor(lib, 2)},
        ({"w": 0, "b": None},),
        lambda d: d["w"] * d["b"],
    ),
    "list": (lambda lib: [tensor(lib, 3, 2), tensor(lib, 2)], ([0, None],), lambda x: x[0] + x[1]),
    "named tuple": (lambda lib: Pair(tensor(lib, 3, 2), tensor(lib, 3)), 0, lambda p: p.first * p.second),
    "ordered": (
        lambda lib: OrderedDict(a=tensor(lib, 3), b=tensor(lib, 3, 2)),
        0,
        lambda d: OrderedDict(c=d["a"], d=d["b"]),
    ),
    "numbers": (lambda lib: (tensor(lib, 3, 2), 2.0), ((0, None),), lambda p: p[0] * p[1]),
}


@pytest.mark.parametrize("name", TREES)
def test_trees(name: str) -> None:
    make, in_dims, f = TREES[name]
    same(*(lib.func.vmap(f, in_dims=in_dims)(make(lib)) for lib in (mica, torch)))


# Nestings: (library, x (3, 4), w (4,)) -> anything
NESTED: dict[str, Callable[[Any, Any, Any], Any]] = {
    "vmap of vmap": lambda lib, x, w: lib.func.vmap(lib.func.vmap(lambda a, b: a * b, (0, 0)), (0, None))(
        x, w
    ),
    "outer product": lambda lib, x, w: lib.func.vmap(
        lambda a: lib.func.vmap(lambda b: a[0] * b.sin())(w), out_dims=1
    )(x),
    "captured batch": lambda lib, x, w: lib.func.vmap(lambda a: lib.func.vmap(lambda b: (a * b).sum())(w))(x),
    "vmap of grad": lambda lib, x, w: lib.func.vmap(
        lib.func.grad(lambda a, b: (a * b).sin().sum(), argnums=(0, 1)), (0, None)
    )(x, w),
    "grad of vmap": lambda lib, x, w: lib.func.grad(
        lambda v: lib.func.vmap(lambda a: (a * v).exp().sum())(x).prod()
    )(w),
    "vmap of jvp": lambda lib, x, w: lib.func.vmap(lambda a: lib.func.jvp(lambda b: b.sin() * b, (a,), (w,)))(
        x
    ),
    "jvp of vmap": lambda lib, x, w: lib.func.jvp(
        lambda v: lib.func.vmap(lambda a: (a * v).tanh())(x), (w,), (w.cos(),)
    ),
    "vmap of vjp": lambda lib, x, w: lib.func.vmap(lambda a: lib.func.vjp(lambda b: b.sin() * w, a)[1](w)[0])(
        x
    ),
    "vmap over cotangents": lambda lib, x, w: lib.func.vmap(lib.func.vjp(lambda b: b.cumsum(0), w)[1])(x)[0],
    "vmap of jacrev": lambda lib, x, w: lib.func.vmap(lib.func.jacrev(lambda a: a.cumprod(0)))(x),
    "jacfwd of vmap": lambda lib, x, w: lib.func.jacfwd(lib.func.vmap(lambda a: a.cumsum(0)))(x),
    "vmap of hessian": lambda lib, x, w: lib.func.vmap(lib.func.hessian(lambda a: (a * w).sin().prod()))(x),
    "hessian of vmap": lambda lib, x, w: lib.func.hessian(
        lambda v: lib.func.vmap(lambda a: (a * v).sin().prod())(x).sum()
    )(w),
    "grad of grad in vmap": lambda lib, x, w: lib.func.vmap(
        lib.func.grad(lambda a: lib.func.grad(lambda b: (b**3).sum())(a).sum())
    )(x),
    "vmap of linear": lambda lib, x, w: lib.func.vmap(
        lambda v: lib.nn.functional.linear(x, v[None] * x[:2] ** 2)
    )(x),
    "writes": lambda lib, x, w: lib.func.vmap(
        lambda a: a.clone().mul_(2).index_fill_(0, lib.tensor([1]), 0.0)
    )(x),
    "made inside": lambda lib, x, w: lib.func.vmap(lambda a: a.new_zeros(2, 4).copy_(a).add_(w))(x),
    "indices of each": lambda lib, x, w: lib.func.vmap(lambda i: w[i])(lib.tensor([[0, 1], [3, 3], [2, 0]])),
    "take the largest": lambda lib, x, w: lib.func.vmap(lambda a: a.gather(0, a.argsort()[-2:]))(x),
    "where": lambda lib, x, w: lib.func.vmap(lambda a: lib.where(a > 0, a, w))(x),
    "cat": lambda lib, x, w: lib.func.vmap(lambda a: lib.cat([a, w, a[:1]]))(x),
    "linear algebra": lambda lib, x, w: lib.func.vmap(
        lambda a: lib.linalg.solve(lib.outer(a, a) + 3 * lib.eye(4, dtype=lib.float64), w)
    )(x),
    "promotion": lambda lib, x, w: lib.func.vmap(lambda a: a[0].float() * lib.ones(2))(x),
    "integer and number": lambda lib, x, w: lib.func.vmap(lambda n: n * 1.5)(lib.arange(3)),
    "0-d beside a wider": lambda lib, x, w: lib.func.vmap(lambda a: a.sum() * lib.ones(2, dtype=lib.float32))(
        x
    ),
}


@pytest.mark.parametrize("name", NESTED)
def test_nestings(name: str) -> None:
    same(*(NESTED[name](lib, tensor(lib, 3, 4), tensor(lib, 4)) for lib in (mica, torch)))


RANDOM: dict[str, Callable[[Any, Any], Any]] = {
    "rand": lambda lib, x: lib.rand(5) + 0 * x[0],
    "randn_like": lambda lib, x: lib.randn_like(x),
    "dropout": lambda lib, x: lib.nn.functional.dropout(lib.ones(64), 0.5) + 0 * x[0],
    "dropout of the batch": lambda lib, x: lib.nn.functional.dropout(lib.ones_like(x).repeat(16), 0.5),
    "randperm": lambda lib, x: lib.randperm(40) + 0 * x[0],
    "bernoulli": lambda lib, x: lib.bernoulli(lib.full((64,), 0.5)) + 0 * x[0],
    "uniform_": lambda lib, x: lib.empty_like(x).uniform_(),
}


@pytest.mark.parametrize("name", RANDOM)
@pytest.mark.parametrize("randomness", ["same", "different", "error"])
def test_randomness(name: str, randomness: str) -> None:
    seen = []
    for lib in (mica, torch):
        lib.manual_seed(0)
        try:
            y = lib.func.vmap(lambda x, lib=lib: RANDOM[name](lib, x), randomness=randomness)(
                tensor(lib, 3, 4)
            )
            seen.append((tuple(y.shape), bool((y[0] == y[1]).all()), bool((y[1] == y[2]).all())))
        except RuntimeError:
            seen.append("RuntimeError")
    assert seen[0] == seen[1]


# Calls that both refuse: (library) -> ...
REFUSED: dict[str, Callable[[Any], Any]] = {
    "sizes differ": lambda lib: lib.func.vmap(lambda x, y: x)(tensor(lib, 3), tensor(lib, 2)),
    "no tensor": lambda lib: lib.func.vmap(lambda x: x)(3.0),
    "no argument": lambda lib: lib.func.vmap(lambda: lib.ones(1))(),
    "all none": lambda lib: lib.func.vmap(lambda x: x, in_dims=None)(tensor(lib, 3)),
    "all none in a tuple": lambda lib: lib.func.vmap(lambda x: x, in_dims=(None,))(tensor(lib, 3)),
    "dimension too high": lambda lib: lib.func.vmap(lambda x: x, in_dims=2)(tensor(lib, 3, 4)),
    "dimension too low": lambda lib: lib.func.vmap(lambda x: x, in_dims=-3)(tensor(lib, 3, 4)),
    "0-d": lambda lib: lib.func.vmap(lambda x: x)(tensor(lib, 3)[0]),
    "structure of in_dims": lambda lib: lib.func.vmap(lambda x: x, in_dims=(0, 0))(tensor(lib, 3)),
    "in_dims is a str": lambda lib: lib.func.vmap(lambda x: x, in_dims="0")(tensor(lib, 3)),
    "structure of out_dims": lambda lib: lib.func.vmap(lambda x: x, out_dims=(0, 0))(tensor(lib, 3)),
    "out_dims none of a batch": lambda lib: lib.func.vmap(lambda x: x, out_dims=None)(tensor(lib, 3)),
    "out_dims too high": lambda lib: lib.func.vmap(lambda x: x, out_dims=3)(tensor(lib, 3)),
    "returns a number": lambda lib: lib.func.vmap(lambda x: 1.0)(tensor(lib, 3)),
    "returns None": lambda lib: lib.func.vmap(lambda x: None)(tensor(lib, 3)),
    "item": lambda lib: lib.func.vmap(lambda x: x * x.item())(tensor(lib, 3)),
    "if": lambda lib: lib.func.vmap(lambda x: x if x > 0 else -x)(tensor(lib, 3)),
    "nonzero": lambda lib: lib.func.vmap(lambda x: x.nonzero())(tensor(lib, 3, 4)),
    "boolean mask": lambda lib: lib.func.vmap(lambda x: x[x > 0])(tensor(lib, 3, 4)),
    "write to captured": lambda lib: (lambda c: lib.func.vmap(lambda x: c.add_(x))(tensor(lib, 3)))(
        tensor(lib, 1)
    ),
    "write through a captured view": lambda lib: (
        lambda c: lib.func.vmap(lambda x: c[0].copy_(x))(tensor(lib, 3))
    )(tensor(lib, 1)),
    "randomness": lambda lib: lib.func.vmap(lambda x: x, randomness="any")(tensor(lib, 3)),
    "chunk of 0": lambda lib: lib.func.vmap(lambda x: x, chunk_size=0)(tensor(lib, 3)),
    "mean of integers": lambda lib: lib.func.vmap(lambda x: x.mean())(lib.ones(3, 2, dtype=lib.int64)),
    "wrong shapes inside": lambda lib: lib.func.vmap(lambda x, y: x @ y)(
        tensor(lib, 3, 4), tensor(lib, 3, 5)
    ),
}


def refusal(lib: Any, call: Callable[[Any], Any]) -> type | None:
    try:
        call(lib)
    except Exception as error:  # noqa: BLE001 - the kind is what is compared
        return type(error)
    return None


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str) -> None:
    ours, theirs = refusal(mica, REFUSED[name]), refusal(torch, REFUSED[name])
    assert ours is not None and theirs is not None
    assert issubclass(ours, theirs) or issubclass(theirs, ours)
    assert mica._C._frame_depth() == 0


# ---- a batch without examples
EMPTY: dict[str, Callable[[Any, Any], Any]] = {
    "pointwise": lambda lib, x: x.sin() + 1,
    "view": lambda lib, x: x.t().reshape(2, -1),
    "select": lambda lib, x: x[0],
    "expand": lambda lib, x: x.expand(4, 3, 2),
    "sum": lambda lib, x: x.sum(),
    "sum of rows": lambda lib, x: x.sum(0, keepdim=True),
    "amax": lambda lib, x: x.amax(),
    "softmax": lambda lib, x: x.softmax(-1),
    "cumsum": lambda lib, x: x.cumsum(0),
    "sort": lambda lib, x: x.sort(0)[0],
    "matmul": lambda lib, x: x @ lib.ones(2, 5, dtype=lib.float64),
    "shared on the left": lambda lib, x: lib.ones(5, 3, dtype=lib.float64) @ x,
    "cat": lambda lib, x: lib.cat([x, lib.ones(1, 2, dtype=lib.float64)]),
    "gather": lambda lib, x: x.gather(0, lib.zeros(1, 2, dtype=lib.int64)),
    "index_select": lambda lib, x: x.index_select(0, lib.tensor([0, 2])),
    "in place": lambda lib, x: x.clone().mul_(2),
    "mse_loss": lambda lib, x: lib.nn.functional.mse_loss(x, x + 1),
    "gradient": lambda lib, x: lib.func.grad(lambda y: (y * y).sum())(x),
    "made inside": lambda lib, x: lib.ones(3),
}


@pytest.mark.parametrize("name", EMPTY)
def test_an_empty_batch(name: str) -> None:
    def run(lib: Any) -> Any:
        return lib.func.vmap(lambda x: EMPTY[name](lib, x))(lib.ones(0, 3, 2, dtype=lib.float64))

    same(run(mica), run(torch))


def test_an_empty_batch_that_an_operator_would_join() -> None:
    images, weight = mica.ones(0, 1, 3, 2), mica.ones(1, 3, 1)
    for in_dims, weights in ((0, None), weight), ((0, 0), mica.ones(0, 1, 3, 1)):
        with pytest.raises(NotImplementedError, match="empty batch"):
            mica.func.vmap(mica.nn.functional.conv1d, in_dims)(images, weights)


# ---- the one deliberate difference
def test_vmap_equals_the_loop_under_autocast() -> None:
    x, w = tensor(mica, 3, 8).float(), tensor(mica, 8).float()
    with mica.autocast("cpu"):
        mapped = mica.func.vmap(mica.dot, (0, None))(x, w)
        loop = mica.stack([mica.dot(row, w) for row in x])
    assert mapped.dtype == loop.dtype == mica.float32
    assert mica.equal(mapped, loop)
    tx, tw = tensor(torch, 3, 8).float(), tensor(torch, 8).float()
    with torch.autocast("cpu"):
        assert torch.dot(tx[0], tw).dtype == torch.float32
        assert torch.func.vmap(torch.dot, (0, None))(tx, tw).dtype == torch.bfloat16
