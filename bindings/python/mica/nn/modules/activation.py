"""Activations: modules around the functional forms."""

from __future__ import annotations

import warnings
from typing import Any

import mica
from mica._C import Tensor
from mica.nn import functional as F
from mica.nn.init import constant_
from mica.nn.modules.module import Module
from mica.nn.parameter import Parameter


class _Inplace(Module):
    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class ReLU(_Inplace):
    """Sets negative elements to 0: `max(x, 0)`.

    As `torch.nn.ReLU`.

    Args:
        inplace (bool): Write the result into the input. Default: False.

    Shape:
        - Input and output: any shape, the same.

    Example:
        >>> mica.nn.ReLU()(mica.tensor([-1.0, 0.0, 2.0]))
        tensor([0., 0., 2.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.relu(input, self.inplace)


class SiLU(_Inplace):
    """Weighs each element by its own sigmoid: `x * sigmoid(x)`; also called swish.

    As `torch.nn.SiLU`.

    Args:
        inplace (bool): Write the result into the input. Default: False.

    Shape:
        - Input and output: any shape, the same.

    Example:
        >>> mica.nn.SiLU()(mica.tensor([-2.0, 0.0, 1.0]))
        tensor([-0.2384,  0.0000,  0.7311])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.silu(input, self.inplace)


class Mish(_Inplace):
    """A smooth relative of ReLU that is not monotonic: `x * tanh(log(1 + exp(x)))`.

    As `torch.nn.Mish`.

    Args:
        inplace (bool): Write the result into the input. Default: False.

    Shape:
        - Input and output: any shape, the same.

    Example:
        >>> mica.nn.Mish()(mica.tensor([-2.0, 0.0, 1.0]))
        tensor([-0.2525,  0.0000,  0.8651])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.mish(input, self.inplace)


class SELU(_Inplace):
    """An ELU scaled so that deep networks keep mean 0 and variance 1 (Klambauer et al., 2017).

    `scale * x` where `x > 0` and `scale * alpha * (exp(x) - 1)` elsewhere, with `scale = 1.0507...` and
    `alpha = 1.6733...`. As `torch.nn.SELU`. Its dropout is `AlphaDropout`.

    Args:
        inplace (bool): Write the result into the input. Default: False.

    Shape:
        - Input and output: any shape, the same.

    Example:
        >>> mica.nn.SELU()(mica.tensor([-2.0, 0.0, 1.0]))
        tensor([-1.5202,  0.0000,  1.0507])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.selu(input, self.inplace)


class _QuietInplace(Module):
    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


class Hardswish(_QuietInplace):
    """SiLU in straight and parabolic pieces: `x * min(max(x + 3, 0), 6) / 6`.

    As `torch.nn.Hardswish`.

    Args:
        inplace (bool): Write the result into the input. Default: False.

    Shape:
        - Input and output: any shape, the same.

    Example:
        >>> mica.nn.Hardswish()(mica.tensor([-4.0, -2.0, 1.0, 4.0]))
        tensor([-0.0000, -0.3333,  0.6667,  4.0000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.hardswish(input, self.inplace)


class Hardsigmoid(_QuietInplace):
    """The sigmoid in three straight pieces: `min(max(x + 3, 0), 6) / 6`.

    As `torch.nn.Hardsigmoid`.

    Args:
        inplace (bool): Write the result into the input. Default: False.

    Shape:
        - Input and output: any shape, the same.

    Example:
        >>> mica.nn.Hardsigmoid()(mica.tensor([-4.0, 0.0, 1.5]))
        tensor([0.0000, 0.5000, 0.7500])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.hardsigmoid(input, self.inplace)


class Hardtanh(Module):
    """Limits each element to a range: `min(max(x, min_val), max_val)`.

    As `torch.nn.Hardtanh`.

    Args:
        min_val (float): Lower end of the range. Default: -1.
        max_val (float): Upper end of the range, above `min_val`. Default: 1.
        inplace (bool): Write the result into the input. Default: False.
        min_value (float, optional): Deprecated name of `min_val`, which it overrides.
        max_value (float, optional): Deprecated name of `max_val`, which it overrides.

    Shape:
        - Input and output: any shape, the same.

    Raises:
        AssertionError: `max_val` is not above `min_val`.

    Example:
        >>> mica.nn.Hardtanh(-2.0, 2.0)(mica.tensor([-3.0, 0.5, 3.0]))
        tensor([-2.0000,  0.5000,  2.0000])
    """

    def __init__(
        self,
        min_val: float = -1.0,
        max_val: float = 1.0,
        inplace: bool = False,
        min_value: float | None = None,
        max_value: float | None = None,
    ) -> None:
        super().__init__()
        for name, old in (("min_val", min_value), ("max_val", max_value)):
            if old is not None:
                text = f"keyword argument `{name}ue` is deprecated and renamed to `{name}`"
                warnings.warn(text, FutureWarning, stacklevel=2)
        self.min_val = min_val if min_value is None else min_value
        self.max_val = max_val if max_value is None else max_value
        self.inplace = inplace
        if self.max_val <= self.min_val:
            raise AssertionError(f"max_val ({self.max_val}) must be larger than min_val ({self.min_val}).")

    def forward(self, input: Tensor) -> Tensor:
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}" + (", inplace=True" if self.inplace else "")


class ReLU6(Hardtanh):
    """ReLU that ends at 6: `min(max(x, 0), 6)`.

    As `torch.nn.ReLU6`.

    Args:
        inplace (bool): Write the result into the input. Default: False.

    Shape:
        - Input and output: any shape, the same.

    Example:
        >>> mica.nn.ReLU6()(mica.tensor([-1.0, 2.0, 8.0]))
        tensor([0., 2., 6.])
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)

    def forward(self, input: Tensor) -> Tensor:
        return F.relu6(input, self.inplace)

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class ELU(Module):
    """ReLU with an exponential for negative elements: `x` where `x > 0`, else `alpha * (exp(x) - 1)`.

    As `torch.nn.ELU`.

    Args:
        alpha (float): The result approaches `-alpha` for large negative elements. Default: 1.
        inplace (bool): Write the result into the input. Default: False.

    Shape:
        - Input and output: any shape, the same.

    Example:
        >>> mica.nn.ELU()(mica.tensor([-2.0, 0.0, 1.0]))
        tensor([-0.8647,  0.0000,  1.0000])
    """

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha, self.inplace = alpha, inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.elu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}" + (", inplace=True" if self.inplace else "")


class LeakyReLU(Module):
    """ReLU with a slope for negative elements: `x` where `x > 0`, else `negative_slope * x`.

    As `torch.nn.LeakyReLU`.

    Args:
        negative_slope (float): Factor of negative elements. Default: 0.01.
        inplace (bool): Write the result into the input. Default: False.

    Shape:
        - Input and output: any shape, the same.

    Example:
        >>> mica.nn.LeakyReLU(0.1)(mica.tensor([-2.0, 0.0, 1.0]))
        tensor([-0.2000,  0.0000,  1.0000])
    """

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope, self.inplace = negative_slope, inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        return f"negative_slope={self.negative_slope}" + (", inplace=True" if self.inplace else "")


class GELU(Module):
    """Weighs each element by the normal distribution function: `x * Phi(x)`.

    As `torch.nn.GELU`.

    Args:
        approximate (str): "none" for the exact function, "tanh" for
            `0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3)))`. Default: "none".

    Shape:
        - Input and output: any shape, the same.

    Raises:
        RuntimeError: The module is called and `approximate` is neither of the two.

    Example:
        >>> mica.nn.GELU()(mica.tensor([-2.0, 0.0, 1.0]))
        tensor([-0.0455,  0.0000,  0.8413])
    """

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class Softplus(Module):
    """A smooth ReLU, which is positive everywhere: `log(1 + exp(beta * x)) / beta`.

    As `torch.nn.Softplus`.

    Args:
        beta (float): The larger, the closer to ReLU. Default: 1.
        threshold (float): Where `beta * x` is above it, the result is `x` itself. Default: 20.

    Shape:
        - Input and output: any shape, the same.

    Example:
        >>> mica.nn.Softplus()(mica.tensor([-2.0, 0.0, 30.0]))
        tensor([ 0.1269,  0.6931, 30.0000])
    """

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta, self.threshold = beta, threshold

    def forward(self, input: Tensor) -> Tensor:
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        return f"beta={self.beta}, threshold={self.threshold}"


class Sigmoid(Module):
    """Maps each element into (0, 1): `1 / (1 + exp(-x))`.

    As `torch.nn.Sigmoid`.

    Shape:
        - Input and output: any shape, the same.

    Example:
        >>> mica.nn.Sigmoid()(mica.tensor([-2.0, 0.0, 2.0]))
        tensor([0.1192, 0.5000, 0.8808])
    """

    def forward(self, input: Tensor) -> Tensor:
        return input.sigmoid()


class Tanh(Module):
    """Maps each element into (-1, 1) by the hyperbolic tangent.

    As `torch.nn.Tanh`.

    Shape:
        - Input and output: any shape, the same.

    Example:
        >>> mica.nn.Tanh()(mica.tensor([-2.0, 0.0, 2.0]))
        tensor([-0.9640,  0.0000,  0.9640])
    """

    def forward(self, input: Tensor) -> Tensor:
        return input.tanh()


class _OfDim(Module):
    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmax(_OfDim):
    """Turns scores into probabilities, whose sum along a dimension is 1: `exp(x) / sum(exp(x))`.

    As `torch.nn.Softmax`. For a loss take `LogSoftmax` and `NLLLoss`, or `CrossEntropyLoss` alone.

    Args:
        dim (int, optional): The dimension of the sum. None, with a warning, takes dimension 0 of tensors
            of 0, 1 or 3 dimensions and dimension 1 of others. Default: None.

    Shape:
        - Input and output: any shape, the same.

    Raises:
        IndexError: The input has no dimension `dim`.

    Example:
        >>> mica.nn.Softmax(dim=1)(mica.tensor([[0.0, 0.0], [1.0, 3.0]]))
        tensor([[0.5000, 0.5000],
                [0.1192, 0.8808]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softmax(input, self.dim)


class LogSoftmax(_OfDim):
    """The logarithm of softmax along a dimension: `x - log(sum(exp(x)))`.

    As `torch.nn.LogSoftmax`. It stays finite where the logarithm of a rounded softmax is -inf.

    Args:
        dim (int, optional): The dimension of the sum. None, with a warning, takes dimension 0 of tensors
            of 0, 1 or 3 dimensions and dimension 1 of others. Default: None.

    Shape:
        - Input and output: any shape, the same.

    Raises:
        IndexError: The input has no dimension `dim`.

    Example:
        >>> mica.nn.LogSoftmax(dim=0)(mica.tensor([0.0, 200.0]))
        tensor([-200.,    0.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.log_softmax(input, self.dim)


class Softmin(_OfDim):
    """Softmax of the negated input: the smallest score gets the highest probability.

    As `torch.nn.Softmin`.

    Args:
        dim (int, optional): The dimension of the sum. None, with a warning, takes dimension 0 of tensors
            of 0, 1 or 3 dimensions and dimension 1 of others. Default: None.

    Shape:
        - Input and output: any shape, the same.

    Raises:
        IndexError: The input has no dimension `dim`.

    Example:
        >>> mica.nn.Softmin(dim=0)(mica.tensor([1.0, 3.0]))
        tensor([0.8808, 0.1192])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softmax(-input, self.dim)


class GLU(Module):
    """Gates one half of the input by the other: `a * sigmoid(b)`, where `a` and `b` are its halves.

    As `torch.nn.GLU`.

    Args:
        dim (int): The dimension that is halved. Default: -1.

    Shape:
        - Input: any shape with an even size in dimension `dim`.
        - Output: the input's shape with half that size.

    Raises:
        RuntimeError: The size of dimension `dim` is odd.

    Example:
        >>> mica.nn.GLU()(mica.tensor([4.0, 6.0, 0.0, -1.0]))
        tensor([2.0000, 1.6136])
    """

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return F.glu(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softsign(Module):
    """Maps each element into (-1, 1) by a quotient: `x / (1 + |x|)`.

    As `torch.nn.Softsign`.

    Shape:
        - Input and output: any shape, the same.

    Example:
        >>> mica.nn.Softsign()(mica.tensor([-3.0, 0.0, 1.0]))
        tensor([-0.7500,  0.0000,  0.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softsign(input)


class Tanhshrink(Module):
    """The input less its hyperbolic tangent: `x - tanh(x)`.

    As `torch.nn.Tanhshrink`.

    Shape:
        - Input and output: any shape, the same.

    Example:
        >>> mica.nn.Tanhshrink()(mica.tensor([-2.0, 0.0, 1.0]))
        tensor([-1.0360,  0.0000,  0.2384])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.tanhshrink(input)


class LogSigmoid(Module):
    """The logarithm of the sigmoid: `-log(1 + exp(-x))`.

    As `torch.nn.LogSigmoid`. It stays finite where the logarithm of a rounded sigmoid is -inf.

    Shape:
        - Input and output: any shape, the same.

    Example:
        >>> mica.nn.LogSigmoid()(mica.tensor([-200.0, 0.0, 2.0]))
        tensor([-2.0000e+02, -6.9315e-01, -1.2693e-01])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.logsigmoid(input)


class PReLU(Module):
    """LeakyReLU with learned slopes: `x` where `x > 0`, else `weight * x`.

    As `torch.nn.PReLU`.

    Args:
        num_parameters (int): Number of slopes: 1 for all elements, or one for each channel, in which case
            dimension 1 of the input has this size. Default: 1.
        init (float): First value of the slopes. Default: 0.25.
        device (device, optional): Where the slopes live. Default: the default device.
        dtype (dtype, optional): Of the slopes. Default: the default dtype.

    Attributes:
        weight (Parameter): The slopes, `(num_parameters,)`.

    Shape:
        - Input and output: any shape, the same.

    Raises:
        RuntimeError: `num_parameters` is neither 1 nor the input's number of channels.

    Example:
        >>> mica.nn.PReLU(2)(mica.tensor([[-1.0, 4.0]])).tolist()
        [[-0.25, 4.0]]
    """

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.num_parameters, self.init = num_parameters, init
        self.weight = Parameter(mica.empty(num_parameters, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sets all slopes to `init`."""
        constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class CELU(_Inplace):
    """ELU whose slope is continuous for every alpha: `x` where `x > 0`, else `alpha * (exp(x / alpha) - 1)`.

    As `torch.nn.CELU`.

    Args:
        alpha (float): The result approaches `-alpha` for large negative elements. Not 0. Default: 1.
        inplace (bool): Write the result into the input. Default: False.

    Shape:
        - Input and output: any shape, the same.

    Raises:
        RuntimeError: The module is called and `alpha` is 0.

    Example:
        >>> mica.nn.CELU(2.0)(mica.tensor([-2.0, 0.0, 1.0]))
        tensor([-1.2642,  0.0000,  1.0000])
    """

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.alpha = alpha

    def forward(self, input: Tensor) -> Tensor:
        return F.celu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}" + (", inplace=True" if self.inplace else "")


class Threshold(_Inplace):
    """Replaces what is not above a threshold: `x` where `x > threshold`, else `value`.

    As `torch.nn.Threshold`.

    Args:
        threshold (float): The largest value that is replaced.
        value (float): What takes its place.
        inplace (bool): Write the result into the input. Default: False.

    Shape:
        - Input and output: any shape, the same.

    Example:
        >>> mica.nn.Threshold(1.0, 20.0)(mica.tensor([0.5, 1.0, 1.5]))
        tensor([20.0000, 20.0000,  1.5000])
    """

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.threshold, self.value = threshold, value

    def forward(self, input: Tensor) -> Tensor:
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self) -> str:
        return f"threshold={self.threshold}, value={self.value}" + (", inplace=True" if self.inplace else "")


class _Shrink(Module):
    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def extra_repr(self) -> str:
        return f"{self.lambd}"


class Hardshrink(_Shrink):
    """Sets small elements to 0: `x` where `|x| > lambd`, else 0.

    As `torch.nn.Hardshrink`.

    Args:
        lambd (float): The largest magnitude that becomes 0. Default: 0.5.

    Shape:
        - Input and output: any shape, the same.

    Example:
        >>> mica.nn.Hardshrink()(mica.tensor([-2.0, -0.5, 0.0, 0.75]))
        tensor([-2.0000,  0.0000,  0.0000,  0.7500])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.hardshrink(input, self.lambd)


class Softshrink(_Shrink):
    """Moves elements towards 0: `x - lambd` where `x > lambd`, `x + lambd` where `x < -lambd`, else 0.

    As `torch.nn.Softshrink`.

    Args:
        lambd (float): How far; 0 or more. Default: 0.5.

    Shape:
        - Input and output: any shape, the same.

    Raises:
        RuntimeError: The module is called and `lambd` is negative.

    Example:
        >>> mica.nn.Softshrink()(mica.tensor([-2.0, 0.0, 0.75]))
        tensor([-1.5000,  0.0000,  0.2500])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softshrink(input, self.lambd)


class Softmax2d(Module):
    """Softmax over the channels at each place of an image.

    As `torch.nn.Softmax2d`.

    Shape:
        - Input and output: `(N, C, H, W)` or `(C, H, W)`, the same.

    Raises:
        ValueError: The input has neither 3 nor 4 dimensions.

    Example:
        >>> mica.nn.Softmax2d()(mica.zeros(1, 4, 2, 2))[0, :, 0, 0]
        tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """

    def forward(self, input: Tensor) -> Tensor:
        if input.ndim not in (3, 4):
            raise ValueError(f"Softmax2d takes tensors of 3 or 4 dimensions; this one has {input.ndim}.")
        return F.softmax(input, -3)


class RReLU(Module):
    """LeakyReLU with a random slope for each negative element: `x` where `x >= 0`, else `a * x`.

    While training, `a` is drawn anew from the uniform distribution between `lower` and `upper`; in
    evaluation mode it is their mean. As `torch.nn.RReLU`.

    Args:
        lower (float): Smallest slope. Default: 1/8.
        upper (float): Largest slope. Default: 1/3.
        inplace (bool): Write the result into the input. Default: False.

    Shape:
        - Input and output: any shape, the same.

    Raises:
        RuntimeError: The module is called and `lower` is above `upper`.

    Example:
        >>> mica.nn.RReLU(0.25, 0.75).eval()(mica.tensor([-2.0, 0.0, 1.0]))
        tensor([-1.,  0.,  1.])
    """

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False) -> None:
        super().__init__()
        self.lower = lower
        self.upper = upper
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"lower={self.lower}, upper={self.upper}" + (", inplace=True" if self.inplace else "")
