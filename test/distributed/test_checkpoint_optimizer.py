"""States of optimizers by the names of parameters: given to optimizers that have gradients, and steps that fail."""

from __future__ import annotations

from typing import Any

import pytest

import mica
from mica.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_optimizer_state_dict,
    set_optimizer_state_dict,
)

FLAT = StateDictOptions(flatten_optimizer_state_dict=True)


def stepped(model: mica.nn.Module, optimizer: Any) -> None:
    model(mica.arange(6.0).reshape(2, 3)).square().sum().backward()
    optimizer.step()


def states(optimizer: Any) -> list[dict[str, Any]]:
    found = optimizer.state_dict()["state"].values()
    return [{k: v.tolist() if isinstance(v, mica.Tensor) else v for k, v in one.items()} for one in found]


@pytest.mark.parametrize("amsgrad", [False, True])
@pytest.mark.parametrize("options", [FLAT, StateDictOptions()], ids=["flat", "nested"])
def test_a_state_is_taken_over_where_gradients_are(options: StateDictOptions, amsgrad: bool) -> None:
    model, other = (mica.nn.Sequential(mica.nn.Linear(3, 2), mica.nn.Linear(2, 1)) for _ in range(2))
    saved = mica.optim.AdamW(model.parameters(), amsgrad=amsgrad)
    stepped(model, saved)
    other(mica.ones(1, 3)).sum().backward()
    optimizer = mica.optim.AdamW(other.parameters())
    state = get_optimizer_state_dict(model, saved, options=options)
    set_optimizer_state_dict(other, optimizer, state, options=options)
    assert len(states(optimizer)) == 4 and states(optimizer) == states(saved)
    assert other[0].weight.grad is not None


def test_a_flat_state_that_lacks_one_of_a_parameters_own_is_refused() -> None:
    model = mica.nn.Linear(3, 1)
    optimizer = mica.optim.AdamW(model.parameters())
    stepped(model, optimizer)
    state = get_optimizer_state_dict(model, optimizer, options=FLAT)
    del state["state.bias.exp_avg"]
    with pytest.raises(KeyError, match=r"has no \(state\.bias\.exp_avg\)"):
        set_optimizer_state_dict(model, optimizer, state, options=FLAT)
    for key in ("step", "exp_avg_sq"):
        del state[f"state.bias.{key}"]
    fresh = mica.optim.AdamW(model.parameters())  # beside gradients, and so without a state
    with pytest.raises(RuntimeError, match=r"Missing optimizer state for parameter \(bias\)"):
        set_optimizer_state_dict(model, fresh, state, options=FLAT)


def test_an_optimizer_whose_step_fails_keeps_its_rates() -> None:
    model = mica.nn.Linear(3, 1)
    optimizer = mica.optim.AdamW(
        [{"params": [model.weight], "lr": 0.5}, {"params": [model.bias], "lr": mica.tensor(0.25)}]
    )
    hook = optimizer.register_step_pre_hook(lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        get_optimizer_state_dict(model, optimizer)
    assert [float(group["lr"]) for group in optimizer.param_groups] == [0.5, 0.25]
    assert model.weight.grad is None and model.bias.grad is None and not optimizer.state
    hook.remove()
    assert len(get_optimizer_state_dict(model, optimizer)["state"]) == 2
