"""mica.fx.operator_schemas: signatures of every operator, and calls whose arguments are written in one way."""

from __future__ import annotations

import inspect
import pickle
from typing import Any

import pytest

import mica
from mica import fx, ops
from mica.fx.operator_schemas import (
    ArgsKwargsPair,
    get_signature_for_torch_op,
    normalize_function,
    normalize_module,
)

NAMES = sorted(
    {
        name.partition("::")[2].partition(".")[0]
        for name in mica._C._operator_names()
        if name.startswith("mica::")
    }
)


def test_every_operator_has_the_signature_of_its_schema() -> None:
    seen = 0
    for name in NAMES:
        packet = getattr(ops.mica, name)
        signatures, schemas = get_signature_for_torch_op(packet, return_schemas=True)
        for which, signature, schema in zip(packet.overloads(), signatures, schemas, strict=True):
            overload = getattr(packet, which)
            assert overload._schema is schema and len(signature.parameters) == len(schema.arguments)
            for p, argument in zip(signature.parameters.values(), schema.arguments, strict=True):
                assert p.name == ("input" if argument.name == "self" else argument.name)
                assert (p.kind is p.KEYWORD_ONLY) == argument.kwarg_only
                assert (f" {argument.name}=" in str(schema)) == (p.default is not p.empty), (name, p)
                assert not isinstance(p.default, str) or argument.type.startswith("str"), (name, p)
                if argument.type == "ScalarType" and p.default is not p.empty:
                    assert isinstance(p.default, mica.dtype), (name, p)
                seen += 1
    assert seen > 5000


@pytest.mark.parametrize("function", [mica.add, mica.linalg.det, mica.fft.fft, mica.special.erf, mica.cat])
def test_functions_are_found(function: Any) -> None:
    assert all(isinstance(s, inspect.Signature) for s in get_signature_for_torch_op(function))


def test_what_is_no_operator_has_none() -> None:
    assert get_signature_for_torch_op(len) is None
    assert get_signature_for_torch_op(lambda x: x, return_schemas=True) == (None, None)
    assert normalize_function(len, ([],)) is None


def test_calls_are_written_in_one_way() -> None:
    kinds = (mica.Tensor, mica.Tensor)
    by_name = normalize_function(mica.add, (1, 2), {"alpha": 3}, kinds, normalize_to_only_use_kwargs=True)
    assert by_name == ArgsKwargsPair((), {"input": 1, "other": 2, "alpha": 3})
    assert normalize_function(mica.add, (1, 2)) is None  # a tensor or a number
    number = normalize_function(mica.add, (1, 2), None, (mica.Tensor, float))
    assert number is not None and number.args == (1, 2, 1)
    assert normalize_function(mica.add, (), {"other": 2}) is None
    assert normalize_function(lambda x, y=5: x, (1,)) == ArgsKwargsPair((1, 5), {})


def test_modules_calls_are_written_in_one_way() -> None:
    net = mica.nn.Sequential(mica.nn.MultiheadAttention(4, 2))
    found = normalize_module(net, "0", (1, 2), {"value": 3}, normalize_to_only_use_kwargs=True)
    assert found is not None and found.args == ()
    assert found.kwargs["query"] == 1 and found.kwargs["value"] == 3 and found.kwargs["need_weights"] is True
    assert normalize_module(net, "0", ()) is None
    with pytest.raises(AttributeError):
        normalize_module(net, "nothing", ())


class CallsOperators(mica.nn.Module):
    def forward(self, a: mica.Tensor) -> mica.Tensor:
        b = ops.mica.sigmoid(a)
        return ops.mica.add.Tensor(ops.mica.cat([a, b]), 1.0 * ops.mica.cat((b, a)))


def test_operators_are_traced_printed_and_pickled() -> None:
    graph_module = fx.symbolic_trace(CallsOperators())
    x = mica.tensor([0.0, 1.0])
    targets = [n.target for n in graph_module.graph.nodes if n.op == "call_function"]
    assert ops.mica.sigmoid in targets and ops.mica.add.Tensor in targets
    assert "mica.ops.mica.sigmoid(a)" in graph_module.code
    expected = CallsOperators()(x).tolist()
    assert graph_module(x).tolist() == expected
    assert pickle.loads(pickle.dumps(graph_module))(x).tolist() == expected


def test_a_wrong_call_of_an_operator_stays_a_type_error() -> None:
    with pytest.raises(TypeError, match="self"):
        ops.mica.relu.default("x")


@pytest.mark.parametrize("target", [mica.add, ops.mica.add_.Tensor])
def test_a_tracer_can_refuse_what_writes(target: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fx.proxy.TracerBase, "check_mutable_operations", True)
    graph, out = fx.Graph(), mica.zeros(2)
    tracer = fx.proxy.GraphAppendingTracer(graph)
    x = fx.Proxy(graph.placeholder("x"), tracer)
    kwargs = {"out": out} if target is mica.add else {}
    with pytest.raises(RuntimeError, match="Tried to trace mutable operation"):
        target(x, x, **kwargs)
    assert isinstance(mica.add(x, x), fx.Proxy)
    assert isinstance(ops.mica.bernoulli.default(x), fx.Proxy)  # draws, and writes nothing
