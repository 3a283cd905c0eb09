"""Layer, root-mean-square and group normalisation, and that over neighbouring channels."""

from __future__ import annotations

from typing import Any

import mica
from mica._C import Tensor
from mica.nn import functional as F, init
from mica.nn.modules.module import Module
from mica.nn.parameter import Parameter


def _scale_and_shift(
    module: Module, shape: tuple[int, ...], affine: bool, bias: bool, device: Any, dtype: Any
) -> None:
    """Gives a module its parameters weight (ones) and bias (zeros), or None for what it has not."""
    options = {"device": device, "dtype": dtype}
    module.register_parameter("weight", Parameter(mica.ones(shape, **options)) if affine else None)
    module.register_parameter("bias", Parameter(mica.zeros(shape, **options)) if affine and bias else None)


def _reset(module: Module) -> None:
    if module.weight is not None:
        init.ones_(module.weight)
    if module.bias is not None:
        init.zeros_(module.bias)


class LayerNorm(Module):
    """`(x - mean) / sqrt(var + eps) * weight + bias`, over the last dimensions of each sample.

    As `torch.nn.LayerNorm`. Mean and (biased) variance are those of the sample alone, in training and
    evaluation.

    Args:
        normalized_shape (int or sequence of int): Sizes of the last dimensions, which are normalised
            together; an int stands for the last dimension alone.
        eps (float): Added to the variance. Default: 1e-5.
        elementwise_affine (bool): Learn a weight (and bias) for each element of `normalized_shape`. Default:
            True.
        bias (bool): Learn a bias; without effect unless `elementwise_affine`. Default: True.
        device (device, optional): Where the parameters live. Default: the default device.
        dtype (dtype, optional): Of the parameters. Default: the default dtype.

    Attributes:
        weight (Parameter or None): `normalized_shape`, ones at first.
        bias (Parameter or None): `normalized_shape`, zeros at first.

    Shape:
        - Input: `(*, *normalized_shape)`.
        - Output: the input's shape.

    Raises:
        RuntimeError: At the call, the input's shape does not end in `normalized_shape`.

    Example:
        >>> layer = mica.nn.LayerNorm(4)
        >>> layer(mica.tensor([[0., 1., 2., 3.], [5., 5., 5., 9.]])).detach()
        tensor([[-1.3416, -0.4472,  0.4472,  1.3416],
                [-0.5773, -0.5773, -0.5773,  1.7320]])
    """

    def __init__(
        self,
        normalized_shape: Any,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = (
            (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        )
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        _scale_and_shift(self, self.normalized_shape, elementwise_affine, bias, device, dtype)

    def reset_parameters(self) -> None:
        """Sets the weight to ones and the bias to zeros."""
        _reset(self)

    def forward(self, input: Tensor) -> Tensor:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        affine = f"elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"
        return f"{self.normalized_shape}, eps={self.eps}, {affine}"


class RMSNorm(Module):
    """`x / sqrt(mean(x ** 2) + eps) * weight`, over the last dimensions of each sample.

    As `torch.nn.RMSNorm`.

    Args:
        normalized_shape (int or sequence of int): Sizes of the last dimensions, whose squares are averaged;
            an int stands for the last dimension alone.
        eps (float, optional): Added to the mean square. Default: None, the machine epsilon of the input's
            dtype.
        elementwise_affine (bool): Learn a weight for each element of `normalized_shape`. Default: True.
        device (device, optional): Where the weight lives. Default: the default device.
        dtype (dtype, optional): Of the weight. Default: the default dtype.

    Attributes:
        weight (Parameter or None): `normalized_shape`, ones at first.

    Shape:
        - Input: `(*, *normalized_shape)`.
        - Output: the input's shape.

    Raises:
        RuntimeError: At the call, the input's shape does not end in `normalized_shape`.

    Example:
        >>> layer = mica.nn.RMSNorm(2)
        >>> layer(mica.tensor([[3., 4.], [1., -1.]])).detach()
        tensor([[ 0.8485,  1.1314],
                [ 1.0000, -1.0000]])
    """

    def __init__(
        self,
        normalized_shape: Any,
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = (
            (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        )
        self.eps, self.elementwise_affine = eps, elementwise_affine
        weight = Parameter(mica.ones(self.normalized_shape, device=device, dtype=dtype))
        self.register_parameter("weight", weight if elementwise_affine else None)

    def reset_parameters(self) -> None:
        """Sets the weight to ones."""
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(Module):
    """`(x - mean) / sqrt(var + eps) * weight + bias`, over each group of channels of each sample.

    As `torch.nn.GroupNorm`. Mean and (biased) variance are those of the sample alone, in training and
    evaluation. One group is layer normalisation over all channels; as many groups as channels is instance
    normalisation.

    Args:
        num_groups (int): Groups of neighbouring channels, each normalised by itself.
        num_channels (int): Channels of the input, a multiple of `num_groups`.
        eps (float): Added to the variance. Default: 1e-5.
        affine (bool): Learn a weight (and bias) for each channel. Default: True.
        device (device, optional): Where the parameters live. Default: the default device.
        dtype (dtype, optional): Of the parameters. Default: the default dtype.
        bias (bool): Learn a bias; without effect unless `affine`. Default: True.

    Attributes:
        weight (Parameter or None): `(num_channels,)`, ones at first.
        bias (Parameter or None): `(num_channels,)`, zeros at first.

    Shape:
        - Input: `(N, num_channels, *)`.
        - Output: the input's shape.

    Raises:
        ValueError: `num_groups` does not divide `num_channels`.
        RuntimeError: At the call, the input has fewer than 2 dimensions or other channels.

    Example:
        >>> layer = mica.nn.GroupNorm(2, 4)
        >>> layer(mica.tensor([[1., 3., 10., 30.]])).detach()
        tensor([[-1.0000,  1.0000, -1.0000,  1.0000]])
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_channels % num_groups:
            raise ValueError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups}).")
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        _scale_and_shift(self, (num_channels,), affine, bias, device, dtype)

    def reset_parameters(self) -> None:
        """Sets the weight to ones and the bias to zeros."""
        _reset(self)

    def forward(self, input: Tensor) -> Tensor:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, bias={self.bias is not None}"


class LocalResponseNorm(Module):
    """`x / (k + alpha * mean(x ** 2)) ** beta`, the mean over `size` neighbouring channels.

    As `torch.nn.LocalResponseNorm`. The neighbours are `size // 2` channels before each one and
    `(size - 1) // 2` after; those outside of the input count as zeros.

    Args:
        size (int): Channels in each mean.
        alpha (float): Factor of the mean. Default: 1e-4.
        beta (float): Exponent of the divisor. Default: 0.75.
        k (float): Added to the mean's multiple. Default: 1.

    Shape:
        - Input: `(N, C, *)`, 3 dimensions or more.
        - Output: the input's shape.

    Raises:
        ValueError: At the call, the input has fewer than 3 dimensions.

    Example:
        >>> norm = mica.nn.LocalResponseNorm(2, alpha=1.0)
        >>> norm(mica.ones(1, 3, 2))
        tensor([[[0.7378, 0.7378],
                 [0.5946, 0.5946],
                 [0.5946, 0.5946]]])
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class CrossMapLRN2d(Module):
    """`x / (k + alpha / size * sum(x ** 2)) ** beta`, the sum over `size` neighbouring channels.

    As `torch.nn.CrossMapLRN2d`, for old networks; new ones take `LocalResponseNorm`, which differs at the
    first channels. As in Lua Torch, channel 0 stays in every sum once the window has left it.

    Args:
        size (int): Channels in each sum: `(size - 1) // 2` on each side of the middle one.
        alpha (float): Factor of the sum, divided by `size`. Default: 1e-4.
        beta (float): Exponent of the divisor. Default: 0.75.
        k (float): Added to the sum's multiple. Default: 1.

    Shape:
        - Input: `(N, C, H, W)`.
        - Output: the input's shape.

    Raises:
        ValueError: At the call, the input has not 4 dimensions.

    Example:
        >>> norm = mica.nn.CrossMapLRN2d(3, alpha=3.0)
        >>> norm(mica.ones(1, 5, 1, 1)).flatten()
        tensor([0.4387, 0.3536, 0.2991, 0.2991, 0.3536])
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() != 4:
            raise ValueError(f"CrossMapLRN2d takes tensors of 4 dimensions; this one has {input.dim()}.")
        reach = int((self.size - 1) / 2 + 1)  # so many channels on each side, the middle one among them
        squares = input.square()
        padded = F.pad(squares, (0, 0, 0, 0, reach - 1, reach - 1))
        sums = padded.unfold(1, 2 * reach - 1, 1).sum(-1)
        sums = mica.cat([sums[:, :reach], sums[:, reach:] + squares[:, :1]], 1)
        return input * (sums * (self.alpha / self.size) + self.k) ** -self.beta

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"
