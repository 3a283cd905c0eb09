"""Section `memory`: the caching allocator, the end of memory, pinned memory, streams that overlap."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from row import Options, Row, Skipped, expect

import mica


def rows(device: str, options: Options) -> Iterator[Row]:
    if mica.device(device).type == "cpu":
        return
    mebi = 1 << 20
    large = max(1, int(256 * options.scale)) * mebi

    def make(size: int, where: str = device) -> Any:
        return mica.empty(size, dtype=mica.uint8, device=where)

    def free() -> int:
        return int(mica.device_properties(device)["free_memory"])

    def pairs() -> dict[str, Any]:
        """Microseconds to take and drop a block, beside torch's allocator."""
        found: dict[str, Any] = {}
        try:
            import torch

            on = "cuda" if torch.cuda.is_available() else "cpu"
        except ImportError:
            torch, on = None, ""
        for size in (512, mebi, 64 * mebi):
            for name, f in (
                ("mica", lambda size=size: make(size)),
                ("torch", lambda size=size: torch.empty(size, dtype=torch.uint8, device=on)),
            ):
                if name == "torch" and torch is None:
                    continue
                best = 1e9
                for _ in range(5):
                    start = time.perf_counter()
                    for _ in range(2000):
                        f()
                    best = min(best, (time.perf_counter() - start) / 2000)
                found[f"{name}, {size} bytes, us"] = round(best * 1e6, 3)
        return found

    def caching() -> dict[str, Any]:
        make(large)
        reserved, hits = mica.memory_reserved(device), mica.memory_stats(device)["cache_hits"]
        for _ in range(100):
            make(large)
        expect(mica.memory_reserved(device) == reserved, "More memory was taken from the device.")
        expect(mica.memory_stats(device)["cache_hits"] >= hits + 100, "The cache was not asked.")
        mica.empty_cache(device)
        return {"reserved": reserved, "after empty_cache": mica.memory_reserved(device)}

    def given_back() -> dict[str, Any]:
        mica.empty_cache(device)
        before = free()
        x = make(4 * large)
        during = free()
        del x
        mica.empty_cache(device)
        after = free()
        expect(
            before - during >= 4 * large or before == during, "The device does not show the memory as used."
        )
        expect(after >= before - 64 * mebi, f"({before - after}) bytes were not given back.")
        return {"free before, during, after": [before, during, after]}

    def random_sizes() -> dict[str, Any]:
        """Blocks of random sizes come and go; what is reserved stays near what was in use."""
        generator = np.random.default_rng(0)
        mica.empty_cache(device)
        mica.reset_peak_memory_stats(device)
        kept: list[Any] = [None] * 64
        start = time.perf_counter()
        for _ in range(5000):
            size = int(2 ** generator.uniform(6, np.log2(large / 8)))
            kept[int(generator.integers(64))] = make(size)
        seconds = time.perf_counter() - start
        peak, reserved = mica.max_memory_allocated(device), mica.memory_reserved(device)
        kept.clear()
        gc.collect()
        return {"us a block": round(seconds / 5000 * 1e6, 2), "peak in use": peak, "reserved": reserved, "reserved / peak": round(reserved / max(peak, 1), 2)}  # fmt: skip

    def contents() -> dict[str, Any]:
        """Blocks that are used again hold what was written last, not what an earlier owner left."""
        generator = np.random.default_rng(1)
        kept = {}
        for k in range(400):
            n = int(generator.integers(1, 200_000))
            kept[k % 37] = (mica.full([n], k, dtype=mica.int32, device=device), k)
            x, value = kept[int(generator.integers(min(k + 1, 37)))]
            expect(x.amin().item() == value == x.amax().item(), f"The block of round ({k}) was overwritten.")
        return {}

    def impossible() -> dict[str, Any]:
        try:
            make(1 << 46)
        except mica.OutOfMemoryError as error:
            message = str(error)
        else:
            raise AssertionError("64 TiB were given.")
        expect((mica.ones(3, device=device) + 1).tolist() == [2.0] * 3, "The device no longer computes.")
        return {"message": message.splitlines()[0]}

    def to_the_end() -> dict[str, Any]:
        """All memory is taken in blocks until OutOfMemoryError; then the process goes on."""
        total = free()
        if total < 0 or total > 400 << 30 or options.scale < 1:
            raise Skipped("Only at full size, on a device that knows its memory.")
        kept, block = [], 2 << 30
        try:
            while len(kept) * block < 2 * total:
                kept.append(make(block))
        except mica.OutOfMemoryError as error:
            message = str(error)
        else:
            raise AssertionError("Twice the device's memory was given.")
        taken = len(kept) * block
        expect((kept[0][:4].zero_() + 1).tolist() == [1] * 4, "The device no longer computes.")
        kept.clear()
        x = make(total // 2)  # one block of what were many: idle blocks must go back to the device
        del x
        mica.empty_cache(device)
        expect(taken > 0.8 * total, f"Only ({taken}) of ({total}) bytes could be taken.")
        return {"taken": taken, "of": total, "message": message.splitlines()[0]}

    def limit() -> dict[str, Any]:
        mica.empty_cache(device)
        mica.set_memory_limit(mica.memory_reserved(device) + 64 * mebi, device)
        try:
            make(256 * mebi)
        except mica.OutOfMemoryError as error:
            return {"message": str(error).splitlines()[0]}
        finally:
            mica.set_memory_limit(0, device)
        raise AssertionError("More than the limit was given.")

    def pinned() -> dict[str, Any]:
        """Copies from and to pinned memory are right, and return before they are done."""
        n = large // 4
        host = mica.arange(n, dtype=mica.float32).pin_memory()
        expect(host.is_pinned(), "pin_memory gives a tensor that is not pinned.")
        back = mica.empty(n).pin_memory()
        on = mica.empty(n, device=device)
        found = {}
        for name, target, source in (("to", on, host), ("from", back, on)):
            target.copy_(source)
            mica.synchronize(device)
            start = time.perf_counter()
            target.copy_(source, non_blocking=True)
            returned = time.perf_counter()
            mica.synchronize(device)
            done = time.perf_counter()
            found[f"{name} the device"] = {
                "returned after us": round((returned - start) * 1e6, 1),
                "done after us": round((done - start) * 1e6, 1),
                "GB/s": round(large / (done - start) / 1e9, 1),
            }
        expect(np.array_equal(back.numpy(), host.numpy()), "The copies changed values.")
        del host, back
        gc.collect()
        for _ in range(50):  # dropped while the copy is under way
            on.copy_(mica.full([n], 7.0).pin_memory(), non_blocking=True)
        mica.synchronize(device)
        expect(on.amin().item() == 7 == on.amax().item(), "A pinned block was reused while it was read.")
        return found

    def two_streams() -> dict[str, Any]:
        """The time of work on two streams, beside the same on one."""
        a, b = mica.Stream(device), mica.Stream(device)
        n = 256 if options.scale < 1 else 1024
        x = mica.ones(n, n, device=device)
        mica.synchronize(device)

        def work(streams: tuple[Any, Any]) -> tuple[float, float]:
            best, value = 1e9, 0.0
            for _ in range(5):
                results = []
                start = time.perf_counter()
                for s in streams:
                    with mica.stream(s):
                        y = x
                        for _ in range(30):
                            y = (y @ x) / n
                        results.append(y)
                mica.synchronize(device)
                best = min(best, time.perf_counter() - start)
                value = max(abs(float(r[0, 0].item()) - 1) for r in results)
            return best, value

        one, wrong = work((a, a))
        two, wrong2 = work((a, b))
        expect(max(wrong, wrong2) < 1e-3, f"The results are off by ({max(wrong, wrong2)}).")
        return {"one stream ms": round(one * 1e3, 3), "two streams ms": round(two * 1e3, 3), "one / two": round(one / two, 2)}  # fmt: skip

    def copy_beside_work() -> dict[str, Any]:
        """A pinned copy on one stream while another computes."""
        n, side = large // 4, 512 if options.scale < 1 else 4096
        host, on = mica.ones(n).pin_memory(), mica.empty(n, device=device)
        x, s = mica.ones(side, side, device=device), mica.Stream(device)

        def timed(copies: bool, products: bool) -> float:
            best = 1e9
            for _ in range(5):
                mica.synchronize(device)
                start = time.perf_counter()
                if copies:
                    with mica.stream(s):
                        on.copy_(host, non_blocking=True)
                for _ in range(4 if products else 0):
                    x @ x
                mica.synchronize(device)
                best = min(best, time.perf_counter() - start)
            return round(best * 1e3, 3)

        return {"copy ms": timed(True, False), "work ms": timed(False, True), "both ms": timed(True, True)}

    def a_dropped_block_waits() -> dict[str, Any]:
        """A block that another stream uses is not given away too early (record_stream)."""
        other, count = mica.Stream(device), 1 << 22
        for k in range(30):
            x = mica.full([count], float(k), device=device)
            other.wait_stream(mica.current_stream(device))
            with mica.stream(other):
                y = x
                for _ in range(10):
                    y = y + 1
            x.record_stream(other)
            del x
            mica.full([count], -100.0, device=device)
            other.synchronize()
            expect(y[-1].item() == k + 10 == y[0].item(), f"Round ({k}) read a block that was given away.")
        return {}

    for f in (pairs, caching, given_back, random_sizes, contents, impossible, limit, pinned, two_streams, copy_beside_work, a_dropped_block_waits, to_the_end):  # fmt: skip
        yield Row(f.__name__, f, limit=45)
