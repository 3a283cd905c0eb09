"""GraphModule: a Graph as an nn.Module whose forward is the graph's code."""

from __future__ import annotations

import copy
import functools
import linecache
import weakref
from collections.abc import Mapping
from typing import Any

import mica
from mica._C import Tensor
from mica.fx._codegen import PythonCode
from mica.fx._graph import Graph
from mica.nn import Module

_serial = 0
# Names of source whose function is gone, to be dropped when the next is made: linecache goes through its entries, and
# fails where one vanishes meanwhile, as it would with whatever the collector finds then.
_ended: list[str] = []


def _compiled(code: PythonCode) -> Any:
    """The function that the source defines; tracebacks show its lines."""
    global _serial
    _serial += 1
    while _ended:
        linecache.cache.pop(_ended.pop(), None)
    name = f"<mica.fx generated {_serial}>"
    linecache.cache[name] = (len(code.src), None, code.src.splitlines(True), name)
    scope = dict(code.globals)
    exec(compile(code.src, name, "exec"), scope)
    forward = scope["forward"]
    weakref.finalize(forward, _ended.append, name)
    return forward


def attribute_at(module: Any, path: str) -> Any:
    """What is at a path of a module."""
    return functools.reduce(getattr, path.split("."), module)


def _copy_attribute(source: Any, target: Module, path: str) -> None:
    _assign(target, path, attribute_at(source, path))


def _assign(module: Any, path: str, value: Any) -> None:
    """Puts an object at a path of a module, a plain tensor as a buffer; modules on the way that lack are made."""
    *parents, name = path.split(".")
    for part in parents:
        if getattr(module, part, None) is None:
            setattr(module, part, Module())
        module = getattr(module, part)
    if isinstance(value, Tensor) and not isinstance(value, mica.nn.Parameter):
        module.register_buffer(name, value)
    else:
        setattr(module, name, value)


class GraphModule(Module):
    """A graph as a module: its `forward` is compiled from the graph's source.

    As `torch.fx.GraphModule`. Change `module.graph` and call `recompile()`.

    Args:
        *args, **kwargs: The following, by place or by name.
        root (Module or dict of str to object): Where the attributes and submodules come from that the
            graph names, by path.
        graph (Graph): The program.
        class_name (str): Name of the class that is shown. Default: "GraphModule".

    Attributes:
        graph (Graph): The program.
        code (str): The source of `forward`.

    Raises:
        RuntimeError: `root` is a dict and lacks what the graph names.

    Example:
        >>> module = mica.fx.symbolic_trace(lambda x: mica.relu(x) + 1)
        >>> print(module.code)
        def forward(self, x):
            relu = mica.relu(x);  x = None
            add = relu + 1;  relu = None
            return add
        >>> module(mica.tensor([-1.0, 2.0]))
        tensor([1., 3.])
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> GraphModule:
        # Each instance has a class of its own, to which recompile() gives the forward.
        class GraphModuleImpl(cls):  # type: ignore[misc, valid-type]
            pass

        return super().__new__(GraphModuleImpl)

    def __init__(
        self, root: Module | Mapping[str, Any], graph: Graph, class_name: str = "GraphModule"
    ) -> None:
        super().__init__()
        type(self).__name__ = class_name
        wanted = dict.fromkeys(n.target for n in graph.nodes if n.op in ("get_attr", "call_module"))
        if isinstance(root, Module):
            self.training = root.training
            for path in wanted:
                _copy_attribute(root, self, path)
        else:
            missing = [path for path in wanted if path not in root]
            if missing:
                raise RuntimeError(
                    f"The graph names the attributes ({', '.join(missing)}), which `root` does not hold."
                )
            for path in sorted(wanted, key=lambda p: p.count(".")):
                _assign(self, path, root[path])
        self.meta: dict[str, Any] = {}
        self.graph = graph

    @property
    def graph(self) -> Graph:
        """The program. Call recompile() after changing it."""
        return self._graph

    @graph.setter
    def graph(self, graph: Graph) -> None:
        if graph.owning_module is not None and graph.owning_module is not self:
            graph = copy.deepcopy(graph)
        graph.owning_module = self
        object.__setattr__(self, "_graph", graph)
        self.recompile()

    @property
    def code(self) -> str:
        """The source of forward."""
        return self._code.src

    def recompile(self) -> PythonCode:
        """Makes `forward` anew from the graph; call it after changing the graph. Returns the source."""
        code = self._graph.python_code("self")
        object.__setattr__(self, "_code", code)
        type(self).forward = _compiled(code)  # type: ignore[method-assign]
        return code

    def print_readable(self, print_output: bool = True) -> str:
        """Prints the source as a class, with dtypes and sizes where they are known.

        Args:
            print_output (bool): Print it; else only return it. Default: True.

        Returns:
            str: The text.
        """
        body = self._graph.python_code("self", verbose=True).src
        text = f"class {type(self).__name__}(mica.nn.Module):\n" + "".join(
            "    " + line if line.strip() else line for line in body.splitlines(True)
        )
        if print_output:
            print(text)
        return text

    def add_submodule(self, target: str, m: Module) -> bool:
        """Puts a module at a path; modules on the way are made.

        Args:
            target (str): The path, such as "encoder.0".
            m (Module): The module.

        Returns:
            bool: False where something on the way is no module.
        """
        *parents, name = target.split(".")
        module: Any = self
        for part in parents:
            child = getattr(module, part, None)
            if child is None:
                child = Module()
                module.add_module(part, child)
            if not isinstance(child, Module):
                return False
            module = child
        module.add_module(name, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Takes the module at a path away.

        Args:
            target (str): The path.

        Returns:
            bool: False where there is none.
        """
        *parents, name = target.split(".")
        module: Any = self
        for part in parents:
            module = getattr(module, part, None)
        if not isinstance(getattr(module, name, None), Module):
            return False
        delattr(module, name)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Takes away the submodules that the graph does not use."""
        used: set[str] = set()
        for node in self._graph.nodes:
            if node.op not in ("call_module", "get_attr"):
                continue
            parts = node.target.split(".")
            used.update(".".join(parts[: i + 1]) for i in range(len(parts)))
            if node.op == "call_module":
                inner = self.get_submodule(node.target)
                used.update(f"{node.target}.{name}" for name, _ in inner.named_modules() if name)
        for name in [n for n, _ in self.named_modules() if n and n not in used]:
            self.delete_submodule(name)

    def _attributes(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for node in self._graph.nodes:
            if node.op in ("get_attr", "call_module"):
                found[node.target] = attribute_at(self, node.target)
        return found

    def __deepcopy__(self, memo: dict[int, Any]) -> GraphModule:
        root = copy.deepcopy(self._attributes(), memo)
        made = GraphModule(root, copy.deepcopy(self._graph), type(self).__name__)
        made.meta = copy.copy(self.meta)
        made.training = self.training
        return made

    def __copy__(self) -> GraphModule:
        return GraphModule(self._attributes(), copy.deepcopy(self._graph), type(self).__name__)

    def __reduce__(self) -> Any:
        return _unpickled, (self._attributes(), self._graph, type(self).__name__, self.training)

    def __str__(self) -> str:
        return f"{super().__repr__()}\n\n{self.code}"


def _unpickled(root: dict[str, Any], graph: Graph, name: str, training: bool) -> GraphModule:
    made = GraphModule(root, graph, name)
    made.training = training
    return made
