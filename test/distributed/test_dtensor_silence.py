"""What DTensors must not do silently: ranks that part, local tensors that stay behind, shapes that change in place."""

from __future__ import annotations

from typing import Any

import pytest
from ranks import on_all

import mica
from mica import nn
from mica.distributed import tensor as dt
from mica.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor, init_device_mesh


def numbers(*shape: int) -> mica.Tensor:
    return mica.arange(float(mica.Size(shape).numel())).reshape(shape) - 3


def mesh_of(*shape: int) -> Any:
    return init_device_mesh("cpu", shape)


def _drawn(mesh: Any, placement: Any) -> dict[str, Any]:
    """What draws beside tensors that lie so, or within a composite."""
    flat, square = (distribute_tensor(mica.ones(*s), mesh, [placement]) for s in [(64,), (8, 8)])
    images, rows = (distribute_tensor(mica.rand(*s), mesh, [placement]) for s in [(2, 3, 8, 8), (2, 3, 8, 4)])
    functional, distributions = nn.functional, mica.distributions
    return {
        "dropout": functional.dropout(flat, 0.5),
        "dropout2d": functional.dropout2d(images),
        "alpha_dropout": functional.alpha_dropout(flat, 0.5, True),
        "feature_alpha_dropout": functional.feature_alpha_dropout(images, 0.5, True),
        "native_dropout": mica.native_dropout(flat, 0.5, True)[0],
        "attention": functional.scaled_dot_product_attention(rows, rows, rows, dropout_p=0.5),
        "rand_like": mica.rand_like(flat),
        "bernoulli": mica.bernoulli(flat / 2),
        "multinomial": mica.multinomial(flat, 8),
        "multinomial_again": mica.multinomial(flat, 8, True),
        "Categorical": distributions.Categorical(flat).sample((8,)),
        "Uniform": distributions.Uniform(flat * 0, flat).sample(),
        "sparse_": nn.init.sparse_(square, 0.3),
        "svd_lowrank": mica.svd_lowrank(mica.cumsum(square, 0) + mica.cumsum(square, 1).square(), 3)[0],
        "pca_lowrank": mica.pca_lowrank(mica.cumsum(square, 0) + mica.cumsum(square, 1).square(), 2)[0],
        "fractional_max_pool2d": functional.fractional_max_pool2d(images, 2, 3),
    }


@pytest.mark.parametrize("placement", [Replicate(), Shard(0)])
def test_ranks_of_unlike_seeds_draw_the_same(placement: Any) -> None:
    def f(r: int) -> None:
        mesh = mesh_of(2)
        mica.manual_seed(r)
        for name, made in _drawn(mesh, placement).items():
            whole = made.full_tensor()
            both = DTensor.from_local(whole.reshape(1, -1), mesh, [Shard(0)]).full_tensor()
            assert mica.equal(both[0], both[1]), name

    on_all(2, f)


def test_data_takes_another_local_tensor_and_layout() -> None:
    def f(r: int) -> None:
        mesh, x = mesh_of(2), numbers(4, 6)
        p = nn.Parameter(distribute_tensor(x, mesh, [Shard(0)]))
        assert isinstance(p.data, DTensor) and not p.data.requires_grad
        p.data = p.data * 0
        assert p.full_tensor().tolist() == (x * 0).tolist()
        p.data = distribute_tensor(x.double(), mesh, [Shard(1)])
        assert (
            p.placements == (Shard(1),)
            and p.to_local().shape == (4, 3)
            and p.to_local().dtype == mica.float64
        )
        assert (
            isinstance(p, nn.Parameter)
            and p.requires_grad
            and mica.equal((p + 1).full_tensor(), x.double() + 1)
        )
        with pytest.raises(
            TypeError, match=r"DTensor.data is set to a Tensor of shape \[4, 6\], which lies on no mesh"
        ):
            p.data = x

    on_all(2, f)


@pytest.mark.parametrize("dtype", [mica.float64, mica.bfloat16])
def test_modules_are_converted_with_their_local_tensors(dtype: Any) -> None:
    def f(r: int) -> None:
        net = dt.distribute_module(nn.Linear(6, 4), mesh_of(2))
        before = net.weight.full_tensor()
        net(mica.ones(2, 6)).sum().backward()
        net.to(dtype)
        for t in (net.weight, net.bias, net.weight.grad):
            assert t.dtype == t.to_local().dtype == dtype
        assert mica.equal(net.weight.full_tensor(), before.to(dtype))
        assert net(mica.ones(2, 6, dtype=dtype)).full_tensor().dtype == dtype

    on_all(2, f)


@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
def test_other_shapes_in_place_are_refused() -> None:
    def f(r: int) -> None:
        mesh, x = mesh_of(2), numbers(4, 6)
        out = dt.zeros(3, device_mesh=mesh)
        places = dt.zeros(3, dtype=mica.int64, device_mesh=mesh)
        cases: list[tuple[Any, str]] = [
            (lambda t: t.t_(), r"view in place .* shape \[4, 6\] .* is not there"),
            (lambda t: t.swapaxes_(0, 1), "view in place"),
            (lambda t: t.squeeze_(), "view in place"),
            (lambda t: t.unsqueeze_(0), "view in place"),
            (lambda t: t.as_strided_((2,), (1,)), "view in place"),
            (lambda t: t.resize_(2, 2), r"resize_\(\).* of a DTensor of shape \[4, 6\]"),
            (lambda t: t.resize_as_(mica.zeros(2)), r"resize_\(\)"),
            (lambda t: t.set_(x), r"set_\(\) of a DTensor of shape \[4, 6\]"),
            (lambda t: mica.add(t, 1, out=out), r"result of shape \[4, 6\], and its `out=` .* shape \[3\]"),
            (lambda t: mica.sum(t, 0, out=out), r"result of shape \[6\]"),
            (lambda t: mica.mm(t, t.t(), out=out), r"result of shape \[4, 4\]"),
            (lambda t: mica.multinomial(t.abs() + 1, 2, out=places), r"resize_\(\)"),
            (lambda t: mica.sort(t, out=(out, places)), r"resize_\(\), also of an `out=`"),
        ]
        for call, says in cases:
            cut = distribute_tensor(x, mesh, [Shard(0)])
            with pytest.raises(NotImplementedError, match=says):
                call(cut)
            assert cut.shape == x.shape and mica.equal((cut + 1).full_tensor(), x + 1), says
            assert out.to_local().shape == places.to_local().shape == (3,), says
        assert distribute_tensor(x, mesh, [Shard(0)]).resize_(4, 6).placements == (Shard(0),)
        right = dt.zeros(6, device_mesh=mesh, placements=[Shard(0)])
        assert mica.equal(
            mica.sum(distribute_tensor(x, mesh, [Shard(0)]), 0, out=right).full_tensor(), x.sum(0)
        )

    on_all(2, f)
