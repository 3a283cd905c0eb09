"""A layer whose plugin is disabled: calls that rely on it say so, others go on; and what comes back stands where
it stood."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

import mica


@pytest.fixture
def without_autograd() -> Iterator[mica.Tensor]:
    x = mica.tensor([1.0, -2.0], requires_grad=True)
    mica.disable_plugin("autograd")
    yield x
    mica.enable_plugin("autograd")


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x + 1,
        lambda x: x.sum(),
        lambda x: x.view(2, 1),
        lambda x: mica.ones(2).mul_(x),
        lambda x: mica.nn.functional.gelu(x),
        lambda x: mica.stack([mica.ones(2), x]),
    ],
)
def test_recorded_calls_are_refused(
    without_autograd: mica.Tensor, call: Callable[[mica.Tensor], mica.Tensor]
) -> None:
    x = without_autograd
    with pytest.raises(NotImplementedError) as caught:
        call(x)
    sentence = str(caught.value)
    assert "needs the layer (Autograd), as a tensor of the call requires grad" in sentence
    assert "Plugin (autograd) provides it and is disabled" in sentence
    assert "mica.no_grad()" in sentence
    assert x.tolist() == [1.0, -2.0]


def test_calls_that_nothing_records_go_on(without_autograd: mica.Tensor) -> None:
    x = without_autograd
    assert (mica.ones(2) + 1).tolist() == [2.0, 2.0]
    assert (x.detach() * 2).tolist() == [2.0, -4.0]
    assert "[ 1., -2.]" in repr(x)
    assert (x > 0).tolist() == [True, False]
    with mica.no_grad():
        assert (x + 1).tolist() == [2.0, -1.0]


def test_gradients_are_back_with_the_plugin() -> None:
    x = mica.tensor([1.0, -2.0], requires_grad=True)
    mica.disable_plugin("autograd")
    with pytest.raises(NotImplementedError):
        x * 3
    mica.enable_plugin("autograd")
    (x * 3).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


def test_autocast_says_that_it_is_gone() -> None:
    a = mica.ones(2, 2)
    with mica.autocast("cpu", dtype=mica.bfloat16):
        assert mica.mm(a, a).dtype == mica.bfloat16
        mica.disable_plugin("autocast")
        try:
            with pytest.raises(
                NotImplementedError, match=r"mm.* needs the layer \(Autocast\).*leave the context"
            ):
                mica.mm(a, a)
        finally:
            mica.enable_plugin("autocast")
        assert mica.mm(a, a).dtype == mica.bfloat16
    assert mica.mm(a, a).dtype == mica.float32


def test_an_override_stands_above_what_came_before_it() -> None:
    x = mica.tensor([[1.0], [3.0]])
    normed = mica.nn.functional.batch_norm(x, None, None, training=True).tolist()
    library = mica.library.Library("mica", "IMPL")
    library.impl("native_batch_norm", lambda x, *rest: (x + 40, x[0], x[0]), "cpu")
    try:
        assert mica.nn.functional.batch_norm(x, None, None, training=True).tolist() == [[41.0], [43.0]]
        mica.disable_plugin("cpu")
        mica.enable_plugin("cpu")
        assert mica.nn.functional.batch_norm(x, None, None, training=True).tolist() == [[41.0], [43.0]]
    finally:
        library._destroy()
    assert mica.nn.functional.batch_norm(x, None, None, training=True).tolist() == normed
