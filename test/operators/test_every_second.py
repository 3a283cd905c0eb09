"""Every second element, read by vectors up to the very end of memory, behind which a page forbids reading."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Iterator

import numpy as np
import pytest

import mica

LENGTHS = [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 65, 100, 127, 128]


@pytest.fixture(name="page")
def _page() -> Iterator[np.ndarray]:
    """The bytes of a page before one that may not be read."""
    memory = mmap.mmap(-1, 2 * mmap.PAGESIZE)
    bytes_ = np.frombuffer(memory, np.uint8)
    libc = ctypes.CDLL(None, use_errno=True)
    guard, readable = ctypes.c_void_p(bytes_.ctypes.data + mmap.PAGESIZE), 3
    assert libc.mprotect(guard, mmap.PAGESIZE, 0) == 0
    yield bytes_[: mmap.PAGESIZE]
    assert libc.mprotect(guard, mmap.PAGESIZE, readable) == 0


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "int64", "complex128"])
def test_every_second(dtype: str, page: np.ndarray) -> None:
    page[:] = np.random.default_rng(1).integers(0, 100, page.size, dtype=np.uint8)
    whole = page.view(dtype)
    for n in LENGTHS:
        last = whole[whole.size - (2 * n - 1) :]
        x = mica.from_numpy(last)[::2]
        assert x.data_ptr() == last.ctypes.data
        assert x.contiguous().numpy().tobytes() == last[::2].tobytes()
        np.testing.assert_array_equal((x + x).numpy(), last[::2] + last[::2])
        rows = mica.from_numpy(last).as_strided((1, n), (2 * n - 1, 2))
        assert rows.clone(memory_format=mica.contiguous_format).numpy().tobytes() == last[::2].tobytes()
