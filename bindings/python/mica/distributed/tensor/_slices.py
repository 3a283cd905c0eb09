"""as_strided of a tensor that lies on a mesh: the same view made of select, slice and permute, where there is one.

Autograd asks for as_strided where a view was written whose base requires gradients.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mica._C import Tensor


def strided(x: Tensor, size: Sequence[int], stride: Sequence[int], offset: int | None) -> Any:
    """x.as_strided(size, stride, offset), or NotImplemented where it is no slice of x."""
    begins = _decoded(x, (x.storage_offset() if offset is None else offset) - x.storage_offset())
    if begins is None or 0 in size or 0 in x.shape:
        return NotImplemented
    dims: list[int | None] = []  # of x, for each of the result
    for s, t in zip(size, stride):
        found = None if s == 1 else _dim_of(x, s, t, begins, dims)
        if s != 1 and found is None:
            return NotImplemented
        dims.append(found)
    for d in range(x.ndim):
        if d in dims:
            at = dims.index(d)
            step = stride[at] // x.stride(d)
            last = begins[d] + (size[at] - 1) * step
            if (begins[d], last, step) != (0, x.shape[d] - 1, 1):
                x = _sliced(x, d, begins[d], last + 1, step)
    dropped = [d for d in range(x.ndim) if d not in dims]
    for d in reversed(dropped):
        x = x.select(d, begins[d])
    left = [d for d in range(len(begins)) if d not in dropped]
    x = x.permute([left.index(d) for d in dims if d is not None])
    for at, d in enumerate(dims):
        if d is None:
            x = x.unsqueeze(at)
    return x


def _sliced(x: Tensor, dim: int, begin: int, end: int, step: int) -> Tensor:
    cut: Tensor = x[(slice(None),) * dim + (slice(begin, end, step),)]
    return cut


def _decoded(x: Tensor, offset: int) -> list[int] | None:
    """The indices of the element that lies `offset` behind the first one."""
    begins = [0] * x.ndim
    for d in sorted(range(x.ndim), key=lambda d: -x.stride(d)):
        if x.stride(d) > 0 and x.shape[d] > 1:
            begins[d] = min(max(offset, 0) // x.stride(d), x.shape[d] - 1)
            offset -= begins[d] * x.stride(d)
    return None if offset else begins


def _dim_of(x: Tensor, size: int, stride: int, begins: list[int], taken: list[int | None]) -> int | None:
    """The dimension of x along which a dimension of the result goes."""
    fits = [
        d
        for d in range(x.ndim)
        if d not in taken
        and x.shape[d] > 1
        and 0 < x.stride(d) <= stride
        and stride % x.stride(d) == 0
        and begins[d] + (size - 1) * (stride // x.stride(d)) < x.shape[d]
    ]
    return max(fits, key=x.stride) if fits else None
