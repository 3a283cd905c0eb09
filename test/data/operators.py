"""Every operator of native_functions.yaml with its sample calls: the one source of test data.

`ENTRIES` maps an overload to its entry, and `Entry.calls()` gives its sample
calls (samples.py). A call describes its tensors; `arguments` makes them in any
library with NumPy's names (Mica, or torch in test/oracle) in one of `DTYPES` and
`LAYOUTS`. The values depend on the call alone, so they are the same everywhere.
Nothing here imports torch: what runs operators without a peer uses it too.
"""

from __future__ import annotations

import math
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from samples import SAMPLES, UNSAMPLED, Call, T, pointwise

import mica

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
DTYPE_NAMES = {*DTYPES, "int16", "uint16", "uint32", "uint64"}


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
        self.differentiable: bool = data.get("differentiable", True)
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

    def inplace(self) -> Entry:
        """The entry's in-place form, as a name to look up."""
        twin = Entry.__new__(Entry)
        twin.base, twin.variant = self.base + "_", self.variant
        return twin


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


def _read(name: str) -> Any:
    with open(ROOT / name) as file:
        return yaml.safe_load(file)


def entries() -> dict[str, Entry]:
    return {e.overload: e for e in map(Entry, _read("native_functions.yaml"))}


def formulas() -> list[str]:
    """The overloads that derivatives.yaml gives a formula."""
    return [d["op"] for d in _read("derivatives.yaml")["derivatives"]]


ENTRIES = entries()


def operator(entry: Entry) -> Any:
    """Mica's overload itself; None where there is none."""
    return mica._C._find_operator("mica::" + ".".join(filter(None, (entry.base, entry.variant))))


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
        if isinstance(value, str) and value in DTYPE_NAMES:
            return getattr(library, value)
        return value

    positional = [convert(a) for a in call.args]
    return positional, {k: convert(v) for k, v in call.kwargs.items()}, tensors


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
