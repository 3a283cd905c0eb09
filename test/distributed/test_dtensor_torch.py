"""Where results lie, as torch's DTensor has them, of common operators; their local shapes; and gradients' layouts.

torch runs as one rank of a group that pretends the others (fake_pg), which is enough for layouts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.distributed
import torch.distributed.tensor as torch_tensor
from layouts import laid
from ranks import on_all
from torch.testing._internal.distributed.fake_pg import FakeStore

import mica
import mica.distributed.tensor as mica_tensor
from mica.distributed.tensor import init_device_mesh

RANKS = 2
R, S0, S1, P = "R", "S(0)", "S(1)", "P(sum)"

# What is called, of x (4, 6) and y, and the layouts of both.
Function = Callable[[Any, Any, Any], Any]
CALLS: dict[str, tuple[Function, str, list[tuple[str, str]]]] = {
    "add": (lambda m, x, y: x + y, "same", [(R, R), (S0, S0), (S0, R), (R, S1), (S0, S1), (P, P), (P, S0)]),
    "mul": (lambda m, x, y: x * y, "same", [(R, R), (S1, S1), (S0, R), (P, R)]),
    "times a number": (lambda m, x, y: x * 2.5, "same", [(S0, R), (P, R), (R, R)]),
    "relu": (lambda m, x, y: m.relu(x), "same", [(R, R), (S0, R), (S1, R), (P, R)]),
    "mm": (lambda m, x, y: x @ y, "product", [(R, R), (S0, R), (R, S1), (S1, S0), (S0, S0), (P, R), (R, P)]),
    "linear": (
        lambda m, x, y: m.nn.functional.linear(x, y.t()),
        "product",
        [(R, S1), (S1, S0), (S0, R), (R, R)],
    ),
    "t": (lambda m, x, y: x.t(), "same", [(S0, R), (S1, R), (P, R)]),
    "sum": (lambda m, x, y: x.sum(), "same", [(S0, R), (S1, R), (R, R), (P, R)]),
    "sum of rows": (lambda m, x, y: x.sum(1), "same", [(S0, R), (S1, R), (R, R), (P, R)]),
    "sum, dimension kept": (lambda m, x, y: x.sum(0, keepdim=True), "same", [(S0, R), (S1, R)]),
    "mean": (lambda m, x, y: x.mean(), "same", [(S0, R), (S1, R)]),
    "amax": (lambda m, x, y: x.amax(1), "same", [(S0, R), (S1, R)]),
    "softmax": (lambda m, x, y: x.softmax(1), "same", [(S0, R), (S1, R), (R, R)]),
    "view": (lambda m, x, y: x.view(24), "same", [(S0, R), (S1, R), (R, R), (P, R)]),
    "split view": (lambda m, x, y: x.view(2, 2, 6), "same", [(S0, R), (S1, R)]),
    "unsqueeze": (lambda m, x, y: x.unsqueeze(0), "same", [(S0, R), (S1, R), (P, R)]),
    "transpose": (lambda m, x, y: x.transpose(0, 1), "same", [(S0, R), (S1, R)]),
    "expand": (lambda m, x, y: x.expand(3, 4, 6), "same", [(S0, R), (S1, R)]),
    "cat": (lambda m, x, y: m.cat([x, y]), "same", [(S1, S1), (R, R), (P, P)]),
    "stack": (lambda m, x, y: m.stack([x, y]), "same", [(S0, S0), (S1, S1)]),
    "slice": (lambda m, x, y: x[1:3], "same", [(S1, R), (R, R)]),
    "select": (lambda m, x, y: x[1], "same", [(S1, R), (R, R)]),
    "layer_norm": (lambda m, x, y: m.nn.functional.layer_norm(x, (6,)), "same", [(S0, R), (R, R)]),
    "embedding": (lambda m, x, y: m.nn.functional.embedding(x, y), "table", [(R, R), (S0, R), (R, S1)]),
    "clone": (lambda m, x, y: x.clone(), "same", [(S0, R), (P, R)]),
    "zeros_like": (lambda m, x, y: m.zeros_like(x), "same", [(S0, R), (S1, R)]),
    "where": (lambda m, x, y: m.where(x > 0, x, y), "same", [(S0, S0), (R, R), (S0, R)]),
    "argmax": (lambda m, x, y: x.argmax(1), "same", [(S0, R)]),
    "baddbmm": (
        lambda m, x, y: m.bmm(x.unsqueeze(0), y.unsqueeze(0)),
        "product",
        [(S0, R), (S1, S0), (R, S1)],
    ),
}
CASES = [(name, *pair) for name, (_, _, pairs) in CALLS.items() for pair in pairs]
# Mica's layout and torch's: a copy of what is partial is partial.
DIFFERENT = {("clone", P, R): (P, R)}


def tensors(m: Any, kind: str) -> tuple[Any, Any]:
    x = m.arange(24.0).reshape(4, 6) - 7
    if kind == "product":
        return x, m.arange(48.0).reshape(6, 8)
    if kind == "table":
        return m.arange(24).reshape(4, 6) % 5, m.arange(20.0).reshape(5, 4)
    return x, m.arange(24.0).reshape(4, 6).flip(0)


def placement(library: Any, text: str) -> Any:
    return {R: library.Replicate(), S0: library.Shard(0), S1: library.Shard(1), P: library.Partial()}[text]


def told(result: Any) -> tuple[str, tuple[int, ...], tuple[int, ...]]:
    local = result.to_local()
    return str(result.placements[0]), tuple(result.shape), tuple(local.shape)


@pytest.fixture(scope="module", autouse=True)
def torch_mesh() -> Iterator[Any]:
    torch.distributed.init_process_group("fake", rank=0, world_size=RANKS, store=FakeStore())
    yield torch.distributed.init_device_mesh("cpu", (RANKS,))
    torch.distributed.destroy_process_group()


def of_torch(mesh: Any, name: str, layouts: list[str]) -> Any:
    function, kind, _ = CALLS[name]
    made = []
    for x, text in zip(tensors(torch, kind), layouts):
        p = placement(torch_tensor, text)
        local = x.chunk(RANKS, p.dim)[0] if p.is_shard() else x
        made.append(torch_tensor.DTensor.from_local(local.contiguous(), mesh, [p]))
    return told(function(torch, *made))


def of_mica(name: str, layouts: list[str]) -> Any:
    function, kind, _ = CALLS[name]

    def f(r: int) -> Any:
        mesh = init_device_mesh("cpu", (RANKS,))
        given = [laid(x, mesh, placement(mica_tensor, p)) for x, p in zip(tensors(mica, kind), layouts)]
        return told(function(mica, *given))

    return on_all(RANKS, f)[0]


@pytest.mark.parametrize(("name", "first", "second"), CASES)
def test_results_lie_where_torchs_do(torch_mesh: Any, name: str, first: str, second: str) -> None:
    theirs, ours = of_torch(torch_mesh, name, [first, second]), of_mica(name, [first, second])
    if (name, first, second) in DIFFERENT:
        assert (ours[0], theirs[0]) == DIFFERENT[name, first, second]
    else:
        assert ours == theirs
