"""Instance and local response normalisation."""

from __future__ import annotations

import warnings
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
        if batched.shape[1] != self.num_features:
            text = f"The number of channels ({batched.shape[1]}) of the input differs from num_features ({self.num_features})"
            if self.affine:
                raise ValueError(f"{text}.")
            warnings.warn(f"{text}, which has no effect without affine=True.", stacklevel=2)
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
    """Normalises each channel of each sample to mean 0 and variance 1 over its length.

    `(x - mean) / sqrt(var + eps) * weight + bias`, with the biased variance of that channel of that sample.
    As `torch.nn.InstanceNorm1d`. Without `affine`, other channels than `num_features` give a warning only.

    Args:
        num_features (int): Number of channels, C.
        eps (float): Added to the variance. Default: 1e-5.
        momentum (float): Share, in [0, 1], of a batch in the running statistics. Default: 0.1.
        affine (bool): Whether there are a weight and a bias. Default: False.
        track_running_stats (bool): Whether running statistics are kept, which evaluation mode takes.
            Default: False, and both modes take the sample's own.
        device (device, optional): Where the parameters live. Default: the default device.
        dtype (dtype, optional): Of the parameters. Default: the default dtype.
        bias (bool): Whether there is a bias, if `affine`. Default: True.

    Attributes:
        weight (Parameter): Ones at first, `(C,)`; None unless `affine`.
        bias (Parameter): Zeros at first, `(C,)`, or None.
        running_mean (Tensor): Zeros at first, `(C,)`; None unless `track_running_stats`.
        running_var (Tensor): Ones at first, `(C,)`; None unless `track_running_stats`.

    Shape:
        - Input and output: `(N, C, L)` or `(C, L)`, the same.

    Raises:
        ValueError: The input has other dimensions, or not `num_features` channels though `affine`, or, where
            its own statistics count, channels of one value.

    Example:
        >>> mica.nn.InstanceNorm1d(2)(mica.tensor([[1.0, 3.0], [10.0, 30.0]]))
        tensor([[-1.0000,  1.0000],
                [-1.0000,  1.0000]])
    """

    _channel = 2


class InstanceNorm2d(_InstanceNorm):
    """InstanceNorm1d for images: each channel of each image is normalised over its pixels.

    As `torch.nn.InstanceNorm2d`. `InstanceNorm1d` has the formula and the attributes.

    Args:
        num_features (int): Number of channels, C.
        eps (float): Added to the variance. Default: 1e-5.
        momentum (float): Share, in [0, 1], of a batch in the running statistics. Default: 0.1.
        affine (bool): Whether there are a weight and a bias. Default: False.
        track_running_stats (bool): Whether running statistics are kept, which evaluation mode takes.
            Default: False, and both modes take the image's own.
        device (device, optional): Where the parameters live. Default: the default device.
        dtype (dtype, optional): Of the parameters. Default: the default dtype.
        bias (bool): Whether there is a bias, if `affine`. Default: True.

    Shape:
        - Input and output: `(N, C, H, W)` or `(C, H, W)`, the same.

    Raises:
        ValueError: The input has other dimensions, or not `num_features` channels though `affine`, or, where
            its own statistics count, channels of one value.

    Example:
        >>> layer = mica.nn.InstanceNorm2d(3, affine=True)
        >>> layer(mica.randn(4, 3, 8, 8)).shape
        mica.Size([4, 3, 8, 8])
    """

    _channel = 3


class InstanceNorm3d(_InstanceNorm):
    """InstanceNorm1d for volumes: each channel of each volume is normalised over its voxels.

    As `torch.nn.InstanceNorm3d`. `InstanceNorm1d` has the formula and the attributes.

    Args:
        num_features (int): Number of channels, C.
        eps (float): Added to the variance. Default: 1e-5.
        momentum (float): Share, in [0, 1], of a batch in the running statistics. Default: 0.1.
        affine (bool): Whether there are a weight and a bias. Default: False.
        track_running_stats (bool): Whether running statistics are kept, which evaluation mode takes.
            Default: False, and both modes take the volume's own.
        device (device, optional): Where the parameters live. Default: the default device.
        dtype (dtype, optional): Of the parameters. Default: the default dtype.
        bias (bool): Whether there is a bias, if `affine`. Default: True.

    Shape:
        - Input and output: `(N, C, D, H, W)` or `(C, D, H, W)`, the same.

    Raises:
        ValueError: The input has other dimensions, or not `num_features` channels though `affine`, or, where
            its own statistics count, channels of one value.

    Example:
        >>> layer = mica.nn.InstanceNorm3d(3, affine=True)
        >>> layer(mica.randn(4, 3, 2, 8, 8)).shape
        mica.Size([4, 3, 2, 8, 8])
    """

    _channel = 4
