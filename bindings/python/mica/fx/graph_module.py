"""mica.fx.graph_module: graphs that can be called, and what torchvision takes from torch's module."""

from __future__ import annotations

from typing import Any

from mica.fx._graph_module import GraphModule as GraphModule, _assign, _copy_attribute
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


def _assign_attr(from_obj: Any, to_module: Module, target: str) -> None:
    """Puts an object at the path `target` of a module, a plain tensor as a buffer."""
    _assign(to_module, target, from_obj)


def _get_attr(model: Module, attr_name: str) -> Any:
    """What is at a path of a module."""
    found: Any = model
    for part in attr_name.split("."):
        if not hasattr(found, part):
            raise AttributeError(
                f"Attribute '{part}' not found in model: there is nothing at the path ({attr_name})."
            )
        found = getattr(found, part)
    return found


def _make_graph_module(*args: Any, graph_module_cls: type[GraphModule] | None = None, **kwargs: Any) -> Any:
    """A GraphModule, or one of the class given; nothing is compiled lazily."""
    return (graph_module_cls or GraphModule)(*args, **kwargs)
