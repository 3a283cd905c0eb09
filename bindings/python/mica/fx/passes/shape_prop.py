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
    """Runs a graph and writes the shape and dtype of each value to its node.

    As `torch.fx.passes.shape_prop.ShapeProp`. `node.meta["tensor_meta"]` becomes a TensorMetadata, in
    the nesting of the value, and `node.meta["type"]` the value's type.

    Args:
        module (Module): The GraphModule.
        garbage_collect_values (bool): Drop each value after its last use. Default: True.
        graph (Graph, optional): The graph. Default: `module.graph`.

    Example:
        >>> traced = mica.fx.symbolic_trace(lambda x: x.sum(0))
        >>> from mica.fx.passes.shape_prop import ShapeProp
        >>> _ = ShapeProp(traced).propagate(mica.ones(2, 3))
        >>> [node.meta["tensor_meta"].shape for node in traced.graph.nodes]
        [mica.Size([2, 3]), mica.Size([3]), mica.Size([3])]
    """

    def run_node(self, n: Node) -> Any:
        """Computes a node's value and notes what it looks like.

        Args:
            n (Node): The node.

        Returns:
            Its value.
        """
        result = super().run_node(n)
        tensors: list[Tensor] = []
        map_aggregate(result, lambda a: tensors.append(a) if isinstance(a, Tensor) else None)
        if tensors:
            n.meta["tensor_meta"] = map_aggregate(result, _described)
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """Runs the graph.

        Args:
            *args: Arguments of the graph's function.

        Returns:
            What the graph returns.
        """
        return super().run(*args)
