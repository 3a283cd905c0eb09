"""Mica and torch in turns: the tensors that both have, and the time of a call of each.

A measurement is a series of calls between two synchronisations, long enough that the clock
does not matter; Mica's and torch's series alternate.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from row import fallbacks

os.environ.setdefault("OMP_NUM_THREADS", "2" if (os.cpu_count() or 1) < 4 else "8")

import mica  # noqa: E402

try:
    import torch
except ImportError:  # rows say so
    torch = None  # type: ignore[assignment]

Call = Callable[[], Any]
REPETITIONS = 9
SERIES = 0.004  # seconds that a series takes at least, where a call is short
SLOW = 0.15  # a call of this length, in seconds, is repeated three times only


class Pair:
    """Both libraries, their devices, and the tensors that both have."""

    def __init__(self, device: str, scale: float) -> None:
        self.device, self.scale = device, scale
        accelerated = torch is not None and torch.cuda.is_available() and mica.device(device).type != "cpu"
        self.torch_device = "cuda" if accelerated else "cpu"
        # Not a power of two, so that rows of a matrix differ.
        self.numbers = np.random.default_rng(0).standard_normal((1 << 22) - 3).astype("float32")
        self.kept: dict[tuple[Any, ...], tuple[Any, Any]] = {}
        self.used = 0  # tensors of this row

    def start(self) -> None:
        """Begins a row: its tensors are made, or those of an earlier row are used again."""
        self.used = 0
        if sum(x.numel() * x.element_size() for x, _ in self.kept.values()) > 8e9 * self.scale:
            self.kept.clear()

    def synchronize(self) -> None:
        mica.synchronize(self.device)
        if self.torch_device == "cuda":
            torch.cuda.synchronize()

    def size(self, n: int) -> int:
        """A length at the scale of this run, at least 64."""
        return max(64, int(n * self.scale))

    def tensor(self, shape: tuple[int, ...], dtype: str = "float32", factor: float = 1.0) -> tuple[Any, Any]:
        """The same numbers in both libraries, on their devices; what is written in place, others see later."""
        count = int(np.prod(shape))
        self.used += 1
        key = (self.used, count, dtype, factor)
        if key not in self.kept:
            host = np.resize(self.numbers, count)
            if factor != 1.0:
                host = host * np.float32(factor)
            x = mica.from_numpy(host).to(self.device).to(getattr(mica, dtype))
            y = None
            if torch is not None:
                y = torch.from_numpy(host).to(self.torch_device).to(getattr(torch, dtype))
            self.kept[key] = x, y
        x, y = self.kept[key]
        return x.view(shape), None if y is None else y.view(shape)

    def integers(self, shape: tuple[int, ...], high: int) -> tuple[Any, Any]:
        host = np.random.default_rng(1).integers(0, high, shape)
        return mica.from_numpy(host).to(self.device), None if torch is None else torch.from_numpy(host).to(
            self.torch_device
        )


def series(f: Call, count: int, synchronize: Call) -> float:
    """Seconds of one call, in a series of `count`."""
    synchronize()
    start = time.perf_counter()
    for _ in range(count):
        f()
    synchronize()
    return (time.perf_counter() - start) / count


def plan(f: Call, synchronize: Call) -> tuple[int, int]:
    """How many calls a series has, and how many series there are."""
    took = min(series(f, 1, synchronize) for _ in range(2))
    if took > SLOW:
        return 1, 3
    return max(1, min(2000, int(SERIES / max(took, 1e-7)))), REPETITIONS


def apart(x: Any, y: Any) -> float | None:
    """The largest difference of the first elements of two results, as a share of the largest."""
    if isinstance(x, (tuple, list)):
        x, y = x[0], y[0]
    if not isinstance(x, mica.Tensor) or x.numel() == 0 or x.dtype == mica.bool:
        return None
    a = x.detach().reshape(-1)[:4096].to(mica.float32).cpu().numpy()
    b = y.detach().reshape(-1)[:4096].float().cpu().numpy()
    finite = np.isfinite(b)
    if not finite.any():
        return None
    return float(np.abs(a - b)[finite].max() / max(float(np.abs(b[finite]).max()), 1e-30))


def compare(
    pair: Pair, ours: Call, theirs: Call, *, bytes: float = 0, flops: float = 0, random: bool = False
) -> dict[str, Any]:
    """The numbers of a row; `bytes` and `flops` are those of one call."""
    fallbacks(pair.device)
    result = ours()
    pair.synchronize()
    lacking = fallbacks(pair.device)
    count, rounds = plan(ours, pair.synchronize)
    found: dict[str, Any] = {"fell back": lacking} if lacking else {}
    ours_seconds, theirs_seconds = [], []
    if torch is not None:
        expected = theirs()
        pair.synchronize()
        if not random:
            found["apart"] = apart(result, expected)
        del expected
        their_count, their_rounds = plan(theirs, pair.synchronize)
        their_rounds = max(rounds, 3) if their_rounds < rounds else rounds
    del result
    for _ in range(rounds):
        ours_seconds.append(series(ours, count, pair.synchronize))
        if torch is not None:
            theirs_seconds.append(series(theirs, their_count, pair.synchronize))
    for name, seconds in (("mica", ours_seconds), ("torch", theirs_seconds)):
        if seconds:
            best, middle = min(seconds), statistics.median(seconds)
            found[name] = {"us min": round(best * 1e6, 2), "us median": round(middle * 1e6, 2)}
            if bytes:
                found[name]["GB/s"] = round(bytes / best / 1e9, 1)
            if flops:
                found[name]["TFLOP/s"] = round(flops / best / 1e12, 2)
    if theirs_seconds:
        found["ratio"] = round(statistics.median(ours_seconds) / statistics.median(theirs_seconds), 3)
        found["ratio of minima"] = round(min(ours_seconds) / min(theirs_seconds), 3)
    return found


def both(f: Callable[[Any, Any], Any], first: tuple[Any, Any], *more: tuple[Any, Any]) -> tuple[Call, Call]:
    """f(library, tensors...) for Mica and for torch."""
    pairs = (first, *more)
    return (lambda: f(mica, *[p[0] for p in pairs])), (lambda: f(torch, *[p[1] for p in pairs]))
