"""mica.fx.graph_module: graphs that can be called, and what torchvision takes from torch's module."""

from __future__ import annotations

from typing import Any

from mica.fx._graph_module import GraphModule as GraphModule, _copy_attribute
from mica.nn import Module

__all__ = ["GraphModule"]

# The key of GraphModule.meta under which attributes stand that a copy keeps.
_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"


class _CodeOnlyModule(Module):
    """A module of these attributes, for making a copy of a GraphModule."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__()
        self.__dict__ = body


def _copy_attr(from_module: Module, to_module: Module, target: str) -> None:
    """Puts what is at the path `target` of one module into another."""
    if from_module is not to_module:
        _copy_attribute(from_module, to_module, target)
