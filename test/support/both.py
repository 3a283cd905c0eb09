"""torch and Mica side by side: makes equal tensors in both and compares results.

Used by the data-driven tests of this folder, with the operators and samples of
mica.conformance. Both libraries have the same names, so one function serves them.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch

import mica
from mica.conformance.operators import ENTRIES, Entry, operator
from mica.conformance.samples import UNSAMPLED

warnings.filterwarnings("ignore", module="torch")
# Relative and absolute: the interpreter computes in float64 and rounds once,
# torch may round in between.
_TOLERANCE = {
    "float16": 4e-3,
    "bfloat16": 3e-2,
    "float32": 1e-5,
    "complex64": 1e-5,
    "float64": 1e-10,
    "complex128": 1e-10,
}


def function(library: Any, entry: Entry) -> Any:
    """The overload itself, by its schema; None where the library lacks it."""
    if library is mica:
        return operator(entry)
    if entry.base in ("promote_types", "result_type"):
        return getattr(torch, entry.base)  # the operators give numbers of dtypes
    packet = getattr(torch.ops.aten, entry.base, None)
    if packet is None:
        return getattr(torch.nn.functional, entry.base, None)
    return getattr(packet, entry.variant or "default", None)


def gradients(
    library: Any, outputs: list[Any], inputs: list[Any], cotangents: list[Any], create_graph: bool
) -> Any:
    """What autograd.grad gives, None for inputs that do not matter."""
    if library is mica:
        return mica._C._gradients(outputs, inputs, cotangents, create_graph, create_graph, True, False)
    return torch.autograd.grad(outputs, inputs, cotangents, create_graph=create_graph, allow_unused=True)


def sampled() -> list[str]:
    return [
        name
        for name, e in ENTRIES.items()
        if e.calls() and name not in UNSAMPLED and function(torch, e) is not None
    ]


def kind(error: BaseException) -> str:
    """The exception's kind, as Python code would catch it."""
    for base in (IndexError, TypeError, ValueError, OverflowError, ZeroDivisionError, RuntimeError):
        if isinstance(error, base):
            return base.__name__
    return type(error).__name__


def dtype_name(dtype: Any) -> str:
    return str(dtype).split(".")[-1]


def to_numpy(library: Any, x: Any) -> np.ndarray:
    x = x.detach()
    x = x.to(library.float32) if dtype_name(x.dtype) == "bfloat16" else x
    return x.numpy(force=True)  # force resolves lazy conjugates, and torch's lazy zeros


def difference(got: Any, expected: Any, strides: bool = False, loosen: float = 1) -> str:
    """What differs between Mica's result and torch's, or ""."""
    if isinstance(expected, (tuple, list)):
        if not isinstance(got, (tuple, list)) or len(got) != len(expected):
            return f"{len(expected)} results expected, {got!r:.80} given"
        found = [difference(g, e, strides, loosen) for g, e in zip(got, expected)]
        return next((f"result {k}: {d}" for k, d in enumerate(found) if d), "")
    if isinstance(expected, torch.dtype):
        return "" if dtype_name(got) == dtype_name(expected) else f"dtype {got}, torch {expected}"
    if not isinstance(expected, torch.Tensor):
        same = type(got) is type(expected) and (got == expected or (got != got and expected != expected))
        close = isinstance(got, (float, complex)) and abs(got - expected) <= 1e-5 * (1 + abs(expected))
        return "" if same or close else f"{got!r}, torch {expected!r}"
    if expected.dtype == torch.complex32:
        return ""  # Mica has no such dtype
    if not isinstance(got, mica.Tensor):
        return f"{got!r:.80} is no tensor"
    if dtype_name(got.dtype) != dtype_name(expected.dtype):
        return f"dtype {got.dtype}, torch {expected.dtype}"
    if tuple(got.shape) != tuple(expected.shape):
        return f"shape {tuple(got.shape)}, torch {tuple(expected.shape)}"
    if strides and expected.numel() > 0 and tuple(got.stride()) != tuple(expected.stride()):
        return f"strides {tuple(got.stride())}, torch {tuple(expected.stride())}"
    tolerance = _TOLERANCE.get(dtype_name(expected.dtype), 0) * loosen
    a, e = to_numpy(mica, got), to_numpy(torch, expected)
    with np.errstate(all="ignore"):
        wide = a.dtype.kind in "fc" and e.astype("complex128" if e.dtype.kind == "c" else "float64")
        same = (
            a == e
            if wide is False
            else np.isclose(a.astype(wide.dtype), wide, rtol=tolerance, atol=tolerance, equal_nan=True)
        )
    if np.all(same):
        return ""
    at = tuple(int(k) for k in np.argwhere(~np.asarray(same))[0]) if a.ndim else ()
    return f"value at {list(at)} is {a[at]!r}, torch {e[at]!r}"
