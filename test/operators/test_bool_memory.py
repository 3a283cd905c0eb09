"""In memory of bools every byte other than 0 is true.

Such bytes come from views of other dtypes, buffers, files, DLPack and memory that nobody wrote.
Every operator runs on its samples twice, with the bytes 0 and 1 and with others for the ones; the
results must be the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from every_operator import each, judge

import mica
from mica.conformance.operators import ENTRIES, Entry, arguments, attempt, operator

DTYPES = ("bool", "float32", "int64", "bfloat16", "complex64")
LAYOUTS = ("contiguous", "transposed", "sliced")
BYTES = (2, 255, 128, 3, 1, 64)


def raw(x: Any) -> Any:
    """The same truth values in other bytes, in the same strides."""
    count = x.numel()
    pattern = mica.tensor([BYTES[k % len(BYTES)] for k in range(count)], dtype=mica.uint8).view(x.shape)
    result = mica.empty_strided(x.shape, x.stride(), dtype=mica.uint8)
    if count and all(s > 0 for n, s in zip(x.shape, x.stride()) if n > 1):
        result.copy_(x.to(mica.uint8) * pattern)
        return result.view(mica.bool)
    return (x.to(mica.uint8) * pattern).view(mica.bool)


def converted(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [converted(v) for v in value]
    if isinstance(value, mica.Tensor) and value.dtype == mica.bool:
        return raw(value)
    return value


def has_bool(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(has_bool(v) for v in value)
    return isinstance(value, mica.Tensor) and value.dtype == mica.bool


def shown(value: Any) -> Any:
    """A result as NumPy's arrays, truth values by their bytes."""
    if isinstance(value, (tuple, list)):
        return [shown(v) for v in value]
    if not isinstance(value, mica.Tensor):
        return value
    if value.dtype == mica.bool:
        return value.contiguous().view(mica.uint8).numpy() != 0
    return (value.to(mica.float32) if value.dtype == mica.bfloat16 else value.resolve_conj()).numpy()


def same(a: Any, b: Any) -> bool:
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, np.ndarray):
        return (
            a.dtype == b.dtype and a.shape == b.shape and np.array_equal(a, b, equal_nan=a.dtype.kind in "fc")
        )
    return bool(a == b)


def wrong(entry: Entry) -> set[str]:
    found = set()
    for dtype in DTYPES:
        for layout in LAYOUTS:
            for call in entry.calls():
                made, _ = attempt(arguments, mica, call, dtype, layout)
                if made is None or not has_bool([*made[0], *made[1].values()]):
                    continue
                again = converted(made[0]), {k: converted(v) for k, v in made[1].items()}
                result, error = attempt(operator(entry), *made[0], **made[1])
                if error is not None:
                    continue
                other, error = attempt(operator(entry), *again[0], **again[1])
                if error is not None or not same(shown(result), shown(other)):
                    found.add(f"{dtype} {layout}{f': {error}' if error else ''}")
    return found


@each("bytes of bools", [name for name, e in ENTRIES.items() if e.calls()])
def test_every_byte_but_zero_is_true(name: str) -> None:
    judge("bytes of bools", name, sorted(wrong(ENTRIES[name])))


SIZES = (1, 15, 31, 64, 257, 4099, 70001)
TRUTHS: dict[str, Callable[[Any], Any]] = {
    "sum": lambda x: x.sum(),
    "sum of rows": lambda x: x.expand(3, -1).sum(1),
    "sum of columns": lambda x: x.expand(3, -1).sum(0),
    "mean": lambda x: x.to(mica.float32).mean(),
    "count": lambda x: x.count_nonzero(),
    "nonzero": lambda x: x.nonzero(),
    "any": lambda x: x.any(),
    "all": lambda x: x.all(),
    "all of some": lambda x: x[x].all(),
    "not": lambda x: ~x,
    "logical not": lambda x: x.logical_not(),
    "and": lambda x: x & x.roll(1),
    "or": lambda x: x | x.roll(1),
    "xor": lambda x: x ^ x.roll(1),
    "itself xor": lambda x: (x ^ x).any(),
    "equal to itself in other bytes": lambda x: x == (x.to(mica.uint8) * 7).view(mica.bool),
    "equal": lambda x: mica.equal(x, x.clone()),
    "to int": lambda x: x.to(mica.int64),
    "to half": lambda x: x.half(),
    "to uint8": lambda x: x.byte(),
    "to complex": lambda x: x.to(mica.complex64),
    "plus": lambda x: x + 1,
    "times": lambda x: x * 2.5,
    "mask": lambda x: mica.arange(x.numel())[x],
    "where": lambda x: mica.where(x, 1.0, 0.0),
    "masked fill": lambda x: mica.zeros(x.shape).masked_fill(x, 3),
    "masked select": lambda x: mica.arange(x.numel()).masked_select(x),
    "masked scatter": lambda x: mica.zeros(x.shape).masked_scatter(x, mica.arange(float(x.numel()))),
    "assignment": lambda x: _assigned(x),
    "sort": lambda x: x.sort(stable=True),
    "argsort": lambda x: x.argsort(stable=True),
    "cumsum": lambda x: x.cumsum(0),
    "cumprod": lambda x: x.cumprod(0),
    "max": lambda x: x.max(),
    "argmax": lambda x: x.to(mica.uint8).argmax(),
    "unique": lambda x: x.unique(return_counts=True),
    "item": lambda x: mica.tensor([v.item() for v in x[:9]]),
    "tolist": lambda x: mica.tensor(x.tolist()),
    "cat": lambda x: mica.cat([x, x]).sum(),
    "matmul": lambda x: x.float() @ x.float(),
    "less": lambda x: x < x.roll(1),
    "maximum": lambda x: mica.maximum(x, x.roll(1)),
    "prod": lambda x: x.prod(),
    "bincount": lambda x: x.to(mica.int64).bincount(),
    "isin": lambda x: mica.isin(x.to(mica.int64), mica.tensor([1])),
    "searching": lambda x: x.to(mica.int64).amax(),
}


def _assigned(x: Any) -> Any:
    y = mica.zeros(x.shape)
    y[x] = 5
    return y


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", TRUTHS)
def test_truth_of_sizes(name: str, size: int) -> None:
    x = mica.tensor(np.random.default_rng(size).integers(0, 2, size).astype(bool))
    assert same(shown(TRUTHS[name](raw(x))), shown(TRUTHS[name](x)))


def test_where_such_bytes_come_from() -> None:
    content = bytes([0, 2, 1, 255, 0, 64])
    for x in (
        mica.frombuffer(bytearray(content), dtype=mica.bool),
        mica.tensor(list(content), dtype=mica.uint8).view(mica.bool),
        mica.from_numpy(np.frombuffer(content, np.uint8).copy().view(bool)),
        mica.from_dlpack(np.frombuffer(content, np.uint8).copy().view(bool)),
        mica.empty(0, dtype=mica.bool).set_(mica.tensor(list(content), dtype=mica.uint8).untyped_storage()),
    ):
        assert x.sum() == 4 and x.tolist() == [False, True, True, True, False, True]
        assert x.nonzero().flatten().tolist() == [1, 2, 3, 5] and (~x).sum() == 2
        assert (x ^ mica.ones(6, dtype=mica.bool)).sum() == 2 and x.to(mica.int64).tolist() == [
            0,
            1,
            1,
            1,
            0,
            1,
        ]
