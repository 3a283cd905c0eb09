"""all and any of rows, around the pieces (4,096) and the short rows (8) of their loops, beside NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

import mica

DTYPES = [
    "bool",
    "uint8",
    "int16",
    "int32",
    "int64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
]


@pytest.mark.parametrize("dtype", DTYPES)
def test_truth_of_rows(dtype: str) -> None:
    kind = getattr(mica, dtype)
    for n in (0, 1, 7, 8, 9, 300, 4095, 4096, 4097, 8200):
        for place in {0, n // 2, n - 1} if n else {0}:
            truth = np.zeros((3, n), dtype=bool)
            truth[1, place : place + 1] = True
            for flags in (truth, ~truth):
                x = mica.tensor(flags).to(kind)
                if x.is_floating_point():  # -0 is zero, and NaN is not
                    x = mica.where(mica.tensor(flags), mica.tensor(float("nan"), dtype=kind), -x)
                for made in (x, mica.stack([x, x], -1)[..., 0], x.t().contiguous().t()):
                    for name in ("all", "any"):
                        whole, rows = getattr(made, name)(), getattr(made, name)(1)
                        assert bool(whole) == bool(getattr(flags, name)())
                        assert rows.tolist() == getattr(flags, name)(1).tolist()
                        assert rows.dtype == (mica.uint8 if dtype == "uint8" else mica.bool)
                        columns = getattr(made, name)(0, keepdim=True)
                        assert columns.tolist() == getattr(flags, name)(0, keepdims=True).tolist()
