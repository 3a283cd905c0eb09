"""What a device's results are compared with, and how near is near enough.

Nothing is compared with itself. A device is compared with the CPU; the CPU with the
portable kernels, plain loops that share no code with its plugin. Where rounding is
possible a third computation decides: the same call in float64 (complex128).

A float x of a result is right when |x - r| <= max(4 |b - r|, K eps scale), where r is
the float64 computation, b the result that is compared with, and eps the spacing of the
result's dtype. The scale is |r|; for operators that add terms up it is at least the
sum of the terms' magnitudes, for which the call on the inputs' magnitudes stands.
Integers, bools, indices, views and the places of NaN and infinity are equal.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import mica

# 16 spacings: what OpenCL 1.2 allows its least exact functions (pow, tgamma) on floats.
K = 16
_EPS = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}
_EPS |= {"complex64": _EPS["float32"], "complex128": _EPS["float64"]}
# Below these a device may flush to zero.
_TINY = {"float16": 2.0**-14, "float64": 2.0**-1022, "complex128": 2.0**-1022}
# How far the result that is compared with may itself be off, in spacings, and still widen the bound.
_TRUSTED = 64
# Classes whose kernels move elements and compute nothing.
_MOVES = ("view", "gather")


def dtype_name(dtype: Any) -> str:
    """ "float32" of mica.float32."""
    return str(dtype).rpartition(".")[2]


class _Portable:
    """The CPU without its plugin: every operator runs its portable kernel."""

    scope: Any = None

    def __enter__(self) -> None:
        mica.ones(1).neg()  # the plugin is open; taking its place before that would keep it out
        self.scope = mica._C._Scope("portable kernels")
        self.scope.add_backend("cpu")
        self.scope.commit()
        mica.disable_plugin("cpu")

    def __exit__(self, *_: Any) -> None:
        mica.enable_plugin("cpu")
        self.scope.disable()


@contextmanager
def baseline(device: str) -> Iterator[None]:
    """What the results of `device` are compared with runs inside, on CPU tensors."""
    if mica.device(device).type != "cpu":
        yield
        return
    with _Portable():
        yield


def widened(x: Any) -> Any:
    """A tensor or dtype in float64 or complex128; what is no float is left alone."""
    dtype = x.dtype if isinstance(x, mica.Tensor) else x
    if dtype.is_complex:
        wide = mica.complex128
    elif dtype.is_floating_point:
        wide = mica.float64
    else:
        return x
    return x.to(wide) if isinstance(x, mica.Tensor) else wide


def magnitudes(x: Any) -> Any:
    """A tensor of its elements' magnitudes, widened, in the dtype that `widened` gives."""
    wide = widened(x)
    if not isinstance(x, mica.Tensor) or not (wide.dtype.is_floating_point or wide.dtype.is_complex):
        return wide
    return wide.abs().to(wide.dtype)


def spacing(dtype: str) -> float:
    """The distance of 1 and the next number of a dtype."""
    return _EPS[dtype]


def moved(x: Any, dtype: str, run: int) -> Any:
    """A tensor, widened, whose elements have moved by one rounding: `run` of them up, `run` down, in turns."""
    wide = widened(x)
    if not isinstance(x, mica.Tensor) or not (wide.dtype.is_floating_point or wide.dtype.is_complex):
        return wide
    turns = 1 - 2 * (mica.arange(wide.numel(), device=x.device) // run % 2).reshape(wide.shape)
    return wide * (1 + spacing(dtype) * turns.to(wide.dtype))


def to_numpy(x: Any) -> np.ndarray:
    """The values of a tensor of any device; bfloat16 as float32."""
    x = x.detach().to("cpu")
    return (x.to(mica.float32) if x.dtype == mica.bfloat16 else x).resolve_conj().resolve_neg().numpy()


def _same(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (a == b) | ((a != a) & (b != b))


def _wide_numpy(x: Any, like: np.ndarray) -> np.ndarray | None:
    """Values of a float64 computation, if it has the shape of the result."""
    if not isinstance(x, mica.Tensor) or tuple(x.shape) != like.shape:
        return None
    return to_numpy(x).astype("complex128" if like.dtype.kind == "c" else "float64")


def _near(got: np.ndarray, base: np.ndarray, wide: Any, magnitude: Any, dtype: str) -> np.ndarray:
    """Which elements are right, by the rule of this file's opening."""
    kind = "complex128" if base.dtype.kind == "c" else "float64"
    x, b = got.astype(kind), base.astype(kind)
    r = _wide_numpy(wide, x)
    if r is None:
        r = b
    m = _wide_numpy(magnitude, x)
    scale = np.abs(r) if m is None else np.fmax(np.abs(r), np.abs(m))
    step = _EPS[dtype] * scale
    off = np.abs(b - r)
    bound = np.maximum(np.where(off <= _TRUSTED * step, 4 * off, 0), K * step) + _TINY.get(dtype, 2.0**-126)
    # Where the result compared with is itself far from r, the call is not continuous there.
    right = (np.abs(x - r) <= bound) | (np.abs(x - b) <= np.minimum(bound, K * _EPS[dtype] * np.abs(b)))
    finite = np.isfinite(b)
    if kind == "complex128":
        return np.where(finite, right, ~np.isfinite(x))
    return np.where(finite, right, _same(x, b))


def difference(
    got: Any,
    base: Any,
    *,
    wide: Any = None,
    magnitude: Any = None,
    op_class: str = "",
    strides: bool = False,
    device: str = "cpu",
) -> str:
    """What is wrong with a result, or ""; `base` is the result compared with."""
    if isinstance(base, (tuple, list)):
        if not isinstance(got, (tuple, list)) or len(got) != len(base):
            return f"{len(base)} results are expected; {got!r:.80} is given"
        for k, parts in enumerate(zip(got, base, _parts(wide, base), _parts(magnitude, base))):
            g, b, w, m = parts
            options = {"op_class": op_class, "strides": strides, "device": device}
            if found := difference(g, b, wide=w, magnitude=m, **options):
                return f"result {k}: {found}"
        return ""
    if not isinstance(base, mica.Tensor):
        return _value_difference(got, base)
    return _form_difference(got, base, strides, device) or _element_difference(
        got, base, wide, magnitude, op_class
    )


def _parts(results: Any, like: Any) -> Any:
    several = isinstance(results, (tuple, list)) and len(results) == len(like)
    return results if several else [None] * len(like)


def _value_difference(got: Any, base: Any) -> str:
    same = type(got) is type(base) and (got == base or (got != got and base != base))
    if not same and isinstance(base, (float, complex)) and isinstance(got, (float, complex)):
        same = abs(got - base) <= K * _EPS["float32"] * abs(base)
    return "" if same else f"the result is {got!r:.80}; expected {base!r:.80}"


def _form_difference(got: Any, base: Any, strides: bool, device: str) -> str:
    if not isinstance(got, mica.Tensor):
        return f"the result is {got!r:.80}; a tensor is expected"
    if got.dtype != base.dtype:
        return f"the dtype is {dtype_name(got.dtype)}; expected {dtype_name(base.dtype)}"
    if tuple(got.shape) != tuple(base.shape):
        return f"the shape is {tuple(got.shape)}; expected {tuple(base.shape)}"
    if strides and base.numel() > 0 and tuple(got.stride()) != tuple(base.stride()):
        return f"the strides are {tuple(got.stride())}; expected {tuple(base.stride())}"
    if got.device.type != mica.device(device).type:
        return f"the result is on {got.device}; expected on {device}"
    return ""


def _element_difference(got: Any, base: Any, wide: Any, magnitude: Any, op_class: str) -> str:
    a, e, dtype = to_numpy(got), to_numpy(base), dtype_name(base.dtype)
    with np.errstate(all="ignore"):
        if dtype not in _EPS or op_class in _MOVES:
            right = _same(a, e)
        else:
            right = _near(a, e, wide, magnitude, dtype)
    if np.all(right):
        return ""
    bad = np.argwhere(~np.asarray(right))
    at = tuple(int(k) for k in bad[0]) if a.ndim else ()
    more = f", and {len(bad) - 1} of {a.size} more are wrong" if len(bad) > 1 else ""
    return f"the value at {list(at)} is {a[at].item()!r}; expected {e[at].item()!r}{more}"
