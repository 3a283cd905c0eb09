"""mica.func: values of transforms, their nestings, writes and views under them, what they
leave behind, and the sentences of wrong calls."""

from __future__ import annotations

import gc
import math

import pytest
from compare import same

import mica
from mica.func import (
    functional_call,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    stack_module_state,
    vjp,
)
from mica.fx import make_fx


def scalar(value: float) -> mica.Tensor:
    return mica.tensor(value, dtype=mica.float64)


def vector(*values: float) -> mica.Tensor:
    return mica.tensor(list(values), dtype=mica.float64)


def close(a, b, tolerance: float = 1e-9) -> bool:
    return same(mica.as_tensor(a, dtype=b.dtype), b, tolerance)


# ---- one level
def test_grad():
    x = vector(1, 2, 3)
    g = grad(lambda x: (x * x).sum())(x)
    assert g.tolist() == [2, 4, 6] and not g.requires_grad and x.grad is None


def test_grad_argnums_and_trees():
    f = lambda a, b: (a["x"] * b[0] + b[1] ** 2).sum()  # noqa: E731
    a, b = {"x": vector(1, 2)}, (vector(3, 4), vector(5, 6))
    ga, gb = grad(f, argnums=(0, 1))(a, b)
    assert ga["x"].tolist() == [3, 4] and gb[0].tolist() == [1, 2] and gb[1].tolist() == [10, 12]
    assert grad(f, argnums=-1)(a, b)[0].tolist() == [1, 2]


def test_grad_and_value_with_aux():
    g, (value, aux) = grad_and_value(lambda x: ((x**2).sum(), {"twice": 2 * x}), has_aux=True)(vector(1, 2))
    assert g.tolist() == [2, 4] and value.item() == 5 and aux["twice"].tolist() == [2, 4]
    assert not aux["twice"].requires_grad


def test_grad_of_what_does_not_depend():
    assert grad(lambda x: mica.ones((), dtype=mica.float64))(vector(1, 2)).tolist() == [0, 0]
    assert grad(lambda x, y: y.sum(), argnums=(0, 1))(vector(1), vector(2))[0].tolist() == [0]


def test_vjp():
    out, pull = vjp(lambda x, y: {"s": x * y, "t": x.sum()}, vector(1, 2), vector(3, 4))
    assert out["s"].tolist() == [3, 8]
    for _ in range(2):
        gx, gy = pull({"s": vector(1, 0), "t": scalar(10)})
        assert gx.tolist() == [13, 10] and gy.tolist() == [1, 0]


def test_jvp():
    out, tangent = jvp(lambda x, y: x * y, (vector(1, 2), vector(3, 4)), (vector(1, 0), vector(0, 1)))
    assert out.tolist() == [3, 8] and tangent.tolist() == [3, 2]
    out, tangent, aux = jvp(lambda x: (x.sin(), x), (vector(0.5),), (vector(2),), has_aux=True)
    assert close(tangent, 2 * vector(0.5).cos()) and aux.tolist() == [0.5]


def test_jvp_of_a_constant():
    f = lambda x: mica.ones(2, dtype=mica.float64)  # noqa: E731
    assert jvp(f, (vector(1),), (vector(1),))[1].tolist() == [0, 0]
    with pytest.raises(RuntimeError, match=r"output \(0\) does not depend"):
        jvp(f, (vector(1),), (vector(1),), strict=True)


def test_linearize():
    x = vector(0.3, 0.7)
    out, push = linearize(lambda x: (x.sin() * x).cumsum(0), x)
    for t in (vector(1, 0), vector(0.5, -2)):
        expected = jvp(lambda x: (x.sin() * x).cumsum(0), (x,), (t,))
        assert close(out, expected[0]) and close(push(t), expected[1])


def test_jacobians_and_hessian():
    x = vector(0.2, -0.4, 0.9)
    f = lambda x: mica.stack([x.prod(), (x**2).sum()])  # noqa: E731
    reverse, forward = jacrev(f)(x), jacfwd(f)(x)
    assert reverse.shape == (2, 3) and close(reverse, forward)
    h = hessian(lambda x: (x**3).sum() + x.prod())(x)
    a, b, c = x.tolist()
    assert close(h, mica.tensor([[6 * a, c, b], [c, 6 * b, a], [b, a, 6 * c]], dtype=mica.float64))
    both = jacrev(lambda a, b: a * b, argnums=(0, 1))(vector(1, 2), vector(3, 4))
    assert both[0].tolist() == [[3, 0], [0, 4]] and both[1].tolist() == [[1, 0], [0, 2]]


# ---- nesting
def nested(kind: str, f):
    """The derivative of a function of a number, as a function of a number."""
    return grad(f) if kind == "r" else lambda x: jvp(f, (x,), (mica.ones_like(x),))[1]


@pytest.mark.parametrize("kinds", ["rr", "rf", "fr", "ff", "rfr", "frf", "rrr", "fff"])
def test_nested_derivatives(kinds):
    f = lambda x: (x * x.sin()).exp()  # noqa: E731
    g, expected = f, f
    x = scalar(0.4)
    for kind in kinds:
        g = nested(kind, g)
    expected = derivative(len(kinds), 0.4)
    assert math.isclose(g(x).item(), expected, rel_tol=1e-9)


def derivative(n: int, at: float) -> float:
    """The n-th derivative of exp(x sin x) at `at`, by its Taylor series."""
    order = n + 1
    sin = [math.sin(at + k * math.pi / 2) / math.factorial(k) for k in range(order)]
    inner = [at * sin[k] + (sin[k - 1] if k else 0) for k in range(order)]
    series = [math.exp(inner[0])] + [0.0] * n
    for k in range(1, order):
        series[k] = sum(j * inner[j] * series[k - j] for j in range(1, k + 1)) / k
    return series[n] * math.factorial(n)


@pytest.mark.parametrize("kinds", ["rrrrrr", "ffffff", "rfrfrf"])
def test_six_deep(kinds):
    g = lambda x: (x * 0.7).exp()  # noqa: E731
    for kind in kinds:
        g = nested(kind, g)
    assert math.isclose(g(scalar(0.1)).item(), 0.7**6 * math.exp(0.07), rel_tol=1e-12)


def test_perturbations_are_told_apart():
    one = scalar(1.0)
    for outer in "rf":
        for inner in "rf":
            f = nested(outer, lambda x: x * nested(inner, lambda y: x + y)(one))  # noqa: B023
            assert f(one).item() == 1
            f = nested(outer, lambda x: x * nested(inner, lambda y: x * y * y)(x))  # noqa: B023
            assert f(scalar(2.0)).item() == 24  # d/dx of 2 x^3


def test_under_recorded_tensors():
    w = vector(2, 3).requires_grad_()
    x = vector(1, 4)
    g = grad(lambda x: (w * x * x).sum())(x)
    assert g.requires_grad
    g.sum().backward()
    assert w.grad.tolist() == [2, 8]
    w.grad = None
    t = jvp(lambda x: w * x.sin(), (x,), (mica.ones_like(x),))[1]
    t.sum().backward()
    assert close(w.grad, x.cos())


def test_no_grad():
    x = vector(1, 2)
    with mica.no_grad():
        assert grad(lambda x: (x * x).sum())(x).tolist() == [2, 4]

    def inside(x):
        with mica.no_grad():
            shift = x * x
        return (x * shift).sum()

    assert grad(inside)(x).tolist() == [1, 4]


def test_detach_at_all_levels():
    f = lambda x: (x * x.detach()).sum()  # noqa: E731
    assert grad(f)(vector(3)).tolist() == [3]
    assert jvp(f, (vector(3),), (vector(1),))[1].item() == 3
    assert grad(lambda x: grad(f)(x).sum())(vector(3)).tolist() == [0]


# ---- writes and views
def fill_rows(x):
    out = mica.zeros(3, 2, dtype=x.dtype)
    out[0] = x
    out[1].copy_(x * x)
    out[2] = 1
    out[:, 0] *= 2
    return out


def write_view_of_view(x):
    y = x.clone()
    z = y[1:].view(-1)
    z.mul_(x[:1])
    z[0].add_(1)
    return y * y


def transposed_in_place(x):
    y = (x * mica.ones(2, 1, dtype=x.dtype)).clone()
    y.t_()
    y[0] += x[0] ** 2
    return y


def overwritten(x):
    y = x * x
    y.zero_()
    y.add_(x.sin())
    y[0] = 4
    return y


@pytest.mark.parametrize("f", [fill_rows, write_view_of_view, transposed_in_place, overwritten])
def test_writes(f):
    x = vector(0.5, 1.5)
    step = 1e-6
    expected = []
    for e in (vector(step, 0), vector(0, step)):
        expected.append((f(x + e) - f(x - e)) / (2 * step))
    expected = mica.stack(expected, -1)
    columns = lambda f: lambda x: mica.stack([jvp(f, (x,), (e,))[1] for e in mica.eye(2).double()], -1)  # noqa: E731
    assert close(jacrev(f)(x), expected, 1e-6)
    assert close(jacfwd(f)(x), expected, 1e-6)
    assert close(columns(f)(x), expected, 1e-6)
    second = jacrev(jacrev(f))(x)
    for outer in (jacrev, jacfwd, columns):
        for inner in (jacrev, jacfwd, columns):
            assert close(second, outer(inner(f))(x)), (outer, inner)
    assert x.tolist() == [0.5, 1.5]


def test_tangents_given_are_not_written():
    t = vector(1, 1)

    def f(x):
        x[0] = 0
        x.mul_(2)
        return x

    x = vector(1, 2)
    out, tangent = jvp(f, (x.clone(),), (t,))
    assert tangent.tolist() == [0, 2] and t.tolist() == [1, 1]


def test_identities_share_no_tangent():
    def f(x):
        y = x + 1
        y[0] = 7
        return x * 1, y

    _, (tx, ty) = jvp(f, (vector(1, 2),), (vector(1, 1),))
    assert tx.tolist() == [1, 1] and ty.tolist() == [0, 1]


@pytest.mark.parametrize("transform", ["grad", "jvp"])
def test_captured_tensors_are_not_written(transform):
    kept = mica.zeros(2, dtype=mica.float64)

    def f(x):
        kept.copy_(x)
        return x.sum()

    with pytest.raises(RuntimeError, match=f"the function of {transform} captured"):
        grad(f)(vector(1, 2)) if transform == "grad" else jvp(f, (vector(1, 2),), (vector(1, 1),))
    assert kept.tolist() == [0, 0]


# ---- what is left behind
def test_nothing_leaks():
    x = mica.ones(1 << 16, dtype=mica.float64)  # large, so that the allocator counts it
    f = lambda x: (x.sin() * x.exp()).sum()  # noqa: E731

    def run():
        grad(grad(lambda y: f(y * x)))(scalar(1.0))
        jvp(grad(f), (x,), (x,))
        grad(lambda x: jvp(f, (x,), (x,))[1])(x)
        vjp(f, x)[1](scalar(1.0))
        linearize(f, x)[1](x)
        with pytest.raises(ZeroDivisionError):
            grad(lambda x: x.sin() / (1 // 0))(x)

    def in_use() -> int:
        gc.collect()
        return mica._C._memory_stats(x.device)["bytes_in_use"]

    run()
    before = in_use()
    kept = [x + 1]
    assert in_use() > before
    kept.clear()
    for _ in range(5):
        run()
    assert in_use() == before
    assert mica._C._frame_depth() == 0 and mica.is_grad_enabled()


def test_no_cycle_keeps_tensors():
    x = mica.ones(1 << 16)
    gc.collect()
    gc.disable()
    try:
        before = mica._C._memory_stats(x.device)["bytes_in_use"]
        for _ in range(3):
            grad(lambda t: (t["x"] * t["y"][0]).sum())({"x": x * 1, "y": [x * 2]})
            jvp(lambda t: {"y": t["x"].sin()}, ({"x": x},), ({"x": x},))
        assert mica._C._memory_stats(x.device)["bytes_in_use"] - before < x.nbytes
    finally:
        gc.enable()


def test_escaped_tensors():
    kept = []

    def f(x):
        kept.append(x * 2)
        kept.append(mica.ones(2, dtype=x.dtype))
        return x.sum()

    grad(f)(vector(1, 2))
    with pytest.raises(RuntimeError, match="escaped from that grad.*has_aux"):
        kept[0] + 1
    assert (kept[1] + 1).tolist() == [2, 2]  # a constant stands for its value
    jvp(f, (vector(1, 2),), (vector(1, 1),))
    assert "that escaped from jvp" in repr(kept[2])
    with pytest.raises(RuntimeError, match="escaped from that jvp"):
        kept[2].sin()


# ---- custom functions
class Cube(mica.autograd.Function):
    @staticmethod
    def forward(x):
        return x**3

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x * x * g


class OldStyle(mica.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2


def test_custom_functions():
    x = scalar(2.0)
    assert grad(Cube.apply)(x).item() == 12
    assert grad(grad(Cube.apply))(x).item() == 12
    assert jvp(Cube.apply, (x,), (scalar(1.0),))[1].item() == 12
    assert jvp(grad(Cube.apply), (x,), (scalar(1.0),))[1].item() == 12
    assert grad(lambda x: jvp(Cube.apply, (x,), (scalar(1.0),))[1])(x).item() == 12
    with pytest.raises(RuntimeError, match="setup_context"):
        grad(OldStyle.apply)(x)


# ---- modules
def test_functional_call():
    net = mica.nn.Sequential(mica.nn.Linear(3, 4), mica.nn.Tanh(), mica.nn.Linear(4, 1))
    params = dict(net.named_parameters())
    x = mica.randn(5, 3)
    loss = lambda p: functional_call(net, p, (x,)).square().mean()  # noqa: E731
    gradients = grad(loss)({k: v.detach() for k, v in params.items()})
    loss(params).backward()
    for name, value in params.items():
        assert mica.allclose(gradients[name], value.grad, rtol=1e-5, atol=1e-6), name
    with pytest.raises(RuntimeError, match="no parameter or buffer"):
        functional_call(net, {"nothing": x}, (x,), strict=True)
    assert net[0].weight is params["0.weight"]


def test_stack_module_state():
    models = [mica.nn.Linear(2, 3) for _ in range(4)]
    params, buffers = stack_module_state(models)
    assert params["weight"].shape == (4, 3, 2) and params["weight"].requires_grad and buffers == {}
    with pytest.raises(RuntimeError, match="one class"):
        stack_module_state([models[0], mica.nn.Tanh()])


# ---- wrong calls
@pytest.mark.parametrize(
    ("call", "kind", "sentence"),
    [
        (lambda: grad(lambda x: x)(vector(1, 2)), RuntimeError, "0-d tensor.*shape \\(2,\\)"),
        (lambda: grad(lambda x: 1.0)(vector(1)), RuntimeError, "returned a float"),
        (lambda: grad(lambda x: x.sum(), argnums=1)(vector(1)), RuntimeError, "argument \\(1\\).*\\(1\\) positional"),
        (lambda: grad(lambda x: x.sum(), argnums="x")(vector(1)), RuntimeError, "argnums must be an int"),
        (lambda: grad(lambda x: x.sum(), argnums=(0, 0))(vector(1)), RuntimeError, "twice"),
        (lambda: grad(lambda x: x.sum())(mica.ones(2, dtype=mica.int64)), RuntimeError, "dtype \\(.*int64\\)"),
        (lambda: grad(lambda x: x)(1.0), ValueError, "holds a float"),
        (lambda: grad(lambda x: x.sum(), has_aux=True)(vector(1)), RuntimeError, "output, aux"),
        (lambda: vjp(lambda x: x, vector(1))[1]((vector(1), vector(1))), RuntimeError, "tree of the cotangents"),
        (lambda: vjp(lambda x: x, vector(1))[1](vector(1, 2)), RuntimeError, "shape"),
        (lambda: jvp(lambda x: x, vector(1), vector(1)), RuntimeError, "must be a tuple"),
        (lambda: jvp(lambda x: x, (vector(1),), (vector(1, 2),)), RuntimeError, "shape \\(2,\\) of tangent \\(0\\)"),
        (lambda: jvp(lambda x: x, (vector(1),), (vector(1) * 1j,)), RuntimeError, "tangent \\(0\\) is complex"),
        (lambda: jvp(lambda x: x, (vector(1),), (vector(1), vector(1))), RuntimeError, "tree of the tangents"),
        (lambda: jacrev(lambda x: x, chunk_size=0)(vector(1)), ValueError, "chunk_size \\(0\\)"),
        (lambda: grad(lambda x: x.sum() * 1j)(vector(1)), RuntimeError, "real tensor.*complex"),
        (lambda: jacrev(lambda x: x * 1j)(vector(1)), RuntimeError, "jacrev.*must be real"),
        (lambda: jacfwd(lambda x: x * x)(vector(1) * 1j), RuntimeError, "jacfwd.*must be real"),
        (lambda: vjp(lambda x: x > 0, vector(1)), RuntimeError, "floating or complex.*bool"),
        (lambda: jvp(lambda x: x, (mica.ones(1).long(),), (mica.ones(1).long(),)), ValueError, "primal \\(0\\)"),
    ],
)  # fmt: skip
def test_wrong_calls(call, kind, sentence):
    with pytest.raises(kind, match=sentence):
        call()
    assert mica._C._frame_depth() == 0


def test_frames_are_left_in_order():
    outer = mica._C._frame_enter("grad")
    inner = mica._C._frame_enter("jvp")
    with pytest.raises(RuntimeError, match="entered inside"):
        mica._C._frame_exit(outer)
    assert mica._C._frame_depth() == 0
    with pytest.raises(RuntimeError, match="left twice"):
        mica._C._frame_exit(inner)


def several_outs(a: mica.Tensor) -> tuple[mica.Tensor, ...]:
    values, places = a.new_empty(a.shape[1]), mica.empty(a.shape[1], dtype=mica.int64)
    mica.max(a, 0, out=(values, places))
    least, most = a.new_empty(()), a.new_empty(())
    mica.aminmax(a, out=(least, most))
    return values, places, least, most


@pytest.mark.parametrize("transform", ["functionalize", "make_fx", "vmap", "nested"])
def test_out_forms_of_several_results(transform: str) -> None:
    x = mica.arange(12.0).reshape(3, 4)
    expected = several_outs(x)
    if transform == "functionalize":
        results = mica.func.functionalize(several_outs)(x)
    elif transform == "make_fx":
        results = make_fx(several_outs)(x)(x)
    elif transform == "nested":
        results = make_fx(mica.func.functionalize(several_outs))(x)(x)
    else:
        results = [t[0] for t in mica.func.vmap(several_outs)(x[None])]
    for result, plain in zip(results, expected, strict=True):
        assert result.tolist() == plain.tolist()
