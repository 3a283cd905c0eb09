"""Joining tensors whose part of a row is a single element (dstack, column_stack, stack along the last dimension)."""

from __future__ import annotations

import numpy as np
import pytest

import mica

DTYPES = ["uint8", "bool", "int16", "int32", "float32", "int64", "float64", "complex64", "complex128"]


def _parts(count: int, rows: int, dtype: str, layout: str) -> list[np.ndarray]:
    draw = np.random.default_rng(count * 1000 + rows)
    step = 2 if layout == "stepped" else 1
    whole = [draw.integers(0, 100, rows * step + 3).astype(dtype) for _ in range(count)]
    return [w[3:][::step][:rows] if layout != "dense" else w[:rows] for w in whole]


@pytest.mark.parametrize("layout", ["dense", "offset", "stepped"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_is_as_numpy_joins(dtype: str, layout: str) -> None:
    for count in range(1, 6):
        for rows in (0, 1, 2, 15, 16, 17, 31, 33, 64, 257):
            arrays = _parts(count, rows, dtype, layout)
            # from_numpy keeps offsets and steps.
            parts = [mica.from_numpy(a) for a in arrays]
            np.testing.assert_array_equal(mica.dstack(parts).numpy(), np.dstack(arrays))
            np.testing.assert_array_equal(mica.column_stack(parts).numpy(), np.column_stack(arrays))
            np.testing.assert_array_equal(mica.stack(parts, dim=-1).numpy(), np.stack(arrays, axis=-1))


def test_over_threads_and_expanded_parts() -> None:
    n = 1_000_003
    a, b = mica.arange(n), mica.arange(n, 0, -1)
    got = mica.dstack([a, b]).numpy()
    np.testing.assert_array_equal(got[0, :, 0], np.arange(n))
    np.testing.assert_array_equal(got[0, :, 1], np.arange(n, 0, -1))
    one = mica.tensor([5]).expand(70)
    np.testing.assert_array_equal(mica.dstack([one, one]).numpy(), np.full((1, 70, 2), 5))
