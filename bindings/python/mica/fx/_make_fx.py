"""make_fx: a function of tensors as the graph of the operators that it calls."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from mica.fx._graph_module import GraphModule
from mica.fx._interpreter import Interpreter
from mica.fx._recording import record, to_graph

_MODES = ("real", "fake", "symbolic")


class _Substituting(Interpreter):
    """Runs a graph with other functions in the places of some operators."""

    def __init__(self, module: GraphModule, table: Mapping[Any, Callable[..., Any]]) -> None:
        super().__init__(module)
        self._table = table

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        return self._table.get(target, target)(*args, **kwargs)

    def call_module(self, target: Any, args: Any, kwargs: Any) -> Any:
        # The new trace makes guards of its own.
        return None if target == "size_guards" else super().call_module(target, args, kwargs)


def _once(function: Callable[..., Any], args: tuple[Any, ...], mode: str) -> GraphModule:
    if mode == "symbolic":
        from mica.fx._symbolic import symbolic_graph

        graph, attributes = symbolic_graph(function, args)
    else:
        graph, attributes = to_graph(record(function, args, fake=mode == "fake"))
        for node in graph.nodes:
            node.meta.pop("number", None)
    name = getattr(function, "__name__", "traced")
    return GraphModule(attributes, graph, name if name.isidentifier() else "traced")


def make_fx(
    f: Callable[..., Any],
    decomposition_table: Mapping[Any, Callable[..., Any]] | None = None,
    tracing_mode: str = "real",
) -> Callable[..., GraphModule]:
    """A function that runs `f` on its arguments and returns a GraphModule of the operators that
    were called: in-place operators and views as they are, composites whole, transforms and
    backward as what they compute. What `f` captured becomes an attribute.

    `tracing_mode` "real" computes; "fake" computes shapes alone, without memory; "symbolic" does
    that with symbolic sizes, so that the graph runs for other sizes too, within the guards that
    it checks. `decomposition_table` maps operators (mica.ops.mica.x.default) to functions that
    are traced in their place.

    Python sees no values in a trace: `if x.sum() > 0`, x.item() and printing values raise."""
    if tracing_mode not in _MODES:
        raise ValueError(f"make_fx: tracing_mode ({tracing_mode!r}) must be one of {', '.join(_MODES)}.")
    if not callable(f):
        raise TypeError(f"make_fx takes a function, but it is a {type(f).__name__}.")

    @functools.wraps(f)
    def wrapped(*args: Any) -> GraphModule:
        made = _once(f, args, tracing_mode)
        table = decomposition_table or {}
        while any(n.op == "call_function" and n.target in table for n in made.graph.nodes):
            made = _once(_Substituting(made, table).run, args, tracing_mode)
        return made

    return wrapped
