"""Every optimizer of torch.optim beside Mica's: steps, states that move both ways, bad input.

One table gives each optimizer its options; each row is run over ten steps in several dtypes
and ways. A second one holds programs that must end alike in both libraries, in results or in
the kind of exception.
"""

from __future__ import annotations

import copy
import importlib
import pickle
from typing import Any

import numpy as np
import pytest
import torch

import mica

SHAPES = [(3, 4), (5,), (1, 2, 3)]
DECAY = {"weight_decay": 0.1}
COMMON: dict[str, list[dict[str, Any]]] = {
    "Adam": [{}, DECAY, {"amsgrad": True}, {"decoupled_weight_decay": True, **DECAY}, {"betas": (0.4, 0.7)}],
    "AdamW": [{}, {"amsgrad": True, **DECAY}, {"eps": 0.1}],
    "SGD": [
        {"lr": 0.1},
        {"lr": 0.1, "momentum": 0.9, **DECAY},
        {"lr": 0.1, "momentum": 0.9, "dampening": 0.3},
        {"lr": 0.1, "momentum": 0.9, "nesterov": True, **DECAY},
    ],
    "RMSprop": [{}, DECAY, {"centered": True}, {"momentum": 0.9}, {"momentum": 0.9, "centered": True}],
    "Adagrad": [{}, {"lr_decay": 0.2, **DECAY}, {"initial_accumulator_value": 0.5}],
    "Adadelta": [{}, {"rho": 0.6, **DECAY}],
    "Adamax": [{}, DECAY],
    "NAdam": [{}, DECAY, {"decoupled_weight_decay": True, **DECAY}, {"momentum_decay": 0.1}],
    "RAdam": [{}, {"decoupled_weight_decay": True, **DECAY}, {"betas": (0.8, 0.9), **DECAY}],
    "ASGD": [{}, {"t0": 2.0, "lambd": 0.01, **DECAY}],
    "Rprop": [{}, {"etas": (0.3, 1.5), "step_sizes": (1e-3, 0.02)}],
    "Adafactor": [{}, {"weight_decay": 0.1, "d": 2.0, "eps": (1e-6, 1e-2)}],
    "Muon": [{}, {"nesterov": False}, {"adjust_lr_fn": "match_rms_adamw", "ns_steps": 3}],
}
NO_MAXIMIZE, NO_COMPLEX = {"Muon"}, {"Adafactor", "Muon"}
FUSED = {"Adam", "AdamW", "SGD", "Adagrad"}
NOT_DIFFERENTIABLE = {"Adafactor", "Muon"}
WAYS = ["plain", "maximize", "tensor lr", "foreach", "fused", "complex64", "float64", "bfloat16"]


def rows() -> list[Any]:
    found = []
    for name, options in COMMON.items():
        for way in WAYS:
            if (way == "maximize" and name in NO_MAXIMIZE) or (way == "complex64" and name in NO_COMPLEX):
                continue
            if (way == "fused" and name not in FUSED) or (way == "foreach" and name == "Muon"):
                continue
            found += [pytest.param(name, o, way, id=f"{name}-{i}-{way}") for i, o in enumerate(options)]
    return found


def library_options(L: Any, name: str, options: dict[str, Any], way: str) -> dict[str, Any]:
    extra: dict[str, Any] = {way: True} if way in ("maximize", "foreach", "fused") else {}
    if way == "tensor lr":
        extra["lr"] = L.tensor(options.get("lr", 0.02))
    return {**options, **extra}


def array(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Any:
    real = rng.standard_normal(shape)
    return real + 1j * rng.standard_normal(shape) if dtype == "complex64" else real


def tensor(L: Any, values: Any, dtype: str) -> Any:
    return L.from_numpy(np.array(values)).to(getattr(L, dtype))


def shapes_of(name: str) -> list[tuple[int, ...]]:
    return [(3, 4), (4, 2)] if name == "Muon" else SHAPES


def start(L: Any, name: str, options: dict[str, Any], dtype: str) -> tuple[Any, list[Any]]:
    rng = np.random.default_rng(1)
    params = [L.nn.Parameter(tensor(L, array(rng, s, dtype), dtype)) for s in shapes_of(name)]
    return getattr(L.optim, name)(params, **options), params


def steps(L: Any, optimizer: Any, params: list[Any], dtype: str, count: int = 10, seed: int = 2) -> None:
    rng = np.random.default_rng(seed)
    for i in range(count):
        for n, p in enumerate(params):
            gradient = array(rng, tuple(p.shape), dtype)
            p.grad = None if i == 3 and n == 1 else tensor(L, gradient, dtype)
        optimizer.step()


def numbers(value: Any) -> Any:
    if hasattr(value, "detach"):
        kind = "complex128" if value.is_complex() else "float64"
        return np.array(value.detach().to(getattr(torch if torch.is_tensor(value) else mica, kind)).numpy())
    if isinstance(value, dict):
        return {k: numbers(v) for k, v in value.items()}
    return [numbers(v) for v in value] if isinstance(value, (list, tuple)) else value


def close(ours: Any, theirs: Any, tolerance: float, where: str = "") -> None:
    ours, theirs = numbers(ours), numbers(theirs)
    if isinstance(theirs, dict):
        assert list(ours) == list(theirs), where
        for k, v in theirs.items():
            close(ours[k], v, tolerance, f"{where}.{k}")
    elif isinstance(theirs, (list, np.ndarray)) and isinstance(theirs, list):
        assert len(ours) == len(theirs), where
        for i, v in enumerate(theirs):
            close(ours[i], v, tolerance, f"{where}[{i}]")
    elif isinstance(theirs, (np.ndarray, float)):
        np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance, err_msg=where)
    else:
        assert ours == theirs, where


@pytest.mark.parametrize("name,options,way", rows())
def test_ten_steps(name: str, options: dict[str, Any], way: str) -> None:
    dtype = way if way in ("complex64", "float64", "bfloat16") else "float32"
    found = {}
    for L in (mica, torch):
        optimizer, params = start(L, name, library_options(L, name, options, way), dtype)
        steps(L, optimizer, params, dtype)
        found[L] = params, optimizer.state_dict()
    ours, theirs = found[mica], found[torch]
    if way == "bfloat16":  # torch rounds after every operator: no further from the exact steps than it
        optimizer, exact = start(torch, name, options, "float64")
        steps(torch, optimizer, exact, "float64")
        for a, b, e in zip(ours[0], theirs[0], exact):
            error, its = (np.abs(numbers(x) - numbers(e)).max() for x in (a, b))
            assert error <= its * 1.25 + 8e-3, name
        return
    tolerance = 1e-2 if name == "Muon" else 1e-11 if dtype == "float64" else 2e-5
    close(ours[0], theirs[0], tolerance, "params")
    close(ours[1]["state"], theirs[1]["state"], tolerance, "state")
    close(ours[1]["param_groups"], theirs[1]["param_groups"], 0, "groups")


def moved(value: Any, L: Any) -> Any:
    """A state of the other library in this one."""
    if hasattr(value, "detach"):
        return L.from_numpy(np.array(value.detach().numpy()))
    if isinstance(value, dict):
        return {k: moved(v, L) for k, v in value.items()}
    return type(value)(moved(v, L) for v in value) if isinstance(value, (list, tuple)) else value


@pytest.mark.parametrize("name", COMMON)
def test_states_move_both_ways(name: str) -> None:
    options = COMMON[name][-1]
    for source, target in ((torch, mica), (mica, torch)):
        first, params = start(source, name, options, "float32")
        steps(source, first, params, "float32", 4)
        second, copies = start(target, name, options, "float32")
        with target.no_grad():
            for c, p in zip(copies, params):
                c.copy_(moved(p, target))
        second.load_state_dict(moved(first.state_dict(), target))
        for L, optimizer, values in ((source, first, params), (target, second, copies)):
            steps(L, optimizer, values, "float32", 3, seed=7)
        close(moved(copies, torch), moved(params, torch), 1e-2 if name == "Muon" else 2e-5, name)


def after_steps(L: Any, name: str, options: dict[str, Any], values: list[Any]) -> Any:
    """A loss two steps on, as a function of the parameter, its gradients and the rate."""
    p0, g0, lr = values
    p = p0.clone()
    optimizer = getattr(L.optim, name)([p], differentiable=True, **{**options, "lr": lr})
    for i in range(2):
        p.grad = g0 * (i + 1) + 0.1
        optimizer.step()
    return p.square().sum()


# Where torch's steps have no gradient for the rate, or none at all.
NO_RATE = {"Rprop", "ASGD"}


@pytest.mark.parametrize("name", [n for n in COMMON if n not in NOT_DIFFERENTIABLE])
@pytest.mark.parametrize("row", [0, -1])
def test_a_step_has_a_gradient(name: str, row: int) -> None:
    """By differences, and as torch's where torch has it."""
    options = {k: v for k, v in COMMON[name][row].items() if k != "lr"}
    rng = np.random.default_rng(3)
    arrays = [rng.standard_normal(6) + 0.5, rng.standard_normal(6), np.array(0.1)]
    used = arrays[:2] if name in NO_RATE else arrays

    def loss(L: Any, given: list[Any]) -> tuple[Any, list[Any]]:
        values = [tensor(L, v, "float64") for v in given]
        for value in values[: len(used)]:
            value.requires_grad_()
        return after_steps(L, name, options, values), values[: len(used)]

    value, leaves = loss(mica, arrays)
    value.backward()
    for n, leaf_ in enumerate(leaves):
        for place in np.ndindex(*arrays[n].shape):
            ends = []
            for h in (1e-6, -1e-6):
                moved_ = [a.copy() for a in arrays]
                moved_[n][place] += h
                ends.append(loss(mica, moved_)[0].item())
            slope = (ends[0] - ends[1]) / 2e-6
            np.testing.assert_allclose(numbers(leaf_.grad)[place], slope, rtol=1e-4, atol=1e-6)
    if name in ("Adam", "AdamW"):  # torch's corrections are float32: 1 - 0.999**2 to 3e-5
        value, theirs = loss(torch, arrays)
        value.backward()
        close([v.grad for v in leaves], [v.grad for v in theirs], 1e-4, name)


def optimizer_module(L: Any) -> Any:
    return importlib.import_module("torch.optim.optimizer" if L is torch else "mica.optim._optimizer")


def required(L: Any) -> Any:
    return optimizer_module(L).required


def leaf(L: Any, *shape: int) -> Any:
    return L.nn.Parameter(L.ones(*(shape or (2,))))


def _bad(name: str, **options: Any) -> Any:
    return lambda L: getattr(L.optim, name)([leaf(L, 2, 2)], **options)


BAD: dict[str, Any] = {
    "empty": lambda L: L.optim.SGD([], 0.1),
    "one tensor": lambda L: L.optim.SGD(leaf(L), 0.1),
    "numbers": lambda L: L.optim.Adam([1, 2]),
    "not a leaf": lambda L: L.optim.Adam([leaf(L) * 2]),
    "a set": lambda L: L.optim.Adam([{"params": {leaf(L)}}]),
    "no params": lambda L: L.optim.Adam([{"lr": 1.0}]),
    "group no dict": lambda L: L.optim.Adam([leaf(L)]).add_param_group([leaf(L)]),
    "some names": lambda L: L.optim.Adam([("a", leaf(L)), leaf(L)]),
    "names in one group": lambda L: L.optim.Adam([("a", leaf(L))]).add_param_group({"params": [leaf(L)]}),
    "in two groups": lambda L: (lambda p: L.optim.SGD([{"params": [p]}, {"params": [p]}], 0.1))(leaf(L)),
    "unknown option": lambda L: L.optim.Adam([leaf(L)], momentum=1),
    "required": lambda L: L.optim.Optimizer([leaf(L)], {"lr": required(L)}),
    "no step": lambda L: L.optim.Optimizer([leaf(L)], {}).step(),
    "tensor lr and foreach": lambda L: L.optim.Adam([leaf(L)], lr=L.tensor(0.1), foreach=True),
    "long lr": lambda L: L.optim.Adam([leaf(L)], lr=L.ones(2)),
    "mixed betas": lambda L: L.optim.Adam([leaf(L)], betas=(0.9, L.tensor(0.9))),
    "fused and foreach": lambda L: L.optim.SGD([leaf(L)], 0.1, fused=True, foreach=True),
    "fused and differentiable": lambda L: L.optim.Adam([leaf(L)], fused=True, differentiable=True),
    "groups of another number": lambda L: L.optim.SGD([leaf(L)], 0.1).load_state_dict(
        L.optim.SGD([{"params": leaf(L)}, {"params": leaf(L)}], 0.1).state_dict()
    ),
    "parameters of another number": lambda L: L.optim.SGD([leaf(L)], 0.1).load_state_dict(
        L.optim.SGD([leaf(L), leaf(L)], 0.1).state_dict()
    ),
    "state without groups": lambda L: L.optim.SGD([leaf(L)], 0.1).load_state_dict({"state": {}}),
    "muon of a vector": lambda L: L.optim.Muon([leaf(L)]),
    "lbfgs with groups": lambda L: L.optim.LBFGS([{"params": leaf(L)}, {"params": leaf(L)}]),
    "lbfgs without closure": lambda L: L.optim.LBFGS([leaf(L)]).step(),
    "nesterov": _bad("SGD", lr=0.1, nesterov=True),
    "nesterov dampened": _bad("SGD", lr=0.1, nesterov=True, momentum=0.9, dampening=0.1),
    "etas": _bad("Rprop", etas=(1.5, 0.5)),
    "beta2_decay": _bad("Adafactor", beta2_decay=0.5),
    "threshold": _bad("Adafactor", d=0.5),
    "eps of two": _bad("Adafactor", eps=(-1.0, 1e-3)),
    "adjust": _bad("Muon", adjust_lr_fn="other"),
    "sparse rate": _bad("SparseAdam", lr=0.0),
    "rho": _bad("Adadelta", rho=1.5),
    "lr text": _bad("Adam", lr="0.1"),
    "lr nan": _bad("Adam", lr=float("nan")),
    "fused complex": lambda L: first_step(L.optim.Adam([L.nn.Parameter(L.ones(2, dtype=L.complex64))], fused=True)),
    "capturable": lambda L: first_step(L.optim.Adam([leaf(L)], capturable=True)),
    "dense sparse": lambda L: first_step(L.optim.SparseAdam([leaf(L)])),
    "hook returns a number": lambda L: hooked(L, lambda o, a, k: 5),
    **{f"{name} lr": _bad(name, lr=-1.0) for name in [*COMMON, "LBFGS", "SparseAdam"]},
    **{f"{n} decay": _bad(n, weight_decay=-1.0) for n in COMMON if n != "Rprop"},
    **{f"{n} betas": _bad(n, betas=(1.0, 0.9)) for n in ("Adam", "Adamax", "NAdam", "RAdam", "SparseAdam")},
    **{f"{n} beta2": _bad(n, betas=(0.9, -0.1)) for n in ("AdamW", "Adamax", "NAdam", "RAdam")},
    **{f"{n} eps": _bad(n, eps=-1.0) for n in ("Adam", "RMSprop", "Adagrad", "Adadelta", "Adamax", "RAdam")},
    **{f"{n} momentum": _bad(n, momentum=-1.0) for n in ("SGD", "RMSprop", "Muon")},
}  # fmt: skip


def first_step(optimizer: Any) -> None:
    for group in optimizer.param_groups:
        for p in group["params"]:
            p.grad = p.detach() * 0.5
    optimizer.step()


def hooked(L: Any, hook: Any) -> None:
    optimizer = L.optim.SGD([leaf(L)], 0.1)
    optimizer.register_step_pre_hook(hook)
    first_step(optimizer)


@pytest.mark.parametrize("row", BAD)
def test_bad_input(row: str) -> None:
    with pytest.raises(Exception) as theirs:
        BAD[row](torch)
    with pytest.raises(type(theirs.value)) as ours:
        BAD[row](mica)
    text = str(ours.value)
    assert " " in text and len(text) > 20, text


def hooks(L: Any) -> Any:
    log: list[Any] = []
    module = optimizer_module(L)
    handles = [
        module.register_optimizer_step_pre_hook(lambda o, a, k: log.append("all before")),
        module.register_optimizer_step_post_hook(lambda o, a, k: log.append("all after")),
    ]
    optimizer = L.optim.SGD([leaf(L)], 0.1)
    optimizer.register_step_pre_hook(lambda o, a, k: log.append("before"))
    optimizer.register_step_post_hook(lambda o, a, k: log.append("after"))
    optimizer.register_state_dict_pre_hook(lambda o: log.append("state"))
    optimizer.register_state_dict_post_hook(lambda o, s: {**s, "more": 1})
    optimizer.register_load_state_dict_pre_hook(lambda o, s: log.append(s.pop("more")))
    optimizer.register_load_state_dict_pre_hook(lambda o, s: log.append("first"), prepend=True)
    optimizer.register_load_state_dict_post_hook(lambda o: log.append("loaded"))
    first_step(optimizer)
    state = optimizer.state_dict()
    optimizer.load_state_dict(state)
    for handle in handles:
        handle.remove()
    first_step(optimizer)
    return [log, sorted(state), optimizer.param_groups[0]["params"][0]]


def own_optimizer(L: Any) -> Any:
    """A program's own class: step() of its own, hooks around it, closures, groups."""

    class Halving(L.optim.Optimizer):  # type: ignore[misc, name-defined]
        def __init__(self, params: Any, lr: float = 0.5) -> None:
            super().__init__(params, {"lr": lr})

        @L.no_grad()
        def step(self, closure: Any = None) -> Any:
            loss = None
            if closure is not None:
                with L.enable_grad():
                    loss = closure()
            for group in self.param_groups:
                for p in group["params"]:
                    if p.grad is not None:
                        p.add_(p.grad, alpha=-group["lr"])
                        self.state[p]["count"] = self.state[p].get("count", 0) + 1
            return loss

    p, q = leaf(L), leaf(L, 3)
    optimizer = Halving([{"params": [p], "lr": 0.25}])
    optimizer.add_param_group({"params": q})
    seen: list[Any] = []
    optimizer.register_step_post_hook(lambda o, a, k: seen.append(len(a) + len(k) > 0))

    def closure() -> Any:
        optimizer.zero_grad()
        loss = (p * p).sum() + (q * 3).sum()
        loss.backward()
        return loss

    found = [optimizer.step(closure), p, q, seen, repr(optimizer)]
    again = copy.deepcopy(optimizer)
    first_step(again)
    return [*found, again.param_groups[0]["params"][0], p, optimizer.state_dict()["state"]]


def named(L: Any) -> Any:
    m = L.nn.Linear(2, 1)
    optimizer = L.optim.AdamW(m.named_parameters())
    state = optimizer.state_dict()
    other = L.optim.AdamW([("a", leaf(L, 1, 2)), ("b", leaf(L, 1))])
    names = [g["param_names"] for g in other.param_groups]
    other.load_state_dict(state)
    unnamed = {
        **state,
        "param_groups": [{k: v for k, v in state["param_groups"][0].items() if k != "param_names"}],
    }
    third = L.optim.AdamW([("a", leaf(L, 1, 2)), ("b", leaf(L, 1))])
    third.load_state_dict(unnamed)
    return [
        names,
        other.param_groups[0]["param_names"],
        third.param_groups[0]["param_names"],
        state["param_groups"][0]["params"],
    ]


def zeroed(L: Any) -> Any:
    p = leaf(L)
    found = []
    for foreach in (None, True):
        optimizer = L.optim.SGD([p], 0.1, foreach=foreach)
        (p * 2).sum().backward()
        gradient = p.grad
        optimizer.zero_grad(set_to_none=False)
        found += [p.grad is gradient, p.grad]
        optimizer.zero_grad()
        found.append(p.grad is None)
    return found


def copied(L: Any) -> Any:
    """Deep copies and pickles go on as the optimizer does."""
    found = []
    for name in COMMON:
        optimizer, params = start(L, name, COMMON[name][-1], "float32")
        steps(L, optimizer, params, "float32", 2)
        both = copy.deepcopy([optimizer, params]), pickle.loads(pickle.dumps([optimizer, params]))
        for other, values in both:
            steps(L, other, values, "float32", 2, seed=5)
            found.append([v * 10 for v in values] if name != "Muon" else [])
    return found


def old_states(L: Any) -> Any:
    """Numbers for steps, as files of old have them, and options that did not exist then."""
    found = []
    for name in ("Adam", "Adagrad", "NAdam", "ASGD", "Rprop", "RMSprop"):
        optimizer, params = start(L, name, {}, "float32")
        steps(L, optimizer, params, "float32", 2)
        state = optimizer.state_dict()
        for own in state["state"].values():
            for key in ("step", "mu_product", "eta", "mu"):
                if key in own:
                    own[key] = float(own[key])
        for group in state["param_groups"]:
            for key in ("maximize", "foreach", "differentiable", "capturable", "amsgrad", "fused"):
                group.pop(key, None)
        optimizer.load_state_dict(state)
        steps(L, optimizer, params, "float32", 2, seed=9)
        found += [params, sorted(optimizer.param_groups[0])]
    return found


def lbfgs(L: Any, **options: Any) -> Any:
    x = L.tensor([-1.2, 1.0], dtype=L.float64, requires_grad=True)
    z = L.tensor([0.5 + 1j], dtype=L.complex128, requires_grad=True)
    optimizer = L.optim.LBFGS([x, z], **options)
    losses = []

    def closure() -> Any:
        optimizer.zero_grad()
        loss = (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2 + (z - (2 - 1j)).abs().square().sum()
        loss.backward()
        losses.append(loss.item())
        return loss

    for _ in range(3):
        optimizer.step(closure)
    state = optimizer.state_dict()["state"][0]
    return [losses, x, z, state["n_iter"], state["func_evals"], state["d"], state["t"]]


def lbfgs_few_evaluations(L: Any) -> Any:
    return lbfgs(L, max_iter=6, max_eval=4, line_search_fn="strong_wolfe")


def lbfgs_tensor_rate(L: Any) -> Any:
    return lbfgs(L, lr=L.tensor(0.1), max_iter=4)


def twice_in_a_group(L: Any) -> Any:
    p = leaf(L)
    with pytest.warns(UserWarning):
        optimizer = L.optim.SGD([p, p], 0.1)
    first_step(optimizer)
    return p


PROGRAMS = [
    hooks, own_optimizer, named, zeroed, copied, old_states, lbfgs, lbfgs_few_evaluations, lbfgs_tensor_rate,
    twice_in_a_group,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_program(program: Any) -> None:
    close(program(mica), program(torch), 2e-5, program.__name__)
