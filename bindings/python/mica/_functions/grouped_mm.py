"""grouped_mm: a product of matrices for each group of rows or columns, as layers of experts need it.

Groups are given by where each ends, `offs`. What no group covers is zero. Gradients are those of
the products that it is made of.
"""

from __future__ import annotations

from typing import Any

import mica
from mica._C import Tensor


def grouped_mm(
    mat_a: Tensor,
    mat_b: Tensor,
    *,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: Any = None,
) -> Tensor:
    """Products by group: of rows of a 2-d `mat_a`, of columns of a 2-d `mat_b`, or of what both sum over.

    (rows, k) with (groups, k, n) gives (rows, n); (groups, m, k) with (k, columns) gives (m, columns);
    (m, sum) with (sum, n) gives (groups, m, n); two 3-d ones are multiplied matrix by matrix.
    """
    if mat_a.ndim not in (2, 3) or mat_b.ndim not in (2, 3):
        raise RuntimeError(
            f"Arguments `mat_a` and `mat_b` have {mat_a.ndim} and {mat_b.ndim} dimensions; expected 2 or 3."
        )
    if bias is not None:
        raise NotImplementedError("grouped_mm takes no bias; add it to the result.")
    if (offs is None) != (mat_a.ndim == mat_b.ndim == 3):
        raise RuntimeError(
            "grouped_mm needs `offs`, where each group ends, for 2-d matrices, and for 3-d ones alone it takes none."
        )
    if offs is None:
        found = mat_a @ mat_b
    else:
        ends = [int(e) for e in offs.tolist()]
        spans = list(zip([0, *ends], ends))
        total = (
            mat_a.shape[0]
            if mat_a.ndim == 2 and mat_b.ndim == 3
            else mat_b.shape[-1 if mat_a.ndim == 3 else 0]
        )
        if any(not 0 <= start <= end <= total for start, end in spans):
            raise RuntimeError(f"The ends of groups ({ends}) do not rise from 0 to at most ({total}).")
        groups = mat_a.shape[0] if mat_a.ndim == 3 else mat_b.shape[0] if mat_b.ndim == 3 else len(ends)
        if len(ends) != groups:
            raise RuntimeError(f"The number of ends ({len(ends)}) differs from that of groups ({groups}).")
        found = _products(mat_a, mat_b, spans, total)
    return found if out_dtype is None else found.to(out_dtype)


def _products(a: Tensor, b: Tensor, spans: list[tuple[int, int]], total: int) -> Tensor:
    if a.ndim == b.ndim:
        return mica.stack([a[:, start:end] @ b[start:end] for start, end in spans])
    rest = (spans[-1][1] if spans else 0, total)
    if a.ndim == 2:
        parts = [a[start:end] @ b[g] for g, (start, end) in enumerate(spans)]
        return mica.cat([*parts, a.new_zeros(rest[1] - rest[0], b.shape[2])])
    parts = [a[g] @ b[:, start:end] for g, (start, end) in enumerate(spans)]
    return mica.cat([*parts, a.new_zeros(a.shape[1], rest[1] - rest[0])], 1)
