"""Custom functions: what they mark dirty, return as views, keep for backward and show of themselves, beside torch's."""

from __future__ import annotations

import importlib
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
from test_hook_order_torch import outcome

import mica

PROGRAMS: list[Callable[[Any], Any]] = []
CONTEXTS: list[Any] = []


def program(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    PROGRAMS.append(function)
    return function


def function_of(L: Any, forward: Callable[..., Any], backward: Callable[..., Any]) -> Any:
    return type(
        "Made", (L.autograd.Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    )


def middle(L: Any) -> tuple[Any, Any]:
    x = L.ones(4, requires_grad=True)
    return x, x * 1


def weighed(L: Any, y: Any) -> Any:
    return (y * L.arange(1.0, 1 + y.numel()).view_as(y)).sum()


def doubled(L: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        x.mul_(2)
        ctx.mark_dirty(x)
        return x

    return function_of(L, forward, lambda ctx, g: g * 7)


# ---- written inputs
@program
def written_view_shows_in_its_base(L: Any) -> Any:
    x, y = middle(L)
    view = y[:2]
    result = doubled(L).apply(view)
    weighed(L, y).backward()
    return result is view, y.tolist(), x.grad.tolist()


@program
def written_view_itself(L: Any) -> Any:
    x, y = middle(L)
    weighed(L, doubled(L).apply(y[:2])).backward()
    return x.grad.tolist()


@program
def written_view_of_a_view(L: Any) -> Any:
    x, y = middle(L)
    result = doubled(L).apply(y.view(2, 2)[1])
    (weighed(L, result) + weighed(L, y)).backward()
    return x.grad.tolist()


@program
def another_view_of_the_written_base(L: Any) -> Any:
    x, y = middle(L)
    view, other = y[:2], y[1:3]
    doubled(L).apply(view)
    weighed(L, other).backward()
    return x.grad.tolist()


@program
def written_second_argument(L: Any) -> Any:
    def forward(ctx: Any, a: Any, x: Any) -> Any:
        x.mul_(a)
        ctx.mark_dirty(x)
        return x

    a = L.full((), 3.0, requires_grad=True)
    x, y = middle(L)
    result = function_of(L, forward, lambda ctx, g: (g.sum() * 11, g * 7)).apply(a, y)
    weighed(L, y).backward()
    return a.grad.item(), x.grad.tolist(), result is y


def written_and_new(L: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        x.mul_(2)
        ctx.mark_dirty(x)
        return x, x.clone()

    return function_of(L, forward, lambda ctx, g, h: g * 7 + h)


@program
def written_with_a_second_result(L: Any) -> Any:
    x, y = middle(L)
    result = written_and_new(L).apply(y)
    weighed(L, y + result[1]).backward()
    return x.grad.tolist()


@program
def written_view_with_a_second_result(L: Any) -> Any:
    return written_and_new(L).apply(middle(L)[1][:2])


@program
def written_leaf(L: Any) -> Any:
    return doubled(L).apply(L.ones(2, requires_grad=True))


@program
def written_view_of_a_leaf(L: Any) -> Any:
    return doubled(L).apply(L.ones(4, requires_grad=True)[:2])


@program
def written_view_of_no_grad(L: Any) -> Any:
    _, y = middle(L)
    with L.no_grad():
        view = y[:2]
    return doubled(L).apply(view)


@program
def written_and_not_returned(L: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        return x.clone()

    return function_of(L, forward, lambda ctx, g: g).apply(middle(L)[1])


# ---- results that are views
def narrowed(L: Any) -> Any:
    return function_of(L, lambda ctx, x: x[:2], lambda ctx, g: L.cat([g * 5, g * 0]))


@program
def result_is_a_view(L: Any) -> Any:
    x, y = middle(L)
    result = narrowed(L).apply(y)
    weighed(L, result).backward()
    return x.grad.tolist(), result._is_view()


@program
def result_is_a_view_and_written(L: Any) -> Any:
    return narrowed(L).apply(middle(L)[1]).mul_(2)


@program
def result_is_a_view_and_its_base_written(L: Any) -> Any:
    x, y = middle(L)
    result = narrowed(L).apply(y)
    y.mul_(2)
    return (
        outcome(lambda: weighed(L, result).backward()),
        outcome(lambda: weighed(L, y).backward()),
        x.grad.tolist(),
    )


@program
def result_is_the_input(L: Any) -> Any:
    x, y = middle(L)
    result = function_of(L, lambda ctx, x: x, lambda ctx, g: g * 5).apply(y)
    weighed(L, result).backward()
    return x.grad.tolist(), result is y, result._is_view(), outcome(lambda: result.mul_(2))


@program
def result_is_the_input_and_that_written(L: Any) -> Any:
    _, y = middle(L)
    result = function_of(L, lambda ctx, x: x, lambda ctx, g: g * 5).apply(y)
    y.mul_(2)
    return weighed(L, result).backward()


@program
def results_are_views_of_a_new_tensor(L: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        y = x * 2
        return y[:2], y[2:]

    x = L.ones(4, requires_grad=True)
    a, b = function_of(L, forward, lambda ctx, g, h: L.cat([g * 5, h * 3])).apply(x)
    refused = outcome(lambda: a.mul_(3))
    (a.sum() + b.sum()).backward()
    return refused, x.grad.tolist()


# ---- contexts and nodes
def keeping(L: Any) -> Any:
    CONTEXTS.clear()

    def forward(ctx: Any, x: Any) -> Any:
        y = x * 2
        ctx.save_for_backward(x, None, y)
        ctx.note = "note"
        CONTEXTS.append(ctx)
        return y

    def backward(ctx: Any, g: Any) -> Any:
        x, _, y = ctx.saved_tensors
        return g * x * y

    return function_of(L, forward, backward)


def kept() -> Any:
    return [t if t is None else t.tolist() for t in CONTEXTS[0].saved_tensors]


@program
def saved_tensors_after_the_graph(L: Any) -> Any:
    x = L.ones(2, requires_grad=True)
    y = keeping(L).apply(x)
    del y
    found = kept()
    again = CONTEXTS[0].saved_tensors[2]
    node = again.grad_fn
    weighed(L, again).backward()
    gone = weakref.ref(CONTEXTS.pop())
    name = node.name()
    del node, again
    return found, name, x.grad.tolist(), gone() is None


@program
def saved_tensors_in_no_grad_after_the_graph(L: Any) -> Any:
    y = keeping(L).apply(L.ones(2, requires_grad=True))
    del y
    with L.no_grad():
        return kept(), kept()


@program
def saved_tensors_after_backward(L: Any) -> Any:
    y = keeping(L).apply(L.ones(2, requires_grad=True))
    y.sum().backward(retain_graph=True)
    found = kept()
    y.sum().backward()
    return found, outcome(kept), outcome(lambda: y.grad_fn.saved_tensors), y.grad_fn.note


@program
def saved_tensors_written(L: Any) -> Any:
    x, y = middle(L)
    result = keeping(L).apply(y)
    y.mul_(2)
    return outcome(kept), outcome(lambda: result.sum().backward())


@program
def node_shows_its_context(L: Any) -> Any:
    x = L.ones(2, requires_grad=True)
    y = keeping(L).apply(x)
    node, ctx = y.grad_fn, CONTEXTS[0]
    node.mine = 3
    return [
        [t if t is None else t.tolist() for t in node.saved_tensors],
        node.saved_tensors[2].grad_fn is node,
        node.note,
        node.needs_input_grad,
        type(node).__name__,
        node.name(),
        ctx.mine,
        ctx.name(),
        ctx.next_functions[0][0] is x.expand_as(x).grad_fn.next_functions[0][0],
        outcome(lambda: ctx.unknown),
        outcome(lambda: node.unknown),
    ]


@program
def backward_twice(L: Any) -> Any:
    y = keeping(L).apply(L.ones(2, requires_grad=True)).sum()
    return outcome(y.backward), outcome(y.backward)


@program
def backward_twice_without_saved_tensors(L: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.factor = 3
        return x * 2

    x = L.ones(2, requires_grad=True)
    y = function_of(L, forward, lambda ctx, g: g * ctx.factor).apply(x)
    for _ in range(2):
        y.backward(L.ones(2))
    return x.grad.tolist()


@program
def backward_is_named_vjp(L: Any) -> Any:
    members = {"forward": staticmethod(lambda ctx, x: x * 2), "vjp": staticmethod(lambda ctx, g: g * 9)}
    x = L.ones(2, requires_grad=True)
    type("Made", (L.autograd.Function,), members).apply(x).sum().backward()
    return x.grad.tolist()


@program
def backward_has_both_names(L: Any) -> Any:
    members = {"forward": staticmethod(lambda ctx, x: x * 2)}
    members |= {name: staticmethod(lambda ctx, g: g * 9) for name in ("vjp", "backward")}
    type("Made", (L.autograd.Function,), members).apply(L.ones(2, requires_grad=True)).sum().backward()


@program
def once_differentiable(L: Any) -> Any:
    decorate = importlib.import_module(f"{L.__name__}.autograd.function").once_differentiable

    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x**3

    backward = decorate(lambda ctx, g: g * 3 * ctx.saved_tensors[0] ** 2)
    x, w = L.ones(2, requires_grad=True), L.ones(2, requires_grad=True)
    loss = (function_of(L, forward, backward).apply(x) * w).sum()
    (g,) = L.autograd.grad(loss, x, create_graph=True)
    return g.tolist(), g.requires_grad, outcome(lambda: L.autograd.grad(g.sum(), w))


# ---- tangents of results that share an input's memory
FORWARDS: dict[str, Callable[[Any, Any], Any]] = {
    "the input": lambda x, y: x,
    "a view": lambda x, y: x[:1],
    "the other input": lambda x, y: y.view(-1),
    "a detached input": lambda x, y: x.detach(),
    "a view of a new tensor": lambda x, y: (x * 2).view(-1),
}
TANGENTS: dict[str, Callable[[Any, Any], Any]] = {
    "itself": lambda s, t: s,
    "a view": lambda s, t: s.view_as(s),
    "a part": lambda s, t: s[:1],
    "a new part": lambda s, t: s[:1] * 2,
    "new": lambda s, t: s * 2,
    "a view of a new one": lambda s, t: (s * 2).view(-1),
    "a view of the other": lambda s, t: t.view(-1),
}


def tangent(
    L: Any, forward: Callable[[Any, Any], Any], jvp: Callable[[Any, Any], Any], both: bool, old: bool
) -> Any:
    members: dict[str, Any] = {"jvp": staticmethod(lambda ctx, s, t: jvp(s, t))}
    if old:
        members["forward"] = staticmethod(lambda ctx, x, y: forward(x, y))
    else:
        members |= {
            "forward": staticmethod(forward),
            "setup_context": staticmethod(lambda ctx, inputs, output: None),
        }
    made = type("Made", (L.autograd.Function,), members)
    forward_ad = importlib.import_module(f"{L.__name__}.autograd.forward_ad")
    with forward_ad.dual_level():
        x = forward_ad.make_dual(L.tensor([1.0, 2.0]), L.tensor([3.0, 4.0]))
        y = L.tensor([5.0, 6.0])
        if both:
            y = forward_ad.make_dual(y, L.tensor([7.0, 8.0]))
        return forward_ad.unpack_dual(made.apply(x, y)).tangent.tolist()


# Of a part of the input the tangent is a part, of the others it is whole.
FITTING = [(f, j) for f in FORWARDS for j in TANGENTS if (f == "a view") == j.endswith("part")]


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize(("forward", "jvp"), FITTING)
def test_tangent_of_a_result_that_shares_memory(forward: str, jvp: str, both: bool, old: bool) -> None:
    ours, theirs = (
        outcome(lambda L=L: tangent(L, FORWARDS[forward], TANGENTS[jvp], both, old)) for L in (mica, torch)
    )
    assert ours == theirs


@pytest.mark.parametrize("run", PROGRAMS, ids=lambda f: f.__name__)
def test_functions(run: Callable[[Any], Any]) -> None:
    ours, theirs = outcome(lambda: run(mica)), outcome(lambda: run(torch))
    CONTEXTS.clear()
    assert ours == theirs


@pytest.mark.parametrize("requires_grad", [True, False])
def test_written_view_that_is_the_second_argument(requires_grad: bool) -> None:
    """torch loses the gradients here, without a word."""

    def forward(ctx: Any, a: Any, x: Any) -> Any:
        x.mul_(a)
        ctx.mark_dirty(x)
        return x

    a = mica.full((), 3.0, requires_grad=True)
    x = mica.ones(4, requires_grad=requires_grad)
    y = x * 1
    function_of(mica, forward, lambda ctx, g: (g.sum() * 11, g * 7)).apply(a, y[:2])
    weighed(mica, y).backward()
    assert a.grad is not None and a.grad.item() == 33
    assert not requires_grad or x.grad.tolist() == [7, 14, 3, 4]


def test_the_end_of_a_call_takes_nodes_alone() -> None:
    with pytest.raises(TypeError, match=r"takes the node of _make_custom_node, or None, and got \(int\)"):
        mica._C._finish_custom(3, (), (), (), (), True)
