"""The benchmark's rows of transforms: mica.func beside torch.func.

Goals are Mica's time over torch's, from what torch 2.13 took on two AVX2 cores: 208 us for
the gradient of four floats, where 15 are allowed; whole derivatives of a network of three
layers of 64 in a quarter of torch's time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from rows import Row

import mica


def _calls(library: Any) -> dict[str, Callable[[], Any]]:
    func, nn = library.func, library.nn
    library.manual_seed(0)
    small = library.ones(4)
    network = nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 64))
    weights = {name: p.detach() for name, p in network.named_parameters()}
    x = library.randn(64)

    def output(x: Any) -> Any:
        return func.functional_call(network, weights, (x,))

    def scalar(x: Any) -> Any:
        return output(x).square().sum()

    of_small = func.grad(lambda x: (x * x).sum())
    twice = func.grad(lambda x: func.grad(lambda y: (y * y * y).sum())(x).sum())
    slope, rows, columns = func.grad(scalar), func.jacrev(output), func.jacfwd(output)
    curvature = func.hessian(scalar)
    return {
        "grad of (x * x).sum(), 4 floats": lambda: of_small(small),
        "grad of grad, 4 floats": lambda: twice(small),
        "jvp of x * x, 4 floats": lambda: func.jvp(lambda x: x * x, (small,), (small,)),
        "grad, three layers of 64": lambda: slope(x),
        "jvp, three layers of 64": lambda: func.jvp(output, (x,), (x,)),
        "jacrev, three layers of 64": lambda: rows(x),
        "jacfwd, three layers of 64": lambda: columns(x),
        "hessian, three layers of 64": lambda: curvature(x),
    }


GOALS = {
    "grad of (x * x).sum(), 4 floats": 15 / 208,
    "jacrev, three layers of 64": 0.25,
    "hessian, three layers of 64": 0.25,
}


def transforms() -> Iterator[Row]:
    ours, theirs = _calls(mica), _calls(torch)
    for name, call in ours.items():
        yield Row("transforms", name, call, theirs[name], "torch", GOALS.get(name, 1.0))
