"""From a Graph to the Python source of its function.

The source names functions by their import paths (mica.ops.mica.add.Tensor, operator.getitem)
and what has none by a name of its own, which `PythonCode.globals` holds. Each value is
dropped after its last use, so that memory is that of the program."""

from __future__ import annotations

import importlib
import math
import operator
from typing import TYPE_CHECKING, Any, NamedTuple

import mica
from mica.fx._node import Node, TensorMetadata, target_name

if TYPE_CHECKING:
    from mica.fx._graph import Graph


class PythonCode(NamedTuple):
    """The source of a function `forward`, with the objects that it names.

    As `torch.fx.graph.PythonCode`; `Graph.python_code` makes it.

    Args:
        src (str): The source.
        globals (dict of str to object): What its global names stand for.

    Example:
        >>> traced = mica.fx.symbolic_trace(lambda x: x + 1)
        >>> print(traced.graph.python_code().src)
        def forward(self, x):
            add = x + 1;  x = None
            return add
    """

    src: str
    globals: dict[str, Any]


class _Globals:
    def __init__(self, locals_: set[str]) -> None:
        self._locals = locals_
        self.found: dict[str, Any] = {"mica": mica, "operator": operator, "math": math}

    def spell(self, value: Any, path: str) -> str:
        """The import path, if it leads to `value`; else a new global."""
        root, _, rest = path.partition(".")
        if rest and self._reached(path) is value:
            self.found.setdefault(root, importlib.import_module(root))
            return path
        name = path.rpartition(".")[2]
        name = name if name.isidentifier() else "_function"
        wish, number = name, 0
        while name in self._locals or (name in self.found and self.found[name] is not value):
            number += 1
            name = f"{wish}_{number}"
        self.found[name] = value
        return name

    @staticmethod
    def _reached(path: str) -> Any:
        parts = path.split(".")
        try:
            value: Any = importlib.import_module(parts[0])
            for part in parts[1:]:
                value = getattr(value, part)
        except (ImportError, AttributeError):
            return None
        return value


def _constant(value: Any, names: _Globals) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return f"float('{value}')"
    if isinstance(value, complex) and not (math.isfinite(value.real) and math.isfinite(value.imag)):
        return f"complex({_constant(value.real, names)}, {_constant(value.imag, names)})"
    if value is None or value is ... or isinstance(value, (bool, int, float, complex, str, bytes)):
        return "..." if value is ... else repr(value)
    if isinstance(value, mica.device):
        return f"mica.device({str(value)!r})"
    if isinstance(value, (mica.dtype, mica.memory_format, mica.layout)):
        return names.spell(value, str(value))
    if callable(value):
        return names.spell(value, target_name(value))
    return names.spell(value, f"_constant_{type(value).__name__}")


def _spelled(a: Any, names: _Globals) -> str:
    if isinstance(a, Node):
        return a.name
    if isinstance(a, tuple) and hasattr(a, "_fields"):
        return (
            names.spell(type(a), target_name(type(a))) + "(" + ", ".join(_spelled(x, names) for x in a) + ")"
        )
    if isinstance(a, tuple):
        return "(" + ", ".join(_spelled(x, names) for x in a) + ("," if len(a) == 1 else "") + ")"
    if isinstance(a, list):
        return "[" + ", ".join(_spelled(x, names) for x in a) + "]"
    if isinstance(a, dict):
        return "{" + ", ".join(f"{k!r}: {_spelled(v, names)}" for k, v in a.items()) + "}"
    if isinstance(a, slice):
        return f"slice({', '.join(_spelled(x, names) for x in (a.start, a.stop, a.step))})"
    return _constant(a, names)


_OPERATORS = {
    operator.add: "+",
    operator.sub: "-",
    operator.mul: "*",
    operator.truediv: "/",
    operator.floordiv: "//",
    operator.mod: "%",
    operator.pow: "**",
    operator.matmul: "@",
    operator.and_: "&",
    operator.or_: "|",
    operator.xor: "^",
    operator.lshift: "<<",
    operator.rshift: ">>",
    operator.eq: "==",
    operator.ne: "!=",
    operator.lt: "<",
    operator.gt: ">",
    operator.le: "<=",
    operator.ge: ">=",
}
_SIGNS = {operator.neg: "-", operator.pos: "+", operator.invert: "~"}


def _expression(node: Node, root: str, names: _Globals) -> str:
    args = [_spelled(a, names) for a in node.args]
    named = [f"{k} = {_spelled(v, names)}" for k, v in node.kwargs.items()]
    if node.op == "get_attr":
        return _module(root, node.target)
    if node.op == "call_method":
        return f"{args[0]}.{node.target}({', '.join(args[1:] + named)})"
    if node.op == "call_module":
        return f"{_module(root, node.target)}({', '.join(args + named)})"
    if node.target is operator.getitem and len(args) == 2:
        return f"{args[0]}[{args[1]}]"
    if node.target in _OPERATORS and len(args) == 2:
        return f"{args[0]} {_OPERATORS[node.target]} {args[1]}"
    if node.target in _SIGNS and len(args) == 1:
        return f"{_SIGNS[node.target]}{args[0]}"
    if node.target is getattr and len(args) == 2 and str(node.args[1]).isidentifier():
        return f"{args[0]}.{node.args[1]}"
    return f"{names.spell(node.target, target_name(node.target))}({', '.join(args + named)})"


def _module(root: str, path: str) -> str:
    text = root
    for part in path.split("."):
        text = f"{text}.{part}" if part.isidentifier() else f"getattr({text}, {part!r})"
    return text


def _last_uses(graph: Graph) -> dict[Node, list[Node]]:
    """For each node, the values that nothing behind it uses."""
    last: dict[Node, Node] = {}
    for node in reversed(graph.nodes):
        for used in node.all_input_nodes:
            last.setdefault(used, node)
    dropped: dict[Node, list[Node]] = {}
    for used, user in last.items():
        dropped.setdefault(user, []).append(used)
    return dropped


def _note(node: Node) -> str:
    meta = node.meta.get("tensor_meta")
    return f': "{meta}"' if isinstance(meta, TensorMetadata) else ""


def generate(graph: Graph, root: str, verbose: bool) -> PythonCode:
    """The source of `def forward(self, ...)`."""
    names = _Globals({n.name for n in graph.nodes})
    inputs = [n for n in graph.nodes if n.op == "placeholder"]
    lines: list[str] = []
    if graph.in_spec is None:
        parameters = []
        for n in inputs:
            star = "*" * (len(n.target) - len(n.target.lstrip("*")))
            default = f" = {_spelled(n.args[0], names)}" if n.args and not star else ""
            parameters.append(f"{star}{n.name}{_note(n) if verbose else ''}{default}")
        head = f"def forward({', '.join(['self', *parameters])}):"
    else:
        head = "def forward(self, *args):"
        names.found["_in_spec"] = graph.in_spec
        names.found["_flatten_arguments"] = flatten_arguments
        targets = ", ".join(n.name for n in inputs) + ("," if len(inputs) == 1 else "")
        lines.append(f"    {targets} = _flatten_arguments(args, _in_spec)" if inputs else "    pass")
    dropped = _last_uses(graph)
    for node in graph.nodes:
        ended = [n.name for n in dropped.get(node, [])] + ([] if node.users else [node.name])
        ends = f";  {' = '.join(ended)} = None" if ended else ""
        if node.op == "placeholder":
            continue
        if node.op == "output":
            result = _spelled(node.args[0], names)
            if graph.out_spec is not None:
                names.found["_out_spec"] = graph.out_spec
                names.found["_tree_unflatten"] = mica.utils._pytree.tree_unflatten
                result = f"_tree_unflatten({result}, _out_spec)"
            lines.append(f"    return {result}")
            continue
        note = _note(node) if verbose else ""
        lines.append(f"    {node.name}{note} = {_expression(node, root, names)}{ends}")
    return PythonCode(head + "\n" + "\n".join(lines or ["    pass"]) + "\n", names.found)


def flatten_arguments(args: tuple[Any, ...], spec: Any) -> list[Any]:
    """The leaves of a call's arguments, whose structure must be that of the trace."""
    leaves, given = mica.utils._pytree.tree_flatten(args)
    if given != spec:
        raise ValueError(
            f"The graph was traced with arguments of the structure ({spec}), but it is called with ({given})."
        )
    return leaves
