"""Every operator that is registered with its sample calls: the one source of test data.

`ENTRIES` maps an overload of namespace `mica` to its entry, and `Entry.calls()` gives
its sample calls (samples.py). A call describes its tensors; `arguments` makes them in
any library with NumPy's names (Mica, or torch where Mica is compared with it), in one
of `DTYPES` and `LAYOUTS`, on any device. The values depend on the call alone, so they
are the same everywhere. The conformance kit and Mica's own tests of operators use it.
"""

from __future__ import annotations

import math
import zlib
from typing import Any, NamedTuple

import numpy as np

import mica
from mica.conformance.samples import SAMPLES, UNSAMPLED, Call, T, pointwise
from mica.conformance.samples_linalg import GAUGE

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
LAYOUTS = ["contiguous", "transposed", "sliced", "expanded", "offset"]
DTYPE_NAMES = {*DTYPES, "int16", "uint16", "uint32", "uint64"}


def operator(entry: Entry) -> Any:
    """Mica's overload itself; None where there is none."""
    return mica._C._find_operator("mica::" + ".".join(filter(None, (entry.base, entry.variant))))


class Entry:
    """One overload of which the other forms are made: functional, or in place where it is the only form."""

    def __init__(self, found: Any) -> None:
        self.overload: str = found.name.removeprefix("mica::")
        self.base, _, self.variant = self.overload.partition(".")
        self.op_class: str = found.op_class
        self.differentiable: bool = found.differentiable
        self.out: str | None = found.out
        # (type, name, keyword-only)
        self.arguments = [(kind, name, keyword) for name, kind, keyword, _ in found._schema_info()[0]]
        self.forms = ["functional"]
        if getattr(operator(self.inplace()), "functional", None) == found.name:
            self.forms.append("inplace")
        if self.out:
            self.forms.append("out")

    def calls(self) -> list[Call]:
        """The sample calls; none for an overload of UNSAMPLED."""
        if self.overload in SAMPLES:
            return SAMPLES[self.overload]
        return pointwise(self.base, self.arguments) if self.op_class == "pointwise" else []

    def inplace(self) -> Entry:
        """The entry's in-place form, as a name to look up; it need not exist."""
        twin = Entry.__new__(Entry)
        twin.base, twin.variant = self.base + "_", self.variant
        return twin


def entries(namespace: str = "mica") -> dict[str, Entry]:
    """The entries of a namespace by overload."""
    found = {}
    for name in mica._C._operator_names():
        if name.startswith(namespace + "::"):
            overload = mica._C._find_operator(name)
            if overload.functional in (None, name):
                entry = Entry(overload)
                found[entry.overload] = entry
    return found


ENTRIES = entries()


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


def make(
    library: Any, described: T, dtype: str, layout: str, seed: int, grad: bool = False, device: str = "cpu"
) -> Any:
    """A tensor of the library in the layout, as a leaf if `grad`; its layout is made on the device."""
    dtype = described.dtype or dtype
    shape, values = described.shape, numbers(described, dtype, seed)
    if layout == "transposed" and len(shape) >= 2:
        values = np.ascontiguousarray(np.swapaxes(values, -1, -2))
    elif layout == "sliced" and shape:
        values = np.repeat(values, 2, axis=-1)
    elif layout == "expanded" and shape and shape[0] > 0:
        values = np.ascontiguousarray(values[:1])
    elif layout == "offset":
        values = np.concatenate([np.zeros(3, values.dtype), values.reshape(-1)])
    x = library.from_numpy(np.array(values))
    if dtype == "bfloat16":
        x = x.to(library.bfloat16)
    if device != "cpu":
        x = x.to(device)
    if layout == "transposed" and len(shape) >= 2:
        x = x.transpose(-1, -2)
    elif layout == "sliced" and shape:
        x = x[..., ::2]
    elif layout == "expanded" and shape and shape[0] > 0:
        x = x.expand(shape)
    elif layout == "offset":
        x = x[3:].view(shape)
    if grad and described.grad and dtype in ("float64", "complex128"):
        x = x.detach().requires_grad_()
    return x


# What a square matrix of any numbers is made into, in any library; gradients go through.
MADE: dict[str, Any] = {
    "positive": lambda x: x @ x.mH + x.shape[-1] * _unit(x),
    "hermitian": lambda x: x + x.mH + _spread(x),
    "regular": lambda x: x + _spread(x),
    "lower": lambda x: x.tril(-1) + _spread(x),
    "upper": lambda x: x.triu(1) + _spread(x),
}


def _unit(x: Any) -> Any:
    """The identity in the library, dtype and device of x."""
    return x.new_ones(x.shape[-1]).diag()


def _spread(x: Any) -> Any:
    """A diagonal that keeps eigenvalues apart and the matrix invertible."""
    return (x.new_ones(x.shape[-1]).cumsum(0) * 3).diag()


class Made(NamedTuple):
    """A matrix that is still to be made of its numbers."""

    numbers: Any
    how: str


def finished(value: Any) -> Any:
    """An argument, its matrices made."""
    if isinstance(value, Made):
        return MADE[value.how](value.numbers)
    return [finished(v) for v in value] if isinstance(value, list) else value


def arguments(
    library: Any,
    call: Call,
    dtype: str,
    layout: str,
    grad: bool = False,
    device: str = "cpu",
    finish: bool = True,
) -> tuple[list[Any], dict[str, Any], list[Any]]:
    """Arguments of a call, and the tensors among them; without `finish`, `finished` is left to do."""
    tensors: list[Any] = []

    def convert(value: Any) -> Any:
        if isinstance(value, T):
            seed = zlib.crc32(repr((len(tensors), value.shape)).encode())
            # Indices, masks and what is written beside (running means) keep their layout.
            plain = value.dtype in ("int64", "bool") or not value.grad
            tensors.append(make(library, value, dtype, "contiguous" if plain else layout, seed, grad, device))
            floating = tensors[-1].is_floating_point() or tensors[-1].is_complex()
            made = Made(tensors[-1], value.made) if value.made and floating else tensors[-1]
            return finished(made) if finish else made
        if isinstance(value, list):
            return [convert(v) for v in value]
        if isinstance(value, str) and value in DTYPE_NAMES:
            return getattr(library, value)
        return value

    positional = [convert(a) for a in call.args]
    return positional, {k: convert(v) for k, v in call.kwargs.items()}, tensors


def settled(overload: str, result: Any) -> Any:
    """The results without the signs and phases that an algorithm is free to choose."""
    free = GAUGE.get(overload, ())
    if not free or not isinstance(result, (tuple, list)):
        return result
    return tuple(x.abs() if k in free else x for k, x in enumerate(result))


def attempt(f: Any, *args: Any, **kwargs: Any) -> tuple[Any, Exception | None]:
    """The result, or what was raised."""
    try:
        return f(*args, **kwargs), None
    except Exception as error:  # noqa: BLE001 - what is raised is what is compared
        return None, error


def reason_unsampled(name: str) -> str:
    """Why an overload has no samples, or "" if nobody said."""
    if name in UNSAMPLED:
        return UNSAMPLED[name]
    if name.startswith("_"):
        return "internal: compared through the operators that use it"
    return ""
