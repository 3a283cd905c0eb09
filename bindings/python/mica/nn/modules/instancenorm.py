"""Instance and local response normalisation."""

from __future__ import annotations

from typing import Any

from mica._C import Tensor
from mica.nn import functional as F
from mica.nn.modules.batchnorm import _NormBase


class _InstanceNorm(_NormBase):
    _channel: int  # dimensions of an input without a batch

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def _check_input_dim(self, input: Tensor) -> None:
        """Raises where the class does not take the dimensions; subclasses that take more replace it."""
        if input.ndim not in (self._channel, self._channel + 1):
            raise ValueError(
                f"{type(self).__name__} expected {self._channel}D or {self._channel + 1}D input (got {input.ndim}D input)."
            )

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        batched = input if input.ndim > self._channel else input.unsqueeze(0)
        if self.affine and batched.shape[1] != self.num_features:
            raise ValueError(
                f"The number of channels ({batched.shape[1]}) of the input differs from num_features ({self.num_features})."
            )
        result = F.instance_norm(
            batched,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            self.momentum if self.momentum is not None else 0.0,
            self.eps,
        )
        return result if input.ndim > self._channel else result.squeeze(0)


class InstanceNorm1d(_InstanceNorm):
    """Normalises each channel of each (C, L) by itself."""

    _channel = 2


class InstanceNorm2d(_InstanceNorm):
    """Normalises each channel of each (C, H, W) by itself."""

    _channel = 3


class InstanceNorm3d(_InstanceNorm):
    """Normalises each channel of each (C, D, H, W) by itself."""

    _channel = 4
