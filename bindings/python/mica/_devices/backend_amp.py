"""mica.<backend>.amp: mixed precision that names no device, as torch.cuda.amp has it."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

import mica
from mica import amp
from mica._devices.numbered import python_name


def module(backend: str) -> ModuleType:
    """The module for a backend."""

    class autocast(amp.autocast):
        """`mica.amp.autocast` on the backend's devices."""

        def __init__(self, enabled: bool = True, dtype: Any = None, cache_enabled: bool = True) -> None:
            super().__init__(backend, enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)

    made = ModuleType(f"mica.{python_name(backend)}.amp", __doc__)
    autocast.__module__ = made.__name__
    made.autocast = autocast  # type: ignore[attr-defined]
    made.GradScaler = functools.partial(mica.amp.GradScaler, backend)  # type: ignore[attr-defined]
    made.custom_fwd = functools.partial(amp.custom_fwd, device_type=backend)  # type: ignore[attr-defined]
    made.custom_bwd = functools.partial(amp.custom_bwd, device_type=backend)  # type: ignore[attr-defined]
    return made
