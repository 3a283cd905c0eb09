"""Collectives of 1 to 16 ranks, with each engine, against what NumPy says of all ranks' tensors.

Ranks are threads here with every engine: what an engine does does not depend on where its ranks are.
"""

from __future__ import annotations

import numpy as np
import pytest
import ranks
from ranks import on_all, on_ranks

import mica
from mica.distributed._init import group_of

ops = mica.ops.collectives
WORLDS = (1, 2, 3, 16)
DTYPES = [
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]
REDUCTIONS = {
    "sum": np.add.reduce,
    "product": np.multiply.reduce,
    "min": np.minimum.reduce,
    "max": np.maximum.reduce,
    "band": np.bitwise_and.reduce,
    "bor": np.bitwise_or.reduce,
    "bxor": np.bitwise_xor.reduce,
    "avg": np.mean,
}


@pytest.fixture(params=ranks.ENGINES, autouse=True)
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(ranks, "engine", request.param)
    if request.param == "gloo" and request.node.callspec.params.get("world", 1) > 3:
        pytest.skip("many connections, of which a few show the same")
    return str(request.param)


def given(rank: int, dtype: str, shape: tuple[int, ...] = (48, 3)) -> mica.Tensor:
    """Small whole numbers, whose sums and products of 16 are exact in most dtypes."""
    draw = np.random.default_rng(rank).integers(0, 3, shape)
    return mica.tensor(draw).to(getattr(mica, dtype))


def has(reduction: str, dtype: str) -> bool:
    if reduction in ("band", "bor", "bxor"):
        return "float" not in dtype and "complex" not in dtype
    if reduction == "avg":
        return "float" in dtype or "complex" in dtype
    return not (reduction in ("min", "max") and "complex" in dtype)


def numpy_of(t: mica.Tensor) -> np.ndarray:
    return t.float().numpy() if t.dtype == mica.bfloat16 else t.numpy()


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_all_reduce_is_numpys_reduction(world: int, dtype: str) -> None:
    for reduction, reduce in REDUCTIONS.items():
        inputs = [given(r, dtype) for r in range(world)]
        f = lambda r, inputs=inputs, reduction=reduction: ops.all_reduce(  # noqa: E731
            inputs[r], group_of(None).handle, reduction
        )
        if not has(reduction, dtype):
            if world > 1:
                found = on_ranks(world, f)
                assert all(
                    isinstance(e, NotImplementedError) and f"({reduction})" in str(e) for e in found
                ), found
            continue
        stacked = np.stack([numpy_of(x) for x in inputs])
        if dtype in ("float16", "bfloat16"):
            stacked = stacked.astype(np.float64)
        expected = reduce(stacked, axis=0, **({} if reduction == "avg" else {"dtype": stacked.dtype}))
        if reduction == "avg":
            expected = mica.tensor(stacked.sum(0)).to(inputs[0].dtype).div(world)
            expected = numpy_of(expected)
        for result in on_all(world, f):
            assert result.dtype == inputs[0].dtype
            np.testing.assert_array_equal(numpy_of(result), expected.astype(numpy_of(result).dtype))


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("dtype", ["bool", "int64", "bfloat16", "float32", "complex128"])
def test_what_only_moves_is_numpys(world: int, dtype: str) -> None:
    inputs = [given(r, dtype) for r in range(world)]
    root = world - 1
    joined = mica.cat(inputs)

    def collect(r: int) -> tuple[mica.Tensor, ...]:
        group = group_of(None).handle
        return (
            ops.all_gather(inputs[r], group),
            ops.broadcast(inputs[r], group, root),
            ops.gather(inputs[r], group, root),
            ops.scatter(inputs[r], group, root),
            ops.all_to_all(inputs[r], group, *splits(r)),
        )

    def splits(r: int) -> tuple[list[int], list[int]]:
        """Rank r sends r rows to rank 0 and what is left to the last one."""
        sent = [[0] * world for _ in range(world)]
        for i in range(world):
            sent[i][0] += i
            sent[i][-1] += 48 - i
        return [sent[i][r] for i in range(world)], sent[r]

    share = 48 // world
    for r, (all_gathered, one, gathered, part, swapped) in enumerate(on_all(world, collect)):
        assert all_gathered.equal(joined)
        assert one.equal(inputs[root])
        assert gathered.equal(joined if r == root else mica.zeros_like(joined))
        assert part.equal(inputs[root][r * share : (r + 1) * share])
        firsts = [inputs[i][:i] for i in range(world)] if r == 0 else []
        lasts = [inputs[i][i:] for i in range(world)] if r == world - 1 else []
        if world == 1:
            assert swapped.equal(inputs[0])
        else:
            expected = firsts or lasts or [inputs[0][:0]]
            assert swapped.equal(mica.cat(expected))


@pytest.mark.parametrize("world", WORLDS)
def test_reduce_scatter_is_a_part_of_the_sum(world: int) -> None:
    inputs = [given(r, "float64") for r in range(world)]
    found = on_all(world, lambda r: ops.reduce_scatter(inputs[r], group_of(None).handle))
    total = sum(inputs[1:], inputs[0])
    assert mica.cat(found).equal(total)


def test_signed_sums_wrap_and_nan_wins() -> None:
    low = mica.tensor([-128, 127], dtype=mica.int8)
    total = on_all(2, lambda r: ops.all_reduce(low, group_of(None).handle))[0]
    assert total.tolist() == [0, -2]
    inputs = [mica.tensor([float("nan"), 1.0]), mica.tensor([2.0, float("nan")])]
    for reduction in ("min", "max"):
        for found in on_all(2, lambda r, n=reduction: ops.all_reduce(inputs[r], group_of(None).handle, n)):
            assert found.isnan().all()


def test_half_types_are_rounded_as_their_conversions() -> None:
    for dtype, whole in ((mica.float16, 1 << 16), (mica.bfloat16, 1 << 16)):
        every = mica.arange(whole, dtype=mica.int32).to(mica.uint16).view(dtype)
        zero = mica.zeros_like(every)
        found = on_all(2, lambda r, e=every, z=zero: ops.all_reduce(e if r else z, group_of(None).handle))[0]
        expected = (every.float() + 0.0).to(dtype)
        assert mica.equal(found.isnan(), expected.isnan())
        assert found.nan_to_num(7.0).equal(expected.nan_to_num(7.0))


@pytest.mark.parametrize("world", [1, 2, 4])
def test_gradients_of_collectives_are_those_of_the_whole(world: int) -> None:
    """Each rank's loss weighs what it got; the gradient is that of the sum of all losses."""
    x = [mica.randn(4, 3, dtype=mica.float64) for _ in range(world)]
    cases = {
        "all_reduce": lambda t, g: ops.all_reduce(t, g),
        "average": lambda t, g: ops.all_reduce(t, g, "avg"),
        "broadcast": lambda t, g: ops.broadcast(t, g, world - 1),
        "all_gather": lambda t, g: ops.all_gather(t, g),
        "reduce_scatter": lambda t, g: ops.reduce_scatter(t, g),
        "mean_scatter": lambda t, g: ops.reduce_scatter(t, g, "avg"),
        "gather": lambda t, g: ops.gather(t, g, 0),
        "scatter": lambda t, g: ops.scatter(t, g, 0),
        "all_to_all": lambda t, g: ops.all_to_all(t, g, [4 // world] * world, [4 // world] * world),
    }
    for name, call in cases.items():

        def run(r: int, at: list[mica.Tensor], call=call) -> tuple[float, mica.Tensor]:
            leaf = at[r].clone().requires_grad_()
            result = call(leaf, group_of(None).handle)
            weight = mica.arange(result.numel(), dtype=mica.float64).reshape(result.shape).add(r + 1).sin()
            loss = (result * result * weight).sum()
            loss.backward()
            return loss.item(), leaf.grad

        found = on_all(world, lambda r, run=run: run(r, x))
        for r in range(world):
            moved = [t.clone() for t in x]
            step = 1e-6
            moved[r][1, 2] += step
            plus = sum(loss for loss, _ in on_all(world, lambda q, run=run, at=moved: run(q, at)))
            moved[r][1, 2] -= 2 * step
            minus = sum(loss for loss, _ in on_all(world, lambda q, run=run, at=moved: run(q, at)))
            slope = (plus - minus) / (2 * step)
            assert abs(found[r][1][1, 2].item() - slope) < 1e-6 * max(1, abs(slope)), (name, r)


def test_a_reduction_without_a_gradient_says_so() -> None:
    def f(r: int) -> None:
        ops.all_reduce(mica.ones(2, requires_grad=True), group_of(None).handle, "max").sum().backward()

    found = on_ranks(2, f)
    assert all(isinstance(e, NotImplementedError) and "has a gradient for" in str(e) for e in found), found


def test_meta_tensors_get_shapes_and_no_rank_is_waited_for() -> None:
    def shapes(r: int) -> list[tuple[int, ...]]:
        group, x = group_of(None).handle, mica.empty(4, 3, device="meta")
        found = (
            ops.all_reduce(x, group), ops.all_gather(x, group), ops.reduce_scatter(x, group),
            ops.all_to_all(x, group, [3, 2], [1, 3]), ops.gather(x, group, 0), ops.scatter(x, group, 1),
        )  # fmt: skip
        return [tuple(t.shape) for t in found]

    assert on_all(2, lambda r: shapes(r) if r == 0 else None)[0] == [
        (4, 3),
        (8, 3),
        (2, 3),
        (5, 3),
        (8, 3),
        (2, 3),
    ]
