"""NumPy, buffers and DLPack without torch; memory stays alive and is shared."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mica

DTYPES = ["bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16", "float32", "float64", "complex64", "complex128"]  # fmt: skip


@pytest.mark.parametrize("name", DTYPES)
def test_round_trip_shares_memory(name: str) -> None:
    array = np.arange(12).reshape(3, 4).astype(name)[:, ::2]
    tensor = mica.from_numpy(array)
    assert tensor.dtype == getattr(mica, name) and tensor.tolist() == array.tolist()
    back = tensor.numpy()
    assert back.dtype == array.dtype and back.ctypes.data == array.ctypes.data


def test_subclasses_of_arrays(tmp_path: Path) -> None:
    np.arange(6, dtype=np.uint16).tofile(tmp_path / "ids.bin")
    mapped = np.memmap(tmp_path / "ids.bin", dtype=np.uint16, mode="r")
    batch = mapped[1:4].astype(np.int64)
    assert type(batch) is np.memmap
    for make in (mica.from_numpy, mica.as_tensor):
        tensor = make(batch)
        assert tensor.tolist() == [1, 2, 3] and tensor.data_ptr() == batch.ctypes.data
    assert mica.tensor(batch).tolist() == [1, 2, 3] and mica.asarray(batch).tolist() == [1, 2, 3]
    assert mica.arange(10)[batch].tolist() == [1, 2, 3]
    assert mica.tensor([batch, batch]).shape == (2, 3)


def test_array_outlives_its_name() -> None:
    tensor = mica.from_numpy(np.arange(1000))
    gc.collect()
    assert tensor.sum().item() == 499500
    view = mica.arange(1000).numpy()
    gc.collect()
    assert view.sum() == 499500


def test_array_protocols() -> None:
    x = mica.arange(4.0)
    assert np.asarray(x).tolist() == [0, 1, 2, 3]
    assert np.asarray(x, dtype=np.int32).dtype == np.int32
    assert np.from_dlpack(x).tolist() == [0, 1, 2, 3]
    assert mica.from_dlpack(np.arange(3)).tolist() == [0, 1, 2]
    assert np.sin(x.numpy()).shape == (4,)
    assert mica.tensor(np.float64(2.5)).dtype == mica.float64


@pytest.mark.parametrize(
    "make",
    [
        lambda: mica.from_numpy(np.arange(4)[::-1]),
        lambda: mica.from_numpy(np.array(["a"])),
        lambda: mica.from_numpy([1, 2]),
        lambda: mica.ones(1, requires_grad=True).numpy(),
        lambda: mica.ones(1, dtype=mica.bfloat16).numpy(),
        lambda: mica.empty(1, device="meta").numpy(),
        lambda: mica.from_numpy(np.arange(3, dtype=">i4")),
        lambda: mica.frombuffer(b"abc", dtype=mica.int32),
        lambda: mica.tensor([[1, 2], [3]]),
        lambda: mica.tensor([1, "a"]),
        lambda: mica.tensor([300], dtype=mica.uint8),
        lambda: mica.tensor(2**70),
    ],
)
def test_bad_input(make: Any) -> None:
    with pytest.raises((ValueError, TypeError, RuntimeError, OverflowError, BufferError)) as caught:
        make()
    assert len(str(caught.value)) > 10


def test_frombuffer() -> None:
    data = bytearray(np.arange(4, dtype=np.float32).tobytes())
    x = mica.frombuffer(data, dtype=mica.float32, offset=4, count=2)
    x[0] = 9
    assert np.frombuffer(data, np.float32).tolist() == [0, 9, 2, 3]


def test_import_does_not_import_numpy() -> None:
    import subprocess
    import sys

    code = "import mica, sys; x = mica.ones(2); print(x + x); assert 'numpy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
