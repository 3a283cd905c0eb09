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
    """Products of matrices by group, as layers of experts need them: of rows, of columns, or of sums.

    As `torch.nn.functional.grouped_mm`, for every dtype and every size.

    Args:
        mat_a (Tensor): `(rows, k)`, `(groups, m, k)` or `(m, k)`.
        mat_b (Tensor): `(groups, k, n)`, `(k, columns)` or `(k, n)`.
        offs (Tensor, optional): `(groups)`, ints that rise: where each group of rows, columns or `k` ends.
            Needed unless both matrices have 3 dimensions. Default: None.
        bias (Tensor, optional): Not supported. Default: None.
        out_dtype (dtype, optional): Of the result. Default: that of the product.

    Returns:
        Tensor: `(rows, n)` for groups of rows, `(m, columns)` for groups of columns, each zero where no
        group is; `(groups, m, n)` for two 2-d matrices, grouped along `k`, and for two 3-d ones.

    Raises:
        RuntimeError: Another number of dimensions, `offs` missing or not wanted, or ends that do not rise
            from 0 to at most the size.
        NotImplementedError: `bias` is given.

    Example:
        >>> tokens, experts = mica.ones(3, 2), mica.stack([mica.eye(2), 10 * mica.eye(2)])
        >>> mica.nn.functional.grouped_mm(tokens, experts, offs=mica.tensor([1, 3]))
        tensor([[ 1.,  1.],
                [10., 10.],
                [10., 10.]])
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
