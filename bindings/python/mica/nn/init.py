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
    """The recommended gain of a nonlinearity."""
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
    """Uniform in [a, b)."""
    with mica.no_grad():
        return tensor.uniform_(a, b, generator=generator)


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Tensor:
    """Normal with `mean` and `std`."""
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
    """Normal, cut off outside [a, b], by rejection: of normal draws where most lie inside, else of
    uniform ones."""

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
    """All elements `val`."""
    with mica.no_grad():
        return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """All elements 1."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """All elements 0."""
    with mica.no_grad():
        return tensor.zero_()


def eye_(tensor: Tensor) -> Tensor:
    """The identity matrix."""
    if tensor.ndim != 2:
        raise ValueError(f"eye_() takes a matrix; this tensor has {tensor.ndim} dimensions.")
    with mica.no_grad():
        return tensor.copy_(mica.eye(*tensor.shape, dtype=tensor.dtype))


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Uniform with variance by fan in and fan out (Glorot and Bengio, 2010)."""
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    bound = math.sqrt(3.0) * gain * math.sqrt(2.0 / float(fan_in + fan_out))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Normal with variance by fan in and fan out (Glorot and Bengio, 2010)."""
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
    """Uniform with variance by one fan (He et al., 2015)."""
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
    """Normal with variance by one fan (He et al., 2015)."""
    if _without_elements(tensor):
        return tensor
    return normal_(tensor, 0.0, calculate_gain(nonlinearity, a) / math.sqrt(_fan(tensor, mode)), generator)


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Any = None) -> Tensor:
    """A (semi-)orthogonal matrix, by the QR decomposition of a normal one (Saxe et al., 2013)."""
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
    """The convolution that gives back its input, as far as channels go."""
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
    """Normal, with a share of each column set to zero (Martens, 2010)."""
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    with mica.no_grad():
        tensor.normal_(0, std, generator=generator)
        for column in range(columns):
            tensor[mica.randperm(rows)[:zeros], column] = 0
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

    return initialise


uniform, normal, constant, eye, dirac = map(_deprecated, (uniform_, normal_, constant_, eye_, dirac_))
xavier_uniform, xavier_normal = _deprecated(xavier_uniform_), _deprecated(xavier_normal_)
kaiming_uniform, kaiming_normal = _deprecated(kaiming_uniform_), _deprecated(kaiming_normal_)
orthogonal, sparse = _deprecated(orthogonal_), _deprecated(sparse_)
