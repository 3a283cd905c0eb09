"""Rules of nn that torch's own tests hold: lazy parameters, parametrisations and what is refused or warned of."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from module_programs import Case, check, kind, ones, plain

CASES: dict[str, Case] = {}


def case(function: Case) -> Case:
    CASES[function.__name__] = function
    return function


def warned(call: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [w.category.__name__ for w in caught]


def lazy(L: Any) -> Any:
    class Lazy(L.nn.modules.lazy.LazyModuleMixin, L.nn.Module):
        pass

    module = Lazy()
    module.register_parameter("weight", L.nn.UninitializedParameter())
    return module


@case
def states_of_lazy_modules(L: Any) -> Any:
    state = lazy(L).state_dict()
    known = L.nn.Linear(2, 3, bias=False)
    into_known = kind(lambda: known.load_state_dict(state))
    twin = lazy(L)
    twin.load_state_dict(state)
    still = twin.has_uninitialized_params()
    twin.load_state_dict(known.state_dict())
    return [type(state["weight"]).__name__, into_known, still, tuple(twin.weight.shape)]


@case
def lazy_parameters_refuse_what_wants_values(L: Any) -> Any:
    weight = L.nn.UninitializedParameter()
    calls = {
        "add": lambda: weight + weight,
        "empty_like": lambda: L.empty_like(weight),
        "sum": lambda: weight.sum(),
        "cat": lambda: L.cat([L.ones(1), weight]),
        "weight_norm": lambda: L.nn.utils.weight_norm(L.nn.LazyLinear(2)),
        "spectral_norm": lambda: L.nn.utils.spectral_norm(L.nn.LazyLinear(2)),
        "double": lambda: type(weight.double()).__name__,
        "materialize": lambda: (weight.materialize(3), tuple(weight.shape), type(weight).__name__),
    }
    return {name: kind(call) for name, call in calls.items()}


def _parametrisations(L: Any) -> dict[str, Any]:
    def made(forward: Any, inverse: Any = None) -> Any:
        body = {"forward": lambda self, *x: forward(*x)}
        if inverse is not None:
            body["right_inverse"] = lambda self, x: inverse(x)
        return type("P", (L.nn.Module,), body)()

    return {
        "no tensor": made(lambda x: 2),
        "a pair": made(lambda x: (x, x)),
        "another dtype": made(lambda x: x.double()),
        "another shape": made(lambda x: x[:-1]),
        "inverse gives None": made(lambda x: x, lambda x: None),
        "inverse gives a list of others": made(lambda x, y: x, lambda x: (None, x)),
        "inverse of another dtype": made(lambda x: x.float(), lambda x: x.double()),
        "inverse not implemented": made(
            lambda x: x * 2, lambda x: (_ for _ in ()).throw(NotImplementedError)
        ),
        "one original of a sequence": made(lambda x: x, lambda x: (x,)),
        "doubled": made(lambda x: x * 2, lambda x: x / 2),
    }


@case
def parametrisations_that_do_not_fit_change_nothing(L: Any) -> Any:
    parametrize = L.nn.utils.parametrize
    found = {}
    for name in _parametrisations(L):
        for first in (True, False):
            module = L.nn.Linear(2, 3)
            with L.no_grad():
                module.weight.copy_(ones(L, 3, 2))
            if not first:
                parametrize.register_parametrization(module, "weight", L.nn.Identity())
            one = _parametrisations(L)[name]
            result = kind(lambda m=module, p=one: parametrize.register_parametrization(m, "weight", p) and 0)
            count = len(module.parametrizations.weight) if parametrize.is_parametrized(module) else 0
            found[name, first] = [result, count, plain(module.weight.detach())]
    return [list(map(str, found)), list(found.values())]


@case
def an_optimizer_keeps_the_parameter_that_is_parametrised(L: Any) -> Any:
    module = L.nn.Linear(2, 3)
    before = module.weight
    module.eval()
    one = _parametrisations(L)["doubled"]
    L.nn.utils.parametrize.register_parametrization(module, "weight", one)
    return [module.parametrizations.weight.original is before, one.training]


@case
def warnings_of_sizes(L: Any) -> Any:
    return [
        warned(lambda: L.nn.init.kaiming_uniform_(L.empty(0, 2))),
        warned(lambda: L.nn.init.kaiming_normal_(L.empty(0, 2))),
        warned(lambda: L.nn.functional.dropout2d(ones(L, 1, 2, 2, 2))),
        warned(lambda: L.nn.functional.dropout2d(ones(L, 1, 2, 2))),
        warned(lambda: L.nn.functional.dropout2d(ones(L, 1, 1, 2, 2, 2))),
    ]


@case
def refused_by_kind(L: Any) -> Any:
    packed = L.nn.utils.rnn.pack_sequence([ones(L, 2), ones(L, 1)])
    return [
        kind(lambda: L.nn.init.calculate_gain("leaky_relu", [1])),
        kind(lambda: L.nn.init.calculate_gain("leaky_relu", "0.1")),
        kind(lambda: L.nn.utils.rnn.pad_sequence(5)),
        packed.to("cpu") is packed,
        packed.to(L.float64) is packed,
    ]


@pytest.mark.parametrize("name", CASES)
def test_rule(name: str) -> None:
    check(CASES[name], name)
