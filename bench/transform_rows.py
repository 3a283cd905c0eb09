"""The benchmark's rows of transforms: mica.func beside torch.func.

Goals are Mica's time over torch's, from what torch 2.13 took on two AVX2 cores: 208 us for
the gradient of four floats, where 15 are allowed; whole derivatives of a network of three
layers of 64 in a quarter of torch's time; 8 us for a whole vmap where torch takes 77, and 0.4 for
each further level where it takes 1.3. Autocast is held to the same training step with the casts
written out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from rows import Row

import mica


def _digits(library: Any) -> Any:
    """The network of examples/digits, without its dropout."""
    nn = library.nn
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
        nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(64 * 4 * 4, 10),
    )  # fmt: skip


def _per_sample(library: Any) -> Callable[[], Any]:
    func, cross_entropy = library.func, library.nn.functional.cross_entropy
    library.manual_seed(0)
    network = _digits(library).eval()
    weights = {name: p.detach() for name, p in network.named_parameters()}
    images, labels = library.randn(256, 1, 8, 8), library.randint(0, 10, (256,))

    def loss(weights: Any, image: Any, label: Any) -> Any:
        return cross_entropy(func.functional_call(network, weights, (image[None],)), label[None])

    slopes = func.vmap(func.grad(loss), (None, 0, 0))
    return lambda: slopes(weights, images, labels)


def _deep(library: Any, levels: int) -> Callable[[], Any]:
    """A hundred additions inside of so many vmaps, so that entering them counts little."""

    def sums(x: Any) -> Any:
        y = x
        for _ in range(100):
            y = x + x
        return y

    f = sums
    for _ in range(levels):
        f = library.func.vmap(f)
    x = library.ones([2] * levels)
    return lambda: f(x)


def _autocast_step(explicit: bool) -> Callable[[], Any]:
    """A training step of the digits network in bfloat16, by autocast or with the casts written out."""
    low, functional = mica.bfloat16, mica.nn.functional
    mica.manual_seed(0)
    network = _digits(mica)
    first, norm1, _, second, norm2, _, _, _, last = network
    optimizer = mica.optim.AdamW(network.parameters(), lr=3e-3)
    images, labels = mica.randn(64, 1, 8, 8), mica.randint(0, 10, (64,))

    def convolved(x: Any, layer: Any) -> Any:
        return functional.conv2d(x.to(low), layer.weight.to(low), layer.bias.to(low), padding=1)

    def by_hand() -> Any:
        x = functional.relu(norm1(convolved(images, first)))
        x = functional.relu(norm2(convolved(x, second)))
        x = functional.max_pool2d(x, 2).flatten(1)
        x = functional.linear(x.to(low), last.weight.to(low), last.bias.to(low))
        return functional.cross_entropy(x.float(), labels)

    def by_autocast() -> Any:
        with mica.autocast("cpu"):
            return functional.cross_entropy(network(images), labels)

    def step() -> None:
        optimizer.zero_grad()
        (by_hand() if explicit else by_autocast()).backward()
        optimizer.step()

    return step


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
    plus_one = func.vmap(lambda x: x + 1)
    return {
        "vmap of x + 1, 4 floats": lambda: plus_one(small),
        "x + x in one vmap, 100 times": _deep(library, 1),
        "x + x in six vmaps, 100 times": _deep(library, 6),
        "per-sample gradients, digits, 256": _per_sample(library),
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
    "vmap of x + 1, 4 floats": 8 / 77,
    "x + x in six vmaps, 100 times": 0.4 / 1.3,
    "per-sample gradients, digits, 256": 0.5,
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
    step = "autocast training step, digits"
    yield Row("transforms", step, _autocast_step(False), _autocast_step(True), "explicit casts", 1.03)
