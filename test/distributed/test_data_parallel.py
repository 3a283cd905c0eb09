"""DistributedDataParallel: gradients and parameters of 2 to 8 ranks are those of one process with the whole batch."""

from __future__ import annotations

import copy
import gc
import weakref
from typing import Any

import pytest
import ranks
from ranks import on_all, on_ranks

import mica
from mica import nn
from mica.distributed._init import group_of
from mica.distributed.algorithms.ddp_comm_hooks import default_hooks
from mica.nn import _reducer
from mica.nn.parallel import DistributedDataParallel

ENGINES = [("threads", 2), ("threads", 3), ("threads", 8), *[("gloo", 2)] * ("gloo" in ranks.ENGINES)]


@pytest.fixture(params=ENGINES, ids=str)
def world(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    engine, world = request.param
    monkeypatch.setattr(ranks, "engine", engine)
    return int(world)


class Mixed(nn.Module):
    """Parameters of two dtypes, one used twice, one shared by two modules."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(7, 6)
        self.first, self.second = nn.Linear(6, 6), nn.Linear(6, 6)
        self.second.weight = self.first.weight
        self.conv = nn.Conv1d(1, 3, 3)
        self.scale = nn.Parameter(mica.ones(12, dtype=mica.float32))

    def forward(self, x: mica.Tensor) -> mica.Tensor:
        y = self.second(self.first(self.first(self.table(x)).tanh()))
        return self.conv(y[:, None, :]).flatten(1) * self.scale.double()


def made(kind: type[nn.Module] = Mixed, seed: int = 0) -> nn.Module:
    mica.manual_seed(seed)
    model = kind().double()
    if isinstance(model, Mixed):
        model.scale = nn.Parameter(mica.rand(12, dtype=mica.float32))
    return model


def steps(model: nn.Module, batches: list[mica.Tensor], **options: Any) -> list[dict[str, mica.Tensor]]:
    """The gradients of each step of a training, and at last the parameters."""
    optimizer, found = mica.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), []
    for batch in batches:
        optimizer.zero_grad()
        (model(batch) ** 2).mean().backward()
        found.append({n.removeprefix("module."): p.grad.clone() for n, p in model.named_parameters()})
        optimizer.step()
    found.append({n.removeprefix("module."): p.detach().clone() for n, p in model.named_parameters()})
    return found


def assert_close(found: list[dict[str, mica.Tensor]], expected: list[dict[str, mica.Tensor]]) -> None:
    for got, want in zip(found, expected, strict=True):
        assert got.keys() == want.keys()
        for name, value in got.items():
            tolerance = 1e-12 if value.dtype == mica.float64 else 1e-6
            assert mica.allclose(value, want[name], rtol=tolerance, atol=tolerance), name


@pytest.mark.parametrize(
    "options",
    [{}, {"bucket_cap_mb": 1e-4}, {"find_unused_parameters": True}, {"static_graph": True}, {"gradient_as_bucket_view": True}],
    ids=str,
)  # fmt: skip
def test_training_is_that_of_one_process_with_the_whole_batch(
    world: int, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_reducer, "FIRST_BUCKET", 100)
    batches = [mica.arange(4 * world).remainder(7).roll(i) for i in range(3)]
    expected = steps(made(), batches)
    models = [made(seed=r) for r in range(world)]  # those of the other ranks are overwritten

    def f(r: int) -> Any:
        model = DistributedDataParallel(models[r], **options)
        return steps(model, [b[4 * r : 4 * r + 4] for b in batches])

    for found in on_all(world, f):
        assert_close(found, expected)


def test_no_sync_adds_up_until_the_next_step(world: int) -> None:
    batches = [mica.arange(2 * world).remainder(7).roll(i) for i in range(3)]
    whole = made()
    for batch in batches:
        (whole(batch) ** 2).mean().backward()

    models = [made() for _ in range(world)]

    def f(r: int) -> None:
        model = DistributedDataParallel(models[r])
        for i, batch in enumerate(batches):
            part = batch[2 * r : 2 * r + 2]
            if i < 2:
                with model.no_sync():
                    (model(part) ** 2).mean().backward()
            else:
                (model(part) ** 2).mean().backward()
        for p, q in zip(model.parameters(), whole.parameters()):
            assert mica.allclose(p.grad, q.grad, rtol=1e-6)

    on_all(world, f)


class Branches(nn.Module):
    """Branch `which` alone is used, and nobody uses the last one."""

    def __init__(self) -> None:
        super().__init__()
        self.branches = nn.ModuleList(nn.Linear(2, 1, bias=False) for _ in range(4))

    def forward(self, x: mica.Tensor, which: int) -> mica.Tensor:
        return self.branches[which](x)


@pytest.mark.parametrize("static", [False, True])
def test_parameters_that_some_ranks_do_not_use(world: int, static: bool) -> None:
    models = [made(Branches) for _ in range(world)]

    def f(r: int) -> None:
        model = DistributedDataParallel(
            models[r], find_unused_parameters=not static, static_graph=static, bucket_cap_mb=1e-6
        )
        for step in range(3):
            model.zero_grad()
            model(mica.full((1, 2), r + 1.0, dtype=mica.float64), r % 3).sum().backward()
            used = [model.module.branches[i].weight.grad for i in range(4)]
            for i in range(3):
                total = sum(q + 1.0 for q in range(world) if q % 3 == i)
                assert (used[i] is None) == (i >= world), (step, i)
                if used[i] is not None:
                    assert mica.allclose(used[i], mica.full((1, 2), total / world, dtype=mica.float64))
            assert used[3] is None

    on_all(world, f)


def test_an_unused_parameter_keeps_what_no_sync_accumulated(world: int) -> None:
    models = [made(Branches) for _ in range(world)]
    x = mica.ones(1, 2, dtype=mica.float64)

    def f(r: int) -> None:
        model = DistributedDataParallel(models[r], find_unused_parameters=True)
        with model.no_sync():
            model(x * (r + 1), 0).sum().backward()
            model(x, 2).sum().backward()
        model(x, 0 if r == 0 else 1).sum().backward()
        found = [None if b.weight.grad is None else b.weight.grad.tolist()[0] for b in model.module.branches]
        first = (sum(q + 1.0 for q in range(world)) + 1) / world
        assert mica.allclose(mica.tensor(found[0]), mica.full((2,), first)), found
        assert mica.allclose(mica.tensor(found[1]), mica.full((2,), (world - 1) / world))
        assert found[2:] == [[1.0, 1.0], None], "nobody used it in the step: it is this rank's, as torch's"

    on_all(world, f)


class TwoOutputs(nn.Module):
    """Two parameters that an output each uses, and one that nobody uses."""

    def __init__(self) -> None:
        super().__init__()
        self.parts = nn.ParameterList(nn.Parameter(mica.ones(2, dtype=mica.float64)) for _ in range(3))

    def forward(self, x: mica.Tensor) -> tuple[mica.Tensor, mica.Tensor]:
        return x * self.parts[0], x * x * self.parts[1]


def test_a_step_lasts_until_all_gradients_that_can_come_have_come(world: int) -> None:
    def f(r: int) -> None:
        for differentiates in (False, True):
            model = DistributedDataParallel(TwoOutputs(), find_unused_parameters=True, bucket_cap_mb=1e-6)
            for _ in range(2):
                model.zero_grad()
                x = mica.full((2,), r + 1.0, dtype=mica.float64, requires_grad=True)
                y, z = model(x)
                if differentiates:
                    (slope,) = mica.autograd.grad((y + z).sum(), x, create_graph=True)
                    (slope.sum() + z.sum()).backward()
                    first, second = 1.0, [2 * (q + 1.0) + (q + 1.0) ** 2 for q in range(world)]
                else:
                    y.sum().backward()
                    z.sum().backward()
                    first = sum(q + 1.0 for q in range(world)) / world
                    second = [(q + 1.0) ** 2 for q in range(world)]
                found = mica.stack([p.grad for p in model.module.parts[:2]])
                expected = mica.tensor([[first] * 2, [sum(second) / world] * 2], dtype=mica.float64)
                assert mica.allclose(found, expected), (differentiates, found, expected)
                assert model.module.parts[2].grad is None

    on_all(world, f)


def test_a_gradient_that_a_static_graphs_first_backward_left_out_is_refused(world: int) -> None:
    def f(r: int) -> None:
        model = DistributedDataParallel(TwoOutputs(), static_graph=True)
        x = mica.ones(2, dtype=mica.float64, requires_grad=True)
        for step in range(2):
            y, z = model(x)
            if step == 0:
                mica.autograd.grad(y.sum(), x, create_graph=True)  # ends nothing
            y.sum().backward()
            with pytest.raises(RuntimeError, match=r"only once: the parameter \(parts.1\) got"):
                z.sum().backward()
        with model.no_sync():
            model(x)[1].sum().backward()

    on_all(world, f)


def test_unused_parameters_are_named_at_the_next_forward(world: int) -> None:
    models = [made(Branches) for _ in range(world)]

    def f(r: int) -> None:
        model = DistributedDataParallel(models[r])
        model(mica.ones(1, 2, dtype=mica.float64), 0).sum().backward()
        model(mica.ones(1, 2, dtype=mica.float64), 0)

    for error in on_ranks(world, f):
        assert isinstance(error, RuntimeError) and "Expected to have finished reduction" in str(error), error
        assert "'branches.1.weight'" in str(error) and "branches.0" not in str(error)


def test_a_rank_that_uses_no_parameter_does_not_hold_up_the_others(world: int) -> None:
    class Maybe(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(mica.ones(2, dtype=mica.float64))

        def forward(self, x: mica.Tensor, use: bool) -> mica.Tensor:
            return x * self.weight if use else x * 2

    def f(r: int) -> None:
        model = DistributedDataParallel(Maybe(), find_unused_parameters=True)
        x = mica.ones(2, dtype=mica.float64, requires_grad=True)
        model(x, r == 0).sum().backward()
        assert model.module.weight.grad.tolist() == [1 / world] * 2

    on_all(world, f)


def test_buffers_are_the_first_ranks(world: int) -> None:
    models = [nn.BatchNorm1d(2).double() for _ in range(world)]

    def f(r: int) -> tuple[Any, Any]:
        model = DistributedDataParallel(models[r])
        kept = DistributedDataParallel(copy.deepcopy(models[r]), broadcast_buffers=False)
        x = mica.arange(8.0, dtype=mica.float64).reshape(4, 2) + 10 * r
        for _ in range(2):
            model(x).sum().backward()
            kept(x).sum().backward()
        with mica.no_grad():
            model(x[:1].expand(4, 2))
        return model.module.running_mean.clone(), kept.module.running_mean.clone()

    found = on_all(world, f)
    alone = nn.BatchNorm1d(2).double()
    x = mica.arange(8.0, dtype=mica.float64).reshape(4, 2)
    for _ in range(2):
        alone(x)
    for r, (_, own) in enumerate(found):  # rank r has seen what it got itself
        assert mica.allclose(own, alone.running_mean + 10 * r * (1 - 0.9**2))
    # Before its last forward each rank had rank 0's, and then saw its own batch once.
    for r, (shared, _) in enumerate(found):
        assert mica.allclose(shared, 0.9 * alone.running_mean + 0.1 * (x[0] + 10 * r))


def test_a_buffer_that_forward_assigns_anew_is_the_first_ranks(world: int) -> None:
    class Counts(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(mica.ones(1))
            self.register_buffer("seen", mica.zeros(1))

        def forward(self, x: mica.Tensor) -> mica.Tensor:
            self.seen = self.seen + x
            return x * self.weight

    def f(r: int) -> None:
        model = DistributedDataParallel(Counts())
        for step in range(3):
            model(mica.full((1,), r + 1.0)).sum().backward()
            assert model.module.seen.item() == step * 1.0 + r + 1.0

    on_all(world, f)


HOOKS = {
    "allreduce": (default_hooks.allreduce_hook, 1e-12),
    "fp16": (default_hooks.fp16_compress_hook, 2e-3),
    "bf16": (default_hooks.bf16_compress_hook, 2e-2),
    "fp16 wrapper": (default_hooks.fp16_compress_wrapper(default_hooks.allreduce_hook), 2e-3),
    "bf16 wrapper": (default_hooks.bf16_compress_wrapper(default_hooks.allreduce_hook), 2e-2),
}


@pytest.mark.parametrize("name", HOOKS)
def test_communication_hooks_average(world: int, name: str) -> None:
    hook, tolerance = HOOKS[name]
    models = [nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2)).double() for _ in range(world)]
    seen: list[list[tuple[int, bool, int, int]]] = [[] for _ in range(world)]

    def f(r: int) -> None:
        plain = DistributedDataParallel(copy.deepcopy(models[0]), bucket_cap_mb=1e-6)
        hooked = DistributedDataParallel(copy.deepcopy(models[0]), bucket_cap_mb=1e-6)

        def noting(state: Any, bucket: Any) -> Any:
            parts = bucket.gradients()
            assert [p.shape for p in parts] == [p.shape for p in bucket.parameters()]
            seen[r].append((bucket.index(), bucket.is_last(), bucket.buffer().numel(), len(parts)))
            return hook(state, bucket)

        hooked.register_comm_hook(None, noting)
        for _ in range(2):
            x = mica.rand(5, 3, dtype=mica.float64) + r
            for model in (plain, hooked):
                model.zero_grad()
                (model(x) ** 2).mean().backward()
            for p, q in zip(plain.parameters(), hooked.parameters()):
                assert p.dtype == q.grad.dtype == mica.float64
                assert mica.allclose(p.grad, q.grad, rtol=tolerance, atol=tolerance)
                assert name == "allreduce" or not p.grad.equal(q.grad)

    on_all(world, f)
    assert all(one == seen[0] for one in seen)
    assert seen[0][:4] == [(0, False, 2, 1), (1, False, 8, 1), (2, False, 4, 1), (3, True, 12, 1)]


def test_buckets_are_filled_in_order_by_dtype_and_size() -> None:
    parameters = [mica.empty(n, dtype=d) for n, d in
                  [(1 << 17, mica.float32), (1 << 17, mica.float32), (4, mica.float64), (1 << 19, mica.float32), (1 << 10, mica.float32)]]  # fmt: skip
    assert _reducer.assigned(parameters, range(5), 25 << 20) == [[0, 1], [2], [3, 4]]
    assert _reducer.assigned(parameters, [4, 3, 2, 1, 0], 1 << 20) == [[4], [3], [2], [1, 0]]


def test_reduction_starts_before_backward_ends_and_in_the_order_of_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The parameters are used in the order 2, 0, 1: the second step has buckets in the reverse of that."""

    class Shuffled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.parts = nn.ParameterList(nn.Parameter(mica.ones(i + 1)) for i in range(3))

        def forward(self, x: mica.Tensor, marks: list[str]) -> mica.Tensor:
            for i in (2, 0, 1):
                x = x * self.parts[i].sum()
                x.register_hook(lambda _, i=i: marks.append(f"backward of {i}"))
            return x

    class Noting:
        """A group that writes down what is started."""

        def __init__(self, group: Any, marks: list[str]) -> None:
            self.group, self.marks, self.size, self.rank = group, marks, group.size, group.rank

        def start(self, name: str, given: Any, *rest: Any, **more: Any) -> Any:
            self.marks.append(f"{name} of {given.numel() - 1}" if given is not None else name)
            return self.group.start(name, given, *rest, **more)

    def f(r: int) -> list[list[str]]:
        model = DistributedDataParallel(Shuffled(), bucket_cap_mb=1e-6)
        monkeypatch.setattr(_reducer, "FIRST_BUCKET", 1)
        found = []
        for _ in range(2):
            marks: list[str] = []
            model.reducer._group = Noting(group_of(None), marks)
            model(mica.ones(1), marks).sum().backward()
            found.append(marks)
        return found

    first, second = on_all(2, f)[0]
    assert second[0] == "broadcast"
    assert [m for m in second if m.startswith("all")] == [f"all_reduce of {i}" for i in (1, 0, 2)]
    assert second.index("all_reduce of 1") < second.index("backward of 2"), second
    assert [m for m in first if m.startswith("all")] == [f"all_reduce of {i}" for i in (2, 1, 0)]


def test_what_does_not_fit_is_refused() -> None:
    def differs(r: int) -> None:
        DistributedDataParallel(nn.Linear(2, 2 + r))

    for r, error in enumerate(on_ranks(2, differs)):
        assert isinstance(error, RuntimeError) and f"rank ({r}) has (2) parameters" in str(error)
        assert "('weight', (2, 2)" in str(error) and "('weight', (3, 2)" in str(error)

    def f(r: int) -> None:
        model = DistributedDataParallel(nn.Linear(2, 2))
        model.register_comm_hook(None, default_hooks.allreduce_hook)
        for call, error, says in (
            (lambda: DistributedDataParallel(nn.ReLU()), RuntimeError, "is not needed when"),
            (
                lambda: DistributedDataParallel(nn.Linear(1, 1), device_ids=[0]),
                ValueError,
                "device_ids ([0])",
            ),
            (lambda: DistributedDataParallel(nn.Linear(1, 1, device="meta")), NotImplementedError, "(meta)"),
            (lambda: model.register_comm_hook(None, 1), TypeError, "must be callable"),
            (lambda: model.register_comm_hook(None, print), RuntimeError, "only be called once"),
        ):
            with pytest.raises(error) as raised:
                call()
            assert says in str(raised.value)
        twice = DistributedDataParallel(nn.Linear(2, 2))
        y = twice(mica.ones(1, 2))
        y.sum().backward(retain_graph=True)
        y.sum().backward()  # no forward before it: the gradients stay this rank's

    on_all(1, f)
    with pytest.raises(ValueError, match="init_process_group first"):
        DistributedDataParallel(nn.Linear(1, 1))


def test_a_model_that_is_dropped_is_freed() -> None:
    def f(r: int) -> None:
        model = DistributedDataParallel(nn.Linear(2, 2))
        inner = model.module
        model(mica.ones(1, 2)).sum().backward()
        gone = weakref.ref(model.reducer)
        del model
        gc.collect()
        assert gone() is None
        inner(mica.ones(1, 2)).sum().backward()

    on_all(1, f)


def test_the_sampler_asks_the_group() -> None:
    from mica.utils.data import DistributedSampler

    parts = on_all(3, lambda r: list(DistributedSampler(range(10), shuffle=False)))
    assert parts == [[0, 3, 6, 9], [1, 4, 7, 0], [2, 5, 8, 1]]
    with pytest.raises(ValueError, match="init_process_group first"):
        DistributedSampler(range(10))
