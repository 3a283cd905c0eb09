"""Transforms against torch: mica.func on functions that both libraries run, and random
programs of views and writes under grad, jvp and nestings of them against plain backward,
which test_autograd_programs_torch holds against torch."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
import torch
from view_programs import RESHAPES, VIEWS, WRITES, Step, program, pure, reshape, view, write

import mica


def tensors(library: Any, *shapes: tuple[int, ...]) -> list[Any]:
    rng = np.random.default_rng(0)
    return [
        library.tensor(rng.uniform(0.2, 1.2, shape).tolist(), dtype=library.float64).reshape(shape)
        for shape in shapes
    ]


FUNCTIONS: dict[str, tuple[Any, tuple[tuple[int, ...], ...]]] = {
    "pointwise": (lambda lib, x, y: (x * y).sin() + x.exp() / y, ((3,), (3,))),
    "broadcast": (lambda lib, x, y: x * y - y, ((2, 3), (3,))),
    "matmul": (lambda lib, x, y: (x @ y).tanh(), ((2, 3), (3, 2))),
    "softmax": (lambda lib, x, y: lib.softmax(x, -1) * y, ((2, 3), (2, 3))),
    "linalg": (lambda lib, x, y: lib.linalg.solve(x + 3 * lib.eye(2, dtype=lib.float64), y), ((2, 2), (2,))),
    "index": (lambda lib, x, y: x[[0, 2, 0]] * y[0], ((3, 2), (2,))),
    "cat": (lambda lib, x, y: lib.cat([x, y * x]).cumsum(0), ((3,), (3,))),
    "sort": (lambda lib, x, y: x.sort(0)[0] * y.max(), ((4,), (4,))),
    "where": (lambda lib, x, y: lib.where(x > y, x * x, y**3), ((4,), (4,))),
    "norm": (lambda lib, x, y: lib.nn.functional.layer_norm(x, (3,), y), ((2, 3), (3,))),
    "views": (lambda lib, x, y: x.t().reshape(-1)[1:4] * y.expand(3).flip(0), ((2, 3), (1,))),
    "convolution": (lambda lib, x, y: lib.nn.functional.conv1d(x, y, padding=1), ((1, 2, 4), (2, 2, 3))),
    "einsum": (lambda lib, x, y: lib.einsum("ij,kj->ik", x, y).square(), ((2, 3), (2, 3))),
    "embedding": (
        lambda lib, x, y: lib.nn.functional.embedding(lib.tensor([0, 2]), x) * y,
        ((3, 2), (2,)),
    ),
    "constant": (lambda lib, x, y: lib.ones(2, dtype=lib.float64) + 0 * y.sum(), ((2,), (2,))),
    "tree": (lambda lib, x, y: {"a": x * y, "b": (x.sum(), y[0])}, ((3,), (3,))),
}


def leaves(result: Any) -> list[np.ndarray]:
    if isinstance(result, dict):
        return [a for value in result.values() for a in leaves(value)]
    if isinstance(result, (tuple, list)):
        return [a for value in result for a in leaves(value)]
    if isinstance(result, torch.Tensor) and torch._is_zerotensor(result):
        return [np.zeros(result.shape)]
    return [result.detach().numpy()]


def total(tree: Any) -> Any:
    if isinstance(tree, dict):
        tree = tuple(tree.values())
    return sum(total(t) for t in tree) if isinstance(tree, tuple) else (tree * tree).sum()


def results(library: Any, f: Any, shapes: Any) -> dict[str, list[np.ndarray]]:
    func = library.func
    x, y = tensors(library, *shapes)
    s, t = tensors(library, *shapes)
    of = lambda x, y: f(library, x, y)  # noqa: E731
    scalar = lambda x, y: total(of(x, y))  # noqa: E731
    found = {
        "grad": func.grad(scalar, argnums=(0, 1))(x, y),
        "grad_and_value": func.grad_and_value(scalar, argnums=1)(x, y),
        "jvp": func.jvp(of, (x, y), (s, t)),
        "jvp of one": func.jvp(lambda x: of(x, y), (x,), (s,)),
        "jacrev": func.jacrev(of, argnums=(0, 1))(x, y),
        "jacfwd": func.jacfwd(of)(x, y),
        "hessian": func.hessian(scalar, argnums=(0, 1))(x, y),
        "jvp of grad": func.jvp(func.grad(scalar), (x, y), (s, t)),
        "grad of jvp": func.grad(lambda x: total(func.jvp(of, (x, y), (s, t))[1]))(x),
        "jacrev of jacfwd": func.jacrev(func.jacfwd(of))(x, y),
    }
    out, pull = func.vjp(of, x, y)
    found["vjp"] = (out, pull(out))
    out, push = func.linearize(of, x, y)
    found["linearize"] = (out, push(s, t))
    return {name: leaves(value) for name, value in found.items()}


# torch 2.13's derivative differs from central differences of its own function there.
WRONG_IN_TORCH = {
    ("norm", "hessian"),
    ("norm", "grad of jvp"),
    ("norm", "jacrev of jacfwd"),
    ("linalg", "grad of jvp"),
    ("linalg", "jacrev of jacfwd"),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str) -> None:
    f, shapes = FUNCTIONS[name]
    ours, expected = results(mica, f, shapes), results(torch, f, shapes)
    for what, values in expected.items():
        if (name, what) in WRONG_IN_TORCH:
            continue
        assert len(ours[what]) == len(values), what
        for a, b in zip(ours[what], values):
            assert a.shape == b.shape, what
            np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-10, err_msg=what)


def difference(f: Any, x: Any, step: float = 1e-6) -> np.ndarray:
    """The derivative of a function of one tensor, the elements of x last."""
    columns = []
    for k in range(x.numel()):
        e = mica.zeros_like(x)
        e.view(-1)[k] = step
        columns.append(((f(x + e) - f(x - e)) / (2 * step)).numpy())
    return np.stack(columns, -1).reshape(*columns[0].shape, *x.shape)


def swapped(f: Any, a: Any, b: Any) -> Any:
    return f(b, a)


def test_where_torch_is_wrong() -> None:
    f, shapes = FUNCTIONS["norm"]
    x, y = tensors(mica, *shapes)
    scalar = lambda x, y: total(f(mica, x, y))  # noqa: E731
    blocks = mica.func.hessian(scalar, argnums=(0, 1))(x, y)
    gradient = mica.func.grad(scalar, argnums=(0, 1))
    for i, part in enumerate((lambda *xy: gradient(*xy)[0], lambda *xy: gradient(*xy)[1])):
        by_x, by_y = (
            difference(functools.partial(swapped, part, y), x),
            difference(functools.partial(part, x), y),
        )
        np.testing.assert_allclose(blocks[i][0].numpy(), by_x, atol=1e-6)
        np.testing.assert_allclose(blocks[i][1].numpy(), by_y, atol=1e-6)
    for name in ("norm", "linalg"):
        f, shapes = FUNCTIONS[name]
        x, y = tensors(mica, *shapes)
        s, t = tensors(mica, *shapes)
        push = lambda x: total(mica.func.jvp(lambda x, y: f(mica, x, y), (x, y), (s, t))[1])  # noqa: B023, E731
        np.testing.assert_allclose(mica.func.grad(push)(x).numpy(), difference(push, x), atol=1e-6)
        forward = mica.func.jacfwd(lambda x: f(mica, x, y))  # noqa: B023
        np.testing.assert_allclose(mica.func.jacrev(forward)(x).numpy(), difference(forward, x), atol=1e-6)


# ---- random programs of views and writes
def live_after(library: Any, steps: list[Step], given: list[Any]) -> list[Any]:
    """What the program's tensors are; steps that are refused change nothing."""
    make = lambda *shape: tensors(library, shape)[0]  # noqa: E731
    live = [t * 1 for t in given] + [make(2, 3), make(4)]
    for name, a, b, c in steps:
        x, y = live[int(a * len(live))], live[int(b * len(live))]
        # Of memory beside a tensor's own elements reverse mode knows nothing, forward mode does.
        if name == "as_strided_" or (name == "as_strided" and not x.is_contiguous()):
            continue
        mask = library.tensor([True, False, True])[: x.shape[-1]] if x.dim() and x.shape[-1] <= 3 else None
        try:
            if name in VIEWS:
                live.append(view(library, name, x, c))
            elif name in WRITES:
                write(name, x, y, library.tensor(True) if mask is None else mask)
            elif name in RESHAPES:
                reshape(name, x, c)
            else:
                live.append(pure(library, name, x, y))
        except RuntimeError as error:
            if "implement" in str(error):
                raise
    return live


def weighed(live: list[Any]) -> Any:
    return sum(t.sum() * (k + 1) for k, t in enumerate(live))


@pytest.mark.parametrize("reshapes", [False, True])
@pytest.mark.parametrize("block", range(6))
def test_programs(block: int, reshapes: bool) -> None:
    compared = 0
    for seed in range(block * 50, block * 50 + 50):
        # Eager refuses writes through views that were made under no_grad; jvp does not see no_grad.
        steps = [s for s in program(seed, reshapes) if s[0] != "no_grad_view"]
        f = lambda *given: weighed(live_after(mica, steps, list(given)))  # noqa: B023, E731
        x = tensors(mica, (2, 3), (3,), (2, 2))
        t = tensors(mica, (2, 3), (3,), (2, 2))
        recorded = [a.clone().requires_grad_() for a in x]
        out = f(*recorded)
        try:
            first = mica.autograd.grad(out, recorded, create_graph=True, allow_unused=True)
            first = [mica.zeros_like(a) if g is None else g for g, a in zip(first, x)]
            along = sum((g * d).sum() for g, d in zip(first, t))
            second = (
                mica.autograd.grad(along, recorded, allow_unused=True) if along.requires_grad else [None] * 3
            )
        except RuntimeError:
            continue  # a value was overwritten that backward needs
        second = [mica.zeros_like(a) if g is None else g for g, a in zip(second, x)]
        compared += 1
        same(mica.func.grad(f, argnums=(0, 1, 2))(*x), first, seed)
        same(mica.func.jvp(f, tuple(x), tuple(t)), (out, along), seed)
        gradient = mica.func.grad(f, argnums=(0, 1, 2))
        same(mica.func.jvp(gradient, tuple(x), tuple(t)), (tuple(first), tuple(second)), seed)
        directional = lambda *given: mica.func.jvp(f, given, tuple(t))[1]  # noqa: B023, E731
        same(mica.func.grad(directional, argnums=(0, 1, 2))(*x), second, seed)
        nested = lambda *given: mica.func.jvp(f, given, tuple(t))[1]  # noqa: B023, E731
        curved = sum((g * d).sum() for g, d in zip(second, t))
        same(mica.func.jvp(nested, tuple(x), tuple(t)), (along, curved), seed)
    assert compared >= 20


def same(ours: Any, expected: Any, seed: int) -> None:
    for a, b in zip(leaves(ours), leaves(expected)):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12, err_msg=str(seed))
