"""Gradients from Python: hooks, custom functions, modes, checks, errors."""

from __future__ import annotations

from typing import Any

import pytest

import mica
from mica.autograd import Function, gradcheck, gradgradcheck


class Square(Function):
    """x * x."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 2 * x * grad


class Wrong(Square):
    """x * x with a wrong gradient."""

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 3 * x * grad


def leaf(*values: float) -> Any:
    return mica.tensor(values, dtype=mica.float64, requires_grad=True)


def test_backward_and_accumulation() -> None:
    x = leaf(1, 2)
    (x * x).sum().backward()
    (x * x).sum().backward()
    assert x.grad.tolist() == [4, 8]


def test_tensor_hook() -> None:
    x = leaf(1, 2)
    handle = x.register_hook(lambda g: g * 10)
    (x * 3).sum().backward()
    assert x.grad.tolist() == [30, 30]
    handle.remove()
    x.grad = None
    (x * 3).sum().backward()
    assert x.grad.tolist() == [3, 3]


def test_hook_that_raises_ends_the_backward_with_its_own_exception() -> None:
    x = leaf(1)

    def hook(grad: Any) -> Any:
        raise KeyError("mine")

    x.register_hook(hook)
    with pytest.raises(KeyError, match="mine"):
        x.sum().backward()


def test_custom_function() -> None:
    x = leaf(2, 3)
    y = Square.apply(x)
    assert y.grad_fn.name() == "SquareBackward"
    y.sum().backward()
    assert x.grad.tolist() == [4, 6]


def test_gradcheck() -> None:
    assert gradcheck(Square.apply, (leaf(2, 3),)) and gradgradcheck(Square.apply, (leaf(2, 3),))
    assert not gradcheck(Wrong.apply, (leaf(2, 3),), raise_exception=False)
    with pytest.raises(RuntimeError, match="finite differences"):
        gradcheck(Wrong.apply, (leaf(2, 3),))


def test_function_with_setup_context_and_several_outputs() -> None:
    class Split(Function):
        @staticmethod
        def forward(x: Any, factor: float) -> Any:
            return x * factor, x + factor

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.factor = inputs[1]

        @staticmethod
        def backward(ctx: Any, first: Any, second: Any) -> Any:
            return first * ctx.factor + second, None

    x = leaf(1, 2)
    a, b = Split.apply(x, 5.0)
    (a.sum() + b.sum()).backward()
    assert x.grad.tolist() == [6, 6]


def test_version_error_names_operator_and_write() -> None:
    x = leaf(1, 2)
    y = x.exp()
    y.add_(1)
    with pytest.raises(RuntimeError, match="(?s)ExpBackward.*add_"):
        y.sum().backward()


def test_modes() -> None:
    x = leaf(1)
    with mica.no_grad():
        assert not (x * 2).requires_grad
        with mica.enable_grad():
            assert (x * 2).requires_grad

    @mica.no_grad()
    def plain() -> bool:
        return bool((x * 2).requires_grad)

    @mica.no_grad
    def without_parentheses() -> bool:
        return bool((x * 2).requires_grad)

    @mica.no_grad()
    def generator() -> Any:
        yield (x * 2).requires_grad

    assert not plain() and not without_parentheses()
    for flag in generator():
        assert not flag and mica.is_grad_enabled()
    with mica.inference_mode():
        made = mica.ones(1)
    assert made.is_inference() and mica.is_grad_enabled()
    with mica.set_grad_enabled(False):
        assert not mica.is_grad_enabled()
    assert mica.is_grad_enabled()


def test_grad_of_unused_input() -> None:
    x, y = leaf(1), leaf(2)
    with pytest.raises(RuntimeError):
        mica.autograd.grad(x.sum(), (x, y))
    grads = mica.autograd.grad(x.sum(), (x, y), allow_unused=True)
    assert grads[1] is None


def test_saved_tensor_hooks() -> None:
    x = leaf(2, 3)
    packed = []
    with mica.autograd.graph.saved_tensors_hooks(lambda t: packed.append(t) or t * 1, lambda t: t):
        y = (x * x).sum()
    y.backward()
    assert packed and x.grad.tolist() == [4, 6]


def test_anomaly_mode_reports_the_forward() -> None:
    x = leaf(-1)
    with (
        mica.autograd.detect_anomaly(),
        pytest.warns(UserWarning),
        pytest.raises(RuntimeError, match="[Nn]a[Nn]"),
    ):
        x.sqrt().sum().backward()


def test_deep_graph() -> None:
    x = leaf(1)
    y = x
    for _ in range(100_000):
        y = y + 1
    y.backward()
    assert x.grad.tolist() == [1]
