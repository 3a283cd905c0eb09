"""Linear and the modules that only change shapes."""

from __future__ import annotations

import math
from typing import Any

import mica
from mica._C import Tensor
from mica.nn import functional as F, init
from mica.nn.modules.module import Module
from mica.nn.parameter import Parameter


class Identity(Module):
    """Returns its input: the layer to put where none is wanted.

    As `torch.nn.Identity`.

    Args:
        *args (Any): Ignored.
        **kwargs (Any): Ignored.

    Shape:
        - Input and output: any shape, the same; the very object.

    Example:
        >>> mica.nn.Identity()(mica.ones(2))
        tensor([1., 1.])
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        return input


class Linear(Module):
    """Maps features to features by a matrix and a bias: `y = x @ weight.T + bias`.

    As `torch.nn.Linear`.

    Args:
        in_features (int): Size of the input's last dimension.
        out_features (int): Size of the output's last dimension.
        bias (bool): Whether there is a bias. Default: True.
        device (device, optional): Where the parameters live. Default: the default device.
        dtype (dtype, optional): Of the parameters. Default: the default dtype.

    Attributes:
        weight (Parameter): `(out_features, in_features)`, drawn uniformly from `[-bound, bound]` with
            `bound = 1 / sqrt(in_features)`.
        bias (Parameter): `(out_features,)`, drawn likewise, or None.

    Shape:
        - Input: `(*, in_features)`, where `*` is any number of dimensions.
        - Output: `(*, out_features)`.

    Raises:
        RuntimeError: The input's last dimension is not `in_features`, or its dtype is not the weight's.

    Example:
        >>> layer = mica.nn.Linear(3, 2)
        >>> layer(mica.ones(4, 3)).shape
        mica.Size([4, 2])
    """

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter(mica.empty((out_features, in_features), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(mica.empty(out_features, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws weight and bias anew."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"
        )


class NonDynamicallyQuantizableLinear(Linear):
    """A `Linear` by another name: the output projection of `MultiheadAttention`.

    As `torch.nn.modules.linear.NonDynamicallyQuantizableLinear`, which torch's dynamic quantisation skips.

    Args:
        in_features (int): Size of the input's last dimension.
        out_features (int): Size of the output's last dimension.
        bias (bool): Whether there is a bias. Default: True.
        device (device, optional): Where the parameters live. Default: the default device.
        dtype (dtype, optional): Of the parameters. Default: the default dtype.

    Shape:
        - Input: `(*, in_features)`, where `*` is any number of dimensions.
        - Output: `(*, out_features)`.

    Example:
        >>> mica.nn.MultiheadAttention(4, 2).out_proj
        NonDynamicallyQuantizableLinear(in_features=4, out_features=4, bias=True)
    """


class Flatten(Module):
    """Joins neighbouring dimensions into one; by default all but the batch.

    As `torch.nn.Flatten`.

    Args:
        start_dim (int): The first dimension to join. Default: 1.
        end_dim (int): The last dimension to join. Default: -1.

    Shape:
        - Input: `(N, *)`, with at least one dimension after `N`.
        - Output: `(N, product of *)`, by default.

    Raises:
        IndexError: The input has not these dimensions.
        RuntimeError: `start_dim` comes after `end_dim`.

    Example:
        >>> mica.nn.Flatten()(mica.ones(2, 3, 4)).shape
        mica.Size([2, 12])
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Tensor) -> Tensor:
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Splits one dimension into several.

    As `torch.nn.Unflatten`, except that dimensions have no names.

    Args:
        dim (int): The dimension to split.
        unflattened_size (tuple of int): The sizes that take its place, with its size as their product; one
            may be -1 and is computed.

    Shape:
        - Input: `(*, S, *)`, with `S` in dimension `dim`.
        - Output: `(*, *unflattened_size, *)`.

    Raises:
        TypeError: `unflattened_size` is no tuple or list of integers.
        IndexError: The input has no dimension `dim`.
        RuntimeError: The product of the sizes is not the size of the dimension.

    Example:
        >>> mica.nn.Unflatten(1, (3, -1))(mica.ones(2, 12)).shape
        mica.Size([2, 3, 4])
    """

    def __init__(self, dim: int, unflattened_size: Any) -> None:
        super().__init__()
        if not isinstance(unflattened_size, (tuple, list)):
            raise TypeError(
                f"Unflatten's sizes are a tuple of integers; these are of type ({type(unflattened_size).__name__})."
            )
        for place, size in enumerate(unflattened_size):
            if not isinstance(size, int):
                raise TypeError(
                    f"Unflatten's sizes are integers; that at ({place}) is of type ({type(size).__name__})."
                )
        self.dim = dim
        self.unflattened_size = unflattened_size

    def forward(self, input: Tensor) -> Tensor:
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
