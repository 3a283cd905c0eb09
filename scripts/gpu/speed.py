"""Section `speed`: Mica and torch in one process, in turns (turns.py), on the same numbers.

A row says the minimum and the median of both, the ratio of the medians (above 1: Mica is
slower), bytes or operations a second by the minimum, how far the results are apart, and the
operators that fell back to the CPU.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

from networks import gpt2, resnet50
from row import Options, Row, Skipped, fallbacks
from turns import Call, Pair, both, compare, series, torch

import mica

ELEMENTS = 1 << 26  # 256 MB of float32
WIDTH = {"float32": 4, "bfloat16": 2}
Measure = Callable[[Pair], dict[str, Any]]


def pointwise(dtype: str) -> Iterator[tuple[str, Measure]]:
    """Rows over 256 MB a tensor."""
    w = WIDTH[dtype]
    count = ELEMENTS * 4 // w
    other = "bfloat16" if dtype == "float32" else "float32"
    gelu = lambda lib, x: lib.nn.functional.gelu(x)  # noqa: E731
    # Name, tensors, how many tensors of this size are read and written (x * y + z: by two kernels), function.
    table: list[tuple[str, int, float, Callable[..., Any]]] = [
        ("x + y", 2, 3, lambda lib, x, y: x + y),
        ("x * y + z", 3, 6, lambda lib, x, y, z: x * y + z),
        ("x + 1.5", 1, 2, lambda lib, x: x + 1.5),
        ("x.add_(y)", 2, 3, lambda lib, x, y: x.add_(y)),
        ("gelu", 1, 2, gelu),
        ("exp", 1, 2, lambda lib, x: x.exp()),
        ("sigmoid", 1, 2, lambda lib, x: x.sigmoid()),
        ("relu", 1, 2, lambda lib, x: x.relu()),
        ("x > y", 2, 2 + 1 / w, lambda lib, x, y: x > y),
        ("clone", 1, 2, lambda lib, x: x.clone()),
        (f"to {other}", 1, 1 + WIDTH[other] / w, lambda lib, x: x.to(getattr(lib, other))),
        ("zero_", 1, 1, lambda lib, x: x.zero_()),
    ]

    def one(pair: Pair, tensors: int, factor: float, f: Callable[..., Any], writes: bool) -> dict[str, Any]:
        n = pair.size(count)
        made = [pair.tensor((n,), dtype) for _ in range(tensors)]
        if writes:
            made[0] = (made[0][0].clone(), None if torch is None else made[0][1].clone())
        return compare(pair, *both(f, *made), bytes=factor * w * n, random=writes)

    for name, tensors, factor, f in table:
        row = (tensors, factor, f, "_" in name)
        yield f"{name} {dtype}", lambda pair, a=row: one(pair, *a)

    def where(pair: Pair) -> dict[str, Any]:
        n = pair.size(count)
        x, y = pair.tensor((n,), dtype), pair.tensor((n,), dtype, 0.5)
        mask = (x[0] > 0, None if torch is None else x[1] > 0)
        return compare(
            pair, *both(lambda lib, m, x, y: lib.where(m, x, y), mask, x, y), bytes=(3 * w + 1) * n
        )

    yield f"where {dtype}", where

    columns = 4096
    rows_of = lambda pair: max(2, pair.size(count) // columns)  # noqa: E731

    def matrix(
        pair: Pair, f: Callable[..., Any], moved: float, extra: tuple[int, ...] | None
    ) -> dict[str, Any]:
        rows = rows_of(pair)
        made = [pair.tensor((rows, columns), dtype)]
        if extra is not None:
            made.append(pair.tensor(tuple(rows if d < 0 else d for d in extra), dtype))
        return compare(pair, *both(f, *made), bytes=moved * w * rows * columns)

    layer_norm = lambda lib, x: lib.nn.functional.layer_norm(x, (columns,))  # noqa: E731
    matrices: list[tuple[str, float, tuple[int, ...] | None, Callable[..., Any]]] = [
        ("sum", 1, None, lambda lib, x: x.sum()),
        ("mean(-1)", 1, None, lambda lib, x: x.mean(-1)),
        ("sum(0)", 1, None, lambda lib, x: x.sum(0)),
        ("amax(-1)", 1, None, lambda lib, x: x.amax(-1)),
        ("argmax(-1)", 1, None, lambda lib, x: x.argmax(-1)),
        ("softmax", 2, None, lambda lib, x: x.softmax(-1)),
        ("log_softmax", 2, None, lambda lib, x: x.log_softmax(-1)),
        ("layer_norm", 2, None, layer_norm),
        ("cumsum(-1)", 2, None, lambda lib, x: x.cumsum(-1)),
        ("x + row", 2, (4096,), lambda lib, x, y: x + y),
        ("x + column", 2, (-1, 1), lambda lib, x, y: x + y),
        ("transposed copy", 2, None, lambda lib, x: x.t().contiguous()),
        ("x[:, ::2] copy", 1.5, None, lambda lib, x: x[:, ::2].contiguous()),
        ("cat", 4, None, lambda lib, x: lib.cat([x, x])),
    ]
    for name, moved, extra, f in matrices:
        yield f"{name} {dtype}", lambda pair, a=(f, moved, extra): matrix(pair, *a)


def products() -> Iterator[tuple[str, Measure]]:
    def product(pair: Pair, n: int, dtype: str, f: Callable[..., Any]) -> dict[str, Any]:
        n = max(64, int(n * pair.scale ** (1 / 3)) // 64 * 64)
        x, y = pair.tensor((n, n), dtype), pair.tensor((n, n), dtype, 0.5)
        return compare(pair, *both(f, x, y), flops=2.0 * n**3)

    plain = lambda lib, x, y: x @ y  # noqa: E731
    for n, dtype in (
        (4096, "float32"),
        (8192, "bfloat16"),
        (4096, "bfloat16"),
        (4096, "float16"),
        (1024, "float32"),
    ):
        yield f"matmul {n} {dtype}", lambda pair, a=(n, dtype, plain): product(pair, *a)
    yield "x @ y.t() 8192 bfloat16", lambda pair: product(pair, 8192, "bfloat16", lambda lib, x, y: x @ y.t())
    yield "matmul 2048 float64", lambda pair: product(pair, 2048, "float64", plain)

    def bmm(pair: Pair, dtype: str) -> dict[str, Any]:
        b, n = max(2, int(64 * pair.scale)), 512
        x, y = pair.tensor((b, n, n), dtype), pair.tensor((b, n, n), dtype, 0.5)
        return compare(pair, *both(lambda lib, x, y: lib.bmm(x, y), x, y), flops=2.0 * b * n**3)

    def linear(pair: Pair) -> dict[str, Any]:
        rows, n = pair.size(8192), 4096 if pair.scale == 1 else 256
        x, w, b = (pair.tensor(s, "bfloat16", 0.1) for s in ((rows, n), (n, n), (n,)))
        f = lambda lib, x, w, b: lib.nn.functional.linear(x, w, b)  # noqa: E731
        return compare(pair, *both(f, x, w, b), flops=2.0 * rows * n * n)

    def attention(pair: Pair) -> dict[str, Any]:
        heads, length = max(1, int(128 * pair.scale)), 1024 if pair.scale == 1 else 128
        q, k, v = (pair.tensor((1, heads, length, 64), "bfloat16") for _ in range(3))
        f = lambda lib, q, k, v: lib.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)  # noqa: E731
        return compare(pair, *both(f, q, k, v), flops=2.0 * heads * length * length * 64)

    def convolution(pair: Pair, dtype: str) -> dict[str, Any]:
        batch = max(1, int(64 * pair.scale))
        x, w = pair.tensor((batch, 64, 56, 56), dtype), pair.tensor((64, 64, 3, 3), dtype, 0.05)
        f = lambda lib, x, w: lib.nn.functional.conv2d(x, w, padding=1)  # noqa: E731
        return compare(pair, *both(f, x, w), flops=2.0 * batch * 64 * 56 * 56 * 64 * 9)

    def attention_and_gradients(pair: Pair) -> dict[str, Any]:
        heads, length = max(1, int(16 * pair.scale)), 2048 if pair.scale == 1 else 128
        q, k, v = (pair.tensor((1, heads, length, 128), "bfloat16") for _ in range(3))

        def f(lib: Any, *given: Any) -> Any:
            inputs = [x.detach().requires_grad_() for x in given]
            lib.nn.functional.scaled_dot_product_attention(*inputs, is_causal=True).sum().backward()
            return inputs[0].grad

        return compare(pair, *both(f, q, k, v), flops=7.0 * heads * length * length * 128)

    for dtype in ("float32", "bfloat16"):
        yield f"bmm 64 x 512 {dtype}", lambda pair, d=dtype: bmm(pair, d)
        yield f"conv2d 64 x 56 x 56, 3 x 3 {dtype}", lambda pair, d=dtype: convolution(pair, d)
    yield "linear 8192 x 4096 bfloat16", linear
    yield "attention 128 x 1024 x 64 bfloat16", attention
    yield "attention and gradients 16 x 2048 x 128 bfloat16", attention_and_gradients


def indexing() -> Iterator[tuple[str, Measure]]:
    def embedding(pair: Pair, dtype: str) -> dict[str, Any]:
        words, width, count = pair.size(50_000), 1024, pair.size(65_536)
        table, index = pair.tensor((words, width), dtype), pair.integers((count,), words)
        f = lambda lib, i, t: lib.nn.functional.embedding(i, t)  # noqa: E731
        return compare(pair, *both(f, index, table), bytes=2.0 * count * width * WIDTH[dtype])

    def cross_entropy(pair: Pair, dtype: str) -> dict[str, Any]:
        rows, classes = pair.size(4096), 50_257
        x, y = pair.tensor((rows, classes), dtype), pair.integers((rows,), classes)
        f = lambda lib, x, y: lib.nn.functional.cross_entropy(x, y)  # noqa: E731
        return compare(pair, *both(f, x, y), bytes=1.0 * rows * classes * WIDTH[dtype])

    def cross_entropy_and_gradient(pair: Pair, dtype: str) -> dict[str, Any]:
        rows, classes = pair.size(4096), 50_257
        x, y = pair.tensor((rows, classes), dtype), pair.integers((rows,), classes)

        def f(lib: Any, x: Any, y: Any) -> Any:
            scores = x.detach().requires_grad_()
            lib.nn.functional.cross_entropy(scores, y).backward()
            return scores.grad

        return compare(pair, *both(f, x, y), bytes=3.0 * rows * classes * WIDTH[dtype])

    def select(pair: Pair) -> dict[str, Any]:
        n = pair.size(1 << 24)
        x, index = pair.tensor((n,)), pair.integers((n,), n)
        return compare(pair, *both(lambda lib, x, i: x[i], x, index), bytes=16.0 * n)

    def gather(pair: Pair) -> dict[str, Any]:
        rows = pair.size(1 << 14)
        x, index = pair.tensor((rows, 1024)), pair.integers((rows, 1024), 1024)
        return compare(pair, *both(lambda lib, x, i: x.gather(1, i), x, index), bytes=16.0 * rows * 1024)

    def scatter(pair: Pair) -> dict[str, Any]:
        n = pair.size(1 << 22)
        x, y, index = pair.tensor((n // 4 + 1,)), pair.tensor((n,)), pair.integers((n,), n // 4)
        f = lambda lib, x, i, y: x.scatter_add(0, i, y)  # noqa: E731
        return compare(pair, *both(f, x, index, y), bytes=16.0 * n, random=True)

    def sort(pair: Pair) -> dict[str, Any]:
        return compare(pair, *both(lambda lib, x: x.sort()[0], pair.tensor((pair.size(1 << 24),))))

    def topk(pair: Pair) -> dict[str, Any]:
        return compare(pair, *both(lambda lib, x: x.topk(50)[0], pair.tensor((pair.size(256), 50_257))))

    def masked(pair: Pair) -> dict[str, Any]:
        return compare(pair, *both(lambda lib, x: x[x > 0], pair.tensor((pair.size(1 << 24),))))

    yield "embedding 65536 of 1024 float32", lambda pair: embedding(pair, "float32")
    yield "embedding 65536 of 1024 bfloat16", lambda pair: embedding(pair, "bfloat16")
    yield "cross_entropy 4096 x 50257 float32", lambda pair: cross_entropy(pair, "float32")
    yield "cross_entropy 4096 x 50257 bfloat16", lambda pair: cross_entropy(pair, "bfloat16")
    for dtype in ("float32", "bfloat16"):
        yield (
            f"cross_entropy and gradient 4096 x 50257 {dtype}",
            lambda pair, d=dtype: cross_entropy_and_gradient(pair, d),
        )
    yield "x[i] 16M", select
    yield "gather 16M", gather
    yield "scatter_add 4M", scatter
    yield "sort 16M", sort
    yield "topk 50 of 50257, 256 rows", topk
    yield "x[x > 0] 16M", masked


def numbers() -> Iterator[tuple[str, Measure]]:
    """Random numbers and factories."""

    def drawn(pair: Pair, f: Callable[[Any, int, str], Any], count: int = ELEMENTS) -> dict[str, Any]:
        n = pair.size(count)
        return compare(
            pair,
            lambda: f(mica, n, pair.device),
            lambda: f(torch, n, pair.torch_device),
            bytes=4.0 * n,
            random=True,
        )

    yield "rand 256 MB", lambda pair: drawn(pair, lambda lib, n, d: lib.rand(n, device=d))
    yield "randn 256 MB", lambda pair: drawn(pair, lambda lib, n, d: lib.randn(n, device=d))
    yield (
        "arange 256 MB",
        lambda pair: drawn(pair, lambda lib, n, d: lib.arange(n, dtype=lib.float32, device=d)),
    )
    yield "zeros 256 MB", lambda pair: drawn(pair, lambda lib, n, d: lib.zeros(n, device=d))

    def dropout(pair: Pair) -> dict[str, Any]:
        n = pair.size(ELEMENTS)
        f = lambda lib, x: lib.nn.functional.dropout(x, 0.1)  # noqa: E731
        return compare(pair, *both(f, pair.tensor((n,))), bytes=8.0 * n, random=True)

    yield "dropout 256 MB", dropout


def small() -> Iterator[tuple[str, Measure]]:
    """What a call costs: 10,000 calls in a series, and calls that are waited for."""

    def asynchronous(pair: Pair, f: Callable[..., Any], tensors: int, count: int = 10_000) -> dict[str, Any]:
        ours, theirs = both(f, *[pair.tensor((4,)) for _ in range(tensors)])
        fallbacks(pair.device)
        ours()
        found: dict[str, Any] = {"fell back": lacking} if (lacking := fallbacks(pair.device)) else {}
        count = count if not lacking and pair.scale == 1 else 500
        times: dict[str, list[float]] = {"mica": [], "torch": []}
        for _ in range(5):
            times["mica"].append(series(ours, count, pair.synchronize))
            if torch is not None:
                times["torch"].append(series(theirs, count, pair.synchronize))
        for name, t in times.items():
            if t:
                found[name] = {
                    "us min": round(min(t) * 1e6, 3),
                    "us median": round(statistics.median(t) * 1e6, 3),
                }
        if torch is not None:
            found["ratio"] = round(statistics.median(times["mica"]) / statistics.median(times["torch"]), 3)
        return found

    def waited(pair: Pair, f: Callable[..., Any]) -> dict[str, Any]:
        ours, theirs = both(f, pair.tensor((4,)), pair.tensor((4,)))
        wait = (lambda: torch.cuda.synchronize()) if pair.torch_device == "cuda" else (lambda: None)
        return compare(
            pair, lambda: (ours(), mica.synchronize(pair.device))[0], lambda: (theirs(), wait())[0]
        )

    yield "small x + y, 10,000 calls", lambda pair: asynchronous(pair, lambda lib, x, y: x + y, 2)
    yield (
        "small add out=, 10,000 calls",
        lambda pair: asynchronous(pair, lambda lib, x, y, o: lib.add(x, y, out=o), 3),
    )
    yield "small relu_, 10,000 calls", lambda pair: asynchronous(pair, lambda lib, x: x.relu_(), 1)
    yield "small sum, 10,000 calls", lambda pair: asynchronous(pair, lambda lib, x: x.sum(), 1)
    yield "small matmul, 10,000 calls", lambda pair: asynchronous(pair, lambda lib, x, y: x @ y, 2)
    yield "small x + y, each waited for", lambda pair: waited(pair, lambda lib, x, y: x + y)
    yield "small (x + y).sum().item()", lambda pair: waited(pair, lambda lib, x, y: (x + y).sum().item())


def training() -> Iterator[tuple[str, Measure]]:
    """Whole steps: forward, backward, Adam."""

    def mlp(lib: Any, device: str, scale: float, dtype: str) -> Call:
        width, batch = (1024, 512) if scale == 1 else (128, 64)
        layers = []
        for _ in range(10):
            layers += [lib.nn.Linear(width, width), lib.nn.ReLU()]
        lib.manual_seed(0)
        net = lib.nn.Sequential(*layers).to(device).to(getattr(lib, dtype))
        optimizer = lib.optim.Adam(net.parameters(), lr=1e-4)
        x = lib.randn(batch, width).to(device).to(getattr(lib, dtype))

        def step() -> Any:
            optimizer.zero_grad()
            loss = (net(x) - x).square().mean()
            loss.backward()
            optimizer.step()
            return loss

        return step

    def transformer(lib: Any, device: str, scale: float, dtype: str) -> Call:
        width, layers, batch, length = (512, 6, 16, 256) if scale == 1 else (64, 2, 2, 32)
        layer = lib.nn.TransformerEncoderLayer(
            width, 8, 4 * width, dropout=0.0, batch_first=True, activation="gelu"
        )
        net = lib.nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        word, head = lib.nn.Embedding(8192, width), lib.nn.Linear(width, 8192)
        whole = lib.nn.ModuleList([word, net, head]).to(device).to(getattr(lib, dtype))
        optimizer = lib.optim.AdamW(whole.parameters(), lr=1e-4)
        words = lib.arange(batch * length).reshape(batch, length).remainder(8192).to(device)

        def step() -> Any:
            optimizer.zero_grad()
            scores = head(net(word(words))).reshape(-1, 8192)
            loss = lib.nn.functional.cross_entropy(scores.float(), words.reshape(-1))
            loss.backward()
            optimizer.step()
            return loss

        return step

    def step(pair: Pair, make: Callable[..., Call], how: str | bool) -> dict[str, Any]:
        if torch is None:
            raise Skipped("torch is not here.")
        ours = make(mica, pair.device, pair.scale, how)
        theirs = make(torch, pair.torch_device, pair.scale, how)
        return compare(pair, ours, theirs, random=True)

    for dtype in ("float32", "bfloat16"):
        yield (
            f"training step, MLP 10 x 1024, batch 512, Adam {dtype}",
            lambda pair, d=dtype: step(pair, mlp, d),
        )
    for dtype in ("float32", "bfloat16"):
        yield f"training step, transformer 6 x 512, 16 x 256, AdamW {dtype}", lambda pair, d=dtype: step(pair, transformer, d)  # fmt: skip
    for name, make in (("ResNet-50, 64 images, SGD", resnet50), ("GPT-2 small, 8 x 1024, AdamW", gpt2)):
        for autocast in (False, True):
            how = "autocast to bfloat16" if autocast else "float32"
            yield f"training step, {name} {how}", lambda pair, a=(make, autocast): step(pair, *a)


def graphs() -> Iterator[tuple[str, Measure]]:
    """Recorded work that is replayed: beside torch's graph of the same, and beside its calls one by one."""

    def layers(lib: Any, device: str, scale: float) -> Call:
        lib.manual_seed(0)
        net = lib.nn.Sequential(*[lib.nn.Linear(64, 64) for _ in range(10)]).to(device)
        x = lib.ones(32, 64).to(device)

        def call() -> Any:
            with lib.no_grad():
                return net(x)

        return call

    def trained(lib: Any, device: str, scale: float) -> Call:
        lib.manual_seed(0)
        net = lib.nn.Sequential(*[m for _ in range(4) for m in (lib.nn.Linear(64, 64), lib.nn.ReLU())]).to(
            device
        )
        optimizer = lib.optim.Adam(net.parameters(), lr=1e-4, capturable=lib.device(device).type != "cpu")
        x = lib.ones(32, 64).to(device)

        def call() -> Any:
            optimizer.zero_grad()
            loss = (net(x) - x).square().mean()
            loss.backward()
            optimizer.step()
            return loss

        return call

    def replayed(lib: Any, call: Call) -> Call:
        side = lib.cuda.Stream()
        with lib.cuda.stream(side):
            for _ in range(3):
                call()
        graph = lib.cuda.CUDAGraph()
        with lib.cuda.graph(graph):
            result = call()

        def replay() -> Any:
            graph.replay()
            return result

        return replay

    def measured(pair: Pair, make: Callable[..., Call], recorded: str) -> dict[str, Any]:
        if torch is None or pair.torch_device != "cuda":
            raise Skipped("torch has no CUDA device here.")
        ours, theirs = make(mica, pair.device, pair.scale), make(torch, pair.torch_device, pair.scale)
        if "mica" in recorded:
            ours = replayed(mica, ours)
        if "torch" in recorded:
            theirs = replayed(torch, theirs)
        return compare(pair, ours, theirs, random=True)

    for name, make in (
        ("10 Linear layers of 64", layers),
        ("training step of 4 Linear layers of 64", trained),
    ):
        for recorded, what in (
            ("", "eager"),
            ("mica torch", "both as a graph"),
            ("mica", "as a graph, torch eager"),
        ):
            yield f"{name}, {what}", lambda pair, a=(make, recorded): measured(pair, *a)


def transfers() -> Iterator[tuple[str, Measure]]:
    """Copies between host and device."""

    def copy(pair: Pair, pinned: bool, back: bool) -> dict[str, Any]:
        n = pair.size(ELEMENTS)
        host, on = mica.ones(n), mica.zeros(n, device=pair.device)
        their_host = torch.ones(n) if torch is not None else None
        their_on = torch.zeros(n, device=pair.torch_device) if torch is not None else None
        if pinned:
            host = host.pin_memory()
            if pair.torch_device == "cuda":
                their_host = their_host.pin_memory()
        sides, their_sides = (host, on), (their_host, their_on)
        if not back:
            sides, their_sides = sides[::-1], their_sides[::-1]
        return compare(
            pair,
            lambda: sides[0].copy_(sides[1], non_blocking=pinned),
            lambda: their_sides[0].copy_(their_sides[1], non_blocking=pinned),
            bytes=4.0 * n,
        )

    for pinned in (False, True):
        for back in (False, True):
            name = f"256 MB {'from' if back else 'to'} the device, {'pinned' if pinned else 'pageable'}"
            yield name, lambda pair, a=(pinned, back): copy(pair, *a)


def rows(device: str, options: Options) -> Iterator[Row]:
    until = time.monotonic() + options.seconds - 3
    pair = Pair(device, options.scale)

    def limited(measure: Measure) -> dict[str, Any]:
        if time.monotonic() > until:
            raise Skipped("The time of the section is over.")
        pair.start()
        return measure(pair)

    def settings() -> dict[str, Any]:
        def flags(library: Any) -> dict[str, bool]:
            backends = library.backends
            return {
                "matmul": backends.cuda.matmul.allow_tf32,
                "convolution": backends.cudnn.allow_tf32,
            }

        if torch is None:
            return {"torch": "is not here", "Mica allows TF32": flags(mica)}
        return {
            "torch": torch.__version__,
            "torch's device": pair.torch_device,
            "torch allows TF32": flags(torch),
            "Mica allows TF32": flags(mica),
        }

    yield Row("settings", settings)
    tables = (small(), pointwise("float32"), products(), graphs(), training(), pointwise("bfloat16"), indexing(), numbers(), transfers())  # fmt: skip
    wanted = options.more.get("speed", [""])
    for table in tables:
        for name, measure in table:
            if not any(part in name for part in wanted):
                continue
            yield Row(name, lambda m=measure: limited(m), limit=45)
