"""mica.fx.node: nodes and what walks their arguments."""

from __future__ import annotations

from mica.fx._node import (
    Argument as Argument,
    Node as Node,
    Target as Target,
    TensorMetadata as TensorMetadata,
    _side_effectful_functions as _side_effectful_functions,
    map_aggregate as map_aggregate,
    map_arg as map_arg,
)

__all__ = ["Argument", "Node", "Target", "TensorMetadata", "map_aggregate", "map_arg"]
