"""mica.fx.experimental: torch's places of make_fx."""

from __future__ import annotations

from mica.fx.experimental import proxy_tensor as proxy_tensor

__all__ = ["proxy_tensor"]
