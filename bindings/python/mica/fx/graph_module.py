"""mica.fx.graph_module: graphs that can be called."""

from __future__ import annotations

from mica.fx._graph_module import GraphModule as GraphModule

__all__ = ["GraphModule"]
