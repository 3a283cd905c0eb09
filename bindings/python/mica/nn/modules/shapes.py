"""Modules that pad or reorder."""

from __future__ import annotations

from typing import Any

from mica._C import Tensor
from mica.nn import functional as F
from mica.nn.modules.module import Module


class PixelShuffle(Module):
    """Channels become space: (C * r^2, H, W) becomes (C, H * r, W * r)."""

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        return f"upscale_factor={self.upscale_factor}"


class _Pad(Module):
    _dims: int
    _mode = "constant"

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = (padding,) * (2 * self._dims) if isinstance(padding, int) else tuple(padding)

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, mode=self._mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad1d(_Pad):
    """Zeros before and after the last dimension."""

    _dims = 1


class ZeroPad2d(_Pad):
    """Zeros around the last two dimensions."""

    _dims = 2


class ReflectionPad1d(_Pad):
    """The last dimension mirrored at its ends."""

    _dims, _mode = 1, "reflect"


class ReflectionPad2d(_Pad):
    """The last two dimensions mirrored at their ends."""

    _dims, _mode = 2, "reflect"


class ReplicationPad1d(_Pad):
    """The ends of the last dimension repeated."""

    _dims, _mode = 1, "replicate"


class ReplicationPad2d(_Pad):
    """The ends of the last two dimensions repeated."""

    _dims, _mode = 2, "replicate"
