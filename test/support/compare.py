"""What differs between two results of Mica: nested lists of tensors and other values, without torch."""

from __future__ import annotations

from typing import Any

import numpy as np

import mica

# Another order of additions rounds otherwise.
ROUNDING = {
    mica.float16: 1e-3,
    mica.bfloat16: 1e-2,
    mica.float32: 1e-5,
    mica.complex64: 1e-5,
    mica.float64: 1e-12,
    mica.complex128: 1e-12,
}


def _numbers(x: mica.Tensor) -> np.ndarray:
    x = x.detach().resolve_conj().resolve_neg()
    return (x.float() if x.dtype == mica.bfloat16 else x).numpy()


def unlike(got: Any, expected: Any, rtol: float | None = None, atol: float | None = None) -> str:
    """What is unlike, or "": kinds, dtypes, shapes, values but for rounding, NaN at the same places.

    Numbers that are exact are equal; others are as close as `rtol` and `atol` say (`atol` is `rtol`
    where it is left out), or as ROUNDING does."""
    if isinstance(expected, (list, tuple)):
        if not isinstance(got, (list, tuple)) or len(got) != len(expected):
            return f"{got!r:.80} instead of {len(expected)} results"
        found = [unlike(g, e, rtol, atol) for g, e in zip(got, expected)]
        return next((f"result {k}: {wrong}" for k, wrong in enumerate(found) if wrong), "")
    if not isinstance(got, mica.Tensor) or not isinstance(expected, mica.Tensor):
        same = type(got) is type(expected) and (got == expected or (got != got and expected != expected))
        return "" if same else f"{got!r:.80} instead of {expected!r:.80}"
    if got.dtype != expected.dtype or got.shape != expected.shape:
        return f"{got.dtype}{tuple(got.shape)} instead of {expected.dtype}{tuple(expected.shape)}"
    a, b = _numbers(got), _numbers(expected)
    allowed = ROUNDING.get(got.dtype)
    if allowed is None:
        alike = a == b
    else:
        allowed = allowed if rtol is None else rtol
        alike = np.isclose(a, b, rtol=allowed, atol=allowed if atol is None else atol, equal_nan=True)
    if np.all(alike):
        return ""
    at = tuple(int(k) for k in np.argwhere(~np.asarray(alike))[0])
    return f"{a[at]!r} instead of {b[at]!r} at {list(at)}"


def same(got: Any, expected: Any, rtol: float | None = None, atol: float | None = None) -> bool:
    """Whether two results are alike (`unlike`)."""
    return not unlike(got, expected, rtol, atol)
