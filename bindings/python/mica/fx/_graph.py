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
    """A program. Nodes are added at the insert point, which is the end unless
    `inserting_before` or `inserting_after` says otherwise."""

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
        """The node that says what the graph returns."""
        last = self._root._prev
        if last.op != "output":
            raise RuntimeError("The graph has no output node yet; call graph.output(...).")
        return last

    def find_nodes(self, *, op: str, target: Target = None, sort: bool = True) -> list[Node]:
        """The nodes of that op, and of that target if it is given, in order."""
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
        """A new node at the insert point."""
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
        """An argument of the graph's function."""
        args = () if default_value is ... else (default_value,)
        return self.create_node("placeholder", name, args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """A parameter, buffer or other attribute of the module."""
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
        """A call of a function: an operator (mica.ops...), or any importable one."""
        return self.create_node("call_function", the_function, args, kwargs, name, type_expr)

    def call_method(
        self,
        method_name: str,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any = None,
    ) -> Node:
        """A call of a method of the first argument."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_module(
        self,
        module_name: str,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any = None,
    ) -> Node:
        """A call of a submodule of the module, by its path."""
        return self.create_node(
            "call_module", module_name, args, kwargs, module_name.replace(".", "_"), type_expr
        )

    def output(self, result: Argument, type_expr: Any = None) -> Node:
        """What the graph returns: nodes, in any nesting."""
        return self.create_node("output", "output", (result,), name="output", type_expr=type_expr)

    def inserting_before(self, n: Node | None = None) -> _InsertPoint:
        """New nodes go before `n` (or to the beginning), inside of `with` or from now on."""
        return _InsertPoint(self, self._root._next if n is None else n)

    def inserting_after(self, n: Node | None = None) -> _InsertPoint:
        """New nodes go behind `n` (or to the end), inside of `with` or from now on."""
        return _InsertPoint(self, self._root if n is None else n._next)

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Argument] = lambda x: x) -> Node:
        """A copy of a node of another graph; `arg_transform` says what stands here for the nodes
        among its arguments."""
        args = map_arg(node.args, arg_transform)
        kwargs = map_arg(node.kwargs, arg_transform)
        copy = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        copy.meta = dict(node.meta)
        return copy

    def graph_copy(self, g: Graph, val_map: dict[Node, Node], return_output_node: bool = False) -> Any:
        """Copies the nodes of `g` that `val_map` does not hold yet; returns what its output
        returns, and with return_output_node its output node too."""
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
        """Takes a node out that nobody uses."""
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
        """Erases what nobody uses and has no effect; says whether there was something."""
        impure = is_impure_node or Node.is_impure
        before = self._count
        for node in reversed(self.nodes):
            if not node.users and not impure(node):
                self.erase_node(node)
        return self._count != before

    def lint(self) -> None:
        """Raises where a node is used before it is made, a name stands twice, or `users` is wrong."""
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
        """The graph as the source of a function `forward`, and the objects that it names. With
        `verbose`, values say their dtypes and sizes."""
        return generate(self, root_module, verbose)

    def print_tabular(self) -> None:
        """Prints one row a node."""
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
