"""Optimizers by their parts beside torch's: the functions over lists (torch.optim.adam.adam, ...), and
classes that say for themselves in _init_group what is stepped.

A row is a function's options; two tell its ways apart. Three steps are taken from equal lists.
"""

from __future__ import annotations

import inspect
from typing import Any

import pytest
import torch
from shim import SHIM, agree, plain

import mica.optim._functional as ours

ADAM = {"amsgrad": False, "beta1": 0.9, "beta2": 0.99, "lr": 0.1, "weight_decay": 0.1, "eps": 1e-8}
MOMENTS = {"beta1": 0.9, "beta2": 0.99, "lr": 0.1, "weight_decay": 0.1, "eps": 1e-8}
SGD = {"weight_decay": 0.1, "momentum": 0.9, "lr": 0.1, "dampening": 0.1, "nesterov": False}
RMSPROP = {"lr": 0.1, "alpha": 0.9, "eps": 1e-8, "weight_decay": 0.1, "momentum": 0.9, "centered": True}
ROWS: list[tuple[str, str, dict[str, Any]]] = [
    ("adam", "adam", {**ADAM, "maximize": False}),
    ("adam", "adam", {**ADAM, "amsgrad": True, "maximize": True, "decoupled_weight_decay": True}),
    ("adam", "adam", {**ADAM, "maximize": False, "fused": True, "foreach": False, "grad_scale": 2.0}),
    ("adam", "adam", {**ADAM, "maximize": False, "fused": True, "foreach": False, "found_inf": 1.0}),
    ("adamw", "adamw", {**ADAM, "maximize": False}),
    ("sgd", "sgd", {**SGD, "maximize": False}),
    ("sgd", "sgd", {**SGD, "dampening": 0.0, "nesterov": True, "maximize": True}),
    ("sgd", "sgd", {**SGD, "momentum": 0.0, "maximize": False}),
    ("adadelta", "adadelta", {"lr": 1.0, "rho": 0.9, "eps": 1e-6, "weight_decay": 0.1, "maximize": False}),
    ("adagrad", "adagrad", {"lr": 0.1, "weight_decay": 0.1, "lr_decay": 0.1, "eps": 1e-8, "maximize": False}),
    ("adamax", "adamax", MOMENTS),
    ("asgd", "asgd", {"lambd": 1e-4, "lr": 0.1, "t0": 1.0, "alpha": 0.75, "weight_decay": 0.1}),
    ("nadam", "nadam", {**MOMENTS, "momentum_decay": 4e-3}),
    ("nadam", "nadam", {**MOMENTS, "momentum_decay": 4e-3, "decoupled_weight_decay": True}),
    ("radam", "radam", {**MOMENTS, "maximize": True}),
    ("rmsprop", "rmsprop", RMSPROP),
    ("rprop", "rprop", {"step_size_min": 1e-6, "step_size_max": 5.0, "etaminus": 0.5, "etaplus": 1.2}),
    ("_adafactor", "adafactor", {"d": 1.0, "lr": 0.1, "beta2_decay": -0.8, "weight_decay": 0.1, "eps1": 1e-7, "eps2": 1e-3, "maximize": False}),
    ("_muon", "muon", {"lr": 0.1, "weight_decay": 0.1, "momentum": 0.9, "nesterov": True, "ns_coefficients": (3.4445, -4.775, 2.0315), "ns_steps": 5, "eps": 1e-7, "adjust_lr_fn": None, "has_complex": False}),
]  # fmt: skip


def function(library: Any, module: str, name: str) -> Any:
    """torch.optim.adam.adam and the like, under the shim or in torch."""
    if library is torch:
        return getattr(__import__(f"torch.optim.{module}", fromlist=[name]), name)
    from mica.torch._modules import module as of_shim

    return getattr(of_shim(f"torch.optim.{module}"), name)


def lists(L: Any, f: Any) -> dict[str, list[Any]]:  # noqa: N803 - as rows name it
    """Parameters, and the state before the first step that torch's class makes."""
    shapes = [(2, 3), (4, 2)] if f.__name__ == "muon" else [(2, 3), (4,)]
    made: dict[str, list[Any]] = {}
    for name, parameter in inspect.signature(f).parameters.items():
        if parameter.kind is parameter.KEYWORD_ONLY or parameter.default is not parameter.empty:
            break
        zeros = [L.zeros(shape) for shape in shapes]
        made[name] = {
            "params": [L.cos(z + L.arange(float(z.numel())).reshape(z.shape)) for z in zeros],
            "state_steps": [L.tensor(0.0) for _ in shapes],
            "mus": [L.tensor(1.0) for _ in shapes],
            "mu_products": [L.tensor(1.0) for _ in shapes],
            "etas": [L.tensor(0.1) for _ in shapes],
            "step_sizes": [z + 0.1 for z in zeros],
            "row_vars": [L.zeros(2, 1), None],
            "col_vars": [L.zeros(1, 3), None],
            "variances": [None, L.zeros(4)],
            "momentum_buffer_list": [None, None] if f.__name__ == "sgd" else zeros,
        }.get(name, zeros)
    return made


def stepped(L: Any, module: str, name: str, options: dict[str, Any]) -> Any:  # noqa: N803
    """The lists after three steps."""
    f = function(L, module, name)
    columns = lists(L, f)
    tensors = {k: L.tensor(options[k]) for k in ("grad_scale", "found_inf") if k in options}
    gradients = list(columns)[1]
    if options.get("fused"):
        columns["max_exp_avg_sqs"] = []
    for n in range(3):
        columns[gradients] = [L.sin(p * (n + 1)) for p in columns["params"]]
        f(**columns, **{**options, **tensors})
    return plain(columns)


@pytest.mark.parametrize("row", range(len(ROWS)), ids=[f"{name}-{i}" for i, (_, name, _) in enumerate(ROWS)])
def test_steps(row: int) -> None:
    tolerance = 0.02 if ROWS[row][1] == "muon" else 2e-5  # its iteration is in bfloat16
    agree(stepped(SHIM, *ROWS[row]), stepped(torch, *ROWS[row]), str(ROWS[row]), tolerance)


@pytest.mark.parametrize("module, name", sorted({row[:2] for row in ROWS}))
def test_signatures(module: str, name: str) -> None:
    mine, theirs = (inspect.signature(function(L, module, name)) for L in (SHIM, torch))
    shown = [[(p.name, p.kind, p.default) for p in s.parameters.values()] for s in (mine, theirs)]
    assert shown[0] == shown[1]


def test_what_is_refused_is_not_begun() -> None:
    given = lists(SHIM, ours.adam)
    gradients = [SHIM.ones(2, 3), SHIM.ones(5)]  # of which the second does not fit
    before = plain(given)
    calls: list[tuple[type[Exception], dict[str, Any]]] = [
        (RuntimeError, {"grads": gradients}),
        (RuntimeError, {"state_steps": [1, 1]}),
        (AssertionError, {"capturable": True}),
        (AssertionError, {"found_inf": SHIM.tensor(0.0)}),
        (RuntimeError, {"fused": True, "foreach": True}),
        (TypeError, {"momentum": 0.9}),
    ]
    for kind, options in calls:
        with pytest.raises(kind):
            ours.adam(**{**given, **ADAM, "maximize": False, **options})
        agree(plain(given), before, str(options), 0.0)


CLASSES = {
    "Adam": {"lr": 0.1, "amsgrad": True}, "AdamW": {"lr": 0.1}, "SGD": {"lr": 0.1, "momentum": 0.9}, "Adadelta": {},
    "Adagrad": {"lr": 0.1}, "Adamax": {}, "ASGD": {}, "NAdam": {}, "RAdam": {}, "Rprop": {},
    "RMSprop": {"momentum": 0.9, "centered": True}, "Adafactor": {"lr": 0.1},
}  # fmt: skip


def of_own_lists(L: Any, name: str) -> Any:  # noqa: N803
    """A class that doubles the gradients in _init_group: what it is given and what comes of it."""
    seen = []

    class Own(getattr(L.optim, name)):  # type: ignore[misc]
        def _init_group(self, group: Any, params: Any, grads: Any, *columns: Any) -> Any:
            found = super()._init_group(group, params, grads, *columns)
            seen.append([found, [[c is None for c in column] for column in columns]])
            grads[:] = [2 * g for g in grads]
            return found

    params = [L.nn.Parameter(L.cos(L.arange(6.0)).reshape(2, 3)), L.nn.Parameter(L.ones(4))]
    params.append(L.nn.Parameter(L.ones(2)))  # which gets no gradient
    optimizer = Own(params, **CLASSES[name])
    for n in range(3):
        for p in params[:2]:
            p.grad = L.sin(p.detach() * (n + 1))
        optimizer.step()
    return plain([seen, params, optimizer.state_dict()["state"]])


@pytest.mark.parametrize("name", CLASSES)
def test_groups_of_own_lists(name: str) -> None:
    agree(of_own_lists(SHIM, name), of_own_lists(torch, name), name)
