"""mica.fx: graphs of traced functions, and what can be done with them."""

from __future__ import annotations

import copy
import functools
import gc
import linecache
import math
import pickle
from typing import Any

import pytest
from compare import same

import mica
from mica import fx, nn
from mica.func import functional_call, grad, hessian, jacrev, jvp, vjp, vmap
from mica.fx import make_fx

ops = mica.ops.mica


def called(module: Any) -> list[str]:
    return [n.target.name() for n in module.graph.nodes if hasattr(n.target, "redispatch_below")]


close = functools.partial(same, rtol=1e-5, atol=1e-6)


def test_code_says_what_was_called() -> None:
    module = make_fx(lambda x, y: (x @ y).relu())(mica.ones(2, 3), mica.ones(3, 4))
    assert module.print_readable(print_output=False) == (
        "class traced(mica.nn.Module):\n"
        '    def forward(self, x_1: "float32[2, 3]", y_1: "float32[3, 4]"):\n'
        '        matmul: "float32[2, 4]" = mica.ops.mica.matmul.default(x_1, y_1);  x_1 = y_1 = None\n'
        '        relu: "float32[2, 4]" = mica.ops.mica.relu.default(matmul);  matmul = None\n'
        "        return relu\n"
    )
    assert str(module.graph).splitlines()[3] == (
        "    %matmul : float32[2, 4] = call_function[target=mica.ops.mica.matmul.default]"
        "(args = (%x_1, %y_1), kwargs = {})"
    )


def test_source_stands_alone() -> None:
    """The code runs by exec with the globals that it names, and so does a copy and a pickle."""

    def f(x: Any) -> Any:
        values, indices = x.max(1)
        return {"values": values * math.inf, "n": [indices.to(mica.float64), 3]}

    module = make_fx(f)(mica.randn(3, 4))
    x = mica.randn(5, 4)
    scope = dict(module.graph.python_code().globals)
    exec(module.code, scope)
    for g in (
        module,
        copy.deepcopy(module),
        pickle.loads(pickle.dumps(module)),
        lambda x: scope["forward"](module, x),
    ):
        found, expected = g(x), f(x)
        assert (found["values"] == expected["values"]).all() and found["n"][1] == 3
        assert (found["n"][0] == expected["n"][0]).all() and found["n"][0].dtype == mica.float64


def test_trees_in_and_out() -> None:
    def f(weights: dict[str, Any], pair: tuple[Any, int]) -> Any:
        return {"sum": weights["a"] + pair[0] * pair[1], "b": (weights["b"],)}

    args = ({"a": mica.ones(2), "b": mica.zeros(2)}, (mica.ones(2), 3))
    module = make_fx(f)(*args)
    assert (module(*args)["sum"] == 4).all()
    with pytest.raises(ValueError, match="traced with arguments of the structure"):
        module(args[0], args[1][0])


def test_writes_and_views_are_recorded_as_they_are() -> None:
    def f(x: Any) -> Any:
        y = x.clone()
        y[0].add_(1)
        mica.mul(y, 2, out=y)
        return y

    module = make_fx(f)(mica.zeros(2, 2))
    assert called(module) == ["mica::clone", "mica::select.int", "mica::add_.Scalar", "mica::mul.out"] or (
        called(module)[:3] == ["mica::clone", "mica::select.int", "mica::add_.Scalar"]
    )
    x = mica.randn(2, 2)
    assert (module(x) == f(x)).all()
    module.graph.eliminate_dead_code()
    module.recompile()
    assert (module(x) == f(x)).all()


def test_captured_tensors_are_attributes_and_written_ones_too() -> None:
    total, scale = mica.zeros(2), nn.Parameter(mica.full((2,), 3.0))

    def f(x: Any) -> Any:
        total.add_(x)
        return x * scale

    module = make_fx(f, tracing_mode="fake")(mica.ones(2))
    assert (total == 0).all()
    assert [p is scale for p in module.parameters()] == [True]
    module(mica.ones(2))
    module(mica.ones(2))
    assert (total == 2).all()


def test_what_the_function_makes_is_new_in_each_run() -> None:
    def f(x: Any) -> Any:
        made = mica.tensor([1.0, 2.0])
        made[0].add_(5)
        return x + made, mica.tensor([7.0])

    module = make_fx(f)(mica.zeros(2))
    for _ in range(2):
        found, other = module(mica.zeros(2))
        assert found.tolist() == [6, 2] and other.tolist() == [7]
        other.add_(1)


def test_random_operators_are_recorded() -> None:
    module = make_fx(lambda x: nn.functional.dropout(x, 0.5) + mica.rand(3) + mica.randn_like(x))(
        mica.ones(3)
    )
    mica.manual_seed(3)
    first = module(mica.ones(3))
    second = module(mica.ones(3))
    mica.manual_seed(3)
    assert (module(mica.ones(3)) == first).all() and (first != second).any()
    for node in list(module.graph.nodes):
        if node.op == "output":
            node.args = (None,)
    module.graph.eliminate_dead_code()
    assert "mica::rand" in "".join(called(module))


@pytest.mark.parametrize(
    "read",
    [
        lambda x: x.item(),
        lambda x: 1 if x > 0 else 2,
        lambda x: x.tolist(),
        lambda x: x.numpy(),
        lambda x: float(x),
        lambda x: mica.from_dlpack(x),
        lambda x: mica.tensor([x, x]),
        lambda x: mica.equal(x, x),
        lambda x: mica.allclose(x, x),
    ],
)
@pytest.mark.parametrize("mode", ["real", "fake", "symbolic"])
def test_reading_values_raises(read: Any, mode: str) -> None:
    with pytest.raises(RuntimeError, match=r"mica\.where instead of `if`"):
        make_fx(lambda x: x + 0 * (read(x) and 1), tracing_mode=mode)(mica.tensor(3.0))


def test_a_traced_tensor_that_escapes_raises_and_prints() -> None:
    kept: list[Any] = []
    shown: list[str] = []

    def f(x: Any) -> Any:
        kept.append(x * 2)
        shown.append(repr(kept[0]))
        return x

    make_fx(f)(mica.ones(2))
    assert shown == ["tensor(..., float32[2] on cpu, in a trace)"]
    assert "escaped from trace" in repr(kept[0])
    for mode in ("real", "fake"):
        with pytest.raises(RuntimeError, match="after it escaped from that trace"):
            make_fx(lambda x: x + kept[0], tracing_mode=mode)(mica.ones(2))


def test_an_error_leaves_no_trace_behind() -> None:
    with pytest.raises(ZeroDivisionError):
        make_fx(lambda x: 1 // 0)(mica.ones(2))
    assert mica._C._frame_kind() is None and (mica.ones(2) + 1).sum().item() == 4


def test_fake_tensors_show_their_device_and_have_no_memory() -> None:
    huge = mica.empty_strided((1,), (1,)).expand(1 << 40)

    def f(x: Any) -> Any:
        assert x.device.type == "cpu"
        y = (x + 1).to(mica.float64)
        z = mica.zeros(1 << 40) + mica.zeros_like(y)
        assert z.device.type == "cpu" and not z.is_meta
        return z.sum()

    module = make_fx(f, tracing_mode="fake")(huge)
    assert str(module.graph.output_node().args[0].meta["tensor_meta"]) == "float64[]"
    with pytest.raises(NotImplementedError, match='tracing_mode="real"'):
        make_fx(lambda x: x.nonzero(), tracing_mode="fake")(mica.ones(3))


NETWORK = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 1))
WEIGHTS = {name: p.detach() for name, p in NETWORK.named_parameters()}


def energy(x: Any) -> Any:
    return functional_call(NETWORK, WEIGHTS, (x,)).square().sum()


NESTINGS = {
    "grad": grad(energy),
    "vmap": vmap(lambda x: functional_call(NETWORK, WEIGHTS, (x,))),
    "vmap of grad": vmap(grad(energy)),
    "grad of vmap": grad(lambda x: vmap(energy)(x).sum()),
    "jvp": lambda x: jvp(energy, (x,), (mica.ones_like(x),)),
    "jvp of grad": lambda x: jvp(grad(energy), (x,), (mica.ones_like(x),)),
    "vjp": lambda x: vjp(energy, x)[1](mica.tensor(2.0)),
    "jacrev": jacrev(lambda x: functional_call(NETWORK, WEIGHTS, (x,)).sum(0)),
    "hessian": vmap(hessian(energy)),
    "grad of grad": grad(lambda x: grad(energy)(x).sin().sum()),
    "vmap of vmap of grad": vmap(vmap(grad(lambda x: x.sin() * x))),
    "vmap of grad of vmap of grad": vmap(grad(lambda x: vmap(grad(lambda y: y.sin() * y))(x).sum())),
}


@pytest.mark.parametrize("name", NESTINGS)
@pytest.mark.parametrize("mode", ["real", "fake", "symbolic"])
def test_transforms_inside(name: str, mode: str) -> None:
    f = NESTINGS[name]
    module = make_fx(f, tracing_mode=mode)(mica.randn(4, 3))
    x = mica.randn(4, 3)
    assert close(module(x), f(x))
    if mode == "symbolic":
        x = mica.randn(7, 3)
        assert close(module(x), f(x))


@pytest.mark.parametrize("outer", ["vmap", "grad", "jvp", "trace"])
def test_a_trace_inside_of_transforms(outer: str) -> None:
    """Each example, level or outer trace traces the function anew."""
    x = mica.randn(4)

    def f(x: Any) -> Any:
        return make_fx(lambda y: y.sin() * y)(x)(x).sum()

    def plain(x: Any) -> Any:
        return (x.sin() * x).sum()

    found, expected = {
        "vmap": lambda: (vmap(f)(x.view(2, 2)), vmap(plain)(x.view(2, 2))),
        "grad": lambda: (grad(f)(x), grad(plain)(x)),
        "jvp": lambda: (jvp(f, (x,), (x,)), jvp(plain, (x,), (x,))),
        "trace": lambda: (make_fx(f)(x)(x), plain(x)),
    }[outer]()
    assert close(found, expected)


def test_backward_is_recorded_for_inputs_and_for_what_was_captured() -> None:
    w = mica.randn(3, 3, requires_grad=True)
    kept = mica.ones(3, 3)
    w.grad = kept.clone()

    def step(x: Any) -> Any:
        loss = (x @ w).tanh().sum()
        (direct,) = mica.autograd.grad(loss, w, retain_graph=True)
        loss.backward()
        return direct, w.grad.clone()

    for mode in ("real", "fake"):
        w.grad = kept.clone()
        module = make_fx(step, tracing_mode=mode)(mica.randn(2, 3))
        x = mica.randn(2, 3)
        w.grad = kept.clone()
        expected = step(x)
        w.grad = kept
        module_result = module(x)
        assert close(module_result[0], expected[0])


def test_a_training_step_with_an_optimizer() -> None:
    def made() -> Any:
        mica.manual_seed(0)
        return nn.Linear(3, 1)

    def step_of(net: Any) -> Any:
        def step(x: Any) -> Any:
            loss = net(x).square().mean()
            found = mica.autograd.grad(loss, list(net.parameters()))
            with mica.no_grad():
                for p, g in zip(net.parameters(), found):
                    p.sub_(g, alpha=0.1)
            return loss

        return step

    eager, traced = made(), made()
    module = make_fx(step_of(traced), tracing_mode="fake")(mica.ones(4, 3))
    for _ in range(3):
        x = mica.randn(4, 3)
        with mica.no_grad():
            module(x)
        step_of(eager)(x)
    assert close(eager.weight, traced.weight) and close(eager.bias, traced.bias)


class Cube(mica.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 3 * x * x * g


def test_custom_functions_and_checkpoints_are_opened() -> None:
    captured = mica.randn(3, requires_grad=True)

    def through_function(x: Any) -> Any:
        return mica.autograd.grad((Cube.apply(x) * Cube.apply(captured)).sum(), (x, captured))

    def through_checkpoint(x: Any) -> Any:
        y = mica.utils.checkpoint.checkpoint(lambda a: a.sin().exp(), x, use_reentrant=False)
        return mica.autograd.grad(y.sum(), x)

    x = mica.randn(3, requires_grad=True)
    for f in (through_function, through_checkpoint):
        for mode in ("real", "fake", "symbolic"):
            module = make_fx(f, tracing_mode=mode)(mica.randn(3, requires_grad=True))
            assert close(module(x), f(x))


def test_operators_of_python_are_recorded_whole() -> None:
    @mica.library.custom_op("traced_test::twice", mutates_args=())
    def twice(x: mica.Tensor) -> mica.Tensor:
        return x * 2

    @twice.register_fake
    def _(x: mica.Tensor) -> mica.Tensor:
        return mica.empty_like(x)

    for mode in ("real", "fake", "symbolic"):
        module = make_fx(lambda x: mica.ops.traced_test.twice(x) + 1, tracing_mode=mode)(mica.ones(3))
        assert called(module) == ["traced_test::twice", "mica::add.Scalar"]
        assert close(module(mica.ones(3)), mica.full((3,), 3.0))


def test_nothing_leaks() -> None:
    w = mica.randn(64, 64, requires_grad=True)

    def step(x: Any) -> Any:
        return mica.autograd.grad((x @ w).sin().sum(), w)

    def used() -> int:
        for _ in range(100):
            make_fx(step)(mica.randn(64, 64))
        for _ in range(10):
            make_fx(step, tracing_mode="symbolic")(mica.randn(64, 64))
        gc.collect()
        return len(gc.get_objects()) + len(linecache.cache)

    used()
    first = used()
    assert used() <= first + 100


def test_autocast_and_composites() -> None:
    module = make_fx(lambda x, w: nn.functional.linear(x, w))(mica.ones(2, 3), mica.ones(4, 3))
    assert called(module) == ["mica::linear"]
    with mica.autocast("cpu", dtype=mica.bfloat16):
        low = make_fx(lambda x, w: nn.functional.linear(x, w))(mica.ones(2, 3), mica.ones(4, 3))
    assert low(mica.ones(2, 3), mica.ones(4, 3)).dtype == mica.bfloat16
    opened = fx.decompose(make_fx(lambda x: nn.functional.cosine_similarity(x, x + 1, 0))(mica.ones(3)))
    assert "mica::cosine_similarity" not in called(opened) and len(called(opened)) > 3
    x = mica.randn(3)
    assert close(opened(x), nn.functional.cosine_similarity(x, x + 1, 0))


def test_decomposition_table() -> None:
    table = {ops.silu.default: lambda x: x * x.sigmoid()}
    for mode in ("real", "fake", "symbolic"):
        module = make_fx(lambda x: nn.functional.silu(x) + 1, table, mode)(mica.ones(3))
        assert called(module) == ["mica::sigmoid", "mica::mul.Tensor", "mica::add.Scalar"]
        x = mica.randn(3)
        assert close(module(x), nn.functional.silu(x) + 1)


# ---- symbolic sizes


def symbolic(f: Any, *args: Any) -> Any:
    return make_fx(f, tracing_mode="symbolic")(*args)


def test_sizes_are_computed_again() -> None:
    def f(x: Any) -> Any:
        rows, columns = x.shape
        return x.view(rows * columns // 2, 2) * (columns + 0.5) + x.numel(), x.shape[0] + 1

    module = symbolic(f, mica.randn(4, 6))
    for shape in ((3, 4), (10, 2), (6, 6)):
        x = mica.randn(shape)
        (found, n), (expected, m) = module(x), f(x)
        assert close(found, expected) and n == m
    assert str(module.graph.find_nodes(op="placeholder")[0].meta["tensor_meta"]) == "float32[s0, s1]"


def test_comparisons_are_guards() -> None:
    def f(x: Any) -> Any:
        return x.sum(0) if x.shape[0] > x.shape[1] else x.sum(1)

    module = symbolic(f, mica.randn(6, 3))
    assert module.size_guards.describe() == ["s0 = size 0 of x_1", "s1 = size 1 of x_1", "s0 > s1"]
    x = mica.randn(8, 5)
    assert close(module(x), f(x))
    with pytest.raises(RuntimeError, match=r"under the guard \(s0 > s1\), which this call violates"):
        module(mica.randn(3, 6))
    copied = pickle.loads(pickle.dumps(module))
    with pytest.raises(RuntimeError, match="s0 > s1"):
        copied(mica.randn(3, 6))


def test_a_plain_int_fixes_a_size() -> None:
    def f(x: Any) -> Any:
        return sum((x[i] for i in range(x.shape[0])), mica.zeros(()))

    module = symbolic(f, mica.randn(3, 4))
    x = mica.randn(3, 9)
    assert close(module(x), f(x))
    with pytest.raises(RuntimeError, match=r"size 0 of x_1 == 3\), which this call violates"):
        module(mica.randn(4, 9))


def test_equal_sizes_share_a_symbol_and_small_ones_are_fixed() -> None:
    module = symbolic(lambda x, y: x @ y, mica.randn(3, 3), mica.randn(3, 1))
    assert close(module(mica.ones(5, 5), mica.ones(5, 1)), mica.full((5, 1), 5.0))
    for x, y in ((mica.ones(5, 4), mica.ones(4, 1)), (mica.ones(3, 3), mica.ones(3, 2))):
        with pytest.raises(RuntimeError, match="was traced"):
            module(x, y)
    for x in (mica.ones(3), mica.ones(3, 3).double()):
        with pytest.raises(RuntimeError, match="a tensor mica.float32 of 2 dimensions"):
            module(x, mica.ones(3, 1))


def test_what_no_guard_says_is_seen_by_the_shapes() -> None:
    """x[:4] holds four rows in each run that was made, and three of three."""
    module = symbolic(grad(lambda x: x[:4].square().sum()), mica.randn(6, 3))
    x = mica.randn(9, 5)
    assert close(module(x), grad(lambda x: x[:4].square().sum())(x))
    with pytest.raises(RuntimeError, match=r"size 0 of its value \(slice_1\) is \(4\).*it is \(3\)"):
        module(mica.randn(3, 3))


def test_a_dependence_that_nothing_says_is_refused_by_name() -> None:
    def f(x: Any) -> Any:
        return x.new_zeros(3) + int(str(x.shape[0])[-1]) + x.sum()

    with pytest.raises(
        NotImplementedError, match=r"An argument of operator mica::add\.Scalar depends on sizes"
    ):
        symbolic(f, mica.randn(6))


def test_arguments_that_are_no_tensors_are_fixed() -> None:
    module = symbolic(lambda x, n: x * n, mica.randn(3), 4)
    assert close(module(mica.ones(5), 4), mica.full((5,), 4.0))
    with pytest.raises(RuntimeError, match=r"traced with the argument n_1 = 4, but it is called with \(5\)"):
        module(mica.ones(5), 5)


def test_a_symbolic_graph_is_traced_again() -> None:
    module = symbolic(lambda x: nn.functional.layer_norm(x, x.shape[-1:]).reshape(-1), mica.randn(4, 6))
    x = mica.randn(3, 5)
    assert close(symbolic(module, mica.randn(5, 7))(x), module(x))
    opened = fx.decompose(module)
    assert close(opened(x), module(x))
    assert close(vmap(module)(mica.randn(2, 3, 5)).sum(), mica.zeros(()))


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match="must be one of real, fake, symbolic"):
        make_fx(lambda x: x, tracing_mode="imaginary")
    with pytest.raises(TypeError, match="takes a function"):
        make_fx(3)  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="which `root` does not hold"):
        graph = fx.Graph()
        graph.output(graph.get_attr("w"))
        fx.GraphModule({}, graph)


def test_source_of_a_trace_that_ends_stays_while_linecache_goes_through_its_entries() -> None:
    traces = [make_fx(lambda x: x + 1)(mica.ones(1)) for _ in range(3)]
    names = list(linecache.cache)
    traces.clear()
    gc.collect()  # as it may run within linecache.checkcache()
    assert all(linecache.cache[name] for name in names)
    make_fx(lambda x: x + 1)(mica.ones(1))
    assert len(linecache.cache) < len(names) + 1


def test_a_capture_that_raises_leaves_no_place_on_the_tape() -> None:
    escaped = []
    mica.func.vmap(lambda row: escaped.append(row) or row)(mica.ones(2, 3))
    (bad,) = escaped
    constant = mica.full((3,), 41.0)

    def f(x: mica.Tensor) -> mica.Tensor:
        for _ in range(2):
            with pytest.raises(RuntimeError, match="escaped"):
                x + bad
        y = x + constant
        with pytest.raises(RuntimeError, match="escaped"):
            x + bad
        return y

    assert make_fx(f)(mica.ones(3))(mica.ones(3)).tolist() == [42, 42, 42]


def test_a_trace_frame_without_a_tape_is_refused() -> None:
    with mica.library.frame("trace"), pytest.raises(RuntimeError, match="without a tape"):
        mica.ones(2)
    assert mica.ones(2).tolist() == [1, 1]
