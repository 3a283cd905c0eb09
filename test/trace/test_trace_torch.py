"""Programs over torch.fx, which give the same nodes and the same numbers with mica.fx."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.fx.passes.shape_prop
import torch.fx.subgraph_rewriter

import mica
import mica.fx.passes.shape_prop
import mica.fx.subgraph_rewriter


def _nodes(graph: Any) -> list[Any]:
    return [(n.op, n.name, str(n.args), str(n.kwargs)) for n in graph.nodes]


def _net(L: Any) -> Any:
    class Block(L.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = L.nn.Linear(4, 4), L.nn.Linear(4, 4)
            self.again = self.first

        def forward(self, x: Any, scale: float = 2.0) -> Any:
            y = L.relu(self.first(x)) * scale
            z = self.second(y).relu() + L.relu(x)
            return L.cat([y, z], dim=1).sum(-1)

    with L.no_grad():
        net = Block()
        for k, p in enumerate(net.parameters()):
            p.copy_(L.linspace(-1.0, 1.0 + k, p.numel()).reshape(p.shape))
    return net


def _run(L: Any, module: Any) -> list[float]:
    return [round(v, 4) for v in module(L.linspace(-1, 1, 12).reshape(3, 4)).flatten().tolist()]


def traced(L: Any) -> Any:
    module = L.fx.symbolic_trace(_net(L))
    return _nodes(module.graph), _run(L, module), sorted(module.state_dict())


def replaced(L: Any, how: int) -> Any:
    """Patterns: a call, two that share an input, one of several results, a constant, none."""
    fx, found = L.fx, []

    def program(x: Any) -> Any:
        a = L.relu(x) + L.relu(-x)
        b = L.sigmoid(x) * L.tanh(x)
        c = L.clamp(x, 0, 1) + L.clamp(x, 0, 2)
        return L.neg(a).abs() + b * c + L.relu(L.relu(x))

    patterns: list[tuple[Callable[..., Any], Callable[..., Any]]] = [
        (lambda x: L.relu(x), lambda x: L.clamp(x, min=0.5)),
        (lambda x: L.sigmoid(x) * L.tanh(x), lambda x: L.erf(x)),
        (lambda x, y: L.neg(x + y).abs(), lambda x, y: (x - y).abs()),
        (lambda x: L.clamp(x, 0, 2), lambda x: L.clamp(x, 0, 3)),
        (lambda x: L.cos(x), lambda x: x),
        (lambda x: L.relu(L.relu(x)), lambda x: L.relu(x)),
    ]
    module = fx.symbolic_trace(program)
    matches = fx.replace_pattern(module, *patterns[how])
    module.graph.lint()
    found.append(len(matches))
    found.append(sorted(n.name.rstrip("_0123456789") for n in module.graph.nodes))
    return [*found, _run(L, module)]


def filtered(L: Any) -> Any:
    module = L.fx.symbolic_trace(lambda x: L.clamp(x, 0, 1) + L.clamp(x, 0, 2))
    rewriter = L.fx.subgraph_rewriter
    found = rewriter.replace_pattern_with_filters(
        module,
        lambda x: L.clamp(x, 0, 7),
        lambda x: x * 3,
        match_filters=[lambda match, original, pattern: match.returning_nodes[0].args[2] == 2],
        ignore_literals=True,
    )
    return len(found), [len(f.replacements) for f in found], _run(L, module)


def own_tracer(L: Any) -> Any:
    class Leafless(L.fx.Tracer):  # type: ignore[misc, name-defined]
        def is_leaf_module(self, m: Any, module_qualified_name: str) -> bool:
            return isinstance(m, L.nn.ReLU)

        def create_node(self, *args: Any, **kwargs: Any) -> Any:
            node = super().create_node(*args, **kwargs)
            node.tag = "mine"
            return node

        def to_bool(self, obj: Any) -> bool:
            return True

    net = L.nn.Sequential(L.nn.Linear(4, 4), L.nn.ReLU())
    graph = Leafless().trace(net)
    branch = Leafless().trace(lambda x: x + 1 if x.sum() > 0 else x - 1)
    return (
        [n.op for n in graph.nodes],
        {n.tag for n in graph.nodes},
        [n.name for n in branch.nodes],
    )


def by_hand(L: Any) -> Any:
    graph = L.fx.Graph()
    tracer = L.fx.proxy.GraphAppendingTracer(graph)
    x = L.fx.Proxy(graph.placeholder("x"), tracer)
    y = (2 - x) @ x.t() + L.sin(x)[:, :3].sum(dim=1, keepdim=True)
    graph.output((y + 1).node)
    module = L.fx.GraphModule(L.nn.Module(), graph)
    return [n.name for n in graph.nodes], _run(L, module)


def transformed(L: Any) -> Any:
    class Swap(L.fx.Transformer):  # type: ignore[misc, name-defined]
        def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
            if target is operator.mul:
                return super().call_function(operator.add, args, kwargs)
            return super().call_function(target, args, kwargs)

    module = Swap(L.fx.symbolic_trace(_net(L))).transform()
    return [n.name for n in module.graph.nodes], _run(L, module)


def named(L: Any) -> Any:
    """Names of nodes and the source: paths of modules, capitals, one name again, operators."""

    class Block(L.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.layer1 = L.nn.Sequential(L.nn.Linear(4, 4), L.nn.ReLU())
            self.byName = L.nn.ModuleDict({"aB": L.nn.Linear(4, 4)})

        def forward(self, x: Any) -> Any:
            x = self.layer1(x)
            x = self.byName["aB"](self.layer1[1](self.layer1[1](x)))
            y = x @ x.T
            z = -y + (y > 1) * ~(y <= 2)
            a, b = L.einsum("ab,bc->ac", [y, z]), L.einsum("ab,bc->ac", y, z)
            return a.sum(0) ** 2 + b.sum().max()

    module = L.fx.symbolic_trace(Block())
    code = [line.strip() for line in module.code.splitlines() if line.strip()]
    plain = [line for line in code if not any(word in line for word in ("def ", "getattr(", "einsum"))]
    return _nodes(module.graph), plain


def shapes(L: Any) -> Any:
    module = L.fx.symbolic_trace(_net(L))
    L.fx.passes.shape_prop.ShapeProp(module).propagate(L.ones(3, 4))
    return [
        (n.name, tuple(m.shape), str(m.dtype).rpartition(".")[2], m.stride)
        for n in module.graph.nodes
        if (m := n.meta.get("tensor_meta")) is not None
    ]


PROGRAMS = [traced, filtered, own_tracer, by_hand, transformed, named, shapes]


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs(program: Callable[[Any], Any]) -> None:
    assert program(mica) == program(torch)


@pytest.mark.parametrize("how", range(6))
def test_patterns(how: int) -> None:
    assert replaced(mica, how) == replaced(torch, how)
