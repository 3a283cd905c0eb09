"""mica.ops and mica.library: operators and kernels from Python."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

import mica
from mica import library

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
