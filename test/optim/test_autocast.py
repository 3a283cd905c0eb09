"""Autocast: policies against explicit casts, nesting, the cache, custom operators, misuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mica
from mica import nn
from mica.nn import functional as F
from mica.utils._python_dispatch import TorchDispatchMode


def matrices(*shape: int) -> list[mica.Tensor]:
    draw = np.random.default_rng(5)
    return [mica.from_numpy(draw.standard_normal(shape).astype(np.float32)) for _ in range(3)]


LOWER = {
    "mm": lambda x, y, z: x @ y,
    "linear": F.linear,
    "einsum": lambda x, y, z: mica.einsum("ij,kj,kl->il", x, y, z),
    "attention": lambda x, y, z: F.scaled_dot_product_attention(x[None, None], y[None, None], z[None, None]),
    "conv1d": lambda x, y, z: F.conv1d(x[None], y[:, :, None]),
}


@pytest.mark.parametrize("dtype", [mica.bfloat16, mica.float16])
@pytest.mark.parametrize("name", LOWER)
def test_lower_is_the_explicit_cast(name: str, dtype: mica.dtype) -> None:
    inputs = matrices(4, 4)
    inputs[2] = inputs[2][0] if name == "linear" else inputs[2]
    with mica.autocast("cpu", dtype):
        got = LOWER[name](*inputs)
    expected = LOWER[name](*(x.to(dtype) for x in inputs))
    assert got.dtype == dtype
    assert mica.equal(got, expected)


def test_float32_and_promote() -> None:
    x, y, _ = matrices(4, 4)
    low = x.bfloat16()
    with mica.autocast("cpu"):
        assert F.mse_loss(low, y.bfloat16()).dtype == mica.float32
        assert mica.cat([low, y]).dtype == mica.float32
        assert mica.cat([low, low]).dtype == mica.bfloat16
        assert (x.double() @ y.double()).dtype == mica.float64  # float64 stays
        assert mica.mm(x, y, out=mica.empty(4, 4)).dtype == mica.float32  # as written


def test_nesting_and_the_end() -> None:
    x, y, _ = matrices(4, 4)
    with mica.autocast("cpu", mica.float16):
        assert (x @ y).dtype == mica.float16
        with mica.autocast("cpu", enabled=False):
            assert (x @ y).dtype == mica.float32
            with mica.autocast("cpu", mica.bfloat16):
                assert (x @ y).dtype == mica.bfloat16
        assert (x @ y).dtype == mica.float16
        assert mica.get_autocast_dtype("cpu") == mica.float16
    with pytest.raises(ZeroDivisionError), mica.autocast("cpu"):
        raise ZeroDivisionError
    assert (x @ y).dtype == mica.float32
    assert not mica.is_autocast_enabled()
    assert mica.get_autocast_dtype("cpu") == mica.bfloat16


def test_decorator() -> None:
    x, y, _ = matrices(4, 4)

    @mica.autocast("cpu", mica.float16)
    def product() -> mica.Tensor:
        return x @ y

    assert product().dtype == mica.float16
    assert (x @ y).dtype == mica.float32


def test_parameters_are_cast_once_and_anew_after_a_write() -> None:
    layer = nn.Linear(4, 4, bias=False)
    x = matrices(4, 4)[0]
    with mica.autocast("cpu"):
        first, second = layer(x), layer(x)
        nodes = [y.grad_fn.next_functions for y in (first, second)]
        casts = [[n for n, _ in node if n is not None and "ToCopy" in n.name()] for node in nodes]
        with mica.no_grad():
            before = layer(x)
            layer.weight.mul_(2)
            after = layer(x)
        assert mica.equal(after, before * 2)
        later = layer(x)
    assert casts[0] == casts[1]
    assert mica.equal(later, after)
    first.float().sum().backward()
    assert layer.weight.grad is not None
    assert layer.weight.grad.dtype == mica.float32


class Casts(TorchDispatchMode):
    """Counts the copies that casts are made of."""

    count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += "copy" in str(func)
        return func(*args, **(kwargs or {}))


def test_a_parameter_is_cast_once_a_context() -> None:
    layer, x = nn.Linear(4, 4), matrices(4, 4)[0]
    counts = []
    for _ in range(2):
        with mica.autocast("cpu"):
            for _ in range(2):
                with Casts() as casts:
                    layer(x)
                counts.append(casts.count)
            with mica.no_grad():
                layer.weight.mul_(1)
            with Casts() as casts:
                layer(x)
            counts.append(casts.count)
    assert counts == [3, 1, 2, 3, 1, 2]  # input, weight, bias; the input; the input and what was written


def test_a_cast_without_history_does_not_serve_training() -> None:
    layer = nn.Linear(4, 4)
    x = matrices(4, 4)[0]
    with mica.autocast("cpu"):
        with mica.no_grad():
            layer(x)
        layer(x).float().sum().backward()
    assert layer.weight.grad is not None


@pytest.mark.parametrize("first", ["plain", "transform"])
def test_the_cache_and_transforms(first: str) -> None:
    """A cast made inside of a transform serves nobody outside; one made before serves inside."""
    layer, x = nn.Linear(4, 4), matrices(4, 4)[0]
    loss = lambda row: layer(row).float().sum()  # noqa: E731
    weight = layer.weight.detach().bfloat16().float()
    with mica.autocast("cpu"):
        if first == "plain":
            layer(x)
        slope = mica.func.grad(loss)(x[0])
        slopes = mica.func.vmap(mica.func.grad(loss))(x)
        _, tangent = mica.func.jvp(layer, (x,), (mica.ones_like(x),))
        y = layer(x)
    near = {"rtol": 2**-7, "atol": 2**-7}  # sums of bfloat16
    assert mica.allclose(slope, weight.sum(0), **near)
    assert mica.allclose(slopes, weight.sum(0).expand(4, 4), **near)
    assert tangent.dtype == y.dtype == mica.bfloat16
    assert mica.allclose(tangent.float(), mica.ones(4, 4) @ weight.t(), **near)
    y.float().sum().backward()
    assert layer.weight.grad is not None
    assert layer.weight.grad.dtype == mica.float32


def test_autocast_inside_of_transforms() -> None:
    x, w, _ = matrices(4, 4)

    def loss(x: mica.Tensor, w: mica.Tensor) -> mica.Tensor:
        with mica.autocast("cpu"):
            return (x @ w).float().square().mean()

    slope = mica.func.grad(loss, argnums=(0, 1))
    a, b = x.clone().requires_grad_(), w.clone().requires_grad_()
    expected = mica.autograd.grad(loss(a, b), (a, b))
    for got, want in zip(slope(x, w), expected):
        assert got.dtype == mica.float32 and mica.equal(got, want)
    mapped = mica.func.vmap(slope, (0, None))(x.expand(3, 4, 4), w)
    for got, want in zip(mapped, expected):
        assert mica.allclose(got[1], want, atol=1e-2)


def test_backward_runs_without_autocast() -> None:
    seen = []

    class Watch(mica.autograd.Function):
        @staticmethod
        @mica.amp.custom_fwd(device_type="cpu", cast_inputs=mica.float32)
        def forward(ctx: Any, x: mica.Tensor) -> mica.Tensor:
            seen.append((x.dtype, mica.is_autocast_enabled("cpu")))
            return x.clone()

        @staticmethod
        @mica.amp.custom_bwd(device_type="cpu")
        def backward(ctx: Any, grad: mica.Tensor) -> mica.Tensor:
            seen.append((grad.dtype, mica.is_autocast_enabled("cpu")))
            return grad

    x = matrices(4, 4)[0].requires_grad_()
    with mica.autocast("cpu"):
        y = Watch.apply(x @ x)
        (y @ y).sum().backward()
    assert seen == [(mica.float32, False), (mica.float32, False)]
    assert x.grad is not None
    assert x.grad.dtype == mica.float32


def test_a_layer_that_is_not_active_is_not_passed() -> None:
    assert "Autocast" not in str(mica.explain("mm", *matrices(2, 2)[:2]))
    with mica.autocast("cpu"):
        assert "Autocast" in str(mica.explain("mm", *matrices(2, 2)[:2]))


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        (("nowhere",), ValueError, "nowhere"),
        ((3,), ValueError, "no string"),
    ],
)
def test_bad_contexts(arguments: Any, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        mica.autocast(*arguments)
    assert not mica.is_autocast_enabled()


@pytest.mark.parametrize("wrong", [{"growth_factor": 1.0}, {"backoff_factor": 1.0}])
def test_bad_scalers(wrong: dict[str, Any]) -> None:
    with pytest.raises(AssertionError, match=next(iter(wrong))):
        mica.amp.GradScaler("cpu", **wrong)
