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
    """Runs a graph node by node; subclasses do something else, or more, at each.

    As `torch.fx.Interpreter`. Override `run_node` to see every node, or `call_function`, `call_module`,
    ... for those of a kind.

    Args:
        module (Module): A GraphModule, or a module with the attributes that `graph` names.
        garbage_collect_values (bool): Drop each value after its last use. Default: True.
        graph (Graph, optional): The graph. Default: `module.graph`.

    Attributes:
        env (dict of Node to object): The values so far.

    Example:
        >>> class Loud(mica.fx.Interpreter):
        ...     def run_node(self, n):
        ...         value = super().run_node(n)
        ...         print(n.name, value)
        ...         return value
        >>> Loud(mica.fx.symbolic_trace(lambda x: x + 1)).run(mica.ones(1))
        x tensor([1.])
        add tensor([2.])
        output tensor([2.])
        tensor([2.])
    """

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
        """Runs the graph.

        Args:
            *args: Arguments of the graph's function.
            initial_env (dict of Node to object, optional): Values of nodes that are not run. Default: none.
            enable_io_processing (bool): Take and return the trees of a traced function, not lists of
                leaves, where the graph knows them. Default: True.

        Returns:
            What the graph returns.

        Raises:
            RuntimeError: An argument is missing, or the module lacks an attribute. Errors of a node get a
                note that names it.
        """
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
        """Runs the graph and empties the list of its arguments, so that they can be freed early.

        Args:
            args_list (list): The arguments; empty afterwards.

        Returns:
            What the graph returns.
        """
        args = list(args_list)
        args_list.clear()
        return self.run(*args)

    def run_node(self, n: Node) -> Any:
        """Computes the value of a node, by the method that is named as its `op`.

        Args:
            n (Node): The node.

        Returns:
            Its value.
        """
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        return getattr(self, n.op)(n.target, args, kwargs)

    def placeholder(self, target: Any, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """Takes the next argument of the run, or its default.

        Args:
            target (str): Name of the argument.
            args (tuple): The default, if there is one.
            kwargs (dict): Empty.

        Returns:
            The argument.

        Raises:
            RuntimeError: There is neither.
        """
        if target.startswith("*"):
            return list(self.args_iter)
        try:
            return next(self.args_iter)
        except StopIteration:
            if args:
                return args[0]
            raise RuntimeError(f"The graph is run without a value for its argument ({target}).") from None

    def get_attr(self, target: Any, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """Reads an attribute of the module.

        Args:
            target (str): Path in the module: "encoder.weight".
            args (tuple): Empty.
            kwargs (dict): Empty.

        Returns:
            The attribute.
        """
        return self.fetch_attr(target)

    def call_function(self, target: Any, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """Calls a function.

        Args:
            target (callable): The function.
            args (tuple): Positional arguments, as values.
            kwargs (dict): Keyword arguments, as values.

        Returns:
            The result.
        """
        return target(*args, **kwargs)

    def call_method(self, target: Any, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """Calls a method of the first argument.

        Args:
            target (str): Name of the method.
            args (tuple): The object, and positional arguments, as values.
            kwargs (dict): Keyword arguments, as values.

        Returns:
            The result.
        """
        return getattr(args[0], target)(*args[1:], **kwargs)

    def call_module(self, target: Any, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """Calls a submodule.

        Args:
            target (str): Path in the module: "encoder.weight".
            args (tuple): Positional arguments, as values.
            kwargs (dict): Keyword arguments, as values.

        Returns:
            The result.
        """
        return self.fetch_attr(target)(*args, **kwargs)

    def output(self, target: Any, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """Gives what the graph returns.

        Args:
            target (str): "output".
            args (tuple): The result alone.
            kwargs (dict): Empty.

        Returns:
            The result.
        """
        return args[0]

    def fetch_attr(self, target: str) -> Any:
        """Reads the module's attribute at a path.

        Args:
            target (str): The path.

        Returns:
            The attribute.

        Raises:
            RuntimeError: There is none.
        """
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
        """Collects a node's arguments, with values in the places of nodes.

        Args:
            n (Node): The node.

        Returns:
            tuple: `(args, kwargs)`.
        """
        return self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(n.kwargs, n)

    def map_nodes_to_values(self, args: Argument, n: Node) -> Any:
        """Puts values in the places of nodes.

        Args:
            args (object): Nodes and values, nested.
            n (Node): The node whose arguments they are.

        Returns:
            The same nesting of values.
        """
        return map_arg(args, lambda used: self.env[used])


class Transformer(Interpreter):
    """Makes a new graph by running one on proxies: what the methods return is recorded.

    As `torch.fx.Transformer`. Override `call_function`, `call_module`, ... as in `Interpreter`.

    Args:
        module (GraphModule): The module to transform.

    Example:
        >>> class SinToCos(mica.fx.Transformer):
        ...     def call_function(self, target, args, kwargs):
        ...         return super().call_function(mica.cos if target is mica.sin else target, args, kwargs)
        >>> traced = mica.fx.symbolic_trace(lambda x: mica.sin(x) + 1)
        >>> SinToCos(traced).transform()(mica.zeros(1))
        tensor([2.])
    """

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
        """Runs the graph and returns the GraphModule of what was recorded."""
        result = super().run(enable_io_processing=False)
        if result is not None:
            self.new_graph.output(map_proxies(result))
        self.new_graph.in_spec, self.new_graph.out_spec = self.graph.in_spec, self.graph.out_spec
        return GraphModule(self.module, self.new_graph)


def map_proxies(a: Argument) -> Argument:
    """`a` with the nodes behind the proxies in it."""
    from mica.fx._node import map_aggregate

    return map_aggregate(a, lambda x: x.node if isinstance(x, Proxy) else x)
