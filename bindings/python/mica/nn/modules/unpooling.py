"""Pooling by powers and fractions, and its inverse."""

from __future__ import annotations

from typing import Any

from mica._C import Tensor
from mica.nn import functional as F
from mica.nn.modules.module import Module


class _MaxUnpoolNd(Module):
    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpoolNd):
    """Puts the maxima that `MaxPool1d` found back to their places, and zeros elsewhere.

    As `torch.nn.MaxUnpool1d`. The call takes the maxima and the indices that
    `MaxPool1d(..., return_indices=True)` gave.

    Args:
        kernel_size (int or tuple of 1 int): Elements in the window, as the pooling had it.
        stride (int or tuple of 1 int, optional): Elements between the starts of windows. Default:
            `kernel_size`.
        padding (int or tuple of 1 int): Elements that the pooling added on both sides. Default: 0.

    Shape:
        - Input: `(N, C, L)` or `(C, L)`.
        - Indices: the input's shape, int64.
        - Output: `(N, C, L_out)` or `(C, L_out)`, with
          `L_out = (L - 1) * stride - 2 * padding + kernel_size`. A pooling takes inputs of several sizes to
          one, so the call's third argument, `output_size`, may name another: the spatial sizes, or the whole
          shape of a batch, each less than `stride` away from these.

    Raises:
        ValueError: At the call, a size of `output_size` is too far from the usual one.
        RuntimeError: At the call, the shape of the indices is not the input's, or an index lies outside of
            the output.

    Example:
        >>> pool = mica.nn.MaxPool1d(2, return_indices=True)
        >>> found, indices = pool(mica.tensor([[1., 5., 2., 3.]]))
        >>> mica.nn.MaxUnpool1d(2)(found, indices)
        tensor([[0., 5., 0., 3.]])
    """

    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        return F.max_unpool1d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool2d(_MaxUnpoolNd):
    """Puts the maxima that `MaxPool2d` found back to their places, and zeros elsewhere.

    As `torch.nn.MaxUnpool2d`. The call takes the maxima and the indices that
    `MaxPool2d(..., return_indices=True)` gave.

    Args:
        kernel_size (int or tuple of 2 int): Height and width of the window, in pixels, as the pooling had it.
        stride (int or tuple of 2 int, optional): Pixels between the starts of windows. Default:
            `kernel_size`.
        padding (int or tuple of 2 int): Pixels that the pooling added on both sides. Default: 0.

    Shape:
        - Input: `(N, C, H, W)` or `(C, H, W)`.
        - Indices: the input's shape, int64.
        - Output: `(N, C, H_out, W_out)` or `(C, H_out, W_out)`, with
          `H_out = (H - 1) * stride - 2 * padding + kernel_size` and `W_out` likewise. A pooling takes inputs
          of several sizes to one, so the call's third argument, `output_size`, may name another: the spatial
          sizes, or the whole shape of a batch, each less than `stride` away from these.

    Raises:
        ValueError: At the call, a size of `output_size` is too far from the usual one.
        RuntimeError: At the call, the shape of the indices is not the input's, or an index lies outside of
            the output.

    Example:
        >>> pool = mica.nn.MaxPool2d(2, return_indices=True)
        >>> found, indices = pool(mica.arange(4.).view(1, 2, 2))
        >>> mica.nn.MaxUnpool2d(2)(found, indices)
        tensor([[[0., 0.],
                 [0., 3.]]])
    """

    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        return F.max_unpool2d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool3d(_MaxUnpoolNd):
    """Puts the maxima that `MaxPool3d` found back to their places, and zeros elsewhere.

    As `torch.nn.MaxUnpool3d`. The call takes the maxima and the indices that
    `MaxPool3d(..., return_indices=True)` gave.

    Args:
        kernel_size (int or tuple of 3 int): Depth, height and width of the window, in voxels, as the pooling
            had it.
        stride (int or tuple of 3 int, optional): Voxels between the starts of windows. Default:
            `kernel_size`.
        padding (int or tuple of 3 int): Voxels that the pooling added on both sides. Default: 0.

    Shape:
        - Input: `(N, C, D, H, W)` or `(C, D, H, W)`.
        - Indices: the input's shape, int64.
        - Output: `(N, C, D_out, H_out, W_out)` or `(C, D_out, H_out, W_out)`, with
          `D_out = (D - 1) * stride - 2 * padding + kernel_size`, the others likewise. A pooling takes inputs
          of several sizes to one, so the call's third argument, `output_size`, may name another: the spatial
          sizes, or the whole shape of a batch, each less than `stride` away from these.

    Raises:
        ValueError: At the call, a size of `output_size` is too far from the usual one.
        RuntimeError: At the call, the shape of the indices is not the input's, or an index lies outside of
            the output.

    Example:
        >>> pool = mica.nn.MaxPool3d(2, return_indices=True)
        >>> found, indices = pool(mica.arange(8.).view(1, 2, 2, 2))
        >>> mica.nn.MaxUnpool3d(2)(found, indices).flatten()
        tensor([0., 0., 0., 0., 0., 0., 0., 7.])
    """

    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        return F.max_unpool3d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class _LPPoolNd(Module):
    def __init__(
        self, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
    ) -> None:
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def extra_repr(self) -> str:
        return f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, ceil_mode={self.ceil_mode}"


class LPPool1d(_LPPoolNd):
    """The power sum of each window of a sequence: `sum(x ** p) ** (1 / p)`.

    As `torch.nn.LPPool1d`. `p = 1` is the plain sum, `p = inf` the largest magnitude; an odd `p` gives NaN
    where the sum is negative.

    Args:
        norm_type (float): The power `p`, not 0.
        kernel_size (int or tuple of 1 int): Elements in the window.
        stride (int or tuple of 1 int, optional): Elements between the starts of windows. Default:
            `kernel_size`.
        ceil_mode (bool): Round the output's length up, so that the last window may reach over the end.
            Default: False.

    Shape:
        - Input: `(N, C, L)` or `(C, L)`.
        - Output: `(N, C, L_out)` or `(C, L_out)`, with `L_out = floor((L - kernel_size) / stride + 1)`.

    Raises:
        ZeroDivisionError: At the call, `norm_type` is 0.
        RuntimeError: At the call, the window is larger than the input, or the input has other dimensions.

    Example:
        >>> pool = mica.nn.LPPool1d(2, 2)
        >>> pool(mica.tensor([[3., 4., 0., 2.]]))
        tensor([[5., 2.]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.lp_pool1d(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


class LPPool2d(_LPPoolNd):
    """The power sum of each window of an image: `sum(x ** p) ** (1 / p)`.

    As `torch.nn.LPPool2d`. `p = 1` is the plain sum, `p = inf` the largest magnitude; an odd `p` gives NaN
    where the sum is negative.

    Args:
        norm_type (float): The power `p`, not 0.
        kernel_size (int or tuple of 2 int): Height and width of the window, in pixels.
        stride (int or tuple of 2 int, optional): Pixels between the starts of windows. Default:
            `kernel_size`.
        ceil_mode (bool): Round the output's sizes up, so that the last windows may reach over the edge.
            Default: False.

    Shape:
        - Input: `(N, C, H, W)` or `(C, H, W)`.
        - Output: `(N, C, H_out, W_out)` or `(C, H_out, W_out)`, with
          `H_out = floor((H - kernel_size) / stride + 1)` and `W_out` likewise.

    Raises:
        ZeroDivisionError: At the call, `norm_type` is 0.
        RuntimeError: At the call, the window is larger than the input, or the input has other dimensions.

    Example:
        >>> pool = mica.nn.LPPool2d(2, 2)
        >>> pool(mica.ones(1, 4, 4))
        tensor([[[2., 2.],
                 [2., 2.]]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.lp_pool2d(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


class LPPool3d(_LPPoolNd):
    """The power sum of each window of a volume: `sum(x ** p) ** (1 / p)`.

    As `torch.nn.LPPool3d`. `p = 1` is the plain sum, `p = inf` the largest magnitude; an odd `p` gives NaN
    where the sum is negative.

    Args:
        norm_type (float): The power `p`, not 0.
        kernel_size (int or tuple of 3 int): Depth, height and width of the window, in voxels.
        stride (int or tuple of 3 int, optional): Voxels between the starts of windows. Default:
            `kernel_size`.
        ceil_mode (bool): Round the output's sizes up, so that the last windows may reach over the edge.
            Default: False.

    Shape:
        - Input: `(N, C, D, H, W)` or `(C, D, H, W)`.
        - Output: `(N, C, D_out, H_out, W_out)` or `(C, D_out, H_out, W_out)`, with
          `D_out = floor((D - kernel_size) / stride + 1)`, the others likewise.

    Raises:
        ZeroDivisionError: At the call, `norm_type` is 0.
        RuntimeError: At the call, the window is larger than the input, or the input has other dimensions.

    Example:
        >>> pool = mica.nn.LPPool3d(2, (1, 2, 1))
        >>> pool(mica.tensor([3., 4.]).view(1, 1, 2, 1))
        tensor([[[[5.]]]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.lp_pool3d(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


class _FractionalMaxPoolNd(Module):
    _dims: int

    def __init__(
        self,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> None:
        super().__init__()
        if (output_size is None) == (output_ratio is None):
            raise ValueError("Expected one of `output_size` and `output_ratio`, not both and not neither.")
        self.kernel_size = self._sides(kernel_size)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = None if output_size is None else self._sides(output_size)
        self.output_ratio = None if output_ratio is None else self._sides(output_ratio)
        if self.output_ratio is not None and not all(0 < ratio < 1 for ratio in self.output_ratio):
            raise ValueError(f"output_ratio ({output_ratio}) must be between 0 and 1.")

    def _sides(self, value: Any) -> tuple[Any, ...]:
        return tuple(value) if isinstance(value, (tuple, list)) else (value,) * self._dims


class FractionalMaxPool2d(_FractionalMaxPoolNd):
    """The maximum of windows that start at random places, as many as the output of a given size needs.

    As `torch.nn.FractionalMaxPool2d` (Graham, arXiv:1412.6071). The starts are drawn anew at each call, in
    evaluation too.

    Args:
        kernel_size (int or tuple of 2 int): Height and width of the window, in pixels.
        output_size (int or tuple of 2 int, optional): Sizes of the output, in pixels. Either it or
            `output_ratio` is given.
        output_ratio (float or tuple of 2 float, optional): Sizes of the output as shares of the input's,
            between 0 and 1.
        return_indices (bool): Also return where each maximum stands, as `MaxUnpool2d` takes it. Default:
            False.

    Shape:
        - Input: `(N, C, H, W)` or `(C, H, W)`.
        - Output: `(N, C, *output_size)` or `(C, *output_size)`, the sizes being `floor(size * output_ratio)`
          where a ratio is given. With `return_indices` a pair: the output, and int64 indices into the flat
          image of its shape.

    Raises:
        ValueError: Both or neither of `output_size` and `output_ratio` are given, or a ratio is not between 0
            and 1.
        RuntimeError: At the call, windows of this size do not fit into the input so often.

    Example:
        >>> pool = mica.nn.FractionalMaxPool2d(2, output_size=3)
        >>> pool(mica.ones(1, 7, 7)).shape
        mica.Size([1, 3, 3])
    """

    _dims = 2

    def forward(self, input: Tensor) -> Any:
        return F.fractional_max_pool2d(
            input,
            self.kernel_size,
            self.output_size,
            self.output_ratio,
            self.return_indices,
            self._random_samples,
        )


class FractionalMaxPool3d(_FractionalMaxPoolNd):
    """The maximum of windows that start at random places, as many as the output of a given size needs.

    As `torch.nn.FractionalMaxPool3d` (Graham, arXiv:1412.6071). The starts are drawn anew at each call, in
    evaluation too.

    Args:
        kernel_size (int or tuple of 3 int): Depth, height and width of the window, in voxels.
        output_size (int or tuple of 3 int, optional): Sizes of the output, in voxels. Either it or
            `output_ratio` is given.
        output_ratio (float or tuple of 3 float, optional): Sizes of the output as shares of the input's,
            between 0 and 1.
        return_indices (bool): Also return where each maximum stands, as `MaxUnpool3d` takes it. Default:
            False.

    Shape:
        - Input: `(N, C, D, H, W)` or `(C, D, H, W)`.
        - Output: `(N, C, *output_size)` or `(C, *output_size)`, the sizes being `floor(size * output_ratio)`
          where a ratio is given. With `return_indices` a pair: the output, and int64 indices into the flat
          volume of its shape.

    Raises:
        ValueError: Both or neither of `output_size` and `output_ratio` are given, or a ratio is not between 0
            and 1.
        RuntimeError: At the call, windows of this size do not fit into the input so often.

    Example:
        >>> pool = mica.nn.FractionalMaxPool3d(2, output_size=3)
        >>> pool(mica.ones(1, 7, 7, 7)).shape
        mica.Size([1, 3, 3, 3])
    """

    _dims = 3

    def forward(self, input: Tensor) -> Any:
        return F.fractional_max_pool3d(
            input,
            self.kernel_size,
            self.output_size,
            self.output_ratio,
            self.return_indices,
            self._random_samples,
        )
