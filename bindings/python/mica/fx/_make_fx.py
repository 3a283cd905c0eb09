"""make_fx: a function of tensors as the graph of the operators that it calls."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping
from typing import Any

from mica.fx._graph_module import GraphModule
from mica.fx._interpreter import Interpreter
from mica.fx._recording import record, to_graph
from mica.ops import OpOverload

_MODES = ("real", "fake", "symbolic")


class _Substituting(Interpreter):
    """Runs a graph with other functions in the places of some operators."""

    def __init__(self, module: GraphModule, table: Mapping[Any, Callable[..., Any]]) -> None:
        super().__init__(module)
        self._table = table

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        return self._table.get(target, target)(*args, **kwargs)

    def call_module(self, target: Any, args: Any, kwargs: Any) -> Any:
        # The new trace makes guards of its own.
        return None if target == "size_guards" else super().call_module(target, args, kwargs)


def _once(
    function: Callable[..., Any], args: tuple[Any, ...], mode: str, names: list[str] | None = None
) -> GraphModule:
    if mode == "symbolic":
        from mica.fx._symbolic import symbolic_graph

        graph, attributes = symbolic_graph(function, args, names)
    else:
        recording = record(function, args, fake=mode == "fake")
        recording.names = names or recording.names
        graph, attributes = to_graph(recording)
        for node in graph.nodes:
            node.meta.pop("number", None)
    name = getattr(function, "__name__", "traced")
    return GraphModule(attributes, graph, name if name.isidentifier() else "traced")


def make_fx(
    f: Callable[..., Any],
    decomposition_table: Mapping[Any, Callable[..., Any]] | None = None,
    tracing_mode: str = "real",
) -> Callable[..., GraphModule]:
    """Makes a function that records the operators another one calls, as a GraphModule.

    As `torch.fx.experimental.proxy_tensor.make_fx`. Recorded is what runs: in-place operators and views
    as they are, composites whole, gradients and transforms as the operators that compute them. Tensors
    that `f` captured become attributes. Python control flow is followed once; what needs values, such
    as `x.item()` or `if x.sum() > 0`, raises.

    Args:
        f (callable): A function of Tensors, and trees of them.
        decomposition_table (dict, optional): Functions by the operators (`mica.ops.mica.x.default`) in
            whose places they are recorded. Default: none.
        tracing_mode (str): "real" computes; "fake" computes shapes only, without memory; "symbolic"
            leaves sizes open, so that the graph runs for others too, within guards that it checks.
            Default: "real".

    Returns:
        callable: A function of the same arguments, which returns a GraphModule.

    Raises:
        ValueError: `tracing_mode` is unknown.
        TypeError: `f` is no function.
        RuntimeError: `f` reads a value of a Tensor (from the call).

    Example:
        >>> traced = mica.fx.make_fx(mica.func.grad(lambda x: x.sin().sum()))(mica.ones(2))
        >>> [node.name for node in traced.graph.nodes]
        ['x_1', 'sin', 'sum_1', '_tensor_constant0', 'expand', 'cos', 'conj_physical', 'mul', 'output']
        >>> traced(mica.zeros(3)[:2])
        tensor([1., 1.])
    """
    if tracing_mode not in _MODES:
        raise ValueError(f"make_fx: tracing_mode ({tracing_mode!r}) must be one of {', '.join(_MODES)}.")
    if not callable(f):
        raise TypeError(f"make_fx takes a function, but it is a {type(f).__name__}.")

    @functools.wraps(f)
    def wrapped(*args: Any) -> GraphModule:
        made = _once(f, args, tracing_mode)
        table = decomposition_table or {}
        while any(n.op == "call_function" and n.target in table for n in made.graph.nodes):
            made = _once(_Substituting(made, table).run, args, tracing_mode)
        return made

    return wrapped


# What makes memory, or copies, has parts that say less than itself.
_WHOLE = {"mica::empty.memory_format", "mica::empty_strided", "mica::empty_like", "mica::clone"}


class _Opening(Interpreter):
    """Runs a graph with the decompositions of operators in their places."""

    def __init__(self, module: GraphModule, operators: Collection[Any] | None) -> None:
        super().__init__(module)
        self._operators = operators
        self.opened: set[str] = set()

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        wanted = self._operators is None or target in self._operators
        if wanted and isinstance(target, OpOverload) and target.name() not in _WHOLE:
            result = target.decompose(*args, **kwargs)
            if result is not NotImplemented:
                self.opened.add(target.name())
                return result
        return super().call_function(target, args, kwargs)

    def call_module(self, target: Any, args: Any, kwargs: Any) -> Any:
        return None if target == "size_guards" else super().call_module(target, args, kwargs)


def decompose(module: GraphModule, operators: Collection[Any] | None = None) -> GraphModule:
    """Opens the composite operators of a recorded graph into their parts, until none is left.

    Args:
        module (GraphModule): A result of `make_fx`.
        operators (collection of OpOverload, optional): The operators to open. Default: all.

    Returns:
        GraphModule: A new module, recorded again without memory.

    Example:
        >>> traced = mica.fx.make_fx(lambda x: mica.nn.functional.mse_loss(x, x))(mica.ones(2))
        >>> [str(node.target) for node in mica.fx.decompose(traced).graph.find_nodes(op="call_function")]
        ['mica.sub.Tensor', 'mica.square.default', 'mica.mean.default']
    """
    while True:
        inputs = [n for n in module.graph.nodes if n.op == "placeholder"]
        args = tuple(
            n.meta["tensor_meta"].like() if "tensor_meta" in n.meta else n.meta.get("val") for n in inputs
        )
        symbolic = any(n.op == "call_module" and n.target == "size_guards" for n in module.graph.nodes)
        runner = _Opening(module, operators)

        def run(*values: Any, runner: _Opening = runner) -> Any:
            return runner.run(*values, enable_io_processing=False)

        made = _once(run, args, "symbolic" if symbolic else "fake", [n.target for n in inputs])
        made.graph.in_spec, made.graph.out_spec = module.graph.in_spec, module.graph.out_spec
        made.recompile()
        if not runner.opened or made.code == module.code:
            return made
        module = made
