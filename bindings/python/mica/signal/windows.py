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


def _window(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Shows the factory's options in the function's signature."""
    import inspect

    signature = inspect.signature(function)
    kept = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    defaults = {"dtype": None, "layout": mica.strided, "device": None, "requires_grad": False}
    added = [inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY, default=v) for n, v in defaults.items()]
    function.__signature__ = signature.replace(parameters=[*kept, *added])  # type: ignore[attr-defined]
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
    """exp(-|n - center| / tau)."""
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
    """sin(pi (n + 1/2) / M)."""
    options = _options("cosine", M, options)
    if M == 0:
        return mica.empty((0,), **options)
    return mica.sin(_steps(M, 0.5, math.pi / (_period(M, sym) + 1), options))


@_window
def gaussian(M: int, *, std: float = 1.0, sym: bool = True, **options: Any) -> Tensor:
    """exp(-(n / std)^2 / 2) around the middle."""
    options = _options("gaussian", M, options)
    if std <= 0:
        raise ValueError(f"Standard deviation `std` ({std}) is not positive.")
    if M == 0:
        return mica.empty((0,), **options)
    k = _steps(M, -_period(M, sym) / 2.0, 1 / (std * math.sqrt(2)), options)
    return mica.exp(-(k**2))


@_window
def kaiser(M: int, *, beta: float = 12.0, sym: bool = True, **options: Any) -> Tensor:
    """i0(beta sqrt(1 - k^2)) / i0(beta) for k from -1 to 1."""
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
    """1 - |k| for k from -1 to 1."""
    options = _options("bartlett", M, options)
    if M <= 1:
        return mica.ones((M,), **options)
    step = 2 / _period(M, sym)
    return 1 - mica.abs(mica.linspace(-1, -1 + (M - 1) * step, M, **options))


@_window
def general_cosine(M: int, *, a: Iterable[float], sym: bool = True, **options: Any) -> Tensor:
    """The sum of (-1)^i a_i cos(2 pi i n / period)."""
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
    """alpha - (1 - alpha) cos(2 pi n / period)."""
    return general_cosine(M, a=[alpha, 1.0 - alpha], sym=sym, **options)


@_window
def hamming(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """general_hamming with alpha 0.54."""
    return general_hamming(M, sym=sym, **options)


@_window
def hann(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """general_hamming with alpha 0.5."""
    return general_hamming(M, alpha=0.5, sym=sym, **options)


@_window
def blackman(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """general_cosine with 0.42, 0.5, 0.08."""
    return general_cosine(M, a=[0.42, 0.5, 0.08], sym=sym, **options)


@_window
def nuttall(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """general_cosine with 0.3635819, 0.4891775, 0.1365995, 0.0106411."""
    return general_cosine(M, a=[0.3635819, 0.4891775, 0.1365995, 0.0106411], sym=sym, **options)
