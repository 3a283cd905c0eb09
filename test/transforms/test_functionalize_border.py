"""functionalize at its border: inputs, results, captured tensors, modules, reads inside; what it
refuses; its nestings in other transforms."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from functionalized import check, differs

import mica
from mica.conformance.operators import attempt
from mica.func import functionalize, grad, hessian, jvp, vjp, vmap


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


def test_captured_tensors_are_inputs_from_their_first_write_on() -> None:
    captured, x = mica.zeros(3), mica.ones(3, requires_grad=True)
    alias = captured.view(3, 1)
    seen, version = [], captured._version

    def f(a: mica.Tensor) -> mica.Tensor:
        before = captured * 1
        captured[1:].add_(a[1:] * 2)
        seen.append((captured.tolist(), alias[2, 0].item(), captured._version))
        return before + alias.sum() + captured

    result = functionalize(f)(x)
    assert seen == [([0, 2, 2], 2, version)]
    assert captured.tolist() == [0, 2, 2]
    assert captured.grad_fn is not None
    result.sum().backward()
    assert x.grad.tolist() == [0, 8, 8]
    with mica.no_grad():
        functionalize(lambda a: captured.fill_(5), return_mutations=True)(x)
    assert captured.tolist() == [5, 5, 5]


def test_module_in_training() -> None:
    def trained(change: Callable[[Any], Any]) -> list[mica.Tensor]:
        mica.manual_seed(0)
        net = mica.nn.Sequential(
            mica.nn.Linear(4, 8), mica.nn.BatchNorm1d(8), mica.nn.ReLU(inplace=True), mica.nn.Linear(8, 2)
        )
        x = mica.randn(5, 4)
        optimizer = mica.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
        for _ in range(3):
            optimizer.zero_grad()
            change(lambda x: net(x).square().sum())(x).backward()
            optimizer.step()
        return [*net.parameters(), *net.buffers()]

    assert not differs(trained(functionalize), trained(lambda f: f))


class Cube(mica.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: mica.Tensor) -> mica.Tensor:
        ctx.save_for_backward(x)
        return (x * x).mul_(x)

    @staticmethod
    def backward(ctx: Any, gradient: mica.Tensor) -> mica.Tensor:
        (x,) = ctx.saved_tensors
        return 3 * x * x * gradient


def test_custom_functions_and_operators() -> None:
    x = mica.tensor([1.0, 2.0], dtype=mica.float64, requires_grad=True)
    assert not check(lambda a: [Cube.apply((a * 1).add_(1))[:1].mul_(2)], [x])

    @mica.library.custom_op("test_functionalize::bump", mutates_args={"x"})
    def bump(x: mica.Tensor) -> None:
        x.add_(1)

    def f(a: mica.Tensor) -> list[mica.Tensor]:
        bump(a[0])
        return [a * 1]

    assert not check(f, [mica.zeros(2, 2)])


def test_refuses_writes_that_it_cannot_follow() -> None:
    x = mica.ones(3)
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
    assert not differs([nested(a)], [plain(a)]), names


def test_hessian_of_writes() -> None:
    a = mica.from_numpy(np.random.default_rng(0).uniform(0.1, 0.5, (2, 2)))
    for nested in (hessian(functionalize(written)), functionalize(hessian(written))):
        assert not differs([nested(a)], [hessian(written)(a)])
