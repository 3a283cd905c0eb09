"""Recorded work that runs again (CUDA's graphs), on the simulated GPU or a real one: values, memory, random numbers, what is
refused, and what a recording that fails leaves."""

import gc
import threading

import pytest
from gpu_device import DEVICE, IS_SIMULATED
from process import printed

import mica
from mica import nn

pytestmark = pytest.mark.usefixtures("simt")


@pytest.fixture
def gpu(simt):
    """The functions that mica.cuda has, for the simulated GPU."""
    from mica._devices import modules

    return modules.of(DEVICE)


def new(gpu):
    return gpu.CUDAGraph() if DEVICE == "cuda" else gpu.Graph()


def recorded(gpu, function, **how):
    """The function's work as a graph, and what it returned."""
    graph = new(gpu)
    with gpu.graph(graph, **how):
        result = function()
    return graph, result


def test_a_replay_computes_anew_from_the_inputs(gpu):
    x = mica.arange(6.0, device=DEVICE)
    calls = []

    def work():
        calls.append(1)
        return (x * 2).sum(), x.softmax(0), x[1::2].clone()

    graph, (total, soft, odd) = recorded(gpu, work)
    for start in (1.0, -3.0, 10.0):
        x.copy_(mica.arange(6.0) + start)
        graph.replay()
        want = mica.arange(6.0) + start
        assert total.item() == (want * 2).sum().item()
        assert mica.allclose(soft.cpu(), want.softmax(0), atol=1e-6)
        assert odd.tolist() == want[1::2].tolist()
    assert len(calls) == 1


def test_nothing_is_computed_while_it_is_recorded(gpu):
    x = mica.ones(4, device=DEVICE)
    graph, _ = recorded(gpu, lambda: x.add_(1))
    gpu.synchronize()
    assert x.tolist() == [1] * 4
    graph.replay()
    graph.replay()
    assert x.tolist() == [3] * 4


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int32"])
@pytest.mark.parametrize("size", [1, 31, 1000, 40_001])
def test_operators_of_every_class(gpu, dtype, size):
    kind = getattr(mica, dtype)
    x = ((mica.arange(size) * 7) % 13 - 6).to(kind).to(DEVICE)
    i = ((mica.arange(size) * 5) % size).to(DEVICE)

    def work():
        return [
            x * 2 + x,
            x.sum(),
            x.amax(),
            x.cumsum(0),
            x[i],
            x.flip(0),
            mica.zeros_like(x).index_add_(0, i, x),
            mica.cat([x, x]),
            x.sort().values,
        ]

    graph, results = recorded(gpu, work)
    for change in (0, 3):
        x.copy_((((mica.arange(size) * 7 + change) % 13) - 6).to(kind))
        graph.replay()
        got = [r.cpu() for r in results]
        for ours, eager in zip(got, work(), strict=True):
            assert mica.equal(ours, eager.cpu())


# ---- memory


def test_a_graphs_memory_is_given_to_nobody_else(gpu):
    x = mica.full((1000,), 2.0, device=DEVICE)

    def work():
        y = x + 1  # freed within the recording: its block is the next one's
        z = y * 2
        del y
        return z - 1

    graph, result = recorded(gpu, work)
    others = [mica.full((1000,), float(n), device=DEVICE) for n in range(20)]  # of the same size
    for _ in range(3):
        graph.replay()
    assert result.tolist() == [5.0] * 1000
    assert all(o.tolist() == [float(n)] * 1000 for n, o in enumerate(others))


def test_memory_comes_back_when_the_graph_ends(gpu):
    gpu.synchronize()
    gc.collect()
    mica.empty_cache(DEVICE)
    before = mica.memory_stats(DEVICE)["bytes_reserved"]
    x = mica.ones(1 << 18, device=DEVICE)
    graph, result = recorded(gpu, lambda: (x * 2 + 1).sqrt())
    graph.replay()
    mica.empty_cache(DEVICE)  # keeps what the graph writes
    graph.replay()
    assert result[5].item() == pytest.approx(3**0.5)
    del result
    assert mica.memory_stats(DEVICE)["bytes_reserved"] > before
    graph.reset()
    x = None
    mica.empty_cache(DEVICE)
    assert mica.memory_stats(DEVICE)["bytes_reserved"] == before


def test_graphs_share_a_pool(gpu):
    x = mica.ones(1 << 16, device=DEVICE)
    pool = gpu.graph_pool_handle()
    first, a = recorded(gpu, lambda: (x + 1) * 2, pool=pool)
    second, b = recorded(gpu, lambda: a - 1, pool=first.pool())
    assert first.pool() == second.pool() == pool
    first.replay()
    second.replay()
    assert a[0].item() == 4 and b[0].item() == 3
    first.reset()
    second.replay()  # its memory is still its own
    assert b[0].item() == 3


def test_a_block_that_another_stream_used(gpu):
    side = gpu.Stream()
    x = mica.ones(5000, device=DEVICE)

    def work():
        y = x * 3
        side.wait_stream(gpu.current_stream())
        with gpu.stream(side):
            z = y + 1
        y.record_stream(side)
        del y
        gpu.current_stream().wait_stream(side)
        return z * 2

    graph, result = recorded(gpu, work)
    kept = mica.full((5000,), 7.0, device=DEVICE)
    graph.replay()
    assert result.tolist() == [8.0] * 5000 and kept.tolist() == [7.0] * 5000


def test_graphs_end_while_another_is_recorded(gpu):
    x = mica.ones(100, device=DEVICE)
    old, _ = recorded(gpu, lambda: x + 1)
    old.replay()
    graph = new(gpu)
    with gpu.graph(graph):
        del old
        gc.collect()
        y = x * 5
    graph.replay()
    assert y[0].item() == 5


def test_memory_that_another_stream_reads_when_its_graph_ends(gpu):
    side, x = gpu.Stream(), mica.ones(1 << 16, device=DEVICE)
    side.wait_stream(gpu.current_stream())
    graph, (y, z) = recorded(gpu, lambda: (x * 2, x * 3), stream=side)
    graph.replay()
    total, other = y.sum(), z.sum()
    del y
    graph.reset()
    with gpu.stream(side):
        filled = mica.zeros(1 << 16, device=DEVICE)
    assert total.item() == 2 << 16
    del z  # outlived its graph
    with gpu.stream(side):
        more = mica.zeros(1 << 16, device=DEVICE)
    assert other.item() == 3 << 16
    side.synchronize()
    assert filled.sum().item() == more.sum().item() == 0


def test_replays_on_two_streams_come_one_after_the_other(gpu):
    x = mica.zeros(1000, device=DEVICE)
    graph, _ = recorded(gpu, lambda: x.add_(1))
    streams = [gpu.Stream(), gpu.Stream()]
    for n in range(10):
        with gpu.stream(streams[n % 2]):
            graph.replay()
    gpu.synchronize()
    assert x.tolist() == [10.0] * 1000


# ---- random numbers


def test_random_numbers_are_others_each_time(gpu):
    mica.manual_seed(5)
    graph, (u, n, mask) = recorded(
        gpu,
        lambda: (
            mica.rand(1001, device=DEVICE),
            mica.randn(63, device=DEVICE),
            nn.functional.dropout(mica.ones(500, device=DEVICE), 0.5),
        ),
    )
    seen = []
    for _ in range(3):
        graph.replay()
        seen.append((u.tolist(), n.tolist(), mask.tolist()))
    for a in range(3):
        for b in range(a):
            assert all(x != y for x, y in zip(seen[a], seen[b], strict=True))
    assert 0.4 < sum(seen[0][0]) / 1001 < 0.6
    mica.manual_seed(11)
    graph.replay()
    again = u.tolist()
    mica.manual_seed(11)
    graph.replay()
    assert u.tolist() == again


def test_a_replay_draws_what_the_operator_draws(gpu):
    graph, u = recorded(gpu, lambda: mica.rand(1001, device=DEVICE))
    mica.manual_seed(3)
    graph.replay()
    replayed = u.tolist()
    mica.manual_seed(3)
    assert replayed == mica.rand(1001, device=DEVICE).tolist()


def test_a_checkpoint_draws_again_what_it_drew(gpu):
    from mica.utils.checkpoint import checkpoint

    x = mica.ones(500, device=DEVICE, requires_grad=True)

    def work():
        x.grad = None
        mica.rand(3, device=DEVICE)
        y = checkpoint(lambda x: nn.functional.dropout(x * 1.0, 0.5) * x, x, use_reentrant=False)
        y.sum().backward()
        after = mica.rand(3, device=DEVICE)
        return y.detach(), x.grad, after

    mica.manual_seed(2)
    eager = [t.tolist() for t in work()]
    graph, results = recorded(gpu, work)
    mica.manual_seed(2)
    graph.replay()
    assert [t.tolist() for t in results] == eager
    assert mica.equal(results[1].cpu() / 2, results[0].cpu())


def test_a_generator_is_not_seeded_while_it_is_recorded(gpu):
    with pytest.raises(RuntimeError, match="cannot be seeded"), gpu.graph(new(gpu)):
        mica.manual_seed(1)
    other = mica.Generator(DEVICE).manual_seed(99).get_state()
    graph = new(gpu)
    with gpu.graph(graph):
        u = mica.rand(4, device=DEVICE)
        with pytest.raises(RuntimeError, match="no other state than one that it had"):
            mica._C._default_generator(mica.device(DEVICE)).set_state(other)
    graph.replay()
    assert len(set(u.tolist())) > 1


def test_a_stream_beside_the_recording_runs(gpu):
    side, x = gpu.Stream(), mica.ones(8, device=DEVICE)
    gpu.synchronize()
    graph = new(gpu)
    with gpu.graph(graph):
        y = x + 1
        with gpu.stream(side):
            assert not gpu.is_current_stream_capturing()
            u = mica.rand(8, device=DEVICE)
        assert gpu.is_current_stream_capturing()
    side.synchronize()
    assert len(set(u.tolist())) > 1
    graph.replay()
    assert y.tolist() == [2.0] * 8


# ---- gradients and training


def test_a_whole_training_step(gpu):
    def made(device):
        mica.manual_seed(0)
        model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))
        return model.to(device)

    batches = [(mica.randn(5, 8), mica.randint(0, 4, (5,))) for _ in range(6)]

    def step(model, x, y):
        for p in model.parameters():
            p.grad = None
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        with mica.no_grad():
            for p in model.parameters():
                p -= 0.1 * p.grad
        return loss

    on_cpu = made("cpu")
    want = [step(on_cpu, x, y).item() for x, y in batches]
    model = made(DEVICE)
    x, y = (b.to(DEVICE) for b in batches[0])
    saved = [p.detach().clone() for p in model.parameters()]
    step(model, x, y)  # compiles what it needs
    graph, loss = recorded(gpu, lambda: step(model, x, y))
    with mica.no_grad():
        for p, s in zip(model.parameters(), saved, strict=True):
            p.copy_(s)
    got = []
    for a, b in batches:
        x.copy_(a)
        y.copy_(b)
        graph.replay()
        got.append(loss.item())
    assert got == pytest.approx(want, rel=1e-5)


OPTIMIZERS = {
    "Adam": {"weight_decay": 0.1},
    "AdamW": {"amsgrad": True},
    "Adamax": {},
    "Adadelta": {},
    "RMSprop": {"momentum": 0.9, "centered": True},
    "Rprop": {},
    "SGD": {"lr": 0.1, "momentum": 0.9},
}


class Steps:
    """An optimizer of a matrix and a bias on a device. `step()` is what a graph records."""

    def __init__(self, kind, device, dtype="float32", **options):
        values = (mica.arange(12.0).reshape(3, 4) - 5) / 7, mica.arange(3.0) - 1, mica.tensor(0.5)
        self.parameters = [v.to(getattr(mica, dtype)).to(device).requires_grad_() for v in values]
        for p in self.parameters:
            p.grad = mica.zeros_like(p)
        capturable = {} if device == "cpu" or kind == "SGD" else {"capturable": True}
        self.optimizer = getattr(mica.optim, kind)(
            self.parameters, **{**OPTIMIZERS[kind], **capturable, **options}
        )

    def give(self, seed):
        """Gradients, in the place of the last ones."""
        generator = mica.Generator().manual_seed(seed)
        for p in self.parameters:
            p.grad.copy_(mica.randn(p.shape, generator=generator))

    def run(self, seeds, step=None):
        for seed in seeds:
            self.give(seed)
            (step or self.optimizer.step)()

    def values(self):
        return [x for p in self.parameters for x in p.detach().cpu().double().reshape(-1).tolist()]


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_steps_of_optimizers(gpu, kind, dtype):
    """Against a CPU's steps, for parameters of 2, 1 and no dimensions; of half numbers, whose sums are rounded
    elsewhere, nearly."""
    want, got = Steps(kind, "cpu", dtype), Steps(kind, DEVICE, dtype)
    want.run(range(6))
    got.run([0])
    graph, _ = recorded(gpu, got.optimizer.step)
    got.run(range(1, 6), graph.replay)
    near = {"float32": 1e-5, "float64": 1e-6, "bfloat16": 0.05, "float16": 0.01}[dtype]
    assert got.values() == pytest.approx(want.values(), rel=near, abs=near)
    assert all(p.dtype == getattr(mica, dtype) for p in got.parameters)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_a_rate_that_is_a_tensor_changes_between_replays(gpu, kind, dtype):
    want, got = Steps(kind, "cpu", dtype), Steps(kind, DEVICE, dtype, lr=mica.tensor(0.5, device=DEVICE))
    rates = [0.5, 0.25, 0.125, 0.0625]
    graph = None
    for seed, rate in enumerate(rates):
        want.optimizer.param_groups[0]["lr"] = rate
        want.run([seed])
        got.optimizer.param_groups[0]["lr"].fill_(rate)
        got.run([seed], graph.replay if graph else None)
        if graph is None:
            graph, _ = recorded(gpu, got.optimizer.step)
    near = 1e-5 if dtype == "float32" else 0.05
    assert got.values() == pytest.approx(want.values(), rel=near, abs=near)


@pytest.mark.parametrize(
    ("kind", "options"), [("SGD", {"momentum": 0}), ("SGD", {}), ("Adam", {}), ("AdamW", {}), ("RMSprop", {})]
)
def test_a_decay_that_is_a_tensor_changes_between_replays(gpu, kind, options):
    options = {"lr": 0.1, **options}
    want = Steps(kind, "cpu", **options)
    got = Steps(kind, DEVICE, **options, weight_decay=mica.tensor(0.5, device=DEVICE))
    graph = None
    for seed, decay in enumerate([0.5, 0.25, 0.125]):
        want.optimizer.param_groups[0]["weight_decay"] = decay
        want.run([seed])
        got.optimizer.param_groups[0]["weight_decay"].fill_(decay)
        got.run([seed], graph.replay if graph else None)
        if graph is None:
            graph, _ = recorded(gpu, got.optimizer.step)
    assert got.values() == pytest.approx(want.values(), rel=1e-5)


@pytest.mark.parametrize("kind", ["Adam", "AdamW", "Adamax"])
def test_counts_of_steps_that_differ(gpu, kind):
    """A parameter had more steps than the others when the recording begins."""
    both = [Steps(kind, "cpu"), Steps(kind, DEVICE)]
    for steps in both:
        held = [p.grad for p in steps.parameters[1:]]
        for p in steps.parameters[1:]:
            p.grad = None
        steps.optimizer.step()
        for p, grad in zip(steps.parameters[1:], held, strict=True):
            p.grad = grad
        steps.run([1])
    want, got = both
    graph, _ = recorded(gpu, got.optimizer.step)
    want.run([2, 3])
    got.run([2, 3], graph.replay)
    assert got.values() == pytest.approx(want.values(), rel=1e-5)
    assert [got.optimizer.state[p]["step"].item() for p in got.parameters] == [4, 3, 3]


def test_a_function_refuses_counts_on_the_cpu(gpu):
    from mica.optim._functional import adam

    x = [mica.ones(3, device=DEVICE) for _ in range(4)]
    options = {"lr": 0.1, "beta1": 0.9, "beta2": 0.99, "eps": 1e-8, "weight_decay": 0}
    options |= {"maximize": False, "amsgrad": False, "capturable": True}
    with pytest.raises(RuntimeError, match=r"the parameter's device .* is on \(cpu\)"):
        adam(*([t] for t in x), [], [mica.tensor(1.0)], **options)
    assert x[0].tolist() == [1.0] * 3


def test_a_beta_of_zero(gpu):
    want, got = Steps("Adam", "cpu", betas=(0.0, 0.0)), Steps("Adam", DEVICE, betas=(0.0, 0.0))
    want.run(range(3))
    got.run(range(3))
    assert got.values() == pytest.approx(want.values(), rel=1e-5)


@pytest.mark.parametrize("kind", ["Adam", "RMSprop", "Adadelta"])
def test_capturable_that_is_set_after_steps(gpu, kind):
    """The counts were on the CPU: a step brings them to the device, a recorded one is refused."""
    want, got = Steps(kind, "cpu"), Steps(kind, DEVICE, capturable=False)
    want.run(range(4))
    got.run([0])
    got.optimizer.param_groups[0]["capturable"] = True
    with pytest.raises(RuntimeError, match="must be on the parameter's device"), gpu.graph(new(gpu)):
        got.optimizer.step()
    got.run([1])
    assert all(own["step"].device.type == DEVICE for own in got.optimizer.state.values())
    graph, _ = recorded(gpu, got.optimizer.step)
    got.run([2, 3], graph.replay)
    assert got.values() == pytest.approx(want.values(), rel=1e-5)


@pytest.mark.parametrize("kind", [kind for kind in OPTIMIZERS if kind != "SGD"])
def test_a_first_step_is_not_recorded(gpu, kind):
    steps = Steps(kind, DEVICE)
    with pytest.raises(RuntimeError, match="once before the recording"), gpu.graph(new(gpu)):
        steps.optimizer.step()
    assert all(not own for own in steps.optimizer.state.values())


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_training_with_optimizers(gpu, kind):
    batches = [mica.randn(5, 4) for _ in range(6)]

    def made(device):
        mica.manual_seed(0)
        model = nn.Linear(4, 3).to(device)
        capturable = {} if device == "cpu" or kind == "SGD" else {"capturable": True}
        return model, getattr(mica.optim, kind)(model.parameters(), **OPTIMIZERS[kind], **capturable)

    def step(model, optimizer, x):
        optimizer.zero_grad(set_to_none=True)
        loss = (model(x) ** 2).sum()
        loss.backward()
        optimizer.step()
        return loss

    on_cpu = made("cpu")
    want = [step(*on_cpu, x).item() for x in batches]
    model, optimizer = made(DEVICE)
    x = batches[0].to(DEVICE)
    got = [step(model, optimizer, x).item()]
    graph, loss = recorded(gpu, lambda: step(model, optimizer, x))
    for batch in batches[1:]:
        x.copy_(batch)
        graph.replay()
        got.append(loss.item())
    assert got == pytest.approx(want, rel=1e-5)


@pytest.mark.parametrize(
    ("kind", "options", "said"),
    [
        ("Adam", {}, "capturable=True"),
        ("SGD", {"momentum": 0.9, "lr": 0.1}, "once before the recording"),
        ("NAdam", {"capturable": True}, "cannot be recorded"),
    ],
)
def test_steps_that_cannot_be_recorded(gpu, kind, options, said):
    model = nn.Linear(4, 3).to(DEVICE)
    model(mica.ones(2, 4, device=DEVICE)).sum().backward()
    optimizer = getattr(mica.optim, kind)(model.parameters(), **options)
    with pytest.raises((RuntimeError, NotImplementedError), match=said), gpu.graph(new(gpu)):
        optimizer.step()


def test_make_graphed_callables(gpu):
    mica.manual_seed(1)
    layers = [nn.Sequential(nn.Linear(6, 6), nn.ReLU()) for _ in range(2)]
    plain = [layer.to(DEVICE) for layer in layers]
    import copy

    replaying = tuple(copy.deepcopy(layer) for layer in plain)
    sample = mica.randn(3, 6, device=DEVICE, requires_grad=True)
    replaying = gpu.make_graphed_callables(replaying, ((sample,), (sample.detach().requires_grad_(),)))
    for _ in range(3):
        x = mica.randn(3, 6, device=DEVICE, requires_grad=True)
        z = x.detach().clone().requires_grad_()
        (plain[1](plain[0](x)) ** 2).sum().backward()
        (replaying[1](replaying[0](z)) ** 2).sum().backward()
        assert mica.allclose(x.grad.cpu(), z.grad.cpu(), atol=1e-6)
    for a, b in zip(plain, replaying, strict=True):
        for p, q in zip(a.parameters(), b.parameters(), strict=True):
            assert mica.allclose(p.grad.cpu(), q.grad.cpu(), atol=1e-5)
    replaying[0].eval()
    assert replaying[0](mica.ones(7, 6, device=DEVICE)).shape == (7, 6)  # computed, not replayed
    assert replaying[0](input=mica.ones(7, 6, device=DEVICE)).shape == (7, 6)
    replaying[0].train()
    with pytest.raises(TypeError, match="by name"):
        replaying[0](input=mica.ones(3, 6, device=DEVICE))
    with pytest.raises(RuntimeError, match=r"Argument 0 .*float32\[7, 6\].*recorded with .*float32\[3, 6\]"):
        replaying[0](mica.ones(7, 6, device=DEVICE))


# ---- what is refused


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda x, gpu: x.sum().item(), "copy between the host and a device"),
        (lambda x, gpu: x.cpu(), "copy between the host and a device"),
        (lambda x, gpu: mica.tensor([1.0], device=DEVICE), "copy between the host and a device"),
        (lambda x, gpu: mica.ones(4).to(DEVICE, non_blocking=True), "not pinned"),
        (lambda x, gpu: gpu.synchronize(), "Waiting for all work"),
        (lambda x, gpu: gpu.current_stream().synchronize(), "Waiting for a stream"),
        (lambda x, gpu: gpu.current_stream().query(), "whether a stream has work left"),
        (lambda x, gpu: x[x > 0], "reads what the device|copy between the host"),
        (lambda x, gpu: mica.linalg.inv(mica.eye(3, device=DEVICE)), "linalg_inv.*runs on the CPU"),
    ],
)
def test_what_needs_an_answer_is_refused_and_the_recording_goes_on(gpu, call, said):
    x = mica.ones(4, device=DEVICE)
    graph = new(gpu)
    with gpu.graph(graph):
        y = x + 1
        with pytest.raises(RuntimeError, match=said):
            call(x, gpu)
        z = y * 3
    graph.replay()
    assert z.tolist() == [6.0] * 4


def test_pinned_memory_is_copied_at_each_replay(gpu):
    host = mica.zeros(4).pin_memory()
    x = mica.zeros(4, device=DEVICE)
    graph, _ = recorded(gpu, lambda: x.copy_(host, non_blocking=True))
    for n in (1.0, 2.0):
        host.fill_(n)
        graph.replay()
        assert x.tolist() == [n] * 4


def test_an_exception_in_the_block_leaves_an_empty_graph(gpu):
    x = mica.ones(4, device=DEVICE)
    graph = new(gpu)
    with pytest.raises(ZeroDivisionError), gpu.graph(graph):
        y = x + 1  # noqa: F841
        raise ZeroDivisionError
    assert not gpu.is_current_stream_capturing()
    with pytest.raises(RuntimeError, match="no recording to replay"):
        graph.replay()
    with gpu.graph(graph):  # the same one serves again
        y = x + 2
    graph.replay()
    assert y.tolist() == [3.0] * 4


def test_sample_arguments_are_tuples(gpu):
    layer = nn.Linear(3, 3).to(DEVICE)
    with pytest.raises(TypeError, match=r"write \(x,\) for one"):
        gpu.make_graphed_callables(layer, mica.ones(2, 3, device=DEVICE))
    with pytest.raises(RuntimeError, match=r"a value of type \(int\)"):
        gpu.make_graphed_callables(layer, (3,))


def test_misuse_says_so(gpu):
    graph, x = new(gpu), mica.ones(3, device=DEVICE)
    with pytest.raises(RuntimeError, match="default stream"):
        graph.capture_begin()
    with pytest.raises(RuntimeError, match="not being recorded"):
        graph.capture_end()
    with pytest.raises(RuntimeError, match="no pool"):
        graph.pool()
    with pytest.raises(ValueError, match="capture_error_mode \\('any'\\)"):
        graph.capture_begin(capture_error_mode="any")
    with pytest.raises(TypeError, match="graph_pool_handle"):
        graph.capture_begin(pool=3)
    with pytest.raises(ValueError, match="none that graph_pool"), gpu.graph(graph, pool=(0, 10**9)):
        pass
    with gpu.graph(graph):
        y = x + 1
        assert gpu.is_current_stream_capturing()
        other = new(gpu)
        with pytest.raises(RuntimeError, match="records another graph"):
            other.capture_begin()
        with pytest.raises(RuntimeError, match="being recorded"):
            graph.reset()
    with pytest.raises(RuntimeError, match="holds a recording already"), gpu.graph(graph):
        pass
    graph.replay()
    assert y.tolist() == [2.0] * 3


def test_a_stream_that_does_not_come_back(gpu):
    side, x = gpu.Stream(), mica.ones(3, device=DEVICE)
    graph = new(gpu)
    with pytest.raises(RuntimeError, match="was not waited for"), gpu.graph(graph):
        side.wait_stream(gpu.current_stream())
        with gpu.stream(side):
            y = x + 1  # noqa: F841
    with gpu.graph(graph):
        z = x + 5
    graph.replay()
    assert z.tolist() == [6.0] * 3


@pytest.mark.parametrize("waits", [False, True])
def test_another_thread_uses_the_device_meanwhile(gpu, waits):
    x, said = mica.ones(64, device=DEVICE), []

    def elsewhere():
        try:
            for n in range(5):
                y = mica.full((64,), float(n), device=DEVICE) + 1
                if waits:
                    gpu.synchronize()
                    mica.empty_cache(DEVICE)
                said.append(y.sum().item())
        except Exception as error:  # noqa: BLE001 - compared below
            said.append(str(error))

    graph = new(gpu)
    with gpu.graph(graph):
        y = x * 2
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        z = y + 1
    graph.replay()
    assert z.tolist() == [3.0] * 64
    assert said == [64.0 * (n + 1) for n in range(5)]


def test_threads_wait_for_the_device_while_others_record(gpu):
    x, said, done = mica.ones(100, device=DEVICE), [], threading.Event()

    def guarded(function):
        def run():
            try:
                function()
            except Exception as error:  # noqa: BLE001 - compared below
                said.append(str(error))

        return threading.Thread(target=run)

    def wait():
        while not done.is_set():
            gpu.synchronize()
            mica.empty_cache(DEVICE)

    def record():
        stream = gpu.Stream()
        for _ in range(100):
            graph = new(gpu)
            with gpu.stream(stream):
                graph.capture_begin()
                y = x + 1
                graph.capture_end()
            graph.replay()
            assert y[3].item() == 2

    waiting, recording = [guarded(wait) for _ in range(3)], [guarded(record) for _ in range(2)]
    for thread in waiting + recording:
        thread.start()
    for thread in recording:
        thread.join()
    done.set()
    for thread in waiting:
        thread.join()
    assert said == []


def test_a_thread_that_ends_while_it_records(gpu):
    graphs = [new(gpu), new(gpu)]

    def work():
        gpu.set_stream(gpu.Stream())
        graphs[0].capture_begin()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    del graphs[0]
    gc.collect()
    x = mica.ones(4, device=DEVICE)
    with gpu.graph(graphs[0]):
        y = x + 1
    graphs[0].replay()
    assert y.tolist() == [2.0] * 4


def test_a_graph_of_another_device(gpu):
    if gpu.device_count() < 2:
        pytest.skip("there is one device")
    x = mica.ones(3, device=f"{DEVICE}:0")
    graph, y = recorded(gpu, lambda: x + 1)
    with gpu.device(1):
        graph.replay()
    assert y.tolist() == [2.0] * 3


def test_a_device_without_graphs():
    with pytest.raises(NotImplementedError, match="computes at once"):
        mica._C._graph_begin(mica._C._new_graph(), mica.device("cpu"), 0, 0)


def test_a_child_drops_what_its_parent_records(simt_plugin):
    program = """
import gc, os, sys
import mica
from mica._devices import modules
gpu = modules.of(sys.argv[1])
g = gpu.CUDAGraph() if sys.argv[1] == "cuda" else gpu.Graph()
x = mica.ones(3, device=sys.argv[1])
gpu.synchronize()
gpu.set_stream(gpu.Stream())
g.capture_begin()
y = x + 1
if (child := os.fork()) == 0:
    del g
    gc.collect()
    os._exit(0)
print(os.waitpid(child, 0)[1])
g.capture_end()
g.replay()
print(y.tolist())
"""
    plugins = {"MICA_PLUGINS": simt_plugin} if IS_SIMULATED else {}
    assert printed(program, DEVICE, **plugins) == "0\n[2.0, 2.0, 2.0]\n"


def test_the_end_of_a_process_with_a_graph(simt_plugin):
    program = """
import sys
import mica
from mica._devices import modules
gpu = modules.of(sys.argv[1])
new = gpu.CUDAGraph if sys.argv[1] == "cuda" else gpu.Graph
x, g = mica.ones(4, device=sys.argv[1]), new()
with gpu.graph(g):
    y = x + 1
g.replay()
h = new()
stream = gpu.Stream()
gpu.set_stream(stream)
h.capture_begin()  # never ended
print("end")
"""
    plugins = {"MICA_PLUGINS": simt_plugin} if IS_SIMULATED else {}
    assert printed(program, DEVICE, **plugins) == "end\n"
