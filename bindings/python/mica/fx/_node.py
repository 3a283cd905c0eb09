"""Node: one step of a Graph, with torch.fx's fields and meanings.

`op` is "placeholder", "get_attr", "call_function", "call_method", "call_module" or
"output"; `target` says what of, `args` and `kwargs` hold Python values and other nodes,
nested in tuples, lists, dicts and slices. A node knows who uses it (`users`), and keeps
this right when its arguments are set."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import mica
from mica._C import Tensor
from mica.ops import OpOverload

if TYPE_CHECKING:
    from mica.fx._graph import Graph

Target = Callable[..., Any] | str
Argument = Any

# Functions, beside operators that write, that dead code elimination leaves; programs add theirs.
_side_effectful_functions: set[Callable[..., Any]] = {operator.setitem}

OPS = ("placeholder", "get_attr", "call_function", "call_method", "call_module", "output")


class TensorMetadata(NamedTuple):
    """What a Tensor looked like when a graph was recorded: `node.meta["tensor_meta"]`.

    As `torch.fx.passes.shape_prop.TensorMetadata`, with fewer fields.

    Args:
        shape (Size): The shape.
        dtype (dtype): The dtype of the Tensor.
        stride (tuple of int): The strides, in elements.
        device (device): The device.

    Example:
        >>> traced = mica.fx.make_fx(lambda x: x + 1)(mica.ones(2, 3))
        >>> print(next(iter(traced.graph.nodes)).meta["tensor_meta"])
        float32[2, 3]
    """

    shape: Any
    dtype: Any
    stride: tuple[int, ...]
    device: Any

    def __str__(self) -> str:
        name = str(self.dtype).rpartition(".")[2]
        sizes = ", ".join(str(s) for s in self.shape)
        return f"{name}[{sizes}]"

    def like(self) -> Tensor:
        """Returns a Tensor of this shape, dtype, strides and device, with undefined values."""
        return mica.empty_strided(tuple(self.shape), tuple(self.stride), dtype=self.dtype, device=self.device)


def map_aggregate(a: Argument, fn: Callable[[Argument], Argument]) -> Argument:
    """Applies a function to everything within nested tuples, lists, dicts and slices.

    As `torch.fx.node.map_aggregate`.

    Args:
        a (object): The nesting.
        fn (callable): `fn(leaf)` returns what replaces it.

    Returns:
        The same nesting of the results.

    Example:
        >>> mica.fx.node.map_aggregate({"a": (1, [2])}, lambda leaf: 10 * leaf)
        {'a': (10, [20])}
    """
    kind = type(a)
    if kind is tuple:
        return tuple([map_aggregate(x, fn) for x in a])
    if kind is list:
        return [map_aggregate(x, fn) for x in a]
    if kind is dict:
        return {k: map_aggregate(v, fn) for k, v in a.items()}
    if isinstance(a, tuple):
        items = [map_aggregate(x, fn) for x in a]
        return kind(*items) if hasattr(a, "_fields") else kind(items)
    if isinstance(a, list):
        return [map_aggregate(x, fn) for x in a]
    if isinstance(a, dict):
        return kind((k, map_aggregate(v, fn)) for k, v in a.items())
    if kind is slice:
        return slice(map_aggregate(a.start, fn), map_aggregate(a.stop, fn), map_aggregate(a.step, fn))
    return fn(a)


def map_arg(a: Argument, fn: Callable[[Node], Argument]) -> Argument:
    """Applies a function to every node within nested tuples, lists, dicts and slices.

    As `torch.fx.map_arg`.

    Args:
        a (object): A node's `args` or `kwargs`, say.
        fn (callable): `fn(node)` returns what replaces it.

    Returns:
        The same nesting, other values as they are.

    Example:
        >>> graph = mica.fx.symbolic_trace(lambda x: x + 1).graph
        >>> [mica.fx.map_arg(node.args, lambda n: n.name) for node in graph.nodes]
        [(), ('x', 1), ('add',)]
    """
    return map_aggregate(a, lambda x: fn(x) if isinstance(x, Node) else x)


def _collect(a: Argument, into: dict[Node, None]) -> None:
    if isinstance(a, Node):
        into[a] = None
    elif isinstance(a, (tuple, list)):
        for x in a:
            _collect(x, into)
    elif isinstance(a, dict):
        for x in a.values():
            _collect(x, into)
    elif isinstance(a, slice):
        _collect((a.start, a.stop, a.step), into)


class Node:
    """One step of a graph: an argument, a call, the reading of an attribute, or the output.

    As `torch.fx.Node`. The methods of `Graph` make it, nobody else.

    Args:
        graph (Graph): Where it belongs.
        name (str): Its name, once in the graph.
        op (str): "placeholder", "get_attr", "call_function", "call_method", "call_module" or "output".
        target (callable or str): The function; or the name of the argument or method, or the path of
            the attribute or submodule.
        args (tuple): Positional arguments: nodes and values, nested.
        kwargs (dict): Keyword arguments.
        return_type (type, optional): Type of its value, kept as `type`. Default: None.

    Attributes:
        users (dict of Node): The nodes that use it, as keys.
        meta (dict): What passes write; "tensor_meta" is a TensorMetadata of its value.

    Example:
        >>> graph = mica.fx.symbolic_trace(lambda x: x.exp() + 1).graph
        >>> [(node.op, node.args) for node in graph.nodes]
        [('placeholder', ()), ('call_method', (x,)), ('call_function', (exp, 1)), ('output', (add,))]
    """

    def __init__(
        self,
        graph: Graph,
        name: str,
        op: str,
        target: Target,
        args: tuple[Argument, ...],
        kwargs: dict[str, Argument],
        return_type: Any = None,
    ) -> None:
        self.graph = graph
        self.name = name
        self.op = op
        self.target = target
        self.type = return_type
        self.meta: dict[str, Any] = {}
        self.users: dict[Node, None] = {}
        self._input_nodes: dict[Node, None] = {}
        self._args: tuple[Argument, ...] = ()
        self._kwargs: dict[str, Argument] = {}
        self._next = self._prev = self
        self._set(args, kwargs)

    def _set(self, args: tuple[Argument, ...], kwargs: dict[str, Argument]) -> None:
        for used in self._input_nodes:
            used.users.pop(self, None)
        self._args = tuple(args)
        self._kwargs = dict(kwargs)
        found: dict[Node, None] = {}
        _collect(self._args, found)
        _collect(self._kwargs, found)
        self._input_nodes = found
        for used in found:
            used.users[self] = None

    @property
    def args(self) -> tuple[Argument, ...]:
        """Positional arguments; setting them keeps `users` right."""
        return self._args

    @args.setter
    def args(self, args: tuple[Argument, ...]) -> None:
        self._set(args, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Argument]:
        """Keyword arguments; set them as a whole."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, kwargs: dict[str, Argument]) -> None:
        self._set(self._args, kwargs)

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes among the arguments, each once."""
        return list(self._input_nodes)

    @property
    def next(self) -> Node:
        """The node behind this one in the graph's order."""
        return self._next

    @property
    def prev(self) -> Node:
        """The node before this one in the graph's order."""
        return self._prev

    @property
    def stack_trace(self) -> str | None:
        """Where the recorded program made the node; None where that is not known."""
        return self.meta.get("stack_trace")

    def update_arg(self, idx: int, arg: Argument) -> None:
        """Replaces one positional argument.

        Args:
            idx (int): Which positional argument, from 0.
            arg (object): The new one.
        """
        args = list(self._args)
        args[idx] = arg
        self.args = tuple(args)

    def update_kwarg(self, key: str, arg: Argument) -> None:
        """Replaces or adds one keyword argument.

        Args:
            key (str): Name of the entry.
            arg (object): The new one.
        """
        self.kwargs = {**self._kwargs, key: arg}

    def insert_arg(self, idx: int, arg: Argument) -> None:
        """Inserts a positional argument.

        Args:
            idx (int): Before which place.
            arg (object): The argument.
        """
        self.args = (*self._args[:idx], arg, *self._args[idx:])

    def prepend(self, x: Node) -> None:
        """Moves a node to the place before this one.

        Args:
            x (Node): The node to move.
        """
        if x is self:
            return
        x._unlink()
        before = self._prev
        before._next, x._prev, x._next, self._prev = x, before, self, x

    def append(self, x: Node) -> None:
        """Moves a node to the place behind this one.

        Args:
            x (Node): The node to move.
        """
        self._next.prepend(x)

    def _unlink(self) -> None:
        self._prev._next, self._next._prev = self._next, self._prev
        self._prev = self._next = self

    def replace_all_uses_with(
        self,
        replace_with: Node,
        delete_user_cb: Callable[[Node], bool] | None = None,
        *,
        propagate_meta: bool = False,
    ) -> list[Node]:
        """Puts another node in this one's place in the arguments of its users.

        Args:
            replace_with (Node): The other node.
            delete_user_cb (callable, optional): `f(user)` says whether a user is changed. Default: all are.
            propagate_meta (bool): Copy `meta` to the other node. Default: False.

        Returns:
            list of Node: The users that were changed.
        """
        if propagate_meta:
            replace_with.meta.update(self.meta)
        changed = [user for user in self.users if delete_user_cb is None or delete_user_cb(user)]
        for user in changed:
            user.replace_input_with(self, replace_with)
        return changed

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Puts another node in the place of one among this node's arguments.

        Args:
            old_input (Node): The one to replace.
            new_input (Node): The other one.
        """

        def one(n: Node) -> Node:
            return new_input if n is old_input else n

        self._set(map_arg(self._args, one), map_arg(self._kwargs, one))

    def is_impure(self, impure_random: bool = True) -> bool:
        """Returns whether the node does more than compute its value, so that dead code elimination leaves it.

        Args:
            impure_random (bool): Count the drawing of random numbers. Default: True.

        Returns:
            bool: True for arguments, outputs, modules, checks, and operators that write.
        """
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_function":
            if self.target in _side_effectful_functions or getattr(self.target, "_fx_impure", False):
                return True
            if not isinstance(self.target, OpOverload):
                return False
            return self.target.has_effect() or (impure_random and self.graph._draws(self))
        if self.op == "call_module":
            return True
        return self.op == "call_method" and self.target.endswith("_") and not self.target.endswith("__")

    def format_node(self) -> str:
        """Returns the node as a line of text: name, kind, target and arguments."""
        note = self.meta.get("tensor_meta")
        note = f" : {note}" if isinstance(note, TensorMetadata) else ""
        if self.op == "placeholder":
            default = f" = {self._args[0]!r}" if self._args else ""
            return f"%{self.name}{note} = placeholder[target={self.target}]{default}"
        if self.op == "get_attr":
            return f"%{self.name}{note} = get_attr[target={self.target}]"
        text = f"args = {_format(self._args)}, kwargs = {_format(self._kwargs)}"
        if self.op == "output":
            return f"return {_format(self._args[0])}"
        return f"%{self.name}{note} = {self.op}[target={target_name(self.target)}]({text})"

    def __iter__(self) -> Iterator[Any]:
        raise TypeError(
            f"The node ({self.name}) stands for a value of the graph and cannot be iterated; use "
            "graph.call_function(operator.getitem, (node, i))."
        )

    def __repr__(self) -> str:
        return self.name


def _format(a: Argument) -> str:
    if isinstance(a, Node):
        return f"%{a.name}"
    if isinstance(a, tuple):
        return "(" + ", ".join(map(_format, a)) + ("," if len(a) == 1 else "") + ")"
    if isinstance(a, list):
        return "[" + ", ".join(map(_format, a)) + "]"
    if isinstance(a, dict):
        return "{" + ", ".join(f"{k}: {_format(v)}" for k, v in a.items()) + "}"
    return repr(a)


def target_name(target: Target) -> str:
    """How a function is spelled in messages and code: "mica.ops.mica.add.Tensor"."""
    if isinstance(target, str):
        return target
    path = getattr(target, "python_path", None)
    if path is not None:
        return str(path)
    module = getattr(target, "__module__", None) or ""
    name = getattr(target, "__qualname__", None) or getattr(target, "__name__", repr(target))
    module = {"_operator": "operator", "builtins": ""}.get(module, module)
    return f"{module}.{name}" if module else name
