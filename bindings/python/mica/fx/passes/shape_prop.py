"""ShapeProp: runs a graph and writes each value's shape and dtype to its node."""

from __future__ import annotations

from typing import Any

from mica._C import Tensor
from mica.fx._interpreter import Interpreter
from mica.fx._node import Node, TensorMetadata, map_aggregate

__all__ = ["ShapeProp", "TensorMetadata"]


def _described(value: Any) -> Any:
    if not isinstance(value, Tensor):
        return value
    return TensorMetadata(value.shape, value.dtype, value.stride(), value.device)


class ShapeProp(Interpreter):
    """`ShapeProp(module).propagate(*inputs)` sets `meta["tensor_meta"]`, in the nesting of the value,
    and `meta["type"]` of every node whose value holds tensors."""

    def run_node(self, n: Node) -> Any:
        result = super().run_node(n)
        tensors: list[Tensor] = []
        map_aggregate(result, lambda a: tensors.append(a) if isinstance(a, Tensor) else None)
        if tensors:
            n.meta["tensor_meta"] = map_aggregate(result, _described)
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """Runs the module; returns its result."""
        return super().run(*args)
