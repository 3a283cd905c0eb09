"""mica.amp: mixed precision. `autocast` chooses each operator's dtype, `GradScaler` keeps
float16 gradients in range."""

from __future__ import annotations

from mica.amp.autocast_mode import (
    autocast as autocast,
    custom_bwd as custom_bwd,
    custom_fwd as custom_fwd,
    get_autocast_dtype as get_autocast_dtype,
    is_autocast_available as is_autocast_available,
    is_autocast_enabled as is_autocast_enabled,
    set_autocast_dtype as set_autocast_dtype,
    set_autocast_enabled as set_autocast_enabled,
)
from mica.amp.grad_scaler import GradScaler as GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]
