"""mica.fx.graph: the graph and its source."""

from __future__ import annotations

from mica.fx._codegen import PythonCode as PythonCode
from mica.fx._graph import Graph as Graph

__all__ = ["Graph", "PythonCode"]
