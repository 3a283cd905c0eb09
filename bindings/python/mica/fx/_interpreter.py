"""Interpreter: runs a GraphModule node by node; Transformer: makes a new one of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mica.fx._codegen import flatten_arguments
from mica.fx._graph import Graph
from mica.fx._graph_module import GraphModule
from mica.fx._node import Argument, Node, map_arg
from mica.fx._proxy import GraphAppendingTracer, Proxy
from mica.nn import Module
from mica.utils._pytree import tree_unflatten


class Interpreter:
    """Runs `module`'s graph. Override call_function, call_method, ... to do something else at a
    node, or run_node to see each of them; `self.env` has the values so far."""

    def __init__(
        self, module: Module, garbage_collect_values: bool = True, graph: Graph | None = None
    ) -> None:
        self.module = module
        self.graph: Graph = graph if graph is not None else module.graph  # type: ignore[assignment]
        self.garbage_collect_values = garbage_collect_values
        self.env: dict[Node, Any] = {}
        self.args_iter: Iterator[Any] = iter(())
        self.user_to_last_uses: dict[Node, list[Node]] = {}
        if garbage_collect_values:
            seen: set[Node] = set()
            for node in reversed(self.graph.nodes):
                for used in node.all_input_nodes:
                    if used not in seen:
                        seen.add(used)
                        self.user_to_last_uses.setdefault(node, []).append(used)

    def run(
        self, *args: Any, initial_env: dict[Node, Any] | None = None, enable_io_processing: bool = True
    ) -> Any:
        """The graph's result for these arguments. Nodes that `initial_env` holds are not run."""
        self.env = dict(initial_env or {})
        if enable_io_processing and self.graph.in_spec is not None:
            args = tuple(flatten_arguments(args, self.graph.in_spec))
        self.args_iter = iter(args)
        for node in self.graph.nodes:
            if node in self.env:
                continue
            try:
                self.env[node] = self.run_node(node)
            except Exception as error:
                if not getattr(error, "_mica_fx_node", None) and hasattr(error, "add_note"):
                    error.add_note(f"While the graph's node ({node.format_node()}) was run.")
                    error._mica_fx_node = node.name  # type: ignore[attr-defined]
                raise
            for used in self.user_to_last_uses.get(node, ()):
                del self.env[used]
            if node.op == "output":
                result = self.env[node]
                if enable_io_processing and self.graph.out_spec is not None:
                    result = tree_unflatten(result, self.graph.out_spec)
                return result
        return None

    def boxed_run(self, args_list: list[Any]) -> Any:
        """Like run, and empties the list, so that arguments die after their last use."""
        args = list(args_list)
        args_list.clear()
        return self.run(*args)

    def run_node(self, n: Node) -> Any:
        """The value of one node."""
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        return getattr(self, n.op)(n.target, args, kwargs)

    def placeholder(self, target: Any, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """The next argument, or its default."""
        if target.startswith("*"):
            return list(self.args_iter)
        try:
            return next(self.args_iter)
        except StopIteration:
            if args:
                return args[0]
            raise RuntimeError(f"The graph is run without a value for its argument ({target}).") from None

    def get_attr(self, target: Any, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """An attribute of the module."""
        return self.fetch_attr(target)

    def call_function(self, target: Any, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """Calls the function."""
        return target(*args, **kwargs)

    def call_method(self, target: Any, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """Calls the method of the first argument."""
        return getattr(args[0], target)(*args[1:], **kwargs)

    def call_module(self, target: Any, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """Calls the submodule."""
        return self.fetch_attr(target)(*args, **kwargs)

    def output(self, target: Any, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """What the graph returns."""
        return args[0]

    def fetch_attr(self, target: str) -> Any:
        """The module's attribute at a path."""
        value: Any = self.module
        for i, part in enumerate(target.split(".")):
            if not hasattr(value, part):
                raise RuntimeError(
                    f"The graph names the attribute ({target}), but the module has no "
                    f"({'.'.join(target.split('.')[: i + 1])})."
                )
            value = getattr(value, part)
        return value

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The node's arguments with values in the places of nodes."""
        return self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(n.kwargs, n)

    def map_nodes_to_values(self, args: Argument, n: Node) -> Any:
        """`args` with the values of the nodes in it."""
        return map_arg(args, lambda used: self.env[used])


class Transformer(Interpreter):
    """Runs a graph on proxies, so that what its methods return becomes a new graph."""

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module)
        self.new_graph = Graph()
        self.tracer = GraphAppendingTracer(self.new_graph)

    def placeholder(self, target: Any, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        default = args[0] if args else ...
        return Proxy(self.new_graph.placeholder(target, default_value=default), self.tracer)

    def get_attr(self, target: Any, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_module(self, target: Any, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        return self.tracer.create_proxy("call_module", target, args, kwargs)

    def call_function(self, target: Any, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def transform(self) -> GraphModule:
        """The new module."""
        result = super().run(enable_io_processing=False)
        if result is not None:
            self.new_graph.output(map_proxies(result))
        self.new_graph.in_spec, self.new_graph.out_spec = self.graph.in_spec, self.graph.out_spec
        return GraphModule(self.module, self.new_graph)


def map_proxies(a: Argument) -> Argument:
    """`a` with the nodes behind the proxies in it."""
    from mica.fx._node import map_aggregate

    return map_aggregate(a, lambda x: x.node if isinstance(x, Proxy) else x)
