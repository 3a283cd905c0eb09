"""What DTensors must not do silently: ranks that part, local tensors that stay behind, shapes that change in place."""

from __future__ import annotations

import copy
import gc
import io
import pickle
import sys
import warnings
import weakref
from typing import Any

import pytest
from ranks import on_all

import mica
from mica import nn
from mica.distributed import tensor as dt
from mica.distributed.tensor import (
    DTensor,
    Partial,
    Replicate,
    Shard,
    _api,
    _dispatch,
    _plan,
    distribute_tensor,
    init_device_mesh,
)
from mica.distributed.tensor.parallel import ColwiseParallel, parallelize_module


def numbers(*shape: int) -> mica.Tensor:
    return mica.arange(float(mica.Size(shape).numel())).reshape(shape) - 3


def mesh_of(*shape: int) -> Any:
    return init_device_mesh("cpu", shape)


def dropping_lstm(mesh: Any, x: DTensor) -> mica.Tensor:
    made: mica.Tensor = dt.distribute_module(nn.LSTM(8, 8, 2, dropout=0.5), mesh)(x)[0]
    return made


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
        "VonMises": distributions.VonMises(flat, flat).sample(),
        "StudentT": distributions.StudentT(flat).sample(),
        "MultivariateNormal": distributions.MultivariateNormal(square[0], mica.eye(8)).sample(),
        "LSTM": dropping_lstm(mesh, square.view(2, 4, 8)),
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


# ---- what is kept of calls


def test_layouts_that_ranks_meet_at_once_get_numbers_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_api, "_identities", {})
    interval = sys.getswitchinterval()

    def f(r: int) -> None:
        mesh = mesh_of(4)
        for i in range(1, 300):
            dt.zeros(i % 37 + 1, i // 7 + 1, device_mesh=mesh)._identified()

    sys.setswitchinterval(1e-6)
    try:
        on_all(4, f)
    finally:
        sys.setswitchinterval(interval)
    assert len(set(_api._identities.values())) == len(_api._identities) > 299


def test_kept_layouts_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_api, "_identities", {})
    monkeypatch.setattr(_plan, "_MOST", 10)

    def f(r: int) -> None:
        mesh = mesh_of(1)
        for i in range(25):
            x = dt.ones(i + 1, device_mesh=mesh)
            assert (x + x).full_tensor().tolist() == [2] * (i + 1)
        assert len(_api._identities) <= 10

    on_all(1, f)


def test_tensors_and_meshes_go_when_the_program_drops_them() -> None:
    def f(r: int) -> None:
        mesh = mesh_of(2)
        x = dt.zeros(4, 7, device_mesh=mesh, placements=[Shard(0)])
        y = x.view(2, 2, 7).expand(3, 2, 2, 7) + 1
        kept = [weakref.ref(t) for t in (x, x._local_tensor, y, mesh)]
        del x, y, mesh
        gc.collect()
        assert [t() for t in kept] == [None] * 4

    on_all(2, f)


def test_calls_with_other_numbers_are_alike() -> None:
    def f(r: int) -> None:
        x = dt.ones(4, 6, device_mesh=mesh_of(1), placements=[Shard(0)])
        multiply = x.mul
        for step in (
            multiply,
            lambda n: mica.add(x, x, alpha=n),
            lambda n: x.clone().addcdiv_(x, x, value=n),
        ):
            step(0.5), step(0.5), step(2)
            before = len(_plan._plans), len(_dispatch._quick)
            for n in (0.25, 3, 7.5, 4, float("nan")):
                made = step(n).to_local()[0, 0].item()
                assert made == (n if step is multiply else 1 + n) or n != n
            assert (len(_plan._plans), len(_dispatch._quick)) == before
        padded = [
            nn.functional.pad(x, (0, 0, 1, 1), value=value).full_tensor()[0, 0].item()
            for value in (0.0, 2.0, 3.0)
        ]
        assert padded == [0, 2, 3]
        assert (x * 2).dtype == mica.float32 and (x.to(mica.int64) * 2.5).dtype == mica.float32
        assert (x.to(mica.int64) * 2).dtype == mica.int64

    on_all(1, f)


# ---- gradients


def test_second_gradients_flow_through_local_and_full_tensors() -> None:
    def f(r: int) -> None:
        mesh, x = mesh_of(2), numbers(4, 6)
        cut = distribute_tensor(x, mesh, [Shard(0)]).requires_grad_()
        for whole in (cut.full_tensor(), DTensor.from_local(cut.to_local(), mesh, [Shard(0)]).full_tensor()):
            (first,) = mica.autograd.grad((whole**3).sum(), cut, create_graph=True)
            (second,) = mica.autograd.grad(first.full_tensor().sum(), cut)
            assert mica.equal(first.full_tensor(), 3 * x**2) and mica.equal(second.full_tensor(), 6 * x)
            assert second.placements == (Shard(0),)

    on_all(2, f)


def test_a_plain_scalar_that_requires_grad_is_refused() -> None:
    def f(r: int) -> None:
        x = dt.ones(4, device_mesh=mesh_of(2), placements=[Shard(0)])
        with pytest.raises(RuntimeError, match=r"plain tensor of shape \[\] requires grad"):
            x * mica.tensor(2.0, requires_grad=True)
        assert (x * mica.tensor(2.0)).placements == (Shard(0),)

    on_all(2, f)


# ---- sentences


def test_a_view_that_others_overtook_is_shown_without_asking_them() -> None:
    def f(r: int) -> None:
        x = distribute_tensor(numbers(4, 6), mesh_of(2), [Shard(1)])
        view = x.view(3, 8)
        x.mul_(2)
        if r == 0:
            assert "local_tensor=<stale" in repr(view)
        assert mica.equal(view.full_tensor(), (numbers(4, 6) * 2).view(3, 8))
        assert "local_tensor=tensor" in repr(view)

    on_all(2, f)


def test_terms_reduce_alike_on_all_dimensions_of_a_mesh() -> None:
    def f(r: int) -> None:
        mesh = mesh_of(2, 2)
        for unlike in ([Partial(), Partial("max")], [Partial("min"), Partial("max")]):
            with pytest.raises(ValueError, match="of which the order would decide"):
                DTensor.from_local(mica.ones(2), mesh, unlike)
        alike = DTensor.from_local(mica.ones(2), mesh, [Partial("sum"), Partial("avg")])
        assert alike.full_tensor().tolist() == [2, 2]

    on_all(4, f)


def test_a_copy_shares_the_local_tensor() -> None:
    def f(r: int) -> None:
        p = nn.Parameter(distribute_tensor(numbers(4, 6), mesh_of(2), [Shard(0)]))
        made = copy.copy(p)
        assert isinstance(made, nn.Parameter) and made.is_leaf and made.placements == p.placements
        assert made.to_local().data_ptr() == p.to_local().data_ptr()

    on_all(2, f)


def test_numbers_are_formatted_as_those_of_plain_tensors() -> None:
    def f(r: int) -> None:
        x = distribute_tensor(numbers(4, 6), mesh_of(2), [Shard(0)])
        assert f"{x.sum():.3f}" == f"{numbers(4, 6).sum():.3f}" and f"{x}" == repr(x)

    on_all(2, f)


def test_what_is_given_in_error_is_named() -> None:
    def f(r: int) -> None:
        mesh, x, net = mesh_of(2), numbers(4, 2), nn.Linear(2, 2)
        cut = distribute_tensor(x, mesh, [Shard(0)])
        layer = parallelize_module(nn.Linear(2, 2), mesh, ColwiseParallel())
        cases: list[tuple[Any, type[Exception], str]] = [
            (lambda: distribute_tensor([1, 2], mesh), TypeError, r"distribute_tensor: `tensor` is \[1, 2\]"),
            (lambda: distribute_tensor(x, "cpu"), TypeError, "distribute_tensor: `device_mesh` is 'cpu'"),
            (lambda: DTensor.from_local(x, None), ValueError, "DTensor.from_local: `device_mesh` is None"),
            (lambda: DTensor.from_local(x, "cpu"), TypeError, "DTensor.from_local: `device_mesh` is 'cpu'"),
            (lambda: dt.distribute_module(net, "cpu"), TypeError, "distribute_module: `device_mesh`"),
            (
                lambda: parallelize_module(net, "cpu", {}),
                TypeError,
                "parallelize_module: `device_mesh` is 'cpu'",
            ),
            (lambda: dt.zeros(3, device_mesh="cpu"), TypeError, "zeros: `device_mesh` is 'cpu'"),
            (lambda: dt.full(3, 1.0, device_mesh=mesh), TypeError, r"full: `size` is 3 .* sequence of int"),
            (lambda: Shard("a"), TypeError, r"Shard's `dim` is 'a' of type \(str\)"),
            (lambda: distribute_tensor(x.sum(), mesh, [Shard(0)]), IndexError, "has no dimensions to cut"),
            (lambda: layer(input=x), TypeError, "ColwiseParallel lays out the first input of a Linear"),
            (
                lambda: mica.save(cut, io.BytesIO()),
                NotImplementedError,
                "Save with mica.distributed.checkpoint",
            ),
            (
                lambda: mica.save({"a": nn.Parameter(cut)}, io.BytesIO()),
                NotImplementedError,
                "cannot be pickled",
            ),
            (lambda: pickle.dumps(cut), NotImplementedError, "cannot be pickled"),
        ]
        for call, error, says in cases:
            with pytest.raises(error, match=says):
                call()

    on_all(2, f)


def test_a_rank_outside_of_the_mesh_is_told_so() -> None:
    def f(r: int) -> None:
        mesh = dt.DeviceMesh("cpu", [0, 1])
        if r < 2:
            return
        with pytest.raises(RuntimeError, match="this rank is not in `device_mesh`"):
            distribute_tensor(numbers(4, 2), mesh, [Shard(0)])
        with pytest.raises(
            RuntimeError, match="mica::add.Scalar gets a DTensor on .* of which this rank is not"
        ):
            DTensor.from_local(numbers(4, 2), mesh, [Shard(0)]) + 1

    on_all(3, f)


def test_a_path_that_leads_nowhere_is_named_at_the_name_that_fails() -> None:
    def f(r: int) -> None:
        net = nn.Sequential(nn.Sequential(nn.Linear(2, 2)))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            parallelize_module(net, mesh_of(1), {"0.fc": ColwiseParallel()})
        assert "no submodule matching token 'fc' in '0' of" in str(caught[-1].message)

    on_all(1, f)
