"""The standard's Fourier transforms, over mica.fft."""

from __future__ import annotations

import mica
from mica import Tensor, dtype

TYPE_CHECKING = False  # importing typing takes as long as all of mica
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

__all__ = [
    "fft",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfftn",
    "rfft",
    "rfftfreq",
    "rfftn",
]


_NORM = """\
    norm (str): "backward" divides the inverse by the number of points, "forward" the transform, "ortho"
        both by its root. Default: "backward".
"""
_ONE = """\
    x (Tensor): The array, of any shape.
    n (int, optional): {points} Default: {all}.
    axis (int): The axis along which it works; negative ones count from the last. Default: -1.
"""
_SEVERAL = """\
    x (Tensor): The array, of any shape.
    s (sequence of int, optional): For each axis: {points} Default:
        {all}.
    axes (sequence of int, optional): The axes along which it works. Default: None, the last ones, as many as `s` has, or all.
"""
_TEXT = """\
{said}

As `{name}` of the Python array API standard's fft extension.

Args:
{arguments}
Returns:
    Tensor: {result}

Example:
    >>> xp = mica.array_api
    >>> xp.fft.{name}({example})
    {shown}
"""


def _documented(function: Any, name: str, arguments: str, said: tuple[str, ...]) -> Any:
    """The function under its name and with its docstring."""
    doc, result, example, shown = said
    inverse = name in ("irfft", "irfftn", "hfft")
    points = {
        "points": "Points of the result."
        if inverse
        else "Points; the input is cut, or filled up with zeros.",
        "all": "`2 * (m - 1)` for `m` of the input along the last axis"
        if inverse
        else "as many as there are",
    }
    text = {"said": doc, "name": name, "result": result, "example": example, "shown": shown}
    function.__name__ = function.__qualname__ = name
    function.__doc__ = _TEXT.format(**text, arguments=arguments.format(**points) + _NORM)
    return function


def _along_one(name: str, operator: Callable[..., Tensor], *said: str) -> Callable[..., Tensor]:
    def function(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
        return operator(x, n, axis, norm)

    return _documented(function, name, _ONE, said)  # type: ignore[no-any-return]


def _along_several(name: str, operator: Callable[..., Tensor], *said: str) -> Callable[..., Tensor]:
    def function(
        x: Tensor,
        /,
        *,
        s: Sequence[int] | None = None,
        axes: Sequence[int] | None = None,
        norm: str = "backward",
    ) -> Tensor:
        return operator(x, s, axes, norm)

    return _documented(function, name, _SEVERAL, said)  # type: ignore[no-any-return]


fft = _along_one(
    "fft",
    mica.fft.fft,
    "Fourier transform along an axis.",
    "Complex, `n` along the axis.",
    "mica.tensor([1.0, 0.0, 0.0, 0.0])",
    "tensor([1.+0.j, 1.+0.j, 1.+0.j, 1.-0.j])",
)
ifft = _along_one(
    "ifft",
    mica.fft.ifft,
    "Inverse Fourier transform along an axis.",
    "Complex, `n` along the axis.",
    "mica.tensor([4.0, 0.0, 0.0, 0.0])",
    "tensor([1.-0.j, 1.-0.j, 1.-0.j, 1.+0.j])",
)
rfft = _along_one(
    "rfft",
    mica.fft.rfft,
    "Fourier transform of real samples: the half that does not mirror the other.",
    "Complex, `n // 2 + 1` along the axis.",
    "mica.tensor([1.0, 1.0, 1.0, 1.0])",
    "tensor([4.+0.j, 0.+0.j, 0.+0.j])",
)
irfft = _along_one(
    "irfft",
    mica.fft.irfft,
    "Inverse of `rfft`: real samples of the half of a transform.",
    "Real, `n` along the axis.",
    "mica.tensor([4.0, 0.0, 0.0])",
    "tensor([1., 1., 1., 1.])",
)
hfft = _along_one(
    "hfft",
    mica.fft.hfft,
    "Fourier transform of the half of samples that mirror, conjugated, the other.",
    "Real, `n` along the axis.",
    "mica.tensor([1.0, 0.0, 0.0])",
    "tensor([1., 1., 1., 1.])",
)
ihfft = _along_one(
    "ihfft",
    mica.fft.ihfft,
    "Inverse of `hfft`: the half of samples that mirror, conjugated, the other.",
    "Complex, `n // 2 + 1` along the axis.",
    "mica.tensor([1.0, 1.0, 1.0, 1.0])",
    "tensor([1.-0.j, 0.-0.j, 0.-0.j])",
)
fftn = _along_several(
    "fftn",
    mica.fft.fftn,
    "Fourier transform along several axes.",
    "Complex, `s` along the axes.",
    "mica.ones(2, 2)",
    "tensor([[4.+0.j, 0.+0.j],\n            [0.+0.j, 0.+0.j]])",
)
ifftn = _along_several(
    "ifftn",
    mica.fft.ifftn,
    "Inverse Fourier transform along several axes.",
    "Complex, `s` along the axes.",
    "mica.ones(2, 2)",
    "tensor([[1.+0.j, 0.+0.j],\n            [0.+0.j, 0.+0.j]])",
)
rfftn = _along_several(
    "rfftn",
    mica.fft.rfftn,
    "Fourier transform of real samples along several axes: half of it along the last.",
    "Complex, half along the last axis.",
    "mica.ones(2, 2)",
    "tensor([[4.+0.j, 0.+0.j],\n            [0.+0.j, 0.+0.j]])",
)
irfftn = _along_several(
    "irfftn",
    mica.fft.irfftn,
    "Inverse of `rfftn`: real samples of the half of a transform.",
    "Real, `s` along the axes.",
    "mica.ones(2, 2)",
    "tensor([[1., 0.],\n            [0., 0.]])",
)


def fftfreq(n: int, /, *, d: float = 1.0, dtype: dtype | None = None, device: Any = None) -> Tensor:
    """Lists the frequencies of a transform's results.

    As `fftfreq` of the Python array API standard's fft extension.

    Args:
        n (int): Length of the signal, in samples.
        d (float): The distance of samples. Default: 1.0.
        dtype (dtype, optional): Of the result. Default: the default dtype.
        device (str or device, optional): Where the result lies. Default: the default device.

    Returns:
        Tensor: `(n,)`, cycles per unit of `d`.

    Example:
        >>> xp = mica.array_api
        >>> xp.fft.fftfreq(4)
        tensor([ 0.0000,  0.2500, -0.5000, -0.2500])
    """
    return mica.fft.fftfreq(n, d, dtype=dtype, device=device)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: dtype | None = None, device: Any = None) -> Tensor:
    """Lists the frequencies of the results of a transform of real samples.

    As `rfftfreq` of the Python array API standard's fft extension.

    Args:
        n (int): Length of the signal, in samples.
        d (float): The distance of samples. Default: 1.0.
        dtype (dtype, optional): Of the result. Default: the default dtype.
        device (str or device, optional): Where the result lies. Default: the default device.

    Returns:
        Tensor: `(n // 2 + 1,)`, cycles per unit of `d`.

    Example:
        >>> xp = mica.array_api
        >>> xp.fft.rfftfreq(4)
        tensor([0.0000, 0.2500, 0.5000])
    """
    return mica.fft.rfftfreq(n, d, dtype=dtype, device=device)


def fftshift(x: Tensor, /, *, axes: int | Sequence[int] | None = None) -> Tensor:
    """Moves frequency 0 to the middle.

    As `fftshift` of the Python array API standard's fft extension.

    Args:
        x (Tensor): The array, of any shape.
        axes (int or sequence of int, optional): The axes along which it works. Default: None, all.

    Returns:
        Tensor: The array.

    Example:
        >>> xp = mica.array_api
        >>> xp.fft.fftshift(xp.fft.fftfreq(4))
        tensor([-0.5000, -0.2500,  0.0000,  0.2500])
    """
    return mica.fft.fftshift(x, axes)


def ifftshift(x: Tensor, /, *, axes: int | Sequence[int] | None = None) -> Tensor:
    """Moves frequency 0 to the front, as transforms have it: undoes `fftshift`.

    As `ifftshift` of the Python array API standard's fft extension.

    Args:
        x (Tensor): The array, of any shape.
        axes (int or sequence of int, optional): The axes along which it works. Default: None, all.

    Returns:
        Tensor: The array.

    Example:
        >>> xp = mica.array_api
        >>> xp.fft.ifftshift(mica.tensor([-2, -1, 0, 1]))
        tensor([ 0,  1, -2, -1])
    """
    return mica.fft.ifftshift(x, axes)
