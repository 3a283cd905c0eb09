"""Sorting and topk of lines that are one number each, expanded, beside the same numbers in memory of their own."""

from __future__ import annotations

import numpy as np
import pytest

import mica

DTYPES = ["float32", "float64", "int64", "uint8", "bool", "float16", "bfloat16"]
SHAPES = [(1,), (2,), (257,), (3, 5), (1, 300), (300, 1), (4, 3, 17), (0, 3), (3, 0)]


def _number(dtype: str) -> mica.Tensor:
    return mica.tensor([float("nan")] if dtype == "float32" else [1]).to(getattr(mica, dtype))


def _equal(got: tuple[mica.Tensor, ...], expected: tuple[mica.Tensor, ...]) -> None:
    for a, b in zip(got, expected, strict=True):
        assert a.shape == b.shape
        np.testing.assert_array_equal(a.to(mica.float64).numpy(), b.to(mica.float64).numpy())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_expanded_is_as_its_copy(shape: tuple[int, ...], dtype: str) -> None:
    for dim in range(len(shape)):
        # One number for all, and one for each line.
        line = [1 if d == dim else n for d, n in enumerate(shape)]
        many = mica.arange(max(int(np.prod(line)), 1))[: int(np.prod(line))].reshape(line)
        for x in (_number(dtype).expand(shape), many.to(getattr(mica, dtype)).expand(shape)):
            copy = x.clone(memory_format=mica.contiguous_format)
            for descending in (False, True):
                got = mica.sort(x, dim=dim, descending=descending, stable=True)
                _equal(got, mica.sort(copy, dim=dim, descending=descending, stable=True))
            for k in {0, min(1, shape[dim]), shape[dim] // 2, shape[dim]}:
                if dtype != "bool":
                    _equal(mica.topk(x, k, dim), mica.topk(copy, k, dim))


def test_results_of_any_stride() -> None:
    x = mica.tensor([[2.0], [7.0]]).expand(2, 300)
    values, indices = mica.zeros(300, 2).t(), mica.zeros(300, 4, dtype=mica.int64)[:, ::2].t()
    mica.sort(x, stable=True, dim=1, out=(values, indices))
    _equal((values, indices), tuple(mica.sort(x.clone(), stable=True, dim=1)))
