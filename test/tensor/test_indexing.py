"""Indexing against NumPy: reading, and writing numbers and tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mica

KEYS: list[Any] = [
    0, -1, slice(None), slice(1, None), slice(None, None, 2), slice(1, 1), slice(-3, -1), None, Ellipsis, (0, 1), (slice(None), 0),
    (Ellipsis, 0), (0, Ellipsis), (None, 0), (0, None, slice(1, 3)), (slice(None), None, 2), (1, 2, 3), (Ellipsis, None),
    [0, 2], ([0, 2], [1, 1]), (slice(None), [0, 2, 3]), ([0, 1], slice(None), [2, 0]), (0, [1, 2], slice(None)),
    (Ellipsis, [3, 0]), ([[0, 1], [2, 0]],), np.int64(1), np.array([2, 0]), (np.array([[True, False, True, False]] * 3),),
    np.array([True, False, True]), (slice(None), np.array([True, False, True, True])), True, False,
    (np.array([True, False, True]), 1), (np.ones((3, 4), bool), 2), (), (slice(0, 0),),
]  # fmt: skip


def ours(key: Any) -> Any:
    """The key with arrays as tensors."""
    if isinstance(key, tuple):
        return tuple(ours(k) for k in key)
    return mica.from_numpy(key) if isinstance(key, np.ndarray) else key


def pair() -> tuple[Any, Any]:
    array = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
    return array, mica.from_numpy(array.copy())


@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_read(key: Any) -> None:
    array, tensor = pair()
    expected = array[key]
    result = tensor[ours(key)]
    assert tuple(result.shape) == expected.shape
    np.testing.assert_array_equal(result.numpy(), expected)


@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_write_number(key: Any) -> None:
    array, tensor = pair()
    array[key] = -7
    tensor[ours(key)] = -7
    np.testing.assert_array_equal(tensor.numpy(), array)


@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_write_tensor(key: Any) -> None:
    array, tensor = pair()
    values = np.asarray(np.arange(array[key].size, dtype=np.float32).reshape(array[key].shape) + 100)
    array[key] = values
    tensor[ours(key)] = mica.from_numpy(values)
    np.testing.assert_array_equal(tensor.numpy(), array)


@pytest.mark.parametrize("to, from_", [
    ((..., slice(0, 2)), (..., slice(3, 5))), ((..., slice(0, 3)), (..., slice(1, 4))), (slice(0, 2), slice(1, 3)),
    ((slice(None), slice(None, None, 2)), (slice(None), slice(1, None, 2))), ((..., slice(0, 2)), (..., slice(4, 5))),
    ((slice(None), slice(0, 3)), (slice(None), slice(1, 4))), (slice(1, 3), slice(0, 1)),
], ids=repr)  # fmt: skip
def test_write_a_slice_of_itself(to: Any, from_: Any) -> None:
    array, tensor = pair()
    array[to] = array[from_].copy()
    tensor[to] = tensor[from_]
    np.testing.assert_array_equal(tensor.numpy(), array)
    tensor[to] = tensor[from_].to(mica.float64)  # another dtype
    array[to] = array[from_].copy()
    np.testing.assert_array_equal(tensor.numpy(), array)


def test_write_broadcasts_and_drops_leading_ones() -> None:
    x = mica.zeros(2, 3)
    x[0] = mica.ones(1, 1, 3)
    x[:, 1] = mica.tensor([5.0])
    assert x.tolist() == [[1, 5, 1], [0, 5, 0]]
    for value in (mica.ones(1, 1, 3), np.ones((1, 1, 1, 3)), [[[7.0, 7.0, 7.0]]]):
        for key in (x[:, 1] > 4, mica.tensor([0, 1]), (slice(None), mica.tensor([0, 2, 1]))):
            x[key] = value
            assert (x == float(np.asarray(value).max())).all()
            x.fill_(5)
    with pytest.raises(
        RuntimeError, match="shape mismatch: value tensor of shape .2, 1, 3. cannot be broadcast"
    ):
        x[x[:, 1] > 4] = mica.ones(2, 1, 3)


@pytest.mark.parametrize(
    "key,kind",
    [
        (3, IndexError),
        (-4, IndexError),
        ((0, 0, 0, 0), IndexError),
        (slice(None, None, -1), ValueError),
        (slice(None, None, 0), ValueError),
        ("a", TypeError),
        (1.5, (IndexError, TypeError)),
        (mica.tensor([1.5]), IndexError),
        (mica.tensor([9]), IndexError),
        (mica.tensor([True, False]), IndexError),
        ((Ellipsis, Ellipsis, 0, 0), IndexError),
    ],
    ids=repr,
)
def test_bad_key(key: Any, kind: Any) -> None:
    _, x = pair()
    with pytest.raises(kind):
        x[key]
    assert x.sum().item() == 1770  # and the tensor goes on working


def test_gradient_through_index() -> None:
    x = mica.arange(6.0).reshape(2, 3).requires_grad_()
    (x[0, 1:] * 2 + x[mica.tensor([1, 1]), mica.tensor([0, 0])]).sum().backward()
    assert x.grad.tolist() == [[0, 2, 2], [2, 0, 0]]


def test_deletion_and_length() -> None:
    x = mica.zeros(2)
    with pytest.raises(TypeError):
        del x[0]
    with pytest.raises(TypeError):
        len(mica.tensor(1))
    assert [int(v) for v in mica.arange(3)] == [0, 1, 2]


def test_a_list_of_indices_is_a_tuple_of_them():
    x = mica.arange(24.0).reshape(4, 6)
    i, j = mica.tensor([0, 1]), mica.tensor([1, 2])
    for key in ([i, j], [[0, 1], [1, 2]], [slice(0, 2), 1], [None, 0], [..., 0], [i]):
        assert mica.equal(x[key], x[tuple(key)])
    assert x[[0, 1]].shape == (2, 6)
    assert x[[[0, 1]] * 32].shape == (32, 2, 6)
    y = x.clone()
    y[[i, j]] = -1.0
    assert (y == -1).nonzero().tolist() == [[0, 1], [1, 2]]


def test_equal_compares_values_whatever_the_dtypes() -> None:
    assert mica.equal(mica.tensor([True]), mica.tensor([1]))
    assert not mica.equal(mica.tensor([1.5]), mica.tensor([1]))
    assert not mica.equal(mica.ones(2), mica.ones(3))


ELEMENTS = ["bool", "uint8", "int8", "int64", "float16", "float32", "float64", "complex64"]
FOREIGN: list[Any] = [
    [1, 2], [1.0, 2.5], [300, 1], [1j, 2], (1, 2), range(2), b"ab", memoryview(b"ab"),
    *(np.array([1, 2]).astype(d) for d in ELEMENTS), np.array([300, -1]), np.array([1.5, 2.5]), np.array([1.5j, 2]),
    np.array([1e300, 1]), [np.float32(1.5), np.float32(2)], [True, False],
]  # fmt: skip


@pytest.mark.parametrize("key", [slice(0, 2), [0, 2], mica.tensor([True, False, True]), ...], ids=repr)
@pytest.mark.parametrize("dtype", ELEMENTS)
def test_arrays_and_lists_are_written_where_the_elements_hold_them(dtype: str, key: Any) -> None:
    """And refused elsewhere: no number is cut off, wrapped or loses its imaginary part."""
    for value in FOREIGN:
        shape = (2,) if key is ... else (3,)
        x, given = (
            mica.zeros(shape, dtype=getattr(mica, dtype)),
            np.asarray(list(value) if isinstance(value, bytes) else value),
        )
        try:
            x[key] = value
        except (TypeError, RuntimeError):
            assert not (isinstance(value, np.ndarray) and value.dtype == np.dtype(dtype)), value
            assert not x.any()
            continue
        written = x[key].numpy()
        if dtype == "bool":
            assert given.dtype == bool and np.array_equal(written, given)
        elif np.issubdtype(given.dtype, np.inexact):
            np.testing.assert_allclose(written, given.astype(dtype), err_msg=repr(value))
            assert written.dtype.kind in "fc" and (written.dtype.kind == "c" or given.dtype.kind == "f")
        else:
            assert np.array_equal(written, given), value


def test_a_value_of_another_dtype_at_indices_is_refused() -> None:
    x = mica.zeros(3)
    for key in ([0, 1], mica.tensor([0, 1]), (mica.tensor([0, 1]),), mica.tensor([True, True, False])):
        with pytest.raises(RuntimeError, match="Index put requires the source and destination dtypes match"):
            x[key] = mica.ones(2, dtype=mica.int64)
    x[mica.tensor([True, False, True])] = mica.tensor(2)  # one number through a mask
    assert x.tolist() == [2, 0, 2]
    for value in (1j, 1e39):
        with pytest.raises(RuntimeError, match="without overflow"):
            x[[0]] = value
        with pytest.raises(RuntimeError, match="without overflow"):
            x[0] = value
    with pytest.raises(RuntimeError, match="without overflow"):
        mica.zeros(3, dtype=mica.uint8)[[0]] = 300.7
