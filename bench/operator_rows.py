"""`./dev bench ops`: operator x size x dtype x layout rows, Mica against torch.

The rows are drawn from what training and inference programs call most, at four sizes
(elements of x: 4, 4 K, 1 M, 16 M), and were written down before the first measurement.
A row's expression is run in both libraries with the same inputs; ratios are Mica's time
over torch's.

Inputs of an expression: x, y of the size (vectors of 4; else square matrices), v a row,
c a column, m a mask, i indices into the rows, k int64 of the size, b a batch of matrices,
image [16, 32, 32, 32], filters [64, 32, 3, 3], L the library, F its nn.functional.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

SIZES = {
    "4": (4,),
    "4K": (64, 64),
    "1M": (1024, 1024),
    "16M": (4096, 4096),
    "gemm": (1024, 1024),
    "conv": (4,),
}

# size, dtype (f32, bf16), layout (contiguous, transposed, broadcast: y is a row), threads, expression
TABLE = """
4    f32  contiguous 1  x + y
4    f32  contiguous 1  x * 2.0
4    f32  contiguous 1  x - y
4    f32  contiguous 1  x / y
4    f32  contiguous 1  x == y
4    f32  contiguous 1  x.view(2, 2)
4    f32  contiguous 1  x.reshape(2, 2)
4    f32  contiguous 1  x.unsqueeze(0)
4    f32  contiguous 1  x[1:3]
4    f32  contiguous 1  x.expand(3, 4)
4    f32  contiguous 1  x.to(L.float64)
4    f32  contiguous 1  x.clone()
4    f32  contiguous 1  x.sum()
4    f32  contiguous 1  x.mean()
4    f32  contiguous 1  x.max()
4    f32  contiguous 1  x.sum(0)
4    f32  contiguous 1  L.cat([x, y])
4    f32  contiguous 1  L.stack([x, y])
4    f32  contiguous 1  L.zeros(4)
4    f32  contiguous 1  L.arange(4)
4    f32  contiguous 1  L.ones_like(x)
4    f32  contiguous 1  L.where(m, x, y)
4    f32  contiguous 1  x.clamp(0.0, 1.0)
4    f32  contiguous 1  L.exp(x)
4    f32  contiguous 1  x.pow(2)
4    f32  contiguous 1  F.relu(x)
4    f32  contiguous 1  F.softmax(x, 0)
4    f32  contiguous 1  F.layer_norm(x, (4,))
4    f32  contiguous 1  x.split(2)
4    f32  contiguous 1  x.add_(y)
4    f32  contiguous 1  x.masked_fill(m, 0.0)
4    f32  contiguous 1  x[0].item()
4K   f32  contiguous 1  x + y
4K   f32  contiguous 1  x * y
4K   f32  transposed 1  x + y
4K   f32  broadcast  1  x + y
4K   bf16 contiguous 1  x + y
4K   f32  contiguous 1  x.add_(y)
4K   f32  contiguous 1  L.exp(x)
4K   f32  contiguous 1  L.tanh(x)
4K   f32  contiguous 1  F.gelu(x)
4K   f32  contiguous 1  F.silu(x)
4K   f32  contiguous 1  x > y
4K   f32  contiguous 1  L.where(m, x, y)
4K   f32  contiguous 1  x.to(L.bfloat16)
4K   f32  transposed 1  x.contiguous()
4K   f32  contiguous 1  x.sum()
4K   f32  contiguous 1  x.sum(0)
4K   f32  contiguous 1  x.mean(1)
4K   f32  contiguous 1  x.argmax(1)
4K   f32  contiguous 1  x.var(1)
4K   f32  contiguous 1  F.softmax(x, -1)
4K   bf16 contiguous 1  F.softmax(x, -1)
4K   f32  contiguous 1  F.layer_norm(x, (64,))
4K   f32  contiguous 1  L.cat([x, y], 1)
4K   f32  contiguous 1  x @ y
4K   f32  contiguous 1  F.linear(x, y, v)
4K   f32  contiguous 1  x[i]
4K   f32  contiguous 1  F.embedding(i, x)
4K   f32  contiguous 1  x.cumsum(1)
4K   f32  contiguous 1  x.sort(1)
4K   f32  contiguous 1  x.topk(5, 1)
4K   f32  contiguous 1  F.cross_entropy(x, i)
4K   f32  contiguous 1  L.tril(x)
4K   f32  contiguous 1  F.pad(x, (1, 1))
4K   f32  contiguous 1  x.repeat(2, 1)
4K   f32  contiguous 1  L.randn(64, 64)
4K   f32  contiguous 1  F.dropout(x, 0.1)
1M   f32  contiguous 1  x + y
1M   f32  contiguous 2  x + y
1M   f32  transposed 1  x + y
1M   f32  broadcast  1  x + y
1M   bf16 contiguous 1  x + y
1M   bf16 contiguous 2  x * y
1M   f32  contiguous 1  L.exp(x)
1M   f32  contiguous 2  L.tanh(x)
1M   bf16 contiguous 1  F.gelu(x)
1M   f32  contiguous 1  F.gelu(x)
1M   f32  contiguous 1  L.sin(x)
1M   f32  contiguous 1  L.log(x.abs())
1M   f32  contiguous 1  x.pow(2)
1M   f32  contiguous 1  L.where(m, x, y)
1M   f32  contiguous 1  x.masked_fill(m, 0.0)
1M   f32  transposed 1  x.contiguous()
1M   f32  contiguous 1  x.to(L.bfloat16)
1M   f32  contiguous 1  x.sum()
1M   f32  contiguous 2  x.sum(0)
1M   f32  contiguous 1  x.sum(1)
1M   f32  transposed 1  x.sum(1)
1M   bf16 contiguous 1  x.mean(1)
1M   f32  contiguous 1  x.max(1)
1M   f32  contiguous 1  x.argmax(0)
1M   f32  contiguous 1  x.var(1)
1M   f32  contiguous 1  F.softmax(x, -1)
1M   bf16 contiguous 2  F.softmax(x, -1)
1M   f32  contiguous 1  F.log_softmax(x, -1)
1M   f32  contiguous 1  F.layer_norm(x, (1024,))
1M   bf16 contiguous 1  F.layer_norm(x, (1024,))
1M   f32  contiguous 1  L.cat([x, y], 1)
1M   f32  contiguous 1  x[i]
1M   f32  contiguous 1  x.gather(1, k)
1M   f32  contiguous 1  x.cumsum(1)
1M   f32  contiguous 1  x.sort(1)
1M   f32  contiguous 1  L.randn(1024, 1024)
1M   f32  contiguous 1  F.dropout(x, 0.1)
16M  f32  contiguous 1  x + y
16M  f32  contiguous 2  x * y
16M  f32  transposed 1  x + y
16M  f32  broadcast  2  x + y
16M  bf16 contiguous 1  x + y
16M  f32  contiguous 1  L.exp(x)
16M  f32  contiguous 2  F.gelu(x)
16M  f32  contiguous 1  x.sum()
16M  f32  contiguous 2  F.softmax(x, -1)
16M  f32  contiguous 1  F.layer_norm(x, (4096,))
16M  f32  contiguous 1  x.clone()
gemm f32  contiguous 1  x @ y
gemm f32  transposed 2  x @ y
gemm bf16 contiguous 1  x @ y
gemm f32  contiguous 1  k @ k
gemm f32  contiguous 1  L.bmm(b, b)
conv f32  contiguous 1  F.conv2d(image, filters, padding=1)
conv f32  contiguous 2  F.conv2d(image, filters, stride=2)
conv f32  contiguous 1  F.max_pool2d(image, 2)
conv f32  contiguous 1  F.batch_norm(image, None, None, training=True)
"""  # fmt: skip

DTYPES = {"f32": "float32", "bf16": "bfloat16"}


@dataclass(frozen=True)
class OperatorRow:
    """One line of the table; `call(library)` gives what to time."""

    size: str
    dtype: str
    layout: str
    threads: int
    expression: str

    @property
    def name(self) -> str:
        return f"{self.size} {self.dtype} {self.layout} {self.threads}t  {self.expression}"

    def call(self, library: Any) -> Callable[[], Any]:
        return eval(f"lambda: {self.expression}", _inputs(library, self))  # noqa: S307 (our own table)


def rows() -> list[OperatorRow]:
    """The table's rows, in its order."""
    found = []
    for line in TABLE.strip().splitlines():
        size, dtype, layout, threads, expression = line.split(None, 4)
        found.append(OperatorRow(size, dtype, layout, int(threads), expression))
    return found


def _inputs(L: Any, row: OperatorRow) -> dict[str, Any]:
    """The names that an expression reads, with the same values in both libraries."""
    shape, dtype = SIZES[row.size], getattr(L, DTYPES[row.dtype])
    count = math.prod(shape)

    def values(*shape: int, offset: float = 0.0) -> Any:
        n = math.prod(shape)
        flat = ((L.arange(n, dtype=L.float32) + offset) % 1009) / 1009.0 + 0.01
        return flat.reshape(*shape).to(dtype)

    x, y = values(*shape), values(*shape, offset=17.0)
    if row.layout == "transposed":
        x = x.t()
    if row.layout == "broadcast":
        y = values(shape[-1])
    rows_of_x = shape[0]
    k = (L.arange(count) * 7919) % shape[-1]
    return {
        "L": L, "F": L.nn.functional, "x": x, "y": y, "v": values(shape[-1]), "m": x > 0.5,
        "i": (L.arange(rows_of_x) * 31) % rows_of_x, "k": k.reshape(*shape),
        "b": values(64, 64, 64) if row.size == "gemm" else None,
        "image": values(16, 32, 32, 32) if row.size == "conv" else None,
        "filters": values(64, 32, 3, 3) if row.size == "conv" else None,
    }  # fmt: skip
