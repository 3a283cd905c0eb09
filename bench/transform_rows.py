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


class _Block:
    """A transformer's block of 64 features in four heads, as a module of the library."""

    def __new__(cls, library: Any) -> Any:
        nn = library.nn

        class Block(nn.Module):  # type: ignore[misc, name-defined]
            def __init__(self) -> None:
                super().__init__()
                self.norm1, self.norm2 = nn.LayerNorm(64), nn.LayerNorm(64)
                self.qkv, self.out = nn.Linear(64, 192), nn.Linear(64, 64)
                self.up, self.down = nn.Linear(64, 256), nn.Linear(256, 64)

            def forward(self, x: Any) -> Any:
                b, t, d = x.shape
                q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, 4, d // 4).permute(2, 0, 3, 1, 4).unbind(0)
                heads = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
                x = x + self.out(heads.transpose(1, 2).reshape(b, t, d))
                return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))

        return Block()


def _traces(library: Any, make_fx: Any) -> Callable[[], Any]:
    """Forward and backward of twelve blocks, recorded."""
    network = library.nn.Sequential(*(_Block(library) for _ in range(12)))
    weights = dict(network.named_parameters())
    x = library.randn(2, 16, 64)

    def step(weights: Any, x: Any) -> Any:
        loss = library.func.functional_call(network, weights, (x,)).square().mean()
        return library.autograd.grad(loss, list(weights.values()))

    return lambda: make_fx(step)(weights, x)


GOALS = {
    "grad of (x * x).sum(), 4 floats": 15 / 208,
    "jacrev, three layers of 64": 0.25,
    "hessian, three layers of 64": 0.25,
}


def transforms() -> Iterator[Row]:
    ours, theirs = _calls(mica), _calls(torch)
    for name, call in ours.items():
        yield Row("transforms", name, call, theirs[name], "torch", GOALS.get(name, 1.0))
    from torch.fx.experimental.proxy_tensor import make_fx as theirs_make_fx

    yield Row(
        "transforms",
        "make_fx, twelve blocks forward and backward",
        _traces(mica, mica.fx.make_fx),
        _traces(torch, theirs_make_fx),
        "torch",
        1.0,
    )
