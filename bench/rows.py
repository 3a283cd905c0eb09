"""The rows of the benchmark: what is compared with what, and the ratio to reach.

Each function returns (name, mica, peer, peer's name, goal, threads); goals are Mica's time
over the peer's, from the budgets of docs/design.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

import mica


@dataclass(frozen=True)
class Row:
    group: str
    name: str
    mica: Callable[[], Any]
    peer: Callable[[], Any]
    peer_name: str
    goal: float | None = None
    threads: int = 1
    seconds: float = 0.02
    pairs: int = 31


def small() -> Iterator[Row]:
    a, b = np.arange(4, dtype=np.float32), np.ones(4, dtype=np.float32)
    x, y = mica.tensor(a), mica.tensor(b)
    p, q = torch.tensor(a), torch.tensor(b)
    xg, pg = mica.tensor(a, requires_grad=True), torch.tensor(a, requires_grad=True)
    yield Row("noise", "numpy x + y against itself (A/A)", lambda: a + b, lambda: a + b, "numpy")
    yield Row("small", "x + y, 4 floats", lambda: x + y, lambda: a + b, "numpy", 0.6)
    yield Row("small", "x + y, 4 floats", lambda: x + y, lambda: p + q, "torch", 1.0)
    yield Row("small", "x + y, requires_grad", lambda: xg + y, lambda: a + b, "numpy", 1.2)
    yield Row("small", "x + y, requires_grad", lambda: xg + y, lambda: pg + q, "torch", 1.0)
    yield Row("small", "x.view(2, 2)", lambda: x.view(2, 2), lambda: p.view(2, 2), "torch", 0.35)
    yield Row("small", "x[0]", lambda: x[0], lambda: p[0], "torch", 0.35)
    yield Row("small", "empty(4)", lambda: mica.empty(4), lambda: torch.empty(4), "torch", 0.35)
    yield Row("small", "(x * y).sum().backward()", lambda: (xg * y).sum().backward(),
              lambda: (pg * q).sum().backward(), "torch", 0.15)  # fmt: skip


def large() -> Iterator[Row]:
    n = 1 << 24  # 64 MB of float32
    data = np.random.default_rng(0).standard_normal((4096, 4096), dtype=np.float32)
    x, p = mica.from_numpy(data), torch.from_numpy(data)
    assert data.size == n
    weight = np.ones(4096, dtype=np.float32)
    w, v = mica.from_numpy(weight), torch.from_numpy(weight)
    rows = [
        ("x + x", lambda m, t, w: t + t, 1 / 3),
        ("x.sum()", lambda m, t, w: t.sum(), 1 / 0.98),  # both read at the machine's bandwidth
        ("x.sum(0)", lambda m, t, w: t.sum(0), 1.0),
        ("x.exp()", lambda m, t, w: t.exp(), 1.0),
        ("x.t() + x", lambda m, t, w: t.t() + t, 1.0),
        ("gelu", lambda m, t, w: m.nn.functional.gelu(t), 1.0),
        ("softmax", lambda m, t, w: m.softmax(t, 1), 0.5),
        ("layer_norm", lambda m, t, w: m.nn.functional.layer_norm(t, (4096,), w, w), 0.5),
    ]
    for name, run, goal in rows:
        yield Row("64 MB, fresh result", name, lambda run=run: run(mica, x, w), lambda run=run: run(torch, p, v),
                  "torch", goal, pairs=9)  # fmt: skip


def libraries() -> Iterator[Row]:
    rng = np.random.default_rng(0)
    a = rng.standard_normal((1024, 1024), dtype=np.float32)
    x, p = mica.from_numpy(a), torch.from_numpy(a)
    out = np.empty_like(a)
    yield Row("libraries", "matmul 1024", lambda: x @ x, lambda: p @ p, "torch", 1 / 0.98, pairs=15)
    yield Row("libraries", "matmul 1024", lambda: x @ x, lambda: np.matmul(a, a, out=out), "numpy's OpenBLAS", 1 / 0.98,
              pairs=15)  # fmt: skip
    image = rng.standard_normal((8, 64, 56, 56), dtype=np.float32)
    kernel = rng.standard_normal((64, 64, 3, 3), dtype=np.float32)
    i, k = mica.from_numpy(image), mica.from_numpy(kernel)
    ti, tk = torch.from_numpy(image), torch.from_numpy(kernel)
    yield Row("libraries", "conv2d 3x3, 64 channels", lambda: mica.nn.functional.conv2d(i, k, padding=1),
              lambda: torch.nn.functional.conv2d(ti, tk, padding=1), "torch", 1 / 0.98, pairs=15)  # fmt: skip


def training() -> Iterator[Row]:
    rng = np.random.default_rng(0)
    images = rng.standard_normal((64, 1, 8, 8), dtype=np.float32)
    labels = rng.integers(0, 10, 64)

    def step_of(m: Any) -> Callable[[], Any]:
        nn = m.nn
        net = nn.Sequential(
            nn.Conv2d(1, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
            nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2),
            nn.Flatten(), nn.Dropout(0.3), nn.Linear(64 * 4 * 4, 10),
        )  # fmt: skip
        optimizer = m.optim.AdamW(net.parameters(), lr=3e-3)
        x, y = m.from_numpy(images), m.from_numpy(labels)

        def step() -> None:
            loss = nn.functional.cross_entropy(net(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

        return step

    yield Row("training", "digits step, batch 64", step_of(mica), step_of(torch), "torch", 0.5, threads=2, seconds=0.1,
              pairs=21)  # fmt: skip


def small_programs() -> Iterator[Row]:
    """What Python, dispatch and autograd cost where tensors are small: the programs of issue 7,
    whose goals (40, 20 and 150 us) are these shares of torch's time on the machine they came from."""

    def of(m: Any) -> tuple[Callable[[], Any], ...]:
        params = [m.nn.Parameter(m.ones(16, 16)) for _ in range(20)]
        for p in params:
            p.grad = m.full((16, 16), 0.5)
        net = m.nn.Sequential(*[m.nn.Linear(16, 16) for _ in range(10)])
        optimizer, x = m.optim.AdamW(net.parameters()), m.ones(1, 16)

        def infer() -> Any:
            with m.no_grad():
                return net(x)

        def train() -> None:
            optimizer.zero_grad()
            net(x).sum().backward()
            optimizer.step()

        return m.optim.Adam(params).step, infer, train

    names = ["Adam step, 20 of 16 x 16", "ten Linear, batch 1, no grad", "ten Linear, batch 1, AdamW step"]
    for name, goal, ours, theirs in zip(names, (0.062, 0.26, 0.125), of(mica), of(torch)):
        yield Row("small programs", name, ours, theirs, "torch", goal)


def all_rows() -> Iterator[Row]:
    from transform_rows import transforms  # which needs Row

    yield from small()
    yield from small_programs()
    yield from transforms()
    yield from large()
    yield from libraries()
    yield from training()
