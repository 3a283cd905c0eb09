"""Upsampling."""

from __future__ import annotations

from typing import Any

from mica._C import Tensor
from mica.nn import functional as F
from mica.nn.modules.module import Module


class Upsample(Module):
    """Resizes sequences, images or volumes by interpolation.

    As `torch.nn.Upsample`: `mica.nn.functional.interpolate` with fixed arguments.

    Args:
        size (int or tuple of int, optional): Sizes of the output's spatial dimensions, in pixels; an int
            stands for all. Either it or `scale_factor` is given.
        scale_factor (float or tuple of float, optional): Factor of each spatial dimension; a number stands
            for all.
        mode (str): `nearest`, `nearest-exact` or `area` for any input, `linear` for sequences, `bilinear` or
            `bicubic` for images, `trilinear` for volumes. `nearest` takes pixel `floor(i * in / out)`,
            `nearest-exact` the pixel whose centre is nearest. Default: `nearest`.
        align_corners (bool, optional): For the linear modes and bicubic: True maps the centres of the corner
            pixels onto each other, False the outer edges of these pixels. Default: None, which is False.
        recompute_scale_factor (bool, optional): Interpolate by the ratio of the sizes that `scale_factor`
            gives, rounded down, instead of by `scale_factor` itself. Default: None, which is False.

    Shape:
        - Input: `(N, C, L)`, `(N, C, H, W)` or `(N, C, D, H, W)`.
        - Output: `(N, C, *size)`, or each spatial size `floor(size * scale_factor)`.

    Raises:
        ValueError: At the call, both or neither of `size` and `scale_factor` are given, their length is not
            the number of spatial dimensions, or `align_corners` is given for a mode without it.
        NotImplementedError: At the call, the mode does not exist for the input's dimensions.

    Example:
        >>> mica.nn.Upsample(scale_factor=2)(mica.tensor([[[1., 2.]]]))
        tensor([[[1., 1., 2., 2.]]])
        >>> mica.nn.Upsample(size=5, mode="linear", align_corners=True)(mica.tensor([[[0., 4.]]]))
        tensor([[[0., 1., 2., 3., 4.]]])
    """

    def __init__(
        self,
        size: Any = None,
        scale_factor: Any = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        self.name = type(self).__name__
        self.size = size
        if isinstance(scale_factor, tuple):
            self.scale_factor: Any = tuple(float(factor) for factor in scale_factor)
        else:
            self.scale_factor = float(scale_factor) if scale_factor else None
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.interpolate(
            input, self.size, self.scale_factor, self.mode, self.align_corners, self.recompute_scale_factor
        )

    def extra_repr(self) -> str:
        by = f"scale_factor={self.scale_factor}" if self.scale_factor is not None else f"size={self.size}"
        return f"{by}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """Resizes images by repeating the nearest pixel.

    As `torch.nn.UpsamplingNearest2d`: `Upsample` with `mode="nearest"`.

    Args:
        size (int or tuple of 2 int, optional): Height and width of the output, in pixels. Either it or
            `scale_factor` is given.
        scale_factor (float or tuple of 2 float, optional): Factors of height and width.

    Shape:
        - Input: `(N, C, H, W)`.
        - Output: `(N, C, *size)`, or `(N, C, floor(H * scale_factor), floor(W * scale_factor))`.

    Raises:
        ValueError: At the call, both or neither of `size` and `scale_factor` are given.

    Example:
        >>> up = mica.nn.UpsamplingNearest2d(scale_factor=2)
        >>> up(mica.arange(2.).view(1, 1, 1, 2))
        tensor([[[[0., 0., 1., 1.],
                  [0., 0., 1., 1.]]]])
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """Resizes images linearly in both directions, with the centres of the corner pixels kept.

    As `torch.nn.UpsamplingBilinear2d`: `Upsample` with `mode="bilinear", align_corners=True`.

    Args:
        size (int or tuple of 2 int, optional): Height and width of the output, in pixels. Either it or
            `scale_factor` is given.
        scale_factor (float or tuple of 2 float, optional): Factors of height and width.

    Shape:
        - Input: `(N, C, H, W)`.
        - Output: `(N, C, *size)`, or `(N, C, floor(H * scale_factor), floor(W * scale_factor))`.

    Raises:
        ValueError: At the call, both or neither of `size` and `scale_factor` are given.
        NotImplementedError: At the call, the input has not 4 dimensions.

    Example:
        >>> up = mica.nn.UpsamplingBilinear2d(size=3)
        >>> up(mica.arange(4.).view(1, 1, 2, 2))
        tensor([[[[0.0000, 0.5000, 1.0000],
                  [1.0000, 1.5000, 2.0000],
                  [2.0000, 2.5000, 3.0000]]]])
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)


class PixelUnshuffle(Module):
    """Moves blocks of pixels into channels: `(C, H * r, W * r)` becomes `(C * r ** 2, H, W)`.

    As `torch.nn.PixelUnshuffle`: downsampling that loses nothing. `PixelShuffle` is the inverse.

    Args:
        downscale_factor (int): `r`, by which height and width shrink.

    Shape:
        - Input: `(*, C, H * r, W * r)`.
        - Output: `(*, C * r ** 2, H, W)`.

    Raises:
        RuntimeError: At the call, `r` does not divide height and width, or the input has fewer than 3
            dimensions.

    Example:
        >>> unshuffle = mica.nn.PixelUnshuffle(2)
        >>> unshuffle(mica.arange(4.).view(1, 2, 2)).flatten()
        tensor([0., 1., 2., 3.])
    """

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        return f"downscale_factor={self.downscale_factor}"


class ChannelShuffle(Module):
    """Interleaves groups of channels: those numbered `(group, n)` come in the order `(n, group)`.

    As `torch.nn.ChannelShuffle`. Between two grouped convolutions it lets the groups exchange what they
    found.

    Args:
        groups (int): Groups of neighbouring channels.

    Shape:
        - Input: `(N, C, *)`, 3 dimensions or more, `C` a multiple of `groups`.
        - Output: the input's shape.

    Raises:
        RuntimeError: At the call, `groups` does not divide the channels, or the input has fewer than 3
            dimensions.

    Example:
        >>> shuffle = mica.nn.ChannelShuffle(2)
        >>> shuffle(mica.arange(6.).view(1, 6, 1)).flatten()
        tensor([0., 3., 1., 4., 2., 5.])
    """

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        return f"groups={self.groups}"
