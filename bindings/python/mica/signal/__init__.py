"""mica.signal: windows for spectral analysis and filter design."""

from mica.signal import windows as windows

__all__ = ["windows"]
