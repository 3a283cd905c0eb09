"""An optimizer over other parameters and states for the length of a `with` block."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from mica._C import Tensor
from mica.optim._optimizer import Optimizer

_NAME = "swap_in_optimizer_params_and_state"


def _groups(optimizer: Optimizer, state: Any) -> list[dict[str, Any]]:
    """The groups of a state_dict, which must fit those of the optimizer."""
    if not optimizer.state:
        raise RuntimeError(f"{_NAME} requires initialized optimizer state.")
    if not isinstance(state, dict) or not isinstance(state.get("state"), dict):
        raise RuntimeError(f"{_NAME} takes a state as optimizer.state_dict() gives it.")
    given = state.get("param_groups")
    if not isinstance(given, list) or not all(isinstance(group, dict) for group in given):
        raise RuntimeError(f"{_NAME} needs `param_groups` to be a list of dicts.")
    if len(given) != len(optimizer.param_groups):
        raise RuntimeError(
            f"The state has ({len(given)}) parameter groups, the optimizer ({len(optimizer.param_groups)})."
        )
    for i, (own, group) in enumerate(zip(optimizer.param_groups, given)):
        numbers = group.get("params")
        if not isinstance(numbers, list) or not all(isinstance(n, int) for n in numbers):
            raise RuntimeError(f"Group ({i}) of the state names its parameters by other than numbers.")
        if len(numbers) != len(own["params"]):
            raise RuntimeError(
                f"Group ({i}) has ({len(numbers)}) params in the state, ({len(own['params'])}) in the optimizer."
            )
        if own.keys() != group.keys():
            raise RuntimeError(
                f"The options of group ({i}) differ: {sorted(own.keys() ^ group.keys())} are on one side only."
            )
    known = {n for group in given for n in group["params"]}
    unknown = [key for key in state["state"] if key not in known]
    if unknown:
        raise RuntimeError(f"The state has entries {unknown} that no group names.")
    return given


@contextlib.contextmanager
def swap_in_optimizer_params_and_state(
    optimizer: Optimizer, swapin_parameters: dict[str, Tensor], swapin_optim_state: dict[str, Any]
) -> Iterator[None]:
    """Lets an optimizer work on other parameters and another state inside a `with` block.

    The optimizer's hooks see them too. Tensors of the given state are written in place; entries that a
    step adds to the state inside the block are forgotten at its end.

    Args:
        optimizer (Optimizer): An optimizer that has taken a step, or loaded a state.
        swapin_parameters (dict of str to Tensor): The parameters, in the order of the optimizer's
            groups.
        swapin_optim_state (dict): A state as `optimizer.state_dict()` gives it, of the same groups.

    Yields:
        None

    Raises:
        RuntimeError: The optimizer has no state yet, or groups, options or numbers of parameters
            differ.

    Example:
        >>> w, other = mica.ones(1, requires_grad=True), mica.zeros(1, requires_grad=True)
        >>> optimizer = mica.optim.SGD([w], lr=0.1, momentum=0.9)
        >>> w.grad = other.grad = mica.ones(1)
        >>> optimizer.step()
        >>> with mica.optim.swap_in_optimizer_params_and_state(optimizer, {"w": other}, optimizer.state_dict()):
        ...     optimizer.step()
        >>> w, other
        (tensor([0.9000], requires_grad=True), tensor([-0.1900], requires_grad=True))
    """
    groups = _groups(optimizer, swapin_optim_state)
    parameters = list(swapin_parameters.values())
    if sum(len(group["params"]) for group in groups) > len(parameters):
        raise RuntimeError(f"There are only ({len(parameters)}) parameters for all groups of the optimizer.")
    before, kept = optimizer.state, [dict(group) for group in optimizer.param_groups]
    state: defaultdict[Any, Any] = defaultdict(dict)
    rest = iter(parameters)
    try:
        for own, group in zip(optimizer.param_groups, groups):
            own.update({**group, "params": [next(rest) for _ in group["params"]]})
            for p, number in zip(own["params"], group["params"]):
                state[p] = dict(swapin_optim_state["state"].get(number, {}))
        optimizer.state = state
        yield
    finally:
        for own, group in zip(optimizer.param_groups, kept):
            own.clear()
            own.update(group)
        optimizer.state = before
