"""Random nestings of transforms, up to six deep, over functions of a vector.

Each transform makes of a function from vectors to vectors another one, so that any sequence
of them is a nesting. The reference computes with numbers of 320 digits: what is mapped over in
a loop, derivatives by central differences, whose step of 1e-40 leaves no error in the
digits that are compared, however deep they nest.

MICA_TEST_SEED chooses other nestings, MICA_TEST_NESTINGS more of them.
"""

from __future__ import annotations

import contextlib
import gc
import os
import random
from collections.abc import Callable
from typing import Any

import mpmath
import pytest

import mica
from mica.func import grad, jacfwd, jacrev, jvp, linearize, vjp, vmap
from mica.utils.checkpoint import checkpoint

mp = mpmath.mp.clone()
mp.dps = 320
STEP = mp.mpf(10) ** -40
SIZE = 2
SEED = int(os.environ.get("MICA_TEST_SEED", "1"))
NESTINGS = int(os.environ.get("MICA_TEST_NESTINGS", "120"))

Vector = list[Any]  # of mpf
Numbers = Callable[[Vector], Vector]
Tensors = Callable[[mica.Tensor], mica.Tensor]


def tensor(*values: float) -> mica.Tensor:
    return mica.tensor(values, dtype=mica.float64)


# ---- functions, as Mica computes them and as numbers
class Cube(mica.autograd.Function):
    @staticmethod
    def forward(x: mica.Tensor) -> mica.Tensor:
        return x**3

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, g: mica.Tensor) -> mica.Tensor:
        (x,) = ctx.saved_tensors
        return 3 * x * x * g

    @staticmethod
    def vmap(info: Any, in_dims: Any, x: mica.Tensor) -> Any:
        return Cube.apply(x), in_dims[0]


class Mapped(Cube):
    """Without a rule of its own."""

    generate_vmap_rule = True
    vmap = mica.autograd.Function.vmap


def writes(x: mica.Tensor) -> mica.Tensor:
    y = x * 1
    y[0] *= x[1]
    y.sin_()
    y[1:].add_(y[:1])
    return y


def writes_of_views(x: mica.Tensor) -> mica.Tensor:
    y = x.new_zeros(2, SIZE)
    y[0].copy_(x)
    y.t()[1].fill_(0.5)
    y.view(-1)[2:].add_(y[0].clone() * x.flip(0))
    return y.sum(0)


def numbers_of_writes(x: Vector) -> Vector:
    a, b = mp.sin(x[0] * x[1]), mp.sin(x[1])
    return [a, a + b]


MATRIX = ((0.5, -0.25), (0.75, 0.5))
FUNCTIONS: dict[str, tuple[Tensors, Numbers]] = {
    "pointwise": (
        lambda x: x.sin() * x + (x * 0.3).exp(),
        lambda x: [mp.sin(v) * v + mp.exp(v * mp.mpf(0.3)) for v in x],
    ),
    "roll": (lambda x: x.roll(1) * x.cos(), lambda x: [x[1] * mp.cos(x[0]), x[0] * mp.cos(x[1])]),
    "matmul": (
        lambda x: (tensor(*MATRIX) @ x).tanh(),
        lambda x: [mp.tanh(a * x[0] + b * x[1]) for a, b in MATRIX],
    ),
    "softmax": (
        lambda x: x.softmax(0) * x.sum(),
        lambda x: [mp.exp(v) / (mp.exp(x[0]) + mp.exp(x[1])) * (x[0] + x[1]) for v in x],
    ),
    "views": (
        lambda x: mica.stack([x.cumsum(0), x.flip(0)]).t().prod(1),
        lambda x: [x[0] * x[1], (x[0] + x[1]) * x[0]],
    ),
    "where": (
        lambda x: mica.where(x > 0, x * x, x.expm1()),
        lambda x: [v * v if v > 0 else mp.expm1(v) for v in x],
    ),
    "writes": (writes, numbers_of_writes),
    "writes of views": (writes_of_views, lambda x: [x[0] * (1 + x[1]), 1 + x[0] / 2]),
    "custom": (Cube.apply, lambda x: [v**3 for v in x]),
    "custom, mapped": (Mapped.apply, lambda x: [v**3 for v in x]),
    "constant": (lambda x: tensor(1, 2) * 3 + 0 * x, lambda x: [mp.mpf(3), mp.mpf(6)]),
}


# ---- transforms: of the tensors' function and of the numbers'
SCALES, WEIGHTS = (0.5, -0.75), (1.25, 0.5)
DIRECTION = (0.5, -1.5)


def mapped(f: Tensors) -> Tensors:
    def g(x: mica.Tensor) -> mica.Tensor:
        batch = mica.stack([c * x for c in SCALES], 1)
        out = vmap(f, in_dims=1, out_dims=-1)(batch)
        return (out * tensor(*WEIGHTS)).sum(-1)

    return g


def mapped_captured(f: Tensors) -> Tensors:
    """The mapped function uses a vector that is not mapped over."""
    return lambda x: vmap(lambda c: f(c * x))(tensor(*SCALES)).T @ tensor(*WEIGHTS)


def mapped_numbers(f: Numbers) -> Numbers:
    def g(x: Vector) -> Vector:
        outs = [f([c * v for v in x]) for c in SCALES]
        return [sum(w * out[i] for w, out in zip(WEIGHTS, outs)) for i in range(SIZE)]

    return g


def gradient_numbers(f: Numbers) -> Numbers:
    """Of the result times DIRECTION."""

    def g(x: Vector) -> Vector:
        found = []
        for i in range(SIZE):
            up, down = ([v + s * (j == i) for j, v in enumerate(x)] for s in (STEP, -STEP))
            found.append(sum(w * (a - b) for w, a, b in zip(DIRECTION, f(up), f(down))) / (2 * STEP))
        return found

    return g


def along_numbers(f: Numbers) -> Numbers:
    """Along DIRECTION + x."""

    def g(x: Vector) -> Vector:
        t = [a + b for a, b in zip(DIRECTION, x)]
        up, down = ([v + s * d for v, d in zip(x, t)] for s in (STEP, -STEP))
        return [(a - b) / (2 * STEP) for a, b in zip(f(up), f(down))]

    return g


def functionalized(f: Tensors) -> Tensors:
    return mica.func.functionalize(f)  # type: ignore[attr-defined,no-any-return]


TRANSFORMS: dict[str, tuple[Callable[[Tensors], Tensors], Callable[[Numbers], Numbers]]] = {
    "vmap": (mapped, mapped_numbers),
    "vmap captured": (mapped_captured, mapped_numbers),
    "grad": (lambda f: grad(lambda x: (f(x) * tensor(*DIRECTION)).sum()), gradient_numbers),
    "vjp": (lambda f: lambda x: vjp(f, x)[1](tensor(*DIRECTION))[0], gradient_numbers),
    "jacrev": (lambda f: lambda x: tensor(*DIRECTION) @ jacrev(f)(x), gradient_numbers),
    "jvp": (lambda f: lambda x: jvp(f, (x,), (x + tensor(*DIRECTION),))[1], along_numbers),
    "jacfwd": (lambda f: lambda x: jacfwd(f)(x) @ (x + tensor(*DIRECTION)), along_numbers),
    "linearize": (lambda f: lambda x: linearize(f, x)[1](x + tensor(*DIRECTION)), along_numbers),
    "checkpoint": (lambda f: lambda x: checkpoint(f, x), lambda f: f),
}
if hasattr(mica.func, "functionalize"):
    TRANSFORMS["functionalize"] = (functionalized, lambda f: f)


def nesting(number: int) -> tuple[str, list[str]]:
    """A function and the transforms around it, innermost first."""
    rng = random.Random(1000 * SEED + number)
    depth = 1 + number % 6
    return rng.choice(list(FUNCTIONS)), rng.choices(list(TRANSFORMS), k=depth)


def around(function: Any, names: list[str], which: int) -> Any:
    for name in names:
        function = TRANSFORMS[name][which](function)
    return function


@pytest.mark.parametrize("number", range(NESTINGS))
def test_nesting(number: int) -> None:
    name, names = nesting(number)
    x = (0.4, -0.7)
    found = around(FUNCTIONS[name][0], names, 0)(tensor(*x))
    expected = around(FUNCTIONS[name][1], names, 1)([mp.mpf(v) for v in x])
    for a, b in zip(found.tolist(), expected):
        assert abs(a - float(b)) <= 1e-9 * max(1.0, abs(float(b))), (
            f"{' of '.join(reversed(names))} of {name}"
        )
    assert mica._C._frame_depth() == 0


# ---- what is left behind
def in_use() -> int:
    gc.collect()
    return int(mica._C._memory_stats(mica.device("cpu"))["bytes_in_use"])


class Interrupted(Exception):
    pass


@pytest.mark.parametrize("raises", [False, True])
def test_nothing_leaks(raises: bool) -> None:
    """Also when the function raises, at its first call or at its last."""

    def run(number: int) -> None:
        name, names = nesting(number)
        calls = 0

        def f(x: mica.Tensor) -> mica.Tensor:
            nonlocal calls
            calls += 1
            y = FUNCTIONS[name][0](x)
            if raises and calls == 1 + number % 2:
                raise Interrupted
            return y

        with contextlib.suppress(Interrupted):
            around(f, names, 0)(tensor(0.4, -0.7))
        assert mica._C._frame_depth() == 0 and mica.is_grad_enabled()

    for number in range(30):
        run(number)  # what is made once
    before = in_use()
    for number in range(30):
        run(number)
    assert in_use() == before


ESCAPES = {"vmap": "vmap", "grad": "grad", "jvp": "jvp", "vjp": "vjp|grad", "jacrev": "vmap|grad|vjp"}


@pytest.mark.parametrize("outer", ["", "vmap", "grad", "jvp"])
@pytest.mark.parametrize("inner", ESCAPES)
def test_tensors_escape_with_a_sentence(inner: str, outer: str) -> None:
    kept: list[mica.Tensor] = []

    def f(x: mica.Tensor) -> mica.Tensor:
        kept.append(x * 2)
        return x * 3

    around(f, [inner, outer] if outer else [inner], 0)(tensor(0.4, -0.7))
    for use in (lambda x: x + 1, lambda x: x.sum(), lambda x: x[0], lambda x: x.add_(1)):
        with pytest.raises(RuntimeError, match=f"escaped from (that )?({ESCAPES[inner]})"):
            use(kept[0])
    repr(kept[0])
    with pytest.raises(RuntimeError, match="escaped"):
        grad(lambda x: (x * kept[0]).sum())(tensor(1, 2))
