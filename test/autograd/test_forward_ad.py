"""mica.autograd.forward_ad, gradcheck's check_forward_ad, and mica.autograd.functional."""

from __future__ import annotations

import pytest

import mica
from mica.autograd import functional, gradcheck
from mica.autograd.forward_ad import dual_level, enter_dual_level, exit_dual_level, make_dual, unpack_dual


def vector(*values: float) -> mica.Tensor:
    return mica.tensor(list(values), dtype=mica.float64)


def test_dual_level():
    x, t = vector(1, 2), vector(1, 0)
    with dual_level():
        dual = make_dual(x, t)
        value, tangent = unpack_dual(dual * dual + vector(1, 1))
        assert unpack_dual(vector(1)).tangent is None
        constant = mica.ones(2, dtype=mica.float64)
    assert value.tolist() == [2, 5] and tangent.tolist() == [2, 0]
    assert (constant + x).tolist() == [2, 3]  # what has no tangent outlives its level
    assert unpack_dual(x) == (x, None)


def test_levels_nest():
    x, one = vector(3), vector(1)
    with dual_level():
        outer = make_dual(x, one)
        with dual_level():
            inner = make_dual(outer, one)
            first = unpack_dual(inner**3).tangent
        second = unpack_dual(first).tangent
    assert second.tolist() == [18]


def test_modules():
    net = mica.nn.Linear(2, 1, dtype=mica.float64)
    x = vector(1, 2)
    direction = mica.ones_like(net.weight)
    with dual_level():
        saved = net.weight
        del net.weight
        net.weight = make_dual(saved, direction)
        out = net(x)
        assert unpack_dual(out).tangent.tolist() == [3]


def test_recorded_under_a_level():
    x = vector(1, 2).requires_grad_()
    with dual_level():
        tangent = unpack_dual(make_dual(x, vector(1, 1)).sin()).tangent
    tangent.sum().backward()
    assert mica.allclose(x.grad, -x.detach().sin())


@pytest.mark.parametrize(
    ("call", "kind", "sentence"),
    [
        (lambda: make_dual(vector(1), vector(1)), RuntimeError, "no dual level is active"),
        (lambda: exit_dual_level(), RuntimeError, "no dual level was entered"),
        (lambda: within(lambda: make_dual(vector(1), vector(1, 2))), RuntimeError, "shape \\(2,\\) of the tangent"),
        (lambda: within(lambda: make_dual(vector(1), vector(1) * 1j)), RuntimeError, "is complex"),
        (lambda: within(lambda: make_dual(mica.ones(1, dtype=mica.int64), vector(1))), ValueError, "primal"),
        (lambda: within(lambda: exit_dual_level(level=5)), RuntimeError, "not the innermost"),
    ],
)  # fmt: skip
def test_wrong_calls(call, kind, sentence):
    with pytest.raises(kind, match=sentence):
        call()
    assert mica._C._frame_depth() == 0


def within(f):
    with dual_level():
        f()


def test_enter_and_exit():
    level = enter_dual_level()
    exit_dual_level(level=level)
    assert mica._C._frame_depth() == 0


def test_gradcheck_forward():
    x = vector(0.3, 0.6).requires_grad_()
    assert gradcheck(lambda x: (x.sin() * x, x.prod()), x, check_forward_ad=True)
    assert gradcheck(lambda x: x.exp(), x, check_forward_ad=True, check_backward_ad=False)

    class Wrong(mica.autograd.Function):
        @staticmethod
        def forward(x):
            return x**2

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.x = inputs[0]

        @staticmethod
        def backward(ctx, g):
            return 2 * ctx.x * g

        @staticmethod
        def jvp(ctx, t):
            return 3 * ctx.x * t

    assert gradcheck(Wrong.apply, x)
    with pytest.raises(RuntimeError, match="forward mode gives"):
        gradcheck(Wrong.apply, x, check_forward_ad=True)


class Scaled(mica.autograd.Function):
    """scale * a * b and a, whose forward() takes ctx."""

    @staticmethod
    def forward(ctx, a, b, scale):
        ctx.save_for_backward(b, a)
        ctx.save_for_forward(a, b)
        ctx.scale = scale
        return scale * a * b, a

    @staticmethod
    def backward(ctx, g, h):
        b, a = ctx.saved_tensors
        return g * b * ctx.scale + h, g * a * ctx.scale, None

    @staticmethod
    def jvp(ctx, s, t, scale):
        a, b = ctx.saved_tensors
        assert scale is None
        return ctx.scale * (s * b + a * t), s.view_as(s)


def test_function_with_ctx_under_dual_numbers():
    a, b = vector(1, 2).requires_grad_(), vector(3, 5).requires_grad_()
    y, same = Scaled.apply(a, b, 2.0)
    (y + same).sum().backward()
    assert a.grad.tolist() == [7, 11] and b.grad.tolist() == [2, 4]
    with dual_level():
        dual = make_dual(a.detach(), vector(1, 10))
        y, same = (unpack_dual(t) for t in Scaled.apply(dual, b.detach(), 2.0))
        assert y.primal.tolist() == [6, 20] and y.tangent.tolist() == [6, 100]
        assert same.primal.tolist() == [1, 2] and same.tangent.tolist() == [1, 10]
    assert gradcheck(lambda a, b: Scaled.apply(a, b, 2.0)[0], (a, b), check_forward_ad=True)


def test_function_that_writes_its_input_has_no_tangent():
    class Doubled(mica.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def jvp(ctx, t):
            return t.mul_(2)

    with dual_level(), pytest.raises(NotImplementedError, match="Doubled writes its inputs in place"):
        Doubled.apply(make_dual(vector(1), vector(1)))


def test_functional():
    f = lambda x: (x**3).sum()  # noqa: E731
    x, v = vector(1, 2), vector(1, -1)
    assert functional.vjp(lambda x: x * x, x, v)[1].tolist() == [2, -4]
    assert functional.jvp(lambda x: x * x, x, v)[1].tolist() == [2, -4]
    assert functional.jacobian(lambda x: x * x, x).tolist() == [[2, 0], [0, 4]]
    assert functional.hessian(f, x).tolist() == [[6, 0], [0, 12]]
    assert functional.hvp(f, x, v)[1].tolist() == [6, -12]
    assert functional.vhp(f, x, v)[1].tolist() == [6, -12]
    pair = functional.jacobian(lambda a, b: (a * b, a.sum()), (x, v))
    assert pair[0][1].tolist() == [[1, 0], [0, 2]] and pair[1][1].tolist() == [0, 0]
    w = x.clone().requires_grad_()
    functional.jacobian(lambda x: x**2, w, create_graph=True).sum().backward()
    assert w.grad.tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="strict"):
        functional.jacobian(lambda a: vector(1), x, strict=True)
    with pytest.raises(RuntimeError, match="a single element"):
        functional.hessian(lambda x: x, x)


def test_a_dual_number_of_what_requires_grad_says_so() -> None:
    x = vector(1, 2).requires_grad_()
    with dual_level():
        dual = make_dual(x, vector(1, 1))
        y = dual**3
        assert dual.requires_grad and y.requires_grad and not y.is_leaf
        assert not make_dual(x.detach(), vector(1, 1)).requires_grad
        for call in (y.sum().backward, lambda: mica.autograd.grad(y.sum(), x)):
            with pytest.raises(NotImplementedError, match=r"would lose their tangents. Take\s+unpack_dual"):
                call()
        with pytest.raises(NotImplementedError, match=r"before make_dual\(\)"):
            make_dual(vector(1, 2), vector(1, 1)).requires_grad_()
        value, tangent = unpack_dual(y)
        assert mica.autograd.grad(value.sum(), x, retain_graph=True)[0].tolist() == [3, 12]
        assert mica.autograd.grad(tangent.sum(), x)[0].tolist() == [6, 12]


def test_data_of_constants_of_a_dual_level_can_be_replaced() -> None:
    outside = mica.zeros(2)
    with dual_level():
        inside = mica.empty(())
        inside.set_(mica.arange(4.0).untyped_storage(), 1, (3,), (1,))
        assert inside.tolist() == [1, 2, 3]
        assert (2 * inside).tolist() == [2, 4, 6]
        outside.data = inside
        assert outside.tolist() == [1, 2, 3]
        inside.add_(1)
        assert outside.tolist() == [2, 3, 4]  # one memory
        dual = make_dual(mica.ones(3), mica.ones(3))
        for to, data in ((dual, inside), (inside, dual), (outside, dual)):
            with pytest.raises(NotImplementedError, match="cannot be replaced inside a transform"):
                to.data = data
    assert outside.tolist() == [2, 3, 4]


def test_gradients_of_constants_of_a_dual_level() -> None:
    with dual_level():
        x = mica.ones(2, requires_grad=True)
        y = (x * vector(2, 3)).sum()
        assert x.is_leaf and y.requires_grad
        assert mica.autograd.grad(y, x, retain_graph=True)[0].tolist() == [2, 3]
        y.backward()
        assert x.grad.tolist() == [2, 3]

        dual = make_dual(x, vector(1, 1).float())
        assert mica.autograd.grad(unpack_dual(dual * dual).tangent.sum(), x)[0].tolist() == [2, 2]


def test_a_gradient_that_is_set_keeps_its_tangent() -> None:
    x = vector(1, 2).requires_grad_()
    with dual_level():
        x.grad = make_dual(vector(3, 4), vector(5, 6))
        assert unpack_dual(x.grad).tangent.tolist() == [5, 6]
