"""Generators under grad modes, functional_call on all that a module holds, and what custom_op refuses, beside torch's."""

from __future__ import annotations

import functools
import types
from typing import Any

import pytest
import torch
from process import printed
from test_hook_order_torch import outcome

import mica

MODES = ["no_grad", "no_grad()", "enable_grad()", "set_grad_enabled(False)", "inference_mode()"]


def resumed(L: Any, mode: str) -> list[Any]:
    """What a decorated generator sees when it is sent, thrown and closed."""
    decorate = eval(f"L.{mode}", {"L": L})
    log: list[Any] = []

    def see(what: Any) -> None:
        log.append((what, L.is_grad_enabled()))

    @decorate
    def generator(n: int) -> Any:
        try:
            see(("sent", (yield n)))
            try:
                yield 2
            except ValueError as error:
                see(str(error))
                yield 3
        finally:
            see("end")
        return 5

    L.set_grad_enabled(True)
    running = generator(1)
    log += [next(running), running.send("a"), running.throw(ValueError("thrown"))]
    running.close()
    running = generator(1)
    next(running)
    log.append(outcome(lambda: running.throw(KeyError("out"))))

    def delegating() -> Any:
        see((yield from generator(4)))

    log.append(list(delegating()))
    running = generator(1)
    next(running)
    with L.no_grad():
        running.close()
    log.append(next(decorate(functools.partial(generator.__wrapped__, 7))()))
    return log


@pytest.mark.parametrize("mode", MODES)
def test_generators(mode: str) -> None:
    assert resumed(mica, mode) == resumed(torch, mode)


GIVEN: list[dict[str, Any]] = [
    {"t": 7.0},
    {"b": 1.0},
    {"w": 9.0, "b": 4.0},
    {"extra": 2.0},
    {"absent": 1.0},
    {"none": 1.0},
    {"sub.weight": 1.0},
    {"sub.extra": 1.0},
    {"number": 1.0},
    {"w": "text"},
    {"w": None},
    {"nowhere.x": 1.0},
    {"": 1.0},
    {"forward": 1.0},
]


def assigned(L: Any) -> Any:
    """Gradients of what was detached after its graph was recorded, and of what had a gradient before it was retained."""
    x = L.tensor([1.0, 2.0], requires_grad=True)
    loss = (x * x).sum()
    x.grad = L.ones(2)
    x.detach_()
    loss.backward()
    y = L.ones(2, requires_grad=True) * 2
    y.grad = L.ones(2)
    y.retain_grad()
    before = y.grad.tolist()
    y.sum().backward()
    return x.grad.tolist(), before, y.grad.tolist()


def test_assigned_gradients() -> None:
    assert assigned(mica) == assigned(torch)


def replaced(L: Any, given: dict[str, Any], strict: bool) -> Any:
    class Module(L.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = L.nn.Parameter(L.ones(2))
            self.register_buffer("b", L.zeros(2))
            self.register_buffer("absent", None)
            self.t, self.number, self.none, self.sub = L.ones(2) * 3, 5, None, L.nn.Linear(2, 2)

        def forward(self, x: Any) -> Any:
            self.b = self.b + x
            x = x * getattr(self, "extra", 1)
            return self.w * (x if self.absent is None else x + self.absent) * self.t

    m = Module()
    held = {k: L.full((2,), v) if isinstance(v, float) else v for k, v in given.items()}
    result = outcome(lambda: L.func.functional_call(m, held, (L.ones(2),), strict=strict).tolist())
    after = {k: v.tolist() if isinstance(v, L.Tensor) else v for k, v in held.items()}
    return result, after, m.b.tolist(), m.t.tolist(), m.w.tolist(), hasattr(m, "extra"), m.absent, m.none


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("given", GIVEN, ids=lambda g: "+".join(g))
def test_functional_call(given: dict[str, Any], strict: bool) -> None:
    assert replaced(mica, given, strict) == replaced(torch, given, strict)


BODIES = {
    "new": lambda L, x: x + 1,
    "input": lambda L, x: x,
    "view": lambda L, x: x.view(-1),
    "detached": lambda L, x: x.detach(),
    "empty": lambda L, x: L.empty(0),
}
PLAIN, WRITTEN = "(Tensor x, int n) -> Tensor", "(Tensor(a!) x, int n) -> ()"
CONTRADICTIONS: list[tuple[str | None, Any]] = [
    (PLAIN, ()),
    (PLAIN, ("x",)),
    (PLAIN, ("z",)),
    (PLAIN, ("n",)),
    (WRITTEN, ()),
    (WRITTEN, ("x",)),
    (WRITTEN, "unknown"),
    (None, ("z",)),
    (None, ("n",)),
    (None, "x"),
    (None, ["x"]),
    (None, "unknown"),
]
_numbers = iter(range(10_000))


def custom(L: Any, body: Any, mutates_args: Any, schema: str | None) -> Any:
    def function(x: Any, n: Any) -> Any:
        return body(x)

    function.__annotations__ = {
        "x": L.Tensor,
        "n": int,
        "return": type(None) if schema == WRITTEN else L.Tensor,
    }
    name = f"replaced_state::op{next(_numbers)}"
    return L.library.custom_op(name, function, mutates_args=mutates_args, schema=schema)


@pytest.mark.parametrize("body", BODIES)
def test_custom_op_returns_new_tensors(body: str) -> None:
    found = [
        outcome(lambda: custom(L, functools.partial(BODIES[body], L), (), None)(L.ones(3), 1).tolist())  # noqa: B023
        for L in (mica, torch)
    ]
    assert found[0] == found[1]


@pytest.mark.parametrize("schema, mutates_args", CONTRADICTIONS)
def test_custom_op_agrees_with_its_schema(schema: str | None, mutates_args: Any) -> None:
    def made(L: Any) -> Any:
        return outcome(lambda: type(custom(L, lambda x: None, mutates_args, schema)).__name__)

    assert made(mica) == made(torch)


DISTRIBUTIONS = ["Binomial(5, p)", "Poisson(p)", "Bernoulli(p)", "Geometric(p)", "NegativeBinomial(5, p)", "Normal(p, p)",
                 "Gamma(p, p)", "Beta(p, p)", "Categorical(p)", "OneHotCategorical(p)", "Multinomial(3, p)", "VonMises(p, p)"]  # fmt: skip


@pytest.mark.parametrize("text", DISTRIBUTIONS)
def test_samples_have_no_gradient(text: str) -> None:
    p = mica.tensor([0.25, 0.5], requires_grad=True)
    sample = eval(f"d.{text}", {"d": mica.distributions, "p": p * 1}).sample((3,))
    assert not sample.requires_grad and sample.grad_fn is None


def warned(name: str) -> list[str]:
    """The kinds of warnings, and their words before the first colon that both libraries share."""
    program = f"""
import warnings, {name} as L, {name}.utils.checkpoint as c
x = L.ones((), requires_grad=True)
calls = [
    lambda: c.checkpoint(lambda t: t * 2, x),
    lambda: c.checkpoint(lambda t: t * 2, x, use_reentrant=False),
    lambda: c.checkpoint_sequential(L.nn.Sequential(L.nn.Linear(2, 2), L.nn.Linear(2, 2)), 2, L.ones(2, requires_grad=True)),
    lambda: L.autograd.grad(x * x, x, create_graph=True),
    lambda: (x * 2).backward(create_graph=True),
    lambda: L.autograd.backward(x * 2, create_graph=True),
]
for call in calls:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    print([(w.category.__name__, "use_reentrant" in str(w.message), "create_graph=True" in str(w.message)) for w in caught])
"""
    return printed(program).splitlines()


def test_warnings() -> None:
    assert warned("mica") == warned("torch")


def test_functional_call_takes_any_mapping_and_a_module_that_deletes() -> None:
    class Forgets(mica.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("kept", mica.ones(1))
            self.register_buffer("gone", mica.ones(1))

        def forward(self, x: Any) -> Any:
            result = x + self.kept + self.gone
            del self.gone
            return result

    state = {"kept": mica.zeros(1), "gone": mica.full((1,), 3.0)}
    assert mica.func.functional_call(Forgets(), types.MappingProxyType(state), mica.ones(1)).tolist() == [4]
    assert mica.func.functional_call(Forgets(), state, mica.ones(1)).tolist() == [4]
    assert [state["kept"].item(), state["gone"].item()] == [0, 3]
