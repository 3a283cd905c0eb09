"""Initialisation of parameters. Draws are torch's, in torch's order, so that the
same seed gives the same weights."""

from __future__ import annotations

import math
import warnings
from typing import Any

import mica
from mica._C import Tensor

_CONVOLUTIONS = [f"conv{kind}{dims}d" for kind in ("", "_transpose") for dims in (1, 2, 3)]


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor by which weights make up for what a nonlinearity takes from the standard deviation.

    As `torch.nn.init.calculate_gain`: 1 for linear layers, convolutions and sigmoid, 5 / 3 for tanh,
    `sqrt(2)` for relu, `sqrt(2 / (1 + slope ** 2))` for leaky_relu, 3 / 4 for selu.

    Args:
        nonlinearity (str): `linear`, `conv1d`, `conv2d`, `conv3d`, `conv_transpose1d`, `conv_transpose2d`,
            `conv_transpose3d`, `sigmoid`, `tanh`, `relu`, `leaky_relu` or `selu`.
        param (float, optional): The negative slope of leaky_relu. Default: 0.01.

    Returns:
        float: The gain, which the `xavier_` functions take.

    Raises:
        ValueError: The nonlinearity is unknown, or the slope is no number.

    Example:
        >>> mica.nn.init.calculate_gain("leaky_relu", 0.2)
        1.3867504905630728
    """
    if nonlinearity in ("linear", "sigmoid") or nonlinearity in _CONVOLUTIONS:
        return 1.0
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "leaky_relu":
        if isinstance(param, bool) or not isinstance(param, (int, float, type(None))):
            raise ValueError(f"The slope ({param}) of leaky_relu is a number.")
        slope = 0.01 if param is None else float(param)
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity == "selu":
        return 3.0 / 4
    raise ValueError(f"The nonlinearity ({nonlinearity}) is unknown.")


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    if tensor.ndim < 2:
        raise ValueError(f"Fan in and fan out need at least 2 dimensions; this tensor has {tensor.ndim}.")
    field = math.prod(tensor.shape[2:])
    return tensor.size(1) * field, tensor.size(0) * field


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Tensor:
    """Draws every element uniformly from `[a, b)`.

    As `torch.nn.init.uniform_`; no gradient is recorded, and the same seed gives torch's numbers.

    Args:
        tensor (Tensor): Floating point, any shape, changed in place.
        a (float): The lower end. Default: 0.
        b (float): The upper end. Default: 1.
        generator (Generator, optional): Where the draws come from. Default: the device's default generator.

    Returns:
        Tensor: `tensor`.

    Raises:
        RuntimeError: `a` is above `b`.
        NotImplementedError: The tensor is no floating point one.

    Example:
        >>> weight = mica.nn.init.uniform_(mica.empty(3, 5), -1.0, 1.0)
        >>> bool((weight.abs() <= 1).all())
        True
    """
    with mica.no_grad():
        return tensor.uniform_(a, b, generator=generator)


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Tensor:
    """Draws every element from the normal distribution of `mean` and `std`.

    As `torch.nn.init.normal_`; no gradient is recorded, and the same seed gives torch's numbers.

    Args:
        tensor (Tensor): Floating point, any shape, changed in place.
        mean (float): Mean of the distribution. Default: 0.
        std (float): The standard deviation, not negative. Default: 1.
        generator (Generator, optional): Where the draws come from. Default: the device's default generator.

    Returns:
        Tensor: `tensor`.

    Raises:
        RuntimeError: `std` is negative.

    Example:
        >>> mica.nn.init.normal_(mica.empty(2), mean=3.0, std=0.0)
        tensor([3., 3.])
    """
    with mica.no_grad():
        return tensor.normal_(mean, std, generator=generator)


def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Any = None,
) -> Tensor:
    """Draws every element from the normal distribution of `mean` and `std`, cut off outside of `[a, b]`.

    As `torch.nn.init.trunc_normal_`. What falls outside is drawn again, so that nothing piles up at the ends.
    `a` and `b` are values, no multiples of `std`.

    Args:
        tensor (Tensor): Floating point, any shape, changed in place.
        mean (float): Of the distribution before it is cut. Default: 0.
        std (float): Its standard deviation, above 0. Default: 1.
        a (float): The smallest value. Default: -2.
        b (float): The largest value. Default: 2.
        generator (Generator, optional): Where the draws come from. Default: the device's default generator.

    Returns:
        Tensor: `tensor`.

    Raises:
        RuntimeError: `a` is above `b`.
        ZeroDivisionError: `std` is 0.

    Example:
        >>> weight = mica.nn.init.trunc_normal_(mica.empty(3, 5), std=0.02, a=-0.04, b=0.04)
        >>> bool((weight.abs() <= 0.04).all())
        True
    """

    def below(x: float) -> float:
        return (1.0 + math.erf(x / math.sqrt(2.0))) / 2.0

    if tensor.device.type == "meta":
        return tensor
    inside = below((b - mean) / std) - below((a - mean) / std)
    with mica.no_grad():
        if inside > 0.3:
            low, high = tensor.new_tensor(a).item(), tensor.new_tensor(b).item()
            result = tensor.normal_(mean, std, generator=generator)
            while (outside := (result < low) | (result > high)).any():
                again = mica.empty_like(result).normal_(mean, std, generator=generator)
                result = mica.where(outside, again, result)
            return tensor if result is tensor else tensor.copy_(result)
        peak = -0.5 * ((max(a, min(mean, b)) - mean) / std) ** 2
        result = tensor.uniform_(a, b, generator=generator).clone()
        draws = mica.empty_like(tensor)
        candidates, pending = result, None
        while True:
            heights = (candidates - mean).div_(std).pow_(2).mul_(-0.5).sub_(peak)
            rejected = draws.uniform_(generator=generator).log_().gt(heights)
            pending = rejected if pending is None else pending & rejected
            if not pending.any():
                return tensor.copy_(result)
            candidates = mica.empty_like(tensor).uniform_(a, b, generator=generator)
            result = mica.where(pending, candidates, result)


def constant_(tensor: Tensor, val: float) -> Tensor:
    """Sets every element to one value.

    As `torch.nn.init.constant_`.

    Args:
        tensor (Tensor): Any shape, changed in place.
        val (float): The value of every element.

    Returns:
        Tensor: `tensor`.

    Example:
        >>> mica.nn.init.constant_(mica.empty(2, 3), 0.5)
        tensor([[0.5000, 0.5000, 0.5000],
                [0.5000, 0.5000, 0.5000]])
    """
    with mica.no_grad():
        return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """Sets every element to 1.

    As `torch.nn.init.ones_`.

    Args:
        tensor (Tensor): Any shape, changed in place.

    Returns:
        Tensor: `tensor`.

    Example:
        >>> mica.nn.init.ones_(mica.empty(3))
        tensor([1., 1., 1.])
    """
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Sets every element to 0.

    As `torch.nn.init.zeros_`.

    Args:
        tensor (Tensor): Any shape, changed in place.

    Returns:
        Tensor: `tensor`.

    Example:
        >>> mica.nn.init.zeros_(mica.empty(3))
        tensor([0., 0., 0.])
    """
    with mica.no_grad():
        return tensor.zero_()


def eye_(tensor: Tensor) -> Tensor:
    """Makes a matrix the identity: a linear layer with it passes on its input.

    As `torch.nn.init.eye_`. A matrix that is not square has ones on its diagonal, as far as that goes.

    Args:
        tensor (Tensor): `(n, m)`, changed in place.

    Returns:
        Tensor: `tensor`.

    Raises:
        ValueError: The tensor has not 2 dimensions.

    Example:
        >>> mica.nn.init.eye_(mica.empty(2, 3))
        tensor([[1., 0., 0.],
                [0., 1., 0.]])
    """
    if tensor.ndim != 2:
        raise ValueError(f"eye_() takes a matrix; this tensor has {tensor.ndim} dimensions.")
    with mica.no_grad():
        return tensor.copy_(mica.eye(*tensor.shape, dtype=tensor.dtype))


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Draws weights uniformly, so that signals keep their variance (Glorot and Bengio, 2010).

    As `torch.nn.init.xavier_uniform_`. With `fan_in = tensor.size(1) * window` and
    `fan_out = tensor.size(0) * window`, the window being the elements of one channel of a filter: uniform in
    `[-bound, bound]`, `bound = gain * sqrt(6 / (fan_in + fan_out))`.

    Args:
        tensor (Tensor): Weights, `(out, in, *window)`, 2 dimensions or more, changed in place.
        gain (float): Factor, as `calculate_gain` has it. Default: 1.
        generator (Generator, optional): Where the draws come from. Default: the device's default generator.

    Returns:
        Tensor: `tensor`.

    Raises:
        ValueError: The tensor has fewer than 2 dimensions.

    Example:
        >>> weight = mica.nn.init.xavier_uniform_(mica.empty(3, 3), gain=2.0)
        >>> bool((weight.abs() <= 2).all())
        True
    """
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    bound = math.sqrt(3.0) * gain * math.sqrt(2.0 / float(fan_in + fan_out))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Draws weights normally, so that signals keep their variance (Glorot and Bengio, 2010).

    As `torch.nn.init.xavier_normal_`. With `fan_in = tensor.size(1) * window` and
    `fan_out = tensor.size(0) * window`, the window being the elements of one channel of a filter: mean 0,
    standard deviation `gain * sqrt(2 / (fan_in + fan_out))`.

    Args:
        tensor (Tensor): Weights, `(out, in, *window)`, 2 dimensions or more, changed in place.
        gain (float): Factor, as `calculate_gain` has it. Default: 1.
        generator (Generator, optional): Where the draws come from. Default: the device's default generator.

    Returns:
        Tensor: `tensor`.

    Raises:
        ValueError: The tensor has fewer than 2 dimensions.

    Example:
        >>> weight = mica.nn.init.xavier_normal_(mica.empty(200, 200))
        >>> round(weight.std().item(), 2)
        0.07
    """
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / float(fan_in + fan_out)), generator)


def _without_elements(tensor: Tensor) -> bool:
    if 0 in tensor.shape:
        warnings.warn("A tensor without elements is left as it is by initialisation.", stacklevel=3)
        return True
    return False


def _fan(tensor: Tensor, mode: str) -> int:
    if mode.lower() not in ("fan_in", "fan_out"):
        raise ValueError(f"The mode ({mode}) is unknown; expected fan_in or fan_out.")
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return fan_in if mode.lower() == "fan_in" else fan_out


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Tensor:
    """Draws weights uniformly, so that signals keep their variance through rectifiers (He et al., 2015).

    As `torch.nn.init.kaiming_uniform_`. With `fan_in = tensor.size(1) * window` and
    `fan_out = tensor.size(0) * window`, the window being the elements of one channel of a filter: uniform in
    `[-bound, bound]`, `bound = gain * sqrt(3 / fan)`.

    Args:
        tensor (Tensor): Weights, `(out, in, *window)`, 2 dimensions or more, changed in place.
        a (float): The negative slope of leaky_relu; without effect for other nonlinearities. Default: 0.
        mode (str): `fan_in` keeps the variance of the forward pass, `fan_out` that of the gradients. Default:
            `fan_in`.
        nonlinearity (str): What follows the layer, as `calculate_gain` has it. Default: `leaky_relu`.
        generator (Generator, optional): Where the draws come from. Default: the device's default generator.

    Returns:
        Tensor: `tensor`.

    Raises:
        ValueError: The tensor has fewer than 2 dimensions, or mode or nonlinearity is unknown.

    Warns:
        UserWarning: The tensor has no elements.

    Example:
        >>> weight = mica.nn.init.kaiming_uniform_(mica.empty(5, 6), nonlinearity="relu")
        >>> bool((weight.abs() <= 1).all())
        True
    """
    if _without_elements(tensor):
        return tensor
    std = calculate_gain(nonlinearity, a) / math.sqrt(_fan(tensor, mode))
    bound = math.sqrt(3.0) * std
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Tensor:
    """Draws weights normally, so that signals keep their variance through rectifiers (He et al., 2015).

    As `torch.nn.init.kaiming_normal_`. With `fan_in = tensor.size(1) * window` and
    `fan_out = tensor.size(0) * window`, the window being the elements of one channel of a filter: mean 0,
    standard deviation `gain / sqrt(fan)`.

    Args:
        tensor (Tensor): Weights, `(out, in, *window)`, 2 dimensions or more, changed in place.
        a (float): The negative slope of leaky_relu; without effect for other nonlinearities. Default: 0.
        mode (str): `fan_in` keeps the variance of the forward pass, `fan_out` that of the gradients. Default:
            `fan_in`.
        nonlinearity (str): What follows the layer, as `calculate_gain` has it. Default: `leaky_relu`.
        generator (Generator, optional): Where the draws come from. Default: the device's default generator.

    Returns:
        Tensor: `tensor`.

    Raises:
        ValueError: The tensor has fewer than 2 dimensions, or mode or nonlinearity is unknown.

    Warns:
        UserWarning: The tensor has no elements.

    Example:
        >>> weight = mica.nn.init.kaiming_normal_(mica.empty(200, 200), nonlinearity="relu")
        >>> round(weight.std().item(), 1)
        0.1
    """
    if _without_elements(tensor):
        return tensor
    return normal_(tensor, 0.0, calculate_gain(nonlinearity, a) / math.sqrt(_fan(tensor, mode)), generator)


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Any = None) -> Tensor:
    """Draws a random matrix whose rows or columns, whichever are fewer, are orthonormal (Saxe et al., 2013).

    As `torch.nn.init.orthogonal_`. Weights of more dimensions are taken as `tensor.size(0)` rows.

    Args:
        tensor (Tensor): Weights, `(out, in, *window)`, 2 dimensions or more, changed in place.
        gain (float): Factor of the matrix. Default: 1.
        generator (Generator, optional): Where the draws come from. Default: the device's default generator.

    Returns:
        Tensor: `tensor`.

    Raises:
        ValueError: The tensor has fewer than 2 dimensions.

    Example:
        >>> weight = mica.nn.init.orthogonal_(mica.empty(2, 3))
        >>> mica.allclose(weight @ weight.T, mica.eye(2), atol=1e-6)
        True
    """
    if tensor.ndim < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0:
        return tensor
    rows = tensor.size(0)
    columns = tensor.numel() // rows
    with mica.no_grad():
        flat = tensor.new_empty((rows, columns)).normal_(0, 1, generator=generator)
        q, r = mica.linalg.qr(flat.t() if rows < columns else flat)
        q = q * r.diagonal().sign()
        return tensor.copy_((q.t() if rows < columns else q).reshape(tensor.shape)).mul_(gain)


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Makes a convolution pass on its input: one 1 in the middle of the filter of each channel.

    As `torch.nn.init.dirac_`. Output channel `i` is input channel `i`, as far as both go; further outputs are
    0.

    Args:
        tensor (Tensor): A convolution's weights, `(out, in / groups, *window)`, changed in place.
        groups (int): Groups of output channels, each of which starts at the first input channel. Default: 1.

    Returns:
        Tensor: `tensor`.

    Raises:
        ValueError: The tensor has not 3 to 5 dimensions, or `groups` does not divide its output channels.

    Example:
        >>> mica.nn.init.dirac_(mica.empty(2, 2, 3)).flatten(1)
        tensor([[0., 1., 0., 0., 0., 0.],
                [0., 0., 0., 0., 1., 0.]])
    """
    if tensor.ndim not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    if tensor.size(0) % groups != 0:
        raise ValueError("dim 0 must be divisible by groups")
    out = tensor.size(0) // groups
    middle = [size // 2 for size in tensor.shape[2:]]
    with mica.no_grad():
        tensor.zero_()
        for group in range(groups):
            for d in range(min(out, tensor.size(1))):
                tensor[(group * out + d, d, *middle)] = 1
    return tensor


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Any = None) -> Tensor:
    """Draws a matrix from a normal distribution and sets a share of each column to 0 (Martens, 2010).

    As `torch.nn.init.sparse_`. The mean is 0; the zeros are drawn from the default generator.

    Args:
        tensor (Tensor): `(n, m)`, changed in place.
        sparsity (float): Share of each column, in [0, 1], that is 0; rounded up to whole rows.
        std (float): The standard deviation of the others. Default: 0.01.
        generator (Generator, optional): Where the draws come from. Default: the device's default generator.

    Returns:
        Tensor: `tensor`.

    Raises:
        ValueError: The tensor has not 2 dimensions.

    Example:
        >>> weight = mica.nn.init.sparse_(mica.empty(4, 3), sparsity=0.5)
        >>> (weight == 0).sum(0)
        tensor([2, 2, 2])
    """
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    with mica.no_grad():
        tensor.normal_(0, std, generator=generator)
        for column in range(columns):
            order = mica.randperm(rows, out=tensor.new_empty((rows,), dtype=mica.int64))
            tensor[order[:zeros], column] = 0
    return tensor


_no_grad_uniform_ = uniform_
_no_grad_normal_ = normal_
_no_grad_trunc_normal_ = trunc_normal_
_no_grad_fill_ = constant_
_no_grad_zero_ = zeros_
_calculate_correct_fan = _fan


def _deprecated(function: Any) -> Any:
    import functools

    old = function.__name__[:-1]

    @functools.wraps(function)
    def initialise(*args: Any, **kwargs: Any) -> Tensor:
        import warnings

        warnings.warn(
            f"`nn.init.{old}` is now deprecated in favor of `nn.init.{old}_`.", FutureWarning, stacklevel=2
        )
        return function(*args, **kwargs)  # type: ignore[no-any-return]

    note = f"\n\n    The old name of `{function.__name__}`; calling it gives a FutureWarning.\n\n"
    initialise.__doc__ = (function.__doc__ or "").replace("\n\n", note, 1)
    return initialise


uniform, normal, constant, eye, dirac = map(_deprecated, (uniform_, normal_, constant_, eye_, dirac_))
xavier_uniform, xavier_normal = _deprecated(xavier_uniform_), _deprecated(xavier_normal_)
kaiming_uniform, kaiming_normal = _deprecated(kaiming_uniform_), _deprecated(kaiming_normal_)
orthogonal, sparse = _deprecated(orthogonal_), _deprecated(sparse_)
