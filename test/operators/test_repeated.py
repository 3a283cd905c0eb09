"""Pointwise calls whose inputs all stand still along some dimensions: computed once, they are what they are
of dense inputs, bit by bit, in every dtype and layout of the result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import mica

# Around the elements (4,096) and repetitions (4) from which what repeats is computed once.
SHAPES = [(1, 4096), (4, 1024), (4, 1023), (3, 2000), (5, 819), (5, 820), (1, 1), (0, 5000), (70, 1030)]
DTYPES = ["bool", "uint8", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64"]
LAYOUTS: dict[str, Callable[[Any, tuple[int, int]], Any]] = {
    "number": lambda x, shape: x[:1, :1].expand(shape),
    "rows": lambda x, shape: x[:1].expand(shape),
    "columns": lambda x, shape: x[:, :1].expand(shape),
    "turned": lambda x, shape: x[:, :1].expand(shape).t().contiguous()[:1].expand(shape[1], shape[0]).t(),
}
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "exp": lambda x: mica.exp(x),
    "plus": lambda x: x + x,
    "by a number": lambda x: x * 3,
    "same": lambda x: x == x,
    "to int64": lambda x: x.to(mica.int64) if not x.is_complex() else x.real.to(mica.int64),
    "to half": lambda x: x.to(mica.float16) if not x.is_complex() else x.imag.to(mica.float16),
}


def _numbers(shape: tuple[int, int], dtype: str) -> Any:
    mica.manual_seed(3)
    x = mica.randint(0, 9, shape)
    return mica.complex(x.float(), -x.float()) if dtype == "complex64" else x.to(getattr(mica, dtype))


def _bytes(x: Any) -> bytes:
    made = x.clone(memory_format=mica.contiguous_format)
    made = (mica.view_as_real(made) if made.is_complex() else made).reshape(-1)
    return made.view(mica.uint8).numpy().tobytes()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_repeated_inputs(dtype: str, layout: str) -> None:
    for shape in SHAPES:
        if 0 in shape and layout in ("number", "rows"):
            continue
        x = LAYOUTS[layout](_numbers(shape, dtype), shape)
        for name, function in FUNCTIONS.items():
            assert _bytes(function(x)) == _bytes(function(x.contiguous())), (shape, name)


@pytest.mark.parametrize("dtype", DTYPES)
def test_repeated_inputs_into_strided_outputs(dtype: str) -> None:
    """Fills, and results that are written into a transposed, a stepped and a reversed place."""
    for rows, columns in SHAPES:
        whole = mica.zeros(2 * columns + 3, rows + 2, dtype=getattr(mica, dtype))
        for out in (
            whole[1 : columns + 1, 1 : rows + 1].t(),
            whole[: 2 * columns : 2, :rows].t(),
            whole[:columns, :rows].reshape(rows, columns).flip(0),
        ):
            x = _numbers((1, columns), dtype).expand(rows, columns)
            mica.add(x, x, out=out)
            assert _bytes(out) == _bytes(x.contiguous() + x.contiguous())
            out.fill_(3)
            assert bool((out == mica.tensor(3).to(out.dtype)).all())
            out.zero_()
            assert not bool(out.any())
        assert not bool(whole[:, rows + 1 :].any())


@pytest.mark.parametrize("size", [1, 2, 4, 8, 16])
def test_long_fills(size: int) -> None:
    """Around the bytes (2,048 and 4,096) up to which one loop fills; of equal and of unequal bytes."""
    dtype = {1: "uint8", 2: "int16", 4: "int32", 8: "int64", 16: "complex128"}[size]
    for count in (2048, 4096, 8192, 262144):
        for n in {(count + more) // size for more in (-size, 0, size, 5 * size)}:
            for value in (0, 1, 77):
                x = mica.zeros(n + 2, dtype=getattr(mica, dtype))
                x[1 : n + 1].fill_(value)
                assert bool((x[1 : n + 1] == value).all()) and not bool(x[0]) and not bool(x[n + 1])
