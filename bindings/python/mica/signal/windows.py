"""Window functions, under torch.signal.windows' names.

Each returns `M` numbers as a vector; `sym` makes the window symmetric (for filters),
otherwise it is one period of a periodic one (for spectra). A window of no points is
empty, one of a single point is 1.
"""

from __future__ import annotations

import math

import mica
from mica import Tensor

TYPE_CHECKING = False  # importing typing takes as long as all of mica
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

__all__ = [
    "bartlett",
    "blackman",
    "cosine",
    "exponential",
    "gaussian",
    "general_cosine",
    "general_hamming",
    "hamming",
    "hann",
    "kaiser",
    "nuttall",
]


def _options(name: str, M: int, options: dict[str, Any]) -> dict[str, Any]:
    """The factory's options, checked; `dtype` is given or the default one."""
    unknown = set(options) - {"dtype", "layout", "device", "requires_grad"}
    if unknown:
        raise TypeError(f"{name}() has no argument ({sorted(unknown)[0]}).")
    dtype = options.get("dtype") or mica.get_default_dtype()
    if M < 0:
        raise ValueError(f"The window {name} requires non-negative window length, got M={M}.")
    if options.get("layout", mica.strided) is not mica.strided:
        raise ValueError(f"Argument `layout` ({options['layout']}) of the window {name} is not strided.")
    if dtype not in (mica.float32, mica.float64):
        raise ValueError(f"Argument `dtype` ({dtype}) of the window {name} is not float32 or float64.")
    return {
        "dtype": dtype,
        "device": options.get("device"),
        "requires_grad": options.get("requires_grad", False),
    }


# What every window's docstring says in the place of OPTIONS.
_OPTIONS = """\
sym (bool): Symmetric, for filters; False makes one period of a periodic window, for spectra.
        Default: True.
    dtype (dtype, optional): Of the result, float32 or float64. Default: the default dtype.
    layout (layout): `mica.strided`, the only one. Default: `mica.strided`.
    device (device, optional): Where the result lives. Default: the default device.
    requires_grad (bool): Record operations on the result for gradients. Default: False."""


def _window(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Shows the options that all windows have in the function's signature and docstring."""
    import inspect

    signature = inspect.signature(function)
    kept = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    defaults = {"dtype": None, "layout": mica.strided, "device": None, "requires_grad": False}
    added = [inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY, default=v) for n, v in defaults.items()]
    function.__signature__ = signature.replace(parameters=[*kept, *added])  # type: ignore[attr-defined]
    function.__doc__ = inspect.cleandoc(function.__doc__ or "").replace("OPTIONS", _OPTIONS)
    return function


def _period(M: int, sym: bool) -> int:
    """How many steps a period has."""
    return M if not sym and M > 1 else M - 1


def _steps(M: int, start: float, step: float, options: dict[str, Any]) -> Tensor:
    return mica.linspace(start * step, (start + (M - 1)) * step, M, **options)


@_window
def exponential(
    M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True, **options: Any
) -> Tensor:
    """The exponential window: `exp(-abs(n - center) / tau)`.

    As `torch.signal.windows.exponential`. `n` counts from 0.

    Args:
        M (int): Number of points, at least 0.
        center (float, optional): Place of the maximum, in points; for periodic windows alone. Default: the
            middle.
        tau (float): Decay, in points, above 0. Default: 1.
        OPTIONS

    Returns:
        Tensor: `(M)`.

    Raises:
        ValueError: `M` is negative, or `dtype` or `layout` is another.
        ValueError: `tau` is not positive, or `center` is given for a symmetric window.

    Example:
        >>> mica.signal.windows.exponential(4)
        tensor([0.2231, 0.6065, 0.6065, 0.2231])
    """
    options = _options("exponential", M, options)
    if tau <= 0:
        raise ValueError(f"Decay `tau` ({tau}) is not positive.")
    if sym and center is not None:
        raise ValueError(f"Argument `center` ({center}) is given for a symmetric window, which has its own.")
    if M == 0:
        return mica.empty((0,), **options)
    middle = _period(M, sym) / 2.0 if center is None else center
    return mica.exp(-mica.abs(_steps(M, -middle, 1 / tau, options)))


@_window
def cosine(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """The sine or cosine window: half of a period, `sin(pi * (n + 0.5) / M)`.

    As `torch.signal.windows.cosine`. `n` counts from 0; with `sym=False`, `M + 1` stands for `M`. `M = 1` gives
    `[1.]`.

    Args:
        M (int): Number of points, at least 0.
        OPTIONS

    Returns:
        Tensor: `(M)`.

    Raises:
        ValueError: `M` is negative, or `dtype` or `layout` is another.

    Example:
        >>> mica.signal.windows.cosine(4)
        tensor([0.3827, 0.9239, 0.9239, 0.3827])
    """
    options = _options("cosine", M, options)
    if M == 0:
        return mica.empty((0,), **options)
    return mica.sin(_steps(M, 0.5, math.pi / (_period(M, sym) + 1), options))


@_window
def gaussian(M: int, *, std: float = 1.0, sym: bool = True, **options: Any) -> Tensor:
    """The Gaussian window: `exp(-((n - middle) / std) ** 2 / 2)`.

    As `torch.signal.windows.gaussian`. `n` counts from 0; `middle` is `(M - 1) / 2` if `sym`, else `M / 2`.

    Args:
        M (int): Number of points, at least 0.
        std (float): Standard deviation, in points, above 0. Default: 1.
        OPTIONS

    Returns:
        Tensor: `(M)`.

    Raises:
        ValueError: `M` is negative, or `dtype` or `layout` is another.
        ValueError: `std` is not positive.

    Example:
        >>> mica.signal.windows.gaussian(3)
        tensor([0.6065, 1.0000, 0.6065])
    """
    options = _options("gaussian", M, options)
    if std <= 0:
        raise ValueError(f"Standard deviation `std` ({std}) is not positive.")
    if M == 0:
        return mica.empty((0,), **options)
    k = _steps(M, -_period(M, sym) / 2.0, 1 / (std * math.sqrt(2)), options)
    return mica.exp(-(k**2))


@_window
def kaiser(M: int, *, beta: float = 12.0, sym: bool = True, **options: Any) -> Tensor:
    """The Kaiser window: `i0(beta * sqrt(1 - k ** 2)) / i0(beta)` for k from -1 to 1.

    As `torch.signal.windows.kaiser`. `i0` is the modified Bessel function of order 0. With
    `sym=False` the last of `M + 1` points is left out. `M = 1` gives `[1.]`.

    Args:
        M (int): Number of points, at least 0.
        beta (float): The larger, the lower the side lobes and the wider the main one; at least 0.
            Default: 12.
        OPTIONS

    Returns:
        Tensor: `(M)`.

    Raises:
        ValueError: `M` is negative, or `dtype` or `layout` is another.
        ValueError: `beta` is negative.

    Example:
        >>> mica.signal.windows.kaiser(3, beta=1.0)
        tensor([0.7898, 1.0000, 0.7898])
    """
    options = _options("kaiser", M, options)
    if beta < 0:
        raise ValueError(f"Argument `beta` ({beta}) is negative.")
    if M <= 1:
        return mica.ones((M,), **options)
    # Rounded first, so that the root below has no negative argument; here, since the window may be on meta.
    edge = mica.tensor(beta, dtype=options["dtype"], device="cpu")
    step = 2.0 * edge / _period(M, sym)
    end = mica.minimum(edge, -edge + (M - 1) * step)
    k = mica.linspace(-float(edge), float(end), M, **options)
    return mica.i0(mica.sqrt(float(edge * edge) - mica.pow(k, 2))) / float(mica.i0(edge))


@_window
def bartlett(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """The triangular window that ends in zeros: `1 - abs(k)` for k from -1 to 1.

    As `torch.signal.windows.bartlett`. With `sym=False` the last of `M + 1` points is left out. `M = 1` gives
    `[1.]`.

    Args:
        M (int): Number of points, at least 0.
        OPTIONS

    Returns:
        Tensor: `(M)`.

    Raises:
        ValueError: `M` is negative, or `dtype` or `layout` is another.

    Example:
        >>> mica.signal.windows.bartlett(5)
        tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    options = _options("bartlett", M, options)
    if M <= 1:
        return mica.ones((M,), **options)
    step = 2 / _period(M, sym)
    return 1 - mica.abs(mica.linspace(-1, -1 + (M - 1) * step, M, **options))


@_window
def general_cosine(M: int, *, a: Iterable[float], sym: bool = True, **options: Any) -> Tensor:
    """A sum of cosines: `sum((-1) ** i * a[i] * cos(2 * pi * i * n / period))`.

    As `torch.signal.windows.general_cosine`. `n` counts from 0, and `period` is `M - 1` if `sym`,
    else `M`; `M = 1` gives `[1.]`.

    Args:
        M (int): Number of points, at least 0.
        a (sequence of float): Coefficients, at least one.
        OPTIONS

    Returns:
        Tensor: `(M)`.

    Raises:
        ValueError: `M` is negative, or `dtype` or `layout` is another.
        ValueError: `a` is empty.
        TypeError: `a` is no sequence.

    Example:
        >>> mica.signal.windows.general_cosine(5, a=[0.5, 0.5])
        tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    options = _options("general_cosine", M, options)
    if M <= 1:
        return mica.ones((M,), **options)
    try:
        weights = [(-1) ** i * w for i, w in enumerate(a)]
    except TypeError:
        raise TypeError(f"Coefficients `a` ({a}) are no list; expected numbers.") from None
    if not weights:
        raise ValueError("List `a` of coefficients is empty; expected at least one.")
    k = _steps(M, 0, 2 * math.pi / _period(M, sym), options)
    factors = mica.tensor(weights, **options)
    orders = mica.arange(len(weights), dtype=options["dtype"], device=options["device"])
    return (factors.unsqueeze(-1) * mica.cos(orders.unsqueeze(-1) * k)).sum(0)


@_window
def general_hamming(M: int, *, alpha: float = 0.54, sym: bool = True, **options: Any) -> Tensor:
    """A raised cosine: `alpha - (1 - alpha) * cos(2 * pi * n / period)`.

    As `torch.signal.windows.general_hamming`. `n` counts from 0, and `period` is `M - 1` if `sym`, else `M`;
    `M = 1` gives `[1.]`.

    Args:
        M (int): Number of points, at least 0.
        alpha (float): Height of the cosine's middle: 0.5 is hann. Default: 0.54, that of hamming.
        OPTIONS

    Returns:
        Tensor: `(M)`.

    Raises:
        ValueError: `M` is negative, or `dtype` or `layout` is another.

    Example:
        >>> mica.signal.windows.general_hamming(5, alpha=0.75)
        tensor([0.5000, 0.7500, 1.0000, 0.7500, 0.5000])
    """
    return general_cosine(M, a=[alpha, 1.0 - alpha], sym=sym, **options)


@_window
def hamming(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """The Hamming window: `0.54 - 0.46 * cos(2 * pi * n / period)`.

    As `torch.signal.windows.hamming`. `n` counts from 0, and `period` is `M - 1` if `sym`, else `M`;
    `M = 1` gives `[1.]`.

    Args:
        M (int): Number of points, at least 0.
        OPTIONS

    Returns:
        Tensor: `(M)`.

    Raises:
        ValueError: `M` is negative, or `dtype` or `layout` is another.

    Example:
        >>> mica.signal.windows.hamming(5)
        tensor([0.0800, 0.5400, 1.0000, 0.5400, 0.0800])
    """
    return general_hamming(M, sym=sym, **options)


@_window
def hann(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """The Hann window: `0.5 - 0.5 * cos(2 * pi * n / period)`.

    As `torch.signal.windows.hann`. `n` counts from 0, and `period` is `M - 1` if `sym`, else `M`;
    `M = 1` gives `[1.]`.

    Args:
        M (int): Number of points, at least 0.
        OPTIONS

    Returns:
        Tensor: `(M)`.

    Raises:
        ValueError: `M` is negative, or `dtype` or `layout` is another.

    Example:
        >>> mica.signal.windows.hann(4)
        tensor([0.0000, 0.7500, 0.7500, 0.0000])
        >>> mica.signal.windows.hann(4, sym=False)
        tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return general_hamming(M, alpha=0.5, sym=sym, **options)


@_window
def blackman(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """The Blackman window: general_cosine of 0.42, 0.5 and 0.08.

    As `torch.signal.windows.blackman`. `M = 1` gives `[1.]`.

    Args:
        M (int): Number of points, at least 0.
        OPTIONS

    Returns:
        Tensor: `(M)`.

    Raises:
        ValueError: `M` is negative, or `dtype` or `layout` is another.

    Example:
        >>> mica.signal.windows.blackman(7)[1:6]
        tensor([0.1300, 0.6300, 1.0000, 0.6300, 0.1300])
    """
    return general_cosine(M, a=[0.42, 0.5, 0.08], sym=sym, **options)


@_window
def nuttall(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """Nuttall's minimum window of four terms: general_cosine of 0.3635819, 0.4891775, 0.1365995 and 0.0106411.

    As `torch.signal.windows.nuttall`. `M = 1` gives `[1.]`.

    Args:
        M (int): Number of points, at least 0.
        OPTIONS

    Returns:
        Tensor: `(M)`.

    Raises:
        ValueError: `M` is negative, or `dtype` or `layout` is another.

    Example:
        >>> mica.signal.windows.nuttall(7)[1:6]
        tensor([0.0613, 0.5292, 1.0000, 0.5292, 0.0613])
    """
    return general_cosine(M, a=[0.3635819, 0.4891775, 0.1365995, 0.0106411], sym=sym, **options)
