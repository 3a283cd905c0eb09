"""mica.fx.proxy: what stands for values while Python code is traced."""

from __future__ import annotations

from mica.fx._proxy import (
    Attribute as Attribute,
    GraphAppendingTracer as GraphAppendingTracer,
    Proxy as Proxy,
    TraceError as TraceError,
    TracerBase as TracerBase,
)

__all__ = ["Attribute", "GraphAppendingTracer", "Proxy", "TraceError", "TracerBase"]
