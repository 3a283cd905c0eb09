"""Optimizer: parameter groups, state, and their state_dict."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any

import mica
from mica._C import Tensor
from mica._tensor import RemovableHandle

ParamsT = Any  # an iterable of parameters, of groups, or of names with parameters
_params_t = ParamsT


class _RequiredParameter:
    """Stands for a default that must be given."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _RequiredParameter()


class Optimizer:
    """The base of optimisers. Subclasses define _update(group)."""

    # Options about how a step is computed, not what: kept in the groups, as torch keeps them.
    _hints: dict[str, Any] = {}

    def __init__(self, params: Any, defaults: dict[str, Any], hints: dict[str, Any] | None = None) -> None:
        self.defaults = {**defaults, **self._checked_hints(hints or {})}
        self._step_hooks: dict[str, dict[int, Any]] = {"before": {}, "after": {}}
        self.state: dict[Tensor, dict[str, Any]] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        if isinstance(params, Tensor):
            raise TypeError(
                "An optimiser takes an iterable of parameters or of groups; it was given one Tensor."
            )
        groups = list(params)
        if not groups:
            raise ValueError("An optimiser needs at least one parameter; the list is empty.")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def _checked_hints(self, given: dict[str, Any]) -> dict[str, Any]:
        name = type(self).__name__
        for key, value in given.items():
            if key not in self._hints:
                raise TypeError(f"{name}.__init__() got an unexpected keyword argument '{key}'")
            if value and key in ("capturable", "differentiable"):
                raise NotImplementedError(
                    f"{name} takes its steps eagerly and without a gradient of their own; leave out {key}=True."
                )
        return {**self._hints, **given}

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds parameters with options of their own."""
        if not isinstance(param_group, dict) or "params" not in param_group:
            raise ValueError(
                f"A parameter group is a dict with the key 'params'; this one is {_shown(param_group)}."
            )
        params = param_group["params"]
        items: list[Any] = [params] if isinstance(params, Tensor) else list(params)
        if items and isinstance(items[0], tuple):  # named parameters
            param_group["param_names"] = [name for name, _ in items]
            items = [p for _, p in items]
        seen = {id(p) for group in self.param_groups for p in group["params"]}
        for p in items:
            if not isinstance(p, Tensor):
                raise TypeError(f"A parameter must be a Tensor; this one is of type ({type(p).__name__}).")
            if not p.is_leaf:
                raise ValueError("A parameter of an optimiser must be a leaf tensor; this one was computed.")
            if id(p) in seen:
                raise ValueError("A parameter stands in more than one group.")
            seen.add(id(p))
        self.param_groups.append({**self.defaults, **param_group, "params": items})

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Takes the gradients away, or zeroes them."""
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                if set_to_none:
                    p.grad = None
                else:
                    p.grad = p.grad.detach()
                    p.grad.zero_()

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Updates every parameter that has a gradient; `closure` computes the loss first."""
        for hook in tuple(self._step_hooks["before"].values()):
            hook(self, (closure,), {})
        loss = None
        if closure is not None:
            with mica.enable_grad():
                loss = closure()
        with mica.no_grad():
            for group in self.param_groups:
                self._update(group)
        for hook in tuple(self._step_hooks["after"].values()):
            hook(self, (closure,), {})
        return loss

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls hook(optimizer, args, kwargs) before every step."""
        return self._add_hook("before", hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls hook(optimizer, args, kwargs) after every step."""
        return self._add_hook("after", hook)

    def _add_hook(self, when: str, hook: Callable[..., Any]) -> RemovableHandle:
        hooks = self._step_hooks[when]
        number = max(hooks, default=-1) + 1
        hooks[number] = hook
        return RemovableHandle(lambda: hooks.pop(number, None))

    def _update(self, group: dict[str, Any]) -> None:
        raise NotImplementedError

    def state_dict(self) -> dict[str, Any]:
        """State and groups; parameters are numbered in order."""
        numbers: dict[int, int] = {}
        groups = []
        for group in self.param_groups:
            for p in group["params"]:
                numbers.setdefault(id(p), len(numbers))
            packed = {k: v for k, v in group.items() if k != "params"}
            packed["params"] = [numbers[id(p)] for p in group["params"]]
            groups.append(packed)
        state = {numbers[id(p)]: dict(s) for p, s in self.state.items()}
        return {"state": state, "param_groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over what state_dict() gave, for parameters in the same order."""
        if not isinstance(state_dict, dict) or not {"state", "param_groups"} <= state_dict.keys():
            raise ValueError(
                f"An optimiser's state is a dict with the keys 'state' and 'param_groups'; this one is {_shown(state_dict)}."
            )
        groups = deepcopy(state_dict["param_groups"])
        if len(groups) != len(self.param_groups):
            raise ValueError(
                f"The state has {len(groups)} parameter groups; the optimiser has {len(self.param_groups)}."
            )
        by_number: dict[int, Tensor] = {}
        for i, (own, given) in enumerate(zip(self.param_groups, groups)):
            if len(own["params"]) != len(given["params"]):
                raise ValueError(
                    f"Group ({i}) has {len(given['params'])} parameters in the state and {len(own['params'])} here."
                )
            by_number.update(zip(given["params"], own["params"]))
            params = own["params"]
            own.clear()
            own.update(given)
            own["params"] = params
        self.state = defaultdict(dict)
        for number, values in state_dict["state"].items():
            p = by_number[number]
            self.state[p] = {k: _like(v, p, k) for k, v in values.items()}

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {i}")
            lines += [f"    {key}: {group[key]}" for key in sorted(group) if key != "params"]
        return "\n".join([*lines, ")"])


def _like(value: Any, p: Tensor, key: str) -> Any:
    if not isinstance(value, Tensor):
        return deepcopy(value)
    if key != "step" and p.is_floating_point():
        return value.to(p.device, p.dtype, copy=True)
    return value.clone()


def _shown(value: Any) -> str:
    """What a wrong value is, in few words."""
    return (
        f"a dict with the keys {sorted(map(str, value))}"
        if isinstance(value, dict)
        else f"of type ({type(value).__name__})"
    )


def check_range(name: str, value: float, low: float, high: float | None = None) -> None:
    """Raises ValueError where an option is out of its range, TypeError where it is no number."""
    if not isinstance(value, (int, float, Tensor)):
        raise TypeError(f"The option {name} is a number; this value is of type ({type(value).__name__}).")
    if value < low or (high is not None and value >= high):
        text = f"at least {low}" if high is None else f"in [{low}, {high})"
        raise ValueError(f"The option {name} ({value}) must be {text}.")


def gradients(group: dict[str, Any], decay: bool = False) -> Iterable[tuple[Tensor, Tensor]]:
    """The parameters of a group that have a gradient, with it; with `decay`, that of weight decay added."""
    for p in group["params"]:
        grad = p.grad
        if grad is None:
            continue
        grad = -grad if group.get("maximize") else grad
        if decay and group["weight_decay"] != 0:
            grad = grad.add(p, alpha=group["weight_decay"])
        yield p, grad
