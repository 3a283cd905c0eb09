"""Products of integer matrices wrap exactly as NumPy's do, at every size and layout around the tiles."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import mica

DTYPES = ("uint8", "int8", "int16", "int32", "int64")
# Around the tiles' rows, vectors of every instruction set, strips of k, and what is multiplied as vectors.
SIZES = (0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 17, 31, 33, 63, 65, 127, 128, 129, 131, 257)


def laid(x: np.ndarray, layout: str) -> Any:
    """The same matrix by rows, by columns, in every other column of a wider one, or as one row repeated."""
    t = mica.from_numpy(x.copy())
    if layout == "columns":
        return t.t().contiguous().t()
    if layout == "spread":
        wide = mica.full((x.shape[0], 2 * x.shape[1] + 1), 7, dtype=t.dtype)
        wide[:, 1::2] = t
        return wide[:, 1::2]
    return t


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("left", ["rows", "columns", "spread"])
@pytest.mark.parametrize("right", ["rows", "columns", "spread"])
def test_products_wrap(dtype: str, left: str, right: str) -> None:
    choice = random.Random(f"{dtype} {left} {right}")
    draws = np.random.default_rng(len(dtype) + 7 * len(left) + 31 * len(right))
    limits = np.iinfo(dtype)
    for _ in range(120):
        m, k, n = choice.choice(SIZES), choice.choice(SIZES), choice.choice(SIZES)
        a = draws.integers(limits.min, limits.max, (m, k), dtype, endpoint=True)
        b = draws.integers(limits.min, limits.max, (k, n), dtype, endpoint=True)
        c = draws.integers(limits.min, limits.max, (m, n), dtype, endpoint=True)
        expected = a @ b
        x, y, z = laid(a, left), laid(b, right), laid(c, choice.choice(["rows", "columns", "spread"]))
        assert (mica.mm(x, y).numpy() == expected).all(), (m, k, n)
        alpha, beta = choice.choice([0, 1, 3]), choice.choice([0, 1, 5])
        with np.errstate(over="ignore"):
            added = np.array(beta, dtype) * c + np.array(alpha, dtype) * expected
        assert (mica.addmm(z, x, y, alpha=alpha, beta=beta).numpy() == added).all(), (m, k, n, alpha, beta)
        z.addmm_(x, y, alpha=alpha, beta=beta)
        assert (z.numpy() == added).all(), (m, k, n, alpha, beta)
