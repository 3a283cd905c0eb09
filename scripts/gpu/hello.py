"""Section `hello`: the device is there, computes a little, and copies; nothing may fall back to the CPU."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np
from row import Options, Row, expect

import mica


def _device() -> dict[str, Any]:
    plugins = [p for p in mica.plugins() if p["state"] != "found" or p["asked"]]
    keys = ("name", "version", "vendor", "state", "runtime_version", "path", "reason", "notes")
    return {"plugins": [{key: p[key] for key in keys} for p in plugins]}


def rows(device: str, options: Options) -> Iterator[Row]:
    backend = mica.device(device).type
    generator = np.random.default_rng(0)

    def numbers(*shape: int) -> np.ndarray:
        return generator.standard_normal(shape).astype("float32")

    def near(x: Any, y: np.ndarray, tolerance: float = 1e-5) -> dict[str, Any]:
        given = x.cpu().numpy()
        expect(given.shape == y.shape, f"The shape is {given.shape}, expected {y.shape}.")
        worst = float(np.abs(given - y).max() / max(float(np.abs(y).max()), 1e-30)) if y.size else 0.0
        expect(worst <= tolerance, f"The result differs by ({worst:.3g}) of the largest element.")
        return {"apart": worst}

    def count() -> dict[str, Any]:
        found = mica.device_count(backend)
        expect(found >= 1, f"There are ({found}) devices of ({backend}). {_device()}")
        return {"devices": found, **_device()}

    def properties() -> dict[str, Any]:
        mica.empty(1, device=device)
        return {"properties": {k: str(v) for k, v in mica.device_properties(device).items()}}

    def copies() -> dict[str, Any]:
        moved = 0
        for dtype in ("float32", "float64", "float16", "int64", "int32", "uint8", "bool", "complex64"):
            for shape in ((), (0,), (1,), (3, 5), (1000, 1001)):
                a = (generator.standard_normal(shape) * 10).astype(dtype)
                x = mica.from_numpy(np.array(a)).to(device)
                expect(x.device.type == backend, "The tensor is not on the device.")
                expect(np.array_equal(x.cpu().numpy(), a), f"A copy of {dtype} {shape} changed.")
                expect(np.array_equal(x.clone().cpu().numpy(), a), f"A clone of {dtype} {shape} changed.")
                moved += 1
        return {"copies": moved}

    def strided() -> dict[str, Any]:
        a = numbers(37, 53)
        x = mica.from_numpy(a).to(device)
        near(x.t().contiguous(), np.ascontiguousarray(a.T), 0)
        near(x[:, ::3].contiguous(), a[:, ::3], 0)
        x[3:9].copy_(mica.zeros(6, 53))
        return {"sum": float(x[3:9].sum().item())}

    def add() -> dict[str, Any]:
        a, b = numbers(1000, 77), numbers(1000, 77)
        return near(mica.from_numpy(a).to(device) + mica.from_numpy(b).to(device), a + b, 0)

    def broadcast() -> dict[str, Any]:
        a, b, c = numbers(129, 77), numbers(77), numbers(129, 1)
        x, y, z = (mica.from_numpy(t).to(device) for t in (a, b, c))
        return near(x * y + z, a * b + c, 1e-6)

    def unary() -> dict[str, Any]:
        a = numbers(4099)
        x = mica.from_numpy(a).to(device)
        return {
            name: near(getattr(x, name)(), getattr(np, name)(a))["apart"] for name in ("exp", "tanh", "sin")
        }

    def sums() -> dict[str, Any]:
        a = numbers(300, 1000)
        x = mica.from_numpy(a).to(device)
        near(x.sum(1), a.sum(1, dtype="float64"), 1e-5)
        near(x.sum(0), a.sum(0, dtype="float64"), 1e-5)
        near(x.amax(1), a.max(1), 0)
        return near(x.sum(), np.asarray(a.sum(dtype="float64")), 1e-4)

    def matmul() -> dict[str, Any]:
        worst = {}
        for m, k, n in ((1, 1, 1), (64, 64, 64), (127, 65, 33), (512, 300, 700)):
            a, b = numbers(m, k), numbers(k, n)
            x, y = mica.from_numpy(a).to(device), mica.from_numpy(b).to(device)
            exact = a.astype("float64") @ b.astype("float64")
            worst[f"{m}x{k}x{n}"] = near(x @ y, exact, 2e-3)["apart"]  # TF32 passes, and shows
            near(x.t().contiguous().t() @ y, exact, 2e-3)
        return {"apart": worst}

    def allocation() -> dict[str, Any]:
        before = mica.memory_allocated(device)
        kept = [
            mica.empty(n, dtype=mica.uint8, device=device) for n in (0, 1, 511, 512, 513, 1 << 20, 1 << 28)
        ]
        used = mica.memory_allocated(device) - before
        expect(used >= sum(t.numel() for t in kept), f"Only ({used}) bytes are in use.")
        kept.clear()
        expect(mica.memory_allocated(device) == before, "Dropped tensors are still in use.")
        return {"stats": mica.memory_stats(device)}

    def streams() -> dict[str, Any]:
        stream, event = mica.Stream(device), mica.Event()
        x = mica.ones(1 << 20, device=device)
        mica.synchronize(device)
        with mica.stream(stream):
            y = x
            for _ in range(20):
                y = y + 1
            event.record(stream)
        event.wait(mica.current_stream(device))
        z = y * 2
        event.synchronize()
        expect(event.query(), "The event has not happened after synchronize.")
        expect(z[-1].item() == 42, f"The value is ({z[-1].item()}), expected 42.")
        return {}

    def events() -> dict[str, Any]:
        start, end = mica.Event(enable_timing=True), mica.Event(enable_timing=True)
        stream = mica.current_stream(device)
        x = mica.ones(1 << 22, device=device)
        start.record(stream)
        for _ in range(10):
            x = x + 1
        end.record(stream)
        end.synchronize()
        took = start.elapsed_time(end)
        expect(0 < took < 10_000, f"The time is ({took}) ms.")
        return {"ms_of_ten_adds": took}

    def gradient() -> dict[str, Any]:
        a, b = numbers(32, 16), numbers(16, 8)
        found = []
        for where in ("cpu", device):
            x = mica.from_numpy(a).to(where).requires_grad_()
            (x @ mica.from_numpy(b).to(where)).relu().sum().backward()
            found.append(x.grad.cpu().numpy())
        return near(mica.from_numpy(found[1]), found[0], 2e-3)

    def strictly(f: Any) -> Any:
        @functools.wraps(f)
        def run() -> dict[str, Any]:
            before = mica.set_fallback("error")
            try:
                return f()
            finally:
                mica.set_fallback(before)

        return run

    on_cpu = backend == "cpu"
    for f in (count, properties, copies, strided, add, broadcast, unary, sums, matmul, gradient):
        yield Row(f.__name__, f if f in (count, properties, copies) else strictly(f), limit=90)
    for f in () if on_cpu else (allocation, streams, events):
        yield Row(f.__name__, f)
