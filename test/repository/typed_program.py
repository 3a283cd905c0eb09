"""A small program that mypy --strict checks against the generated stubs (test_stubs.py)."""

from __future__ import annotations

import mica
from mica import Tensor


def normalise(x: Tensor, dim: int = -1, eps: float = 1e-5) -> Tensor:
    mean = x.mean(dim, keepdim=True)
    return (x - mean) / (x.var(dim, keepdim=True) + eps).sqrt()


def loss(x: Tensor, w: Tensor) -> float:
    y = mica.relu(x @ w) + 1
    values, indices = y.max(dim=1)
    best: Tensor = y.max(1).values
    y.add_(2.0).view(2, -1)
    total = mica.where(y > 0, y, 0.5).sum() + best.mean()
    total.backward()
    return float(total) + float(values.sum().item()) + indices.numel()


def joined(count: int) -> Tensor:
    z = mica.zeros((2, 3), dtype=mica.float32, requires_grad=True)
    parts = [z] * count
    sizes: tuple[int, ...] = z.shape
    return mica.cat(parts, dim=0)[0, :, None].reshape(sizes[1], 1)


def size(x: Tensor) -> Tensor:
    rows = x.norm(dim=1, keepdim=True) + x.norm(1, 0, keepdim=True).where(x > 0, 0.0)
    return rows.norm("fro", dtype=mica.float64)
