"""functionalize against torch.func's: the same programs in both, results, inputs after them and
what stands in the graph of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx as torch_make_fx

import mica
from mica.fx import make_fx


def views_of_views(x: Any) -> Any:
    y = x * 2
    y.view(-1)[1:4].add_(x[0])
    y.t()[0].mul_(3)
    y.diagonal().fill_(7)
    return y, y[1]


def writes_its_input(x: Any) -> Any:
    x.unsqueeze(0).squeeze(0).mul_(x)
    x[0].copy_(x[1])
    return x.sum()


def overlapping(x: Any) -> Any:
    a, b = x[:, :2], x[:, 1:]
    a.add_(1)
    b.mul_(2)
    a.add_(b)
    return a, b


def split(x: Any) -> Any:
    a, b, c = x.split(1, 1)
    a.add_(b)
    c.sub_(a)
    return x * 1


def changes_shape(x: Any) -> Any:
    y = x + 1
    y.t_()
    y.unsqueeze_(0)
    return y.add_(1)


def gathers(x: Any) -> Any:
    y = x.clone()
    y.masked_fill_(y > 3, 0.5)
    y.clamp_(min=1)
    return y.cumsum_(0)


PROGRAMS: list[Callable[[Any], Any]] = [
    views_of_views,
    writes_its_input,
    overlapping,
    split,
    changes_shape,
    gathers,
]


def numbers(value: Any) -> list[np.ndarray]:
    items = value if isinstance(value, tuple) else (value,)
    return [t.detach().numpy() for t in items]


@pytest.mark.parametrize("remove", ["mutations", "mutations_and_views"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_results_and_inputs(program: Callable[[Any], Any], remove: str) -> None:
    ours, theirs = mica.arange(6.0).view(2, 3), torch.arange(6.0).view(2, 3)
    got = numbers(mica.func.functionalize(program, remove=remove)(ours))
    wanted = numbers(torch.func.functionalize(program, remove=remove)(theirs))
    for a, b in zip([*got, ours.numpy()], [*wanted, theirs.numpy()], strict=True):
        np.testing.assert_allclose(a, b)


@pytest.mark.parametrize("remove", ["mutations", "mutations_and_views"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_graphs(program: Callable[[Any], Any], remove: str) -> None:
    """Neither has a write but that of the input at its end, and where views are removed neither has one."""

    ours = make_fx(mica.func.functionalize(program, remove=remove))(mica.arange(6.0).view(2, 3)).graph
    theirs = torch_make_fx(torch.func.functionalize(program, remove=remove))(
        torch.arange(6.0).view(2, 3)
    ).graph
    counts = [
        sum("!" in str(getattr(n.target, "schema", getattr(n.target, "_schema", ""))) for n in g.nodes)
        for g in (ours, theirs)
    ]
    assert counts[0] == counts[1]
