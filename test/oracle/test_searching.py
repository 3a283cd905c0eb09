"""searchsorted, bucketize and repeat_interleave against torch: values in order, out of order
and equal ones, NaN, several lines, both sides, empty ones, and more than a thread's share."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import mica

DTYPES = ["float32", "float64", "int32", "int64"]
SIZES = [0, 1, 2, 7, 300]


def _values(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    x = rng.integers(-20, 20, shape) / (2 if dtype.startswith("float") else 1)
    if dtype.startswith("float"):
        x = np.where(rng.random(shape) < 0.1, np.nan, x)
    return x.astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("right", [False, True])
def test_searchsorted(dtype: str, right: bool) -> None:
    rng = np.random.default_rng(0)
    for size in SIZES:
        for lines, wanted in (((size,), (3, 5)), ((2, size), (2, 5000)), ((size,), ())):
            line, values = np.sort(_values(rng, lines, dtype)), _values(rng, wanted, dtype)
            for v in (values, np.sort(values, axis=None).reshape(wanted)):
                for narrow in (False, True):
                    ours, theirs = (
                        M.searchsorted(M.tensor(line), M.tensor(v), right=right, out_int32=narrow)
                        for M in (mica, torch)
                    )
                    np.testing.assert_array_equal(ours.numpy(), theirs.numpy())


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_places_of_repeats(dtype: str) -> None:
    rng = np.random.default_rng(0)
    for size in SIZES:
        repeats = rng.integers(0, 4, size).astype(dtype)
        for options in ({}, {"output_size": int(repeats.sum())}):
            ours, theirs = (M.repeat_interleave(M.tensor(repeats), **options) for M in (mica, torch))
            assert str(ours.dtype).split(".")[1] == str(theirs.dtype).split(".")[1]
            np.testing.assert_array_equal(ours.numpy(), theirs.numpy())
    with pytest.raises(RuntimeError):
        mica.repeat_interleave(mica.tensor([1, -1]))
