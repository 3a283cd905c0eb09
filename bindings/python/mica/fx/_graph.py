"""Graph: a program as a list of nodes, with torch.fx's methods."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Callable, Iterator
from typing import Any

from mica.fx._codegen import PythonCode, generate
from mica.fx._node import OPS, Argument, Node, Target, map_arg, target_name
from mica.ops import OpOverload
from mica.utils._pytree import TreeSpec

_RESERVED = frozenset(keyword.kwlist) | frozenset(dir(builtins)) | {"mica", "self", "operator", "math"}


class _Names:
    """Names that are given once each; one that is taken gets the next number."""

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._last: dict[str, int] = {}

    def new(self, wish: str) -> str:
        name = re.sub(r"[^0-9a-zA-Z_]+", "_", wish) or "_unnamed"
        if name[0].isdigit():
            name = "_" + name
        base, given = re.fullmatch(r"(.*?)(?:_(\d+))?", name).groups()  # type: ignore[union-attr]
        number = int(given or 0) or self._last.get(base, 0)
        while name in self._used or name in _RESERVED:
            number += 1
            name = f"{base}_{number}"
        self._last[base] = number
        self._used.add(name)
        return name


class _NodeList:
    """The nodes in order; stays right while the graph is changed."""

    def __init__(self, graph: Graph, forward: bool = True) -> None:
        self._graph = graph
        self._forward = forward

    def __len__(self) -> int:
        return self._graph._count

    def __iter__(self) -> Iterator[Node]:
        root = self._graph._root
        node = root._next if self._forward else root._prev
        while node is not root:
            following = node._next if self._forward else node._prev
            yield node
            # The node may have been erased or moved meanwhile.
            node = following if node._next is node else (node._next if self._forward else node._prev)

    def __reversed__(self) -> _NodeList:
        return _NodeList(self._graph, not self._forward)

    def __getitem__(self, i: Any) -> Any:
        return list(self)[i]

    def __contains__(self, node: object) -> bool:
        return any(n is node for n in self)


class _InsertPoint:
    def __init__(self, graph: Graph, before: Node) -> None:
        self._graph = graph
        self._saved = graph._insert_before
        graph._insert_before = before

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        self._graph._insert_before = self._saved


def _name_of(target: Target) -> str:
    if isinstance(target, OpOverload):
        return target.packet_name
    name = target if isinstance(target, str) else getattr(target, "__name__", "call")
    if name.startswith("__") and name.endswith("__"):
        name = name[2:-2]
    return re.sub(r"(?<=[a-z])([A-Z])", r"_\1", name).lower()


class Graph:
    """A program as a list of nodes, which can be built, walked, changed and printed.

    As `torch.fx.Graph`. A `GraphModule` runs it. New nodes go to the end, unless `inserting_before` or
    `inserting_after` says otherwise.

    Args:
        owning_module (Module, optional): The module whose attributes the graph names. Default: None.
        tracer_cls (type, optional): The class of the Tracer that fills it. Default: None.

    Attributes:
        nodes (sequence of Node): The nodes in order; it may be walked while the graph is changed.
        owning_module (Module): As given.

    Example:
        >>> graph = mica.fx.Graph()
        >>> x = graph.placeholder("x")
        >>> y = graph.call_function(mica.add, (x, 1))
        >>> _ = graph.output(y)
        >>> mica.fx.GraphModule({}, graph)(mica.zeros(2))
        tensor([1., 1.])
    """

    def __init__(self, owning_module: Any = None, tracer_cls: Any = None) -> None:
        self._tracer_cls = tracer_cls  # the class of the Tracer that filled it, if one did
        self._root = Node(self, "", "root", "", (), {})
        self._insert_before = self._root
        self._count = 0
        self._names = _Names()
        self.owning_module = owning_module
        # How the arguments and the result of a call are trees of the placeholders and outputs;
        # None: they are what they are.
        self.in_spec: TreeSpec | None = None
        self.out_spec: TreeSpec | None = None

    @property
    def nodes(self) -> Any:
        """The nodes in order."""
        return _NodeList(self)

    def output_node(self) -> Node:
        """Returns the node that says what the graph returns; RuntimeError where there is none yet."""
        last = self._root._prev
        if last.op != "output":
            raise RuntimeError("The graph has no output node yet; call graph.output(...).")
        return last

    def find_nodes(self, *, op: str, target: Target = None, sort: bool = True) -> list[Node]:
        """Returns the nodes of a kind, in order.

        Args:
            op (str): The kind, such as "call_function".
            target (callable or str, optional): What they call. Default: any.
            sort (bool): No effect: they are in order always. Default: True.

        Returns:
            list of Node: The nodes.
        """
        return [n for n in self.nodes if n.op == op and (target is None or n.target == target)]

    # ---- adding

    def create_node(
        self,
        op: str,
        target: Target,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Adds a node at the insert point; the methods below name the kinds.

        Args:
            op (str): "placeholder", "get_attr", "call_function", "call_method", "call_module" or "output".
            target (callable or str): What is called or read, as `Node` has it.
            args (tuple, optional): Positional arguments: nodes and values, nested. Default: none.
            kwargs (dict, optional): Keyword arguments. Default: none.
            name (str, optional): Wish for its name; a taken one gets a number. Default: from the target.
            type_expr (type, optional): Type of its value, kept as `node.type`. Default: None.

        Returns:
            Node: The node.

        Raises:
            ValueError: `op` is unknown.
            RuntimeError: An argument is a node of another graph.
        """
        if op not in OPS:
            raise ValueError(f"A node's op ({op!r}) must be one of {', '.join(OPS)}.")
        node = Node(
            self,
            self._names.new(name or _name_of(target)),
            op,
            target,
            () if args is None else args,
            {} if kwargs is None else kwargs,
            type_expr,
        )
        for used in node._input_nodes:
            if used.graph is not self:
                node._set((), {})
                raise RuntimeError(
                    f"The argument ({used.name}) of the new node ({node.name}) is a node of another graph; "
                    "copy it by graph.node_copy."
                )
        self._insert_before.prepend(node)
        self._count += 1
        return node

    def placeholder(self, name: str, type_expr: Any = None, default_value: Any = ...) -> Node:
        """Adds an argument of the graph's function.

        Args:
            name (str): Name of the argument; "*args" takes all that are left.
            type_expr (type, optional): Type of its value. Default: None.
            default_value (object): Its default; `...` for none. Default: none.

        Returns:
            Node: Stands for its value.
        """
        args = () if default_value is ... else (default_value,)
        return self.create_node("placeholder", name, args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """Adds the reading of a parameter, a buffer or another attribute of the module.

        Args:
            qualified_name (str): Its path, such as "encoder.weight".
            type_expr (type, optional): Type of its value. Default: None.

        Returns:
            Node: Stands for its value.
        """
        name = qualified_name.replace(".", "_")
        return self.create_node("get_attr", qualified_name, name=name, type_expr=type_expr)

    def call_function(
        self,
        the_function: Callable[..., Any],
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any = None,
        name: str | None = None,
    ) -> Node:
        """Adds the call of a function.

        Args:
            the_function (callable): An operator of `mica.ops`, or any function that can be imported.
            args (tuple, optional): Positional arguments: nodes and values, nested. Default: none.
            kwargs (dict, optional): Keyword arguments. Default: none.
            type_expr (type, optional): Type of its value. Default: None.
            name (str, optional): Wish for the node's name. Default: from the function.

        Returns:
            Node: Stands for the result.
        """
        return self.create_node("call_function", the_function, args, kwargs, name, type_expr)

    def call_method(
        self,
        method_name: str,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Adds the call of a method of the first argument.

        Args:
            method_name (str): Name of the method.
            args (tuple, optional): The object, and the arguments. Default: none.
            kwargs (dict, optional): Keyword arguments. Default: none.
            type_expr (type, optional): Type of its value. Default: None.

        Returns:
            Node: Stands for the result.
        """
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_module(
        self,
        module_name: str,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Adds the call of a submodule.

        Args:
            module_name (str): Its path, such as "encoder.0".
            args (tuple, optional): Positional arguments: nodes and values, nested. Default: none.
            kwargs (dict, optional): Keyword arguments. Default: none.
            type_expr (type, optional): Type of its value. Default: None.

        Returns:
            Node: Stands for the result.
        """
        return self.create_node(
            "call_module", module_name, args, kwargs, module_name.replace(".", "_"), type_expr
        )

    def output(self, result: Argument, type_expr: Any = None) -> Node:
        """Adds the last node, which says what the graph returns.

        Args:
            result (Node or object): Nodes and values, nested.
            type_expr (type, optional): Type of it. Default: None.

        Returns:
            Node: The output node.
        """
        return self.create_node("output", "output", (result,), name="output", type_expr=type_expr)

    def inserting_before(self, n: Node | None = None) -> _InsertPoint:
        """Makes new nodes go before a node, inside a `with` block or from now on.

        Args:
            n (Node, optional): The node. Default: the first one.

        Returns:
            context manager: Sets the insert point back at its end.
        """
        return _InsertPoint(self, self._root._next if n is None else n)

    def inserting_after(self, n: Node | None = None) -> _InsertPoint:
        """Makes new nodes go behind a node, inside a `with` block or from now on.

        Args:
            n (Node, optional): The node. Default: the last one.

        Returns:
            context manager: Sets the insert point back at its end.
        """
        return _InsertPoint(self, self._root if n is None else n._next)

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Argument] = lambda x: x) -> Node:
        """Adds a copy of a node of another graph.

        Args:
            node (Node): The node.
            arg_transform (callable): `arg_transform(node)` returns what stands here for a node among its
                arguments. Default: the same node.

        Returns:
            Node: The copy.
        """
        args = map_arg(node.args, arg_transform)
        kwargs = map_arg(node.kwargs, arg_transform)
        copy = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        copy.meta = dict(node.meta)
        return copy

    def graph_copy(self, g: Graph, val_map: dict[Node, Node], return_output_node: bool = False) -> Any:
        """Adds copies of all nodes of another graph, its output aside.

        Args:
            g (Graph): The other graph.
            val_map (dict of Node to Node): What stands here for its nodes; those in it are not copied,
                those that are copied are added.
            return_output_node (bool): Return a pair with the other graph's output node too. Default: False.

        Returns:
            Node or object: What the other graph returns, in nodes of this one; None where it has no output.
        """
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                result = map_arg(node.args[0], lambda n: val_map[n])
                return (result, node) if return_output_node else result
            val_map[node] = self.node_copy(node, lambda n: val_map[n])
        return None

    # ---- changing

    def erase_node(self, to_erase: Node) -> None:
        """Takes a node out that nobody uses.

        Args:
            to_erase (Node): The node that goes; nothing may use it.

        Raises:
            RuntimeError: It has users, or is not in this graph.
        """
        if to_erase.users:
            raise RuntimeError(
                f"The node ({to_erase.name}) is used by ({', '.join(n.name for n in to_erase.users)}) and cannot be "
                "erased; call node.replace_all_uses_with(...) first."
            )
        if to_erase.graph is not self or to_erase._next is to_erase:
            raise RuntimeError(f"The node ({to_erase.name}) is not in this graph.")
        if self._insert_before is to_erase:
            self._insert_before = to_erase._next
        to_erase._set((), {})
        to_erase._unlink()
        self._count -= 1

    def _draws(self, node: Node) -> bool:
        """Whether the operator of a node draws random numbers; a composite is recorded in a graph of its own."""
        from mica.fx._effects import draws

        return draws(node)

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Erases the nodes that nobody uses and that have no effect.

        Args:
            is_impure_node (callable, optional): `f(node)` says whether a node has an effect.
                Default: `Node.is_impure`.

        Returns:
            bool: Whether there was one.
        """
        impure = is_impure_node or Node.is_impure
        before = self._count
        for node in reversed(self.nodes):
            if not node.users and not impure(node):
                self.erase_node(node)
        return self._count != before

    def lint(self) -> None:
        """Raises RuntimeError where the graph is not right: a use before the definition, a name that stands twice."""
        seen: set[Node] = set()
        names: set[str] = set()
        for node in self.nodes:
            if node.name in names:
                raise RuntimeError(f"The name ({node.name}) stands twice in the graph.")
            for used in node._input_nodes:
                if used not in seen:
                    raise RuntimeError(
                        f"The node ({node.name}) uses ({used.name}), which is not in the graph before it."
                    )
                if node not in used.users:
                    raise RuntimeError(f"The node ({used.name}) does not know its user ({node.name}).")
            if node.op == "call_function" and not callable(node.target):
                raise RuntimeError(f"The target ({node.target!r}) of ({node.name}) cannot be called.")
            if node.op not in ("call_function", "root") and not isinstance(node.target, str):
                raise RuntimeError(f"The target ({node.target!r}) of ({node.name}) must be a str.")
            if node.op in ("get_attr", "call_module") and self.owning_module is not None:
                value = self.owning_module
                for part in node.target.split("."):
                    if not hasattr(value, part):
                        raise RuntimeError(f"The module has no ({node.target}), which ({node.name}) names.")
                    value = getattr(value, part)
            seen.add(node)
            names.add(node.name)

    # ---- showing

    def python_code(self, root_module: str = "self", *, verbose: bool = False) -> PythonCode:
        """Writes the graph as the source of a Python function.

        Args:
            root_module (str): How the source names the module. Default: "self".
            verbose (bool): Add dtypes and sizes of the values, where they are known. Default: False.

        Returns:
            PythonCode: The source, and the objects that it names.
        """
        return generate(self, root_module, verbose)

    def print_tabular(self) -> None:
        """Prints a table of the nodes, each in a row."""
        rows = [("opcode", "name", "target", "args", "kwargs")]
        rows += [(n.op, n.name, target_name(n.target), str(n.args), str(n.kwargs)) for n in self.nodes]
        widths = [max(len(r[i]) for r in rows) for i in range(5)]
        for row in rows:
            print("  ".join(cell.ljust(w) for cell, w in zip(row, widths)).rstrip())

    def __str__(self) -> str:
        inputs = ", ".join(f"%{n.name}" for n in self.nodes if n.op == "placeholder")
        lines = [f"graph({inputs}):"]
        lines += [f"    {n.format_node()}" for n in self.nodes]
        return "\n".join(lines)

    # ---- copying

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Graph:
        copy = Graph()
        copy.in_spec, copy.out_spec = self.in_spec, self.out_spec
        made: dict[Node, Node] = {}
        for node in self.nodes:
            made[node] = copy.node_copy(node, lambda n: made[n])
        if memo is not None:
            memo[id(self)] = copy
        return copy

    def __reduce__(self) -> Any:
        numbers = {node: i for i, node in enumerate(self.nodes)}

        def packed(n: Node) -> _Reference:
            return _Reference(numbers[n])

        rows = [
            (n.op, n.target, map_arg(n.args, packed), map_arg(n.kwargs, packed), n.name, n.type, n.meta)
            for n in self.nodes
        ]
        return _unpickled, (rows, self.in_spec, self.out_spec)


class _Reference:
    """A node among pickled arguments, by its number."""

    def __init__(self, number: int) -> None:
        self.number = number


def _unpickled(rows: list[Any], in_spec: TreeSpec | None, out_spec: TreeSpec | None) -> Graph:
    from mica.fx._node import map_aggregate

    graph = Graph()
    nodes: list[Node] = []

    def found(a: Any) -> Any:
        return nodes[a.number] if isinstance(a, _Reference) else a

    for op, target, args, kwargs, name, type_expr, meta in rows:
        node = graph.create_node(
            op, target, map_aggregate(args, found), map_aggregate(kwargs, found), name, type_expr
        )
        node.meta = meta
        nodes.append(node)
    graph.in_spec, graph.out_spec = in_spec, out_spec
    return graph
