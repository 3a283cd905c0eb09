"""mica.fx.experimental.proxy_tensor: where torch keeps make_fx."""

from __future__ import annotations

from mica.fx._make_fx import make_fx as make_fx

__all__ = ["make_fx"]
