"""mica.utils.checkpoint: values, gradients, memory, what runs twice, nesting, transforms, and
the errors of functions that do not do the same twice."""

from __future__ import annotations

import contextlib
import gc
import itertools
import weakref

import pytest

import mica
from mica.func import grad, jacrev, jvp, vjp, vmap
from mica.utils.checkpoint import (
    CheckpointError,
    CheckpointFunction,
    checkpoint,
    checkpoint_sequential,
    set_checkpoint_debug_enabled,
    set_checkpoint_early_stop,
)


def leaf(*values: float) -> mica.Tensor:
    return mica.tensor(values, dtype=mica.float64, requires_grad=True)


def block(x):
    return (x.sin().exp() * x).tanh()


def again(x):
    return checkpoint(block, x)


# ---- values and gradients
NESTINGS = {
    "once": again,
    "in a row": lambda x: again(again(again(x))),
    "nested": lambda x: checkpoint(lambda x: again(x) * checkpoint(again, x), x),
    "three deep": lambda x: checkpoint(lambda x: checkpoint(lambda x: checkpoint(block, block(x)), x).exp(), x),
    "views": lambda x: checkpoint(lambda x: (x[1:] * x.view(1, -1)[0, :-1]).exp(), x),
    "writes": lambda x: checkpoint(lambda x: (x * 2).mul_(x).sin_()[:2].exp(), x),
    "several": lambda x: sum(checkpoint(lambda x: (x.sin(), x.exp().sin(), x), x)),
    "unused": lambda x: checkpoint(lambda x: (x.sin(), x.exp().sin(), x), x)[1],
    "keyword": lambda x: checkpoint(lambda a, *, b: (a["x"] * b).exp(), {"x": x}, b=x.sin()),
    "closure": lambda x: checkpoint(lambda y: (y * x).exp(), mica.ones(3, dtype=mica.float64)),
    "custom": lambda x: checkpoint(Cube.apply, x),
}  # fmt: skip
PLAIN = {
    "once": block,
    "in a row": lambda x: block(block(block(x))),
    "nested": lambda x: block(x) * block(x),
    "three deep": lambda x: block(block(x)).exp(),
    "views": lambda x: (x[1:] * x.view(1, -1)[0, :-1]).exp(),
    "writes": lambda x: (x * 2 * x).sin()[:2].exp(),
    "several": lambda x: x.sin() + x.exp().sin() + x,
    "unused": lambda x: x.exp().sin(),
    "keyword": lambda x: (x * x.sin()).exp(),
    "closure": lambda x: x.exp(),
    "custom": lambda x: x**3,
}


class Cube(mica.autograd.Function):
    @staticmethod
    def forward(x):
        return x**3

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x * x * g


@pytest.mark.parametrize("early_stop", [True, False])
@pytest.mark.parametrize("name", NESTINGS)
def test_gradients(name, early_stop):
    x = leaf(0.3, -0.7, 1.1)
    expected = PLAIN[name](x)
    first = mica.autograd.grad(expected.sum(), x, create_graph=True)[0]
    second = mica.autograd.grad(first.sum(), x)[0]
    with set_checkpoint_early_stop(early_stop):
        found = NESTINGS[name](x)
    assert mica.allclose(found, expected, rtol=1e-12)
    for _ in range(2):  # the graph is retained
        (g,) = mica.autograd.grad(found.sum(), x, create_graph=True)
        assert mica.allclose(g, first, rtol=1e-12)
        assert mica.allclose(mica.autograd.grad(g.sum(), x, retain_graph=True)[0], second, rtol=1e-12)
    found.sum().backward()
    assert mica.allclose(x.grad, first, rtol=1e-12)


TRANSFORMS = {
    "grad": lambda f, x: grad(lambda x: f(x).sum())(x),
    "grad of grad": lambda f, x: grad(lambda x: grad(lambda x: f(x).sum())(x).sum())(x),
    "vjp": lambda f, x: vjp(f, x)[1](mica.ones_like(x) * 2)[0],
    "jacrev": lambda f, x: jacrev(f)(x),
    "vmap of grad": lambda f, x: vmap(grad(lambda x: f(x).sum()))(mica.stack([x, x + 1])),
    "grad of vmap": lambda f, x: grad(lambda x: vmap(f)(x).sum())(mica.stack([x, x + 1])),
    "backward of vmap": lambda f, x: mica.autograd.grad(vmap(f)(x.requires_grad_().view(3, 1)).sum(), x)[0],
    "grad of two vmaps": lambda f, x: grad(lambda x: vmap(vmap(f))(x).sum())(mica.stack([x, x + 1])),
    "jvp": lambda f, x: mica.func.jvp(f, (x,), (x + 1,))[1],
    "jvp of grad": lambda f, x: mica.func.jvp(grad(lambda x: f(x).sum()), (x,), (x + 1,))[1],
}


@pytest.mark.parametrize("f", ["once", "three deep", "writes", "nested"])
@pytest.mark.parametrize("name", TRANSFORMS)
def test_under_transforms(name, f):
    x = mica.tensor([0.3, -0.7, 1.1], dtype=mica.float64)
    if name in ("grad of two vmaps",) and f == "writes":
        pytest.skip("its function takes vectors")
    if f == "writes" and name in ("vjp", "backward of vmap"):
        pytest.skip("its result has another shape")
    expected = TRANSFORMS[name](PLAIN[f], x.clone())
    found = TRANSFORMS[name](NESTINGS[f], x.clone())
    assert mica.allclose(found, expected, rtol=1e-10)
    assert mica._C._frame_depth() == 0


def test_jvp_of_a_checkpoint_under_backward():
    x = leaf(0.3, -0.7)
    found = mica.func.jvp(again, (x,), (mica.ones_like(x),))[1]
    expected = mica.func.jvp(block, (x,), (mica.ones_like(x),))[1]
    assert mica.allclose(*(mica.autograd.grad(y.sum(), x)[0] for y in (found, expected)))


# ---- memory
def peak(f) -> int:
    gc.collect()
    mica.empty_cache()
    mica.reset_peak_memory_stats("cpu")
    before = mica._C._memory_stats(mica.device("cpu"))["bytes_in_use"]
    f()
    return mica._C._memory_stats(mica.device("cpu"))["peak_bytes_in_use"] - before


def layers(x, count, wrap):
    for _ in range(count):
        x = wrap(lambda x: x.sin().exp().sin().exp().sin().exp().sin().exp(), x)
    return x


def test_peak_memory_is_lower():
    x = mica.ones(1 << 18, requires_grad=True)
    size = x.nbytes

    def run(wrap):
        x.grad = None
        layers(x, 8, wrap).sum().backward()

    plain = peak(lambda: run(lambda f, x: f(x)))
    parts = peak(lambda: run(checkpoint))
    assert plain > 32 * size  # 8 layers of 4 values
    assert parts < (8 + 4 + 6) * size  # the layers' inputs, one layer, what is being computed


def test_nested_checkpoints_keep_less():
    x = mica.ones(1 << 18, requires_grad=True)
    flat = peak(lambda: layers(x, 36, checkpoint).sum().backward())

    def groups(x):
        for _ in range(6):
            x = checkpoint(lambda x: layers(x, 6, checkpoint), x)
        return x

    nested = peak(lambda: groups(x).sum().backward())
    assert nested < 0.6 * flat, (nested, flat)  # 6 + 6 inputs in the place of 36


def test_nothing_is_kept():
    x = mica.ones(1 << 16, requires_grad=True)

    def run():
        y = checkpoint(lambda x: again(x).exp(), x)
        y.sum().backward(retain_graph=True)
        used = mica._C._memory_stats(mica.device("cpu"))["bytes_in_use"]
        y.sum().backward()
        with contextlib.suppress(ZeroDivisionError):
            checkpoint(lambda x: x.sin().exp() / (1 // 0), x)
        x.grad = None
        return used

    def in_use():
        gc.collect()
        return mica._C._memory_stats(mica.device("cpu"))["bytes_in_use"]

    run()
    before = in_use()
    assert run() - before < 4 * x.nbytes  # after a backward that retains: x.grad, y, the sum's
    for _ in range(3):
        run()
    assert in_use() == before
    held = weakref.ref(leaf(1))
    assert held() is None


# ---- what runs, and how often
def counting(calls):
    def f(x):
        calls.append("a")
        y = x.exp()
        calls.append("b")
        y = y.sin()  # the last that saves
        calls.append("c")
        return y + 1

    return f


def test_early_stop():
    for early_stop, second in ((True, ["a", "b"]), (False, ["a", "b", "c"])):
        calls = []
        x = leaf(1)
        y = checkpoint(counting(calls), x, early_stop=early_stop)
        assert calls == ["a", "b", "c"]
        y.backward()
        assert calls[3:] == second
    calls = []
    with set_checkpoint_early_stop(False):
        y = checkpoint(counting(calls), leaf(1))
    y.backward()
    assert calls == ["a", "b", "c"] * 2


def test_no_second_run_without_need():
    calls = []

    def f(x):
        calls.append(mica.is_grad_enabled())
        return x * 2 + 1  # saves nothing

    x = leaf(1)
    checkpoint(f, x).backward()
    with mica.no_grad():
        checkpoint(f, x)
    assert calls == [True, False] and x.grad.item() == 2


@pytest.mark.parametrize("early_stop", [True, False])
def test_a_gradient_taken_inside(early_stop):
    """The second run comes then before the first has ended, and may go on beyond it."""

    def slopes(x):
        (slope,) = mica.autograd.grad(x.sin().exp().sin(), x, create_graph=True)
        return slope * x

    x = mica.full((), 0.3, dtype=mica.float64, requires_grad=True)
    expected = mica.autograd.grad(slopes(x), x)
    assert mica.autograd.grad(checkpoint(slopes, x, early_stop=early_stop), x) == expected
    nested = checkpoint(lambda y: checkpoint(slopes, y, early_stop=early_stop), x, early_stop=early_stop)
    assert mica.autograd.grad(nested, x) == expected


def test_no_except_stops_the_early_stop():
    def f(x):
        try:
            return x.exp().sin()
        except Exception:
            return x

    x = leaf(1)
    checkpoint(f, x).backward()
    assert mica.allclose(x.grad, (x.exp().cos() * x.exp()).detach())


def test_random_numbers_are_the_same():
    x = mica.ones(64, requires_grad=True)
    for keep in (True, False):
        mica.manual_seed(3)
        y = checkpoint(lambda x: mica.nn.functional.dropout(x, 0.5).exp(), x, preserve_rng_state=keep)
        after = mica.rand(1)
        x.grad = None
        y.sum().backward()
        dropped = y == 1
        assert bool(mica.equal(x.grad == 0, dropped)) is keep
        if keep:
            mica.manual_seed(3)
            mica.nn.functional.dropout(mica.ones(64), 0.5)
            assert mica.equal(mica.rand(1), after)
            assert not mica.equal(mica.rand(1), after)


def test_autocast_is_the_same():
    x, w = mica.rand(4, 4, requires_grad=True), mica.rand(4, 4, requires_grad=True)
    seen = []

    def f(x):
        y = (x @ w).exp()
        seen.append(y.dtype)
        return y @ w

    def gradients(f):
        with mica.autocast("cpu", mica.bfloat16):
            y = f(x)
        return mica.autograd.grad(y.float().sum(), [x, w])

    expected = gradients(f)
    found = gradients(lambda x: checkpoint(f, x, early_stop=False))
    assert seen[0] == seen[1] == seen[2] and len(seen) == 3
    assert all(mica.equal(a, b) for a, b in zip(expected, found))


def test_contexts_of_both_runs():
    log = []

    @contextlib.contextmanager
    def context(name):
        log.append(f"enter {name}")
        yield
        log.append(f"leave {name}")

    y = checkpoint(block, leaf(1), context_fn=lambda: (context("first"), context("second")))
    assert log == ["enter first", "leave first"]
    y.backward()
    assert log[2:] == ["enter second", "leave second"]


def test_sequential_and_other_names():
    net = mica.nn.Sequential(*(mica.nn.Linear(4, 4) for _ in range(5)))
    x = mica.ones(2, 4, requires_grad=True)
    expected = mica.autograd.grad(net(x).sum(), [x, *net.parameters()])
    for segments in (1, 2, 5):
        y = checkpoint_sequential(net, segments, x, use_reentrant=False)
        found = mica.autograd.grad(y.sum(), [x, *net.parameters()])
        assert all(mica.allclose(a, b) for a, b in zip(expected, found))
    with pytest.raises(ValueError, match=r"5 functions cannot be cut into \(6\)"):
        checkpoint_sequential(net, 6, x)
    x = leaf(1)
    CheckpointFunction.apply(block, True, x).backward()
    assert mica.allclose(x.grad, mica.autograd.grad(block(x), x)[0])
    checkpoint(block, x, use_reentrant=True)


# ---- errors
def alternating(first, second):
    """A function that does one thing, then another."""
    both = itertools.cycle((first, second))
    return lambda x: next(both)(x)


MISMATCHES = [
    (lambda x: x.exp().sin(), lambda x: x.exp(), r"saved \(2\) tensors the first time and \(1\) the second"),
    (
        lambda x: x.exp().sin(),
        lambda x: x[:1].exp().sin(),
        r"tensor \(0\): first float64\[2\] on cpu, then float64\[1\] on cpu",
    ),
    (lambda x: x.exp().sin(), lambda x: x.float().exp().sin(), r"then float32\[2\] on cpu"),
    (lambda x: x.exp(), lambda x: x + 1, r"\(1\) tensors the first time and \(0\)"),
]


@pytest.mark.parametrize(("first", "second", "sentence"), MISMATCHES)
def test_mismatches(first, second, sentence):
    y = checkpoint(alternating(first, second), leaf(1, 2), early_stop=False)
    with pytest.raises(CheckpointError, match=sentence):
        y.sum().backward()
    with set_checkpoint_debug_enabled(True):
        y = checkpoint(alternating(first, second), leaf(1, 2))
    with pytest.raises(CheckpointError, match=r"test_activation_checkpoint.py:\d+"):
        y.sum().backward()


def test_more_saved_the_second_time():
    x = leaf(1)
    f = lambda: alternating(lambda x: x.exp(), lambda x: x.exp().sin())  # noqa: E731
    with pytest.raises(CheckpointError, match=r"\(1\) tensors the first time and \(2\)"):
        checkpoint(f(), x, early_stop=False).backward()
    checkpoint(f(), x).backward()  # stops before


def test_no_determinism_check():
    y = checkpoint(
        alternating(lambda x: x.exp(), lambda x: x.exp() * mica.ones(2, 1)),
        leaf(1, 2),
        determinism_check="none",
    )
    y.sum().backward()
    with pytest.raises(ValueError, match="determinism_check .'some'. is unknown"):
        checkpoint(block, leaf(1), determinism_check="some")


def test_inputs_must_not_be_written():
    x = leaf(1, 2) * 1
    y = checkpoint(block, x)
    with mica.no_grad():
        x.zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation.*zero_"):
        y.sum().backward()


def test_exceptions_of_the_second_run_pass():
    y = checkpoint(alternating(lambda x: x.exp(), lambda x: 1 / 0), leaf(1))
    with pytest.raises(ZeroDivisionError):
        y.backward()
    leaf(1).exp().backward()


CAPTURED = mica.tensor([0.3, -1.2, 0.7], dtype=mica.float64)
ALONG = mica.tensor([1.0, 0.5, -2.0], dtype=mica.float64)


def of_both(z, a):
    return ((z * a).sin() * a).sum()


def with_hooks(pack, unpack):
    def wrap(f):
        def run(*args):
            with mica.autograd.graph.saved_tensors_hooks(pack, unpack):
                return f(*args)

        return run

    return wrap


RECORDED = {
    "checkpoint": lambda f: lambda z, a: checkpoint(f, z, a, use_reentrant=False),
    "checkpoint of a closure": lambda f: lambda z, a: checkpoint(lambda z: f(z, a), z, use_reentrant=False),
    "hooks that do nothing": with_hooks(lambda t: t, lambda t: t),
    "hooks that compute": with_hooks(lambda t: t * 2, lambda t: t / 2),
    "hooks that detach": with_hooks(lambda t: t.detach(), lambda t: t),
}
LEVELS = {
    "jvp of grad": lambda g: jvp(g, (CAPTURED,), (ALONG,))[1],
    "grad of grad": lambda g: grad(lambda a: g(a).sum())(CAPTURED),
    "vmap of grad": lambda g: vmap(g)(mica.stack([CAPTURED, ALONG])),
    "jvp of jvp of grad": lambda g: jvp(lambda a: jvp(g, (a,), (ALONG,))[1], (CAPTURED,), (ALONG,))[1],
    "backward of grad": lambda g: backward_of(g, CAPTURED),
    "jvp of vmap of grad": lambda g: jvp(lambda a: vmap(g)(mica.stack([a, a * 2])), (CAPTURED,), (ALONG,))[1],
}


def backward_of(g, a):
    a = a.clone().requires_grad_()
    return mica.autograd.grad(g(a).sum(), a)[0]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("recorded", RECORDED)
def test_what_a_grad_inside_captures(level, recorded):
    """The derivative of an outer level flows through what the checkpoint or the hooks of an inner grad keep."""

    def gradient(f):
        return LEVELS[level](lambda a: grad(lambda z: f(z, a))(ALONG))

    expected = gradient(of_both)
    if "detach" in recorded and level != "vmap of grad":
        with pytest.raises(NotImplementedError, match="would be lost"):
            gradient(RECORDED[recorded](of_both))
        return
    assert mica.allclose(gradient(RECORDED[recorded](of_both)), expected)
