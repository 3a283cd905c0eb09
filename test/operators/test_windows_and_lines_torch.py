"""Windows added up, integers pooled, short lines gathered and scattered, and sorted lines searched: every layout
and dtype that has a kernel of its own, beside torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import mica

FLOATS = ["float16", "bfloat16", "float32", "float64", "complex64", "complex128"]
LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "dense": lambda x: x,
    "turned": lambda x: x.mT.contiguous().mT,
    "stepped": lambda x: x.repeat_interleave(2, -1)[..., ::2],
    "repeated": lambda x: x[..., :1].expand(*x.shape),
}


def _pair(x: np.ndarray[Any, Any], dtype: str) -> tuple[Any, Any]:
    return mica.tensor(x).to(getattr(mica, dtype)), torch.tensor(x).to(getattr(torch, dtype))


def _numbers(shape: tuple[int, ...], dtype: str, seed: int = 1) -> tuple[Any, Any]:
    """Small whole numbers, whose sums are exact in every dtype."""
    x = np.random.default_rng(seed).integers(-2, 3, shape)
    return _pair(x + 1j * x[::-1] if dtype.startswith("complex") else x, dtype)


def _same(ours: Any, theirs: Any) -> None:
    assert tuple(ours.shape) == tuple(theirs.shape)
    wide = {"complex64": "complex128", "float16": "float64", "bfloat16": "float64"}
    name = str(theirs.dtype)[6:]
    ours, theirs = (x.to(getattr(m, wide.get(name, name))) for m, x in ((mica, ours), (torch, theirs)))
    np.testing.assert_array_equal(ours.numpy(), theirs.numpy())


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_windows_along_a_dimension(dtype: str, layout: str) -> None:
    for shape, dim, size, step in (
        *(((9,), 0, 3, 2), ((4, 33), 1, 8, 4), ((33, 4), 0, 8, 3), ((2, 17, 5), 1, 17, 1)),
        *(((2, 3, 40), -1, 1, 5), ((300, 200), 0, 2, 1)),
    ):
        gradients = []
        for k in (0, 1):
            x = _numbers(shape, dtype)[k].requires_grad_()
            windows = x.unfold(dim, size, step)
            g = LAYOUTS[layout](_numbers(tuple(windows.shape), dtype, 2)[k])
            gradients.append((mica, torch)[k].autograd.grad(windows, x, g)[0])
        _same(*gradients)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", FLOATS[:5])
def test_columns_of_images(dtype: str, layout: str) -> None:
    for channels, size, options in ((1, (4, 5), {}), (3, (9, 8), {"padding": 1, "stride": (2, 1)})):
        taps, places = 9 * channels, {(4, 5): 6, (9, 8): 40}[size]
        ours, theirs = (LAYOUTS[layout](x) for x in _numbers((2, taps, places), dtype))
        _same(
            mica.nn.functional.fold(ours, size, 3, **options),
            torch.nn.functional.fold(theirs, size, 3, **options),
        )


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64"])
def test_maxima_of_integers(dtype: str) -> None:
    limits = np.iinfo(dtype)
    x = np.random.default_rng(3).integers(limits.min, limits.max, (2, 3, 11, 14), dtype=dtype, endpoint=True)
    for options in ({}, {"padding": 1}, {"stride": 1, "dilation": 2}, {"ceil_mode": True}):
        for turn in (lambda t: t, lambda t: t.mT):
            found = []
            for m, t in zip((mica, torch), _pair(x, dtype)):
                found.append(m.nn.functional.max_pool2d(turn(t), 3, return_indices=True, **options))
            for ours, theirs in zip(*found):
                _same(ours, theirs)


@pytest.mark.parametrize("index_dtype", ["int64", "int32"])
def test_short_lines(index_dtype: str) -> None:
    rng = np.random.default_rng(5)
    for shape in ((3,), (5, 1), (6, 2), (4, 3, 5), (2, 3, 1, 4), (7, 1, 1, 2, 3)):
        for dim in range(len(shape)):
            x, source = rng.standard_normal((2, *shape))
            index = rng.integers(0, shape[dim], shape)
            for turn in (lambda t: t, lambda t: t.transpose(0, -1).contiguous().transpose(0, -1)):
                found = []
                for m in (mica, torch):
                    a, b = (turn(m.tensor(v)) for v in (x, source))
                    i = turn(m.tensor(index))
                    if m is mica:
                        i = i.to(getattr(mica, index_dtype))
                    found.append((m.gather(a, dim, i), m.scatter_add(a, dim, i, b)))
                np.testing.assert_array_equal(found[0][0].numpy(), found[1][0].numpy())
                np.testing.assert_allclose(found[0][1].numpy(), found[1][1].numpy(), 1e-15, 1e-15)


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("dtype", ["uint8", "int64", "float16", "bfloat16", "float32", "float64"])
def test_searches_of_any_layout(dtype: str, right: bool) -> None:
    rng = np.random.default_rng(7)
    lines = np.sort(rng.integers(0, 50, (3, 40)), -1)
    values = rng.integers(0, 55, (3, 21))
    for layout in LAYOUTS.values():
        for count in (21, 1):  # many, and too few for a copy of the lines
            found = []
            for k in (0, 1):
                of_lines, of_values = (layout(_pair(v, dtype)[k]) for v in (lines, values[:, :count]))
                found.append((mica, torch)[k].searchsorted(of_lines, of_values, right=right))
            _same(*found)
