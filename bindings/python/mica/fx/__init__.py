"""mica.fx: programs as graphs, with torch.fx's names and meanings.

make_fx records the operators that a function calls, in whatever transforms; symbolic_trace
records what Python code does with a module's arguments. Both give a GraphModule, which can
be printed, run, walked and changed."""

from __future__ import annotations

from mica.fx import (
    experimental as experimental,
    graph as graph,
    graph_module as graph_module,
    interpreter as interpreter,
    node as node,
    operator_schemas as operator_schemas,
    passes as passes,
    proxy as proxy,
)
from mica.fx._graph import Graph as Graph
from mica.fx._graph_module import GraphModule as GraphModule
from mica.fx._interpreter import (
    Interpreter as Interpreter,
    Transformer as Transformer,
)
from mica.fx._make_fx import (
    decompose as decompose,
    make_fx as make_fx,
)
from mica.fx._node import (
    Node as Node,
    map_arg as map_arg,
)
from mica.fx._proxy import (
    Proxy as Proxy,
    Tracer as Tracer,
    symbolic_trace as symbolic_trace,
    wrap as wrap,
)
from mica.fx._size_guards import (
    check_guard as check_guard,
    sym_size as sym_size,
)
from mica.fx._symint import SymInt as SymInt
from mica.fx.subgraph_rewriter import (
    replace_pattern as replace_pattern,
)

__all__ = [
    "Graph",
    "GraphModule",
    "Interpreter",
    "Node",
    "Proxy",
    "SymInt",
    "Tracer",
    "Transformer",
    "check_guard",
    "decompose",
    "make_fx",
    "map_arg",
    "replace_pattern",
    "sym_size",
    "symbolic_trace",
    "wrap",
]
