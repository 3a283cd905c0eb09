"""What autograd holds of Python: cycles through hooks, contexts and nodes are collected when nobody is left who
could run them, and not before."""

from __future__ import annotations

import functools
import gc
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import mica
from mica import nn
from mica.autograd import Function


class Sentinel:
    """Something that a hook holds."""


class Bound(nn.Module):
    """Hooks that are methods of the module which holds what they hang on."""

    def __init__(self, hang: Callable[[Bound], Any]) -> None:
        super().__init__()
        self.weight = nn.Parameter(mica.ones(3))
        self.sentinel = Sentinel()
        self.calls = 0
        self.handle = hang(self)

    def hook(self, *_: Any) -> None:
        self.calls += 1


def node_of(leaf: Any) -> Any:
    return leaf.expand_as(leaf).grad_fn.next_functions[0][0]


def node_kept_by_the_module(m: Bound) -> Any:
    m.node = node_of(m.weight)
    return m.node.register_hook(m.hook)


MODULES: dict[str, Callable[[Bound], Any]] = {
    "tensor hook": lambda m: m.weight.register_hook(m.hook),
    "accumulation": lambda m: m.weight.register_post_accumulate_grad_hook(m.hook),
    "node before": lambda m: node_of(m.weight).register_prehook(m.hook),
    "node after": node_kept_by_the_module,
    "forward": lambda m: m.register_forward_hook(m.hook),
    "backward": lambda m: m.register_full_backward_hook(m.hook),
    "partial": lambda m: m.weight.register_hook(functools.partial(m.hook, m)),
}


class Keeps(Function):
    @staticmethod
    def forward(ctx: Any, x: Any, held: Any) -> Any:
        ctx.held = held
        return x * 2

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g, None


def tensor_hook_of_its_tensor(y: Any, held: Any) -> None:
    y.register_hook(lambda g: (y, held)[2:] or None)


def tensor_hook_of_its_node(y: Any, held: Any) -> None:
    node = y.grad_fn
    y.register_hook(lambda g: (node, held)[2:] or None)


def node_hook_of_its_node(y: Any, held: Any) -> None:
    node = y.grad_fn
    node.register_hook(lambda i, o: (node, held)[2:] or None)


def node_hook_of_its_tensor(y: Any, held: Any) -> None:
    y.grad_fn.register_prehook(lambda g: (y, held)[2:] or None)


def metadata_of_its_tensor(y: Any, held: Any) -> None:
    y.grad_fn.metadata["tensor"] = (y, held)


def attribute_of_its_node(y: Any, held: Any) -> None:
    y.node = (y.grad_fn, held)


TENSORS: dict[str, Callable[[Any, Any], None]] = {
    f.__name__: f
    for f in (
        tensor_hook_of_its_tensor,
        tensor_hook_of_its_node,
        node_hook_of_its_node,
        node_hook_of_its_tensor,
        metadata_of_its_tensor,
        attribute_of_its_node,
    )
}
SOURCES: dict[str, Callable[[], Any]] = {
    "leaf": lambda: mica.ones(3, requires_grad=True),
    "result": lambda: mica.ones(3, requires_grad=True) * 2,
    "view": lambda: (mica.ones(3, requires_grad=True) * 2)[1:],
    "function": lambda: Keeps.apply(mica.ones(3, requires_grad=True), None),
    "parameter": lambda: nn.Parameter(mica.ones(3)),
}
LEAVES = ("leaf", "parameter")


@pytest.fixture(autouse=True)
def without_collection() -> Any:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("hang", MODULES)
@pytest.mark.parametrize("trained", [False, True])
def test_module_with_a_hook_of_its_own_method(hang: str, trained: bool) -> None:
    alive = []
    for _ in range(50):
        m = Bound(MODULES[hang])
        alive.append(weakref.ref(m.sentinel))
        if trained:
            (m.weight * mica.ones(3, requires_grad=True)).sum().backward()
        del m
    gc.collect()
    assert sum(r() is not None for r in alive) == 0


@pytest.mark.parametrize("hang", TENSORS)
@pytest.mark.parametrize("source", SOURCES)
def test_hook_that_holds_what_it_hangs_on(hang: str, source: str) -> None:
    if source in LEAVES and hang != "tensor_hook_of_its_tensor":
        pytest.skip("a leaf has no grad_fn")
    y, held = SOURCES[source](), Sentinel()
    alive = weakref.ref(held)
    TENSORS[hang](y, held)
    del held
    gc.collect()
    assert alive() is not None
    del y
    gc.collect()
    assert alive() is None


def test_context_that_holds_its_result() -> None:
    held = Sentinel()
    alive = weakref.ref(held)
    y = Keeps.apply(mica.ones(3, requires_grad=True), held)
    y.grad_fn.result = y
    del held, y
    assert alive() is not None
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize("of_tensor", [True, False])
@pytest.mark.parametrize("custom", [True, False])
def test_hook_is_not_collected_while_the_graph_can_run_it(of_tensor: bool, custom: bool) -> None:
    calls = []
    x = mica.ones((), requires_grad=True)
    y = Keeps.apply(x, None) if custom else x.clone()
    node, held = y.grad_fn, Sentinel()
    alive = weakref.ref(held)

    def hook(*_: Any, node: Any = node, held: Any = held) -> None:
        calls.append(node)

    y.register_hook(hook) if of_tensor else y.grad_fn.register_hook(hook)
    z = y.clone()
    del y, node, held, hook
    for _ in range(2):
        z.backward(retain_graph=True)
        gc.collect()
    assert len(calls) == 2 and alive() is not None
    calls.clear()
    del z
    gc.collect()
    assert alive() is None


def test_collection_while_other_threads_compute() -> None:
    """What a running operator saves belongs to nobody's garbage: attributes, hooks and contexts stay."""
    stop, done = threading.Event(), [0, 0]
    failures: list[str] = []

    def train(number: int) -> None:
        w = nn.Parameter(mica.randn(256, 256))
        w.note = "kept"
        calls: list[int] = []
        w.register_hook(lambda g: calls.append(1))
        while not stop.is_set():
            y = Keeps.apply(mica.randn(256, 256) @ w, w)
            y.register_hook(lambda g: calls.append(1))
            y.sum().backward()
            done[number] += 1
            if getattr(w, "note", None) != "kept" or len(calls) != 2 * done[number]:
                failures.append(f"after step {done[number]}: {w.__dict__}, {len(calls)} calls")
                return

    gc.freeze()  # the objects of all other tests, which would take most of a collection's time
    threads = [threading.Thread(target=train, args=(number,)) for number in range(2)]
    for t in threads:
        t.start()
    collections = 0
    while not failures and all(t.is_alive() for t in threads) and (collections < 300 or min(done) < 300):
        gc.collect()
        collections += 1
    stop.set()
    for t in threads:
        t.join()
    gc.unfreeze()
    assert not failures and min(done) >= 300


def test_hooks_of_a_tensor_whose_object_went() -> None:
    held = Sentinel()
    alive = weakref.ref(held)
    x = mica.ones(3, requires_grad=True)
    y = x * 2
    z = y * y  # saves y, so that its memory and its hooks live on without the object
    y.register_hook(lambda g, held=held: None)
    del y, held
    (again,) = {id(t): t for t in (z.grad_fn._saved_self, z.grad_fn._saved_other)}.values()
    again.grad_fn.metadata["cycle"] = again
    z.sum().backward()
    del z, again
    gc.collect()
    assert alive() is None
