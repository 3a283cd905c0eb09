"""scatter_reduce of every dtype, layout and combination beside torch, empty sizes and special numbers among them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

import mica

DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"]
SHAPES = [(4, 6), (1, 1), (7, 70), (0, 3), (3, 0)]
LAYOUTS = ["rows", "columns", "apart"]
SPECIAL = [float("nan"), float("inf"), -float("inf"), -0.0]


def _numbers(shape: tuple[int, int], dtype: str, rng: np.random.Generator) -> torch.Tensor:
    kind = getattr(torch, dtype)
    x = torch.tensor(rng.integers(-3 if kind.is_signed else 0, 4, shape))
    x = (x > 0 if dtype == "bool" else x).to(kind)
    if kind.is_floating_point and shape == (7, 70):
        x[::2, 1:5] = torch.tensor(SPECIAL, dtype=torch.float64).to(kind)
    return x


def _laid(x: torch.Tensor, layout: str) -> torch.Tensor:
    if layout == "rows":
        return x.contiguous()
    if layout == "columns":
        return x.t().contiguous().t()
    apart = torch.zeros(2 * x.shape[0], 3 * x.shape[1], dtype=x.dtype)[::2, ::3]
    return apart.copy_(x)


def _to_mica(x: torch.Tensor) -> mica.Tensor:
    kind = getattr(mica, str(x.dtype)[6:])
    values = x.double().numpy() if x.is_floating_point() else x.contiguous().numpy()
    return mica.empty_strided(x.shape, x.stride(), dtype=kind).copy_(mica.tensor(values.copy()).to(kind))


def _index(shape: tuple[int, int], dim: int, rng: np.random.Generator) -> torch.Tensor:
    sizes = (min(shape[0], 3), max(shape[1] - 1, 0))
    if shape[dim] == 0:
        return torch.zeros([0 if d == dim else size for d, size in enumerate(sizes)], dtype=torch.int64)
    return torch.tensor(rng.integers(0, shape[dim], sizes))


@pytest.mark.parametrize("how", ["sum", "prod", "amax", "amin", "mean"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_combinations_are_torchs(dtype: str, how: str) -> None:
    rng = np.random.default_rng(0)
    for shape, dim, layout, whole in itertools.product(SHAPES, (0, 1), LAYOUTS, (True, False)):
        index = _index(shape, dim, rng)
        into, source = _laid(_numbers(shape, dtype, rng), layout), _laid(_numbers(shape, dtype, rng), layout)
        # torch has no mean of truth values: the floor of that of 0 and 1 is 1 where all are.
        theirs = "prod" if (dtype, how) == ("bool", "mean") else how
        expected = into.clone().scatter_reduce_(dim, index, source, theirs, include_self=whole)
        ours = [_to_mica(x) for x in (into, index, source)]
        for found in (
            ours[0].scatter_reduce(dim, ours[1], ours[2], how, include_self=whole),
            ours[0].scatter_reduce_(dim, ours[1], ours[2], how, include_self=whole),
        ):
            got = torch.from_numpy(found.double().contiguous().numpy())
            case = f"{shape}, dim {dim}, {layout}, include_self={whole}"
            torch.testing.assert_close(got, expected.double(), rtol=0, atol=0, equal_nan=True, msg=case)


def test_a_byte_that_is_not_one_counts_as_true() -> None:
    into = mica.tensor([2, 0, 255, 0], dtype=mica.uint8).view(mica.bool)
    source = mica.tensor([0, 4, 128, 0], dtype=mica.uint8).view(mica.bool)
    index = mica.tensor([0, 1, 2, 3])
    for how, expected in {
        "sum": [1, 1, 1, 0],
        "prod": [0, 0, 1, 0],
        "amax": [1, 1, 1, 0],
        "amin": [0, 0, 1, 0],
    }.items():
        assert into.scatter_reduce(0, index, source, how).logical_not().tolist() == [
            not x for x in expected
        ], how
