"""mica.fft: Fourier transforms. Operators named fft_<name> stand here as <name>."""

from mica import _C

globals().update({k.removeprefix("fft_"): f for k, f in _C._functions["fft"].items()})
