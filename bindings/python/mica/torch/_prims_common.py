"""torch._prims_common: types for annotations."""

from __future__ import annotations

import mica

DeviceLike = str | mica.device | int
Stride = list[int] | tuple[int, ...]
