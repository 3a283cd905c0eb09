"""The graph of a model as TensorBoard draws it: what operators a call runs, in the boxes of its modules.

The model runs once, in evaluation, under a dispatch mode. A node is named after the modules that it
ran in, as torch names them (`Net/Linear[first]/addmm_1`); parameters, buffers and inputs are nodes too.
"""

from __future__ import annotations

from typing import Any

from tensorboard.compat.proto.attr_value_pb2 import AttrValue
from tensorboard.compat.proto.graph_pb2 import GraphDef
from tensorboard.compat.proto.node_def_pb2 import NodeDef
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.compat.proto.versions_pb2 import VersionDef

import mica
from mica._C import Tensor
from mica.nn import Module
from mica.utils._pytree import tree_leaves
from mica.utils.python_dispatch import DispatchMode


class _Recorder(DispatchMode):
    """Collects a node for each operator, tensor by tensor."""

    def __init__(self, model: Module) -> None:
        super().__init__()
        self.nodes: list[NodeDef] = []
        self.scopes = [type(model).__name__]
        self._kept: dict[int, tuple[Tensor, str]] = {}  # the tensors stay, so that none gets another's id
        self._counts: dict[str, int] = {}
        self._scope_of = {id(model): type(model).__name__}
        for path, module in model.named_modules(remove_duplicate=False):
            for name, child in module.named_children():
                within = self._scope_of.setdefault(id(module), path)
                self._scope_of.setdefault(id(child), f"{within}/{type(child).__name__}[{name}]")
            for name, tensor in (
                *module.named_parameters(recurse=False),
                *module.named_buffers(recurse=False),
            ):
                self.add(f"{self._scope_of[id(module)]}/{name}", "Parameter", [], [tensor])

    def add(self, name: str, op: str, inputs: list[Any], outputs: list[Any]) -> None:
        """A node; `inputs` are tensors that are known, or not, by then."""
        count = self._counts[name] = self._counts.get(name, 0) + 1
        name = name if count == 1 else f"{name}_{count - 1}"
        known = [self._kept[id(t)][1] for t in inputs if id(t) in self._kept]
        shapes = [
            TensorShapeProto(dim=[TensorShapeProto.Dim(size=n) for n in t.shape])
            for t in outputs[:1] or inputs[:1]
        ]
        attributes = {"_output_shapes": AttrValue(list=AttrValue.ListValue(shape=shapes))}
        self.nodes.append(NodeDef(name=name, op=op, input=known, attr=attributes))
        for t in outputs:
            self._kept[id(t)] = (t, name)

    def __mica_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        given = [t for t in tree_leaves((args, kwargs)) if isinstance(t, Tensor)]
        made = [t for t in tree_leaves(found) if isinstance(t, Tensor)]
        self.add(f"{self.scopes[-1]}/{func._opname}", f"aten::{func._opname}", given, made)
        return found

    def enter(self, module: Module, args: Any) -> None:
        """A hook before a module's call."""
        self.scopes.append(self._scope_of.get(id(module), self.scopes[-1]))

    def leave(self, module: Module, args: Any, result: Any) -> None:
        """A hook after it."""
        self.scopes.pop()


def graph(model: Module, given: Any, verbose: bool = False) -> GraphDef:
    """The graph of model(*given), or of model(given) where it is one tensor; printed if `verbose`."""
    args = tuple(given) if isinstance(given, (tuple, list)) else (given,)
    recorder, modules = _Recorder(model), list(model.modules())
    training = [module.training for module in modules]
    handles = [m.register_forward_pre_hook(recorder.enter) for m in modules]
    handles += [m.register_forward_hook(recorder.leave, always_call=True) for m in modules]
    for i, t in enumerate(t for t in tree_leaves(args) if isinstance(t, Tensor)):
        recorder.add(f"input/{i}", "IO Node", [], [t])
    try:
        model.eval()
        with mica.no_grad(), recorder:
            result = model(*args)
    finally:
        for handle in handles:
            handle.remove()
        for module, was in zip(modules, training):
            module.training = was
    for i, t in enumerate(t for t in tree_leaves(result) if isinstance(t, Tensor)):
        recorder.add(f"output/{i}", "IO Node", [t], [])
    if verbose:
        for node in recorder.nodes:
            print(f"{node.name} = {node.op}({', '.join(node.input)})")
    return GraphDef(node=recorder.nodes, versions=VersionDef(producer=22))
