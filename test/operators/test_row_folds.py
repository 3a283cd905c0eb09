"""Reductions and scans whose loops differ by the length of rows, against NumPy in double."""

import numpy as np
import pytest

import mica

LENGTHS = (1, 4, 7, 8, 9, 15, 16, 23, 31, 33, 64, 100, 700)


def numbers(rows, n, dtype):
    made = np.random.default_rng(rows * 1000 + n).standard_normal((rows, n, 2))
    if np.issubdtype(dtype, np.complexfloating):
        return (made[..., 0] + 1j * made[..., 1]).astype(dtype)
    if np.issubdtype(dtype, np.floating):
        return made[..., 0].astype(dtype)
    return (made[..., 0] * 3).astype(dtype)


def close(result, expected, dtype):
    single = dtype in (np.float32, np.complex64)
    np.testing.assert_allclose(
        result.numpy(), expected, rtol=1e-5 if single else 1e-12, atol=2e-5 if single else 1e-12
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("n", LENGTHS)
def test_sums_of_rows_and_columns(n, dtype):
    for rows in (1, 5, 300):
        x = numbers(rows, n, dtype)
        wide = x.astype(np.complex128 if np.iscomplexobj(x) else np.float64)
        t = mica.from_numpy(x)
        close(t.sum(1), wide.sum(1), dtype)
        close(t.mean(1), wide.mean(1), dtype)
        close(t.prod(1), wide.prod(1), dtype)
        close(t.sum(0), wide.sum(0), dtype)
        close(t.mean(0), wide.mean(0), dtype)
        close(t.sum(), wide.sum(), dtype)
        close(mica.stack([t, t + 1], 2).sum(1)[:, 1], (wide + 1).sum(1), dtype)


@pytest.mark.parametrize("n", LENGTHS[1:])
def test_deviations_whose_squares_overflow(n):
    x = numbers(5, n, np.float32) * np.float32(1e21)
    t = mica.from_numpy(x)
    for dim in (0, 1, (0, 1)):
        np.testing.assert_allclose(t.std(dim).numpy(), x.astype(np.float64).std(dim, ddof=1), rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", LENGTHS)
def test_floats_by_rows(n, dtype):
    x = numbers(300, n, dtype)
    wide = x.astype(np.float64)
    t = mica.from_numpy(x)
    assert np.array_equal(t.amax(1).numpy(), x.max(1)) and np.array_equal(t.amin(1).numpy(), x.min(1))
    close(t.var(1, correction=0), wide.var(1), dtype)
    close(t.logsumexp(1), np.log(np.exp(wide).sum(1)), dtype)
    close(t.logsumexp(0), np.log(np.exp(wide).sum(0)), dtype)
    close(t.softmax(1), np.exp(wide) / np.exp(wide).sum(1, keepdims=True), dtype)
    close(t.cumsum(1), wide.cumsum(1), dtype)
    holes = np.where(wide > 1, np.nan, wide)
    for dim in (0, 1):
        close(mica.from_numpy(holes.astype(dtype)).nansum(dim), np.nansum(holes, dim), dtype)
    holes[:, -1] = np.nan
    assert np.isnan(mica.from_numpy(holes.astype(dtype)).amax(1).numpy()).all()


@pytest.mark.parametrize("dtype", [np.bool_, np.uint8, np.int8, np.int16, np.int32, np.int64])
@pytest.mark.parametrize("n", [*LENGTHS, 40000])
def test_integers_by_rows(n, dtype):
    x = numbers(3, n, dtype)
    t = mica.from_numpy(x)
    assert np.array_equal(t.sum(1).numpy(), x.sum(1, dtype=np.int64))
    assert np.array_equal(t.prod(1).numpy(), x.prod(1, dtype=np.int64))
    assert np.array_equal(t.amax(1).numpy(), x.max(1)) and np.array_equal(t.amin(1).numpy(), x.min(1))
    assert np.array_equal(t.cumsum(1).numpy(), x.cumsum(1, dtype=np.int64))


def test_columns_of_infinities_and_nan():
    inf, nan = np.inf, np.nan
    x = np.tile(np.array([[inf, -inf, nan, 1.0], [1.0, -inf, 1.0, 1000.0]], np.float32), (1, 5))
    result = mica.from_numpy(x).logsumexp(0).numpy()
    assert np.array_equal(result, np.tile(np.array([inf, -inf, nan, 1000.0], np.float32), 5), equal_nan=True)


def test_gradient_of_nansum():
    x = mica.tensor([[1.0, float("nan")], [2.0, 3.0]], requires_grad=True)
    x.nansum(1).sum().backward()
    assert x.grad.tolist() == [[1.0, 0.0], [1.0, 1.0]]
