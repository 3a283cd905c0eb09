"""DTensors on ranks that are threads: layouts and how they change, gradients, views that are written, what is refused."""

from __future__ import annotations

import copy
import itertools
from typing import Any

import pytest
import ranks as rank_threads
from layouts import laid
from ranks import ENGINES, on_all

import mica
from mica import nn, optim
from mica.distributed import checkpoint, tensor as dt
from mica.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor, init_device_mesh

PLACEMENTS = [Replicate(), Shard(0), Shard(1), Partial(), Partial("avg")]
# Sizes that ranks cut evenly, unevenly, and so that some have nothing.
SHAPES = [(4, 6), (5, 3), (1, 2)]


def numbers(*shape: int) -> mica.Tensor:
    return mica.arange(float(mica.Size(shape).numel())).reshape(shape) - 3


def mesh_of(*shape: int) -> Any:
    return init_device_mesh("cpu", shape)


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both engines: layouts are tried with each, rules with threads."""
    monkeypatch.setattr(rank_threads, "engine", request.param)


# ---- layouts


@pytest.mark.parametrize("ranks", [2, 3])
def test_each_layout_becomes_each_other(ranks: int, engine: None) -> None:
    def f(r: int) -> None:
        mesh = mesh_of(ranks)
        for shape, old, new in itertools.product(SHAPES, PLACEMENTS, PLACEMENTS):
            if isinstance(new, Partial) or isinstance(old, Partial) and old.reduce_op == "avg" and ranks > 2:
                continue
            x = numbers(*shape)
            given = laid(x, mesh, old)
            scale = ranks if old == Partial("avg") else 1
            moved = given.redistribute(mesh, [new])
            assert moved.placements == (new,) and moved.shape == x.shape
            assert mica.equal(moved.full_tensor() * scale, x), (shape, old, new)

    on_all(ranks, f)


def test_elements_of_every_dtype_travel_and_not_a_number_is_the_extreme(engine: None) -> None:
    def f(r: int) -> None:
        mesh = mesh_of(2)
        for dtype in (mica.bool, mica.uint8, mica.int64, mica.bfloat16, mica.float16, mica.complex64):
            x = mica.tensor([[0, 1, 2], [1, 0, 3], [0, 0, 1]]).to(dtype)
            cut = distribute_tensor(x, mesh, [Shard(0)])
            assert mica.equal(cut.redistribute(placements=[Shard(1)]).full_tensor(), x)
        bits = distribute_tensor(mica.tensor([False, False, True]), mesh, [Shard(0)])
        assert bool(bits.any()) and not bool(bits.all()) and bits.any().placements == (Partial("max"),)
        odd = distribute_tensor(mica.tensor([1.0, 2.0, float("nan")]), mesh, [Shard(0)])
        assert odd.amax().placements == (Partial("max"),)
        assert bool(odd.amax().full_tensor().isnan()) and bool(odd.amin().full_tensor().isnan())

    on_all(2, f)


def test_dimensions_of_a_mesh_that_cut_the_same_dimension_cut_one_after_the_other() -> None:
    def f(r: int) -> None:
        mesh = mesh_of(2, 2)
        x = numbers(5, 6)
        pairs = list(itertools.product([Replicate(), Shard(0), Shard(1)], repeat=2))
        for old, new in itertools.product(pairs, pairs):
            moved = distribute_tensor(x, mesh, old).redistribute(mesh, new)
            assert mica.equal(moved.full_tensor(), x), (old, new)
            again = distribute_tensor(x, mesh, new)
            assert mica.equal(moved.to_local(), again.to_local()), (old, new)
        local = distribute_tensor(x, mesh, [Shard(0), Shard(0)]).to_local()
        assert mica.equal(local, x[[slice(0, 2), slice(2, 3), slice(3, 4), slice(4, 5)][r]])

    on_all(4, f)


def test_a_view_that_joins_dimensions_keeps_an_inner_cut() -> None:
    def f(r: int) -> None:
        mesh = mesh_of(2)
        x = numbers(3, 4, 5)
        cut = distribute_tensor(x, mesh, [Shard(1)])
        flat = cut.view(12, 5)
        assert str(flat.placements[0]) == "_S(0, 3)" and flat.to_local().shape == (6, 5)
        assert mica.equal(flat.full_tensor(), x.view(12, 5))
        assert (flat * 2).view(3, 4, 5).placements == (Shard(1),)
        assert mica.equal((flat @ numbers(5, 2)).view(3, 4, 2).full_tensor(), x @ numbers(5, 2))
        for new in (Replicate(), Shard(0), Shard(1)):
            assert mica.equal(flat.redistribute(placements=[new]).full_tensor(), x.view(12, 5))
        flat[0].fill_(7.0)
        assert cut.full_tensor()[0, 0].tolist() == [7] * 5

    on_all(2, f)


def test_gradients_come_into_memory_that_is_cut_as_the_parameter() -> None:
    def f(r: int) -> None:
        mesh = mesh_of(2)
        w = distribute_tensor(numbers(6, 4), mesh, [Shard(0)]).requires_grad_()
        x = distribute_tensor(numbers(5, 4), mesh)
        (x @ w.t()).square().sum().backward()
        assert w.grad.placements == (Shard(0),) and w.grad.stride() == w.stride()
        plain = numbers(6, 4).requires_grad_()
        (numbers(5, 4) @ plain.t()).square().sum().backward()
        assert mica.equal(w.grad.full_tensor(), plain.grad)

    on_all(2, f)


def test_from_local_takes_parts_and_says_what_does_not_fit() -> None:
    def f(r: int) -> None:
        mesh = mesh_of(2)
        part = numbers(2, 3)
        assert DTensor.from_local(part, mesh, [Shard(-1)]).shape == (2, 6)
        assert DTensor.from_local(part, mesh).placements == (Replicate(),)
        uneven = (
            DTensor.from_local(numbers(3 - 2 * r, 3), mesh, [Shard(0)], shape=(5, 3), stride=(3, 1))
            if r == 0
            else None
        )
        assert uneven is None or uneven.shape == (5, 3)
        with pytest.raises(ValueError, match=r"is not this rank's part \[\d, 3\] of `shape` \[9, 3\]"):
            DTensor.from_local(part, mesh, [Shard(0)], shape=(9, 3))
        mine = mica.full((2,), float(r))
        assert DTensor.from_local(mine, mesh, run_check=True).to_local().tolist() == [0, 0]

    on_all(2, f)


def test_all_ranks_have_the_first_ones_tensor_and_leave_theirs_alone() -> None:
    def f(r: int) -> None:
        mesh = mesh_of(2)
        mine = mica.full((3,), float(r))
        laid_out = distribute_tensor(mine, mesh, [Replicate()])
        assert laid_out.full_tensor().tolist() == [0, 0, 0]
        own = distribute_tensor(mine, mesh, [Shard(0)], src_data_rank=None)
        assert own.full_tensor().tolist() == [0, 0, 1]
        laid_out.add_(5)
        assert mine.tolist() == [r] * 3

    on_all(2, f)


# ---- computing


def test_gradients_see_whole_shapes_and_come_back_in_their_layout() -> None:
    def f(r: int) -> None:
        mesh = mesh_of(2)
        x, w = numbers(5, 4), numbers(4, 3)
        plain = [x.clone().requires_grad_(), w.clone().requires_grad_()]
        (plain[0] @ plain[1]).square().mean().backward()
        for a, b in itertools.product([Replicate(), Shard(0), Shard(1)], repeat=2):
            ours = [distribute_tensor(x, mesh, [a]), distribute_tensor(w, mesh, [b])]
            for t in ours:
                t.requires_grad_()
            (ours[0] @ ours[1]).square().mean().backward()
            for t, p in zip(ours, plain):
                assert isinstance(t.grad, DTensor) and mica.allclose(t.grad.full_tensor(), p.grad)

    on_all(2, f)


def test_gradients_flow_through_local_tensors() -> None:
    def f(r: int) -> None:
        mesh = mesh_of(2)
        part = numbers(2, 3).requires_grad_()
        whole = DTensor.from_local(part, mesh, [Shard(0)])
        local = (whole * 2).redistribute(placements=[Replicate()]).to_local()
        (local * local.detach()).sum().backward()
        assert mica.equal(part.grad, part.detach() * 4)
        # Each rank's loss is one of two terms: the gradients of a replicated tensor add up.
        shared = distribute_tensor(numbers(3), mesh).requires_grad_()
        (shared.to_local(grad_placements=[Partial()]) * (r + 1)).sum().backward()
        assert shared.grad.full_tensor().tolist() == [3, 3, 3]

    on_all(2, f)


def test_a_written_view_is_written_in_its_tensor_wherever_that_lies() -> None:
    def f(r: int) -> None:
        mesh = mesh_of(2)
        for placement in (Replicate(), Shard(0), Shard(1), Partial()):
            x = numbers(4, 3)
            given = laid(x, mesh, placement)
            row, column = given[1], given[:, 2]
            row.fill_(7.0)
            column.mul_(10.0)
            x[1].fill_(7.0)
            x[:, 2].mul_(10.0)
            assert mica.equal(given.full_tensor(), x), placement
            assert mica.equal(row.full_tensor(), x[1]), placement  # brought up to date with the other view
            given[1][1:].t().unsqueeze(0).fill_(-1.0)  # views of the view reach the tensor too
            x[1][1:].fill_(-1.0)
            assert mica.equal(given.full_tensor(), x) and mica.equal(row.full_tensor(), x[1]), placement
            given.zero_()
            assert not column.full_tensor().any()

    on_all(2, f)


def test_gradients_of_written_views() -> None:
    def f(r: int) -> None:
        mesh = mesh_of(2)
        for placement, index in itertools.product([Replicate(), Shard(0), Shard(1)], [0, 1]):
            x = distribute_tensor(mica.ones(4, 3), mesh, [placement]).requires_grad_()
            y = x * 2
            y.select(index, 1).mul_(3)
            y.sum().backward()
            wanted = mica.full((4, 3), 2.0)
            wanted.select(index, 1).fill_(6.0)
            assert mica.equal(x.grad.full_tensor(), wanted)

    on_all(2, f)


def test_draws_are_those_of_one_rank_and_stay_where_the_tensor_lies() -> None:
    def f(r: int) -> None:
        mesh = mesh_of(2)
        x = dt.zeros(5, 4, device_mesh=mesh, placements=[Shard(0)])
        x.uniform_(1, 2)
        assert x.placements == (Shard(0),) and bool((x.full_tensor() >= 1).all())
        replicated = dt.randn(3, device_mesh=mesh)
        shown = DTensor.from_local(replicated.to_local(), mesh, [Shard(0)]).full_tensor()
        assert mica.equal(shown[:3], shown[3:])
        kept = nn.functional.dropout(dt.ones(200, device_mesh=mesh, placements=[Shard(0)]), 0.5).full_tensor()
        assert 40 < int((kept == 0).sum()) < 160 and set(kept.tolist()) == {0.0, 2.0}

    on_all(2, f)


def test_factories_make_what_mica_makes() -> None:
    def f(r: int) -> None:
        mesh = mesh_of(2)
        for placement in (Replicate(), Shard(0), Shard(1)):
            options: dict[str, Any] = {"device_mesh": mesh, "placements": [placement], "dtype": mica.float64}
            assert mica.equal(dt.zeros(5, 2, **options).full_tensor(), mica.zeros(5, 2, dtype=mica.float64))
            assert mica.equal(dt.ones((5, 2), **options).full_tensor(), mica.ones(5, 2, dtype=mica.float64))
            full = dt.full((5, 2), 3, requires_grad=True, **options)
            assert full.requires_grad and full.is_leaf
            assert mica.equal(full.full_tensor().detach(), mica.full((5, 2), 3, dtype=mica.float64))
            assert dt.empty(5, 2, **options).shape == dt.rand(5, 2, **options).shape == (5, 2)
        with pytest.raises(ValueError, match="partial, of which one tensor has no parts"):
            dt.zeros(2, device_mesh=mesh, placements=[Partial()])

    on_all(2, f)


# ---- modules


@pytest.mark.parametrize(
    "optimizer",
    [
        lambda p: optim.SGD(p, lr=0.1, momentum=0.9),
        lambda p: optim.SGD(p, lr=0.1, foreach=False),
        lambda p: optim.AdamW(p, lr=0.01),
        lambda p: optim.AdamW(p, lr=0.01, foreach=False),
        lambda p: optim.AdamW(p, lr=0.01, fused=True),
    ],
)
def test_optimizers_step_parameters_that_are_cut(optimizer: Any) -> None:
    mica.manual_seed(0)
    plain = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.LayerNorm(5), nn.Linear(5, 2))
    x, y = mica.randn(6, 4), mica.randn(6, 2)
    nets = [copy.deepcopy(plain) for _ in range(2)]

    def trained(net: Any, given: Any, wanted: Any) -> list[Any]:
        steps = optimizer(net.parameters())
        for _ in range(3):
            steps.zero_grad()
            (net(given) - wanted).square().mean().backward()
            steps.step()
        return list(net.parameters())

    def cut(name: str, module: Any, mesh: Any) -> None:
        if isinstance(module, nn.Linear):
            for key, p in list(module.named_parameters(recurse=False)):
                module.register_parameter(key, nn.Parameter(distribute_tensor(p.data, mesh, [Shard(0)])))

    def f(r: int) -> list[mica.Tensor]:
        mesh = mesh_of(2)
        net = dt.distribute_module(nets[r], mesh, cut)
        given = distribute_tensor(x, mesh, [Shard(0)])
        found = trained(net, given, distribute_tensor(y, mesh, [Shard(0)]))
        assert all(isinstance(p, DTensor) and isinstance(p, nn.Parameter) for p in found)
        assert isinstance(net.state_dict()["0.weight"], DTensor)
        return [p.full_tensor().detach() for p in found]

    wanted = trained(plain, x, y)
    for found in on_all(2, f):
        for a, b in zip(found, wanted):
            assert mica.allclose(a, b, atol=1e-6)


def test_checkpoints_are_saved_by_parts_and_load_into_other_layouts(tmp_path: Any) -> None:
    x = numbers(5, 6)

    def save(r: int) -> None:
        mesh = mesh_of(2, 2)
        state = {
            "both": distribute_tensor(x, mesh, [Shard(0), Shard(1)]),
            "twice": distribute_tensor(x, mesh, [Shard(0), Shard(0)]),
            "one": distribute_tensor(x, mesh, [Replicate(), Shard(1)]),
            "none": distribute_tensor(x, mesh),
        }
        checkpoint.save(state, checkpoint_id=tmp_path / "c")
        with pytest.raises(checkpoint.CheckpointException, match="what is partial or strided is no box"):
            checkpoint.save({"p": laid(x, mesh_of(4), Partial())}, checkpoint_id=tmp_path / "d")

    def load(r: int) -> None:
        mesh = mesh_of(3)
        state: dict[str, Any] = {
            "both": dt.zeros(5, 6, device_mesh=mesh, placements=[Shard(1)]),
            "twice": dt.zeros(5, 6, device_mesh=mesh),
            "one": dt.zeros(5, 6, device_mesh=mesh, placements=[Shard(0)]),
            "none": mica.zeros(5, 6),
        }
        checkpoint.load(state, checkpoint_id=tmp_path / "c")
        for value in state.values():
            assert mica.equal(value.full_tensor() if isinstance(value, DTensor) else value, x)

    on_all(4, save)
    on_all(3, load)


def test_a_copy_has_a_local_tensor_of_its_own() -> None:
    def f(r: int) -> None:
        mesh = mesh_of(2)
        x = nn.Parameter(distribute_tensor(numbers(4), mesh, [Shard(0)]))
        other = copy.deepcopy(x)
        assert isinstance(other, nn.Parameter) and other.placements == x.placements
        with mica.no_grad():
            other.zero_()
        assert mica.equal(x.full_tensor().detach(), numbers(4))

    on_all(2, f)


# ---- what is shown and refused


def test_a_dtensor_shows_its_part_and_where_it_lies() -> None:
    def f(r: int) -> None:
        x = distribute_tensor(mica.zeros(2), mesh_of(2), [Shard(0)])
        assert repr(x) == (
            "DTensor(local_tensor=tensor([0.]), device_mesh=DeviceMesh((2,), 'cpu', stride=(1,)), "
            "placements=(Shard(dim=0),))"
        )
        assert x._spec.mesh == x.device_mesh and x._spec.dim_map == [0] and x._spec.tensor_meta.shape == (2,)

    on_all(2, f)


def test_what_does_not_fit_is_refused_with_a_sentence() -> None:
    def f(r: int) -> None:
        mesh, x = mesh_of(2), numbers(4, 2)
        cut = distribute_tensor(x, mesh, [Shard(0)])
        plain = numbers(4, 2).requires_grad_()
        other = distribute_tensor(x, init_device_mesh("cpu", (2,), mesh_dim_names=("other",)), [Shard(0)])
        cases: list[tuple[Any, type[Exception], str]] = [
            (
                lambda: distribute_tensor(x, mesh, [Shard(2)]),
                IndexError,
                r"Shard\(dim=2\) is beyond the \(2\)",
            ),
            (
                lambda: distribute_tensor(x, mesh, [Shard(0)] * 2),
                ValueError,
                r"are \(2\), and `device_mesh` has \(1\)",
            ),
            (lambda: distribute_tensor(x, mesh, ["S"]), TypeError, r"'S'\) is no Placement"),
            (lambda: distribute_tensor(x, mesh, [Partial()]), ValueError, "use DTensor.from_local"),
            (lambda: distribute_tensor(x), ValueError, "`device_mesh` is None"),
            (lambda: distribute_tensor(plain * 2, mesh), RuntimeError, "non-leaf"),
            (lambda: DTensor.from_local(cut, mesh), TypeError, r"of a DTensor its to_local\(\)"),
            (lambda: cut.redistribute(mesh), RuntimeError, "`placements` is needed"),
            (lambda: cut.redistribute(mesh, [Partial()]), RuntimeError, "for internal use only"),
            (lambda: cut + other, RuntimeError, "gets DTensors on different meshes"),
            (lambda: cut + plain, RuntimeError, "got mixed Tensor and DTensor"),
            (lambda: cut.nonzero(), NotImplementedError, "mica::nonzero .* has no sharding rule"),
            (lambda: Partial("mean"), ValueError, r"`reduce_op` \('mean'\) is none of sum"),
        ]
        for call, error, says in cases:
            with pytest.raises(error, match=says):
                call()
        replicated = distribute_tensor(x, mesh)
        assert replicated.nonzero().full_tensor().tolist() == x.nonzero().tolist()

    on_all(2, f)
