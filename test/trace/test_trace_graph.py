"""mica.fx's graphs as data: made, changed, run and transformed; modules traced by proxies."""

from __future__ import annotations

import functools
import operator
import pickle
from typing import Any

import pytest
from compare import same

import mica
from mica import fx, nn
from mica.fx import make_fx

ops = mica.ops.mica


close = functools.partial(same, rtol=1e-5, atol=1e-6)


def test_a_graph_is_made_and_changed() -> None:
    graph = fx.Graph()
    x = graph.placeholder("x")
    y = graph.call_function(ops.add.Tensor, (x, x))
    z = graph.call_method("relu", (y,))
    unused = graph.call_function(ops.neg.default, (x,))
    graph.output((z, [y]))
    graph.lint()
    assert list(y.users) == [z, graph.output_node()] and unused in x.users
    with pytest.raises(RuntimeError, match="is used by"):
        graph.erase_node(y)
    assert graph.eliminate_dead_code() and unused not in list(graph.nodes)
    with graph.inserting_before(z):
        doubled = graph.call_function(operator.mul, (y, 2))
    y.replace_all_uses_with(doubled, delete_user_cb=lambda user: user is z)
    assert z.args == (doubled,) and [n.name for n in graph.nodes] == ["x", "add", "mul", "relu", "output"]
    module = fx.GraphModule({}, graph)
    found, (twice,) = module(mica.tensor([-1.0, 2.0]))
    assert found.tolist() == [0, 8] and twice.tolist() == [-2, 4]
    assert "mul = add * 2" in module.code
    other = fx.Graph()
    with pytest.raises(RuntimeError, match="node of another graph"):
        other.call_method("relu", (y,))
    with pytest.raises(TypeError, match="cannot be iterated"):
        list(y)
    y.prepend(z)
    with pytest.raises(RuntimeError, match="not in the graph before it"):
        graph.lint()


def test_interpreter_and_transformer() -> None:
    module = make_fx(lambda x: (x.sin() + 1).relu())(mica.ones(3))
    seen: list[str] = []

    class Show(fx.Interpreter):
        def run_node(self, n: Any) -> Any:
            seen.append(n.op)
            return super().run_node(n)

    x = mica.randn(3)
    assert close(Show(module).run(x), (x.sin() + 1).relu())
    assert seen == ["placeholder", "call_function", "call_function", "call_function", "output"]

    class Cosine(fx.Transformer):
        def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
            if target is ops.sin.default:
                target = ops.cos.default
            return super().call_function(target, args, kwargs)

    assert close(Cosine(module).transform()(x), (x.cos() + 1).relu())
    with pytest.raises(RuntimeError, match=r"without a value for its argument \(x_1\)"):
        fx.Interpreter(module).run()


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
        self.scale = nn.Parameter(mica.full((3,), 2.0))

    def forward(self, x: Any, shift: float = 1.0) -> Any:
        y = self.layers(x) * self.scale
        a, b = y.chunk(2, dim=0)
        return (a + b).view(x.shape[1], -1) + shift


def test_symbolic_trace_of_a_module() -> None:
    block = Block()
    module = fx.symbolic_trace(block)
    assert [n.target for n in module.graph.nodes if n.op == "call_module"] == ["layers.0", "layers.1"]
    x = mica.randn(4, 3)
    assert close(module(x), block(x)) and close(module(x, 5.0), block(x, 5.0))
    assert close(pickle.loads(pickle.dumps(module))(x), block(x))
    module.graph.lint()
    functional = fx.symbolic_trace(lambda x: mica.relu(x) + nn.functional.gelu(x))
    assert close(functional(x), mica.relu(x) + nn.functional.gelu(x))
    for bad in (lambda x: x if x.sum() > 0 else -x, lambda x: [y + 1 for y in x], lambda x: len(x)):
        with pytest.raises(ValueError, match="known in a run alone"):
            fx.symbolic_trace(bad)


def halved(x: Any) -> Any:
    return x * 0.5


class _Checked(nn.Module):
    def forward(self, x: Any) -> Any:
        mica._assert(x.ndim == 2, "a matrix")
        return halved(x) + 1


def test_functions_that_a_tracer_is_told_of_are_whole_and_checks_are_recorded() -> None:
    tracer = fx.Tracer(autowrap_functions=(halved,))
    graph = tracer.trace(_Checked())
    assert graph._tracer_cls is fx.Tracer
    assert any(n.target is halved for n in graph.nodes)
    assert all(n.target is not halved for n in fx.Tracer().trace(_Checked()).nodes)
    module = fx.GraphModule(tracer.root, graph)
    assert mica.equal(module(mica.ones(2, 2)), mica.full((2, 2), 1.5))
    with pytest.raises(AssertionError, match="a matrix"):
        module(mica.ones(2))


def test_parameters_under_numbered_modules_are_reached() -> None:
    net = nn.Module()
    net.parts = nn.ModuleList([nn.LayerNorm(3)])
    graph = fx.Graph()
    graph.output(graph.get_attr("parts.0.weight"))
    assert mica.equal(fx.GraphModule(net, graph)(), mica.ones(3))


def test_an_optimizer_that_reads_the_number_of_its_step_is_refused() -> None:
    w = mica.ones(3, requires_grad=True)
    for kind, refused in ((mica.optim.Adam, True), (mica.optim.NAdam, True), (mica.optim.SGD, False)):
        optimizer = kind([w], lr=0.1)

        def step(x: Any, optimizer: Any = optimizer) -> Any:
            w.grad = x
            optimizer.step()
            return w.detach()

        step(mica.ones(3))
        if refused:
            with pytest.raises(RuntimeError, match="would repeat that step for ever"):
                make_fx(step)(mica.ones(3))
        else:
            make_fx(step)(mica.ones(3))
