"""Small programs over L (torch or Mica) that the rows of names*.txt call: tensors, modules, training, graphs.

A program returns what it computed; test_names_torch.py compares the two. Programs about operators from
Python, files and utilities are in name_services.py.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections import namedtuple
from typing import Any

Pair = namedtuple("Pair", "a b")


def raises(f: Any) -> str:
    """The class of what f raises, as Python knows it."""
    try:
        f()
    except Exception as error:
        return next(c.__name__ for c in type(error).__mro__ if c.__module__ == "builtins")
    return "nothing"


def refused(f: Any) -> Any:
    """What f gives, or that it refuses: without a device torch does so in several classes."""
    try:
        return f()
    except (RuntimeError, AssertionError, ValueError):
        return "refused"


def with_(block: Any, f: Any) -> Any:
    with block:
        return f()


# ---- autograd


def gradient(L: Any, run: Any, block: Any = None) -> Any:
    v = L.tensor([1.0, 2.0], requires_grad=True)
    if block is None:
        run((v * v).sum())
    else:
        with block:
            y = (v * v).sum()
        run(y)
    return v.grad


def gradient_of(L: Any) -> Any:
    v = L.tensor([1.0, 2.0], requires_grad=True)
    (first,) = L.autograd.grad((v**3).sum(), v, create_graph=True)
    return [first, L.autograd.grad(first.sum(), v), L.autograd.grad(v.sum(), [v], L.tensor(2.0))]


def increment(L: Any) -> Any:
    v = L.ones(2)
    before = v._version
    L.autograd.graph.increment_version(v)
    return v._version - before


def grad_with_hook(L: Any) -> Any:
    seen = []
    v = L.tensor([1.0, 2.0], requires_grad=True)
    v.register_hook(lambda g: g * 2)
    v.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.tolist()))
    (v * v).sum().backward()
    return [v.grad, seen]


def custom_function(L: Any, mark: Any = lambda f: f) -> Any:
    class Cube(L.autograd.Function):
        @staticmethod
        def forward(ctx: Any, v: Any) -> Any:
            ctx.save_for_backward(v)
            return v**3

        @staticmethod
        @mark
        def backward(ctx: Any, g: Any) -> Any:
            (v,) = ctx.saved_tensors
            return g * 3 * v**2

    v = L.tensor([2.0], requires_grad=True)
    Cube.apply(v).backward()
    return v.grad


def checkpointed(L: Any, **kwargs: Any) -> Any:
    v = L.tensor([1.0, 2.0], requires_grad=True)
    calls = []

    def block(u: Any) -> Any:
        calls.append(1)
        return (u * 2).exp().sin()

    L.utils.checkpoint.checkpoint(block, v, use_reentrant=False, **kwargs).sum().backward()
    return [v.grad, len(calls)]


# ---- tensors


def foreach(L: Any, name: str, *args: Any) -> Any:
    values = [L.tensor([1.0, -2.0]), L.tensor([[3.0]])]
    found = getattr(L, name)(values, *args)
    return values if name.endswith("_") else list(found)


def wrapper(L: Any) -> Any:
    class Wrapped(L.Tensor):
        @staticmethod
        def __new__(cls: Any, inner: Any) -> Any:
            return L.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

        @classmethod
        def __torch_dispatch__(cls, f: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return L.full((1,), 5.0)

    made = Wrapped(L.ones(2, 3))
    return [made.shape, made.dtype, type(made).__name__, made + 1]


def saved(L: Any, value: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        L.save(value, f"{folder}/a.pt")
        return L.load(f"{folder}/a.pt")


def same_draws(L: Any, get: Any, put: Any) -> Any:
    state = get()
    first = L.rand(3)
    put(state)
    return [first, L.rand(3)]


def recurrent(L: Any, kind: str, run: Any) -> Any:
    L.manual_seed(3)
    m = getattr(L.nn, kind)(2, 3)
    state = L.zeros(1, 1, 3)
    hidden = (state, state) if kind == "LSTM" else state
    weights = [p for _, p in m.named_parameters()]
    return list(run(L.ones(4, 1, 2), hidden, weights, True, 1, 0.0, False, False, False))


# ---- modules


def clipped(L: Any, clip: Any) -> Any:
    p = L.nn.Parameter(L.ones(2))
    (p * L.tensor([3.0, -4.0])).sum().backward()
    clip([p])
    return p.grad


def hooked(L: Any) -> Any:
    class Net(L.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = L.nn.Linear(2, 2)
            self.register_buffer("count", L.zeros(1))

        def forward(self, v: Any) -> Any:
            return self.inner(v) + self.count

    L.manual_seed(1)
    net = Net()
    net.register_forward_hook(lambda m, i, o: o * 2)
    return [net(L.ones(1, 2)), repr(net), list(net.state_dict())]


def everywhere(L: Any, register: Any, hook: Any) -> Any:
    handle = register(hook)
    try:
        return L.nn.ReLU()(L.tensor([-0.5, 2.0]))
    finally:
        handle.remove()


def lazy(L: Any) -> Any:
    L.manual_seed(2)
    m = L.nn.LazyLinear(2)
    return [m(L.ones(1, 3)), repr(m), m.weight]


def prefixed(L: Any) -> Any:
    state = {"module.a": 1, "b": 2}
    L.nn.modules.utils.consume_prefix_in_state_dict_if_present(state, "module.")
    return state


def parametrized(L: Any, module: Any) -> Any:
    class Double(L.nn.Module):
        def forward(self, v: Any) -> Any:
            return v * 2

    return L.nn.utils.parametrize.register_parametrization(module, "weight", Double())


def unparametrized(L: Any, change: Any) -> Any:
    L.manual_seed(4)
    m = change(L.nn.Linear(3, 2))
    return [m(L.ones(1, 3)), sorted(n for n, _ in m.named_parameters())]


def reparametrized(L: Any) -> Any:
    m = L.nn.Linear(2, 1, bias=False)
    with L.nn.utils.stateless._reparametrize_module(m, {"weight": L.ones(1, 2)}):
        return m(L.tensor([[2.0, 3.0]]))


def pruned(L: Any, prune: Any) -> Any:
    L.manual_seed(5)
    m = L.nn.Linear(3, 2)
    prune(m)
    return [m.weight, m.weight_mask, sorted(m.state_dict())]


def from_vector(L: Any, unpack: Any) -> Any:
    m = L.nn.Linear(2, 1)
    unpack(L.arange(3.0), m.parameters())
    return [m.weight, m.bias]


def abs_gram(v: Any) -> Any:
    return (v @ v.t()).round(decimals=4).abs()


# ---- optimizers


def stepped(L: Any, name: str, **kwargs: Any) -> Any:
    L.manual_seed(5)
    m = L.nn.Linear(3, 2)
    optim = getattr(L.optim, name)(m.parameters(), **kwargs)
    for n in range(5):

        def loss(n: int = n) -> Any:
            optim.zero_grad()
            value = m(L.arange(6.0).reshape(2, 3) * (0.1 * n + 0.1)).square().mean()
            value.backward()
            return value

        optim.step(loss)
    return [m.state_dict(), sorted(optim.state_dict()), repr(optim).splitlines()[0]]


def rates(L: Any, name: str, *args: Any, **kwargs: Any) -> Any:
    optim = L.optim.SGD([L.nn.Parameter(L.ones(1))], lr=0.1, momentum=0.5)
    schedule = getattr(L.optim.lr_scheduler, name)(optim, *args, **kwargs)
    found = []
    for _ in range(7):
        optim.step()
        schedule.step()
        found.append(float(optim.param_groups[0]["lr"]))
    return [found, schedule.last_epoch, [float(v) for v in schedule.get_last_lr()]]


def scheduled(L: Any) -> Any:
    return L.optim.SGD([L.nn.Parameter(L.ones(1))], lr=0.1)


def plateau(L: Any) -> Any:
    optim = scheduled(L)
    schedule = L.optim.lr_scheduler.ReduceLROnPlateau(optim, patience=1, factor=0.5, cooldown=1)
    rates = []
    for loss in (1.0, 0.9, 0.95, 0.95, 0.96, 0.97, 0.98, 0.5):
        optim.step()
        schedule.step(loss)
        rates.append(optim.param_groups[0]["lr"])
    return rates


def sequential(L: Any) -> Any:
    optim, S = scheduled(L), L.optim.lr_scheduler
    parts = [S.ConstantLR(optim, 0.1, 2), S.ExponentialLR(optim, 0.9)]
    schedule = S.SequentialLR(optim, parts, [3])
    rates = []
    for _ in range(6):
        optim.step()
        schedule.step()
        rates.append(optim.param_groups[0]["lr"])
    return rates


def swa_rates(L: Any) -> Any:
    optim = scheduled(L)
    schedule = L.optim.swa_utils.SWALR(optim, swa_lr=0.5, anneal_epochs=4)
    rates = []
    for _ in range(6):
        optim.step()
        schedule.step()
        rates.append(float(optim.param_groups[0]["lr"]))
    return rates


def averaged(L: Any) -> Any:
    L.manual_seed(6)
    m = L.nn.Linear(2, 1)
    mean = L.optim.swa_utils.AveragedModel(m)
    for _ in range(3):
        with L.no_grad():
            m.weight.add_(1.0)
        mean.update_parameters(m)
    return [mean.module.weight, mean.n_averaged, mean(L.ones(1, 2))]


# ---- distributions


def density(L: Any, name: str, *args: Any, at: Any = None, entropy: bool = True, **kwargs: Any) -> Any:
    d = getattr(L.distributions, name)(*args, **kwargs)
    where = L.zeros(d.batch_shape + d.event_shape) + 0.3 if at is None else at
    return [
        d.log_prob(where),
        d.entropy() if entropy else None,
        d.batch_shape,
        d.event_shape,
        d.sample((4,)).shape,
    ]


def drawn(L: Any, name: str, *args: Any, **kwargs: Any) -> Any:
    found = density(L, name, *args, **kwargs)
    kwargs.pop("at", None)
    L.manual_seed(8)
    return [*found, getattr(L.distributions, name)(*args, **kwargs).sample((2,))]


def generalized_pareto(L: Any, x: Any) -> Any:
    """With a tail that ends, one that does not, and the exponential's between them."""
    loc, tail = x * 0 + 0.5, x * (x.abs() > 0.5) / 4
    made = L.distributions.GeneralizedPareto(loc, x.exp(), tail)
    rest = [
        made.log_cdf(loc + 0.1),
        made.log_survival_function(loc + 0.1),
        made.mode,
        str(made.support)[:8],
        str(made),
    ]
    args = (loc, x.exp(), tail)
    return [
        *rest,
        *drawn(L, "GeneralizedPareto", *args, at=loc + 0.2),
        made.icdf(x.sigmoid()),
        made.expand((4, 2, 3)).mean,
    ]


def transformed(transform: Any, v: Any) -> Any:
    y = transform(v)
    return [y, transform.inv(y), transform.log_abs_det_jacobian(v, y), transform.bijective]


def registered_kl(L: Any, register: Any) -> Any:
    class Odd(L.distributions.Normal):
        pass

    register(Odd, Odd)(lambda p, q: "odd")
    return L.distributions.kl_divergence(Odd(0.0, 1.0), Odd(0.0, 1.0))


# ---- graphs


def traced(L: Any) -> Any:
    class Net(L.nn.Module):
        def forward(self, v: Any) -> Any:
            return L.relu(v).sum(1) + 2

    return L.fx.symbolic_trace(Net())


def built(L: Any) -> Any:
    graph = L.fx.Graph()
    v = graph.placeholder("v")
    added = graph.call_function(L.add, (v, 1))
    graph.output(graph.call_method("mul", (added, v)))
    graph.lint()
    made = L.fx.GraphModule(L.nn.Module(), graph)
    before = made(L.tensor([2.0]))
    added.target = L.sub
    made.recompile()
    return [before, made(L.tensor([2.0])), [n.name for n in graph.nodes]]


def proxied(L: Any) -> Any:
    seen = []

    def program(v: Any) -> Any:
        seen.append(isinstance(v, L.fx.Proxy))
        return (v + 1).abs()

    return [seen, [n.op for n in L.fx.symbolic_trace(program).graph.nodes], seen]


def replaced(L: Any) -> Any:
    """A graph in which relu and what follows it became a cosine."""

    class Net(L.nn.Module):
        def forward(self, v: Any) -> Any:
            return L.relu(v).sum(1) + 2

    graph = L.fx.symbolic_trace(Net())
    found = L.fx.replace_pattern(graph, lambda v: L.relu(v).sum(1), lambda v: v.cos().mean(1))
    return [len(found), graph(L.tensor([[1.0, -2.0]])), [n.op for n in graph.graph.nodes]]


def weights_given(L: Any) -> Any:
    """A recurrent network runs the tensors that a library puts in place of its weights."""
    network, x = L.nn.GRU(2, 2), L.ones(3, 2)
    for weight in network.parameters():
        L.nn.init.constant_(weight, 0.3)
    network._flat_weights = [w * 2 for w in network._flat_weights]
    results = [network(x)[0]]
    network.bias_hh_l0 = L.nn.Parameter(L.full((6,), 9.0))
    results.append(network(x)[0])
    return [*results, network.double()(x.double())[0]]


def sobol(L: Any, *given: Any) -> Any:
    """What a Sobol engine draws, from its start and after steps of every kind."""
    engine = L.quasirandom.SobolEngine(*given)
    drawn = [
        engine.draw(),
        engine.draw(3, dtype=L.float64),
        engine.fast_forward(5).draw(2),
        engine.num_generated,
    ]
    again = [engine.reset().fast_forward(3).draw(out=L.empty(0)), engine.reset().draw_base2(3)]
    return [*drawn, *again, repr(engine), engine.quasi, engine.sobolstate[:4]]


def replaced_parts(L: Any) -> Any:
    """Layers call the private parts that libraries' subclasses replace."""

    class Doubled(L.nn.Conv2d):
        def _conv_forward(self, input: Any, weight: Any, bias: Any) -> Any:
            return super()._conv_forward(input, weight * 2, bias)

    class AnyBatch(L.nn.BatchNorm2d):
        def _check_input_dim(self, input: Any) -> None:
            assert input.ndim == 2

    class Sized(L.nn.modules.conv._ConvTransposeNd):
        def forward(self, input: Any) -> Any:
            parts = self.stride, self.padding, self.kernel_size
            extra = self._output_padding(input, [6], *parts, 1, self.dilation)
            return L.nn.functional.conv_transpose1d(input, self.weight, None, 2, 0, extra)

    convolution = Doubled(1, 1, 2, padding_mode="circular", padding=1)
    sized = Sized(1, 1, (3,), (2,), (0,), (1,), True, (0,), 1, False, "zeros")
    for weight in (*convolution.parameters(), *sized.parameters()):
        L.nn.init.constant_(weight, 0.5)
    results = [convolution(L.ones(1, 1, 2, 2)), AnyBatch(2)(L.eye(2)), sized(L.ones(1, 1, 2)), repr(sized)]
    network = L.nn.Sequential(convolution, L.nn.BatchNorm1d(2))
    members = network._named_members(lambda m: [("fresh", L.ones(1))], prefix="net")
    index = L.nn.ModuleList(network)._get_abs_string_index(-1)
    return [*results, [name for name, _ in members], index, L.utils.data.DataLoader[int] is not None]


def per_sample(L: Any) -> Any:
    """The gradients of each sample, of a convolution, a norm and an embedding; what is refused."""
    call = L.nn.utils._per_sample_grad.call_for_per_sample_grads
    nn, found = L.nn, []
    for module, inputs in (
        (
            nn.Sequential(nn.Conv2d(2, 3, 2), nn.ReLU(), nn.GroupNorm(1, 3)),
            L.linspace(-1, 1, 100).reshape(2, 2, 5, 5),
        ),
        (nn.Sequential(nn.Embedding(5, 3), nn.LayerNorm(3)), L.arange(8).reshape(2, 4) % 5),
        (nn.Linear(3, 2), L.linspace(-1, 1, 24).reshape(2, 4, 3)),
    ):
        with L.no_grad():
            for p in module.parameters():
                p.copy_(L.linspace(-0.5, 1, p.numel()).reshape(p.shape))
        for reduction in ("sum", "mean"):
            for p in module.parameters():
                p.grad_sample = None
            y = call(module, loss_reduction=reduction)(inputs)
            (y.square().sum() if reduction == "sum" else y.square().flatten(1).sum(1).mean()).backward()
            found += [(p.grad_sample, p.grad) for p in module.parameters()]
    for bad in ({"batch_size": 0}, {"loss_reduction": "none"}):
        with contextlib.suppress(RuntimeError):
            call(nn.Linear(1, 1), **bad)(L.ones(1, 1))
            found.append("not refused")
    return found
