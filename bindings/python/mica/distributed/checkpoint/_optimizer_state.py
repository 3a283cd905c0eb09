"""An optimizer's state by the names of parameters, and back."""

from __future__ import annotations

from typing import Any

import mica
from mica._C import Tensor
from mica.optim import Optimizer

Names = dict[Tensor, list[str]]


def init_optim_state(optim: Optimizer) -> None:
    """Has an optimizer make its state, by a step with gradients of zero and a learning rate of zero."""
    params = [p for group in optim.param_groups for p in group["params"]]
    if optim.state or any(p.grad is not None for p in params):
        return
    for p in params:
        if p.requires_grad:
            p.grad = mica.zeros_like(p)
    rates = [group.get("lr") for group in optim.param_groups]
    for group in optim.param_groups:
        if "lr" in group:
            group["lr"] = mica.tensor(0.0) if isinstance(group["lr"], Tensor) else 0.0
    try:
        optim.step(closure=None)
    finally:
        for group, rate in zip(optim.param_groups, rates):
            if "lr" in group:
                group["lr"] = rate
        optim.zero_grad(set_to_none=True)


def _name(names: Names, parameter: Tensor) -> str:
    if parameter not in names:
        raise ValueError(
            f"The optimizer has a parameter of the shape {list(parameter.shape)} that is none of the model's; give the "
            "model whose parameters it steps."
        )
    return names[parameter][0]


def collected(optim: Optimizer, names: Names) -> dict[str, Any]:
    """The optimizer's state, which is made if there is none, by the parameters' first names."""
    init_optim_state(optim)
    state = optim.state_dict()
    params = [_name(names, p) for group in optim.param_groups for p in group["params"]]
    for group in state["param_groups"]:
        group["params"] = [params[i] for i in group["params"]]
    return {
        "state": {params[i]: one for i, one in state["state"].items()},
        "param_groups": state["param_groups"],
    }


def taken_over(optim: Optimizer, names: Names, state: dict[str, Any], strict: bool) -> None:
    """Gives an optimizer its part of a state, which may be several optimizers' or flat."""
    init_optim_state(optim)
    if "state" not in state:
        state = _unflattened(optim, names, state)
    elif state["state"] and all(isinstance(key, int) for key in state["state"]):
        optim.load_state_dict(state)
        return
    of_name = {name: group for group in state["param_groups"] for name in group["params"]}
    found: dict[str, Any] = {"state": {}, "param_groups": []}
    number = 0
    for group in optim.param_groups:
        ids = range(number, number + len(group["params"]))
        saved: dict[str, Any] = {}
        for i, p in zip(ids, group["params"]):
            name = next((n for n in names.get(p, ()) if n in of_name), _name(names, p))
            saved = of_name.get(name, saved)
            _take(found["state"], i, p, name, state["state"], strict, of_name.get(name))
        found["param_groups"].append({**(saved or group), "params": list(ids)})
        number += len(group["params"])
    optim.load_state_dict(found)


def _take(
    into: dict[int, Any], i: int, p: Tensor, name: str, state: dict[str, Any], strict: bool, group: Any
) -> None:
    """Takes a parameter's state; it is missing where another one of its group has any."""
    if name in state:
        into[i] = state[name]
    elif strict and p.requires_grad and (group is None or any(n in state for n in group["params"])):
        raise RuntimeError(
            f"Missing optimizer state for parameter ({name}) in the given state, which has that of ({len(state)}) "
            "parameters. To load anyway, use StateDictOptions(strict=False)."
        )


def flattened(state: dict[str, Any]) -> dict[str, Any]:
    """A flat dict of a state: "state.<name>.<what>" and "param_groups.<name>.<option>"."""
    flat: dict[str, Any] = {}
    for name, one in state["state"].items():
        _flatten(flat, f"state.{name}", one)
    for group in state["param_groups"]:
        for name in group["params"]:
            flat.update(
                {f"param_groups.{name}.{key}": value for key, value in group.items() if key != "params"}
            )
    return flat


def _flatten(flat: dict[str, Any], prefix: str, one: dict[str, Any]) -> None:
    for key, value in one.items():
        if isinstance(value, dict):
            _flatten(flat, f"{prefix}.{key}", value)
        elif isinstance(value, (Tensor, int, float)):
            flat[f"{prefix}.{key}"] = value
        else:
            raise NotImplementedError(
                f"A flat state of an optimizer holds tensors and numbers; ({prefix}.{key}) is of type "
                f"({type(value).__name__}): use StateDictOptions(flatten_optimizer_state_dict=False)."
            )


def _unflattened(optim: Optimizer, names: Names, flat: dict[str, Any]) -> dict[str, Any]:
    """The state of a flat dict, with its kinds of state and the optimizer's own, and the optimizer's options."""
    state: dict[str, Any] = {}
    kinds = _kinds(flat, {name for of_one in names.values() for name in of_one})
    groups = []
    for group in optim.param_groups:
        saved: dict[str, Any] = {"params": []}
        for p in group["params"]:
            of_p = [n for n in names.get(p, ()) if any(f"param_groups.{n}.{k}" in flat for k in group)]
            name = of_p[0] if of_p else _name(names, p)
            saved["params"].append(name)
            of_name = {**kinds.get(name, {}), **optim.state.get(p, {})}
            if p.requires_grad and of_name:
                state[name] = {kind: _nested(flat, f"state.{name}.{kind}") for kind in of_name}
        for option in (key for key in group if key not in ("params", "param_names")):
            values = [_at(flat, f"param_groups.{name}.{option}") for name in saved["params"]]
            if any(value != values[0] for value in values):
                raise RuntimeError(
                    f"The parameters {saved['params']} are one group of the optimizer, and the given state has the values "
                    f"{values} of the option ({option}) for them."
                )
            if values:
                saved[option] = values[0]
        groups.append(saved)
    return {"state": state, "param_groups": groups}


def _kinds(flat: dict[str, Any], names: set[str]) -> dict[str, dict[str, None]]:
    """The kinds of state that a flat dict has of each parameter, in their order: the keys' parts after the names."""
    found: dict[str, dict[str, None]] = {}
    for key in flat:
        first, *parts = key.split(".")
        for i in range(1, len(parts)) if first == "state" else ():
            name = ".".join(parts[:i])
            if name in names:
                found.setdefault(name, {})[parts[i]] = None
    return found


def _at(flat: dict[str, Any], key: str) -> Any:
    if key not in flat:
        raise KeyError(f"The given state of optimizers has no ({key}).")
    return flat[key]


def _nested(flat: dict[str, Any], key: str) -> Any:
    """A value, or the dict of those whose keys go on."""
    if key in flat:
        return flat[key]
    inner = {k[len(key) + 1 :].partition(".")[0] for k in flat if k.startswith(f"{key}.")}
    return {part: _nested(flat, f"{key}.{part}") for part in sorted(inner)} if inner else _at(flat, key)
