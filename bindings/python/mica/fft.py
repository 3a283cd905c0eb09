"""mica.fft: Fourier transforms. Operators named fft_<name> stand here as <name>."""

from mica import _C

globals().update({k.removeprefix("fft_"): f for k, f in _C._functions["fft"].items()})


def __getattr__(name: str) -> object:
    """The operator's own name, by which a pickle finds the function, as in torch._C._fft."""
    if name in _C._functions["fft"]:
        return _C._functions["fft"][name]
    raise AttributeError(f"module 'mica.fft' has no attribute '{name}'")
