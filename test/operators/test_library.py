"""mica.ops and mica.library: operators and kernels from Python."""

from __future__ import annotations

import gc
import itertools
import os
import threading
import time
import warnings
import weakref
from typing import Any

import pytest
from process import printed

import mica
from mica import library
from mica.fx.experimental.proxy_tensor import make_fx

_numbers = itertools.count()


def fresh(name: str) -> str:
    return f"test{next(_numbers)}::{name}"


def test_ops_call_through_the_schema() -> None:
    x = mica.ones(2)
    assert mica.ops.mica.add(x, x).tolist() == [2, 2]
    assert mica.ops.mica.add.Tensor(x, x, alpha=3).tolist() == [4, 4]
    assert mica.ops.mica.sum.dim_IntList(mica.ones(2, 3), [1]).tolist() == [3, 3]
    assert mica.ops.mica.add_.Tensor(x, x) is x and x.tolist() == [2, 2]
    assert "Scalar alpha=1" in mica.ops.mica.add.Tensor.schema
    with pytest.raises(TypeError, match="lacks the argument `other`"):
        mica.ops.mica.add.Tensor(x)
    with pytest.raises(AttributeError):
        getattr(mica.ops.mica, "no_such_operator")  # noqa: B009


def test_custom_op_again_replaces_the_first() -> None:
    """As a notebook's cell that runs twice: nothing of the first definition acts."""
    name = fresh("again")

    @mica.library.custom_op(name, mutates_args=())
    def first(x: mica.Tensor) -> mica.Tensor:
        return x * 2

    @first.register_fake
    def _(x: mica.Tensor) -> mica.Tensor:
        return x.new_empty(7)

    packet = mica.ops.overload(name).overloadpacket
    assert packet(mica.ones(2)).tolist() == [2.0, 2.0]

    @mica.library.custom_op(name, mutates_args=())
    def second(x: mica.Tensor, by: float) -> mica.Tensor:
        return x * by

    assert second(mica.ones(2), 3.0).tolist() == [3.0, 3.0]
    assert packet(mica.ones(2), 4.0).tolist() == [4.0, 4.0]
    with pytest.raises(TypeError):
        packet(mica.ones(2))
    assert second(mica.ones(2, device="meta"), 1.0).shape == (2,)


@pytest.mark.parametrize(
    "wrong", [{"schema": "(Tensor x -> Tensor"}, {"schema": "(Tensor x) -> Tensor", "device_types": 7}]
)
def test_a_custom_op_that_fails_changes_nothing(wrong: dict[str, Any]) -> None:
    name = fresh("kept")
    with pytest.raises((RuntimeError, TypeError)):
        mica.library.custom_op(name, lambda x: x, **wrong)
    mica.library.custom_op(name, lambda x: x * 2, schema="(Tensor x) -> Tensor")
    with pytest.raises((RuntimeError, TypeError)):
        mica.library.custom_op(name, lambda x: x * 3, **wrong)
    assert mica.ops.overload(name)(mica.ones(1)).tolist() == [2.0]


def test_scoped_library() -> None:
    namespace = fresh("x").split("::")[0]
    with mica.library._scoped_library(namespace, "DEF") as library:
        library.define("f(Tensor x) -> Tensor")
        library.impl("f", lambda x: x + 1, "cpu")
        assert getattr(mica.ops, namespace).f(mica.zeros(())).item() == 1
    with pytest.raises(NotImplementedError, match="is gone"):
        getattr(mica.ops, namespace).f(mica.zeros(()))


def test_custom_op() -> None:
    @library.custom_op(fresh("scale"), mutates_args=())
    def scale(x: mica.Tensor, k: float = 2.0) -> mica.Tensor:
        return x.clone() * k

    scale.register_fake(lambda x, k=2.0: mica.empty_like(x))
    scale.register_autograd(
        lambda ctx, grad: (grad * ctx.k, None),
        setup_context=lambda ctx, inputs, output: setattr(ctx, "k", inputs[1]),
    )
    assert scale(mica.ones(2)).tolist() == [2, 2]
    assert scale(mica.empty(3, device="meta")).shape == (3,)
    x = mica.ones(2, requires_grad=True)
    scale(x, 5.0).sum().backward()
    assert x.grad.tolist() == [5, 5]


@pytest.mark.parametrize("hidden", ["detached", "half recorded"])
def test_forward_mode_of_a_backward_that_records_nothing(hidden: str) -> None:
    """Its tangent would be 0, silently."""

    @library.custom_op(fresh("hidden"), mutates_args=(), device_types="cpu")
    def cube(x: mica.Tensor) -> mica.Tensor:
        return x.clone() * x * x

    def backward(ctx: Any, grad: mica.Tensor) -> mica.Tensor:
        (x,) = ctx.saved_tensors
        return (grad.detach() if hidden == "half recorded" else grad) * (3 * x * x)

    def detached(ctx: Any, grad: mica.Tensor) -> mica.Tensor:
        return backward(ctx, grad).detach()

    cube.register_autograd(
        detached if hidden == "detached" else backward,
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
    )
    x = mica.tensor([1.0, 2.0])
    y = x.clone().requires_grad_()
    cube(y).sum().backward()
    assert y.grad is not None and y.grad.tolist() == [3, 12]
    with pytest.raises(NotImplementedError, match="has no forward mode"):
        mica.func.jvp(cube, (x,), (x,))


def test_define_and_impl_for_backends() -> None:
    name = fresh("pair")
    lib = library.Library(name.split("::")[0], "DEF")
    lib.define("pair(Tensor a, int n=1) -> (Tensor, int)")
    lib.impl("pair", lambda a, n: (a + n, n), "CPU")
    op = getattr(mica.ops, name.split("::")[0]).pair
    tensor, number = op(mica.zeros(1), 4)
    assert tensor.tolist() == [4] and number == 4
    with pytest.raises(NotImplementedError):
        op(mica.empty(1, device="meta"))


def test_exception_of_a_kernel_arrives_as_itself() -> None:
    @library.custom_op(fresh("bad"), mutates_args=())
    def bad(x: mica.Tensor) -> mica.Tensor:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        bad(mica.ones(1))


def test_type_error_of_a_kernel_is_no_wrong_call() -> None:
    """Nor is another overload tried after it, whose work would come on top."""
    name = fresh("f")
    calls = []

    def wrong(x: mica.Tensor) -> mica.Tensor:
        calls.append(x)
        raise TypeError("of the kernel")

    lib = library.Library(name.partition("::")[0], "DEF")
    for overload in ("f", "f.more"):
        lib.define(f"{overload}(Tensor x{', int n=0' * (overload != 'f')}) -> Tensor")
        lib.impl(overload, wrong if overload == "f" else lambda x, n: x, "CPU")
    packet = getattr(mica.ops, name.partition("::")[0]).f
    with pytest.raises(TypeError, match="^of the kernel$"):
        packet(mica.ones(2))
    assert len(calls) == 1
    assert packet(mica.ones(2), 1).tolist() == [1, 1]
    with pytest.raises(TypeError, match="No overload of .* takes these arguments"):
        packet("a")


@pytest.mark.parametrize(
    ("returns", "given"), [("Tensor", 3), ("(Tensor, Tensor)", (mica.ones(1), 2.5)), ("Tensor[]", [1])]
)
def test_a_number_is_no_result_of_a_kernel(returns: str, given: Any) -> None:
    name = fresh("f")
    lib = library.Library(name.partition("::")[0], "DEF")
    lib.define(f"f(Tensor x) -> {returns}")
    lib.impl("f", lambda x: given, "CPU")
    with pytest.raises(TypeError, match="(?i)result"):
        getattr(mica.ops, name.partition("::")[0]).f(mica.ones(1))


@pytest.mark.parametrize(
    ("returns", "given", "sentence"),
    [
        ("int", "3", r"Result \(0\) of .*::f\(\), which Python gave, has type \(str\); expected int"),
        ("(Tensor, int)", (mica.ones(1), None), r"Result \(1\) of .*::f\(\).* has type \(NoneType\)"),
        ("Tensor[]", "no list", r"Result \(0\) of .*::f\(\).* has type \(str\); expected Tensor\[\]"),
        ("()", 3, r"::f\(\) got \(int\) from Python as its result.*would be lost: return None"),
        ("(Tensor, Tensor)", (mica.ones(1),), r"kernel of .*::f must return a tuple of 2 values"),
    ],
)
def test_a_wrong_result_of_a_kernel_is_refused_by_name(returns: str, given: Any, sentence: str) -> None:
    name = fresh("f")
    lib = library.Library(name.partition("::")[0], "DEF")
    lib.define(f"f(Tensor x) -> {returns}")
    lib.impl("f", lambda x: given, "CPU")
    with pytest.raises(TypeError, match=sentence):
        getattr(mica.ops, name.partition("::")[0]).f(mica.ones(1))


@pytest.mark.parametrize("count", [8, 9, 40])
def test_operators_of_many_results_and_arguments(count: int) -> None:
    """Through transforms, whose frames keep the results of a boxed call."""
    name = fresh("many")
    space = name.partition("::")[0]
    lib = library.Library(space, "DEF")
    lib.define(f"many(Tensor x) -> ({', '.join(f'Tensor r{k}' for k in range(count))})")
    lib.impl("many", lambda x: tuple(x + k for k in range(count)), "CPU")
    lib.define(f"wide({', '.join(f'Tensor a{k}' for k in range(count + 10))}) -> Tensor")
    lib.impl("wide", lambda *args: sum(args), "CPU")
    ops = getattr(mica.ops, space)
    x = mica.ones(2, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it runs once for each example
        for found in (
            ops.many(x),
            mica.vmap(ops.many)(x),
            mica.func.functionalize(ops.many)(x),
            make_fx(ops.many)(x)(x),
        ):
            assert [r[0, 0].item() for r in found] == [1 + k for k in range(count)]
        for f in (lambda f: f, mica.vmap, mica.func.functionalize, lambda f: make_fx(f)(x)):
            assert f(lambda t: ops.wide(*[t] * (count + 10)))(x)[0, 0].item() == count + 10


def test_mutating_operator() -> None:
    @library.custom_op(fresh("bump"), mutates_args={"x"})
    def bump(x: mica.Tensor) -> None:
        x.add_(1)

    x = mica.zeros(2)
    version = x._version
    bump(x)
    assert x.tolist() == [1, 1] and x._version > version


def test_override_of_a_native_kernel_goes_with_its_library() -> None:
    lib = library.Library("mica", "IMPL")
    lib.impl("sinc", lambda x: mica.full_like(x, 42.0), "CPU")
    assert mica.sinc(mica.ones(1)).item() == 42
    lib._destroy()
    assert abs(mica.sinc(mica.ones(1)).item()) < 1e-6


@pytest.mark.parametrize("schema", ["f(Tensr x) -> Tensor", "f(Tensor x", "f(Tensor x) -> Tensor extra)"])
def test_bad_schema(schema: str) -> None:
    with pytest.raises(RuntimeError):
        library.Library(fresh("x").split("::")[0], "DEF").define(schema)


def test_infer_schema() -> None:
    def f(
        x: mica.Tensor, n: int, *, flag: bool = False, names: list[int] | None = None
    ) -> tuple[mica.Tensor, int]:
        raise AssertionError

    text = library.infer_schema(f)
    assert text == "(Tensor x, SymInt n, *, bool flag=False, SymInt[]? names=None) -> (Tensor, SymInt)"


def test_explain_and_plugins() -> None:
    text = mica.explain("add.Tensor", mica.ones(1, requires_grad=True))
    assert text.index("1. Autograd") < text.index("2. cpu")
    assert {"cpu", "autograd"} <= {p["name"] for p in mica.plugins()}


def test_a_kernel_is_callable() -> None:
    with pytest.raises(TypeError, match="must be callable"):
        library.Library("mica", "IMPL").impl("add.Tensor", 5, "CPU")  # type: ignore[arg-type]


def weighted_sum(x: mica.Tensor, w: mica.Tensor, k: float = 1.0) -> mica.Tensor:
    return (x * w).sum().reshape(1) * k


def batched_sum(info: Any, in_dims: Any, x: mica.Tensor, w: mica.Tensor, k: float = 1.0) -> Any:
    rows = [t if d is None else t.movedim(d, 0).reshape(info.batch_size, -1) for t, d in zip((x, w), in_dims)]
    return (rows[0] * rows[1]).sum(-1).reshape(1, -1) * k, 1


def test_batch_rules() -> None:
    op = library.custom_op(fresh("dot"), weighted_sum, mutates_args=())
    op.register_fake(lambda x, w, k=1.0: x.new_empty(1))
    op.register_autograd(
        lambda ctx, g: (g * ctx.saved_tensors[1], g * ctx.saved_tensors[0], None),
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs[:2]),
    )
    calls: list[Any] = []

    @op.register_vmap
    def rule(info: Any, in_dims: Any, *args: Any) -> Any:
        calls.append((info.batch_size, info.randomness, in_dims))
        return batched_sum(info, in_dims, *args)

    x, w = mica.randn(3, 4), mica.randn(4)
    got = mica.func.vmap(op, (0, None, None), randomness="same")(x, w, 2.0)
    assert mica.allclose(got, (x @ w * 2)[:, None]) and got.shape == (3, 1)
    assert calls == [(3, "same", (0, None, None))]
    slope = mica.func.grad(lambda x, w: op(x, w)[0])
    assert mica.allclose(mica.func.vmap(slope, (0, None))(x, w), w.expand(3, 4))
    assert mica.allclose(
        mica.func.grad(lambda w: mica.func.vmap(op, (0, None))(x, w).sum())(w), x.sum(0), atol=1e-6
    )
    table = mica.func.vmap(mica.func.vmap(op, (0, None)), (None, 0))(x, mica.stack([w, 2 * w]))
    assert mica.allclose(table[1], 2 * table[0]) and table.shape == (2, 3, 1)
    assert mica.func.vmap(lambda a: op(w, w) + a)(x).shape == (3, 4)  # not of the batch: called once
    assert set(mica.testing.opcheck(op, (x[0], w)).values()) == {"SUCCESS"}


def test_kernels_at_autograd_go_on_in_the_frames_parent() -> None:
    name = fresh("tripled")
    lib = library.Library(name.split("::")[0], "DEF")
    lib.define("tripled(Tensor x, *, int by=3) -> Tensor")
    op = getattr(mica.ops, name.split("::")[0]).tripled
    overload = mica.ops.OpOverload(mica._C._find_operator(name))
    lib.impl("tripled", lambda x, by: x**by, "CPU")
    lib.impl("tripled", lambda x, by: overload.redispatch_below("Autograd", x, by=by), "Autograd")
    x = mica.randn(3, 2, requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it has no batch rule
        value = mica.func.vmap(lambda x: mica.func.grad_and_value(lambda x: op(x).sum())(x)[1])(x)
    assert mica.allclose(value, (x**3).sum(1))


@pytest.mark.filterwarnings("ignore:vmap has no batch rule")
def test_examples_with_and_without_a_result_are_refused() -> None:
    some = fresh("some")
    library.define(some, "(Tensor x) -> Tensor")
    library.impl(some, "cpu", lambda x: x + 1 if x.item() > 1 else None)
    many = fresh("many")
    library.define(many, "(Tensor x) -> Tensor[]")
    library.impl(many, "cpu", lambda x: [x] * int(x.item()))
    for name in (some, many):
        namespace, short = name.split("::")
        op = getattr(getattr(mica.ops, namespace), short)
        for batch in ([1.0, 2.0], [2.0, 1.0]):
            with pytest.raises(
                RuntimeError, match="a tensor for some examples of a batch and none for others"
            ):
                mica.func.vmap(op)(mica.tensor(batch))
        assert mica._C._frame_depth() == 0
        outputs = mica.func.vmap(op)(mica.tensor([2.0, 2.0]))
        assert [t.shape for t in ([outputs] if name == some else outputs)] == [(2,)] * (
            1 if name == some else 2
        )


def test_wrong_batch_rules_are_found() -> None:
    op = library.custom_op(fresh("dot"), weighted_sum, mutates_args=())
    op.register_fake(lambda x, w, k=1.0: x.new_empty(1))
    x = mica.randn(3, 4)
    op.register_vmap(lambda info, in_dims, x, w, k: (x.sum(1, keepdim=True), 0))
    with pytest.raises(mica.testing.OpCheckError, match="differs from a loop over the examples"):
        mica.testing.opcheck(op, (x[0], x[1]))
    op.register_vmap(lambda info, in_dims, x, w, k: (x.sum(0), 0))
    with pytest.raises(RuntimeError, match=r"shape \(4,\), whose dimension \(0\) does not hold the \(3\)"):
        mica.func.vmap(op)(x, x)
    op.register_vmap(lambda info, in_dims, x, w, k: x)
    with pytest.raises(RuntimeError, match=r"must return \(output, out_dims\)"):
        mica.func.vmap(op)(x, x)
    assert mica._C._frame_depth() == 0


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (mica.float16, mica.float16),
        ("lower", mica.bfloat16),
        ("float32", mica.float32),
        ("promote", mica.float32),
    ],
)
def test_autocast_policies(policy: Any, expected: mica.dtype) -> None:
    seen: list[Any] = []

    @library.custom_op(fresh("scaled"), mutates_args=())
    def scaled(x: mica.Tensor, w: mica.Tensor, k: float = 2.0) -> mica.Tensor:
        seen.append((x.dtype, w.dtype, mica.is_autocast_enabled("cpu")))
        return x * w * k

    scaled.register_fake(lambda x, w, k=2.0: mica.empty_like(x * w))
    scaled.register_autocast("cpu", policy)
    x, w = mica.randn(3), mica.randn(3, dtype=mica.bfloat16)
    assert scaled(x, w).dtype == mica.float32 and seen.pop() == (mica.float32, mica.bfloat16, False)
    with mica.autocast("cpu"):
        y = scaled(x, w)
        assert y.dtype == expected and seen.pop() == (expected, expected, False)
        assert mica.equal(y, x.to(expected) * w.to(expected) * 2)
        assert scaled(x.double(), w.double()).dtype == mica.float64
        assert mica.is_autocast_enabled("cpu")
        mapped = mica.func.vmap(scaled)(x.expand(2, 3), w.expand(2, 3))
    assert mica.equal(mapped, mica.stack([y, y]))
    mica.testing.opcheck(scaled, (x, x))


def test_bad_autocast_policies() -> None:
    op = library.custom_op(fresh("dot"), weighted_sum, mutates_args=())
    with pytest.raises(ValueError, match="must be a floating dtype or one of lower"):
        op.register_autocast("cpu", "best")
    with pytest.raises(ValueError, match="device type is a str"):
        op.register_autocast(0, mica.float16)


class Cubed(mica.autograd.Function):
    """x ** 3 * k, which saves its input, its output and a number."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: mica.Tensor, k: mica.Tensor, power: int) -> mica.Tensor:
        return x**power * k.sum()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: mica.Tensor) -> None:
        ctx.save_for_backward(inputs[0], inputs[1], output)
        ctx.power = inputs[2]

    @staticmethod
    def backward(ctx: Any, g: mica.Tensor) -> tuple[Any, ...]:
        x, k, y = ctx.saved_tensors
        return g * ctx.power * y / x, ((g * y / k.sum()).sum()).expand(k.shape), None


class Doubled(mica.autograd.Function):
    @staticmethod
    def forward(x: mica.Tensor) -> mica.Tensor:
        return x * 2

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: mica.Tensor) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, g: mica.Tensor) -> mica.Tensor:
        return g * 2

    @staticmethod
    def vmap(info: Any, in_dims: Any, x: mica.Tensor) -> Any:
        assert info.batch_size == x.shape[in_dims[0]]
        return Doubled.apply(x), in_dims[0]


@pytest.mark.parametrize("in_dims", [(0, None, None), (0, 0, None), (None, 0, None)])
def test_functions_with_a_made_batch_rule(in_dims: Any) -> None:
    vmap, grad = mica.func.vmap, mica.func.grad
    x = (
        mica.rand(3, 4, dtype=mica.float64) + 0.5
        if in_dims[0] == 0
        else mica.rand(4, dtype=mica.float64) + 0.5
    )
    k = (
        mica.rand(3, 2, dtype=mica.float64) + 0.5
        if in_dims[1] == 0
        else mica.rand(2, dtype=mica.float64) + 0.5
    )
    plain = lambda x, k, power: x**power * k.sum()  # noqa: E731
    for f in (Cubed.apply, plain):
        assert f is plain or mica.allclose(vmap(f, in_dims)(x, k, 3), vmap(plain, in_dims)(x, k, 3))
    inner = [
        vmap(grad(lambda x, k, f=f: f(x, k, 3).sum(), (0, 1)), in_dims[:2])(x, k)
        for f in (Cubed.apply, plain)
    ]
    outer = [
        grad(lambda x, k, f=f: (vmap(f, in_dims)(x, k, 3) ** 2).sum(), (0, 1))(x, k)
        for f in (Cubed.apply, plain)
    ]
    for ours, theirs in (inner, outer):
        assert all(mica.allclose(a, b) for a, b in zip(ours, theirs))


def test_functions_with_a_batch_rule_of_their_own() -> None:
    x = mica.rand(3, 4)
    assert mica.equal(mica.func.vmap(Doubled.apply)(x), x * 2)
    slope = mica.func.vmap(mica.func.grad(lambda x: Doubled.apply(x).sum()))(x)
    assert mica.equal(slope, mica.full((3, 4), 2.0))

    class Neither(Doubled):
        vmap = mica.autograd.Function.vmap

    with pytest.raises(RuntimeError, match="no rule for it; define one of them"):
        mica.func.vmap(Neither.apply)(x)


def test_an_operator_tells_its_equation_program_and_arguments():
    ops = mica.ops.mica
    assert ops.addmm.default.equation == "ij,jk->ik" and ops.add.Tensor.equation == ""
    program = ops.add.Tensor.program
    assert [step[0] for step in program.codes["main"]] == ["LOAD", "SCALAR", "LOAD", "MUL", "ADD", "STORE"]
    assert (program.inputs, program.scalars) == ([0, 1], [2])
    assert ops.amax.default.program.codes["combine"][-1][0] == "STORE_STATE"
    assert ops._softmax.default.program is None and ops.sort.default.program is None  # rows have more parts
    x = mica.ones(2)
    args, named = ops.add.Tensor.bind(x, other=x)
    assert args[0] is x and args[1] is x and named == {"alpha": 1}
    with pytest.raises(TypeError, match="lacks the argument `other`"):
        ops.add.Tensor.bind(x)


def defining(namespace: str) -> library.Library:
    """A library that defines f."""
    own = library.Library(namespace, "DEF")
    own.define("f(Tensor x) -> Tensor")
    return own


def adding(namespace: str, number: int) -> library.Library:
    """A library of a kernel for f, which adds the number."""
    new = library.Library(namespace, "IMPL")
    new.impl("f", lambda x: x + number, "cpu")
    return new


def _resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_destroyed_libraries_leave_nothing() -> None:
    """10,000 of them, each kernel of which holds 100 KB."""

    def once() -> None:
        passing = library.Library("passing", "DEF")
        passing.define("f(Tensor x) -> Tensor")
        held = bytearray(100_000)
        passing.impl("f", lambda x: x + len(held), "cpu")
        assert mica.ops.passing.f(mica.zeros(())).item() == 100_000
        passing._destroy()

    for _ in range(200):
        once()
    gc.collect()
    before = _resident()
    for _ in range(10_000):
        once()
    gc.collect()
    assert _resident() - before < 1_000_000


def test_what_a_kernel_holds_goes_with_its_library() -> None:
    class Held:
        pass

    held = Held()
    gone = weakref.ref(held)
    own = library.Library(fresh("x").split("::")[0], "DEF")
    own.define("f(Tensor x) -> Tensor")
    own.impl("f", lambda x, held=held: x + 1, "cpu")
    f = getattr(mica.ops, own.ns).f
    assert f(mica.zeros(())).item() == 1
    del held
    own._destroy()
    gc.collect()
    assert gone() is None
    with pytest.raises(RuntimeError, match="f is gone: the plugin or library that defined it is disabled"):
        f(mica.zeros(()))


def test_a_kernel_costs_no_more_among_8000_operators() -> None:
    """It drops the tables of its own operator, and looks at no other."""
    own = library.Library(fresh("x").split("::")[0], "DEF")

    def cost() -> float:
        """Seconds of this thread for a kernel of an operator that was called before, at their least."""
        x, least = mica.ones(1), float("inf")
        for _ in range(10):
            names = [fresh("f").replace("::", "_") for _ in range(50)]
            for name in names:
                own.define(f"{name}(Tensor x) -> Tensor")
                own.impl(name, lambda x: x, "cpu")
                mica.ops.overload(f"{own.ns}::{name}")(x)
            over = library.Library(own.ns, "IMPL")
            start = time.thread_time()
            for name in names:
                over.impl(name, lambda x: x, "cpu")
            least = min(least, (time.thread_time() - start) / len(names))
            over._destroy()
        return least

    few = cost()
    for number in range(8000):
        own.define(f"more{number}(Tensor x) -> Tensor")
        own.impl(f"more{number}", lambda x: x, "cpu")
        mica.ops.overload(f"{own.ns}::more{number}")(mica.ones(1))
    assert cost() < 2 * few
    own._destroy()


KEPT = """
    import mica
    library = mica.library.Library("kept", "DEF")
    library.define("f(Tensor x) -> Tensor")
    library.impl("f", lambda x: x + 1, "cpu")
    f = mica.ops.kept.f.default
    x = mica.ones(2)
    assert f(x).tolist() == [2, 2]
    library._destroy()
    library = mica.library.Library("kept", "DEF")
    library.define("f(Tensor x, int k) -> Tensor")
    library.impl("f", lambda x, k: x * k, "cpu")
    learns = x.clone().requires_grad_()
    calls = {
        "plain": lambda: f(x), "autograd": lambda: f(learns), "meta": lambda: f(x.to("meta")),
        "vmap": lambda: mica.vmap(f)(x), "functionalize": lambda: mica.func.functionalize(f)(x),
        "trace": lambda: mica.fx.make_fx(f)(x), "conjugate": lambda: f(mica.complex(x, x).conj()),
        "autocast": lambda: mica.autocast("cpu")(f)(x),
    }
    for call in calls.values():
        try:
            call()
        except NotImplementedError as error:
            print(str(error).splitlines()[0])
    assert mica.ops.kept.f(x, 5).tolist() == [5, 5]
"""


def test_a_kept_overload_says_that_it_is_gone() -> None:
    """However it is called: also by a layer that is loaded later, and where another has its name."""
    gone = "Operator kept::f is gone: the plugin or library that defined it is disabled"
    assert [line[: len(gone)] for line in printed(KEPT).splitlines()] == [gone] * 8


def test_other_libraries_kernels_outlive_the_operator() -> None:
    """A library that is made anew, as by importlib.reload, finds the kernels that others gave its operators."""
    namespace = fresh("x").split("::")[0]

    first = defining(namespace)
    other = adding(namespace, 2)
    f = getattr(mica.ops, namespace).f
    assert f(mica.zeros(())).item() == 2
    first._destroy()
    again = defining(namespace)
    assert f(mica.zeros(())).item() == 2  # the handle is the operator's again, too
    other._destroy()
    with pytest.raises(NotImplementedError):
        f(mica.zeros(()))
    again._destroy()
    defining(namespace)._destroy()  # nothing of `other` is left to be found


def test_an_operator_that_comes_back_has_the_kernels_of_now() -> None:
    """Its handle made a table while it was there, or gone, that knows other kernels."""
    namespace = fresh("x").split("::")[0]

    own = defining(namespace)
    f = getattr(mica.ops, namespace).f
    with pytest.raises(NotImplementedError, match="no kernel for the backend"):
        f(mica.zeros(()))
    own._destroy()
    other = adding(namespace, 5)  # waits for the operator
    own = defining(namespace)
    assert f(mica.zeros(())).item() == 5
    own._destroy()
    other._destroy()
    own = defining(namespace)
    with pytest.raises(NotImplementedError, match="no kernel for the backend"):
        f(mica.zeros(()))
    own._destroy()


def test_kernels_are_replaced_under_calls() -> None:
    """10,000 replacements under eight threads, with nothing behind them: no call finds a gap."""
    namespace = fresh("x").split("::")[0]
    own = defining(namespace)
    f = getattr(mica.ops, namespace).f

    stop, wrong = threading.Event(), []

    def call() -> None:
        x = mica.zeros(())
        while not stop.is_set():
            try:
                value = f(x).item()
                if not 1 <= value <= 10_001 or value != int(value):
                    wrong.append(value)
            except Exception as error:  # noqa: BLE001 - any is one too many
                wrong.append(error)

    current = adding(namespace, 1)
    threads = [threading.Thread(target=call) for _ in range(8)]
    for t in threads:
        t.start()
    for number in range(2, 10_002):
        new = adding(namespace, number)
        current._destroy()
        current = new
    stop.set()
    for t in threads:
        t.join()
    assert wrong == []
    assert f(mica.zeros(())).item() == 10_001
    current._destroy()
    own._destroy()
