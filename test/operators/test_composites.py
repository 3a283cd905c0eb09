"""Composites under every layer (docs/design.md, "Composites"): Mica's own and a third party's, with
and without a backend's fused kernel.

A layer that has a rule for the composite uses it, one that has nothing to do lets it pass,
the others open it and go on with its parts. A fused kernel serves calls that nothing
records; where a gradient is wanted and no formula gives it, the parts run instead.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from compare import same

import mica
from mica import library
from mica.func import grad, jvp, vmap
from mica.fx import make_fx


def numbers(*shape: int) -> mica.Tensor:
    count = mica.Size(shape).numel()
    return (mica.arange(count, dtype=mica.float64).sin() * 0.5).reshape(shape)


# ---- a third party's composite: x @ w, with a gate, and a scale that is no tensor
LIB = library.Library("composites_test", "DEF")
LIB.define("gated(Tensor x, Tensor w, float scale=2.0) -> Tensor")


def gated(x: mica.Tensor, w: mica.Tensor, scale: float = 2.0) -> mica.Tensor:
    return (x @ w).sigmoid() * (x * scale).sum(-1, keepdim=True)


LIB.impl("gated", gated, "CompositeImplicitAutograd")


@dataclass(frozen=True)
class Composite:
    name: str  # the operator's
    call: Callable[..., Any]
    parts: Callable[..., Any]  # the same without the composite
    inputs: Callable[[], list[mica.Tensor]]
    lower: bool  # autocast runs the whole in the lower dtype; else its parts as each says
    namespace: str = "mica"


def attention(q: mica.Tensor, k: mica.Tensor, v: mica.Tensor) -> mica.Tensor:
    scores = mica.matmul(q, k.transpose(-1, -2)) / q.shape[-1] ** 0.5
    return mica.matmul(scores.softmax(-1), v)


COMPOSITES = [
    Composite(
        "linear",
        mica.nn.functional.linear,
        lambda x, w, b: mica.matmul(x, w.t()) + b,
        lambda: [numbers(2, 3), numbers(4, 3) + 0.1, numbers(4)],
        lower=True,
    ),
    Composite(
        "einsum",
        lambda x, y: mica.einsum("ij,jk->ik", x, y),
        mica.mm,
        lambda: [numbers(2, 3), numbers(3, 2) + 0.1],
        lower=True,
    ),
    Composite(
        "scaled_dot_product_attention",
        mica.nn.functional.scaled_dot_product_attention,
        attention,
        lambda: [numbers(1, 2, 3, 4), numbers(1, 2, 3, 4) + 0.1, numbers(1, 2, 3, 4) - 0.2],
        lower=True,
    ),
    Composite(
        "gated",
        lambda x, w: mica.ops.composites_test.gated(x, w),
        gated,
        lambda: [numbers(2, 3), numbers(3, 4) + 0.1],
        lower=False,
        namespace="composites_test",
    ),
]


@pytest.fixture(params=["no kernel", "fused"])
def fused(request: pytest.FixtureRequest, composite: Composite) -> Iterator[list[str] | None]:
    """With "fused", a kernel of the CPU for the whole; the list grows with each of its calls."""
    if request.param == "no kernel":
        yield None
        return
    calls: list[str] = []

    def kernel(*args: Any, **kwargs: Any) -> Any:
        calls.append(composite.name)
        if composite.name == "einsum":
            return composite.parts(*args[1])
        tensors = [a for a in args if isinstance(a, mica.Tensor)]
        return composite.parts(*tensors)

    lib = library.Library(composite.namespace, "IMPL")
    lib.impl(composite.name, kernel, "CPU")
    try:
        yield calls
    finally:
        lib._destroy()


@pytest.fixture(params=COMPOSITES, ids=lambda c: c.name)
def composite(request: pytest.FixtureRequest) -> Composite:
    return request.param  # type: ignore[no-any-return]


def close(a: Any, b: Any, tolerance: float = 1e-10) -> bool:
    return same(a, b, tolerance)


def total(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: f(*args).square().sum()


def test_plain(composite: Composite, fused: list[str] | None) -> None:
    inputs = composite.inputs()
    assert close(composite.call(*inputs), composite.parts(*inputs))
    assert fused in (None, [composite.name])
    with mica.no_grad():
        composite.call(*(x.requires_grad_() for x in inputs))
    assert fused is None or len(fused) == 2


def test_autograd(composite: Composite, fused: list[str] | None) -> None:
    """First and second gradients are those of the parts, for each subset of the inputs."""
    for wanted in itertools.product([False, True], repeat=len(composite.inputs())):
        if not any(wanted):
            continue
        found = []
        for f in (composite.call, composite.parts):
            inputs = [x.requires_grad_(w) for x, w in zip(composite.inputs(), wanted)]
            leaves = [x for x in inputs if x.requires_grad]
            first = mica.autograd.grad(total(f)(*inputs), leaves, create_graph=True)
            second = mica.autograd.grad(sum(g.square().sum() for g in first), leaves)
            found.append([*first, *second])
        assert all(close(a, b, 1e-8) for a, b in zip(*found))
    assert not fused  # the kernel has no gradient


def test_functional_transforms(composite: Composite, fused: list[str] | None) -> None:
    inputs = composite.inputs()
    numbers_of = tuple(range(len(inputs)))
    ours, theirs = (grad(total(f), argnums=numbers_of)(*inputs) for f in (composite.call, composite.parts))
    assert all(close(a, b) for a, b in zip(ours, theirs))
    directions = tuple(x * 0.5 + 1 for x in inputs)
    ours, theirs = (jvp(f, tuple(inputs), directions) for f in (composite.call, composite.parts))
    assert all(close(a, b) for a, b in zip(ours, theirs))


def test_vmap(composite: Composite, fused: list[str] | None) -> None:
    batches = [mica.stack([x, x * 1.5, x - 0.25]) for x in composite.inputs()]
    for mapped in itertools.product([0, None], repeat=len(batches)):
        if all(d is None for d in mapped):
            continue
        given = [b if d == 0 else b[0] for b, d in zip(batches, mapped)]
        loop = mica.stack(
            [composite.parts(*(b[i] if d == 0 else b for b, d in zip(given, mapped))) for i in range(3)]
        )
        assert close(vmap(composite.call, in_dims=mapped)(*given), loop)
        ours, theirs = (
            vmap(grad(total(f), argnums=0), in_dims=mapped)(*given) for f in (composite.call, composite.parts)
        )
        assert close(ours, theirs)


def test_autocast(composite: Composite, fused: list[str] | None) -> None:
    inputs = [x.float() for x in composite.inputs()]
    with mica.autocast("cpu", mica.bfloat16):
        found = composite.call(*inputs)
        under_vmap = vmap(composite.call)(*(x.unsqueeze(0) for x in inputs))[0]
        gradients = mica.autograd.grad(
            total(composite.call)(*(x.requires_grad_() for x in inputs)).float(), inputs
        )
    if composite.lower:
        lowered = composite.call(*(x.detach().bfloat16() for x in inputs))
        assert found.dtype == mica.bfloat16 and mica.equal(found, lowered)
    else:
        with mica.autocast("cpu", mica.bfloat16):
            parts = composite.parts(*(x.detach() for x in inputs))
        assert mica.equal(found, parts) and found.dtype == parts.dtype
        assert not fused  # it was opened at Autocast, for its parts
    assert under_vmap.dtype == found.dtype and mica.allclose(under_vmap.float(), found.float(), atol=1e-2)
    assert all(g.dtype == mica.float32 for g in gradients)


def test_trace(composite: Composite, fused: list[str] | None) -> None:
    inputs = composite.inputs()
    traced = make_fx(composite.call)(*inputs)
    names = [str(node.target) for node in traced.graph.nodes if node.op == "call_function"]
    assert len(names) == 1 and composite.name in names[0], names  # whole
    assert close(traced(*inputs), composite.parts(*inputs))
    gradient = make_fx(grad(total(composite.call)))(*inputs)
    assert close(gradient(*inputs), grad(total(composite.parts))(*inputs))
    mapped = make_fx(vmap(composite.call))(*(x.unsqueeze(0) for x in inputs))
    assert close(mapped(*(x.unsqueeze(0) for x in inputs))[0], composite.parts(*inputs))


def test_explain(composite: Composite, fused: list[str] | None) -> None:
    """It says that a kernel is there, and that gradients leave it aside."""
    if composite.name == "einsum":
        pytest.skip("explain takes tensors and no lists of them")
    name = composite.name if composite.namespace == "mica" else f"{composite.namespace}::{composite.name}"
    text = mica.explain(name, *(x.requires_grad_() for x in composite.inputs()))
    assert ("a kernel below serves calls that are not recorded" in text) is (fused is not None)
    assert "decomposes here" in text


# ---- a custom operator beside: a fused kernel with a gradient of its own is used throughout
def test_kernel_with_a_gradient_is_used_where_gradients_are_wanted() -> None:
    calls = []

    @library.custom_op("composites_test::fused_gate", mutates_args=())
    def fused_gate(x: mica.Tensor, w: mica.Tensor) -> mica.Tensor:
        calls.append("forward")
        return gated(x, w)

    def setup(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.save_for_backward(*inputs)

    def backward(ctx: Any, g: mica.Tensor) -> Any:
        calls.append("backward")
        return mica.func.vjp(gated, *ctx.saved_tensors)[1](g)

    fused_gate.register_autograd(backward, setup_context=setup)
    x, w = numbers(2, 3).requires_grad_(), (numbers(3, 4) + 0.1).requires_grad_()
    found = mica.autograd.grad(total(fused_gate)(x, w), [x, w])
    expected = mica.autograd.grad(total(gated)(x, w), [x, w])
    assert all(close(a, b) for a, b in zip(found, expected)) and calls == ["forward", "backward"]
