"""The standard's Fourier transforms, over mica.fft."""

from __future__ import annotations

import mica
from mica import Tensor, dtype

TYPE_CHECKING = False  # importing typing takes as long as all of mica
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

__all__ = [
    "fft",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfftn",
    "rfft",
    "rfftfreq",
    "rfftn",
]


def _along_one(name: str, operator: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def function(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
        return operator(x, n, axis, norm)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = operator.__doc__
    return function


def _along_several(name: str, operator: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def function(
        x: Tensor,
        /,
        *,
        s: Sequence[int] | None = None,
        axes: Sequence[int] | None = None,
        norm: str = "backward",
    ) -> Tensor:
        return operator(x, s, axes, norm)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = operator.__doc__
    return function


fft = _along_one("fft", mica.fft.fft)
ifft = _along_one("ifft", mica.fft.ifft)
rfft = _along_one("rfft", mica.fft.rfft)
irfft = _along_one("irfft", mica.fft.irfft)
hfft = _along_one("hfft", mica.fft.hfft)
ihfft = _along_one("ihfft", mica.fft.ihfft)
fftn = _along_several("fftn", mica.fft.fftn)
ifftn = _along_several("ifftn", mica.fft.ifftn)
rfftn = _along_several("rfftn", mica.fft.rfftn)
irfftn = _along_several("irfftn", mica.fft.irfftn)


def fftfreq(n: int, /, *, d: float = 1.0, dtype: dtype | None = None, device: Any = None) -> Tensor:
    """The frequencies that a transform of `n` samples at distance `d` has."""
    return mica.fft.fftfreq(n, d, dtype=dtype, device=device)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: dtype | None = None, device: Any = None) -> Tensor:
    """The frequencies that a real transform of `n` samples at distance `d` has."""
    return mica.fft.rfftfreq(n, d, dtype=dtype, device=device)


def fftshift(x: Tensor, /, *, axes: int | Sequence[int] | None = None) -> Tensor:
    """Frequency 0 in the middle."""
    return mica.fft.fftshift(x, axes)


def ifftshift(x: Tensor, /, *, axes: int | Sequence[int] | None = None) -> Tensor:
    """Frequency 0 in front, as transforms have it."""
    return mica.fft.ifftshift(x, axes)
