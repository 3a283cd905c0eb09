"""Optimizer: parameter groups, state, hooks, and their state_dict.

Subclasses define step(); the first instance of each wraps it, so that hooks run around it
whoever wrote it. Those of Mica derive from GroupOptimizer (_steps.py).
"""

from __future__ import annotations

import functools
import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any

import mica
from mica._C import Tensor
from mica._tensor.removable_handle import RemovableHandle

ParamsT = Any  # an iterable of parameters, of groups, or of names with parameters
_params_t = ParamsT
_global_optimizer_pre_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()
_global_optimizer_post_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()
_TABLES = (
    "_optimizer_step_pre_hooks",
    "_optimizer_step_post_hooks",
    "_optimizer_state_dict_pre_hooks",
    "_optimizer_state_dict_post_hooks",
    "_optimizer_load_state_dict_pre_hooks",
    "_optimizer_load_state_dict_post_hooks",
)


class _RequiredParameter:
    """Stands for a default that must be given."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _RequiredParameter()


def _add(table: Any, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
    handle = RemovableHandle(table)
    table[handle.id] = hook
    if prepend:
        table.move_to_end(handle.id, last=False)
    return handle


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls a function before each step of every optimizer in the program.

    Args:
        hook (callable): `hook(optimizer, args, kwargs)`; `args[0]` is the optimizer. It may return
            `(args, kwargs)` for the step to take instead.

    Returns:
        RemovableHandle: Its `remove()` takes the hook away.
    """
    return _add(_global_optimizer_pre_hooks, hook)


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls a function after each step of every optimizer in the program.

    Args:
        hook (callable): `hook(optimizer, args, kwargs)`; what it returns is not used.

    Returns:
        RemovableHandle: Its `remove()` takes the hook away.
    """
    return _add(_global_optimizer_post_hooks, hook)


def _with_hooks(
    step: Callable[..., Any], self: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    args = (self, *args)  # torch's hooks see the optimizer among the arguments
    for hook in (*_global_optimizer_pre_hooks.values(), *self._optimizer_step_pre_hooks.values()):
        changed = hook(self, args, kwargs)
        if changed is None:
            continue
        if not isinstance(changed, tuple) or len(changed) != 2:
            raise RuntimeError(
                f"A hook before step() returns None or (args, kwargs); this one returned {_shown(changed)}."
            )
        args, kwargs = changed
        if not args or args[0] is not self:
            args = (self, *args)
    result = step(*args, **kwargs)
    for hook in (*self._optimizer_step_post_hooks.values(), *_global_optimizer_post_hooks.values()):
        hook(self, args, kwargs)
    return result


class Optimizer:
    """Base of all optimizers: holds parameters in groups, the options of each group, and their state.

    As `torch.optim.Optimizer`. A subclass gives its options' defaults to `__init__` and defines
    `step()`.

    Args:
        params (iterable): What to optimize: leaf Tensors, pairs `(name, Tensor)`, or groups. A group is
            a dict with its Tensors under "params" and, under their names, the options that are other
            than the defaults. The order must be the same in each run, so a set in a group is refused.
        defaults (dict): Options of the groups that do not say their own.

    Attributes:
        param_groups (list of dict): The groups with all of their options; changes count from the next
            step.
        state (dict): For each parameter, what the optimizer keeps from step to step.
        defaults (dict): As given.

    Raises:
        TypeError: `params` is a Tensor, a group's are a set, or there are other things than Tensors.
        ValueError: `params` is empty, or a Tensor is no leaf or stands in two groups.

    Example:
        >>> class Descent(mica.optim.Optimizer):
        ...     def __init__(self, params, lr=0.1):
        ...         super().__init__(params, {"lr": lr})
        ...     @mica.no_grad()
        ...     def step(self, closure=None):
        ...         for group in self.param_groups:
        ...             for p in group["params"]:
        ...                 p -= group["lr"] * p.grad
        >>> w, b = mica.ones(1, requires_grad=True), mica.ones(1, requires_grad=True)
        >>> optimizer = Descent([{"params": [w]}, {"params": [b], "lr": 0.5}])
        >>> (w + b).sum().backward()
        >>> optimizer.step()
        >>> w, b
        (tensor([0.9000], requires_grad=True), tensor([0.5000], requires_grad=True))
    """

    defaults: dict[str, Any]
    state: dict[Any, Any]
    param_groups: list[dict[str, Any]]

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self._add_tables()
        if isinstance(params, Tensor):
            raise TypeError(
                "The params argument given to the optimizer should be an iterable of Tensors or dicts, but got a Tensor."
            )
        self.state = defaultdict(dict)
        self.param_groups = []
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list.")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def _add_tables(self) -> None:
        for table in _TABLES:
            self.__dict__.setdefault(table, OrderedDict())
        self._patch_step_function()

    def _patch_step_function(self) -> None:
        """Lets the class's step() run between its hooks."""
        step = type(self).step
        if getattr(step, "hooked", None) is None:
            type(self).step = self.profile_hook_step(step)  # type: ignore[method-assign]
            type(self).step.hooked = True  # type: ignore[attr-defined]

    @staticmethod
    def profile_hook_step(func: Callable[..., Any]) -> Callable[..., Any]:
        """Puts the optimizer's step hooks around a function; every class's `step()` is wrapped so by itself.

        Args:
            func (callable): A `step()` method.

        Returns:
            callable: The method that calls the hooks too.
        """

        @functools.wraps(func)
        def step(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
            own = self._optimizer_step_pre_hooks or self._optimizer_step_post_hooks
            if own or _global_optimizer_pre_hooks or _global_optimizer_post_hooks:
                return _with_hooks(func, self, args, kwargs)
            return func(self, *args, **kwargs)

        return step

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._add_tables()
        self.defaults.setdefault("differentiable", False)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds parameters with options of their own, for instance layers that thaw during training.

        Args:
            param_group (dict): The Tensors under "params", and options that are other than the defaults.

        Raises:
            TypeError: `param_group` is no dict, or holds other things than Tensors.
            ValueError: A Tensor is no leaf or in a group already, or an option without default is missing.
        """
        if not isinstance(param_group, dict):
            raise TypeError(
                f"A parameter group is a dict with the key 'params'; this one is {_shown(param_group)}."
            )
        _read_params(param_group)
        for p in param_group["params"]:
            if not isinstance(p, Tensor):
                raise TypeError(
                    f"The optimizer can only optimize Tensors, but one of the params is {type(p).__name__}."
                )
            if not self.defaults.get("differentiable") and not (p.is_leaf or p.retains_grad):
                raise ValueError("can't optimize a non-leaf Tensor: its value was computed from others.")
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(
                    f"The parameter group has no value for the option ({name}), which has no default."
                )
            param_group.setdefault(name, default)
        self._check_distinct(param_group)
        self.param_groups.append(param_group)

    def _check_distinct(self, param_group: dict[str, Any]) -> None:
        params = param_group["params"]
        if len({id(p) for p in params}) != len(params):
            warnings.warn("A parameter group holds a parameter twice, which gets two steps.", stacklevel=4)
        for group in self.param_groups:
            if ("param_names" in group) != ("param_names" in param_group):
                raise ValueError("Either all parameter groups of an optimiser have names or none has.")
        seen = {id(p) for group in self.param_groups for p in group["params"]}
        if not seen.isdisjoint(id(p) for p in params):
            raise ValueError("A parameter stands in more than one group.")

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clears the gradients of all parameters, before the next backward pass.

        Args:
            set_to_none (bool): Set `grad` to None; else fill it with zeros in place. Default: True.
        """
        zeroed = []
        for group in self.param_groups:
            for p in group["params"]:
                if set_to_none:
                    p.grad = None
                elif p.grad is not None:
                    if p.grad.grad_fn is not None:
                        p.grad = p.grad.detach()
                    else:
                        p.grad.requires_grad_(False)
                    zeroed.append(p.grad)
        if zeroed:
            mica._foreach_zero_(zeroed)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Updates the parameters once from their gradients.

        Args:
            closure (callable, optional): Computes the loss anew, with its gradients, and returns it.

        Returns:
            The closure's loss, or None.
        """
        raise NotImplementedError(f"Optimizer ({type(self).__name__}) has no step() method.")

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls a function before each step of this optimizer.

        Args:
            hook (callable): `hook(optimizer, args, kwargs)`; `args[0]` is the optimizer. It may return
                `(args, kwargs)` for the step to take instead.

        Returns:
            RemovableHandle: Its `remove()` takes the hook away.
        """
        return _add(self._optimizer_step_pre_hooks, hook)  # type: ignore[attr-defined]

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls a function after each step of this optimizer.

        Args:
            hook (callable): `hook(optimizer, args, kwargs)`; what it returns is not used.

        Returns:
            RemovableHandle: Its `remove()` takes the hook away.
        """
        return _add(self._optimizer_step_post_hooks, hook)  # type: ignore[attr-defined]

    def register_state_dict_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Calls a function before `state_dict()` collects the state.

        Args:
            hook (callable): `hook(optimizer)`.
            prepend (bool): Call it before the hooks that are there already. Default: False.

        Returns:
            RemovableHandle: Its `remove()` takes the hook away.
        """
        return _add(self._optimizer_state_dict_pre_hooks, hook, prepend)  # type: ignore[attr-defined]

    def register_state_dict_post_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Calls a function with the result of `state_dict()`.

        Args:
            hook (callable): `hook(optimizer, state_dict)`; it may change the dict or return another.
            prepend (bool): Call it before the hooks that are there already. Default: False.

        Returns:
            RemovableHandle: Its `remove()` takes the hook away.
        """
        return _add(self._optimizer_state_dict_post_hooks, hook, prepend)  # type: ignore[attr-defined]

    def register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Calls a function with the state that `load_state_dict()` is about to take over.

        Args:
            hook (callable): `hook(optimizer, state_dict)`; it may return another dict. The dict is a
                shallow copy of the caller's.
            prepend (bool): Call it before the hooks that are there already. Default: False.

        Returns:
            RemovableHandle: Its `remove()` takes the hook away.
        """
        return _add(self._optimizer_load_state_dict_pre_hooks, hook, prepend)  # type: ignore[attr-defined]

    def register_load_state_dict_post_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Calls a function after `load_state_dict()` has taken a state over.

        Args:
            hook (callable): `hook(optimizer)`.
            prepend (bool): Call it before the hooks that are there already. Default: False.

        Returns:
            RemovableHandle: Its `remove()` takes the hook away.
        """
        return _add(self._optimizer_load_state_dict_post_hooks, hook, prepend)  # type: ignore[attr-defined]

    def state_dict(self) -> dict[str, Any]:
        """What a file must hold for training to go on: the state and the groups' options.

        Returns:
            dict: "state" maps a parameter's number to its state; "param_groups" lists the groups, with
            numbers in the place of the parameters. Tensors are those of the optimizer, not copies.
        """
        for hook in tuple(self._optimizer_state_dict_pre_hooks.values()):  # type: ignore[attr-defined]
            hook(self)
        numbers: dict[int, int] = {}
        groups = []
        for group in self.param_groups:
            for p in group["params"]:
                numbers.setdefault(id(p), len(numbers))
            packed = {k: v for k, v in group.items() if k != "params"}
            packed["params"] = [numbers[id(p)] for p in group["params"]]
            groups.append(packed)
        state = {numbers[id(k)] if isinstance(k, Tensor) else k: v for k, v in self.state.items()}
        found: dict[str, Any] = {"state": state, "param_groups": groups}
        for hook in tuple(self._optimizer_state_dict_post_hooks.values()):  # type: ignore[attr-defined]
            changed = hook(self, found)
            found = found if changed is None else changed
        return found

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over what `state_dict()` gave, options included, for parameters in the same order.

        Args:
            state_dict (dict): Result of `state_dict()`. Floating-point state is cast to each parameter's
                dtype and device.

        Raises:
            ValueError: The groups differ in number, or in their numbers of parameters.
            KeyError: "state" or "param_groups" is missing.
            TypeError: `state_dict` is no dict.
        """
        given = dict(state_dict) if isinstance(state_dict, dict) else state_dict
        for hook in tuple(self._optimizer_load_state_dict_pre_hooks.values()):  # type: ignore[attr-defined]
            changed = hook(self, given)
            given = given if changed is None else changed
        if not isinstance(given, dict) or not {"state", "param_groups"} <= given.keys():
            raise (KeyError if isinstance(given, dict) else TypeError)(
                f"An optimiser's state is a dict with the keys 'state' and 'param_groups'; this one is {_shown(given)}."
            )
        groups = deepcopy(given["param_groups"])
        by_number = self._numbered(groups)
        state: dict[Any, Any] = defaultdict(dict)
        for number, values in given["state"].items():
            owner = by_number.get(number)
            if owner is None:
                state[number] = values
            else:
                state[owner[0]] = _cast(owner[0], values, owner[1])
        for own, new in zip(self.param_groups, groups):
            new["params"] = own["params"]
            if "param_names" in own:
                new.setdefault("param_names", own["param_names"])
        self.__setstate__({"state": state, "param_groups": groups})
        for hook in tuple(self._optimizer_load_state_dict_post_hooks.values()):  # type: ignore[attr-defined]
            hook(self)

    def _numbered(self, groups: list[dict[str, Any]]) -> dict[int, tuple[Tensor, dict[str, Any]]]:
        """The parameter of each number in a state, with the group that the state has it in."""
        if len(groups) != len(self.param_groups):
            raise ValueError(
                f"The state has {len(groups)} parameter groups; the optimiser has {len(self.param_groups)}."
            )
        found = {}
        for i, (own, given) in enumerate(zip(self.param_groups, groups)):
            if len(own["params"]) != len(given["params"]):
                raise ValueError(
                    f"Group ({i}) has {len(given['params'])} parameters in the state and {len(own['params'])} here."
                )
            for number, p in zip(given["params"], own["params"]):
                found[number] = (p, given)
        return found

    def __repr__(self) -> str:
        text = f"{type(self).__name__} ("
        for i, group in enumerate(self.param_groups):
            lines = [f"    {key}: {group[key]}\n" for key in sorted(group) if key != "params"]
            text += f"\nParameter Group {i}\n" + "".join(lines)
        return text + ")"


def _read_params(group: dict[str, Any]) -> None:
    """Makes `params` of a group a list, and `param_names` of the names in it."""
    if "params" not in group:
        raise KeyError(f"A parameter group has the key 'params'; this one is {_shown(group)}.")
    params = group["params"]
    if isinstance(params, set):
        raise TypeError("Parameters must come in an order that stays; a set has none. Give a list.")
    items: list[Any] = [params] if isinstance(params, Tensor) else list(params)
    names = [item[0] for item in items if isinstance(item, tuple)]
    group["params"] = [item[1] if isinstance(item, tuple) else item for item in items]
    if names and len(names) != len(items):
        raise ValueError(
            f"Of ({len(items)}) parameters of a group ({len(names)}) have names; give all names or none."
        )
    if names:
        group["param_names"] = names


def _cast(p: Tensor, value: Any, group: dict[str, Any], key: str = "") -> Any:
    """A deep copy of a parameter's state, its tensors of the parameter's device and dtype."""
    if isinstance(value, Tensor):
        if key == "step":
            on_device = group.get("capturable") or group.get("fused")
            return value.to(dtype=mica.float32, device=p.device) if on_device else value
        if p.is_floating_point():
            return value.to(dtype=p.dtype, device=p.device)
        return value.to(device=p.device)
    if isinstance(value, dict):
        return {k: _cast(p, v, group, k) for k, v in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str):
        return type(value)(_cast(p, v, group) for v in value)  # type: ignore[call-arg]
    return value


def _shown(value: Any) -> str:
    """What a wrong value is, in few words."""
    return (
        f"a dict with the keys {sorted(map(str, value))}"
        if isinstance(value, dict)
        else f"of type ({type(value).__name__})"
    )
