"""Pooling of other numbers of dimensions than the plain two."""

from __future__ import annotations

from typing import Any

from mica._C import Tensor
from mica.nn import functional as F
from mica.nn.modules.module import Module
from mica.nn.modules.pooling import _AdaptiveAvgPoolNd, _AvgPool, _AvgPoolNd as _AvgPoolNd, _MaxPoolNd


class MaxPool3d(_MaxPoolNd):
    """The maximum of each window of (N, C, D, H, W)."""

    _pool = staticmethod(F.max_pool3d)


class AvgPool3d(_AvgPool):
    """The mean of each window of (N, C, D, H, W)."""

    _pool = staticmethod(F.avg_pool3d)


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    """The mean of windows chosen so that the output has `output_size`."""

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool1d(input, self.output_size)


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    """The mean of windows chosen so that the output has `output_size`."""

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool3d(input, self.output_size)


class _AdaptiveMaxPoolNd(Module):
    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size = output_size
        self.return_indices = return_indices

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    """The maximum of windows chosen so that the output has `output_size`."""

    def forward(self, input: Tensor) -> Any:
        return F.adaptive_max_pool1d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """The maximum of windows chosen so that the output has `output_size`."""

    def forward(self, input: Tensor) -> Any:
        return F.adaptive_max_pool2d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """The maximum of windows chosen so that the output has `output_size`."""

    def forward(self, input: Tensor) -> Any:
        return F.adaptive_max_pool3d(input, self.output_size, self.return_indices)
