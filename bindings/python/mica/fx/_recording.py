"""One trace: a function run once in a trace frame, and its tape as a Graph."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from mica import _C
from mica._C import Tensor
from mica.fx._graph import Graph
from mica.fx._node import Node, TensorMetadata, map_aggregate
from mica.ops import overload
from mica.utils._pytree import TreeSpec, tree_flatten, tree_unflatten

_PLAIN = (tuple, list, dict)


@dataclass
class Recording:
    """What one run left: the tape (a capsule), and which numbers of it are arguments and results."""

    tape: Any
    leaves: list[Any]
    in_spec: TreeSpec
    names: list[str]
    inputs: list[int | None]
    output: Any = None  # the result's tree, with Values in the places of tensors
    values: list[Any] = field(default_factory=list)  # (dtype, device, shape, stride) by number - 1


@dataclass(frozen=True)
class Value:
    """A tensor among a function's results, by its number on the tape."""

    number: int


@dataclass(frozen=True)
class Imagined:
    """An argument without memory: a tensor on meta, and the device that it shows in the trace."""

    tensor: Tensor
    device: Any


def _names_of(function: Callable[..., Any], args: tuple[Any, ...]) -> list[str]:
    """One name for each leaf of the arguments, after the parameter that it came by."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    names: list[str] = []
    for i, arg in enumerate(args):
        kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        known = i < len(parameters) and parameters[i].kind in kinds
        base = parameters[i].name if known else f"arg{i}"
        count = len(tree_flatten(arg)[0])
        plain = count == 1 and not isinstance(arg, _PLAIN)
        names += [f"{base}_1"] if plain else [f"{base}_{k + 1}" for k in range(count)]
    return names


def record(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    *,
    fake: bool = False,
    sizes: Any = None,
) -> Recording:
    """Runs `function` in a trace. `sizes(number, dim, hint)` makes the sizes that it reads."""
    leaves, spec = tree_flatten(args)
    frame = _C._trace_enter(fake, sizes)
    try:
        inside: list[Any] = []
        inputs: list[int | None] = []
        for leaf in leaves:
            if isinstance(leaf, Tensor):
                tensor, number = _C._trace_input(leaf)
                inside.append(tensor)
                inputs.append(number)
            elif isinstance(leaf, Imagined):
                tensor, number = _C._trace_input(leaf.tensor, leaf.device)
                inside.append(tensor)
                inputs.append(number)
            else:
                inside.append(leaf)
                inputs.append(None)
        done = Recording(frame, leaves, spec, _names_of(function, args), inputs)
        result = function(*tree_unflatten(inside, spec))
        flat, out_spec = tree_flatten(result)
        numbered = [Value(_C._trace_number(t)) if isinstance(t, Tensor) else t for t in flat]
        done.output = tree_unflatten(numbered, out_spec)
    finally:
        _C._trace_exit(frame)
    done.values = _C._trace_values(frame)
    return done


class _Part:
    """A result of a call that returns several: the node, and where in it."""

    def __init__(self, node: Node, path: tuple[int, ...]) -> None:
        self.node = node
        self.path = path


class _Nodes(dict[int, Any]):
    """Nodes by the numbers of their values. Constants and parts become nodes when they are used."""

    def __init__(self, graph: Graph, recording: Recording) -> None:
        super().__init__()
        self._graph = graph
        self._values = recording.values
        self._made_parts: dict[tuple[Node, tuple[int, ...]], Node] = {}
        # A tensor, whether the function made it, and whether it wrote it.
        self.constants: dict[int, tuple[Any, bool, bool]] = {
            number: (tensor, made, written)
            for number, tensor, made, written in _C._trace_constants(recording.tape)
        }
        self.attributes: dict[str, Any] = {}

    def __getitem__(self, number: int) -> Node:
        found = self.get(number)
        if found is None:
            found = self._constant(number)
        if isinstance(found, _Part):
            found = self._part(found, number)
        return found

    def note(self, node: Node, number: int) -> Node:
        """Gives the node the value's dtype and sizes."""
        dtype, device, shape, stride = self._values[number - 1]
        node.meta["tensor_meta"] = TensorMetadata(shape, dtype, stride, device)
        node.meta["number"] = number
        return node

    def _constant(self, number: int) -> Node:
        tensor, made, written = self.constants[number]
        name = f"_tensor_constant{len(self.attributes)}"
        self.attributes[name] = tensor
        node = self.note(self._graph.get_attr(name), number)
        if made and written:
            node = self._copy(node, number)
        self[number] = node
        return node

    def _copy(self, node: Node, number: int) -> Node:
        return self.note(self._graph.call_function(overload("mica::clone"), (node,)), number)

    def returned(self, number: int) -> Node:
        """What the graph returns: a constant that the function made is new in each run."""
        node = self[number]
        made = number in self.constants and self.constants[number][1]
        return self._copy(node, number) if made and node.op == "get_attr" else node

    def _part(self, part: _Part, number: int) -> Node:
        node = part.node
        for i, index in enumerate(part.path):
            key = (part.node, part.path[: i + 1])
            if key not in self._made_parts:
                self._made_parts[key] = self._graph.call_function(operator.getitem, (node, index))
            node = self._made_parts[key]
        self[number] = self.note(node, number)
        return node


def to_graph(
    recording: Recording,
    rewrite: Callable[..., tuple[Any, Any]] | None = None,
    finish: Callable[[Graph, Any], Any] | None = None,
) -> tuple[Graph, dict[str, Any]]:
    """The graph of a recording, and the attributes that it names. `rewrite(i, args, kwargs, graph,
    nodes)` gives the arguments of call i, `finish(graph, nodes)` what the graph returns."""
    graph = Graph()
    nodes = _Nodes(graph, recording)
    for name, number, leaf in zip(recording.names, recording.inputs, recording.leaves):
        node = graph.placeholder(name)
        if number is None:
            node.meta["val"] = leaf
        else:
            nodes[number] = nodes.note(node, number)

    def emit(name: str, args: tuple[Any, ...], kwargs: dict[str, Any], results: list[Any]) -> None:
        nonlocal calls
        if rewrite is not None:
            args, kwargs = rewrite(calls, args, kwargs, graph, nodes)
        calls += 1
        node = graph.call_function(overload(name), args, kwargs)
        if len(results) == 1 and isinstance(results[0], int):
            if results[0]:
                nodes[results[0]] = nodes.note(node, results[0])
            return
        single = len(results) == 1
        for i, result in enumerate(results):
            path = () if single else (i,)
            if isinstance(result, int):
                if result:
                    nodes[result] = _Part(node, path)
                continue
            for j, number in enumerate(result):
                if number:
                    nodes[number] = _Part(node, (*path, j))

    calls = 0
    _C._trace_calls(recording.tape, nodes, emit)
    if finish is None:
        graph.output(
            map_aggregate(recording.output, lambda v: nodes.returned(v.number) if isinstance(v, Value) else v)
        )
    else:
        graph.output(finish(graph, nodes))
    _set_specs(graph, recording)
    return graph, nodes.attributes


def _set_specs(graph: Graph, recording: Recording) -> None:
    args = tree_unflatten(recording.leaves, recording.in_spec)
    if any(tree_flatten(a)[1] != tree_flatten(0)[1] for a in args):
        graph.in_spec = recording.in_spec
    if not _is_plain(recording.output):
        flat, graph.out_spec = tree_flatten(graph.output_node().args[0])
        graph.output_node().args = (list(flat),)


def _is_plain(tree: Any) -> bool:
    """Whether the result's containers can stand in a node's arguments as they are."""
    if type(tree) in (tuple, list):
        return all(map(_is_plain, tree))
    if type(tree) is dict:
        return all(isinstance(k, (str, int)) for k in tree) and all(map(_is_plain, tree.values()))
    if isinstance(tree, tuple):
        return hasattr(tree, "_fields") and all(map(_is_plain, tree))
    return isinstance(tree, Value) or len(tree_flatten(tree)[0]) == 1 and tree_flatten(tree)[0][0] is tree
