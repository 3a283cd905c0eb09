"""torch and Mica side by side: makes equal tensors in both and compares results.

Used by the data-driven tests of this folder. A described tensor (samples.T)
becomes a tensor of each library with the same values, strides and offset. Both
libraries have the same names, so one function serves them.
"""

from __future__ import annotations

import math
import warnings
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml
from samples import SAMPLES, UNSAMPLED, Call, T, pointwise

import mica

warnings.filterwarnings("ignore", module="torch")
ROOT = Path(__file__).resolve().parents[2]
DTYPES = [
    "bool",
    "uint8",
    "int8",
    "int32",
    "int64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]
LAYOUTS = ["contiguous", "transposed", "sliced", "expanded"]
_FLOATS = {"float16", "bfloat16", "float32", "float64"}
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
_NAMES = {name: getattr(torch, name) for name in [*DTYPES, "int16", "uint16", "uint32", "uint64"]}


class Entry:
    """One functional overload of native_functions.yaml."""

    def __init__(self, data: dict[str, Any]) -> None:
        head, rest = data["func"].split("(", 1)
        self.overload: str = head
        self.base, _, self.variant = head.partition(".")
        self.op_class: str = data["class"].split("(")[0]
        self.forms: list[str] = data.get("forms") or ["functional", "out"]
        self.module: str = data.get("python_module", "")
        self.out_name: str = data.get("out_name", "out")
        self.arguments = _arguments(rest.rsplit("->", 1)[0].rstrip()[:-1])
        # A view's forms are [functional] when the entry does not say; composites and
        # custom operators too.
        if (
            "forms" not in data
            and self.op_class in ("view", "decompose", "custom")
            and "out_name" not in data
        ):
            self.forms = ["functional"]

    def calls(self) -> list[Call]:
        if self.overload in SAMPLES:
            return SAMPLES[self.overload]
        return pointwise(self.base, self.arguments) if self.op_class == "pointwise" else []


def _arguments(text: str) -> list[tuple[str, str, bool]]:
    parts, depth, start = [], 0, 0
    for at, c in enumerate(text + ","):
        depth += (c in "([") - (c in ")]")
        if c == "," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    keyword, found = False, []
    for part in filter(None, parts):
        if part == "*":
            keyword = True
        else:
            kind, name = part.split("=")[0].rsplit(" ", 1)
            found.append((kind.split("(")[0] if kind.startswith("Tensor(") else kind, name, keyword))
    return found


def entries() -> dict[str, Entry]:
    with open(ROOT / "native_functions.yaml") as file:
        return {e.overload: e for e in map(Entry, yaml.safe_load(file))}


ENTRIES = entries()


def function(library: Any, entry: Entry) -> Any:
    """The overload itself, by its schema; None where the library lacks it."""
    if library is mica:
        return mica._C._find_operator("mica::" + ".".join(filter(None, (entry.base, entry.variant))))
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


def numbers(described: T, dtype: str, seed: int) -> np.ndarray:
    """The values of a described tensor, exact in `dtype`."""
    rng = np.random.default_rng(seed)
    low, high = described.low, described.high
    if dtype == "bool":
        return rng.integers(0, 2, described.shape).astype(bool)
    if "int" in dtype:
        first = max(math.ceil(low), 0) if dtype.startswith("uint") else math.ceil(low)
        last = max(math.ceil(high) - 1, first)
        return rng.integers(first, last + 1, described.shape).astype(dtype)
    values = rng.uniform(low, high, described.shape)
    if dtype.startswith("complex"):
        return (values + 1j * rng.uniform(-0.5, 0.5, described.shape)).astype(dtype)
    return np.asarray(values, dtype="float32" if dtype == "bfloat16" else dtype)


def make(library: Any, described: T, dtype: str, layout: str, seed: int, grad: bool = False) -> Any:
    """A tensor of the library in the layout, as a leaf if `grad`."""
    dtype = described.dtype or dtype
    shape, values = described.shape, numbers(described, dtype, seed)
    if layout == "transposed" and len(shape) >= 2:
        values = np.ascontiguousarray(np.swapaxes(values, -1, -2))
    elif layout == "sliced" and shape:
        values = np.repeat(values, 2, axis=-1)
    elif layout == "expanded" and shape and shape[0] > 0:
        values = np.ascontiguousarray(values[:1])
    x = library.from_numpy(np.array(values))
    if dtype == "bfloat16":
        x = x.to(library.bfloat16)
    if layout == "transposed" and len(shape) >= 2:
        x = x.transpose(-1, -2)
    elif layout == "sliced" and shape:
        x = x[..., ::2]
    elif layout == "expanded" and shape and shape[0] > 0:
        x = x.expand(shape)
    if grad and described.grad and dtype in ("float64", "complex128"):
        x = x.detach().requires_grad_()
    return x


def arguments(
    library: Any, call: Call, dtype: str, layout: str, grad: bool = False
) -> tuple[list[Any], dict[str, Any], list[Any]]:
    """Arguments of a call, and the tensors among them."""
    tensors: list[Any] = []

    def convert(value: Any) -> Any:
        if isinstance(value, T):
            seed = zlib.crc32(repr((len(tensors), value.shape)).encode())
            # Indices, masks and what is written beside (running means) keep their layout.
            plain = value.dtype in ("int64", "bool") or not value.grad
            tensors.append(make(library, value, dtype, "contiguous" if plain else layout, seed, grad))
            return tensors[-1]
        if isinstance(value, list):
            return [convert(v) for v in value]
        if isinstance(value, str) and value in _NAMES:
            return getattr(library, value)
        return value

    positional = [convert(a) for a in call.args]
    return positional, {k: convert(v) for k, v in call.kwargs.items()}, tensors


def kind(error: BaseException) -> str:
    """The exception's kind, as Python code would catch it."""
    for base in (IndexError, TypeError, ValueError, OverflowError, ZeroDivisionError, RuntimeError):
        if isinstance(error, base):
            return base.__name__
    return type(error).__name__


def attempt(f: Any, *args: Any, **kwargs: Any) -> tuple[Any, Exception | None]:
    try:
        return f(*args, **kwargs), None
    except Exception as error:  # noqa: BLE001 - the kind is what is compared
        return None, error


def dtype_name(dtype: Any) -> str:
    return str(dtype).split(".")[-1]


def to_numpy(library: Any, x: Any) -> np.ndarray:
    x = x.detach()
    x = x.to(library.float32) if dtype_name(x.dtype) == "bfloat16" else x
    return x.numpy(force=True) if library is torch else x.numpy()  # force resolves lazy conj and zeros


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


def reason_unsampled(name: str) -> str:
    """Why an overload has no comparison here, or "" if nobody said."""
    if name in UNSAMPLED:
        return UNSAMPLED[name]
    if name.startswith("_"):
        return "internal: compared through the operators that use it"
    return ""
