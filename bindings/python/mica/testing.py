"""mica.testing: comparisons for tests, and opcheck for operators of one's own."""

from __future__ import annotations

from typing import Any

import mica
from mica._C import Tensor
from mica._opcheck import (
    OpCheckError as OpCheckError,
    opcheck as opcheck,
)

# dtype: (rtol, atol), as torch.testing has them.
_TOLERANCES = {
    "float16": (1e-3, 1e-5),
    "bfloat16": (1.6e-2, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
    "complex64": (1.3e-6, 1e-5),
    "complex128": (1e-7, 1e-7),
    "float8_e4m3fn": (0.125, 1e-3),
    "float8_e5m2": (0.25, 1e-3),
}


def _tolerances(*tensors: Tensor) -> tuple[float, float]:
    pairs = [_TOLERANCES.get(repr(t.dtype).removeprefix("mica."), (0.0, 0.0)) for t in tensors]
    return max(p[0] for p in pairs), max(p[1] for p in pairs)


def _describe(actual: Tensor, expected: Tensor, close: Tensor, rtol: float, atol: float) -> str:
    bad = (~close).reshape(-1)
    places = bad.nonzero().reshape(-1)
    first = int(places[0])
    a, e = actual.reshape(-1)[first].item(), expected.reshape(-1)[first].item()
    return (
        f"{places.numel()} of {bad.numel()} elements differ; the first is element ({first}): "
        f"({a}) where ({e}) is expected, with rtol ({rtol:g}) and atol ({atol:g})."
    )


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: Any = None,
) -> None:
    """Raises AssertionError unless both hold the same values within tolerances;
    sequences and mappings are compared element by element."""
    if isinstance(expected, (list, tuple)) and not isinstance(expected, Tensor):
        if len(actual) != len(expected):
            raise AssertionError(f"The sequences have {len(actual)} and {len(expected)} elements.")
        for a, e in zip(actual, expected):
            assert_close(a, e, rtol=rtol, atol=atol, equal_nan=equal_nan, check_dtype=check_dtype, msg=msg)
        return
    if isinstance(expected, dict):
        if actual.keys() != expected.keys():
            raise AssertionError(f"The keys differ: {sorted(actual)} and {sorted(expected)}.")
        for key in expected:
            assert_close(
                actual[key],
                expected[key],
                rtol=rtol,
                atol=atol,
                equal_nan=equal_nan,
                check_dtype=check_dtype,
                msg=msg,
            )
        return
    a, e = mica.as_tensor(actual).detach(), mica.as_tensor(expected).detach()
    reason = _difference(a, e, rtol, atol, equal_nan, check_device, check_dtype, check_stride)
    if reason:
        raise AssertionError(msg(reason) if callable(msg) else msg or reason)


def _difference(
    a: Tensor,
    e: Tensor,
    rtol: Any,
    atol: Any,
    equal_nan: bool,
    check_device: bool,
    check_dtype: bool,
    check_stride: bool,
) -> str:
    if a.shape != e.shape:
        return f"The shapes {tuple(a.shape)} and {tuple(e.shape)} differ."
    if check_device and a.device != e.device:
        return f"The devices {a.device} and {e.device} differ."
    if check_dtype and a.dtype != e.dtype:
        return f"The dtypes {a.dtype} and {e.dtype} differ."
    if check_stride and a.stride() != e.stride():
        return f"The strides {a.stride()} and {e.stride()} differ."
    if (rtol is None) != (atol is None):
        raise ValueError("rtol and atol must be given both, or none.")
    if rtol is None:
        rtol, atol = _tolerances(a, e)
    common = mica.promote_types(a.dtype, e.dtype)
    if common == mica.bool:
        common = mica.int64
    wide = mica.float64 if common.is_floating_point else common
    x, y = a.to(wide), e.to(wide)
    close = mica.isclose(x, y, rtol=rtol, atol=atol, equal_nan=equal_nan)
    return "" if bool(close.all()) else _describe(x, y, close, rtol, atol)


def make_tensor(
    *shape: Any,
    dtype: Any,
    device: Any = "cpu",
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """A tensor of random values in [low, high), for tests."""
    sizes = tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else shape
    if dtype == mica.bool:
        return mica.randint(0, 2, sizes, device=device).to(dtype)
    if not dtype.is_floating_point and not dtype.is_complex:
        lowest = 0 if not dtype.is_signed else -9
        return mica.randint(
            int(lowest if low is None else low), int(10 if high is None else high), sizes, device=device
        ).to(dtype)
    bottom, top = -9.0 if low is None else low, 9.0 if high is None else high
    real = dtype.to_real()
    work = real if real in (mica.float32, mica.float64) else mica.float32
    values = mica.rand(sizes, dtype=work, device=device) * (top - bottom) + bottom
    if dtype.is_complex:
        values = mica.complex(values, mica.rand(sizes, dtype=work, device=device) * (top - bottom) + bottom)
    values = values.to(dtype)
    return values.requires_grad_() if requires_grad else values
