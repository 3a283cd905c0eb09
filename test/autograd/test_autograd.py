"""Gradients from Python: hooks, custom functions, modes, checks, errors."""

from __future__ import annotations

from typing import Any

import pytest

import mica
from mica.autograd import Function


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


WRITES = {
    "mica::add_": lambda w: w.add_(1),
    "mica::clamp_": lambda w: w.clamp_(0, 1),  # made of others
    "mica::fill_": lambda w: w[0].fill_(5),  # through a view
    "mica::uniform_": lambda w: w.uniform_(),
    "mica::mul.Scalar_out": lambda w: mica.mul(w, 2, out=w),
}


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("requires_grad", [False, True])
def test_version_error_names_the_write(name: str, requires_grad: bool) -> None:
    """Also a write to a tensor that has nothing to do with gradients itself."""
    x, w = leaf(1, 2, 3), mica.ones(3, dtype=mica.float64, requires_grad=requires_grad)
    y = (x * w).sum()
    with mica.no_grad():
        WRITES[name](w)
    with pytest.raises(RuntimeError, match=rf"float64\[3\] on cpu, which MulBackward0 saved.*was {name}"):
        y.backward()


@pytest.mark.parametrize("name", ["eq_", "logical_not_", "gt_"])
def test_inplace_without_gradient_cuts_the_history(name: str) -> None:
    x = leaf(1, 2, 3)
    y = x * 2
    other = () if name == "logical_not_" else (mica.ones(3, dtype=mica.float64),)
    getattr(y, name)(*other)
    (y * 5).sum().backward()
    assert x.grad.tolist() == [0, 0, 0]


def test_inplace_composite_keeps_what_its_parts_save() -> None:
    x = leaf(-2, 0.5, 2)
    (x * 1).clamp_(-1, 1).sum().backward()
    assert x.grad.tolist() == [0, 1, 0]


def test_abs_of_complex_is_refused_in_place() -> None:
    with pytest.raises(RuntimeError, match="real.*`self`.*complex"):
        mica.ones(2, dtype=mica.complex64).abs_()


def test_scatter_from_a_larger_source() -> None:
    x, src = mica.zeros(3, dtype=mica.float64, requires_grad=True), leaf(1, 2, 3, 4)
    x.scatter(0, mica.tensor([2, 0]), src).sum().backward()
    assert src.grad.tolist() == [1, 1, 0, 0] and x.grad.tolist() == [0, 1, 0]


def test_scatter_reduce_of_zeros() -> None:
    """The product's gradient is that of the others, also where a factor is zero."""
    x, src = leaf(0, 2, 3), leaf(5, 0, 0)
    x.scatter_reduce(0, mica.tensor([0, 1, 2]), src, "prod").sum().backward()
    assert x.grad.tolist() == [5, 0, 0] and src.grad.tolist() == [0, 2, 3]


@pytest.mark.parametrize("dtype", [mica.float64, mica.complex128])
def test_gradient_of_cumprod(dtype: Any) -> None:
    """As by the products of all others, where zeros stand anywhere; also the second one, and the tangent."""
    mica.manual_seed(0)
    for zeros in ([], [0], [3], [0, 1], [2, 5], [6], [0, 3, 6], list(range(7))):
        x, grad = (mica.randn(7, 2, dtype=dtype) for _ in range(2))
        x[zeros, 0] = 0
        x.requires_grad_()
        (found,) = mica.autograd.grad(x.cumprod(0), x, grad)
        expected = mica.zeros(7, 2, dtype=dtype)
        for i in range(7):
            for j in range(i, 7):
                others = [k for k in range(j + 1) if k != i]
                expected[i] += grad[j] * x.detach()[others].prod(0).conj()
        assert mica.allclose(found, expected, rtol=1e-12, atol=1e-12)
        assert mica.autograd.gradgradcheck(lambda y: y.cumprod(0), (x,), check_fwd_over_rev=True)
        assert mica.autograd.gradcheck(lambda y: y.cumprod(0), (x,), check_forward_ad=True)


@pytest.mark.parametrize("behind", [8, 9000])
@pytest.mark.parametrize("dtype", [mica.float32, mica.complex64])
def test_gradient_of_cumprod_where_products_behind_a_zero_overflow(dtype: Any, behind: int) -> None:
    x = mica.full((3 + behind, 2), 1e30, dtype=dtype)
    x[:3] = mica.tensor([[1.0], [2.0], [0.0]])
    x.requires_grad_()
    x.cumprod(0)[:, 0].real.sum().backward()
    assert x.grad is not None
    assert x.grad[:2].real.tolist() == [[3, 0], [1, 0]]
    assert not x.grad[2, 0].isfinite()
    assert not x.grad[3:].any() and not x.grad[:, 1].any()


def test_gradient_of_cumprod_takes_as_many_steps_for_any_length() -> None:
    def calls(n: int) -> int:
        x = mica.ones(n, requires_grad=True)
        y = x.cumprod(0).sum()
        with mica.profiler.profile() as found:
            y.backward()
        assert x.grad is not None and x.grad.tolist() == list(range(n, 0, -1))
        return len(found.events())

    assert calls(5) == calls(5000)


@pytest.mark.parametrize("name", ["prod", "cumprod", "logcumsumexp"])
def test_gradients_at_zeros(name: str) -> None:
    """Zeros among the factors, and cotangents of zero, give no NaN in either gradient."""
    x = leaf(0, 2, 0, 3) if name != "logcumsumexp" else leaf(1, -2, 3)
    dims = () if name == "prod" else (0,)
    assert mica.autograd.gradcheck(getattr(mica, name), (x, *dims))
    assert mica.autograd.gradgradcheck(getattr(mica, name), (x, *dims))
    y = getattr(mica, name)(x, *dims).reshape(-1)[0]
    (first,) = mica.autograd.grad(y, x, create_graph=True)
    first.sum().backward()
    assert not x.grad.isnan().any()
