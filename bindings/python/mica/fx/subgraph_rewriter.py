"""mica.fx.subgraph_rewriter: finds a pattern in a graph and puts another program in its place.

A pattern's placeholders stand for any value or constant; its other nodes must be found with the
same op, target and arguments, and what it does not return may have no user outside of the match.
Matches do not overlap; the one that begins first in the graph wins."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from mica.fx._graph import Graph
from mica.fx._graph_module import GraphModule, _copy_attribute
from mica.fx._node import Node, map_arg
from mica.fx._proxy import symbolic_trace

__all__ = ["InternalMatch", "Match", "ReplacedPatterns", "replace_pattern", "replace_pattern_with_filters"]


class Match(NamedTuple):
    """A place where `replace_pattern` found the pattern.

    As `torch.fx.subgraph_rewriter.Match`.

    Args:
        anchor (Node): The node that stood for the pattern's result.
        nodes_map (dict of Node to object): For each node of the pattern what stood for it.

    Example:
        >>> traced = mica.fx.symbolic_trace(lambda x: mica.sin(x) + 1)
        >>> mica.fx.replace_pattern(traced, lambda x: mica.sin(x), lambda x: mica.cos(x))[0].anchor
        sin
    """

    anchor: Node
    nodes_map: dict[Node, Any]  # pattern's node: what stood for it


@dataclass
class InternalMatch:
    """A place where the pattern was found, as the filters of `replace_pattern_with_filters` see it.

    Args:
        anchors (list of Node): The nodes that the pattern returns.
        nodes_map (dict of Node to object): For each node of the pattern what stands for it.
        placeholder_nodes (list): What stands for the pattern's arguments.
        returning_nodes (list of Node): What stands for its results.

    Example:
        >>> from mica.fx.subgraph_rewriter import replace_pattern_with_filters
        >>> traced = mica.fx.symbolic_trace(lambda x: mica.sin(x) + 1)
        >>> def see(match, original, pattern):
        ...     print(match.returning_nodes)
        ...     return False
        >>> replace_pattern_with_filters(traced, lambda x: mica.sin(x), lambda x: mica.cos(x), [see])
        [sin]
        []
    """

    anchors: list[Node]  # the pattern's returned nodes
    nodes_map: dict[Node, Any]
    placeholder_nodes: list[Any]  # what stands for the pattern's placeholders
    returning_nodes: list[Node]  # what stands for the pattern's results


@dataclass
class ReplacedPatterns:
    """A place where the pattern was found, with the nodes that stand there now.

    Args:
        anchor (Node): The node that stood for the pattern's result.
        nodes_map (dict of Node to object): For each node of the pattern what stood for it.
        replacements (list of Node): The nodes of the replacement. Default: none.

    Example:
        >>> from mica.fx.subgraph_rewriter import replace_pattern_with_filters
        >>> traced = mica.fx.symbolic_trace(lambda x: mica.sin(x) + 1)
        >>> places = replace_pattern_with_filters(traced, lambda x: mica.sin(x), lambda x: mica.cos(x))
        >>> places[0].replacements
        [cos]
    """

    anchor: Node
    nodes_map: dict[Node, Any]
    replacements: list[Node] = field(default_factory=list)


class _Matcher:
    def __init__(self, pattern: Graph, ignore_literals: bool) -> None:
        self.pattern = pattern
        self.ignore_literals = ignore_literals
        self.returned = list(pattern.output_node().all_input_nodes)
        if not self.returned or any(n.op == "placeholder" for n in self.returned):
            raise RuntimeError("The pattern returns no value that it computes, so it matches everywhere.")

    def _pair(self, wanted: Any, found: Any, pairs: dict[Node, Any]) -> bool:
        """Whether `found` can stand for `wanted`; extends `pairs`."""
        if isinstance(wanted, Node):
            if wanted in pairs:
                return pairs[wanted] is found
            if wanted.op == "placeholder":
                pairs[wanted] = found
                return True
            if not isinstance(found, Node) or (wanted.op, wanted.target) != (found.op, found.target):
                return False
            pairs[wanted] = found
            return self._pair(wanted.args, found.args, pairs) and self._pair(
                wanted.kwargs, found.kwargs, pairs
            )
        if isinstance(found, Node) or type(wanted) is not type(found):
            return False
        if isinstance(wanted, (tuple, list)):
            return len(wanted) == len(found) and all(self._pair(w, f, pairs) for w, f in zip(wanted, found))
        if isinstance(wanted, dict):
            return wanted.keys() == found.keys() and all(
                self._pair(wanted[k], found[k], pairs) for k in wanted
            )
        if isinstance(wanted, slice):
            return self._pair(
                (wanted.start, wanted.stop, wanted.step), (found.start, found.stop, found.step), pairs
            )
        return self.ignore_literals or wanted == found

    def _complete(self, pairs: dict[Node, Any], nodes: list[Node]) -> Iterator[dict[Node, Any]]:
        """All ways to find the returned values that `pairs` lacks."""
        missing = next((n for n in self.returned if n not in pairs), None)
        if missing is None:
            yield pairs
            return
        for node in nodes:
            longer = dict(pairs)
            if self._pair(missing, node, longer):
                yield from self._complete(longer, nodes)

    def _is_closed(self, pairs: dict[Node, Any]) -> bool:
        inside = {id(found) for wanted, found in pairs.items() if wanted.op != "placeholder"}
        return all(
            wanted.op in ("placeholder", "get_attr")
            or wanted in self.returned
            or all(id(user) in inside for user in found.users)
            for wanted, found in pairs.items()
        )

    def find(self, graph: Graph) -> list[InternalMatch]:
        """The matches, none of which shares a node with another."""
        nodes = list(graph.nodes)
        taken: set[Node] = set()
        matches = []
        for node in nodes:
            first: dict[Node, Any] = {}
            if not self._pair(self.returned[0], node, first):
                continue
            for pairs in self._complete(first, nodes):
                own = {f for w, f in pairs.items() if w.op not in ("placeholder", "get_attr")}
                if not own & taken and self._is_closed(pairs) and _insert_point(nodes, pairs, self.returned):
                    taken |= own
                    given = [pairs.get(n) for n in self.pattern.nodes if n.op == "placeholder"]
                    results = [pairs[n] for n in self.returned]
                    matches.append(InternalMatch(self.returned, pairs, given, results))
                    break
        return matches


def _insert_point(nodes: list[Node], pairs: dict[Node, Any], returned: list[Node]) -> Node | None:
    """The node before which the replacement can stand: behind its inputs, before its users."""
    order = {n: i for i, n in enumerate(nodes)}
    inputs = [order[f] for w, f in pairs.items() if w.op == "placeholder" and isinstance(f, Node)]
    users = [order[u] for w in returned for u in pairs[w].users]
    own = [order[f] for w, f in pairs.items() if w.op != "placeholder"]
    last = max([*inputs, -1])
    at = max(min(own), last + 1)
    return nodes[at] if at <= min([*users, len(nodes)]) and at < len(nodes) else None


def _graph_of(program: Any) -> Graph:
    if isinstance(program, Graph):
        return program
    return (program if isinstance(program, GraphModule) else symbolic_trace(program)).graph


def _take_attributes(gm: GraphModule, program: Any, graph: Graph) -> None:
    """What the replacement names and the module lacks."""
    if not hasattr(program, "named_modules"):
        return
    for node in graph.nodes:
        if node.op in ("get_attr", "call_module"):
            value: Any = gm
            for part in node.target.split("."):
                value = getattr(value, part, None)
            if value is None:
                _copy_attribute(program, gm, node.target)


def _replace(
    gm: GraphModule, match: InternalMatch, pattern: _Matcher, new: Graph, now: dict[Node, Node]
) -> ReplacedPatterns:
    given = match.placeholder_nodes
    places = [n for n in new.nodes if n.op == "placeholder"]
    if len(given) != len(places):
        raise RuntimeError(f"The pattern has ({len(given)}) inputs and the replacement ({len(places)}).")
    values: dict[Node, Any] = {p: now.get(g, g) if isinstance(g, Node) else g for p, g in zip(places, given)}
    nodes = list(gm.graph.nodes)
    pairs = {w: now.get(f, f) if isinstance(f, Node) else f for w, f in match.nodes_map.items()}
    point = _insert_point(nodes, pairs, pattern.returned)
    if point is None:
        raise RuntimeError(
            f"The match at ({match.returning_nodes[0].name}) was taken apart by an earlier replacement."
        )
    with gm.graph.inserting_before(point):
        result = gm.graph.graph_copy(new, values)
    made: list[Any] = []
    map_arg((result,), made.append)
    if len(made) != len(pattern.returned):
        raise RuntimeError(
            f"The pattern returns ({len(pattern.returned)}) values and the replacement ({len(made)})."
        )
    for wanted, node in zip(pattern.returned, made):
        pairs[wanted].replace_all_uses_with(node)
        now[match.nodes_map[wanted]] = node
    for wanted in reversed(pattern.pattern.nodes):
        if wanted.op not in ("placeholder", "output") and wanted in pairs and not pairs[wanted].users:
            gm.graph.erase_node(pairs[wanted])
    copied = [v for n, v in values.items() if n.op != "placeholder"]
    return ReplacedPatterns(match.returning_nodes[0], match.nodes_map, copied)


def replace_pattern_with_filters(
    gm: GraphModule,
    pattern: Any,
    replacement: Any = None,
    match_filters: list[Callable[[InternalMatch, Graph, Graph], bool]] | None = None,
    ignore_literals: bool = False,
    replacement_callback: Callable[[InternalMatch, Graph, Graph], Graph] | None = None,
) -> list[ReplacedPatterns]:
    """Replaces a pattern in a graph where filters agree; matches do not overlap.

    As `torch.fx.subgraph_rewriter.replace_pattern_with_filters`.

    Args:
        gm (GraphModule): The module, which is changed and recompiled.
        pattern (callable, Graph or GraphModule): What to find. Its arguments stand for any values.
        replacement (callable, Graph or GraphModule, optional): What to put there, of as many arguments
            and results.
        match_filters (list of callable, optional): `f(match, graph, pattern)` says whether a match
            counts. Default: all do.
        ignore_literals (bool): Let constants in the pattern match any others. Default: False.
        replacement_callback (callable, optional): `f(match, graph, pattern)` returns the Graph to put
            there, instead of `replacement`.

    Returns:
        list of ReplacedPatterns: The places.

    Raises:
        ValueError: Not exactly one of `replacement` and `replacement_callback` is given.
        RuntimeError: Numbers of arguments or results differ, or the pattern computes nothing.

    Example:
        >>> from mica.fx.subgraph_rewriter import replace_pattern_with_filters
        >>> traced = mica.fx.symbolic_trace(lambda x: x + 1)
        >>> places = replace_pattern_with_filters(
        ...     traced, lambda x: x + 2, lambda x: x + 10, ignore_literals=True
        ... )
        >>> traced(mica.zeros(1))
        tensor([10.])
    """
    if (replacement is None) == (replacement_callback is None):
        raise ValueError("Exactly one of `replacement` and `replacement_callback` must be given.")
    original, wanted = gm.graph, _graph_of(pattern)
    matcher = _Matcher(wanted, ignore_literals)
    fixed = None if replacement is None else _graph_of(replacement)
    replaced = []
    now: dict[Node, Node] = {}
    for match in matcher.find(original):
        if not all(agrees(match, original, wanted) for agrees in match_filters or ()):
            continue
        new = fixed if replacement_callback is None else replacement_callback(match, original, wanted)
        assert new is not None
        _take_attributes(gm, replacement, new)
        replaced.append(_replace(gm, match, matcher, new, now))
    gm.recompile()
    return replaced


def replace_pattern(gm: GraphModule, pattern: Any, replacement: Any) -> list[Match]:
    """Replaces a pattern by another program wherever it is found in a graph.

    As `torch.fx.replace_pattern`. A node in the middle of a match must have no user outside of it;
    matches do not overlap.

    Args:
        gm (GraphModule): The module, which is changed and recompiled.
        pattern (callable, Graph or GraphModule): What to find. Its arguments stand for any values.
        replacement (callable, Graph or GraphModule): What to put there, of as many arguments and
            results.

    Returns:
        list of Match: The places.

    Raises:
        RuntimeError: Numbers of arguments or results differ, or the pattern computes nothing.

    Example:
        >>> traced = mica.fx.symbolic_trace(lambda x: mica.exp(x) - 1)
        >>> found = mica.fx.replace_pattern(traced, lambda x: mica.exp(x) - 1, lambda x: mica.expm1(x))
        >>> print(traced.code)
        def forward(self, x):
            expm1 = mica.expm1(x);  x = None
            return expm1
    """
    found = replace_pattern_with_filters(gm, pattern, replacement)
    return [Match(r.anchor, r.nodes_map) for r in found]
