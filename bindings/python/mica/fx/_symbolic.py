"""Traces with symbolic sizes: several runs with different sizes, and one graph for all of them.

The function runs with its arguments' sizes first, on fake tensors, then with other sizes, one
symbol changed after the other. Sizes that are equal share a symbol; 0 and 1 are fixed. A run
that compares sizes with another outcome, calls other operators or fails says that its sizes
are not the graph's: where no other size works, the size is fixed, with the reason.

A number among an operator's arguments that is the same in all runs stays; another one is what
Python read or computed (SymInts), the size of a value, or a polynomial of the symbols
(_size_expressions.py), and becomes nodes. Where it is none of these, NotImplementedError names it. The
graph begins with its guards (SizeGuards), which compare the shapes of all values with the
trace's for each new set of sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import mica
from mica import _C
from mica._C import Tensor
from mica.fx._graph import Graph
from mica.fx._node import Node, TensorMetadata, map_aggregate
from mica.fx._recording import Imagined, Recording, Value, record, to_graph
from mica.fx._size_expressions import fit
from mica.fx._size_guards import SizeGuards, check_guard, sym_size
from mica.fx._symint import (
    Computed,
    Diverged,
    Expression,
    Guard,
    Session,
    Size,
    SymNumber,
    describe,
    sizes_in,
)
from mica.utils._pytree import tree_flatten, tree_unflatten

_MORE_RUNS = 4  # with all symbols changed at once, and one for each symbol


@dataclass(frozen=True)
class _Ref:
    number: int


class _Refs:
    def __getitem__(self, number: int) -> _Ref:
        return _Ref(number)


class Dimension(int):
    """A size that prints as what it is a function of."""

    text: str

    def __new__(cls, value: int, text: str) -> Dimension:
        made = super().__new__(cls, value)
        made.text = text
        return made

    def __str__(self) -> str:
        return self.text

    def __reduce__(self) -> Any:
        return Dimension, (int(self), self.text)


@dataclass
class _Run:
    recording: Recording
    session: Session
    sizes: dict[Size, int]  # of the inputs
    calls: list[tuple[str, tuple[Any, ...], dict[str, Any], list[Any]]]


def _run(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    expected: list[Guard] | None,
    name: Callable[[Size], str] | None = None,
) -> _Run:
    session = Session(expected, name)
    recording = record(function, args, fake=True, sizes=session.size)
    if expected is not None and len(session.guards) != len(expected):
        raise Diverged("it compares fewer sizes")
    calls: list[Any] = []
    _C._trace_calls(recording.tape, _Refs(), lambda *call: calls.append(call))
    sizes = {
        Size(n, dim): size
        for n in recording.inputs
        if n is not None
        for dim, size in enumerate(recording.values[n - 1][2])
    }
    return _Run(recording, session, sizes, calls)


def _numbers(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """The leaves of a call's arguments, with their places."""
    if isinstance(tree, (tuple, list)):
        for i, item in enumerate(tree):
            yield from _numbers(item, (*path, i))
    elif isinstance(tree, dict):
        for key, item in tree.items():
            yield from _numbers(item, (*path, key))
    else:
        yield path, tree


def _is_number(a: Any) -> bool:
    return isinstance(a, (int, float)) and not isinstance(a, bool)


def _difference(one: _Run, other: _Run) -> str | None:
    """How the programs of two runs differ, numbers aside; None: they do not."""
    for a, b in zip(one.calls, other.calls):
        if a[0] != b[0]:
            return f"another operator is called ({b[0]} instead of {a[0]})"
        if a[3] != b[3]:
            return f"operator {a[0]} has another number of results"
        first, second = list(_numbers(a[1:3])), list(_numbers(b[1:3]))
        if len(first) != len(second):
            return f"operator {a[0]} gets other arguments"
        for (place, x), (also, y) in zip(first, second):
            if place != also or not (x == y or (_is_number(x) and _is_number(y) and type(x) is type(y))):
                return f"operator {a[0]} gets other arguments"
    if len(one.calls) != len(other.calls):
        return f"({len(other.calls)}) operators are called instead of ({len(one.calls)})"
    if [v[0] for v in one.recording.values] != [v[0] for v in other.recording.values]:
        return "values have other dtypes"
    if [len(v[2]) for v in one.recording.values] != [len(v[2]) for v in other.recording.values]:
        return "values have other numbers of dimensions"
    return _other_constants(one, other)


def _other_constants(one: _Run, other: _Run) -> str | None:
    first = _C._trace_constants(one.recording.tape)
    second = _C._trace_constants(other.recording.tape)
    for (number, a, *_), (also, b, *_) in zip(first, second):
        if a is b:
            continue
        same = number == also and a.shape == b.shape and a.dtype == b.dtype
        if not same or (a.device.type != "meta" and not mica.equal(a, b)):
            return "a tensor that the function makes of Python numbers has other values"
    return None


def _imagined(leaf: Tensor, replace: dict[int, int]) -> Imagined:
    """A tensor without memory like `leaf`, dense in the same order, of other sizes."""
    sizes = [replace.get(s, s) for s in leaf.shape]
    strides = [0] * len(sizes)
    step = 1
    order = sorted(range(len(sizes)), key=lambda d: (leaf.stride(d), -d))
    for d in order:
        if leaf.stride(d) == 0 and leaf.shape[d] > 1:
            continue
        strides[d] = step
        step *= max(sizes[d], 1)
    tensor = mica.empty_strided(sizes, strides, dtype=leaf.dtype, device="meta")
    return Imagined(tensor.requires_grad_(leaf.requires_grad), leaf.device)


class _Exploration:
    """The runs that follow one program, and what is fixed because no other run does."""

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.function = function
        self.leaves, self.spec = tree_flatten(args)
        self.main = _run(function, args, None)
        self.runs = [self.main]
        # Sizes of inputs by hint: those that move together.
        self.groups: dict[int, list[Size]] = {}
        self.fixed: dict[int, str] = {}
        for size, hint in self.main.sizes.items():
            self.groups.setdefault(hint, []).append(size)
        self.hints = [h for h in self.groups if h >= 2]
        self.explore()
        self.symbols = [self.groups[h][0] for h in self.hints if h not in self.fixed]

    def attempt(self, replace: dict[int, int]) -> str | None:
        """A run with other sizes; why it does not count, or None."""
        args = tree_unflatten(
            [_imagined(leaf, replace) if isinstance(leaf, Tensor) else leaf for leaf in self.leaves],
            self.spec,
        )
        try:
            run = _run(self.function, args, self.main.session.guards, self.name)
        except Diverged as error:
            return f"The function needs that {error}."
        except Exception as error:  # noqa: BLE001 - whatever a size makes fail, fixes it
            return f"With another size the function fails: {str(error).splitlines()[0]}"
        why = _difference(self.main, run)
        if why is None:
            self.runs.append(run)
            return None
        return f"With another size {why}."

    def name(self, size: Size) -> str:
        """How messages call a size."""
        recording = self.main.recording
        if size.number in recording.inputs:
            return f"size {size.dim} of {recording.names[recording.inputs.index(size.number)]}"
        return f"size {size.dim} of a value"

    def explore(self) -> None:
        moved: dict[int, int] = {}
        for hint in self.hints:
            taken = {*moved.values(), *self.groups}
            tries = [
                c for c in (hint + 3, hint + 1, 2 * hint, hint + 8, hint - 1) if c >= 2 and c not in taken
            ]
            why: str | None = "No other size was tried."
            for candidate in tries:
                why = self.attempt({**moved, hint: candidate})
                if why is None:
                    moved[hint] = candidate
                    break
            if why is not None:
                self.fixed[hint] = why
        steps = [7, 4, 10, 2, 15, 6, 12, 20]
        for k in range(_MORE_RUNS + len(moved)):
            if not moved or len(self.runs) >= 3 + _MORE_RUNS + len(moved):
                break
            self.attempt(
                {
                    h: h + steps[(k + i) % len(steps)] * max(moved[h] - h if k % 2 else 1, 1)
                    for i, h in enumerate(moved)
                }
            )

    def sizes(self) -> list[dict[Size, int]]:
        return [run.sizes for run in self.runs]


class _Resolver:
    """Numbers of the main run as expressions."""

    def __init__(self, explored: _Exploration) -> None:
        self.explored = explored
        self.runs = explored.runs
        self._made = [run.session.made for run in self.runs]
        self._closed: dict[tuple[int, ...], Expression] = {}

    def closed(self, values: tuple[Any, ...]) -> Expression:
        """As a function of the symbols alone; None: not found."""
        if values not in self._closed:
            self._closed[values] = fit(values, self.explored.symbols, self.explored.sizes())
        return self._closed[values]

    def dimension(self, number: int, dim: int) -> tuple[int, ...]:
        """The size of a value in all runs."""
        return tuple(run.recording.values[number - 1][2][dim] for run in self.runs)

    def of_size(self, size: Size) -> Expression:
        """A size as a function of the symbols, if it is one."""
        return self.closed(self.dimension(size.number, size.dim))

    def resolve(self, values: tuple[Any, ...], refs: list[int], before: int) -> Expression:
        """What gave these values: known sizes and SymInts first, then a function of the symbols."""
        for symbol in self.explored.symbols:
            if all(run.sizes[symbol] == v for run, v in zip(self.runs, values)):
                return symbol
        for k, (expression, _) in enumerate(self._made[0]):
            defined = all(s.number < before for s in sizes_in(expression))
            if defined and all(made[k][1] == v for made, v in zip(self._made, values)):
                return expression
        for number in [*refs, *range(before - 1, 0, -1)]:
            for dim in range(len(self.runs[0].recording.values[number - 1][2])):
                if self.dimension(number, dim) == values:
                    return Size(number, dim)
        return self.closed(values)


class _Emitter:
    """Puts expressions into the graph, each once."""

    def __init__(self, explored: _Exploration, resolver: _Resolver) -> None:
        self.explored, self.resolver = explored, resolver
        self._nodes: dict[Expression, Node] = {}
        self._pending = list(explored.main.session.guards)
        self.inputs: list[Guard] = []  # guards that are functions of the inputs' sizes

    def emit(self, e: Expression, graph: Graph, nodes: Any) -> Any:
        if not isinstance(e, (Size, Computed)):
            return e
        if e not in self._nodes:
            if isinstance(e, Size):
                node = graph.call_function(sym_size, (nodes[e.number], e.dim))
            else:
                args = tuple(self.emit(a, graph, nodes) for a in e.args)
                node = graph.call_function(e.function, args)
            self._nodes[e] = node
        return self._nodes[e]

    def guards(self, graph: Graph, nodes: Any, before: int) -> None:
        """Emits the guards whose sizes are known; those of inputs are kept for SizeGuards."""
        waiting = []
        for guard in self._pending:
            read = [s for a in guard.args for s in sizes_in(a)]
            closed = {s: self.resolver.of_size(s) for s in read}
            if all(c is not None for c in closed.values()):
                args = tuple(_substituted(a, closed) for a in guard.args)
                if any(sizes_in(a) for a in args):
                    self.inputs.append(Guard(guard.function, args, guard.truth, guard.hints))
            elif all(s.number < before for s in read):
                truth = graph.call_function(
                    guard.function, tuple(self.emit(a, graph, nodes) for a in guard.args)
                )
                graph.call_function(check_guard, (truth, guard.truth, describe(guard)))
            else:
                waiting.append(guard)
        self._pending = waiting

    def call(self, index: int, args: Any, kwargs: Any, graph: Graph, nodes: Any) -> tuple[Any, Any]:
        """The arguments of call `index` with nodes for the numbers that differ between runs."""
        runs = self.explored.runs
        name, _, _, results = runs[0].calls[index]
        flat = [n for _, n in _numbers(results) if n] or [len(runs[0].recording.values) + 1]
        before = min(flat)
        self.guards(graph, nodes, before)
        rows = [dict(_numbers(run.calls[index][1:3])) for run in runs]
        refs = [a.number for a in rows[0].values() if isinstance(a, _Ref)]
        replaced: dict[Any, Any] = {}
        for place, value in rows[0].items():
            values = tuple(row[place] for row in rows)
            if not _is_number(value) or all(v == value for v in values):
                continue
            found = self.resolver.resolve(values, refs, before)
            if found is None:
                raise NotImplementedError(
                    f"An argument of operator {name} depends on sizes in a way that the symbolic trace cannot say: it "
                    f'is {list(values)} for the sizes of the runs. Trace with tracing_mode="fake", or compute the '
                    "number from x.shape in the traced function."
                )
            replaced[place] = self.emit(found, graph, nodes)
        if not replaced:
            return args, kwargs
        new = _put((args, kwargs), (), replaced)
        return new[0], new[1]


def _put(tree: Any, path: tuple[Any, ...], replaced: dict[Any, Any]) -> Any:
    if isinstance(tree, (tuple, list)):
        return type(tree)(_put(item, (*path, i), replaced) for i, item in enumerate(tree))
    if isinstance(tree, dict):
        return {k: _put(item, (*path, k), replaced) for k, item in tree.items()}
    return replaced.get(path, tree)


def _substituted(e: Expression, by: dict[Size, Expression]) -> Expression:
    if isinstance(e, Size):
        return by[e]
    if isinstance(e, Computed):
        args = tuple(_substituted(a, by) for a in e.args)
        if not any(sizes_in(a) for a in args):
            return e.function(*args)
        return Computed(e.function, args)
    return e


def _annotate(graph: Graph, resolver: _Resolver, names: dict[Size, str], guards: SizeGuards) -> None:
    """Symbols in the nodes' sizes, and what SizeGuards expects of each."""

    def text(e: Expression) -> str:
        if isinstance(e, Size):
            return names[e]
        if not isinstance(e, Computed):
            return str(e)
        sign = {"add": " + ", "mul": "*", "floordiv": "//"}.get(e.function.__name__, ", ")
        return "(" + sign.join(map(text, e.args)) + ")" if sign != "*" else sign.join(map(text, e.args))

    for node in graph.nodes:
        meta, number = node.meta.get("tensor_meta"), node.meta.pop("number", None)
        if not isinstance(meta, TensorMetadata) or number is None:
            continue
        expected = [resolver.of_size(Size(number, d)) for d in range(len(meta.shape))]
        guards.expected[node.name] = expected
        shape = [
            size if e is not None and not sizes_in(e) else Dimension(size, "?" if e is None else text(e))
            for size, e in zip(meta.shape, expected)
        ]
        node.meta["tensor_meta"] = meta._replace(shape=tuple(shape))


def _guards_of(explored: _Exploration, names: dict[Size, str]) -> SizeGuards:
    recording = explored.main.recording
    guards = SizeGuards(recording.names, names)
    for place, (number, leaf) in enumerate(zip(recording.inputs, recording.leaves)):
        if number is None:
            guards.constants[place] = leaf
        else:
            guards.inputs[number] = place
            guards.ranks[place] = (leaf.dim(), leaf.dtype)
    for hint, sizes in explored.groups.items():
        if hint < 2 or hint in explored.fixed:
            why = explored.fixed.get(hint, "Sizes 0 and 1 are fixed.")
            guards.equal += [(s, hint, why) for s in sizes]
        else:
            guards.equal += [(s, sizes[0], "They were equal when it was traced.") for s in sizes[1:]]
    return guards


def symbolic_graph(
    function: Callable[..., Any], args: tuple[Any, ...], names: list[str] | None = None
) -> tuple[Graph, dict[str, Any]]:
    """The graph of `function`, for all sizes that its guards allow, and the attributes that it names."""
    explored = _Exploration(function, args)
    resolver = _Resolver(explored)
    emitter = _Emitter(explored, resolver)
    symbols = {size: f"s{i}" for i, size in enumerate(explored.symbols)}
    recording = explored.main.recording
    recording.names = names or recording.names
    count = len(recording.values) + 1

    def result(v: Any, graph: Graph, nodes: Any) -> Any:
        if isinstance(v, Value):
            return nodes.returned(v.number)
        return emitter.emit(v.expression, graph, nodes) if isinstance(v, SymNumber) else v

    def finish(graph: Graph, nodes: Any) -> Any:
        emitter.guards(graph, nodes, count)
        return map_aggregate(recording.output, lambda v: result(v, graph, nodes))

    graph, attributes = to_graph(recording, emitter.call, finish)
    guards = _guards_of(explored, symbols)
    guards.guards = list(dict.fromkeys(emitter.inputs))
    _annotate(graph, resolver, symbols, guards)
    _add_guards(graph, attributes, guards)
    return graph, attributes


def _add_guards(graph: Graph, attributes: dict[str, Any], guards: SizeGuards) -> None:
    guards.shape_graph = graph.__deepcopy__()
    for name, value in attributes.items():
        shown = mica.empty_strided(tuple(value.shape), value.stride(), dtype=value.dtype, device="meta")
        guards.shape_attributes[name] = shown
    inputs = [n for n in graph.nodes if n.op == "placeholder"]
    after = inputs[-1] if inputs else None
    with graph.inserting_after(after) if after is not None else graph.inserting_before():
        graph.call_module("size_guards", tuple(inputs))
    attributes["size_guards"] = guards
