"""Memory that nobody wrote, in deterministic mode: what torch fills it with, call by call and dtype by dtype."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

import mica

CALLS = [
    "L.empty(3, dtype=d)",
    "L.empty(0, dtype=d)",
    "L.empty((2, 2, 2, 2), dtype=d, memory_format=L.channels_last)",
    "L.empty_strided((2, 2), (3, 1), dtype=d)",
    "L.empty_permuted((2, 3), (1, 0), dtype=d)",
    "L.empty_like(L.ones(2, dtype=d))",
    "L.empty_like(L.ones(2, 3).T, dtype=d)",
    "L.ones(2, dtype=d).new_empty(2)",
    "L.ones(2, dtype=d).new_empty_strided((2,), (1,))",
    "L.zeros(2, dtype=d).resize_(2, 3)",
    "L.zeros(6, dtype=d)[2:4].resize_(3, 3)",
    "L.zeros(6, dtype=d).resize_(2, 2)",
    "L.zeros(1, dtype=d).resize_as_(L.ones(3))",
]
# What nobody filled may hold a NaN here and there: so much memory holds other values too.
FRESH = 1 << 22
DTYPES = [
    "float32",
    "float16",
    "bfloat16",
    "float64",
    "complex64",
    "bool",
    "uint8",
    "int8",
    "int16",
    "int64",
    "uint16",
]


@pytest.fixture
def deterministic() -> Iterator[None]:
    for L in (mica, torch):
        L.use_deterministic_algorithms(True)
    yield
    for L in (mica, torch):
        L.use_deterministic_algorithms(False)
        L.utils.deterministic.fill_uninitialized_memory = True


def _values(L: Any, text: str, dtype: str) -> Any:
    made = eval(text, {"L": L, "d": getattr(L, dtype)})
    return (made.float() if dtype == "bfloat16" else made).numpy()


@pytest.mark.parametrize("text", CALLS)
def test_memory_holds_what_torch_fills_in(deterministic: None, text: str) -> None:
    for dtype in DTYPES:
        np.testing.assert_array_equal(_values(mica, text, dtype), _values(torch, text, dtype), err_msg=dtype)


def _filled(library: Any) -> bool:
    """Whether memory that nobody wrote is filled, with what no poisoned byte gives."""
    return bool((library.empty(FRESH, dtype=library.int64) == library.iinfo(library.int64).max).all())


def test_the_flag_and_the_mode_are_both_needed(deterministic: None) -> None:
    for L in (mica, torch):
        assert L.utils.deterministic.fill_uninitialized_memory is True
        L.utils.deterministic.fill_uninitialized_memory = False
        assert not _filled(L)
        L.utils.deterministic.fill_uninitialized_memory = True
        assert L.empty(1024).isnan().all()
        assert _filled(L)
        with pytest.raises(RuntimeError):
            L.utils.deterministic.fill_uninitialized_memory = 3
        L.use_deterministic_algorithms(False)
        assert not _filled(L)


def test_inside_of_transforms_and_modes(deterministic: None) -> None:
    assert mica.vmap(lambda x: x.new_empty(2) + x)(mica.ones(3)).isnan().all()
    assert mica.empty(2, requires_grad=True).isnan().all()
    with mica.inference_mode():
        assert mica.empty(2).isnan().all()
    assert mica.empty(2, device="meta").shape == (2,)
