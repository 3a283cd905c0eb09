"""mica.cuda: whether there is such a device. Programs ask before they use one."""

from __future__ import annotations

from mica import _C


def is_available() -> bool:
    """Whether a loaded plugin provides the backend "cuda"."""
    return any("backend:cuda" in p["provides"] and p["state"] == "loaded" for p in _C._plugins())


def device_count() -> int:
    """The number of devices; 0 without the plugin."""
    return 1 if is_available() else 0


def empty_cache() -> None:
    """Gives cached memory back, where there is a device."""
    if is_available():
        _C._empty_cache("cuda")
