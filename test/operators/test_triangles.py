"""tril and triu of matrices that lie in memory row by row, column by column and apart, beside NumPy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mica

SHAPES = [(1, 1), (5, 5), (3, 40), (40, 3), (65, 66), (0, 4), (4, 0)]
# Views of shape (2, rows, columns), over memory that has more.
LAYOUTS: dict[str, Callable[[Any, int, int], Any]] = {
    "rows": lambda x, r, c: x[: 2 * r * c].view(2, r, c),
    "columns": lambda x, r, c: x[: 2 * r * c].view(2, c, r).mT,
    "apart": lambda x, r, c: x[: 4 * r * c].view(2, r, 2 * c)[..., ::2],
    "channels": lambda x, r, c: x[: 2 * r * c].view(r, c, 2).permute(2, 0, 1),
    "inside": lambda x, r, c: x[: 2 * (r + 1) * (c + 2)].view(2, r + 1, c + 2)[:, 1:, 1 : c + 1],
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["bool", "int16", "float32", "int64", "complex128"])
@pytest.mark.parametrize("name", ["tril", "triu"])
def test_triangles(name: str, dtype: str, layout: str) -> None:
    for rows, columns in SHAPES:
        for diagonal in (-70, -1, 0, 2, 70):
            memory = mica.arange(1, 4 * (rows + 1) * (columns + 2) + 1).to(getattr(mica, dtype))
            given, target = memory.clone(), memory.clone()
            x, out = (LAYOUTS[layout](m, rows, columns) for m in (memory, target))
            expected = getattr(np, name)(x.numpy(), diagonal)
            np.testing.assert_array_equal(getattr(mica, name)(x, diagonal).numpy(), expected)
            getattr(mica, name)(x, diagonal, out=out)
            np.testing.assert_array_equal(out.numpy(), expected)
            getattr(x, name + "_")(diagonal)
            np.testing.assert_array_equal(x.numpy(), expected)
            # What lies between the elements stays.
            kept = mica.ones_like(memory, dtype=mica.bool)
            LAYOUTS[layout](kept, rows, columns).fill_(False)
            assert bool((memory[kept] == given[kept]).all())
