"""searchsorted, repeat_interleave, ranks, runs and distances of rows against torch: values in order, out
of order and equal ones, NaN, several lines, both sides, empty ones, and more than a thread's share."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import mica

DTYPES = ["float32", "float64", "int32", "int64"]
SIZES = [0, 1, 2, 7, 300]


def _values(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    x = rng.integers(-20, 20, shape) / (2 if dtype.startswith("float") else 1)
    if dtype.startswith("float"):
        x = np.where(rng.random(shape) < 0.1, np.nan, x)
    return x.astype(dtype)


@pytest.mark.parametrize("dtype", [*DTYPES, "int16", "int8", "uint8"])
@pytest.mark.parametrize("right", [False, True])
def test_searchsorted(dtype: str, right: bool) -> None:
    rng = np.random.default_rng(0)
    for size in SIZES:
        for lines, wanted in (((size,), (3, 5)), ((2, size), (2, 5000)), ((size,), ())):
            line, values = np.sort(_values(rng, lines, dtype)), _values(rng, wanted, dtype)
            if dtype == "int8":  # from end to end
                line, values = np.sort(6 * line), 6 * values
            for v in (values, np.sort(values, axis=None).reshape(wanted)):
                for narrow in (False, True):
                    ours, theirs = (
                        M.searchsorted(M.tensor(line), M.tensor(v), right=right, out_int32=narrow)
                        for M in (mica, torch)
                    )
                    np.testing.assert_array_equal(ours.numpy(), theirs.numpy())


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_places_of_repeats(dtype: str) -> None:
    rng = np.random.default_rng(0)
    for size in SIZES:
        repeats = rng.integers(0, 4, size).astype(dtype)
        for options in ({}, {"output_size": int(repeats.sum())}):
            ours, theirs = (M.repeat_interleave(M.tensor(repeats), **options) for M in (mica, torch))
            assert str(ours.dtype).split(".")[1] == str(theirs.dtype).split(".")[1]
            np.testing.assert_array_equal(ours.numpy(), theirs.numpy())
    with pytest.raises(RuntimeError):
        mica.repeat_interleave(mica.tensor([1, -1]))


@pytest.mark.parametrize("dtype", [*DTYPES, "uint8"])
def test_ranks(dtype: str) -> None:
    """Lines on both sides of the length from which leading bits are counted, along either dimension."""
    rng = np.random.default_rng(1)
    for shape in ((3, 7), (2, 5000), (5000, 2)):
        x = (
            np.abs(_values(rng, shape, "int64")).astype(dtype)
            if dtype == "uint8"
            else _values(rng, shape, dtype)
        )
        for dim in (0, 1):
            n = shape[dim]
            calls = [("median", (dim,)), *[("kthvalue", (k, dim)) for k in (1, n // 3 + 1, n // 2 + 1, n)]]
            for name, arguments in calls:
                ours, theirs = (getattr(M.tensor(x), name)(*arguments, keepdim=True) for M in (mica, torch))
                np.testing.assert_array_equal(ours[0].numpy(), theirs[0].numpy())
                np.testing.assert_array_equal(np.take_along_axis(x, ours[1].numpy(), dim), ours[0].numpy())
        ours, theirs = (M.tensor(x).median().numpy() for M in (mica, torch))
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("dtype", [*DTYPES, "bool", "int16"])
def test_runs(dtype: str) -> None:
    rng = np.random.default_rng(2)
    for shape in ((1,), (40,), (30, 7), (0,)):
        x = rng.integers(0, 3, shape).astype(dtype)
        if dtype.startswith("float"):
            x = np.where(rng.random(shape) < 0.1, np.nan, np.where(x == 1, -x * 0, x)).astype(dtype)
        for inverse in (False, True):
            for counts in (False, True):
                for dim in (None, 0):
                    options = {"return_inverse": inverse, "return_counts": counts, "dim": dim}
                    found = [M.unique_consecutive(M.tensor(x), **options) for M in (mica, torch)]
                    for ours, theirs in zip(*(f if isinstance(f, tuple) else (f,) for f in found)):
                        assert ours.shape == theirs.shape
                        np.testing.assert_array_equal(ours.numpy(), theirs.numpy())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_distances_of_rows(dtype: str) -> None:
    rng = np.random.default_rng(3)
    few = 16 * float(np.finfo(dtype).eps)
    for rows, width in ((2, 1), (9, 5), (40, 37), (7, 64)):
        x, y = (rng.standard_normal((2, n, width)).astype(dtype) for n in (rows, rows + 3))
        x[0, 1, width // 2] = np.nan
        for p in (1.0, 2.0, 3.0, float("inf")):
            if p == float("inf"):
                assert bool(mica.cdist(mica.tensor(x), mica.tensor(y), p)[0, 1].isnan().all())
                x = np.nan_to_num(x)  # torch's largest difference loses a NaN
            ours, theirs = (
                [
                    M.cdist(M.tensor(x), M.tensor(y), p, "donot_use_mm_for_euclid_dist"),
                    M.nn.functional.pdist(M.tensor(x[0]), p),
                    M.nn.functional.pdist(M.tensor(x[1].T.copy()).t(), p),
                ]
                for M in (mica, torch)
            )
            for a, b in zip(ours, theirs):
                np.testing.assert_allclose(a.numpy(), b.numpy(), few, few, err_msg=f"{rows} {width} {p}")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("p", [0.0, 1.0, 2.0, float("inf")])
def test_distances_and_gradients_by_tiles(p: float, dtype: str) -> None:
    """Rows around a tile of 32 or 16 others, 128 rows that meet it, 64 terms of a sum and 8 or 16 elements."""
    rng = np.random.default_rng(5)
    few = 40 * float(np.finfo(dtype).eps)
    direct = "donot_use_mm_for_euclid_dist"
    for rows, others, width in (
        *((5, 3, 1), (17, 33, 3), (129, 15, 7), (1, 70, 8), (70, 1, 9), (31, 129, 16), (40, 200, 17)),
        *((3, 5, 63), (16, 32, 64), (9, 65, 65), (33, 16, 130), (257, 31, 5), (2, 2, 1000)),
    ):
        x, y = (rng.standard_normal((2, n, width)).astype(dtype) for n in (rows, others))
        y[:, 0] = x[:, -1]  # at no distance
        w = rng.standard_normal((others, rows)).astype(dtype)
        found = []
        for M in (mica, torch):
            a, b = (M.tensor(v.copy()).requires_grad_() for v in (x, y.transpose(0, 2, 1)))
            distances = M.cdist(a, b.mT, p, direct)
            gradients = M.autograd.grad(distances, [a, b], M.tensor(w).t().expand(2, rows, others))
            found.append([distances.detach().numpy(), *(g.numpy() for g in gradients)])
        for k, (ours, theirs) in enumerate(zip(*found)):
            scale = float(np.abs(theirs).max()) + 1
            np.testing.assert_allclose(ours, theirs, few, few * scale, err_msg=f"{rows} {others} {width} {k}")


@pytest.mark.parametrize("p", [0.0, 1.0, 2.0, float("inf")])
def test_distances_among_rows_by_tiles(p: float) -> None:
    rng = np.random.default_rng(9)
    for rows, width in ((2, 3), (16, 5), (17, 1), (33, 70), (129, 2), (161, 3), (300, 4)):
        x = rng.standard_normal((rows, width))
        ours, theirs = (M.nn.functional.pdist(M.tensor(x), p).numpy() for M in (mica, torch))
        np.testing.assert_allclose(ours, theirs, 1e-13, 1e-13, err_msg=f"{rows} {width}")


@pytest.mark.parametrize("dtype", ["bool", "uint8", "float16", "float32", "int64", "complex128"])
def test_places_by_groups(dtype: str) -> None:
    """Groups of 32 elements that are all set, all zero and mixed, whole and cut, in blocks of 1,024."""
    rng = np.random.default_rng(4)
    for n in (1, 31, 32, 33, 64, 1023, 1024, 1025, 4100):
        for share in (0.0, 0.02, 0.5, 0.99, 1.0):
            set_ = np.repeat(rng.random((n + 63) // 64) < 0.6, 64)[:n] & (rng.random(n) < share)
            set_[n // 2 : n // 2 + 40] = share > 0
            x = torch.tensor(set_).to(getattr(torch, dtype))
            ours = mica.tensor(set_).to(getattr(mica, dtype))
            if ours.is_floating_point() or ours.is_complex():
                ours = -ours  # -0 is zero
            assert ours.nonzero().tolist() == x.nonzero().tolist()
            assert ours.reshape(1, n).nonzero().tolist() == x.reshape(1, n).nonzero().tolist()
