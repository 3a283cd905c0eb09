"""gradcheck and gradgradcheck themselves: what they find, say and refuse."""

from __future__ import annotations

from typing import Any

import pytest

import mica
from mica.autograd import Function, gradcheck, gradgradcheck
from mica.autograd.gradcheck import GradcheckError


def leaf(*values: complex, dtype: Any = mica.float64) -> Any:
    return mica.tensor(values, dtype=dtype, requires_grad=True)


def function(backward: Any) -> Any:
    """x * x with this backward, a function of x and the cotangent."""

    class Square(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            (x,) = ctx.saved_tensors
            return backward(x, grad)

    return Square.apply


RIGHT = function(lambda x, g: 2 * x * g)
# What is wrong, and what the message says of it.
WRONG = {
    "slope": (lambda x, g: 3 * x * g, r"output 0 .*input 0.*\[0\].*\(6\).*\(4(\.0+\d*|)\)|(3\.99+)"),
    "one element": (lambda x, g: 2 * x * g + mica.tensor([0.0, 0.5]) * g, r"input element \[1\]"),
    "ignores the cotangent": (lambda x, g: 2 * x, r"zero|element"),
    "second gradient alone": (lambda x, g: 2 * x.detach() * g, ""),
}


@pytest.mark.parametrize("fast_mode", [False, True])
def test_right(fast_mode: bool) -> None:
    assert gradcheck(RIGHT, leaf(2, 3), fast_mode=fast_mode)
    assert gradgradcheck(RIGHT, leaf(2, 3), fast_mode=fast_mode)
    z = leaf(1 + 2j, -0.5j, dtype=mica.complex128)
    for f in (RIGHT, mica.abs, lambda t: mica.view_as_real(t) * 2, lambda t: t.conj() * t):
        expected = f is not RIGHT  # its backward lacks the conjugate
        assert gradcheck(f, z, fast_mode=fast_mode, raise_exception=False) == expected


@pytest.mark.parametrize("fast_mode", [False, True])
@pytest.mark.parametrize("name", WRONG)
def test_wrong(name: str, fast_mode: bool) -> None:
    backward, message = WRONG[name]
    f, x = function(backward), leaf(2, 3)
    if not message:
        assert gradcheck(f, x, fast_mode=fast_mode)
        with pytest.raises(GradcheckError, match="does not require grad|finite differences"):
            gradgradcheck(f, x, fast_mode=fast_mode)
        return
    assert not gradcheck(f, x, fast_mode=fast_mode, raise_exception=False)
    with pytest.raises(GradcheckError, match=message):
        gradcheck(f, x, fast_mode=fast_mode)


def test_not_reentrant() -> None:
    calls = []

    def backward(x: Any, g: Any) -> Any:
        calls.append(1)
        return 2 * x * g * (1 + 1e-9 * len(calls))

    with pytest.raises(GradcheckError, match="between two runs of backward"):
        gradcheck(function(backward), leaf(2, 3))
    assert gradcheck(function(backward), leaf(2, 3), nondet_tol=1e-3)


def test_undefined_cotangents() -> None:
    class Two(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.set_materialize_grads(False)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx: Any, first: Any, second: Any) -> Any:
            if first is None or second is None:
                raise RuntimeError("no gradient came")
            return 2 * first + 3 * second

    def both(x: Any) -> Any:
        a, b = Two.apply(x)
        return a + b, a - b  # so that one cotangent reaches both

    assert gradcheck(both, leaf(1, 2), check_undefined_grad=False)
    with pytest.raises(GradcheckError, match="undefined: no gradient came"):
        gradcheck(both, leaf(1, 2))


def test_constant_output_that_changes() -> None:
    assert gradcheck(lambda x: mica.zeros_like(x), leaf(1, 2))
    with pytest.raises(GradcheckError, match="does not require grad, but it changes"):
        gradcheck(lambda x: x.detach() * 2, leaf(1, 2))


def test_inputs() -> None:
    with pytest.raises(ValueError, match="requires grad"):
        gradcheck(RIGHT, mica.ones(2, dtype=mica.float64))
    with pytest.raises(RuntimeError, match="share memory"):
        gradcheck(RIGHT, leaf(1).detach().expand(3).requires_grad_())
    with pytest.warns(UserWarning, match="float64"):
        gradcheck(RIGHT, leaf(1, dtype=mica.float32), raise_exception=False)
    with pytest.raises(NotImplementedError, match="masked"):
        gradcheck(RIGHT, leaf(1), masked=True)
    with pytest.raises(AssertionError, match="requires check_forward_ad"):
        gradcheck(RIGHT, leaf(1), check_batched_forward_grad=True)
    with pytest.raises(AssertionError, match="requires check_backward_ad"):
        gradcheck(RIGHT, leaf(1), check_batched_grad=True, check_backward_ad=False, check_forward_ad=True)
    # What is not a tensor that requires grad goes through as it is, and inputs are as before.
    x = leaf(1, 2)
    assert gradcheck(lambda t, factor, other: t * factor + other, (x, 3, mica.ones(2, dtype=mica.float64)))
    assert x.tolist() == [1, 2] and x.grad is None


def test_given_cotangents() -> None:
    x, seed = leaf(1, 2), leaf(0.5, -1)
    assert gradgradcheck(RIGHT, x, seed)
    assert gradgradcheck(RIGHT, x, gen_non_contig_grad_outputs=True)
    with pytest.raises(ValueError, match="output that requires grad"):
        gradgradcheck(lambda t: t.detach(), x)


# What vmap must see through: views, in-place writes, several outputs, complex numbers.
BATCHED = {
    "product": (lambda x: x * x.flip(0), leaf(1, 2, 3)),
    "in place": (lambda x: x.clone().mul_(x).cumsum(0), leaf(1, 2, 3)),
    "two outputs": (lambda x: (x.sin(), x.reshape(2, 2).sum(0)), leaf(1, 2, 3, 4)),
    "complex": (lambda z: (z.abs(), z * z.conj()), leaf(1 + 2j, -0.5j, dtype=mica.complex128)),
}


@pytest.mark.parametrize("fast_mode", [False, True])
@pytest.mark.parametrize("name", BATCHED)
def test_batches_and_forward_over_reverse(name: str, fast_mode: bool) -> None:
    f, x = BATCHED[name]
    assert gradcheck(f, x, check_batched_grad=True, fast_mode=fast_mode)
    assert gradcheck(f, x, check_forward_ad=True, check_batched_forward_grad=True, fast_mode=fast_mode)
    assert gradgradcheck(f, x, check_batched_grad=True, check_fwd_over_rev=True, fast_mode=fast_mode)
    assert gradgradcheck(f, x, check_fwd_over_rev=True, check_rev_over_rev=False, fast_mode=fast_mode)


def test_a_backward_that_vmap_cannot_batch() -> None:
    reads_values = function(lambda x, g: 2 * x * g if float(g.sum()) > -1e9 else g)
    assert gradcheck(reads_values, leaf(2, 3))
    with pytest.raises(GradcheckError, match="fails under vmap"):
        gradcheck(reads_values, leaf(2, 3), check_batched_grad=True)
    assert not gradcheck(reads_values, leaf(2, 3), check_batched_grad=True, raise_exception=False)


def test_nothing_left_to_check() -> None:
    with pytest.raises(AssertionError, match="nothing left to check"):
        gradgradcheck(RIGHT, leaf(1), check_rev_over_rev=False)
    with pytest.raises(AssertionError, match="nothing left to check"):
        gradcheck(RIGHT, leaf(1), check_backward_ad=False)


@pytest.mark.parametrize("fast_mode", [False, True])
def test_backward_is_checked_before_forward_mode(fast_mode: bool) -> None:
    class Failing(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            raise RuntimeError("backward fails")

        @staticmethod
        def jvp(ctx: Any, tangent: Any) -> Any:
            raise RuntimeError("jvp fails")

    with pytest.raises(RuntimeError, match="backward fails"):
        gradcheck(Failing.apply, leaf(1), check_forward_ad=True, fast_mode=fast_mode)
    with pytest.raises(RuntimeError, match="jvp fails"):
        gradcheck(Failing.apply, leaf(1), check_forward_ad=True, check_backward_ad=False, fast_mode=fast_mode)
