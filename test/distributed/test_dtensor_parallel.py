"""Tensor parallelism: layers that are cut compute and train as those that are not."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import pytest
from ranks import on_all

import mica
from mica import nn, optim
from mica.distributed.tensor import DTensor, Replicate, Shard, init_device_mesh
from mica.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    PrepareModuleInputOutput,
    PrepareModuleOutput,
    RowwiseParallel,
    SequenceParallel,
    loss_parallel,
    parallelize_module,
)


class Block(nn.Module):
    """A layer of a transformer, with its two products in front and behind."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(11, 8)
        self.norm = nn.LayerNorm(8)
        self.up, self.down = nn.Linear(8, 12), nn.Linear(12, 8)
        self.head = nn.Linear(8, 11)

    def forward(self, x: Any) -> Any:
        x = self.embed(x)
        return self.head(x + self.down(self.up(self.norm(x)).relu()))


PLANS: dict[str, dict[str, Any]] = {
    "columns and rows": {
        "embed": RowwiseParallel(input_layouts=Replicate()),
        "up": ColwiseParallel(),
        "down": RowwiseParallel(),
        "head": ColwiseParallel(output_layouts=Replicate()),
    },
    "sequences": {
        "embed": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)),
        "norm": SequenceParallel(),
        "up": ColwiseParallel(input_layouts=Shard(1)),
        "down": RowwiseParallel(output_layouts=Shard(1)),
        "head": ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate()),
    },
    "by pattern": {
        "*m*ed": ColwiseParallel(output_layouts=Replicate()),
        "u?": ColwiseParallel(),
        "dow*": RowwiseParallel(),
    },
}


def trained(net: Any, x: Any, y: Any) -> list[Any]:
    steps = optim.AdamW(net.parameters(), lr=0.01)
    for _ in range(3):
        steps.zero_grad()
        nn.functional.cross_entropy(net(x).flatten(0, 1), y.flatten()).backward()
        steps.step()
    return [p.full_tensor().detach() if isinstance(p, DTensor) else p.detach() for p in net.parameters()]


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("ranks", [2, 4])
def test_a_block_trains_as_one_that_is_not_cut(plan: str, ranks: int) -> None:
    mica.manual_seed(0)
    plain = Block()
    x, y = mica.randint(0, 11, (3, 4)), mica.randint(0, 11, (3, 4))
    nets = [copy.deepcopy(plain) for _ in range(ranks)]

    def f(r: int) -> list[mica.Tensor]:
        mesh = init_device_mesh("cpu", (ranks,))
        return trained(parallelize_module(nets[r], mesh, PLANS[plan]), x, y)

    wanted = trained(plain, x, y)
    for found in on_all(ranks, f):
        for a, b in zip(found, wanted):
            assert mica.allclose(a, b, atol=1e-5)


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(8, 8) for _ in range(4))

    def forward(self, x: Any) -> Any:
        heads = [layer(x).unflatten(-1, (4, 2)).transpose(1, 2) for layer in (self.q, self.k, self.v)]
        mixed = nn.functional.scaled_dot_product_attention(*heads, is_causal=True)
        return self.out(mixed.transpose(1, 2).flatten(2))


def test_attention_computes_its_heads_apart() -> None:
    mica.manual_seed(0)
    plain, x = Attention(), mica.randn(2, 3, 8)
    nets = [copy.deepcopy(plain) for _ in range(2)]
    wanted = plain(x)
    wanted.square().sum().backward()
    nn.utils.clip_grad_norm_(plain.parameters(), 1.0)

    def f(r: int) -> None:
        columns = {name: ColwiseParallel(use_local_output=False) for name in "qkv"}
        mesh = init_device_mesh("cpu", (2,))
        net = parallelize_module(nets[r], mesh, {**columns, "out": RowwiseParallel()})
        heads = net.q(x).unflatten(-1, (4, 2)).transpose(1, 2)
        assert nn.functional.scaled_dot_product_attention(heads, heads, heads).placements == (Shard(1),)
        found = net(x)
        assert mica.allclose(found, wanted, atol=1e-5)
        found.square().sum().backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        for p, q in zip(net.parameters(), plain.parameters()):
            assert mica.allclose(p.grad.full_tensor(), q.grad, atol=1e-6)

    on_all(2, f)


def test_layers_hold_their_part_alone() -> None:
    def f(r: int) -> None:
        mesh = init_device_mesh("cpu", (2,))
        up = parallelize_module(nn.Linear(4, 6), mesh, ColwiseParallel(use_local_output=False))
        assert up.weight.to_local().shape == (3, 4) and up.bias.to_local().shape == (3,)
        out = up(mica.ones(2, 4))
        assert out.placements == (Shard(1),) and out.shape == (2, 6)
        down = parallelize_module(nn.Linear(6, 4), mesh, RowwiseParallel(use_local_output=False))
        assert down.weight.placements == (Shard(1),) and down.bias.placements == (Replicate(),)
        assert down(out).placements == (Replicate(),)

    on_all(2, f)


def test_what_modules_take_and_give_is_laid_out() -> None:
    class Two(nn.Module):
        def forward(self, a: Any, b: Any, *, c: Any = None) -> Any:
            seen.append([x.placements if isinstance(x, DTensor) else type(x) for x in (a, b, c)])
            return a * 2, b

    seen: list[Any] = []

    def f(r: int) -> None:
        mesh = init_device_mesh("cpu", (2,))
        x = mica.ones(2, 4)
        enter = PrepareModuleInput(
            input_layouts=(Shard(0), None),
            desired_input_layouts=(Replicate(), None),
            input_kwarg_layouts={"c": Replicate()},
            desired_input_kwarg_layouts={"c": Shard(1)},
        )
        a, b = parallelize_module(Two(), mesh, enter)(x, x, c=x)
        assert a.placements == (Replicate(),) and a.shape == (4, 4) and b is x
        leave = PrepareModuleOutput(
            output_layouts=(Shard(0), None), desired_output_layouts=(Replicate(), None)
        )
        assert parallelize_module(Two(), mesh, leave)(x, x)[0].shape == (4, 4)
        both = PrepareModuleInputOutput(
            input_layouts=(Shard(0), Shard(0)),
            desired_input_layouts=(Replicate(), Replicate()),
            output_layouts=(Replicate(), Replicate()),
            desired_output_layouts=(Shard(0), Shard(1)),
        )
        assert [t.shape for t in parallelize_module(Two(), mesh, both)(x, x)] == [(2, 4), (4, 2)]

    on_all(2, f)
    assert seen.count([(Replicate(),), mica.Tensor, (Shard(1),)]) == 2


def test_a_loss_of_scores_that_are_cut_along_classes() -> None:
    scores, classes = mica.arange(12.0).reshape(3, 4).sin(), mica.tensor([1, 3, 0])
    plain = scores.clone().requires_grad_()
    nn.functional.cross_entropy(plain, classes).backward()

    def f(r: int) -> None:
        mesh = init_device_mesh("cpu", (2,))
        cut = DTensor.from_local(scores[:, 2 * r : 2 * r + 2].contiguous(), mesh, [Shard(1)]).requires_grad_()
        with loss_parallel():
            nn.functional.cross_entropy(cut, classes).backward()
        assert mica.allclose(cut.grad.full_tensor(), plain.grad)

    on_all(2, f)


def test_plans_that_do_not_fit_are_refused_with_a_sentence() -> None:
    def f(r: int) -> None:
        mesh, square = init_device_mesh("cpu", (2,)), init_device_mesh("cpu", (1, 2))
        cases: list[tuple[Any, type[Exception], str]] = [
            (
                lambda: parallelize_module(nn.ReLU(), mesh, ColwiseParallel()),
                NotImplementedError,
                "is a ReLU",
            ),
            (
                lambda: parallelize_module(Block(), square, PLANS["sequences"]),
                ValueError,
                r"has \(2\) dimensions",
            ),
            (lambda: parallelize_module(Block(), mesh, [ColwiseParallel()]), TypeError, "Expect Union"),
            (lambda: parallelize_module(Block(), mesh, {"": ColwiseParallel()}), ValueError, "non-empty"),
            (lambda: parallelize_module(Block(), None, {}), ValueError, "`device_mesh` is None"),
            (lambda: PrepareModuleInput(input_layouts=Shard(0)), AssertionError, "should not be None"),
        ]
        for call, error, says in cases:
            with pytest.raises(error, match=says):
                call()

    on_all(2, f)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        on_all(
            1,
            lambda r: parallelize_module(
                Block(), init_device_mesh("cpu", (1,)), {"nothing": ColwiseParallel()}
            ),
        )
    assert "could not be resolved" in str(caught[0].message)
