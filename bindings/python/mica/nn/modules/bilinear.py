"""Bilinear: a module of two inputs."""

from __future__ import annotations

import math
from typing import Any

import mica
from mica._C import Tensor
from mica.nn import functional as F, init
from mica.nn.modules.module import Module
from mica.nn.parameter import Parameter


class Bilinear(Module):
    """Couples every feature of one input with every feature of another: `y[k] = x1 @ weight[k] @ x2 + bias[k]`.

    As `torch.nn.Bilinear`.

    Args:
        in1_features (int): Features of the first input; 1 or more.
        in2_features (int): Features of the second input.
        out_features (int): Features of the output.
        bias (bool): Whether there is a bias. Default: True.
        device (device, optional): Where the parameters live. Default: the default device.
        dtype (dtype, optional): Of the parameters. Default: the default dtype.

    Attributes:
        weight (Parameter): `(out_features, in1_features, in2_features)`, drawn uniformly from
            `[-bound, bound]` with `bound = 1 / sqrt(in1_features)`.
        bias (Parameter): `(out_features,)`, drawn likewise, or None.

    Shape:
        - Input1: `(*, in1_features)`, where `*` is any number of dimensions.
        - Input2: `(*, in2_features)`, with the same `*`.
        - Output: `(*, out_features)`.

    Raises:
        ValueError: `in1_features` is not positive.
        RuntimeError: The shapes of the inputs do not fit each other or the weight.

    Example:
        >>> layer = mica.nn.Bilinear(2, 3, 4)
        >>> layer(mica.ones(5, 2), mica.ones(5, 3)).shape
        mica.Size([5, 4])
    """

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if in1_features <= 0:
            raise ValueError(f"Number of features ({in1_features}) of the first input is not positive.")
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        shape = (out_features, in1_features, in2_features)
        self.weight = Parameter(mica.empty(shape, device=device, dtype=dtype))
        made = Parameter(mica.empty(out_features, device=device, dtype=dtype)) if bias else None
        self.register_parameter("bias", made)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws weight and bias anew."""
        bound = 1 / math.sqrt(self.weight.size(1))
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )
