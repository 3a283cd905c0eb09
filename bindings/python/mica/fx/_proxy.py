"""Proxy: stands for a node's value while Python code runs on it; what the code does becomes
nodes. Tracer says what is recorded; symbolic_trace uses it for whole modules.

Proxies see Python: methods, arithmetic, modules (mica.fx.symbolic_trace). To record what
operators are called, gradients and transforms included, use mica.fx.make_fx."""

from __future__ import annotations

import contextlib
import inspect
import math
import operator
from collections.abc import Callable, Iterator
from typing import Any

from mica._C import Tensor
from mica._functions import einsum as _einsum
from mica.fx._graph import Graph
from mica.fx._node import Argument, Node, map_aggregate, target_name
from mica.fx.operator_schemas import overloads_of
from mica.nn import Module, Parameter
from mica.nn.modules.module import exchange_call


class TraceError(ValueError):
    """Python code asks a Proxy, while it is traced, for what only a run has: its truth, its length."""


def _refuse_writing(target: Any, kwargs: dict[str, Any]) -> None:
    """Raises RuntimeError for a function of Mica that writes an argument."""
    overloads = overloads_of(target)
    in_place = all(overload._schema.is_mutable for overload in overloads)
    if overloads and (in_place or kwargs.get("out") is not None):
        raise RuntimeError(
            f"Tried to trace mutable operation {target_name(target)}: it writes an argument (in place, or as `out`), "
            "and this tracer records functions without effect alone; use the one that returns a new tensor, or set "
            "check_mutable_operations to False."
        )


class TracerBase:
    """Makes nodes of a graph, and the proxies that stand for their values, while Python code is traced.

    As `torch.fx.proxy.TracerBase`; `Tracer` traces modules.

    Example:
        >>> tracer = mica.fx.Tracer()
        >>> graph = tracer.trace(lambda x: x + 1)
        >>> isinstance(tracer, mica.fx.proxy.TracerBase), len(graph.nodes)
        (True, 3)
    """

    graph: Graph
    # Whether create_node() refuses functions that write an argument; programs set it on the class or a tracer.
    check_mutable_operations: bool = False

    def create_node(
        self,
        kind: str,
        target: Any,
        args: tuple[Argument, ...],
        kwargs: dict[str, Any],
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Adds a node to the graph; override it to see each of them.

        Args:
            kind (str): "call_function" and so on, as `Node.op`.
            target (callable or str): As `Node.target`.
            args (tuple): Positional arguments: nodes and values, nested.
            kwargs (dict): Keyword arguments.
            name (str, optional): Wish for its name. Default: from the target.
            type_expr (type, optional): Type of its value. Default: None.

        Returns:
            Node: The node.

        Raises:
            RuntimeError: The function writes an argument, and `check_mutable_operations` is True.
        """
        if kind == "call_function" and self.check_mutable_operations:
            _refuse_writing(target, kwargs)
        return self.graph.create_node(kind, target, args, kwargs, name, type_expr)

    def proxy(self, node: Node) -> Proxy:
        """Makes what stands for a node's value; override it for proxies of a class of your own.

        Args:
            node (Node): The node.

        Returns:
            Proxy: Stands for its value.
        """
        return Proxy(node, self)

    def create_proxy(
        self,
        kind: str,
        target: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        name: str | None = None,
        type_expr: Any = None,
        proxy_factory_fn: Callable[[Node], Proxy] | None = None,
    ) -> Proxy:
        """Records a call: adds a node, and makes what stands for its value.

        Args:
            kind (str): "call_function" and so on, as `Node.op`.
            target (callable or str): As `Node.target`.
            args (tuple): Positional arguments: proxies and values, nested.
            kwargs (dict): Keyword arguments.
            name (str, optional): Wish for the node's name. Default: from the target.
            type_expr (type, optional): Type of its value. Default: None.
            proxy_factory_fn (callable, optional): `f(node)` makes the proxy. Default: `self.proxy`.

        Returns:
            Proxy: Stands for the result.
        """
        node = self.create_node(kind, target, self.create_arg(args), self.create_arg(kwargs), name, type_expr)
        return (proxy_factory_fn or self.proxy)(node)

    def create_arg(self, a: Any) -> Argument:
        """Turns an argument of a recorded call into what the node holds.

        Args:
            a (object): Proxies and values, nested.

        Returns:
            The same nesting, of nodes and values.
        """
        return map_aggregate(a, self._leaf)

    def iter(self, obj: Proxy) -> Iterator[Any]:
        """Makes what a loop over a value goes through; raises TraceError, since only a run knows its length.

        Args:
            obj (Proxy): The value.

        Returns:
            iterator: What an override gives.
        """
        raise TraceError(
            f"The value ({obj.node.name}) is iterated while it is traced, and its length is known in a run alone; "
            "index it, or write `a, b = value`."
        )

    def to_bool(self, obj: Proxy) -> bool:
        """Decides what `if` makes of a value; raises TraceError, since only a run knows it.

        Args:
            obj (Proxy): The value.

        Returns:
            bool: What an override gives.
        """
        raise TraceError(
            f"The truth of the value ({obj.node.name}) is known in a run alone, so that `if` cannot follow it while "
            "it is traced; use mica.where, or make the condition an argument that is no tensor."
        )

    def keys(self, obj: Proxy) -> Any:
        """Makes what `**value` goes through: a recorded call of `keys()`.

        Args:
            obj (Proxy): The value.

        Returns:
            Proxy: Stands for the keys.
        """
        return Attribute(obj, "keys")()

    def _leaf(self, a: Any) -> Argument:
        return a.node if isinstance(a, Proxy) else a


class GraphAppendingTracer(TracerBase):
    """A tracer that adds to a graph that exists, for proxies made by hand.

    As `torch.fx.proxy.GraphAppendingTracer`.

    Args:
        graph (Graph): The graph.

    Example:
        >>> graph = mica.fx.Graph()
        >>> x = mica.fx.Proxy(graph.placeholder("x"), mica.fx.proxy.GraphAppendingTracer(graph))
        >>> _ = graph.output((2 * x).node)
        >>> mica.fx.GraphModule({}, graph)(mica.ones(1))
        tensor([2.])
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph


class Proxy:
    """Stands for a value while Python code is traced; operators, methods and functions of it are recorded.

    As `torch.fx.Proxy`.

    Args:
        node (Node): The node whose value it stands for.
        tracer (TracerBase, optional): What records. Default: one that adds to the node's graph.

    Raises:
        TraceError: Its truth or length is asked, or a loop goes over it.

    Example:
        >>> graph = mica.fx.Graph()
        >>> x = mica.fx.Proxy(graph.placeholder("x"))
        >>> y = mica.exp(x) + x.sum()
        >>> [node.name for node in graph.nodes]
        ['x', 'exp', 'sum_1', 'add']
    """

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        self.node = node
        self.tracer = tracer if tracer is not None else GraphAppendingTracer(node.graph)

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, name: str) -> Attribute:
        return Attribute(self, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __getitem__(self, key: Any) -> Proxy:
        return self.tracer.create_proxy("call_function", operator.getitem, (self, key), {})

    def __iter__(self) -> Iterator[Any]:
        # `a, b = value` says how many there are; other loops cannot be recorded.
        frame = inspect.currentframe()
        caller = frame.f_back if frame is not None else None
        if caller is not None:
            count = _unpacked(caller)
            if count is not None:
                return (self[i] for i in range(count))
        return self.tracer.iter(self)

    def __bool__(self) -> bool:
        return self.tracer.to_bool(self)

    def keys(self) -> Any:
        """Makes what `**value` goes through: a recorded call of `keys()`, unless the tracer says otherwise."""
        return self.tracer.keys(self)

    def __len__(self) -> int:
        raise TraceError(
            f"The length of the value ({self.node.name}) is known in a run alone; use value.shape[0], which is traced."
        )

    @classmethod
    def __mica_function__(
        cls,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """A function of Mica that was given a Proxy."""
        found: list[Proxy] = []
        map_aggregate((args, kwargs or {}), lambda a: found.append(a) if isinstance(a, Proxy) else None)
        tracer = found[0].tracer
        if func is _einsum and len(args) == 2 and isinstance(args[1], (list, tuple)):
            args = (args[0], *args[1])  # the one spelling that passes over graphs look for
        return tracer.create_proxy("call_function", func, args, kwargs or {})


class Attribute(Proxy):
    """`value.name` of a Proxy: a method where it is called, an attribute where it is used.

    As `torch.fx.proxy.Attribute`.

    Args:
        root (Proxy): The value.
        name (str): Name of the attribute. Kept as `attr`.

    Example:
        >>> graph = mica.fx.Graph()
        >>> mica.fx.Proxy(graph.placeholder("x")).sum
        Proxy(getattr_1)
    """

    def __init__(self, root: Proxy, name: str) -> None:
        self.root = root
        self.attr = name
        self.tracer = root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:  # type: ignore[override]
        if self._node is None:
            self._node = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {}).node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


def _unpacked(frame: Any) -> int | None:
    """How many names the statement that runs in `frame` unpacks into."""
    import dis

    for instruction in dis.get_instructions(frame.f_code):
        if instruction.offset == frame.f_lasti:
            return instruction.argval if instruction.opname == "UNPACK_SEQUENCE" else None
    return None


def _binary(function: Callable[..., Any]) -> Callable[[Proxy, Any], Proxy]:
    return lambda self, other: self.tracer.create_proxy("call_function", function, (self, other), {})


def _reflected(function: Callable[..., Any]) -> Callable[[Proxy, Any], Proxy]:
    return lambda self, other: self.tracer.create_proxy("call_function", function, (other, self), {})


def _unary(function: Callable[..., Any]) -> Callable[[Proxy], Proxy]:
    return lambda self: self.tracer.create_proxy("call_function", function, (self,), {})


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "lshift", "rshift"):
    setattr(Proxy, f"__{_name}__", _binary(getattr(operator, _name)))
    setattr(Proxy, f"__r{_name}__", _reflected(getattr(operator, _name)))
for _name in ("and", "or", "xor"):
    setattr(Proxy, f"__{_name}__", _binary(getattr(operator, f"__{_name}__")))
    setattr(Proxy, f"__r{_name}__", _reflected(getattr(operator, f"__{_name}__")))
for _name in ("eq", "ne", "lt", "gt", "le", "ge"):
    setattr(Proxy, f"__{_name}__", _binary(getattr(operator, _name)))
for _name in ("neg", "pos", "invert", "abs"):
    setattr(Proxy, f"__{_name}__", _unary(getattr(operator, _name)))
Proxy.__hash__ = object.__hash__  # type: ignore[method-assign]

_wrapped: list[tuple[dict[str, Any], str]] = []


def wrap(fn_or_name: Any) -> Any:
    """Makes `symbolic_trace` record calls of a function as one node, without looking into it.

    As `torch.fx.wrap`. It is called at the top level of a module, or decorates a function there.

    Args:
        fn_or_name (callable or str): The function, or its name in that module.

    Returns:
        callable or str: What was given.

    Raises:
        NotImplementedError: It is called inside a function.

    Example:
        >>> @mica.fx.wrap
        ... def total(x):
        ...     return float(x.sum())
        >>> [node.name for node in mica.fx.symbolic_trace(lambda x: total(x) + 1).graph.nodes]
        ['x', 'total', 'add', 'output']
    """
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    frame = inspect.currentframe()
    assert frame is not None and frame.f_back is not None
    if frame.f_back.f_code.co_name != "<module>":
        raise NotImplementedError("mica.fx.wrap must be called at the top level of a module.")
    _wrapped.append((frame.f_back.f_globals, name))
    return fn_or_name


class Tracer(TracerBase):
    """Traces a module's `forward`, or a function, into a graph, by calling it with proxies.

    As `torch.fx.Tracer`. Override `is_leaf_module` to say which submodules are looked into.

    Args:
        autowrap_modules (tuple of module): Their functions become one node each where the traced code
            names them. Default: `(math,)`.
        autowrap_functions (tuple of callable): More such functions. Default: none.
        param_shapes_constant (bool): No effect. Default: False.

    Example:
        >>> class Deep(mica.fx.Tracer):
        ...     def is_leaf_module(self, m, module_qualified_name):
        ...         return False
        >>> model = mica.nn.Sequential(mica.nn.ReLU())
        >>> [node.op for node in mica.fx.Tracer().trace(model).nodes]
        ['placeholder', 'call_module', 'output']
        >>> [node.op for node in Deep().trace(model).nodes]
        ['placeholder', 'call_function', 'output']
    """

    def __init__(
        self,
        autowrap_modules: tuple[Any, ...] = (math,),
        autowrap_functions: tuple[Callable[..., Any], ...] = (),
        param_shapes_constant: bool = False,
    ) -> None:
        """Functions of `autowrap_modules` and `autowrap_functions` are recorded whole where they stand
        among the names of a traced function or of a submodule's forward."""
        functions = [f for m in autowrap_modules for n, f in vars(m).items() if not n.startswith("_")]
        self._autowrapped = {id(f) for f in (*functions, *autowrap_functions) if callable(f)}
        self.graph = Graph()
        self.root: Module = Module()
        self._paths: dict[int, str] = {}
        self._constants: dict[int, str] = {}

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        """Returns whether a submodule becomes one node, instead of what its `forward` does.

        Args:
            m (Module): The submodule.
            module_qualified_name (str): Path of the submodule: "encoder.layers.0".

        Returns:
            bool: True for layers of `mica.nn`, containers aside, unless overridden.
        """
        return type(m).__module__.startswith(("mica.nn", "torch.nn")) and not isinstance(m, _CONTAINERS)

    def path_of_module(self, mod: Module) -> str:
        """Finds the path of a submodule.

        Args:
            mod (Module): The submodule.

        Returns:
            str: The path.

        Raises:
            NameError: It is no submodule of the traced module.
        """
        for name, found in self.root.named_modules(remove_duplicate=False):
            if found is mod:
                return name
        raise NameError(f"The module ({type(mod).__name__}) is called, but it is no submodule of the root.")

    def call_module(
        self, m: Module, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Records the call of a submodule: as a node, or as what its `forward` does.

        Args:
            m (Module): The submodule.
            forward (callable): Its `forward`.
            args (tuple): Positional arguments.
            kwargs (dict): Keyword arguments.

        Returns:
            Proxy or object: The result.
        """
        path = self.path_of_module(m)
        if self.is_leaf_module(m, path):
            return self.create_proxy("call_module", path, args, kwargs)
        return forward(*args, **kwargs)

    def _leaf(self, a: Any) -> Argument:
        if isinstance(a, Proxy):
            return a.node
        if not isinstance(a, Tensor):
            return a
        if id(a) not in self._paths:
            for name, found in [*self.root.named_parameters(), *self.root.named_buffers()]:
                self._paths.setdefault(id(found), name)
        path = self._paths.get(id(a))
        if path is None:
            path = f"_tensor_constant{len(self._constants)}"
            self._constants[id(a)] = self._paths[id(a)] = path
            if isinstance(a, Parameter):
                setattr(self.root, path, a)
            else:
                self.root.register_buffer(path, a, persistent=False)
        return self.create_node("get_attr", path, (), {}, path.replace(".", "_"))

    def trace(self, root: Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None) -> Graph:
        """Traces a module or a function.

        Args:
            root (Module or callable): The module, or the function.
            concrete_args (dict of str to object, optional): Values of arguments that are fixed, by name;
                Python control flow may depend on them, and the graph does not take them. Default: none.

        Returns:
            Graph: The graph. Attributes that it names are in `self.root`.

        Raises:
            TraceError: Control flow depends on a traced value.
        """
        self.graph = Graph()
        self.graph._tracer_cls = type(self)
        if isinstance(root, Module):
            self.root = root
            function: Callable[..., Any] = type(root).forward
            first: tuple[Any, ...] = (root,)
        else:
            self.root = Module()
            function, first = root, ()
        args, kwargs = self._placeholders(function, len(first), concrete_args or {})
        with _recording(self, _globals_of(function)):
            result = function(*first, *args, **kwargs)
        self.create_node("output", "output", (self.create_arg(result),), {}, "output")
        return self.graph

    def _placeholders(
        self, function: Callable[..., Any], skip: int, fixed: dict[str, Any]
    ) -> tuple[list[Any], dict[str, Any]]:
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        for name, p in list(inspect.signature(function).parameters.items())[skip:]:
            if p.kind is p.VAR_POSITIONAL:
                args.append(self.create_proxy("placeholder", "*" + name, (), {}))
                continue
            if p.kind is p.VAR_KEYWORD:
                continue
            if name in fixed:
                value: Any = fixed[name]
            else:
                default = () if p.default is p.empty else (p.default,)
                value = self.create_proxy("placeholder", name, default, {})
            if p.kind is p.KEYWORD_ONLY:
                kwargs[name] = value
            else:
                args.append(value)
        return args, kwargs


def _globals_of(function: Callable[..., Any]) -> dict[str, Any]:
    return getattr(inspect.unwrap(function), "__globals__", {})


@contextlib.contextmanager
def _recording(tracer: Tracer, names: dict[str, Any]) -> Iterator[None]:
    """Calls of modules, and of functions that were given to wrap(), become nodes."""

    def call(m: Module, *args: Any, **kwargs: Any) -> Any:
        return tracer.call_module(m, lambda *a, **k: original(m, *a, **k), args, kwargs)

    def recorded(function: Callable[..., Any]) -> Callable[..., Any]:
        def one(*args: Any, **kwargs: Any) -> Any:
            found: list[Proxy] = []
            map_aggregate((args, kwargs), lambda a: found.append(a) if isinstance(a, Proxy) else None)
            if not found:
                return function(*args, **kwargs)
            return tracer.create_proxy("call_function", function, args, kwargs)

        return one

    saved = [(where, name, where[name]) for where, name in _wrapped if name in where]
    known = {(id(where), name) for where, name, _ in saved}
    spaces = [names, *(_globals_of(type(m).forward) for m in tracer.root.modules())]
    for where in {id(space): space for space in spaces}.values():
        found = [(n, f) for n, f in where.items() if id(f) in tracer._autowrapped and not n.startswith("_")]
        saved += [(where, name, f) for name, f in found if (id(where), name) not in known]
    original = exchange_call(call)
    try:
        for where, name, function in saved:
            where[name] = recorded(function)
        yield
    finally:
        exchange_call(original)
        for where, name, function in saved:
            where[name] = function


def _containers() -> tuple[type, ...]:
    import mica.nn as nn

    return (nn.Sequential, nn.ModuleList, nn.ModuleDict)


_CONTAINERS = _containers()


def symbolic_trace(root: Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None) -> Any:
    """Makes a GraphModule of what the Python code of a module, or of a function, does with its arguments.

    As `torch.fx.symbolic_trace`. Recorded are operators, methods, functions of Mica and calls of its
    layers. `make_fx` records operators instead, gradients and transforms included.

    Args:
        root (Module or callable): The module, or the function.
        concrete_args (dict of str to object, optional): Values of arguments that are fixed, by name;
            Python control flow may depend on them, and the graph does not take them. Default: none.

    Returns:
        GraphModule: The program.

    Raises:
        TraceError: Control flow depends on a traced value, a loop over a Tensor for instance.

    Example:
        >>> traced = mica.fx.symbolic_trace(mica.nn.Sequential(mica.nn.Linear(2, 1), mica.nn.ReLU()))
        >>> print(traced.code)
        def forward(self, input_1):
            _0 = getattr(self, '0')(input_1);  input_1 = None
            _1 = getattr(self, '1')(_0);  _0 = None
            return _1
    """
    from mica.fx._graph_module import GraphModule

    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, Module) else root.__name__
    return GraphModule(tracer.root, graph, name if name.isidentifier() else "GraphModule")
