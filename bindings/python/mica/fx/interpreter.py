"""mica.fx.interpreter: graphs run node by node, and made anew."""

from __future__ import annotations

from mica.fx._interpreter import (
    Interpreter as Interpreter,
    Transformer as Transformer,
)

__all__ = ["Interpreter", "Transformer"]
