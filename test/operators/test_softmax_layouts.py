"""softmax and log_softmax of rows that do not lie together are those of rows that do."""

from __future__ import annotations

import pytest

import mica

DTYPES = [mica.float16, mica.bfloat16, mica.float32, mica.float64]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_rows_apart(name: str, dtype: mica.dtype) -> None:
    mica.manual_seed(0)
    tolerance = {"rtol": 4 * mica.finfo(dtype).eps, "atol": 4 * mica.finfo(dtype).eps}
    for rows, n in ((1, 9), (5, 3), (40, 8), (300, 70), (3, 5000)):
        x = mica.randn(2, n, rows).to(dtype)
        for strided in (x[0].t(), x.transpose(1, 2), x.permute(2, 0, 1), x[0, :, :1].t().expand(4, n)):
            function = getattr(mica, name)
            expected, found = function(strided.contiguous(), -1), function(strided, -1)
            assert found.is_contiguous() and mica.allclose(found, expected, **tolerance)
            kept, out = strided.clone(), mica.empty(strided.shape, dtype=dtype)
            assert mica.equal(function(strided, -1, out=out), found) and mica.equal(strided, kept)
