"""NumPy, buffers and DLPack without torch; memory stays alive and is shared."""

from __future__ import annotations

import array
import gc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from process import printed

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
    printed("import mica, sys; x = mica.ones(2); print(x + x); assert 'numpy' not in sys.modules")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("other", DTYPES)
def test_equality_with_an_array_is_by_elements(dtype: str, other: str) -> None:
    labels, array = np.array([0, 1, 1, 0]), np.array([0, 1, 0, 0])
    tensor, given = mica.from_numpy(labels.astype(dtype)), array.astype(other)
    equal = [True, True, False, True]
    try:
        for result in (tensor == given, given == tensor):
            assert isinstance(result, mica.Tensor) and result.tolist() == equal
        for result in (tensor != given, given != tensor):
            assert result.tolist() == [not e for e in equal]
    except TypeError as error:  # uint64 and a signed dtype
        assert "no common dtype" in str(error)
        assert "uint64" in (dtype, other)
        return
    assert (tensor == given).float().mean() == 0.75
    assert (tensor == np.array(1)).tolist() == [False, True, True, False]


def test_equality_with_what_is_no_array_of_numbers() -> None:
    tensor = mica.ones(2)
    for other in (
        np.array(["a", "b"]),
        np.array([None, 1], object),
        np.array([1, 2], "M8[s]"),
        [1.0, 1.0],
        "a",
    ):
        assert (tensor == other) is False and (tensor != other) is True
    with pytest.raises(ValueError, match="byte order"):
        assert tensor == np.ones(2, ">f4")
    with pytest.raises(TypeError):
        assert tensor < np.ones(2)


@pytest.mark.parametrize("other", DTYPES)
def test_a_quotient_of_an_array_and_a_tensor(other: str) -> None:
    result = np.array([1, 0, 1]).astype(other) / mica.tensor([2.0, 4.0, 8.0])
    assert isinstance(result, mica.Tensor) and result.tolist() == [0.5, 0, 0.125]


def test_in_place_powers_and_quotients_do_not_cast() -> None:
    x = mica.tensor([4, 9])
    for operator in (
        "x **= 0.5",
        "x //= 2.0",
        "x **= mica.tensor([0.5, 0.5])",
        "x //= mica.tensor([2.0, 2.0])",
    ):
        with pytest.raises(RuntimeError, match="cast"):
            exec(operator, {"x": x, "mica": mica})
    assert x.tolist() == [4, 9]


SHARED: list[Any] = [
    np.arange(4.0), np.arange(8.0)[::2], bytearray(8), memoryview(bytearray(8)), array.array("f", [1, 2]), mica.ones(2),
]  # fmt: skip


@pytest.mark.parametrize("dtype", [None, mica.float32, mica.float64, mica.uint8, mica.int64])
@pytest.mark.parametrize("place", range(len(SHARED)))
def test_asarray_without_a_copy_shares_or_raises(place: int, dtype: Any) -> None:
    given = SHARED[place]
    try:
        tensor = mica.asarray(given, dtype=dtype, copy=False)
    except ValueError as error:
        assert "can't alias tensor with dtype" in str(error)
        assert dtype is not None and hasattr(given, "dtype")
        return

    def memory() -> list[int]:
        return (
            given.view(mica.uint8).tolist()
            if isinstance(given, mica.Tensor)
            else list(memoryview(given).tobytes())
        )

    tensor.zero_()
    tensor.view(-1)[-1 if tensor.dim() else 0] = 1
    assert any(memory()), "the memory of the object was written"
    tensor.zero_()
    assert not any(memory())


@pytest.mark.parametrize("given", [1, 1.5, [1], (1.0,), np.float32(1), np.int64(2), range(3)], ids=repr)
def test_asarray_of_what_has_no_memory(given: Any) -> None:
    with pytest.raises((ValueError, RuntimeError), match="can't alias"):
        mica.asarray(given, copy=False)


@pytest.mark.parametrize("make", [mica.tensor, mica.as_tensor, mica.asarray], ids=lambda f: f.__name__)
def test_a_storage_as_data_is_its_memory(make: Any) -> None:
    x = mica.tensor([1.0, 2.0, 3.0])
    assert make(x.untyped_storage(), dtype=mica.float32).tolist() == [1, 2, 3]
    assert make(x.untyped_storage(), dtype=mica.uint8).shape == (12,)
    assert make(x.storage()).tolist() == [1, 2, 3]
    with pytest.raises(RuntimeError, match="dtype"):
        make(x.storage(), dtype=mica.float64)
    with pytest.raises(TypeError, match="have no dtype"):
        make(x.untyped_storage())


def test_set_keeps_the_dtype_and_the_device() -> None:
    x = mica.zeros(2)
    for source in (mica.ones(2, dtype=mica.int32), mica.ones(2, dtype=mica.int32).storage()):
        with pytest.raises(RuntimeError, match="dtype|type"):
            x.set_(source)
    with pytest.raises(RuntimeError, match="Could not set tensor of type"):
        x.set_(mica.ones(4, dtype=mica.int64), 0, (2,), (1,))
    with pytest.raises(RuntimeError, match="device"):
        x.set_(mica.empty(2, device="meta"))
    for source in (None, [1.0], 3):
        with pytest.raises(TypeError, match="tensor or a storage"):
            x.set_(source)
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        mica.ones(2, requires_grad=True).set_(mica.ones(2))
    y = mica.arange(4.0)
    assert x.set_(y.untyped_storage(), 1, (2,)).tolist() == [1, 2] and x.dtype == mica.float32
    assert x.set_(y).tolist() == [0, 1, 2, 3] and x.set_().shape == (0,)
