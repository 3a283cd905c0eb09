"""torch.utils._mode_utils."""

from __future__ import annotations

from typing import Any


def all_same_mode(modes: Any) -> bool:
    """Whether all are the same mode."""
    return all(mode == modes[0] for mode in modes)
