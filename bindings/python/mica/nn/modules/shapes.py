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


class _ConstantPadNd(_Pad):
    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class _ReflectionPadNd(_Pad):
    _mode = "reflect"


class _ReplicationPadNd(_Pad):
    _mode = "replicate"


class _CircularPadNd(_Pad):
    _mode = "circular"


class ReflectionPad1d(_ReflectionPadNd):
    """The last dimension mirrored at its ends."""

    _dims = 1


class ReflectionPad2d(_ReflectionPadNd):
    """The last two dimensions mirrored at their ends."""

    _dims = 2


class ReplicationPad1d(_ReplicationPadNd):
    """The ends of the last dimension repeated."""

    _dims = 1


class ReplicationPad2d(_ReplicationPadNd):
    """The ends of the last two dimensions repeated."""

    _dims = 2


class CircularPad1d(_CircularPadNd):
    """The last dimension continued from its other end."""

    _dims = 1


class CircularPad2d(_CircularPadNd):
    """The last two dimensions continued from their other ends."""

    _dims = 2


class CircularPad3d(_CircularPadNd):
    """The last three dimensions continued from their other ends."""

    _dims = 3


class ReflectionPad3d(_ReflectionPadNd):
    """The last three dimensions mirrored at their ends."""

    _dims = 3


class ReplicationPad3d(_ReplicationPadNd):
    """The ends of the last three dimensions repeated."""

    _dims = 3


class ConstantPad1d(_ConstantPadNd):
    """A value before and after the last dimension."""

    _dims = 1


class ConstantPad2d(_ConstantPadNd):
    """A value around the last two dimensions."""

    _dims = 2


class ConstantPad3d(_ConstantPadNd):
    """A value around the last three dimensions."""

    _dims = 3


class ZeroPad1d(ConstantPad1d):
    """Zeros before and after the last dimension."""

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    extra_repr = _Pad.extra_repr


class ZeroPad2d(ConstantPad2d):
    """Zeros around the last two dimensions."""

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    extra_repr = _Pad.extra_repr


class ZeroPad3d(ConstantPad3d):
    """Zeros around the last three dimensions."""

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    extra_repr = _Pad.extra_repr


class Unfold(Module):
    """Windows of (N, C, H, W) as columns."""

    def __init__(self, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> None:
        super().__init__()
        self.kernel_size, self.dilation, self.padding, self.stride = kernel_size, dilation, padding, stride

    def forward(self, input: Tensor) -> Tensor:
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, dilation={self.dilation}, padding={self.padding}, "
            f"stride={self.stride}"
        )


class Fold(Module):
    """Columns added back into (N, C, H, W)."""

    def __init__(
        self,
        output_size: Any,
        kernel_size: Any,
        dilation: Any = 1,
        padding: Any = 0,
        stride: Any = 1,
    ) -> None:
        super().__init__()
        self.output_size, self.kernel_size = output_size, kernel_size
        self.dilation, self.padding, self.stride = dilation, padding, stride

    def forward(self, input: Tensor) -> Tensor:
        return F.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return (
            f"output_size={self.output_size}, kernel_size={self.kernel_size}, dilation={self.dilation}, "
            f"padding={self.padding}, stride={self.stride}"
        )
