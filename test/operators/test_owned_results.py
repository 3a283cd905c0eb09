"""Results of composites are tensors of their own: no views of what the composite made inside.

A view of an argument stays one, and whoever writes either sees it in the other.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

import mica
import mica.nn.functional as F


def _batches() -> mica.Tensor:
    return mica.arange(24.0).reshape(2, 3, 4).clone()


def _image() -> mica.Tensor:
    return mica.arange(144.0).reshape(2, 4, 3, 6).sin()


OWNED: dict[str, Callable[[mica.Tensor], mica.Tensor]] = {
    "matmul": lambda x: x @ mica.ones(4, 5),
    "batched matmul": lambda x: x @ x.mT,
    "linear": lambda x: F.linear(x, mica.ones(5, 4)),
    "repeat": lambda x: x.repeat(2, 1, 1),
    "kron": lambda x: mica.kron(x, mica.ones(2, 2)),
    "quantile": lambda x: x.quantile(0.5, dim=1),
    "reshape that copies": lambda x: x.transpose(0, 1).reshape(-1),
    "tensordot": lambda x: mica.tensordot(x, x, ([0], [0])),
    "einsum": lambda x: mica.einsum("bij,bkj->ikb", x, x),
    "max_pool1d": lambda x: F.max_pool1d(x, 2),
    "attention": lambda x: F.scaled_dot_product_attention(x, x, x),
    "matrix_power": lambda x: (x @ x.mT).matrix_power(3),
    "matrix_power 0": lambda x: (x @ x.mT).matrix_power(0),
    "rot90": lambda x: x.rot90(),
    "combinations": lambda x: mica.combinations(x.sum((1, 2)), 1),
    "pixel_shuffle": lambda x: F.pixel_shuffle(x.reshape(4, 2, 3), 1),
    "take": lambda x: x.take(mica.tensor([1, 5])),
    "gru": lambda x: mica.nn.GRU(4, 3)(x)[0],
}
OWNED_IMAGES: dict[str, Callable[[mica.Tensor], mica.Tensor]] = {
    "group_norm": lambda x: F.group_norm(x, 2),
    "group_norm of channels last": lambda x: F.group_norm(x.contiguous(memory_format=mica.channels_last), 2),
    "unfold": lambda x: F.unfold(x, 2),
    "unfold by one": lambda x: F.unfold(x, 1),
    "grid_sample": lambda x: F.grid_sample(x, mica.zeros(2, 2, 2, 2), align_corners=False),
}
VIEWS: dict[str, Callable[[mica.Tensor], mica.Tensor]] = {
    "reshape": lambda x: x.reshape(-1),
    "flatten": lambda x: x.flatten(),
    "atleast_3d": lambda x: mica.atleast_3d(x[0]),
    "broadcast_tensors": lambda x: mica.broadcast_tensors(x, mica.ones(2, 1, 1))[0],
    "meshgrid": lambda x: mica.meshgrid(x[0, 0], x[0, 1], indexing="ij")[0],
    "einsum of one": lambda x: mica.einsum("bij->jib", x),
    "expand_as": lambda x: x.expand_as(mica.ones(5, 2, 3, 4)),
    "swapaxes of a view": lambda x: x[:1].swapaxes(0, 2),
}
CALLS = [(name, f, _batches) for name, f in OWNED.items()] + [(n, f, _image) for n, f in OWNED_IMAGES.items()]


@pytest.mark.parametrize(("name", "f", "made"), CALLS, ids=[name for name, *_ in CALLS])
@pytest.mark.parametrize("recorded", [False, True])
def test_what_a_composite_makes_belongs_to_the_caller(
    name: str, f: Callable[[mica.Tensor], mica.Tensor], made: Callable[[], mica.Tensor], recorded: bool
) -> None:
    x = made().requires_grad_(recorded)
    y = f(x)
    assert not y._is_view()
    assert y._base is None
    assert y.requires_grad == recorded or name == "gru"
    assert y.untyped_storage().data_ptr() != x.untyped_storage().data_ptr()
    assert y.detach_() is y
    assert not y.requires_grad
    assert y.is_leaf


@pytest.mark.parametrize(("name", "f"), VIEWS.items(), ids=list(VIEWS))
def test_a_view_of_an_argument_stays_one(name: str, f: Callable[[mica.Tensor], mica.Tensor]) -> None:
    x = _batches()
    y = f(x)
    assert y._is_view()
    assert y._base is x
    x.zero_()
    assert not y.any()


def test_an_argument_that_is_handed_back_stays_the_view_that_it_was() -> None:
    base = _batches()
    view = base[0]
    assert F.dropout(view, 0.5, training=False) is view
    assert view._is_view()
    assert view._base is base


@pytest.mark.parametrize("create_graph", [False, True])
def test_a_gradient_belongs_to_the_caller(create_graph: bool) -> None:
    image = mica.zeros(1, 1, 1, 1, requires_grad=True)
    y = F.grid_sample(image, mica.linspace(-1, 1, 24).reshape(1, 3, 4, 2), align_corners=False)
    (grad,) = mica.autograd.grad(y.square().sum(), [image], create_graph=create_graph)
    assert grad._base is None
    assert grad.detach_() is grad


@pytest.mark.parametrize("write", [lambda y: y.mul_(3), lambda y: y[0].mul_(3), lambda y: y.view(-1).mul_(3)])
def test_writes_to_an_owned_result_are_recorded(write: Callable[[mica.Tensor], mica.Tensor]) -> None:
    grads = []
    for in_place in (True, False):
        x = _batches().requires_grad_()
        y = (x @ mica.ones(4, 5)).repeat(1, 2, 1)
        if in_place:
            write(y)
        else:
            factor = mica.ones_like(y)
            write(factor)
            y = y * factor
        (y * mica.arange(float(y.numel())).view_as(y)).sum().backward()
        grads.append(x.grad)
    assert mica.equal(*grads)


def test_an_owned_result_that_is_saved_says_so_when_it_is_written() -> None:
    x = mica.ones(3, 3, requires_grad=True)
    y = mica.kron(x, x)
    saved = y.square()
    y.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        saved.sum().backward()


def test_no_grad_results_may_be_written_when_recording() -> None:
    with mica.no_grad():
        y = _batches() @ mica.ones(4, 5)
    y.mul_(mica.ones(1, requires_grad=True))
    assert y.requires_grad


@pytest.mark.parametrize("f", [lambda x: x.mean(), lambda x: x.sum(), lambda x: x.sum(0).mean()])
@pytest.mark.parametrize("how", ["grad", "create_graph", "func"])
def test_a_part_of_a_gradient_is_written_alone(f: Callable[[mica.Tensor], mica.Tensor], how: str) -> None:
    x = mica.ones(2, 4, requires_grad=True)
    if how == "func":
        grad = mica.func.grad(f)(x.detach())
    else:
        (grad,) = mica.autograd.grad(f(x), [x], create_graph=how == "create_graph")
    before = grad.tolist()
    with mica.no_grad():
        grad[:1, ::4] = 9.0
    before[0][0] = 9.0
    assert grad.tolist() == before
