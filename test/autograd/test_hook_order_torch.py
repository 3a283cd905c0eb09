"""Hooks of tensors, leaves and nodes: when each runs, on what, and what it may return, beside torch's."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
from both import kind

import mica

PROGRAMS: list[Callable[[Any], Any]] = []


def program(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    PROGRAMS.append(function)
    return function


def outcome(run: Callable[[], Any]) -> Any:
    try:
        return run()
    except Exception as error:
        return kind(error)


def sums(value: Any) -> Any:
    """What a hook got, as numbers."""
    if isinstance(value, tuple):
        return [sums(v) for v in value]
    return None if value is None else float(value.sum())


def noted(log: list[Any], name: str, result: Any = None) -> Callable[..., Any]:
    def hook(*args: Any) -> Any:
        log.append((name, *map(sums, args)))
        return None if result is None else result(args[0])

    return hook


def leaf_of(L: Any) -> Any:
    return L.ones(2, requires_grad=True)


def hooks_of_leaf(L: Any, log: list[Any], x: Any) -> Any:
    """Registered in an order that is none of those in which they run. The node, which torch's leaf does not hold."""
    node = x.expand_as(x).grad_fn.next_functions[0][0]
    node.register_hook(lambda inputs, outputs: log.append(("post", sums(outputs))))
    x.register_post_accumulate_grad_hook(lambda p: log.append(("accumulated", sums(p.grad))))
    node.register_prehook(noted(log, "pre", lambda g: (g[0] + 1,)))
    x.register_hook(noted(log, "first", lambda g: g * 2))
    x.register_hook(noted(log, "second"))
    return node


def hooks_of_middle(L: Any, log: list[Any], y: Any) -> None:
    y.grad_fn.register_hook(lambda inputs, outputs: log.append(("post", sums(outputs))))
    y.grad_fn.register_prehook(noted(log, "pre", lambda g: (g[0] * 7,)))
    y.retain_grad()
    y.register_hook(noted(log, "first", lambda g: g * 2))
    y.register_hook(noted(log, "second"))


@program
def leaf(L: Any) -> Any:
    log: list[Any] = []
    x = leaf_of(L)
    node = hooks_of_leaf(L, log, x)
    (x * 3).sum().backward()
    return log, x.grad.tolist(), type(node).__name__


@program
def leaf_by_grad(L: Any) -> Any:
    log: list[Any] = []
    x = leaf_of(L)
    node = hooks_of_leaf(L, log, x)
    return [g.tolist() for g in L.autograd.grad((x * 3).sum(), [x])], log, type(node).__name__


@program
def leaf_as_input(L: Any) -> Any:
    log: list[Any] = []
    x = leaf_of(L)
    node = hooks_of_leaf(L, log, x)
    (x * 3).sum().backward(inputs=[x])
    return log, x.grad.tolist(), type(node).__name__


@program
def middle(L: Any) -> Any:
    log: list[Any] = []
    x = leaf_of(L)
    y = x * leaf_of(L)
    hooks_of_middle(L, log, y)
    (y * 5).sum().backward()
    return log, x.grad.tolist(), y.grad.tolist()


@program
def middle_by_grad(L: Any) -> Any:
    log: list[Any] = []
    y = leaf_of(L) * 3
    hooks_of_middle(L, log, y)
    return [g.tolist() for g in L.autograd.grad((y * 5).sum(), [y])], log, y.grad.tolist()


@program
def middle_as_input(L: Any) -> Any:
    log: list[Any] = []
    x = leaf_of(L)
    y = x * leaf_of(L)
    hooks_of_middle(L, log, y)
    (y * 5).sum().backward(inputs=[x, y])
    return log, x.grad.tolist(), y.grad.tolist()


@program
def result_that_is_an_input(L: Any) -> Any:
    """What grad gives of a tensor with hooks: of the node that it ends at what they made, else what came to it."""
    log: list[Any] = []
    x = leaf_of(L)
    y = x * 3
    v = y.sum()
    for t, name in ((x, "x"), (y, "y"), (v, "v")):
        t.register_hook(noted(log, name, lambda g: g * 2))
        t.retain_grad()
    v.grad_fn.register_prehook(noted(log, "pre"))
    for inputs in ([v], [v, y], [v, x], [y], [y, x], [x, y, v]):
        log.append([sums(g) for g in L.autograd.grad(v, inputs, retain_graph=True)])
        log.append([sums(t.grad) for t in (x, y, v)])
        v.backward(inputs=inputs, retain_graph=True)
        log.append([sums(t.grad) for t in (x, y, v)])
    return log


def halves(L: Any) -> Any:
    class Halves(L.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.set_materialize_grads(False)
            return x[:2].clone(), x[2:].clone()

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            return L.cat([L.zeros(2) if g is None else g for g in grads])

    return Halves.apply(L.arange(4.0, requires_grad=True))


@program
def several_results_of_one_node(L: Any) -> Any:
    log: list[Any] = []
    a, b = halves(L)
    b.register_hook(noted(log, "b first"))
    a.register_hook(noted(log, "a first"))
    b.register_hook(noted(log, "b second"))
    a.retain_grad()
    (a * 5 + b).sum().backward()
    return log, a.grad.tolist()


@program
def one_of_several_results(L: Any) -> Any:
    log: list[Any] = []
    a, b = halves(L)
    a.register_hook(noted(log, "a"))
    b.register_hook(noted(log, "b"))
    a.grad_fn.register_prehook(noted(log, "pre"))
    a.grad_fn.register_hook(noted(log, "post"))
    (b * 2).sum().backward()
    return log


@program
def no_gradient_at_all(L: Any) -> Any:
    class Nothing(L.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return None

    log: list[Any] = []
    x = leaf_of(L)
    y = x * 2
    y.register_hook(noted(log, "middle"))
    x.register_hook(noted(log, "leaf"))
    x.register_post_accumulate_grad_hook(lambda p: log.append(("accumulated", sums(p.grad))))
    y.grad_fn.register_prehook(noted(log, "pre"))
    Nothing.apply(y).sum().backward()
    made = outcome(lambda: y.register_hook(lambda g: L.ones(2)) and Nothing.apply(y).sum().backward())
    return log, made, x.grad


@program
def written_in_place(L: Any) -> Any:
    log: list[Any] = []
    x = leaf_of(L)
    y = x * 3
    y.register_hook(noted(log, "before"))
    y.retain_grad()
    y.mul_(2)
    y.register_hook(noted(log, "after"))
    y.sum().backward()
    return log, y.grad.tolist()


@program
def taken_away_after_a_write(L: Any) -> Any:
    log: list[Any] = []
    y = leaf_of(L) * 3
    handle = y.register_hook(noted(log, "gone"))
    y.mul_(2)
    handle.remove()
    handle.remove()
    y.sum().backward()
    return log


@program
def taken_away_in_a_hook(L: Any) -> Any:
    log: list[Any] = []
    x = leaf_of(L)
    handles: list[Any] = []
    handles.append(x.register_hook(lambda g: (log.append(1), handles[1].remove())[2:] or None))
    handles.append(x.register_hook(lambda g: log.append(2)))
    for _ in range(2):
        (x * 2).sum().backward()
    return log


@program
def added_in_a_hook(L: Any) -> Any:
    log: list[Any] = []
    x = leaf_of(L)
    x.register_hook(lambda g: (log.append(1), x.register_hook(lambda g: log.append(2)))[2:] or None)
    for _ in range(2):
        (x * 2).sum().backward()
    return log


@program
def handles_hold_nothing(L: Any) -> Any:
    class Held:
        pass

    gone = []
    for make in (lambda x: x * 2, lambda x: x):
        held = Held()
        seen = weakref.ref(held)
        x = leaf_of(L)
        y = make(x)
        handles = [
            y.register_hook(lambda g, held=held: None),
            y.sum().grad_fn.register_hook(lambda i, o, held=held: None),
        ]
        del held, x, y
        gc.collect()
        gone.append(seen() is None)
        for handle in handles:
            handle.remove()
    return gone


def returned(L: Any, register: Callable[[Any, Any], Any], results: list[Any]) -> list[Any]:
    log = []
    for result in results:
        x = leaf_of(L)
        y = x * leaf_of(L)
        register(y, result)
        log.append(outcome(lambda: (y * 2).sum().backward()))  # noqa: B023
        log.append(sums(x.grad))
    return log


@program
def what_hooks_of_tensors_return(L: Any) -> Any:
    values = [
        1,
        "s",
        L.ones(3),
        L.ones(2, 2),
        L.ones(1),
        L.ones(2, dtype=L.float64),
        L.ones(2) * 4,
        (L.ones(2),),
    ]
    log: list[Any] = []
    for value in values:
        for make in (lambda x: x, lambda x: x * 2):
            x = leaf_of(L)
            y = make(x)
            y.register_hook(lambda g, value=value: value)
            log.append(outcome(lambda: (y * 2).sum().backward()))  # noqa: B023
            log.append(sums(x.grad))
    return log


@program
def what_hooks_before_nodes_return(L: Any) -> Any:
    results = [
        lambda g: (),
        lambda g: (g[0], g[0]),
        lambda g: (None,),
        lambda g: (g[0] * 3,),
        lambda g: (L.ones(3),),
        lambda g: g[0],
        lambda g: [g[0]],
    ]
    return returned(L, lambda y, hook: y.grad_fn.register_prehook(hook), results)


@program
def what_hooks_after_nodes_return(L: Any) -> Any:
    results = [
        lambda g, o: (),
        lambda g, o: (g[0],),
        lambda g, o: (None, None),
        lambda g, o: (g[0] * 3, g[1]),
        lambda g, o: (g[0].double(), g[1]),
        lambda g, o: g[0],
        lambda g, o: [g[0], g[1]],
    ]
    return returned(L, lambda y, hook: y.grad_fn.register_hook(hook), results)


@program
def hooks_of_several_tensors(L: Any) -> Any:
    log: list[Any] = []
    x, z = leaf_of(L), leaf_of(L)
    x.register_hook(noted(log, "before"))
    L.autograd.graph.register_multi_grad_hook(
        [x, z], lambda grads: log.append(("all", [sums(g) for g in grads]))
    )
    x.register_hook(noted(log, "after"))
    (x * 2 + z).sum().backward()
    return log


@program
def objects_of_nodes(L: Any) -> Any:
    x = leaf_of(L)
    y = x * 2
    leaf_node = y.grad_fn.next_functions[0][0]
    y.grad_fn.metadata["key"] = "value"
    return [
        y.grad_fn is y.grad_fn,
        (y * y).grad_fn.next_functions[0][0] is y.grad_fn,
        (x * 3).grad_fn.next_functions[0][0] is leaf_node,
        type(y.grad_fn).__name__,
        type(leaf_node).__name__,
        isinstance(y.grad_fn, L.autograd.graph.Node),
        y.grad_fn.metadata,
        outcome(lambda: setattr(y.grad_fn, "name_of_mine", 1)),
        outcome(type(y.grad_fn)),
        leaf_node.variable is x,
    ]


@pytest.mark.parametrize("run", PROGRAMS, ids=lambda f: f.__name__)
def test_hooks(run: Callable[[Any], Any]) -> None:
    assert outcome(lambda: run(mica)) == outcome(lambda: run(torch))
